//! What happens behind the lock: waiting until an answer depends on nothing that a crash could take back,
//! counting repeated refusals, repeating recorded answers.

use tenure_core::command::{Count, Request};
use tenure_core::decide::decide;
use tenure_core::id::{Position, RefusalNo};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::state::State;
use tenure_log::journal::CounterTag;

use crate::error::{Error, Failure, Trace};

use super::answer::{Done, answer};
use super::group::{self, Verdict};
use super::keys::Prior;
use super::prepare::Prepared;
use super::{Store, snapshot};

/// Waits for durability and gives the answer.
pub(super) fn settle(
    store: &Store,
    prepared: &Prepared,
    verdict: Verdict,
) -> Result<Done, Failure> {
    let journal = store.journal();
    let verdict = match verdict {
        Verdict::Again { prior, judged } => {
            journal.wait_durable(tenure_log::position::Position(judged.0), prepared.deadline)?;
            again(store, &prepared.request, prior)?
        }
        verdict => verdict,
    };
    let durable = |position: Position| {
        journal.wait_durable(
            tenure_log::position::Position(position.0),
            prepared.deadline,
        )
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
                answer,
                repeated,
            })
        }
        Verdict::Refused { refusal, judged } => {
            durable(judged)?;
            count(store, prepared, &refusal);
            Err(Failure::Refused(refusal))
        }
        Verdict::Again { .. } => unreachable!("resolved above"),
        Verdict::Unknown { trace, cause } => Err(Failure::Unknown { trace, cause }),
        Verdict::Failed(error) => Err(Failure::Failed(error)),
    }
}

/// Counts a refusal in the shared counters, and logs the count at 10, 100, 1000, ... Statistics: whatever
/// fails here changes no answer.
fn count(store: &Store, prepared: &Prepared, refusal: &Refusal) {
    let live = store.live.read();
    let key = &refusal.key;
    let number = live
        .state
        .refusal_record(key)
        .or_else(|| shared_record(&live.state));
    let Some((number, recorded)) = number.and_then(|n| Some((n, live.state.refusal(n)?.count)))
    else {
        return;
    };
    drop(live);
    let counters = store.journal().counters();
    let tag = CounterTag(number.0);
    if counters.get(tag) == 0 && recorded > 1 {
        // The counter is new, or was lost with the control page: go on from what the log says.
        counters.add(tag, recorded - 1);
    }
    let Some(total) = counters.add(tag, 1) else {
        return;
    };
    if total >= 10 && total.to_string().trim_end_matches('0') == "1" {
        let mut request = prepared.request.clone();
        request.input.command = Count {
            refusal: number,
            count: total,
        }
        .into();
        request.input.presented = None;
        request.input.force = None;
        request.input.evidence = None;
        request.input.key = None;
        request.bodies = tenure_core::text::Bodies::default();
        let counted = Prepared {
            request,
            key: None,
            deadline: prepared.deadline,
        };
        // Nobody's answer depends on it.
        drop(group::submit(store, counted).wait());
    }
}

fn shared_record(state: &State) -> Option<RefusalNo> {
    let key = tenure_core::state::RefusalKey {
        session: None,
        presented: None,
        command: 0,
        subject: b"other".to_vec(),
    };
    state.refusal_record(&key)
}

/// The same key again: the first answer for the same call, a refusal for another one, and for a repeat whose
/// token or grant is no longer current, a refusal that says where it stands (E13, E15).
fn again(store: &Store, request: &Request, prior: Prior) -> Result<Verdict, Error> {
    let (entry, after) = store.entry_at(prior.position)?;
    let live = store.live.read();
    let judged = live.state.at.position;
    let key = request.input.key.map_or([0; 16], |k| k.payload);
    if key != prior.payload {
        return Ok(refused(&live.state, request, prior, Code::KeyReused));
    }
    let stale = match (
        &request.input.presented,
        entry.fence.session,
        entry.fence.granted,
    ) {
        (_, Some(session), Some(granted)) => live.state.check(session, granted).is_err(),
        (Some(presented), _, _) => live
            .state
            .find(request.texts.get(presented.name))
            .is_none_or(|s| live.state.check(s, presented.generation).is_err()),
        (None, _, _) => false,
    };
    if stale {
        return Ok(refused(&live.state, request, prior, Code::StaleGeneration));
    }
    let answer = answer(&after, &entry.events);
    Ok(Verdict::Done {
        receipt: None,
        at: entry.at,
        answer,
        repeated: true,
        judged,
    })
}

/// The refusal of a repeat. A stale one borrows the words of an ordinary stale write.
fn refused(state: &State, request: &Request, prior: Prior, code: Code) -> Verdict {
    let mut refusal = match decide(state, request) {
        Err(refusal) if refusal.code == Code::StaleGeneration => refusal,
        _ => tenure_core::decide::repeated(state, request, code),
    };
    refusal.code = code;
    if code == Code::KeyReused {
        refusal.message = format!(
            "the key was used for another command, at position {}",
            prior.position
        );
    }
    refusal.recorded_at = Some(prior.position);
    Verdict::Refused {
        refusal: Box::new(refusal),
        judged: state.at.position,
    }
}

impl Store {
    /// Writes a snapshot when the tail has grown long. A snapshot is never truth: a failure to write one is
    /// no failure of the call.
    fn snapshot_if_due(&self) {
        let live = self.live.read();
        if live.tainted || !snapshot::is_due(live.since_snapshot, live.snapshot_bytes) {
            return;
        }
        let (state, head) = (live.state.clone(), live.head);
        drop(live);
        let durable = self.journal().durable().is_ok_and(|d| d >= head.position);
        if !durable {
            return;
        }
        if let Ok(bytes) = snapshot::save(self.journal(), &state, head) {
            let mut live = self.live.write();
            live.snapshot_bytes = bytes;
            live.since_snapshot = live.head.position.0 - head.position.0;
        }
    }
}
