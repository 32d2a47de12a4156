//! Waiting until a position is durable: one process leads a sync for everybody, the others sleep.

use parking_lot::Mutex;
use std::time::Duration;

use super::site::Site;
use super::sync::{Leader, Led};
use crate::control::{Control, Signal};
use crate::error::Error;
use crate::journal::Deadline;
use crate::lock::{Kind, Patience};
use crate::position::Position;

/// The longest sleep before the sync lock is asked for again.
const NAP: Duration = Duration::from_millis(5);

/// The part of this process in group syncs.
#[derive(Debug, Default)]
pub struct Group {
    /// The turns that threads of this process lead: a lock file that is open once excludes no threads.
    leading: Mutex<Vec<u64>>,
    leader: Leader,
}

impl Group {
    /// Waits until everything up to `position` is durable; leads where nobody does. False when the
    /// head has to be settled first, in a raised epoch or on a control page that was built anew.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when a sync failed; [`Error::Busy`] at the deadline; [`Error::BeyondHead`]
    /// when no such position was published.
    pub fn wait(&self, site: &Site, position: Position, deadline: Deadline) -> Result<bool, Error> {
        let mut patience = Patience::new(&*site.storage, deadline, site.tuning.sync_wait);
        let mut last = None;
        let mut control = site.control();
        loop {
            let seen = [Signal::SyncedEven, Signal::SyncedOdd].map(|signal| control.seen(signal));
            let durable = control.durable();
            if durable >= position {
                return Ok(true);
            }
            let word = control.word();
            if word.head < position {
                // Whoever asks has seen the position published, so doubt about less is a new page's.
                if word.in_doubt {
                    return Ok(false);
                }
                return Err(Error::BeyondHead {
                    head: word.head,
                    asked: position,
                });
            }
            match self.try_lead(site, &control)? {
                Led::Unsettled => return Ok(false),
                Led::Sync if control.durable() >= position => return Ok(true),
                Led::Sync | Led::Nothing => {}
            }
            let now = site.storage.now();
            if patience.is_over(now) {
                return Err(patience.busy(now, "whoever leads the sync".to_owned()));
            }
            let standing = (durable, control.sync_turn());
            match last {
                Some((before, since)) if before == standing => {
                    if now.saturating_duration_since(since) >= site.tuning.sync_wait {
                        control.pass_sync_turn(standing.1);
                        last = None;
                        continue;
                    }
                }
                _ => last = Some((standing, now)),
            }
            let signal = control.begun().signal_for(position);
            let seen = seen[usize::from(signal == Signal::SyncedOdd)];
            control.wait(signal, seen, deadline.bound(NAP, now));
            control = site.current_control(&mut patience)?;
        }
    }

    /// Leads if nobody does.
    fn try_lead(&self, site: &Site, control: &Control) -> Result<Led, Error> {
        let turn = control.sync_turn();
        {
            let mut leading = self.leading.lock();
            if leading.contains(&turn) {
                return Ok(Led::Nothing);
            }
            leading.push(turn);
        }
        let led = self.lead_turn(site, control, turn);
        self.leading.lock().retain(|other| *other != turn);
        if let Ok(Led::Sync) | Err(_) = led {
            // Whoever is covered goes on, and one who is not leads next.
            control.end_sync();
        }
        led
    }

    fn lead_turn(&self, site: &Site, control: &Control, turn: u64) -> Result<Led, Error> {
        let failed = |error| site.failed("lock for a sync in", crate::lock::LOCKS_FOLDER, error);
        let Some(lock) = site.locks.file(Kind::Sync, turn)? else {
            // The folder is being removed at this moment.
            return Ok(Led::Nothing);
        };
        if !lock.file.try_lock().map_err(failed)? {
            return Ok(Led::Nothing);
        }
        let led = if control.sync_turn() == turn {
            self.leader.lead(site, control)
        } else {
            Ok(Led::Nothing)
        };
        lock.file.unlock().map_err(failed)?;
        led
    }
}
