//! Roles, policies, and whom somebody was shown.

use tenure_projection::views::{PolicyView, RoleView, ToldView};

use super::{Line, holder};
use crate::clock::rfc3339;
use crate::output::PLAIN;

/// A role on one line.
#[must_use]
pub fn role(role: &RoleView) -> String {
    let number = role.role_generation;
    let named = format!("{}@{}  role generation {number}", role.role, role.scope);
    let (Some(session), Some(generation)) = (&role.session, role.generation) else {
        return format!("{named}  held by nobody");
    };
    let since = role.since.map(|s| format!(", since {}", rfc3339(s.time)));
    let by = role.holder.as_ref().map(|h| format!(" ({})", holder(h)));
    format!(
        "{named}  held by {session}@{generation}{}{}",
        by.unwrap_or_default(),
        since.unwrap_or_default()
    )
}

/// A policy on one line.
#[must_use]
pub fn policy(policy: &PolicyView) -> String {
    let shared = if policy.shared {
        ", one place on every host"
    } else {
        ""
    };
    let since = rfc3339(policy.since.time);
    format!(
        "{:<9}  {}{shared}, since {since}",
        policy.rule.as_str(),
        policy.scope
    )
}

/// Whom the holder of a session was shown.
#[must_use]
pub fn told(told: &[ToldView]) -> Vec<Line> {
    told.iter()
        .map(|t| {
            let (at, when) = (t.at.position, rfc3339(t.at.time));
            let line = format!(
                "  shown      {}@{} at {at} ({when})",
                t.session, t.generation
            );
            (PLAIN, line)
        })
        .collect()
}
