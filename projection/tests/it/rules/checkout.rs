//! What is recorded about checkouts beside the ledger: guards passed on purpose, locks removed.

use tenure_projection::views::{Field, events};

use crate::scene::Scene;

/// GIT-13: whoever passes a guard is recorded with the reason, under a stale token as under none; nothing else
/// changes, and nobody is refused.
#[test]
fn a_bypass_is_recorded_with_actor_and_reason_whatever_token_is_presented() {
    let scene = Scene::new();
    scene.play("register api \n adopt api as=api@1");
    let before = scene.session("api");
    scene.check(
        "bypass pre-commit at=/w/r as=api@1 said=web:2 reason=agreed => done
         bypass pre-commit at=/w/r as=ghost@1                        => done
         bypass pre-commit at=/w/r                                   => done
         log 3                                                       => guard-bypassed
         findings                                                    =>",
    );
    let state = scene.state();
    let frames = scene.all();
    let view = |at: usize| {
        let views = events(&tenure_projection::entry::lend(&frames[at - 1]), &state);
        views.into_iter().next().expect("one event")
    };
    let first = view(3);
    assert_eq!(first.actor, "tester");
    assert_eq!(first.session.as_deref(), Some("api"));
    assert_eq!(first.generation.map(|g| g.number), Some(1));
    let text = |text: &str| Field::Text(text.to_owned());
    assert_eq!(
        first.payload,
        [
            ("hook", text("pre-commit")),
            ("checkout", text("/w/r")),
            ("said", text("web:2")),
            ("reason", text("agreed")),
        ]
    );
    for at in [4, 5] {
        assert_eq!((view(at).session, view(at).generation), (None, None));
    }
    let after = scene.session("api");
    assert!(
        after.last_seen.position > before.last_seen.position,
        "it was a contact"
    );
    assert_eq!(after.generation, before.generation);
    scene.check("note fine as=api@2 => done");
}

/// GIT-5, AUD-3: a lock that was removed is recorded: which, whose, how old, and why.
#[test]
fn a_removed_lock_is_recorded() {
    let scene = Scene::new();
    scene.check("unlocked /w/r/.git/index.lock reason=left => done \n log 1 => lock-removed");
    let state = scene.state();
    let views = events(&tenure_projection::entry::lend(&scene.all()[0]), &state);
    let text = |text: &str| Field::Text(text.to_owned());
    assert_eq!(
        views[0].payload,
        [
            ("path", text("/w/r/.git/index.lock")),
            ("uid", Field::Number(1000)),
            ("bytes", Field::Number(7)),
            ("modified", text("5")),
            ("reason", text("left")),
        ]
    );
}
