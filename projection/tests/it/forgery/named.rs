//! The four forgeries that the audit is there for, each with its position and rule.

use tenure_core::codec::v1;
use tenure_core::decide::decide;
use tenure_core::id::Position;

use super::*;
use crate::audit::{audit, decided_on, newest_request};

fn rules(scene: &Scene) -> Vec<(Position, Rule)> {
    let found = audit(scene).findings;
    found.iter().map(|f| (f.position, f.rule)).collect()
}

fn of_the_log(name: &str) -> Vec<(Position, Rule)> {
    let room = tempfile::tempdir().expect("a directory");
    let file = folder().join(format!("{name}.seg"));
    let found = audited(&opened(room.path(), &file)).findings;
    found.iter().map(|f| (f.position, f.rule)).collect()
}

/// AUD-1: a stale generation, and a report without a binding.
#[test]
fn a_stale_write_and_a_report_without_a_binding_are_named() {
    let stale = Rule::Refused(Code::StaleGeneration);
    assert_eq!(of_the_log("guard.generation-stale"), [(Position(3), stale)]);
    let unbound = Rule::Refused(Code::NoBinding);
    assert_eq!(of_the_log("work.report-1"), [(Position(3), unbound)]);
}

/// AUD-1: a doubled generation: two adopts that were both judged on what stood before either.
#[test]
fn a_doubled_generation_is_named() {
    let scene = Scene::new();
    scene.play("register api \n adopt api as=api@1");
    let adopt = newest_request(&scene);
    let before = scene.store.state_at(Position(1)).expect("it reads");
    decided_on(&scene, &before, &adopt);
    let stale = Rule::Refused(Code::StaleGeneration);
    let twice = Rule::TokenIssuedTwice;
    assert_eq!(rules(&scene), [(Position(3), stale), (Position(3), twice)]);
    // Nobody is granted anything by it.
    scene.check("findings => 3 \n session api => active@2 ..");
}

/// AUD-1: an adoption that did not happen: what was asked is a note, and what was recorded is a grant; and a write
/// under the generation that it would have given.
#[test]
fn an_adoption_that_did_not_happen_is_named() {
    let scene = Scene::new();
    scene.play("register api \n note fine as=api@1");
    let note = newest_request(&scene);
    let adopting = Scene::new();
    adopting.play("register api \n adopt api as=api@1");
    let adopt = newest_request(&adopting);
    let decision = decide(&scene.state(), &adopt).expect("a hand-over stands");
    let parts = v1::encode(&decision.fence, &note, &decision.events, || [7; 16]).expect("it fits");
    scene.forge_parts(parts.facts, parts.texts, parts.bodies);
    assert_eq!(rules(&scene), [(Position(3), Rule::OtherEvents)]);

    let never = Rule::Refused(Code::NeverIssued);
    assert_eq!(of_the_log("guard.generation-never"), [(Position(2), never)]);
}
