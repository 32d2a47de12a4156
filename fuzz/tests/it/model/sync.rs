//! The steps outside the append lock: the sync leader, its followers, the answer, and the raise of the epoch.

use super::branch::Branch;
use super::protocol::{Protocol, leads};
use super::state::{At, FileId, FrameId, Handle, Place, State, Word};

impl Protocol {
    pub fn begin_raise(&self, s: &mut State, p: usize) {
        if self.bounds.disk_matters() {
            s.processes[p].at = At::RaiseCreate;
            return;
        }
        s.locks.make(s.processes[p].epoch + 1);
        s.locks.greatest_synced = s.locks.greatest;
        self.swap_epoch(s, p);
    }

    /// The lock file was removed. Made again it would be another one, which excludes nobody who has the first.
    pub fn miss_lock(&self, s: &mut State, p: usize) {
        self.note(Branch::LockMissed);
        if self.rules.removed_lock_ends_epoch {
            self.begin_raise(s, p);
        } else {
            s.processes[p].at = At::Check;
        }
    }

    pub fn step_of_raise(&self, s: &mut State, p: usize, at: At) {
        let next = s.processes[p].epoch + 1;
        match at {
            At::RaiseCreate => {
                s.locks.make(next);
                s.processes[p].at = if self.rules.lock_entry_synced {
                    At::RaiseSync
                } else {
                    At::RaiseSwap
                };
            }
            At::RaiseSync => {
                s.locks.greatest_synced = s.locks.greatest;
                s.processes[p].at = At::RaiseSwap;
            }
            _ => self.swap_epoch(s, p),
        }
    }

    fn swap_epoch(&self, s: &mut State, p: usize) {
        let epoch = s.processes[p].epoch;
        if s.word.epoch == epoch && s.left.raises > 0 {
            self.note(Branch::EpochRaised);
            s.left.raises -= 1;
            s.word = Word {
                epoch: epoch + 1,
                in_doubt: true,
                ..s.word
            };
        }
        s.processes[p].again();
    }

    /// The holder of a poisoned epoch writes nothing and raises. Where the bounds allow no raise, it gives up.
    pub fn leave_poisoned(&self, s: &mut State, p: usize) {
        self.note(Branch::PoisonMet);
        s.locks.release_all_of(p);
        if s.left.raises > 0 {
            self.begin_raise(s, p);
        } else {
            s.processes[p].next_command();
        }
    }

    /// Where the page says that the published head stands.
    pub fn place(&self, s: &State) -> Option<Place> {
        let is_of_word = |place: &&Place| {
            place.head == s.word.head
                && (place.file.epoch == s.word.epoch || !self.rules.place_epoch_is_compared)
        };
        s.places.iter().rfind(is_of_word).copied()
    }

    pub fn lead(&self, s: &mut State, p: usize) {
        if s.processes.iter().any(leads) {
            self.note(Branch::TwoLeaders);
        }
        if s.processes.iter().any(|q| leads(q) && q.stopped) {
            self.note(Branch::LeaderOvertaken);
        }
        let place = self.place(s).expect("it leads where there is a place");
        s.processes[p].target = place.head;
        let known = if self.bounds.leads_by_another {
            s.processes[p].led
        } else {
            s.processes[p].handle
        };
        if known.is_none_or(|handle| handle.file != place.file || handle.opened_at == u8::MAX) {
            self.open_to_lead(s, p, place.file);
        }
        s.processes[p].at = At::SyncBegin;
    }

    /// Without the lock, a frame may be on its way: then everything may be older than the descriptor.
    fn open_to_lead(&self, s: &mut State, p: usize, file: FileId) {
        self.note(Branch::OpenedToLead);
        let errors_seen = self.segment(s, file).map_or(0, |segment| segment.errors);
        let in_doubt = s.word.in_doubt && self.rules.opened_in_doubt_is_younger_than_nothing;
        let opened_at = if in_doubt { u8::MAX } else { s.word.head };
        let opened = Some(Handle {
            file,
            head: None,
            tip: FrameId::NONE,
            opened_at,
            errors_seen,
        });
        if self.bounds.leads_by_another {
            s.processes[p].led = opened;
        } else {
            s.processes[p].handle = opened;
        }
    }

    pub fn step_of_sync(&self, s: &mut State, p: usize, at: At) {
        match at {
            At::Wait => self.acknowledge(s, p),
            At::SyncBegin => {
                if s.durable >= s.processes[p].target {
                    return self.wait_again(s, p);
                }
                let verified = !self.bounds.disk_matters() || self.write_again(s, p);
                s.processes[p].at = if verified {
                    At::SyncTarget
                } else {
                    At::SyncPoison
                };
            }
            At::SyncTarget => {
                let target = s.processes[p].target;
                s.target = s.target.max(target);
                if !self.rules.durable_after_success {
                    self.raise_durable(s, target);
                }
                s.processes[p].at = if self.bounds.disk_matters() {
                    At::Sync
                } else {
                    At::SyncRaise
                };
            }
            At::Sync => self.sync_file(s, p, At::SyncRaise, At::SyncPoison),
            At::SyncRaise if s.shut_down && self.rules.sync_is_probed => {
                self.note(Branch::ProbeFailed);
                s.processes[p].at = At::SyncPoison;
            }
            At::SyncRaise => {
                let target = s.processes[p].target;
                self.raise_durable(s, target);
                self.wait_again(s, p);
            }
            _ => {
                self.note(Branch::Poisoned);
                s.poison = s.poison.max(self.syncs_by(s, p).file.epoch);
                self.wait_again(s, p);
            }
        }
    }

    /// A writer that was overtaken wrote its place over the head's, or the epoch was raised and nobody settled it.
    pub fn repair(&self, s: &mut State, p: usize) {
        self.note(Branch::PlaceRepaired);
        s.processes[p].repairs = true;
        s.processes[p].again();
    }

    pub fn wait_again(&self, s: &mut State, p: usize) {
        s.processes[p].target = 0;
        s.processes[p].at = At::Wait;
    }

    /// Writes again what an earlier failed sync may have lost without telling this descriptor: everything above the
    /// durable position where a target was left behind, and whatever is older than the descriptor. False where a read
    /// does not give it back.
    pub fn write_again(&self, s: &mut State, p: usize) -> bool {
        let (target, durable, handle) = (s.processes[p].target, s.durable, self.syncs_by(s, p));
        let left_behind = self.rules.target_is_left_behind && s.target > durable;
        let older = self.rules.older_frames_written_again && handle.opened_at > durable;
        if !(left_behind || older) {
            return true;
        }
        self.note(Branch::WrittenAgain);
        let up_to = if left_behind {
            target
        } else {
            handle.opened_at.min(target)
        };
        let verified = self
            .segment(s, handle.file)
            .is_none_or(|segment| segment.write_again(durable, up_to));
        if !verified {
            self.note(Branch::NotThereToWriteAgain);
        }
        verified || !self.rules.written_again_is_verified
    }

    /// A sync tells of a failure that this descriptor was not told of before, even when another one met it first.
    pub fn sync_file(&self, s: &mut State, p: usize, succeeded: At, failed: At) {
        let handle = self.syncs_by(s, p);
        let Some(segment) = self.segment(s, handle.file) else {
            s.processes[p].at = succeeded;
            return;
        };
        let errors = segment.errors;
        segment.sync();
        if errors > handle.errors_seen {
            self.note(Branch::SyncFailedForAnother);
            self.met_failure(s, p, errors, failed);
        } else {
            s.processes[p].at = succeeded;
        }
    }

    pub fn sync_fails(&self, s: &mut State, p: usize) {
        s.left.failed_syncs -= 1;
        self.lose_file(s, p);
        let file = self.syncs_by(s, p).file;
        let errors = self.segment(s, file).map_or(0, |segment| {
            segment.errors += 1;
            segment.errors
        });
        let failed = if s.processes[p].at == At::Sync {
            At::SyncPoison
        } else {
            At::ClosePoison
        };
        self.met_failure(s, p, errors, failed);
    }

    fn met_failure(&self, s: &mut State, p: usize, errors: u8, failed: At) {
        let process = &mut s.processes[p];
        if let Some(handle) = process.syncs_by() {
            handle.errors_seen = errors;
        }
        process.at = match failed {
            _ if self.rules.failed_sync_poisons => failed,
            At::SyncPoison => At::SyncBegin,
            _ => At::CloseBegin,
        };
    }

    pub fn shut_down(&self, s: &mut State, p: usize) {
        s.left.shutdowns -= 1;
        s.shut_down = true;
        self.lose_file(s, p);
        s.processes[p].at = if s.processes[p].at == At::Sync {
            At::SyncRaise
        } else {
            At::CloseRaise
        };
    }

    fn syncs_by(&self, s: &mut State, p: usize) -> Handle {
        let handle = *s.processes[p].syncs_by();
        handle.expect("whoever syncs has the file open")
    }

    fn lose_file(&self, s: &mut State, p: usize) {
        let file = self.syncs_by(s, p).file;
        if let Some(segment) = self.segment(s, file) {
            segment.lose();
        }
    }

    fn acknowledge(&self, s: &mut State, p: usize) {
        let process = &s.processes[p];
        if process.refused {
            s.confirmed = s.confirmed.max(process.waits_for);
        } else {
            self.note(Branch::Acknowledged);
            if process
                .handle
                .is_some_and(|handle| handle.file.epoch < s.word.epoch)
            {
                self.note(Branch::AcknowledgedUnderNewerEpoch);
            }
            for part in 0..process.batch {
                s.acknowledged |= self.written(s, p, part).bit();
            }
        }
        s.processes[p].next_command();
    }
}
