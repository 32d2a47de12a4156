//! Histories as events change them.

use crate::event::Recorded;
use crate::history::Point;
use crate::state::{OpenActivity, State};

use super::Fold;

pub(super) fn recorded(fold: Fold<'_>, state: &mut State, e: &Recorded) {
    let opened = e.opens.map(|a| OpenActivity {
        kind: a.kind,
        id: fold.text(a.id),
        since: fold.at,
    });
    let Some(session) = state.sessions.get_mut(e.session.index()) else {
        return;
    };
    let history = &mut session.history;
    let tip = Point {
        position: fold.at.position,
        index: e.index,
        hash: e
            .before
            .with(e.index, fold.texts.get(e.kind), &fold.body(e.body)),
    };
    if let Some(closes) = e.closes {
        let id = fold.texts.get(closes.id);
        history
            .open
            .retain(|a| a.kind != closes.kind || a.id.as_bytes() != id);
    }
    history.open.extend(opened);
    history.tip = Some(tip);
    if e.depth == 0 {
        history.cut = Some(tip);
    }
}
