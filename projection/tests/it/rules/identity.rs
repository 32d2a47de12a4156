//! What a session is called, what is recorded of its holder, and how it is given back (REG-14 to REG-20).

use tenure_core::holder::{BootId, HostId};
use tenure_core::id::{Name, NameFault};
use tenure_core::limits::NAME_BYTES_MAX;
use tenure_core::refusal::Code;

use crate::scene::Scene;
use crate::scene::look;

/// REG-14
#[test]
fn whatever_is_issued_carries_its_generation() {
    let scene = Scene::new();
    scene.play(
        "register api \n adopt api as=api@1 \n dispatch one api \n dispatch two api \n send api hello
         accept d1 as=api@2 \n fail d2",
    );
    scene.check(
        "work      => d1 accepted api@2; d2 failed api@2
         inbox api => e1 work pending@2; e2 work cancelled@2 dispatch-ended; e3 message pending@2; e4 notice pending@2 assignment-failed",
    );
    let fences: Vec<_> = scene.entries().iter().map(|e| e.fence).collect();
    assert_eq!(fences[5].named.expect("named").number, 2, "the accept");
}

/// REG-16, LIV-1, DSC-1: what is recorded of a holder and of where it works.
#[test]
fn a_grant_records_who_holds_and_where() {
    let scene = Scene::new();
    let here = std::env::current_dir().expect("a directory");
    let line = format!(
        "register api engine=claude pid=501 label=pane:7 checkout={}",
        here.display()
    );
    scene.check(&format!("{line} => api@1"));
    scene.play("dispatch item api writes=/w/a,/w/b \n accept d1 as=api@1");
    let (session, state) = (scene.session("api"), scene.state());
    let text = |symbol| state.pool.string(symbol);
    let holder = session.holder.expect("it is held");
    assert_eq!(text(holder.engine.expect("named")), "claude");
    assert_eq!(text(holder.actor), "tester");
    assert_eq!(text(holder.host_name), "stage1");
    let bearing = holder.bearing;
    assert_eq!(bearing.host, HostId([1; 16]));
    assert_eq!(bearing.boot, Some(BootId([2; 16])));
    assert_eq!(bearing.uid, 1000);
    let process = bearing.process.expect("recorded");
    assert_eq!((process.pid, process.start), (501, Some(1000)));
    assert_eq!((process.pidns, process.timens), (Some(3), Some(4)));
    let labels: Vec<_> = session
        .labels
        .iter()
        .map(|(k, v)| (text(*k), text(*v)))
        .collect();
    assert_eq!(labels, [("pane".to_owned(), "7".to_owned())]);
    let checkout = session.checkout.expect("it said one");
    assert_eq!(text(checkout.path), here.to_str().expect("text"));
    assert!(!checkout.anchors.is_empty(), "directories are identified");
    let (_, dispatch) = state.live.iter().next().expect("live");
    let writes = &dispatch.writes;
    let writes: Vec<_> = writes.iter().map(|w| text(w.path)).collect();
    assert_eq!(writes, ["/w/a", "/w/b"]);
}

/// REG-17, A12: a name is checked once, whole, and stored bit for bit.
#[test]
fn names_are_checked_once_and_stored_bit_for_bit() {
    let longest = "n".repeat(NAME_BYTES_MAX);
    for good in [
        "a",
        "0",
        "_",
        ":x",
        "+x",
        "Api.v2_x:y+z/w-1",
        "a/../b",
        "a.",
        "con",
        "aaaaaaaa-1",
        "aaaaaaaa-2",
        longest.as_str(),
    ] {
        let name = Name::parse(good).expect(good);
        assert_eq!(name.as_str(), good);
    }
    assert_eq!(Name::parse(""), Err(NameFault::Empty));
    let over = "n".repeat(NAME_BYTES_MAX + 1);
    assert_eq!(
        Name::parse(&over),
        Err(NameFault::TooLong(NAME_BYTES_MAX + 1))
    );
    for begin in ['-', '.', '/'] {
        let text = format!("{begin}x");
        assert_eq!(Name::parse(&text), Err(NameFault::Beginning(begin)));
    }
    for c in (0..=0x2ff).filter_map(char::from_u32) {
        let allowed = c.is_ascii_alphanumeric() || "._:+/-".contains(c);
        let parsed = Name::parse(&format!("x{c}y"));
        assert_eq!(parsed.is_ok(), allowed, "{c:?}");
        if !allowed {
            assert_eq!(parsed, Err(NameFault::Character(c, 1)));
        }
    }
    let scene = Scene::new();
    scene.check(
        "register aaaaaaaa-1 => aaaaaaaa-1@1
         register aaaaaaaa-2 => aaaaaaaa-2@1
         register AAAAAAAA-1 => AAAAAAAA-1@1
         retire aaaaaaaa-1@1 => done
         session aaaaaaaa-2  => active@1 open=0 inbox=0
         session aaaaaaaa    => absent",
    );
    scene.check(&format!("register {longest} => {longest}@1"));
    let state = scene.another().view(Clone::clone).expect("it reads");
    let names: Vec<_> = state
        .sessions
        .iter()
        .map(|s| state.pool.string(s.name))
        .collect();
    assert_eq!(names, ["aaaaaaaa-1", "aaaaaaaa-2", "AAAAAAAA-1", &longest]);
}

/// REG-20, A10: given back once; whoever comes later with the same token rotates nothing.
#[test]
fn a_session_is_given_back_once() {
    let scene = Scene::new();
    scene.check(
        "register api        => api@1
         retire api@1        => done
         retire api@1        => done again
         retire api@2        => never-issued: ..
         retire api idle as=api@1 => done again
         retire api force=x  => done again
         register api        => api@2
         retire api@1        => stale-generation: ..
         session api         => active@2 open=0 inbox=0
         retire nobody@1     => unknown-session: ..",
    );
    let retired = scene.entries().into_iter().flat_map(|e| e.events);
    assert_eq!(retired.filter(|e| e.word() == "retired").count(), 1);
}

/// REG-20: only its own token gives a session back; an operator does it by force, with a reason.
#[test]
fn a_session_is_given_back_under_its_own_token_or_by_an_operator() {
    let scene = Scene::new();
    scene.play("register api \n register web");
    let refusal = scene.refusal("retire api as=web@1");
    assert_eq!(refusal.code, Code::Held);
    assert_eq!(refusal.current.as_deref(), Some("api@1"));
    scene.check(
        "retire api as=web@2          => never-issued: ..
         session api                  => active@1 open=0 inbox=0
         retire api as=web@1 force=ops => done
         session api                  => retired@1 open=0 inbox=0
         retire api as=web@1          => held: ..
         retire web force=ops         => done
         findings                     => ",
    );
    let note = *scene.session("api").grants.last().expect("noted");
    let state = scene.state();
    assert_eq!(state.pool.string(note.reason.expect("given")), "ops");
    // The token of another session that stands at the same number is not this one's.
    scene.check("retire api as=web@1 => retired: ..");
}

/// `--if-idle`: open work and pending mail keep a session, notices do not (NOT-3).
#[test]
fn a_session_with_open_obligations_is_kept_when_asked_for() {
    let scene = Scene::new();
    scene.check(
        "register api                => api@1
         dispatch item api           => d1 e1
         retire api@1 idle           => open-obligations: ..
         retire api idle force=ops   => open-obligations: ..
         accept d1 as=api@1          => alone
         deliver e1 as=api@1         => done
         retire api@1 idle           => open-obligations: ..
         report d1 done as=api@1     => done
         send api hello              => e2
         retire api@1 idle           => open-obligations: ..
         ack e2 as=api@1             => done
         dispatch second api         => d2 e3
         fail d2                     => done
         session api                 => active@1 open=0 inbox=1
         retire api@1 idle           => done",
    );
}

/// A23: nothing is kept by directory: two sessions in one checkout keep what is theirs apart.
#[test]
fn two_sessions_in_one_checkout_keep_apart() {
    let scene = Scene::new();
    scene.play("register one checkout=/w \n register two checkout=/w");
    for n in 0..100 {
        scene.play(&format!("note n{n} as=one@1 \n note n{n} as=two@1"));
    }
    let mut notes = [0, 0];
    for event in scene.entries().into_iter().flat_map(|e| e.events) {
        if let tenure_core::event::Event::Noted(noted) = event {
            notes[noted.session.index()] += 1;
        }
    }
    assert_eq!(notes, [100, 100]);
    assert_eq!(look::findings(&scene.state()), "");
}
