//! A tree, for people.

use std::collections::BTreeMap;

use tenure_projection::core::id::Time;
use tenure_projection::views::TreeView;

use super::{HEAD, Line, PLAIN, age, holder, rfc3339};

/// A tree: how it stands, who holds it, and its sessions below the one that delegated each.
#[must_use]
pub fn tree(tree: &TreeView, now: Time) -> Vec<Line> {
    let (root, standing) = (&tree.root, tree.standing.as_str());
    let mut lines = vec![(HEAD, format!("{root}  {standing}  epoch {}", tree.epoch))];
    let held = match &tree.holder {
        Some(view) => holder(view),
        None => "nobody".to_owned(),
    };
    lines.push((PLAIN, format!("  holder     {held}")));
    let since = (rfc3339(tree.since.time), age(tree.since.time, now));
    lines.push((PLAIN, format!("  since      {} ({})", since.0, since.1)));
    let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
    for session in &tree.sessions {
        let above = session.parent.as_deref().and_then(|p| depths.get(p));
        let depth = above.map_or(0, |depth| depth + 1);
        depths.insert(&session.name, depth);
        let standing = match (session.active, session.writable) {
            (false, _) => "retired",
            (true, true) => "writable",
            (true, false) => "not adopted",
        };
        let indent = "  ".repeat(depth);
        lines.push((PLAIN, format!("  {indent}{}  {standing}", session.token)));
    }
    lines
}
