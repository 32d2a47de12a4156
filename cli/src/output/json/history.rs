//! The kinds of histories and branches.

use serde_json::Value;
use tenure_projection::core::history::{HistoryHash, Point};
use tenure_projection::core::id::{Moment, Position};
use tenure_projection::history::{ActivityView, RecordView};
use tenure_projection::log::position::Receipt;
use tenure_projection::views::{BranchView, LineageView, SessionView};

use super::{Object, grant, labels, moment, time};

/// Kind `record`: `session` is the one asked for, `origin` the one that recorded it.
#[must_use]
pub fn record(record: &RecordView, session: &str, origin: &str) -> Object {
    Object::new("record")
        .with("position", record.at.position.0)
        .with("index", record.index)
        .with("time", time(record.at))
        .with("session", session)
        .with("origin", origin)
        .generation(record.generation)
        .with("actor", record.actor.as_str())
        .with("kind", record.kind.as_str())
        .bytes("body", record.body.as_deref())
        .with("opens", record.opens.as_deref())
        .with("closes", record.closes.as_deref())
        .with("hidden", record.hidden)
}

/// Kind `revert`: a marker among the records.
#[must_use]
pub fn revert(at: Moment, session: &str, origin: &str, to: Position) -> Object {
    Object::new("revert")
        .with("position", at.position.0)
        .with("time", time(at))
        .with("session", session)
        .with("origin", origin)
        .with("to", to.0)
}

fn at(at: Option<Point>) -> (Value, Value) {
    let position = at.map_or(Value::Null, |at| at.position.0.into());
    let hash = at.map_or(Value::Null, |at| at.hash.to_string().into());
    (position, hash)
}

/// Kind `branch`: a grant, and where it comes from. A branch of an empty history has no point.
#[must_use]
pub fn branch(
    session: &SessionView,
    branch: &BranchView,
    receipt: &Receipt,
    repeated: bool,
) -> Object {
    let (position, hash) = at(branch.at);
    grant(session, receipt, repeated)
        .with("schema", "tenure.branch.v1")
        .with("source", branch.source.as_str())
        .with("at", position)
        .with("prefix_hash", hash)
}

/// Kind `lineage`: one session of a lineage.
#[must_use]
pub fn lineage(view: &LineageView) -> Object {
    let branch = view.branch.as_ref();
    let (position, hash) = at(branch.and_then(|b| b.at));
    Object::new("lineage")
        .with("session", view.session.as_str())
        .with("kinship", view.kinship.as_str())
        .with("depth", view.depth)
        .with("state", if view.active { "active" } else { "retired" })
        .with("records", view.records)
        .with("source", branch.map(|b| b.source.as_str()))
        .with("at", position)
        .with("prefix_hash", hash)
        .with("taken", branch.map(|b| moment(b.taken)))
}

/// Kind `activity`.
#[must_use]
pub fn activity(view: &ActivityView, name: &str, session: &str, origin: &str) -> Object {
    Object::new("activity")
        .with("activity", name)
        .with("session", session)
        .with("origin", origin)
        .with("state", view.state.as_str())
        .with("opened", moment(view.opened))
        .with("ended", view.ended.map(moment))
}

/// Kind `export`: the first line of one.
#[must_use]
pub fn export(session: &SessionView, hash: HistoryHash, store: &str) -> Object {
    Object::new("export")
        .with("session", session.name.as_str())
        .with("store", store)
        .with("records", session.records)
        .with("hash", hash.to_string())
        .with(
            "branch_of",
            session.branch.as_ref().map(|b| b.source.as_str()),
        )
        .with("parent", session.parent.as_deref())
        .with("labels", labels(&session.labels))
}

/// Kind `export-end`: its last line, without which it was cut off.
#[must_use]
pub fn export_end(records: u64) -> Object {
    Object::new("export-end").with("records", records)
}
