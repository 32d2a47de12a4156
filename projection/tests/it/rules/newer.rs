//! Events of a newer program: read, named, and never taken for authority.

use tenure_core::codec::v1;
use tenure_core::event::{Fence, FenceKind, OPAQUE_KIND_MIN};
use tenure_core::generation::Generation;
use tenure_core::id::{Position, SessionNo};
use tenure_log::frame::Depth;
use tenure_projection::audit::{NotJudged, Unjudged};
use tenure_projection::projector::{Finding, Projector};
use tenure_projection::views::events;

use crate::scene::Scene;
use crate::scene::forge::empty_request;

/// Appends a frame whose only event is of that kind, with a payload that no program of ours reads.
fn append_newer(scene: &Scene, fence: &Fence, kind: u16) {
    let parts = v1::encode(fence, &empty_request(&["text"]), &[], || [0; 16]).expect("it fits");
    let mut facts = parts.facts;
    // One event where there was none: its kind in bincode's form, version 1, and three bytes.
    assert_eq!(facts.pop(), Some(0));
    facts.extend_from_slice(&[1, 251]);
    facts.extend_from_slice(&kind.to_le_bytes());
    facts.extend_from_slice(&[1, 3, 7, 7, 7]);
    scene.forge_parts(facts, parts.texts, parts.bodies);
}

/// LOG-7: a kind that may decide is read past and named, grants nothing even under the fence of a grant, and nothing is
/// appended by a program that met it.
#[test]
fn a_deciding_kind_of_a_newer_program_grants_nothing_and_stops_appends() {
    let scene = Scene::new();
    scene.play("register api");
    let generation = |number| Generation {
        incarnation: 1,
        number,
    };
    let grant = Fence {
        kind: FenceKind::Grant,
        session: Some(SessionNo(0)),
        named: Some(generation(1)),
        granted: Some(generation(2)),
        ..Fence::NONE
    };
    append_newer(&scene, &grant, 999);
    let state = scene.state();
    assert_eq!(state.unknown, Some(999));
    assert_eq!(scene.session("api").generation, generation(1));
    scene.check("note text as=api@1 => failed: the log holds event kind 999..");
    scene.check("register web => failed: the log holds event kind 999..");
    assert_eq!(scene.frames(), 2);

    let mut projector = Projector::new();
    let mut shown = 0;
    let mut count = |_: &tenure_core::event::Entry, _: &tenure_core::state::State| shown += 1;
    projector
        .read(&scene.store, None, &mut [&mut count])
        .expect("it reads on");
    let position = Position(2);
    assert_eq!(
        projector.findings(),
        [Finding::Unknown {
            position,
            kind: 999
        }]
    );
    assert_eq!(shown, 1, "no projection is shown it");
    let mut kinds = Vec::new();
    let each = |frame: &tenure_log::frame::FrameRef<'_>| {
        kinds.extend(events(frame, &state).into_iter().map(|event| event.kind));
        Ok(true)
    };
    let read = scene.store.frames(position, position, Depth::Whole, each);
    read.expect("it reads");
    assert_eq!(kinds, ["unknown-999"]);
    let report = crate::audit::audit(&scene);
    let why = NotJudged::Unknown;
    let (first, last) = (position, position);
    assert_eq!(report.not_judged, [Unjudged { first, last, why }]);
}

/// LOG-7: a kind that touches no decision is read past, and stops nothing.
#[test]
fn an_opaque_kind_of_a_newer_program_stops_nothing() {
    let scene = Scene::new();
    scene.play("register api");
    append_newer(&scene, &Fence::NONE, OPAQUE_KIND_MIN);
    assert_eq!(scene.state().unknown, None);
    scene.check("note text as=api@1 => done");
    assert_eq!(scene.frames(), 3);
}
