//! The way out of a store that refuses to write because it stands elsewhere than before.

use std::sync::Arc;

use tenure_core::command::{Command, Settlement};
use tenure_core::decide::decide;
use tenure_core::id::{Moment, Position, Time};
use tenure_log::error::Error as LogError;
use tenure_log::frame::Draft;
use tenure_log::journal::segment::SegmentLog;
use tenure_log::journal::{Deadline, TransactError};
use tenure_log::storage::disk::Disk;

use crate::call::{Call, Verb};
use crate::entry;
use crate::error::{Error, Failure};
use crate::host::Host;

use super::answer::{Answer, Done};
use super::prepare::prepare;
use super::{OpenOptions, Store};

/// Says what happened to the store in a directory: moved, copied or restored. A store that was only moved goes
/// on; one that was copied or restored begins a new incarnation, in which no older token is current.
///
/// # Errors
/// When the store cannot be opened or written.
pub fn settle(
    options: &OpenOptions,
    host: Arc<dyn Host>,
    actor: Option<String>,
    how: Settlement,
    reason: String,
) -> Result<Done, Failure> {
    let here = host.this().id.0;
    SegmentLog::accept_home(&Disk, options.dir(), &here).map_err(Error::from)?;
    let store = Store::open(options, host)?;
    let mut call = Call::new(Verb::Settle { how, reason });
    call.actor = actor;
    if how == Settlement::Moved {
        store.execute(call)
    } else {
        raise(&store, call)
    }
}

/// Raises the incarnation: its first frame says why.
fn raise(store: &Store, call: Call) -> Result<Done, Failure> {
    let order = prepare(store, call)?;
    let mut prepared = order.prepared.lock();
    let state = store.view(Clone::clone)?;
    let known = store.head()?;
    let mut fault = None;
    let journal = store.journal();
    let appended = journal.raise(known, Deadline::NEVER, &mut |tail, incarnation| {
        let mut state = state.clone();
        for frame in tail.frames {
            match entry::decode(&frame.by_ref()) {
                Ok(entry) => drop(tenure_core::apply::apply(&mut state, &entry)),
                Err(error) => fault = Some(error),
            }
        }
        if let Command::Settle(settle) = &mut prepared.request.input.command {
            settle.incarnation = incarnation.0;
        }
        let draft = decide(&state, &prepared.request)
            .map_err(|refusal| Error::Described(refusal.message))
            .and_then(|decision| entry::draft(&prepared.request, &decision));
        draft.unwrap_or_else(|error| {
            fault = Some(error);
            Draft {
                time: tenure_log::position::TimeMicros(0),
                parts: Default::default(),
            }
        })
    });
    if let Some(fault) = fault {
        return Err(Failure::Failed(fault));
    }
    let head = match appended {
        Ok(appended) => appended.head,
        Err(TransactError::Failed(source)) => return Err(LogError::into(source)),
        Err(other) => return Err(Failure::Failed(Error::Described(other.to_string()))),
    };
    journal.wait_durable(head.position, Deadline::NEVER)?;
    let at = Moment {
        position: Position(head.position.0),
        time: Time(prepared.request.time.0),
    };
    Ok(Done {
        receipt: store.proof(head),
        at,
        answer: Answer::Plain,
        repeated: false,
    })
}
