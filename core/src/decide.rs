//! `decide`: from a state and a request to events or a refusal. Reads, and changes nothing.
//!
//! Checks run in one order, and the first that fails is the code: shape of the call (most of it before it
//! comes here), session, generation, role required, object, ownership, state of the object.

use alloc::vec::Vec;

use crate::command::{Command, Request};
use crate::event::{Event, Fence};
use crate::refusal::Refusal;
use crate::state::State;

mod adopt;
mod branch;
mod checkout;
mod fold;
#[cfg(tenure_forge)]
pub mod forge;
mod guard;
mod handoff;
mod history;
mod mail;
mod policy;
mod role;
mod seal;
mod session;
mod store;
mod tree;
mod work;

pub(crate) use fold::{Named, named};
pub use fold::{is_unproven, stands};
pub use guard::{describe, refused, refused_with, stale_repeat};

/// What a request comes to: the fence its frame carries and its events, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The fence fields.
    pub fence: Fence,
    /// The events. Empty: the command changes nothing and repeats an answer that stands already.
    pub events: Vec<Event>,
}

impl Decision {
    fn plain(events: Vec<Event>) -> Self {
        Self {
            fence: Fence::NONE,
            events,
        }
    }

    fn nothing() -> Self {
        Self::plain(Vec::new())
    }
}

/// Judges a request.
///
/// # Errors
/// The [`Refusal`], complete with who holds what and what may be done next.
pub fn decide(state: &State, request: &Request) -> Result<Decision, Refusal> {
    let ask = guard::Ask { state, request };
    if let Some(at) = request.input.key.and_then(|key| key.taken) {
        ask.refuse(guard::key_reused(ask, at))?;
    }
    if let Some(wanted) = &request.input.require {
        role::required(ask, wanted)?;
    }
    let decision = judge(ask)?;
    seal::sealed(ask, decision)
}

fn judge(ask: guard::Ask<'_>) -> Result<Decision, Refusal> {
    let state = ask.state;
    match &ask.request.input.command {
        Command::Register(c) => session::register(ask, c),
        Command::Adopt(c) => adopt::adopt(ask, c),
        Command::Retire(c) => session::retire(ask, c),
        Command::Dispatch(c) => work::dispatch(ask, c),
        Command::Accept(c) => work::accept(ask, c),
        Command::Decline(c) => work::decline(ask, c),
        Command::Report(c) => work::report(ask, c),
        Command::Cancel(c) => work::cancel(ask, c),
        Command::Fail(c) => work::fail(ask, c),
        Command::Note(c) => session::note(ask, c),
        Command::Observe(c) => session::observe(ask, c),
        Command::Send(c) => mail::send(ask, c),
        Command::Deliver(c) => mail::deliver(ask, c),
        Command::Acknowledge(c) => mail::acknowledge(ask, c),
        Command::Count(c) => Ok(store::count(state, c)),
        Command::Settle(c) => Ok(store::settle(state, c)),
        Command::AcceptFinding(c) => Ok(store::accept_finding(state, c)),
        Command::RegisterChild(c) => tree::register_child(ask, c),
        Command::Reserve(c) => tree::reserve(ask, c),
        Command::Publish(c) => tree::publish(ask, c),
        Command::Claim(c) => adopt::claim(ask, c),
        Command::AdoptTree(c) => adopt::adopt_tree(ask, c),
        Command::AdoptClaimed(c) => adopt::adopt_claimed(ask, c),
        Command::Rollback(c) => tree::rollback(ask, c),
        Command::Recover(c) => tree::recover(ask, c),
        Command::Release(c) => tree::release(ask, c),
        Command::ReleaseDead(c) => tree::release_dead(ask, c),
        Command::BypassGuard(c) => Ok(checkout::bypass_guard(ask, c)),
        Command::SetAside(c) => Ok(store::set_aside(ask, c)),
        Command::Lose(c) => Ok(store::lose(c)),
        Command::SealStore(c) => seal::seal_store(ask, c),
        Command::RemoveLock(c) => Ok(checkout::remove_lock(c)),
        Command::LapseRole(c) => role::lapse(ask, c),
        Command::Record(c) => history::record(ask, c),
        Command::TakeRole(c) => role::take(ask, c),
        Command::ReleaseRole(c) => role::release(ask, c),
        Command::CheckRole(c) => role::check(ask, c),
        Command::ClearRole(c) => role::clear(ask, c),
        Command::HandOff(c) => handoff::hand_off(ask, c),
        Command::SetPolicy(c) => policy::set(ask, c),
        Command::CheckWrite(c) => policy::check_write(ask, c),
        Command::Attend(c) => policy::attend(ask, c),
        Command::Revert(c) => branch::revert(ask, c),
        Command::Branch(c) => branch::branch(ask, c),
        Command::Rename(c) => session::rename(ask, c),
        Command::Import(c) => history::import(ask, c),
        Command::BranchInTree(c) => branch::branch_in_tree(ask, c),
    }
}
