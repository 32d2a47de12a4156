//! Handing work over: the table of `docs/roles.md` (DIS-14, DIS-15).

use tenure_core::holder::Answer;
use tenure_core::refusal::Code;
use tenure_projection::authority::{Authority, When};
use tenure_projection::core::id::Position;
use tenure_projection::projector::Projector;

use crate::scene::Scene;

fn three() -> Scene {
    let scene = Scene::new();
    scene.play(
        "register a pid=500 \n register b pid=501 \n register gone \n retire gone@1
         dispatch item a writes=/w body=please \n dispatch spare b",
    );
    scene
}

/// DIS-15: every row of the table, with everything before it as it should be.
#[test]
fn each_row_is_its_own_answer() {
    for (line, code) in [
        ("handoff d9 b as=a@1", Code::UnknownDispatch),
        ("handoff d2 b as=a@1", Code::NotYourEnvelope),
        ("handoff d1 b as=b@1", Code::NotYourEnvelope),
        ("handoff d1 nobody as=a@1", Code::UnknownSession),
        ("handoff d1 gone as=a@1", Code::Retired),
        ("handoff d1 b@7 as=a@1", Code::NeverIssued),
        ("handoff d1 b as=a@2", Code::NeverIssued),
        ("handoff d1 b", Code::MissingToken),
    ] {
        let scene = three();
        for accepted in [false, true] {
            if accepted {
                scene.play("accept d1 as=a@1");
            }
            let refusal = scene.refusal(line);
            assert_eq!(refusal.code, code, "{line}");
            let work = scene.run("work");
            assert!(work.ends_with("a@1; d2 queued b@1"), "{line}: {work}");
        }
    }
    let scene = three();
    scene.check(
        "adopt b as=b@1 pid=502     => b@2
         handoff d1 b@1 as=a@1      => stale-generation: ..
         handoff d1 a as=a@1        => done again
         cancel d1 force=over       => done
         handoff d1 b as=a@1        => already-terminal: ..",
    );
}

/// DIS-15: nobody is given work who is known to be dead; who may live is.
#[test]
fn work_goes_to_the_living_only() {
    let scene = three();
    scene.stage.sees(501, Answer::NoSuchProcess);
    scene.check("handoff d1 b as=a@1 => held: b is not live: its holder is provably dead");
    assert!(scene.refusal("handoff d1 b as=a@1").evidence.is_some());
    scene.stage.sees(501, Answer::Failed);
    scene.check("handoff d1 b as=a@1 => done \n work => d1 queued b@1; d2 queued b@1");
}

/// DIS-14, DIS-15, DIS-2: the item is blocked throughout, the binding changes hands at one position, and the former
/// owner has nothing left to do about it.
#[test]
fn accepted_work_changes_hands_in_one_step() {
    let scene = three();
    scene.check(
        "accept d1 as=a@1             => alone
         dispatch item b              => duplicate-item: ..
         handoff d1 b as=a@1          => done
         work                         => d1 accepted b@1; d2 queued b@1
         session a                    => active@1 open=0 inbox=0
         inbox a                      => e1 work cancelled@1 handed-over
         inbox b                      => e2 work pending@1; e3 work pending@1
         dispatch item b              => duplicate-item: ..
         report d1 done as=a@1        => not-your-envelope: d1 is for b@1
         handoff d1 b as=a@1          => not-your-envelope: ..
         accept d1 as=b@1             => alone again
         deliver e3 as=b@1            => done
         report d1 done as=b@1        => done
         inbox b                      => e2 work pending@1; e3 work acknowledged@1
         dispatch item b              => d3 e4",
    );
    let (mut projector, mut authority) = (Projector::new(), Authority::new());
    let read = projector.read(&scene.store, None, &mut [&mut authority]);
    read.expect("the log reads");
    let who = |position| {
        let held = authority.item_at(b"item", When::At(Position(position)));
        held.map(|i| projector.state().name(i.session))
    };
    let accepted = 7;
    assert_eq!(who(accepted), Some("a".into()));
    // The refused dispatch is recorded in between.
    assert_eq!(who(accepted + 1), Some("a".into()));
    assert_eq!(who(accepted + 2), Some("b".into()));
}

/// DSC-1, NOT-6: what is handed over is disclosed as if it had been accepted: both sides are told.
#[test]
fn a_hand_over_is_disclosed_to_both_sides() {
    let scene = three();
    scene.play(
        "register c \n dispatch other c writes=/w/c \n accept d3 as=c@1 \n accept d1 as=a@1
         observe busy as=a@1 wrote=/w/a",
    );
    let position = scene.frames() + 1;
    scene.check(&format!(
        "handoff d1 b as=a@1 => done
         log {position}      => handed-over joined
         told b              => a@1 at {position}; c@1 at {position}
         accept d1 as=b@1    => with a(tree,observed) c(tree,declared) again"
    ));
    let inbox = scene.run("inbox c");
    assert_eq!(inbox.matches("newcomer").count(), 2, "{inbox}");
}

/// DIS-14: nothing but an act moves work: not time, not reading, not asking.
#[test]
fn time_and_reading_hand_nothing_over() {
    let scene = three();
    scene.play("accept d1 as=a@1");
    let before = scene.run("work");
    scene.stage.passes(10_000_000);
    scene.play("ack e2 as=b@1 \n check /w as=b@1 \n note waiting as=b@1 on=d1");
    assert_eq!(scene.run("work"), before);
}

/// E02, E27: work that was handed over and carried to a new generation is the new owner's under that one only.
#[test]
fn what_was_handed_over_is_carried_with_its_new_session() {
    let scene = three();
    scene.check(
        "accept d1 as=a@1         => alone
         handoff d1 b as=a@1      => done
         adopt b as=b@1 pid=502   => b@2
         report d1 done as=b@1    => stale-generation: ..
         handoff d1 a as=b@1      => stale-generation: ..
         handoff d1 a@1 as=b@2    => done
         report d1 done as=a@1    => done",
    );
}
