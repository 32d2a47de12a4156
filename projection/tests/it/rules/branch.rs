//! Branches, reverts, names (BRN).

use tenure_core::event::Event;
use tenure_core::generation::Generation;
use tenure_core::history::HistoryHash;
use tenure_core::id::{EnvelopeNo, Position, SessionNo};
use tenure_core::refusal::Code;
use tenure_core::text::TextId;
use tenure_projection::views::Lens;

use crate::scene::Scene;

mod forged;
mod names;

/// `api@1` with three records at 2, 3, 4.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.play("register api \n record a as=api@1 \n record b as=api@1 \n record c as=api@1");
    scene
}

/// BRN-1, BRN-4, BRN-5, BRN-6, BRN-12: two branches of one source and the source itself are isolated in every
/// direction, also when one is retired, and every handle on the log reads exactly their histories.
#[test]
fn branches_of_one_source_are_isolated_both_ways() {
    let scene = scene();
    scene.check(
        "branch api one           => one@1 from api at 4
         branch api two at=3      => two@1 from api at 3
         record d as=api@1        => record 4
         record x as=one@1        => record 4
         record y as=two@1        => record 3
         record e as=api@1        => record 5
         record xx as=one@1       => record 5
         retire one@1             => done
         record yy as=two@1       => record 4
         session api              => active@1 open=0 inbox=2",
    );
    let other = scene.another();
    for store in [&scene.store, &other] {
        scene.check_on(
            store,
            "history api => a@2 b@3 c@4 d@7 e@10
             history one => api:a@2 api:b@3 api:c@4 x@8 xx@11
             history two => api:a@2 api:b@3 y@9 yy@13",
        );
    }
    let state = scene.state();
    let numbers = ["api", "one", "two"].map(|name| state.find(name.as_bytes()));
    assert_eq!(numbers, [0, 1, 2].map(|n| Some(SessionNo(n))));
    let (api, two) = (scene.session("api"), scene.session("two"));
    let origin = two.history.origin.expect("it is a branch");
    let at = origin.at.expect("it has a point");
    assert_eq!(
        (origin.source, at.position, at.index),
        (SessionNo(0), Position(3), 2)
    );
    assert_ne!(at.hash, HistoryHash::default());
    assert_eq!(api.generation, Generation::first(1));
}

/// BRN-4: the digest names the prefix, not the name: two branches at one point have one digest, and it is that of the
/// source when it stood there.
#[test]
fn the_digest_of_the_prefix_is_that_of_the_source_there() {
    let scene = Scene::new();
    scene.play("register api \n record a as=api@1 \n record b as=api@1");
    let there = scene.session("api").history.hash();
    scene.play(
        "record c as=api@1 \n branch api one at=3 \n branch one two \n branch api tre
         register alike \n record a as=alike@1 \n record b as=alike@1",
    );
    let hash = |name| scene.session(name).history.hash();
    assert_eq!([hash("one"), hash("two")], [there, there]);
    assert_ne!(hash("tre"), there);
    assert_ne!(hash("alike"), there, "equal texts are not equal records");
}

/// BRN-2, BRN-14, A16: whatever cannot be branched has its own code, and leaves nothing behind.
#[test]
fn what_cannot_be_branched_is_refused_with_its_own_code() {
    let scene = scene();
    scene.play("register web \n record w as=web@1 \n register gone \n retire gone@1");
    let before = scene.state().sessions;
    scene.check(
        "branch api api        => same-name: api cannot be a branch of itself; a branch has a name of its own
         branch api web        => name-taken: web is active
         branch api gone       => name-taken: gone was given before, and is retired
         branch ops new        => unknown-session: no session is called ops
         branch api new at=0   => bad-position: the history of api cannot be cut at position 0: its newest record is at position 4
         branch api new at=5   => bad-position: ..
         branch api new at=900 => bad-position: ..
         branch api new at=1   => bad-position: the history of api cannot be cut at position 1: no visible record of it stands there
         branch web new at=4   => bad-position: ..
         branch gone new at=1  => bad-position: the history of gone cannot be cut at position 1: it is empty
         session new           => absent",
    );
    assert_eq!(scene.state().sessions, before);
    assert_eq!(scene.refusal("branch api new at=0").code.exit(), 64);
    assert_eq!(scene.refusal("branch api web").code.exit(), 11);
}

/// BRN-7, BRN-14, A20: within a turn there is no place to cut: by default the branch is what was whole before it.
#[test]
fn a_branch_takes_no_turn_apart() {
    let scene = Scene::new();
    scene.play(
        "register api \n record a as=api@1 \n record ask as=api@1 opens=call:1
         record may as=api@1 opens=approval:1 \n record run as=api@1 opens=run:1",
    );
    scene.check(
        "branch api one      => one@1 from api at 2
         branch api two at=3 => bad-position: the history of api cannot be cut at position 3: a call or an approval is open there, and a turn is not taken apart
         branch api two at=5 => bad-position: ..
         record yes as=api@1 closes=approval:1 => record 5
         branch api two at=8 => bad-position: ..
         record end as=api@1 closes=call:1 => record 6
         branch api two      => two@1 from api at 9
         history two         => api:a@2 api:ask@3 api:may@4 api:run@5 api:yes@8 api:end@9
         record x as=two@1 closes=run:1 => not-pending: run:1 of two is not open
         retire api@1        => done",
    );
}

/// A turn that its session's end cut short is over: what follows may begin behind it.
#[test]
fn a_turn_that_was_cut_short_is_over() {
    let scene = Scene::new();
    scene.play("register api \n record ask as=api@1 opens=call:1 \n retire api@1");
    scene.check(
        "branch api one      => one@1 from api at 2
         branch api two at=2 => two@1 from api at 2",
    );
}

/// BRN-10: a source without records gives an empty and valid session.
#[test]
fn an_empty_source_gives_an_empty_session() {
    let scene = Scene::new();
    scene.play("register api");
    scene.check(
        "branch api one    => one@1 from api at 0
         history one       =>
         record x as=one@1 => record 1
         history one       => x@3
         history api       =>",
    );
    scene.play("record a as=api@1 opens=call:1");
    scene.check("branch api two => two@1 from api at 0 \n history two =>");
}

/// BRN-8, BRN-11, OUT-14: labels, the read cursor and what was delivered and not read are copied once; authority, work,
/// pending mail, notices and reviews are not; and neither side sees what the other does with its own.
#[test]
fn side_state_is_copied_once_and_authority_never() {
    let scene = Scene::new();
    scene.play(
        "register api label=team:red \n register web
         dispatch one api writes=/w \n dispatch two api \n accept d1 as=api@1
         send api first as=web@1 \n send api second as=web@1 re=d1 \n send api third
         ack e3 as=api@1 \n deliver e4 as=api@1
         record a as=api@1 opens=run:1",
    );
    scene.check(
        "inbox api      => e1 work pending@1; e2 work pending@1; e3 message acknowledged@1; e4 message delivered@1 re=d1; e5 message pending@1
         branch api one => one@1 from api at 11
         inbox one      => e7 message pending@1 re=d1
         session one    => active@1 open=0 inbox=1
         session api    => active@1 open=2 inbox=5
         accept d2 as=one@1       => not-your-envelope: ..
         report d1 done as=one@1  => not-your-envelope: ..
         deliver e7 as=one@1      => done
         ack e7 as=one@1          => done
         inbox api      => e1 work pending@1; e2 work pending@1; e3 message acknowledged@1; e4 message delivered@1 re=d1; e5 message pending@1; e6 notice pending@1 branched
         ack e4 as=api@1          => done",
    );
    let (api, one) = (scene.session("api"), scene.session("one"));
    assert_eq!(
        (api.cursor, one.cursor),
        (Some(EnvelopeNo(4)), Some(EnvelopeNo(7)))
    );
    assert_eq!(api.labels, one.labels);
    assert!(one.history.open.is_empty(), "nothing runs in a branch yet");
    let state = scene.state();
    let body = state.envelope(EnvelopeNo(7)).and_then(|row| row.located());
    let body = scene
        .store
        .body(body.expect("it has a body"))
        .expect("it reads");
    assert_eq!(body.as_deref(), Some(&b"second"[..]));
}

/// OUT-14: whoever resumes finds the cursor where it was and what is unread pending under the same ids; what was read is
/// not delivered again, and a session that read nothing starts with nothing behind it.
#[test]
fn a_resume_restores_cursor_and_unread_mail() {
    let scene = Scene::new();
    scene.play(
        "register api \n send api a \n send api b \n send api c \n ack e1 as=api@1 \n deliver e2 as=api@1
         adopt api force=stuck",
    );
    scene.check(
        "inbox api => e1 message acknowledged@1; e2 message pending@2; e3 message pending@2
         register web => web@1 \n inbox web =>",
    );
    assert_eq!(scene.session("api").cursor, Some(EnvelopeNo(1)));
    assert_eq!(scene.session("web").cursor, None);
    scene.play("branch web new");
    assert_eq!(scene.session("new").cursor, None);
}

/// BRN-24: what is given with a branch outranks what the source had, and the log says what was given.
#[test]
fn given_options_outrank_those_of_the_source() {
    let scene = Scene::new();
    scene.play("register api engine=claude label=team:red \n adopt api as=api@1 label=seat:4");
    scene.play("branch api one engine=codex label=team:blue");
    let state = scene.state();
    let lens = Lens {
        state: &state,
        host: scene.store.host(),
        shelf: &*scene.store,
    };
    let view = lens.session(scene.number("one")).expect("it is there");
    let label = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    assert_eq!(view.labels, [label("seat", "4"), label("team", "blue")]);
    let engine = view.holder.and_then(|h| h.engine);
    assert_eq!(engine.as_deref(), Some("codex"));
    let entry = scene.entries().pop().expect("a frame");
    let Event::Registered(given) = &entry.events[0] else {
        panic!("the grant comes first");
    };
    let said = |t: TextId| String::from_utf8_lossy(entry.texts.get(t)).into_owned();
    let given: Vec<_> = given
        .labels
        .iter()
        .map(|(k, v)| label(&said(*k), &said(*v)))
        .collect();
    assert_eq!(given, [label("team", "blue")]);
}

/// NOT-7: the live session that was branched finds who did it, and where, at its next contact; a retired one is told
/// nothing.
#[test]
fn the_source_of_a_branch_is_told() {
    let scene = scene();
    scene.play("branch api one \n retire api@1 \n branch api two");
    scene.check("inbox api => e1 notice cancelled@1 session-retired branched");
    let state = scene.state();
    let lens = Lens {
        state: &state,
        host: scene.store.host(),
        shelf: &*scene.store,
    };
    let view = lens
        .envelope(EnvelopeNo(1))
        .expect("it reads")
        .expect("it is there");
    assert_eq!(
        view.body.as_deref().map(String::from_utf8_lossy).as_deref(),
        Some(
            "tester branched one from api, behind the record at position 4. What api has and does stays its own; \
             acknowledging this notice is all it asks for."
        )
    );
    assert_eq!(view.from.as_deref(), Some("one"));
}

/// BRN-18: nothing of a branch depends on its source living: retired or registered anew, its records are read.
#[test]
fn a_branch_outlives_its_source() {
    let scene = scene();
    scene.play("branch api one \n retire api@1 \n register api \n record z as=api@2");
    scene.check(
        "history one => api:a@2 api:b@3 api:c@4
         history api => a@2 b@3 c@4 z@8
         branch api two at=3 => two@1 from api at 3",
    );
}

/// BRN-21, A01: a session that is held is not resumed, and the refusal offers the branch.
#[test]
fn a_held_session_offers_the_branch() {
    let scene = scene();
    let refusal = scene.refusal("adopt api");
    assert_eq!(refusal.code, Code::Held);
    let offered = refusal
        .next
        .iter()
        .any(|n| n.command == "tenure branch api NEW-NAME");
    assert!(offered, "{:?}", refusal.next);
    scene.check("branch api new => new@1 from api at 4 \n record x as=new@1 => record 4");
}

/// BRN-15: what is inherited keeps position, time, actor, kind and bytes.
#[test]
fn inherited_records_are_the_source_s_own() {
    let scene = scene();
    scene.play("branch api one");
    let state = scene.state();
    let read = |name: &str| {
        let mut records = Vec::new();
        let span = tenure_projection::history::Span {
            session: state.find(name.as_bytes()).expect("it is there"),
            until: state.at.position,
            hidden: false,
        };
        let each = |passage| {
            records.push(passage);
            Ok(true)
        };
        scene
            .store
            .history(&state, span, each)
            .expect("the log reads");
        records
    };
    assert_eq!(read("api"), read("one"));
    assert_eq!(read("api").len(), 3);
}

/// BRN-3, A17: of many that branch to one name at once exactly one wins; the others are told and leave nothing.
#[test]
fn of_many_that_branch_to_one_name_one_wins() {
    let scene = scene();
    for round in 0..10 {
        let frames = scene.frames();
        let line = format!("branch api new{round}");
        let (scene, line) = (&scene, &line);
        let answers: Vec<String> = std::thread::scope(|threads| {
            let run = || threads.spawn(move || scene.run_on(&scene.another(), line));
            let runs: Vec<_> = (0..16).map(|_| run()).collect();
            runs.into_iter()
                .map(|r| r.join().expect("it ends"))
                .collect()
        });
        let won = answers
            .iter()
            .filter(|a| a.ends_with(" from api at 4"))
            .count();
        let lost = answers
            .iter()
            .filter(|a| a.starts_with("name-taken: "))
            .count();
        assert_eq!((won, lost), (1, 15), "{answers:?}");
        let state = scene.state();
        let named = state
            .sessions
            .iter()
            .filter(|s| state.pool.string(s.name) == format!("new{round}"));
        assert_eq!(named.count(), 1);
        let kinds: Vec<_> = scene.entries()[frames as usize..]
            .iter()
            .flat_map(|e| e.events.iter().map(Event::word))
            .filter(|word| *word != "refused" && *word != "refusals-counted")
            .collect();
        assert_eq!(kinds, ["registered", "branched"]);
    }
}

/// DIS-17: the same branch under the same key is granted once; another point under the key is refused.
#[test]
fn a_keyed_branch_is_granted_once() {
    let scene = scene();
    scene.check(
        "branch api one key=k      => one@1 from api at 4
         record d as=api@1         => record 4
         branch api one key=k      => one@1 from api at 4 again
         branch api one at=3 key=k => key-reused: ..
         branch api two key=k      => key-reused: ..
         revert 3 as=api@1 key=r   => done
         revert 3 as=api@1 key=r   => done again
         revert 2 as=api@1 key=r   => key-reused: ..
         rename api new as=api@1 key=n => done
         rename api new as=api@1 key=n => done again
         rename api old as=api@1 key=n => key-reused: ..
         branch api kin in-tree as=api@1 key=t => kin@1 from ..
         branch api one in-tree key=t  => key-reused: ..",
    );
}

/// BRN-17 as `design/model.md` decides it: a branch is the root of a tree of its own, whatever its source is in; asked to,
/// it stays in the tree of its source, and needs a token of that tree then. BRN-20: without it, or with one that lapsed,
/// nothing is written.
#[test]
fn a_branch_is_a_root_or_stays_in_its_tree_when_asked_to() {
    let scene = scene();
    scene.play(
        "register kid parent=api@1 \n record k as=kid@1 \n register web \n record w as=web@1",
    );
    scene.check(
        "branch kid free                  => free@1 from kid at 6
         branch kid near in-tree as=api@1 => near@1 from kid at 6
         branch api also in-tree as=kid@1 => also@1 from api at 4
         branch web new in-tree as=api@1  => held: web is not in the tree of api
         branch api new in-tree           => missing-token: ..
         branch api new in-tree as=api@9  => never-issued: ..
         branch api web in-tree as=api@1  => name-taken: ..
         branch kid new in-tree at=4 as=api@1 => bad-position: ..
         history near                     => kid:k@6
         history also                     => api:a@2 api:b@3 api:c@4
         record n as=near@1               => record 2
         release api as=api@1             => done
         record n as=near@1               => stale-generation: ..
         record f as=free@1               => record 2
         branch kid new in-tree as=kid@1  => stale-generation: ..
         session new                      => absent",
    );
    let root = |name: &str| {
        let session = scene.session(name);
        (
            scene.state().name(session.root),
            session.parent.map(|p| scene.state().name(p)),
        )
    };
    assert_eq!(root("free"), ("free".into(), None));
    assert_eq!(root("near"), ("api".into(), Some("api".into())));
    assert_eq!(root("also"), ("api".into(), Some("kid".into())));
}

/// DIS-12: what was branched elsewhere is readable here and attached to nothing; what it had open is interrupted.
#[test]
fn what_was_imported_is_attached_to_nothing() {
    let scene = scene();
    scene.play("register new \n record a as=new@1 opens=call:1");
    scene.check(
        "import api as=new@2            => never-issued: ..
         import there origin=api as=new@1 => done
         record b as=new@1 closes=call:1 => not-pending: ..
         branch new one                 => one@1 from new at 6",
    );
    let (state, new) = (scene.state(), scene.session("new"));
    let note = new.history.imported.expect("it says so");
    let named = (
        state.pool.string(note.from),
        note.parent.map(|p| state.pool.string(p)),
    );
    assert_eq!(named, ("there".into(), Some("api".into())));
    assert_eq!((new.history.origin, new.parent), (None, None));
}
