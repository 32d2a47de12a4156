//! Sealed stores: a token counts with its secret, and every grant gets one (`docs/sealed.md`).

use alloc::format;
use alloc::vec;

use crate::command::{Presented, SealStore};
use crate::event::{FenceKind, GrantSealed, StoreSealed};
use crate::id::{Position, SessionNo};
use crate::refusal::{Code, Refusal, Relation};

use super::Decision;
use super::guard::Ask;

/// Seals a store that nothing was written to. Repeated, it changes nothing.
pub(super) fn seal_store(ask: Ask<'_>, _: &SealStore) -> Result<Decision, Refusal> {
    if ask.state.sealed {
        return Ok(Decision::nothing());
    }
    if ask.state.at.position != Position(0) {
        ask.refuse(
            ask.refusal(Code::PositionMoved, None, "store")
                .say(format!(
                    "a store is sealed by its first event or never, and this one is at position {}",
                    ask.state.at.position
                ))
                .next("tenure init DIR --sealed".into(), "creates a sealed store"),
        )?;
    }
    Ok(Decision::plain(vec![StoreSealed {}.into()]))
}

/// A token of a sealed store is one only with the secret that its grant was made with, and one of another store is none
/// with whatever secret. Asked behind the check of its generation, so that it tells nobody what a stale token lacks.
pub(super) fn opens(ask: Ask<'_>, session: SessionNo, presented: Presented) -> Result<(), Refusal> {
    if ask.state.opens(presented.secret_matched) {
        return Ok(());
    }
    let name = ask.state.name(session);
    let generation = presented.generation;
    let message = match (ask.state.sealed, presented.secret_matched) {
        (false, _) => {
            format!("{name}@{generation} was never granted with a secret: this store is not sealed")
        }
        (true, None) => format!(
            "{name}@{generation} alone was never granted: this store is sealed, and its token ends in a secret"
        ),
        (true, Some(_)) => format!("{name}@{generation} was never granted with that secret"),
    };
    ask.refuse(
        ask.refusal(Code::NeverIssued, Some(session), &name)
            .holder(ask.state)
            .relation(Relation::NeverIssued)
            .say(message)
            .next(
                "tenure ... --as @FILE".into(),
                "presents the token in the file that its grant wrote",
            )
            .next(
                format!("tenure who {name}"),
                "says who holds it and since when",
            )
            .next(
                format!("tenure adopt {name} --force --reason TEXT"),
                "takes it back under a new secret, and fences whoever holds it now",
            ),
    )
}

/// In a sealed store an epoch gives no right: it is a number, and a claim is made with no secret.
pub(super) fn no_epochs(ask: Ask<'_>, session: SessionNo) -> Result<(), Refusal> {
    if !ask.state.sealed {
        return Ok(());
    }
    let name = ask.state.name(session);
    ask.refuse(
        ask.refusal(Code::MissingToken, Some(session), &name)
            .say("in a sealed store a tree is claimed with an adopt of one of its sessions, and never by its epoch".into())
            .next(
                format!("tenure adopt {name} --tree"),
                "claims the tree and adopts the session in one step",
            ),
    )
}

/// A grant in a sealed store carries the digest of its secret, behind everything else.
pub(super) fn sealed(ask: Ask<'_>, mut decision: Decision) -> Result<Decision, Refusal> {
    let fence = decision.fence;
    let (true, FenceKind::Grant, Some(session), Some(generation)) =
        (ask.state.sealed, fence.kind, fence.session, fence.granted)
    else {
        return Ok(decision);
    };
    let seal = ask.found(ask.request.input.seal, || {
        ask.refusal(Code::MissingToken, Some(session), &ask.state.name(session))
            .say(
                "this store is sealed, and whoever asks for a grant here chooses its secret".into(),
            )
    })?;
    let sealed = GrantSealed {
        session,
        generation,
        seal,
    };
    decision.events.push(sealed.into());
    Ok(decision)
}
