//! Roles, policies, and whom somebody was shown.

use serde_json::{Value, json};
use tenure_projection::views::{PolicyView, RoleView, SharedView, ToldView};

use super::{Object, maybe_holder, moment, shared};

/// Kind `role`. `generation` is that of the session that holds it.
#[must_use]
pub fn role(role: &RoleView) -> Object {
    Object::new("role")
        .with("role", role.role.as_str())
        .with("scope", role.scope.as_str())
        .with("session", role.session.as_deref())
        .generation(role.generation)
        .with("role_generation", role.role_generation.number)
        .with("role_incarnation", role.role_generation.incarnation)
        .with("holder", maybe_holder(role.holder.as_ref()))
        .with("since", role.since.map(moment))
}

/// Kind `policy`.
#[must_use]
pub fn policy(policy: &PolicyView) -> Object {
    Object::new("policy")
        .with("rule", policy.rule.as_str())
        .with("scope", policy.scope.as_str())
        .with("shared", policy.shared)
        .with("since", moment(policy.since))
}

/// `shared_checkout` of any answer.
#[must_use]
pub fn shared_list(list: &[SharedView]) -> Value {
    list.iter().map(|s| shared(s).into_value()).collect()
}

/// `shown` of a session: whom its current holder was shown, and where that stands in the log.
#[must_use]
pub fn told(told: &[ToldView]) -> Value {
    let entry = |t: &ToldView| {
        json!({
            "session": t.session,
            "generation": t.generation.number,
            "incarnation": t.generation.incarnation,
            "at": moment(t.at),
        })
    };
    told.iter().map(entry).collect()
}
