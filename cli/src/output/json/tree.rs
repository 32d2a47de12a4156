//! A tree, for programs.

use serde_json::{Value, json};
use tenure_projection::views::{SessionView, TreeView};

use super::{Object, maybe_holder, moment};

/// Kind `tree`: its sessions by name, the root first.
#[must_use]
pub fn tree(tree: &TreeView) -> Object {
    let session = |s: &SessionView| {
        json!({
            "name": s.name,
            "state": if s.active { "active" } else { "retired" },
            "token": s.token,
            "parent": s.parent,
            "writable": s.writable,
            "holder": maybe_holder(s.holder.as_ref()),
        })
    };
    Object::new("tree")
        .with("tree", tree.root.as_str())
        .with("standing", tree.standing.as_str())
        .with("epoch", tree.epoch.0)
        .with("holder", maybe_holder(tree.holder.as_ref()))
        .with("since", moment(tree.since))
        .with(
            "sessions",
            tree.sessions.iter().map(session).collect::<Value>(),
        )
}
