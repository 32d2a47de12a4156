//! What a loss may have been about: sessions, work, roles, trees, mail and idempotency keys.

use std::fmt::Display;

use tenure_projection::salvage::{ItemLoss, LostKey, Report, RoleLoss, SessionLoss, TreeLoss};

use crate::context::Context;
use crate::fault::Stop;
use crate::output::{HEAD, Object, PLAIN};

use super::{LINES_MAX, more};

/// Tells a person, when anything is lost.
pub(super) fn people(ctx: &mut Context, report: &Report) -> Result<(), Stop> {
    if report.positions_lost() == 0 {
        return Ok(());
    }
    let sessions = report.sessions.iter().map(session);
    list(ctx, "sessions that may be affected", sessions)?;
    let items = report.items.iter().map(work);
    list(ctx, "work that may be affected", items)?;
    let roles = report.roles.iter().map(role);
    list(ctx, "roles that may be affected", roles)?;
    let trees = report.trees.iter().map(tree);
    list(ctx, "trees that may be affected", trees)?;
    let keys = report.keys.lost.iter().map(key);
    list(ctx, "idempotency keys that are free again", keys)?;
    if report.envelopes > 0 {
        let count = report.envelopes;
        ctx.out.say(format_args!(
            "  {count} envelopes were issued in lost frames"
        ))?;
    }
    let kept = report.keys.kept;
    if kept > 0 {
        ctx.out.say(format_args!(
            "  {kept} idempotency keys are kept; one that was given in a lost frame is free again: what is asked with it is \
             carried out once more"
        ))?;
    }
    let body_bytes = report.body_bytes_lost();
    if body_bytes > 0 {
        ctx.out.say(format_args!(
            "  {body_bytes} bytes of texts and bodies in lost frames whose headers are good"
        ))?;
    }
    Ok(())
}

fn list<L: Display>(
    ctx: &mut Context,
    heading: &str,
    lines: impl ExactSizeIterator<Item = L>,
) -> Result<(), Stop> {
    let count = lines.len();
    if count > 0 {
        ctx.out.styled(HEAD, heading)?;
    }
    for line in lines.take(LINES_MAX) {
        ctx.out.styled(PLAIN, format_args!("  {line}"))?;
    }
    more(ctx, count)
}

fn session(session: &SessionLoss) -> String {
    let name = &session.name;
    match (session.before, session.seen) {
        (None, None) => format!("{name}: registered in a lost frame, and in no other"),
        (None, Some(seen)) => format!("{name}: registered in a lost frame; {name}@{seen} is known"),
        (Some(before), Some(seen)) => {
            format!(
                "{name}: known as {name}@{before}, then {name}@{seen} was granted in a lost frame"
            )
        }
        (Some(before), None) => {
            format!("{name}: known as {name}@{before}; a lost frame may have changed that")
        }
    }
}

fn work(item: &ItemLoss) -> String {
    match (&item.item, &item.session, item.state) {
        (Some(name), Some(session), Some(state)) => {
            let (dispatch, state) = (item.dispatch, state.as_str());
            format!("{name} ({dispatch}, {session}): {state}, as far as is known")
        }
        _ => format!(
            "{}: given in a lost frame; its item is not known",
            item.dispatch
        ),
    }
}

fn role(role: &RoleLoss) -> String {
    let name = match (&role.role, &role.scope) {
        (Some(name), Some(scope)) => format!("{name}@{scope}"),
        _ => format!("{}, whose name is not known", role.number),
    };
    let holder = role.session.as_deref().unwrap_or("nobody");
    let holder = format!("held by {holder}, as far as is known");
    match (role.before, role.seen) {
        (None, _) => format!("{name}: first taken in a lost frame; {holder}"),
        (Some(_), Some(_)) => format!("{name}: changed hands in a lost frame; {holder}"),
        (Some(_), None) => format!("{name}: {holder}"),
    }
}

fn tree(tree: &TreeLoss) -> String {
    let name = &tree.name;
    match (tree.before, tree.seen) {
        (Some(before), Some(seen)) => format!(
            "{name}: known in epoch {before}, then claimed or given back in a lost frame; epoch {seen} is known"
        ),
        (None, Some(seen)) => {
            format!("{name}: its root was registered in a lost frame; epoch {seen} is known")
        }
        (Some(before), None) => {
            let standing = tree
                .standing
                .map_or("unknown", |standing| standing.as_str());
            format!("{name}: {standing} in epoch {before}, as far as is known")
        }
        (None, None) => format!("{name}: its root was registered in a lost frame"),
    }
}

fn hex(digest: [u8; 16]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key(key: &LostKey) -> String {
    let (digest, position) = (hex(key.digest), key.position);
    format!("the one with digest {digest} was given at position {position}, which is lost")
}

/// One object for each.
pub(super) fn objects(ctx: &mut Context, report: &Report) -> Result<(), Stop> {
    for loss in &report.sessions {
        let object = Object::new("salvage-session")
            .with("session", loss.name.clone())
            .with("number", loss.number.0)
            .with("before", loss.before.map(|g| g.to_string()))
            .with("seen", loss.seen.map(|g| g.to_string()))
            .with("certain", loss.is_certain())
            .with("meaning", session(loss));
        ctx.out.object(&object)?;
    }
    for item in &report.items {
        let object = Object::new("salvage-item")
            .with("dispatch", item.dispatch.to_string())
            .with("item", item.item.clone())
            .with("session", item.session.clone())
            .with("state", item.state.map(|state| state.as_str()))
            .with("certain", item.item.is_none())
            .with("meaning", work(item));
        ctx.out.object(&object)?;
    }
    for loss in &report.roles {
        let object = Object::new("salvage-role")
            .with("role", loss.role.clone())
            .with("scope", loss.scope.clone())
            .with("number", loss.number.0)
            .with("session", loss.session.clone())
            .with("before", loss.before.map(|g| g.to_string()))
            .with("seen", loss.seen.map(|g| g.to_string()))
            .with("certain", loss.is_certain())
            .with("meaning", role(loss));
        ctx.out.object(&object)?;
    }
    for loss in &report.trees {
        let object = Object::new("salvage-tree")
            .with("tree", loss.name.clone())
            .with("number", loss.root.0)
            .with("standing", loss.standing.map(|standing| standing.as_str()))
            .with("before", loss.before.map(|epoch| epoch.0))
            .with("seen", loss.seen.map(|epoch| epoch.0))
            .with("certain", loss.is_certain())
            .with("meaning", tree(loss));
        ctx.out.object(&object)?;
    }
    for loss in &report.keys.lost {
        let object = Object::new("salvage-key")
            .with("digest", hex(loss.digest))
            .with("position", loss.position.0)
            .with("certain", true)
            .with("meaning", key(loss));
        ctx.out.object(&object)?;
    }
    Ok(())
}
