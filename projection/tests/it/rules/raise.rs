//! A new life of the log: after a restore or a copy no older token is current (E19).

use std::sync::Arc;

use tenure_core::command::Settlement;
use tenure_core::decide::Decision;
use tenure_core::event::{Fence, HomeAccepted};
use tenure_core::generation::Generation;
use tenure_core::id::Position;
use tenure_core::text::TextId;
use tenure_log::journal::{Deadline, Journal};
use tenure_projection::authority::{Authority, When};
use tenure_projection::entry;
use tenure_projection::projector::Projector;
use tenure_projection::store::{OpenOptions, Store, settle};

use crate::scene::forge::empty_request;
use crate::scene::line::{Words, call};
use crate::scene::{Scene, Stage};

/// A scene whose every line may say `I` for the incarnation.
struct Raised {
    scene: Scene,
    incarnation: u64,
}

impl Raised {
    fn after(lines: &str) -> Self {
        let scene = Scene::new();
        scene.play(lines);
        let incarnation = scene.raise(Settlement::Restored);
        assert!(incarnation > 1);
        Self { scene, incarnation }
    }

    fn check(&self, lines: &str) {
        let incarnation = format!("@{}.", self.incarnation);
        self.scene.check(&lines.replace("@I.", &incarnation));
    }
}

/// E19, REG-12: after a raise every older token is stale, the number in hand was granted to nobody, and the next
/// grant is the next number of the new life. Nobody holds anything, so nobody has to be forced.
#[test]
fn a_raise_leaves_every_session_at_its_number_without_a_holder() {
    let raised = Raised::after("register api \n adopt api as=api@1 \n register web");
    raised.check(
        "session api             => active@I.2 open=0 inbox=0
         note late as=api@2      => stale-generation: api@2 was superseded; api@I.2 is current
         note late as=api@1      => stale-generation: ..
         note late as=api@7      => stale-generation: api@7 was superseded; api@I.2 is current
         note early as=api@I.2   => never-issued: ..
         note early as=api@I.3   => never-issued: ..
         adopt api as=api@2      => stale-generation: ..
         retire api@I.2          => never-issued: ..
         adopt api               => api@I.3
         note fine as=api@I.3    => done
         note late as=api@3      => stale-generation: ..
         register new            => new@I.1
         note fine as=new@I.1    => done
         note late as=new@1      => stale-generation: ..
         register web            => already-active: web is active as web@I.1; only adopt takes over
         adopt web               => web@I.2
         findings                =>",
    );
    assert_eq!(raised.scene.session("api").formers, []);
    raised.scene.stage.passes(1);
    let again = raised.scene.raise(Settlement::Copied);
    assert!(again > raised.incarnation);
    let generation = raised.scene.session("api").generation;
    assert_eq!(
        generation,
        Generation {
            incarnation: again,
            number: 3
        }
    );
}

/// E19: a client that knows more than the log does is told that its number was never granted.
#[test]
fn a_number_ahead_of_the_log_was_never_issued() {
    let scene = Scene::new();
    scene.play("register api");
    let refusal = scene.refusal("note x as=api@7");
    assert_eq!(
        refusal.message,
        "api@7 was never granted; api@1 is the newest"
    );
    let hint = "shows the current token; a number ahead of the log may mean that an older copy was put back";
    assert!(refusal.next.iter().any(|n| n.effect == hint));
    // A number that the lost end had granted is never accepted from its old holder: the lives differ.
    let raised = Raised::after("register api");
    raised.check("adopt api => api@I.2 \n note late as=api@2 => stale-generation: ..");
}

/// BND-3: unfinished work and mail wait for whoever adopts, and go on.
#[test]
fn work_and_mail_wait_for_an_adopter() {
    let raised = Raised::after(
        "register api \n dispatch one api \n dispatch two api \n accept d1 as=api@1
         send api hello \n deliver e3 as=api@1",
    );
    raised.check(
        "work                    => d1 accepted api@I.1; d2 queued api@I.1
         inbox api               => e1 work pending@I.1; e2 work pending@I.1; e3 message delivered@I.1
         report d1 done as=api@1 => stale-generation: ..
         dispatch one api        => duplicate-item: ..
         dispatch tre api        => d3 e4
         dispatch for api@I.1    => never-issued: ..
         send api waits          => e5
         adopt api               => api@I.2
         work => d1 accepted api@I.2; d2 queued api@I.2; d3 queued api@I.2
         inbox api => e1 work pending@I.2; e2 work pending@I.2; e3 message pending@I.2; e4 work pending@I.2; e5 message pending@I.2
         report d1 done as=api@I.2 => done
         accept d3 as=api@I.2      => alone
         findings                  =>",
    );
}

/// OUT-5, OUT-7: a session that was given back before the raise is registered in the new life, and what is older
/// is over there too.
#[test]
fn a_retired_session_begins_anew_in_the_new_life() {
    let raised = Raised::after(
        "register api \n send api hello \n send api answer re=e1 \n retire api@1 \n register web",
    );
    raised.check(
        "session api    => retired@I.1 open=0 inbox=2
         retire api@1   => stale-generation: ..
         adopt api      => retired: ..
         register api   => api@I.2
         inbox api      => e1 message cancelled@I.1 fenced-generation; e2 message cancelled@I.1 fenced-generation re=e1; e3 review pending@I.2 re=e2
         findings       =>",
    );
}

/// An operator gives back a session that nobody holds, work and all; its items are free.
#[test]
fn a_session_that_nobody_holds_is_retired_by_force() {
    let raised =
        Raised::after("register api \n register web \n dispatch one api \n accept d1 as=api@1");
    raised.check(
        "retire api                 => missing-token: ..
         retire api force=gone idle => open-obligations: ..
         retire api force=gone      => done
         session api                => retired@I.1 open=0 inbox=0
         dispatch one web           => d2 e2
         register api               => api@I.2
         findings                   =>",
    );
}

/// BND-5: who held what, across the raise.
#[test]
fn authority_ends_at_a_raise() {
    let raised = Raised::after("register api \n dispatch one api \n accept d1 as=api@1");
    raised.check("adopt api => api@I.2");
    let mut authority = Authority::new();
    Projector::new()
        .read(&raised.scene.store, None, &mut [&mut authority])
        .expect("it reads");
    let held = |position| {
        let interval = authority.session_at(b"api", When::At(Position(position)));
        interval.map(|i| i.generation)
    };
    let next = Generation {
        incarnation: raised.incarnation,
        number: 2,
    };
    assert_eq!(
        [held(3), held(4), held(5)],
        [Some(Generation::first(1)), None, Some(next)]
    );
    let bound = |position| {
        let interval = authority.item_at(b"one", When::At(Position(position)));
        interval.map(|i| (i.generation.incarnation, i.holder.is_some()))
    };
    let life = raised.incarnation;
    assert_eq!(
        [bound(3), bound(4), bound(5)],
        [Some((1, true)), Some((life, false)), Some((life, true))]
    );
}

/// F2: a life that no event begins is nobody's: its frames are findings, and nothing is appended in it.
#[test]
fn a_life_that_nothing_began_is_honoured_by_nobody() {
    let scene = Scene::new();
    scene.play("register api");
    let head = Journal::head(&scene.log).expect("it reads");
    let request = empty_request(&["x"]);
    scene
        .log
        .raise(head, Deadline::NEVER, &mut |_, _| {
            let home = HomeAccepted { reason: TextId(0) };
            let decision = Decision {
                fence: Fence::NONE,
                events: vec![home.into()],
            };
            entry::draft(&request, &decision).expect("it fits")
        })
        .expect("it is appended");
    scene.check(
        "findings        => 2
         session api     => active@1 open=0 inbox=0
         note x as=api@1 => failed: the log is in incarnation ..
         finding 2       => failed: the log is in incarnation ..",
    );
    assert_eq!(scene.frames(), 2);
}

/// The same on a directory: a store that was copied is settled, and only then written again.
#[test]
fn a_copied_directory_is_settled_before_it_is_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let stage = Arc::new(Stage::of_machine(1));
    let scene = Scene::new();
    let open = |path: &std::path::Path| {
        let options = OpenOptions::new(path).create(true);
        Store::open(&options, stage.clone())
    };
    let store = open(&first).expect("made");
    scene.check_on(&store, "register api => api@1 \n send api hello => e1");
    drop(store);
    let status = std::process::Command::new("cp")
        .arg("-a")
        .args([&first, &second])
        .status();
    assert!(status.expect("cp runs").success());
    // The copy knows that it stands elsewhere.
    let refused = open(&second).map(|s| s.execute(call(&Words::parse("note x as=api@1"))));
    assert!(
        !matches!(refused, Ok(Ok(_))),
        "a copy was written without a word: {refused:?}"
    );
    let settled = settle(
        &OpenOptions::new(&second),
        stage.clone(),
        Some("tester".into()),
        Settlement::Copied,
        "a copy for tests".into(),
    );
    let at = settled.expect("it is settled").at.position;
    let store = open(&second).expect("it opens");
    let incarnation = store.view(|s| s.incarnation).expect("it reads");
    assert!(incarnation > 1);
    scene.check_on(
        &store,
        "note late as=api@1 => stale-generation: ..
         findings           =>",
    );
    scene.check_on(&store, &format!("adopt api => api@{incarnation}.2"));
    assert_eq!(at, Position(3));
    // The original lives on in its own life.
    let store = open(&first).expect("it opens");
    scene.check_on(&store, "note fine as=api@1 => done");
}
