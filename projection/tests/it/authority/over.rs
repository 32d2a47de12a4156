//! Who had declared work over a path, asked of what is kept and of a replay.

use std::path::Path;

use proptest::prelude::*;
use tenure_core::apply::apply;
use tenure_core::id::{DispatchNo, Position};
use tenure_core::path::{Level, Scope, meet};
use tenure_core::state::{DispatchState, State};
use tenure_core::text::Symbol;
use tenure_projection::entry;
use tenure_projection::store::Store;
use tenure_projection::views::Lens;

use super::{Bare, Held, agrees, item_in, who};
use crate::scene::Scene;

/// Who has accepted work with a scope that meets the path, by session and dispatch.
fn over_in(state: &State, path: &Scope<Vec<u8>>) -> Vec<(Held, DispatchNo)> {
    let path = path.map(|p| p.as_slice());
    let mut found: Vec<_> = state
        .live
        .iter()
        .filter_map(|(number, live)| {
            let row = state.dispatch(number)?;
            let meets = |scope: &Scope<Symbol>| {
                let level = meet(&path, &scope.map(|s| state.pool.get(*s))).map(|m| m.level);
                level == Some(Level::Tree)
            };
            let accepted = row.state == DispatchState::Accepted;
            let over = accepted && live.writes.iter().any(meets);
            let held = item_in(state, &String::from_utf8_lossy(live.item.as_bytes()))?;
            over.then_some((row.session, number, held))
        })
        .collect();
    found.sort_by_key(|(session, number, _)| (*session, *number));
    let found = found.into_iter();
    found.map(|(_, number, held)| (held, number)).collect()
}

const PATHS: [&str; 5] = [
    "/w/login",
    "/w",
    "/w/docs/deep/er/est",
    "/v/style",
    "/elsewhere",
];

/// Who had declared work over paths, from what is kept, is what a replay up to there says.
pub fn over_as_replayed(
    scene: &Scene,
    brute: &State,
    again: &Store,
    at: Position,
) -> Result<(), TestCaseError> {
    for path in PATHS {
        let path = again.locate(Path::new(path)).expect("it is located");
        let over = again.held_over(&path, at).expect("the log reads");
        let mut found: Vec<_> = over
            .stretches
            .iter()
            .map(|i| {
                let holder = i.holder.map(|h| who(&over.pool, &h));
                let held = (brute.name(i.session), i.generation, holder);
                (i.session, (held, i.dispatch.expect("a binding has one")))
            })
            .collect();
        found.sort_by_key(|(session, (_, number))| (*session, *number));
        let found: Vec<_> = found.into_iter().map(|(_, held)| held).collect();
        prop_assert_eq!(found, over_in(brute, &path), "{:?} at {}", path.path, at);
        let lens = Lens {
            state: brute,
            host: &*scene.stage,
            shelf: &Bare,
        };
        let views = lens.who_path("path", &path.map(|p| p.as_slice()));
        let mut oldest = over.stretches;
        oldest.dedup_by_key(|i| i.session);
        let views: Vec<_> = views.iter().filter(|v| v.session.is_some()).collect();
        prop_assert_eq!(views.len(), oldest.len());
        for (view, stretch) in views.iter().zip(&oldest) {
            agrees(view, Some(stretch), &over.pool)?;
        }
    }
    Ok(())
}

/// AUD-1: in a log long enough for pieces of several sizes, with work that lasts through few positions and through
/// all of them, who had declared work over a path is what a replay says.
#[test]
fn declared_work_is_found_in_a_long_log() {
    let scene = Scene::new();
    scene.play(
        "register api
         register web
         register ops
         dispatch always ops writes=/w
         accept d1 as=ops@1",
    );
    let mut open = Vec::new();
    for round in 0..900_usize {
        let name = ["api", "web"][round % 2];
        scene.run(&format!(
            "dispatch i{round} {name} writes=/w/login/{}",
            round % 7
        ));
        let dispatch = round + 2;
        scene.run(&format!("accept d{dispatch} as={name}@1"));
        open.push((dispatch, name));
        // Some last long, most do not.
        if round % 5 != 0 {
            let (dispatch, name) = open.remove(open.len() / 2);
            scene.run(&format!("report d{dispatch} done as={name}@1"));
        }
        if round % 250 == 249 {
            scene.store.snapshot().expect("it is kept");
        }
    }
    let again = scene.another();
    let mut brute = State::new();
    for frame in scene.all() {
        apply(
            &mut brute,
            &entry::decode(&entry::lend(&frame)).expect("it decodes"),
        );
        if brute.at.position.0.is_multiple_of(211) {
            over_as_replayed(&scene, &brute, &again, brute.at.position).expect("the same");
        }
    }
}
