//! What happens behind the lock: waiting until an answer depends on nothing that a crash could take back,
//! counting repeated refusals, repeating recorded answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenure_core::command::{Command, Count, Origin, Request};
use tenure_core::decide::stale_repeat;
use tenure_core::event::{Entry, Event, TreeFence};
use tenure_core::generation::Lapse;
use tenure_core::id::Position;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::state::State;
use tenure_core::text::Texts;
use tenure_log::journal::{CounterTag, Deadline};

use crate::error::{Error, Failure, Trace};
use crate::zoo::planted;

use super::answer::{Done, answer};
use super::files::Files;
use super::group::{self, Verdict};
use super::judge::Kept;
use crate::authority::kept;
use crate::authority::resume::Rested;

use super::keys::Prior;
use super::prepare::Prepared;
use super::{Store, snapshot};

/// Gives the answer, once it is durable; `synced` says up to where everything is known to be.
pub(super) fn settle(
    store: &Store,
    prepared: &Prepared,
    verdict: Verdict,
    synced: Position,
) -> Result<Done, Failure> {
    let durable = |position: Position| {
        if position <= synced || planted("answered-before-durable") {
            return Ok(());
        }
        let position = tenure_log::position::Position(position.0);
        store.journal().wait_durable(position, prepared.deadline)
    };
    let verdict = match verdict {
        Verdict::Again { prior, judged } => {
            durable(judged)?;
            again(store, &prepared.request, prior)?
        }
        verdict => verdict,
    };
    match verdict {
        Verdict::Done {
            receipt,
            at,
            answer,
            repeated,
            judged,
        } => {
            let head = match receipt {
                Some(head) => head,
                None => store.frame_head(at.position)?.1,
            };
            let receipt = store.proof(head);
            durable(judged).map_err(|cause| {
                let trace = match &prepared.key {
                    Some(key) => Trace::Key(key.clone()),
                    None => Trace::Receipt(receipt),
                };
                Failure::Unknown {
                    trace,
                    cause: cause.into(),
                }
            })?;
            store.snapshot_if_due();
            Ok(Done {
                receipt,
                at,
                answer: answer
                    .without_the_dead(store.host())
                    .with_secret(prepared.secret),
                repeated,
            })
        }
        Verdict::Refused {
            refusal,
            judged,
            kept,
        } => {
            durable(judged)?;
            count(store, prepared, &refusal, kept);
            Err(Failure::Refused(refusal))
        }
        Verdict::Again { .. } => unreachable!("resolved above"),
        Verdict::Unknown { trace, cause } => Err(Failure::Unknown { trace, cause }),
        Verdict::Failed(error) => Err(Failure::Failed(error)),
    }
}

/// Counts a refusal in the shared counters, and logs the count at 10, 100, 1000, ... Statistics: whatever
/// fails here changes no answer.
fn count(store: &Store, prepared: &Prepared, refusal: &Refusal, kept: Kept) {
    let live = store.live.read();
    let number = live.state.refusal_record(&refusal.key);
    let Some((number, record)) = number.and_then(|n| Some((n, live.state.refusal(n)?))) else {
        return;
    };
    let (recorded, tag) = (record.count, CounterTag(u64::from(record.slot)));
    drop(live);
    let counters = store.journal().counters();
    let before = recorded.saturating_sub(u64::from(kept != Kept::Counted));
    if kept == Kept::Opened {
        // Another record may have used the counter before this one.
        counters.take(tag);
    } else if counters.get(tag) == 0 && before > 0 {
        // The counter was lost with the control page: go on from what the log says.
        counters.add(tag, before);
    }
    let Some(total) = counters.add(tag, 1) else {
        return;
    };
    if total >= 10 && total.to_string().trim_end_matches('0') == "1" {
        // Of the command that was refused, who asked is all that the count says: what else it named would stand in the
        // frame without being anything there.
        let asked = &prepared.request;
        let mut texts = Texts::default();
        let origin = Origin {
            actor: texts.add(asked.texts.get(asked.input.origin.actor)),
            ..asked.input.origin
        };
        let count = Count {
            refusal: number,
            count: total,
        };
        let counted = Prepared {
            encoded: None,
            request: Request::of_the_store(count.into(), origin, texts, asked.time),
            key: None,
            deadline: prepared.deadline,
            presented: None,
            secret: None,
        };
        // Nobody's answer depends on it.
        drop(group::submit(store, Arc::new(group::Order::new(counted))).wait());
    }
}

/// The same call under the same key again: the first answer or, when its token or its grant is no longer
/// current, a refusal that says where it stands (E13, E15).
fn again(store: &Store, request: &Request, prior: Prior) -> Result<Verdict, Error> {
    let entry = store.entry(prior.position)?;
    // What others were doing then shows in the state of then only. A grant that is current shows in today's.
    let then = match entry.events.last() {
        Some(Event::Accepted(_) | Event::Joined(_) | Event::Shown(_) | Event::Warned(_)) => {
            Some(store.state_at(prior.position)?)
        }
        _ => None,
    };
    let live = store.live.read();
    let judged = live.state.at.position;
    if is_stale(&live.state, request, &entry) {
        let mut refusal = stale_repeat(&live.state, request, prior.position);
        if !is_lapsed(&live.state, request, &entry) {
            refusal.code = Code::RoleStale;
            refusal.message = format!(
                "it is recorded at position {}, and the role was given up or taken away since",
                prior.position
            );
        }
        return Ok(Verdict::Refused {
            refusal: Box::new(refusal),
            judged,
            kept: Kept::Counted,
        });
    }
    let then = then.as_ref().unwrap_or(&live.state);
    let answer = answer(then, &entry.texts, &entry.events);
    Ok(Verdict::Done {
        receipt: None,
        at: entry.at,
        answer: Box::new(answer),
        repeated: true,
        judged,
    })
}

/// Whether what a recorded call stood on, or gave, is no longer current.
fn is_stale(state: &State, request: &Request, entry: &Entry) -> bool {
    let lost = |event: &Event| match event {
        Event::RoleTaken(e) => state
            .role(e.role)
            .is_none_or(|role| role.generation != e.generation || role.holding.is_none()),
        _ => false,
    };
    entry.events.iter().any(lost) || is_lapsed(state, request, entry)
}

fn is_lapsed(state: &State, request: &Request, entry: &Entry) -> bool {
    let current = match (entry.fence.session, entry.fence.granted, entry.fence.named) {
        (Some(session), Some(granted), _) => state.check(session, granted),
        (Some(session), None, Some(named)) => {
            match (&request.input.command, state.check(session, named)) {
                // What it ended is its own token: it stands until the next register.
                (Command::Retire(_), Err(Lapse::Retired)) => Ok(()),
                // And of a release, until the next claim.
                (Command::Release(_), Err(Lapse::Stale)) => at_epoch(state, entry),
                (_, checked) => checked,
            }
        }
        _ => at_epoch(state, entry),
    };
    current.is_err()
}

/// Whether the tree that an entry left at some epoch is still there.
fn at_epoch(state: &State, entry: &Entry) -> Result<(), Lapse> {
    let epoch = |tree: TreeFence| state.tree(tree.root).map(|t| t.epoch);
    match entry.fence.tree {
        Some(tree) if epoch(tree) != Some(tree.epoch) => Err(Lapse::Stale),
        _ => Ok(()),
    }
}

/// When a snapshot is not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unless {
    /// It is written in any case.
    Never,
    /// When there is one that is as good.
    Recent,
}

/// How many times as long as it may be the tail grows while another process has the turn to write a snapshot.
const WAITS_MAX: u64 = 4;

/// The turn to write a snapshot, until it is dropped; nothing where it is not waited for.
pub(super) type Turn = Option<Box<dyn Send>>;

impl Store {
    /// Has a snapshot written when the tail has grown long. A snapshot is never truth: a failure to write one is
    /// no failure of the call, and is tried again behind the next frames.
    fn snapshot_if_due(&self) {
        if !self.0.snapshot_due.load(Ordering::Relaxed) {
            return;
        }
        match &self.1 {
            Some(aside) => aside.begin(self),
            // While a thread of this process writes it, the others do not ask the system for the turn at each call.
            None if self.0.snapshotting.is_locked() => {}
            None => {
                if let Some(turn) = self.snapshot_turn() {
                    self.write_due_snapshot(turn);
                }
            }
        }
    }

    /// The turn to write a snapshot; `None` while another process writes one, which will be as good. One that stands still
    /// is waited for until the tail is several times as long as it may be.
    pub(super) fn snapshot_turn(&self) -> Option<Turn> {
        match self.journal().snapshots().alone() {
            Ok(Some(alone)) => Some(Some(alone)),
            Ok(None) => {
                let live = self.live.read();
                let waited = live.since_snapshot / WAITS_MAX;
                snapshot::is_due(waited, live.snapshot_bytes).then_some(None)
            }
            // The turn only spares work.
            Err(_) => Some(None),
        }
    }

    /// Writes a snapshot, unless none is due any more or another thread does.
    pub(super) fn write_due_snapshot(&self, _turn: Turn) {
        // While one thread writes a snapshot, the next one is due again and again: it is written once that one is.
        let Some(_writing) = self.0.snapshotting.try_lock() else {
            return;
        };
        if self.0.snapshot_due.swap(false, Ordering::Relaxed) {
            // Nobody's answer depends on it.
            drop(self.write_snapshot(Unless::Recent));
        }
    }

    /// Writes a snapshot of the newest state, and what stands beside it: keys, and who held what. The store does it by
    /// itself from time to time; a program that ends can leave the next one less to read.
    ///
    /// # Errors
    /// When it cannot be written. Nothing depends on it.
    pub fn snapshot(&self) -> Result<(), Error> {
        let _writing = self.0.snapshotting.lock();
        self.write_snapshot(Unless::Never)
    }

    /// With `snapshotting` held.
    fn write_snapshot(&self, unless: Unless) -> Result<(), Error> {
        let before = snapshot::load(&self.source)?;
        if let Some(before) = before.as_ref().filter(|_| unless == Unless::Recent) {
            let mut live = self.live.write();
            // Written by another process, which had as many frames to look at.
            let frames = live.head.position.0.saturating_sub(before.head.position.0);
            if !snapshot::is_due(frames, before.cost) {
                (live.since_snapshot, live.snapshot_bytes) = (frames, before.cost);
                return Ok(());
            }
        }
        // Appends go on while it is written: what is large is shared, not copied.
        let mut live = self.live.write();
        if live.tainted {
            return Ok(());
        }
        let (head, state) = (live.head, live.state.share());
        let noted = kept::Noted {
            settled: live.settle_along(),
            trail: live.settle_trail(),
        };
        drop(live);
        let draft = snapshot::Draft::of(&state, head)?;
        self.journal()
            .wait_durable(head.position, Deadline::NEVER)?;
        // Nothing depends on it.
        let _ = self.journal().tend();
        drop(state);
        let mut files = Files::default();
        let cost = draft.save(self.journal(), &mut files)?;
        drop(draft);
        // The snapshot serves without what stands beside it.
        let beside = kept::extend(&self.source, before, head, noted, &mut files);
        files.save(self.journal().snapshots())?;
        let rested = self.read_on_to_follow(beside?)?;
        let mut live = self.live.write();
        if let Some(rested) = rested {
            live.follow_again(rested, &*self.source);
        }
        live.forget_keys();
        live.snapshot_bytes = cost;
        live.since_snapshot = live.head.position.0.saturating_sub(head.position.0);
        let due = snapshot::is_due(live.since_snapshot, cost);
        self.0.snapshot_due.store(due, Ordering::Relaxed);
        Ok(())
    }

    /// Brings what was read for a snapshot near the head, outside of the lock, where this handle follows authority again
    /// from here on.
    fn read_on_to_follow(&self, rested: Option<Rested>) -> Result<Option<Rested>, Error> {
        let live = self.live.read();
        let (head, follows) = (live.head, live.is_to_follow());
        drop(live);
        let Some(mut rested) = rested.filter(|_| follows) else {
            return Ok(None);
        };
        rested.read_on(&*self.source, head)?;
        Ok(Some(rested))
    }
}
