//! Roles: one holder within a scope, checked where it is used (ROL).

use std::time::Duration;

use tenure_core::event::Event;
use tenure_core::holder::{Answer, Verdict};
use tenure_core::refusal::Code;
use tenure_log::journal::Deadline;
use tenure_projection::authority::{Authority, When};
use tenure_projection::core::id::{Position, RoleNo};
use tenure_projection::error::Failure;
use tenure_projection::projector::Projector;

use crate::scene::Scene;

fn two() -> Scene {
    let scene = Scene::new();
    scene.play("register api pid=500 \n register web pid=501");
    scene
}

/// ROL-1: a second claimant is told who holds it, until it is released or cleared.
#[test]
fn a_role_has_one_holder_in_its_scope() {
    let scene = two();
    scene.check(
        "role take command w as=api@1   => command@w 1
         role take command w as=web@1   => role-held: command@w is held by api@1; that will not expire by itself
         role take command w as=api@1   => command@w 1 again
         role take command v as=web@1   => command@v 1
         role take scribe w as=web@1    => scribe@w 1
         role release command w as=web@1 => role-held: ..
         role release command w as=api@1 => done
         role release command w as=api@1 => done again
         role take command w as=web@1   => command@w 2
         role clear command w           => done
         role clear command w           => done again
         role take command w as=api@1   => command@w 4
         roles => command@w 4 api; command@v 1 web; scribe@w 1 web",
    );
    let refusal = scene.refusal("role take command w as=web@1");
    assert_eq!(refusal.code, Code::RoleHeld);
    let holder = refusal.holder.expect("it is held");
    assert_eq!(holder.bearing.process.map(|p| p.pid), Some(500));
    assert_eq!(refusal.evidence.map(|e| e.0), Some(Verdict::Alive));
    assert!(refusal.next.iter().any(|n| n.command.contains("--wait")));
}

/// ROL-2: who does not hold the role is refused before anything else is looked at, and that is recorded.
#[test]
fn a_role_is_checked_where_it_is_used() {
    let scene = two();
    scene.play("role take command w as=api@1 \n dispatch item api \n dispatch other web");
    for line in [
        "note hello as=web@1",
        "accept d2 as=web@1",
        "accept d9 as=web@1",
        "send api hello as=web@1",
        "observe busy as=web@1",
        "record turn as=web@1",
        "retire web@1",
        "role take other w as=web@1",
        "policy refuse /w as=web@1",
        "dispatch more api as=web@1",
    ] {
        let frames = scene.frames();
        let refusal = scene.refusal(&format!("{line} require=command@w"));
        assert_eq!(refusal.code, Code::RoleHeld, "{line}");
        let state = scene.state();
        let number = state.refusal_record(&refusal.key).expect("recorded");
        assert!(state.refusal(number).is_some(), "{line}");
        assert!(scene.frames() - frames <= 1, "{line} did something");
        assert_eq!(
            scene.run("session web"),
            "active@1 open=1 inbox=1",
            "{line}"
        );
    }
    scene.check(
        "note hello require=command@w           => missing-token: ..
         note hello as=web@2 require=command@w  => never-issued: ..
         note hello as=api@1 require=command@w  => done
         note hello as=api@1 require=command@v  => role-stale: ..
         accept d1 as=api@1 require=command@w   => alone
         role check command w as=api@1          => command@w 1 again
         role check command w as=web@1          => role-held: ..",
    );
    // What was required is part of what was judged, and of what a key stands for.
    scene.check(
        "note keyed as=api@1 key=k require=command@w => done
         note keyed as=api@1 key=k require=command@w => done again
         note keyed as=api@1 key=k => key-reused: ..",
    );
}

/// ROL-3, ROL-4: whoever lost a role is stale in it, whether its session was superseded or the role was cleared,
/// and finds out by whom and why.
#[test]
fn whoever_lost_a_role_is_stale_in_it() {
    let scene = two();
    scene.check(
        "role take command w as=api@1                => command@w 1
         role check command w as=api@1 generation=1  => command@w 1 again
         role check command w as=api@1 generation=2  => role-stale: command@w is at role generation 1, not 2; api@1 holds it
         role clear command w reason=stuck           => done
         role check command w as=api@1               => role-stale: command@w is not yours; nobody holds it
         role take command w as=web@1                => command@w 3
         role check command w as=api@1               => role-stale: command@w is not yours; web@1 holds it
         role check command w as=api@1 generation=1  => role-stale: ..
         role check command w as=web@1 generation=1  => role-stale: ..
         note late as=api@1 require=command@w        => role-stale: ..
         inbox api                                   => e1 notice pending@1 role-cleared
         role take command w as=web@1 => command@w 3 again
         adopt web force=stuck pid=502 => web@2 former@1
         role check command w as=web@1 => stale-generation: ..
         role check command w as=web@2 => command@w 3 again
         roles => command@w 3 web",
    );
    let cleared = scene.entries().into_iter().find_map(|entry| {
        let cleared = entry.events.iter().find_map(|e| match e {
            Event::RoleCleared(e) => Some(e.clone()),
            _ => None,
        });
        cleared.map(|e| (entry.texts.get(e.reason).to_vec(), e.generation.number))
    });
    assert_eq!(cleared, Some((b"stuck".to_vec(), 2)));
}

/// ROL-4, DIS-17: a keyed take is repeated while it is held, and refused once it is not.
#[test]
fn a_take_is_repeated_only_while_it_is_held() {
    let scene = two();
    scene.check(
        "role take command w as=api@1 key=k => command@w 1
         role take command w as=api@1 key=k => command@w 1 again
         role take command v as=api@1 key=k => key-reused: ..
         role clear command w               => done
         role take command w as=api@1 key=k => role-stale: it is recorded at position 3, and the role was given up or taken away since
         role take command w as=api@1       => command@w 3
         role take command w as=api@1 key=k => role-stale: ..",
    );
}

/// ROL-5, C01, C20: a holder that is provably dead gives way at once, with the evidence in the log; one that may
/// live does not, whatever the clock says. Evidence about another holding counts for nothing.
#[test]
fn a_dead_holder_gives_way_with_evidence() {
    let scene = two();
    scene.play("role take command w as=api@1");
    for answer in [Answer::Denied, Answer::Failed] {
        scene.stage.sees(500, answer);
        scene.check("role take command w as=web@1 => role-held: ..");
    }
    scene.stage.passes(1_000_000);
    scene.check("role take command w as=web@1 => role-held: ..");
    scene.stage.sees(500, Answer::NoSuchProcess);
    let position = scene.frames() + 1;
    scene.check(&format!(
        "role take command w as=web@1 => command@w 3
         log {position}               => role-lapsed role-taken
         inbox api                    => e1 notice pending@1 role-lapsed"
    ));
    let entry = scene.entries().pop().expect("the last");
    let Some(Event::RoleLapsed(lapsed)) = entry.events.first() else {
        panic!("{:?}", entry.events);
    };
    let evidence = lapsed.evidence.as_ref().expect("it is kept");
    assert_eq!(evidence.verdict, Verdict::Dead);
    assert_eq!(lapsed.generation.number, 2);
    // The dead session's own token is current still, and the role is not its.
    scene.check("role check command w as=api@1 => role-stale: ..");
}

/// ROL-5: a role that was recorded with a process ends with that process, while its session lives.
#[test]
fn a_role_ends_with_the_process_it_was_recorded_with() {
    let scene = two();
    scene.play("role take command w as=api@1 pid=600");
    scene.check("role take command w as=web@1 => role-held: ..");
    let reused = Answer::Exists {
        start: Some(7),
        pidfs: None,
    };
    scene.stage.sees(600, reused);
    scene.check("role take command w as=web@1 => command@w 3");
    let entry = scene.entries().pop().expect("the last");
    let Some(Event::RoleLapsed(lapsed)) = entry.events.first() else {
        panic!("{:?}", entry.events);
    };
    assert_eq!(
        lapsed.process.as_ref().map(|p| p.verdict),
        Some(Verdict::Dead)
    );
    assert_eq!(
        lapsed.evidence.as_ref().map(|e| e.verdict),
        Some(Verdict::Alive)
    );
}

/// ROL-3, ROL-5: a role follows its session to the next holder, ends when the session is retired, and gives way
/// when nobody holds the session.
#[test]
fn a_role_follows_its_session() {
    let scene = two();
    scene.check(
        "role take command w as=api@1   => command@w 1
         adopt api as=api@1 pid=503     => api@2
         note x as=api@2 require=command@w => done
         role take command w as=web@1   => role-held: ..
         retire api@2                   => done
         role take command w as=web@1   => command@w 2
         register api                   => api@3
         role check command w as=api@3  => role-stale: ..",
    );
}

/// ROL-6: sessions that take no role are hindered by nobody's, and several of them coexist.
#[test]
fn sessions_without_a_role_coexist_with_its_holder() {
    let scene = two();
    scene.play(
        "role take command /w as=api@1 \n register old label=scope:archive \n register older label=scope:archive
         dispatch one old writes=/archive \n dispatch two older writes=/archive",
    );
    scene.check(
        "accept d1 as=old@1   => alone
         accept d2 as=older@1 => with old(tree,declared)
         note x as=old@1      => done
         role take command archive as=old@1 => command@archive 1
         note x as=old@1 require=command@/w => role-held: ..
         roles => command@/w 1 api; command@archive 1 old",
    );
}

/// ROL-7: a path is one scope by whatever name, and a word is a name.
#[test]
fn a_path_is_one_scope_by_any_spelling() {
    let scene = two();
    let here = std::env::current_dir().expect("there is one");
    let here = here.canonicalize().expect("it exists");
    let here = here.to_str().expect("text");
    let (parent, last) = here.rsplit_once('/').expect("a parent");
    scene.check(&format!(
        "role take command . as=api@1              => command@{here} 1
         role check command {here} as=api@1        => command@{here} 1 again
         role check command {here}/ as=api@1       => command@{here} 1 again
         role check command ./src/.. as=api@1      => command@{here} 1 again
         role check command ../{last} as=api@1     => command@{here} 1 again
         role take command {parent}/{last}/. as=web@1 => role-held: ..
         note x as=web@1 require=command@../{last} => role-held: ..
         role take command {last} as=web@1         => command@{last} 1"
    ));
}

/// ROL-8: the same actor, host and user twice are two claimants.
#[test]
fn two_with_equal_names_are_told_apart() {
    let scene = Scene::new();
    scene.play("register a pid=500 \n register b pid=500");
    scene.check(
        "role take command w as=a@1 => command@w 1
         role take command w as=b@1 => role-held: command@w is held by a@1..
         adopt a as=a@1 pid=500     => a@2
         role check command w as=a@1 => stale-generation: ..
         role check command w as=a@2 => command@w 1 again",
    );
}

/// BND-5, ROL-4: who held a role can be asked for every position, through adoptions too.
#[test]
fn who_held_a_role_is_known_for_every_position() {
    let scene = two();
    scene.play(
        "role take command w as=api@1 \n adopt api as=api@1 pid=503 \n role release command w as=api@2
         role take command w as=web@1 \n role clear command w \n role take command w as=api@2 \n retire api@2",
    );
    let (mut projector, mut authority) = (Projector::new(), Authority::new());
    let read = projector.read(&scene.store, None, &mut [&mut authority]);
    read.expect("the log reads");
    let at = |position| {
        let held = authority.role_at(RoleNo(0), When::At(Position(position)));
        held.map(|i| (projector.state().name(i.session), i.generation.number))
    };
    let held = |name: &str, number| Some((name.to_owned(), number));
    let expected = [
        (2, None),
        (3, held("api", 1)),
        (4, held("api", 2)),
        (5, None),
        (6, held("web", 1)),
        (7, None),
        (8, held("api", 2)),
        (9, None),
    ];
    for (position, holder) in expected {
        assert_eq!(at(position), holder, "at {position}");
    }
}

/// ROL-9, A08: a wait takes the role when it is free and not before, one of many waiters at a time; who waits in
/// vain has taken nothing and is told who holds it.
#[test]
fn a_wait_is_bounded_and_has_one_winner() {
    let scene = Scene::new();
    scene.play("register holder \n role take command w as=holder@1");
    let waiters: Vec<String> = (0..4).map(|n| format!("waiter{n}")).collect();
    for waiter in &waiters {
        scene.play(&format!("register {waiter}"));
    }
    let wait = |waiter: &str, bound| {
        let words = format!("role take command w as={waiter}@1");
        let call = crate::scene::line::call(&crate::scene::line::Words::parse(&words));
        scene
            .another()
            .execute_when_free(call, Deadline::after(bound))
    };
    // In vain: what stands is one refusal, recorded once.
    let frames = scene.frames();
    let vain = wait("waiter0", Duration::from_millis(30));
    assert!(
        matches!(&vain, Err(Failure::Refused(r)) if r.code == Code::RoleHeld),
        "{vain:?}"
    );
    assert_eq!(scene.frames(), frames + 1);
    assert_eq!(scene.run("roles"), "command@w 1 holder");
    // A token that is lost does not wait for anything.
    scene.play("adopt waiter0 as=waiter0@1");
    let lost = wait("waiter0", Duration::from_secs(600));
    assert!(matches!(&lost, Err(Failure::Refused(r)) if r.code == Code::StaleGeneration));
    let (scene, wait) = (&scene, &wait);
    // Each waiter gets it in turn, when the one before gives it back.
    std::thread::scope(|scope| {
        let waiting: Vec<_> = waiters[1..]
            .iter()
            .map(|waiter| {
                scope.spawn(move || {
                    let taken = wait(waiter, Duration::from_secs(60)).expect("it is free at last");
                    let held = scene.run("roles");
                    assert!(held.ends_with(waiter.as_str()), "{held}");
                    scene.play(&format!("role release command w as={waiter}@1"));
                    taken.at.position
                })
            })
            .collect();
        scene.play("role release command w as=holder@1");
        let mut positions: Vec<_> = waiting
            .into_iter()
            .map(|w| w.join().expect("it took it"))
            .collect();
        positions.sort_unstable();
        positions.dedup();
        assert_eq!(positions.len(), 3);
    });
    assert_eq!(scene.run("roles"), "command@w 4 -");
    // The death of a holder stands in no log, and is seen all the same.
    scene.play("role take command w as=holder@1");
    scene.stage.sees(77, Answer::NoSuchProcess);
    let taken = wait("waiter1", Duration::from_secs(60));
    assert!(taken.is_ok(), "{taken:?}");
}

/// A06: finishing work is no release, and time is none; the refusal says that waiting alone is of no use, and what is.
#[test]
fn finished_work_and_time_give_no_role_back() {
    let scene = two();
    scene.play(
        "role take command w as=api@1 \n dispatch item api \n accept d1 as=api@1 \n report d1 done as=api@1",
    );
    scene.stage.passes(10_000_000);
    let refusal = scene.refusal("role take command w as=web@1");
    assert!(
        refusal.message.contains("will not expire by itself"),
        "{}",
        refusal.message
    );
    assert_eq!(refusal.since.map(|s| s.position), Some(Position(3)));
    assert_eq!(scene.run("roles"), "command@w 1 api");
}

/// ROL-5, LIV-13, LIV-14: the clean-up takes a role off a holder that is provably dead, for nobody, with the evidence and a
/// notice; of one that may live, or that took it since, nothing is taken.
#[test]
fn a_role_lapses_by_proof_and_for_nobody() {
    let scene = two();
    scene.check(
        "role lapse command w           => done again
         role take command w as=api@1   => command@w 1
         role lapse command w           => role-held: ..",
    );
    for answer in [Answer::Denied, Answer::Failed] {
        scene.stage.sees(500, answer);
        scene.check("role lapse command w => role-held: ..");
    }
    scene.stage.sees(500, Answer::NoSuchProcess);
    let position = scene.frames() + 1;
    scene.check(&format!(
        "role lapse command w         => done
         log {position}               => role-lapsed
         roles                        => command@w 2 -
         inbox api                    => e1 notice pending@1 role-lapsed
         role lapse command w         => done again
         role check command w as=api@1 => role-stale: ..
         note text as=api@1           => done
         role take command w as=web@1 => command@w 3
         role lapse command w         => role-held: .."
    ));
    let entries = scene.entries();
    let Some(Event::RoleLapsed(lapsed)) = entries[position as usize - 1].events.first() else {
        panic!("{:?}", entries[position as usize - 1].events);
    };
    let evidence = lapsed.evidence.as_ref().expect("it is kept");
    assert_eq!(evidence.verdict, Verdict::Dead);
    // A tree that is given back gives its roles back.
    scene.check(
        "release web as=web@1         => done
         role take command w as=api@1 => command@w 4",
    );
}
