//! Histories as events change them.

use alloc::vec::Vec;

use crate::event::{Branched, Imported, Recorded, Reverted};
use crate::history::{Hidden, Point};
use crate::id::{EnvelopeNo, Position, SessionNo};
use crate::state::{
    EnvelopeKind, EnvelopeRow, EnvelopeState, ImportNote, NoticeKind, OpenActivity, Origin, State,
};
use crate::zoo::planted;

use super::{Fold, mail};

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

pub(super) fn reverted(fold: Fold<'_>, state: &mut State, e: &Reverted) {
    let Some(session) = state.sessions.get_mut(e.session.index()) else {
        return;
    };
    let history = &mut session.history;
    history.reverts.push(Hidden {
        to: e.to.map_or(Position(0), |to| to.position),
        marker: fold.at.position,
    });
    history.tip = e.to;
    history.cut = e.to;
}

/// What was open elsewhere does not run here.
pub(super) fn imported(fold: Fold<'_>, state: &mut State, e: &Imported) {
    let note = ImportNote {
        from: fold.symbol(state, e.from),
        parent: e.parent.map(|p| fold.symbol(state, p)),
        hash: e.hash,
        at: fold.at,
    };
    if let Some(session) = state.sessions.get_mut(e.session.index()) {
        session.history.end_open();
        session.history.imported = Some(note);
    }
}

/// The branch begins where its source is cut, with the source's labels under its own, its cursor, and what was
/// delivered and not read; the source is told.
pub(super) fn branched(fold: Fold<'_>, state: &mut State, e: &Branched) {
    let Some(source) = state.session(e.source) else {
        return;
    };
    let (inherited, cursor) = (source.labels.clone(), source.cursor);
    let told = !source.retired;
    let unread = unread(state, e.source);
    let notice = told.then(|| notice(fold, state, e));
    let Some(branch) = state.sessions.get_mut(e.session.index()) else {
        return;
    };
    for (key, value) in inherited {
        if branch.labels.iter().all(|(known, _)| *known != key) {
            branch.labels.push((key, value));
        }
    }
    let pool = &state.pool;
    branch
        .labels
        .sort_by(|a, b| pool.get(a.0).cmp(pool.get(b.0)));
    branch.cursor = cursor;
    if planted("branch-writes-source") {
        state.sessions[e.source.index()].history.cut = None;
        return;
    }
    branch.history.tip = e.at;
    branch.history.cut = e.at;
    branch.history.origin = Some(Origin {
        source: e.source,
        at: e.at,
        taken: fold.at,
    });
    let generation = branch.generation;
    let copies = unread.into_iter().map(|row| EnvelopeRow {
        session: e.session,
        generation,
        state: EnvelopeState::Pending,
        ..row
    });
    let rows: Vec<EnvelopeRow> = notice.into_iter().chain(copies).collect();
    for (number, row) in (e.first_envelope.0..).zip(rows) {
        mail::open(state, EnvelopeNo(number), row);
    }
}

/// The messages that reached a session and were not acknowledged. Their bodies stay in the frames that sent them.
fn unread(state: &State, session: SessionNo) -> Vec<EnvelopeRow> {
    let inbox = state.session(session).map_or(&[][..], |s| &s.inbox);
    inbox
        .iter()
        .filter_map(|number| state.envelope(*number))
        .filter(|row| row.kind == EnvelopeKind::Message && row.state == EnvelopeState::Delivered)
        .collect()
}

/// What the source is told (NOT-7).
fn notice(fold: Fold<'_>, state: &State, e: &Branched) -> EnvelopeRow {
    let generation = state.session(e.source).map(|s| s.generation);
    let to = (
        e.source,
        generation.unwrap_or(EnvelopeRow::UNUSED.generation),
    );
    mail::notice(fold, to, NoticeKind::Branched, Some(e.session), None)
}
