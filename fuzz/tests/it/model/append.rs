//! The steps under the append lock: look, settle, answer a question, write, publish.

use super::branch::Branch;
use super::files::Log;
use super::protocol::Protocol;
use super::state::{At, FileId, FrameId, Handle, State, Word};

impl Protocol {
    pub fn unlock_for_another_round(&self, s: &mut State, p: usize) {
        s.locks.release_all_of(p);
        s.processes[p].again();
    }

    pub fn step_of_look(&self, s: &mut State, p: usize, at: At) {
        match at {
            At::Check => self.check(s, p),
            At::FoundSync => {
                sync_directory(s);
                self.after_look(s, p);
            }
            At::Cut => {
                self.note(Branch::TornTailCut);
                let handle = s.processes[p].opened();
                let disk_matters = self.bounds.disk_matters();
                if let Some(segment) = self.segment(s, handle.file) {
                    segment.cut(handle.caught_up(), disk_matters);
                }
                let syncs = disk_matters && self.rules.cut_is_synced;
                s.processes[p].at = if syncs { At::CutSync } else { At::Settle };
            }
            At::CutSync => {
                self.sync_file(s, p, At::Settle, At::ClosePoison);
                if s.processes[p].at == At::Settle {
                    s.zeroing = 0;
                }
            }
            At::Settle => {
                let handle = s.processes[p].opened();
                let head = handle.caught_up();
                // Whether a sync of these frames was begun and failed before its leader died is not known.
                s.target = s.target.max(head);
                self.put_place(s, p, head);
                s.processes[p].at = At::SettleSwap;
                if !self.bounds.places_race {
                    self.settle(s, p);
                }
            }
            At::SettleSwap => self.settle(s, p),
            At::SettleRaise => {
                let head = s.processes[p].opened().caught_up();
                self.raise_durable(s, head);
                s.processes[p].at = At::Decide;
            }
            _ => self.decide(s, p),
        }
    }

    fn check(&self, s: &mut State, p: usize) {
        let epoch = s.processes[p].epoch;
        if s.word.epoch != epoch {
            return self.unlock_for_another_round(s, p);
        }
        if self.rules.failed_sync_poisons && s.poison >= epoch {
            return self.leave_poisoned(s, p);
        }
        let nothing_new = s.processes[p].handle.is_some_and(|h| {
            h.head == Some(s.word.head)
                && (!s.word.in_doubt || !self.rules.in_doubt_bit)
                && (self.is_where_the_head_is(s, h.file) || !self.rules.epoch_is_compared)
        });
        if nothing_new {
            self.note(Branch::NothingNewTrusted);
            s.processes[p].at = At::Decide;
        } else {
            self.look(s, p);
        }
    }

    /// The page says so, for this epoch: a cached head in a file of an older one is not the head.
    fn is_where_the_head_is(&self, s: &State, file: FileId) -> bool {
        self.place(s).is_some_and(|place| place.file == file)
    }

    /// Reads the log: up to the head where the word is trusted, to the last good frame where it is in doubt. Both are
    /// one read here; nobody else of this epoch writes, and a writer of an older one is late wherever it writes.
    fn look(&self, s: &mut State, p: usize) {
        self.note(if s.word.in_doubt {
            Branch::ScannedInDoubt
        } else {
            Branch::CaughtUp
        });
        let log = self.log(s);
        let newest = &s.segments[log.newest];
        let (head, tip) = (log.head(), log.tip());
        let handle = match s.processes[p].handle {
            Some(known) if known.file == newest.file => Handle {
                head: Some(head),
                tip,
                ..known
            },
            _ => Handle {
                file: newest.file,
                head: Some(head),
                tip,
                opened_at: head,
                errors_seen: newest.errors,
            },
        };
        let newer_epoch =
            newest.file.epoch > s.processes[p].epoch && self.rules.segments_count_for_epoch;
        let stops = if s.poison >= newest.file.epoch {
            self.rules.short_poisoned_log_stops
        } else {
            self.rules.short_log_stops
        };
        if newer_epoch || head < s.word.head && stops {
            if !newer_epoch {
                return self.meet_damage(s, p);
            }
            s.processes[p].handle = None;
            return self.unlock_for_another_round(s, p);
        }
        s.processes[p].handle = Some(handle);
        if self.bounds.disk_matters() && self.rules.found_entry_synced && s.word.in_doubt {
            s.processes[p].at = At::FoundSync;
        } else {
            self.after_look(s, p);
        }
    }

    /// Published bytes are gone: nobody appends until somebody salvages.
    pub fn meet_damage(&self, s: &mut State, p: usize) {
        self.note(Branch::ShortLogMet);
        s.locks.release_all_of(p);
        s.processes[p].next_command();
        s.processes[p].handle = None;
    }

    fn after_look(&self, s: &mut State, p: usize) {
        let epoch = s.processes[p].epoch;
        let handle = s.processes[p].opened();
        let head = handle.caught_up();
        let segment = self
            .segment(s, handle.file)
            .expect("it was read under the same lock");
        let own = segment.opened_in >= epoch;
        let bytes_behind = segment.has_bytes_behind(head);
        let zeros_may_be_lost =
            s.word.in_doubt && self.bounds.disk_matters() && self.rules.found_zeros_synced;
        let zeroes = own && (bytes_behind || zeros_may_be_lost);
        if zeroes && self.bounds.disk_matters() && self.rules.zeros_are_marked {
            if s.zeroing == epoch {
                // Who began may have been told that its sync failed, and died before it said so.
                self.note(Branch::ZerosLeftBehind);
                s.poison = s.poison.max(epoch);
                s.processes[p].handle = None;
                return self.leave_poisoned(s, p);
            }
            s.zeroing = epoch;
        }
        s.processes[p].at = if !own && self.rules.own_segment_first {
            At::Succeed
        } else if own && bytes_behind {
            At::Cut
        } else if own && zeros_may_be_lost {
            At::CutSync
        } else if s.word
            == (Word {
                epoch,
                head,
                in_doubt: false,
            })
            && self.place(s).is_some()
        {
            At::Decide
        } else {
            At::Settle
        };
    }

    /// Publishes what was found: a dead writer's frames are in the log from now on.
    fn settle(&self, s: &mut State, p: usize) {
        let handle = s.processes[p].opened();
        let head = handle.caught_up();
        if s.word.epoch != s.processes[p].epoch {
            self.note(Branch::SettleFailed);
            s.processes[p].handle = None;
            return self.unlock_for_another_round(s, p);
        }
        if head > s.word.head && s.left.power_losses == self.bounds.budget.power_losses {
            self.note(Branch::DeadWritersFrameAdopted);
        }
        s.word = Word {
            head,
            in_doubt: false,
            ..s.word
        };
        if !s.evicted {
            let log = self.log(s);
            let already = s.published.len().min(log.frames.len());
            s.published.extend_from_slice(&log.frames[already..]);
        }
        let carried =
            std::mem::take(&mut s.processes[p].born) && self.rules.carried_count_when_settled;
        s.processes[p].at = if carried { At::SettleRaise } else { At::Decide };
    }

    fn decide(&self, s: &mut State, p: usize) {
        if std::mem::take(&mut s.processes[p].repairs) {
            s.locks.release_all_of(p);
            return self.wait_again(s, p);
        }
        if s.processes[p].asks {
            let log = self.log(s);
            return self.answer(s, p, &log);
        }
        let process = &s.processes[p];
        let handle = process.opened();
        let end = handle.caught_up() + process.batch - process.part;
        let full = end >= handle.file.first + self.bounds.segment_frames
            && handle.caught_up() >= handle.file.first;
        let late = handle.file.epoch < process.epoch && !self.rules.own_segment_first;
        s.processes[p].at = match () {
            () if late => At::Succeed,
            () if full => At::Rotate,
            () => At::Mark,
        };
    }

    pub fn refuse(&self, s: &mut State, p: usize) {
        self.note(Branch::Refused);
        s.left.refusals -= 1;
        s.locks.release_all_of(p);
        let head = s.processes[p].opened().caught_up();
        let process = &mut s.processes[p];
        process.refused = true;
        process.waits_for = head;
        process.at = At::Wait;
    }

    /// Which of the frames in question are in the log. Those that are not can be decided again.
    pub fn answer(&self, s: &mut State, p: usize, log: &Log) {
        let question = usize::from(s.processes[p].question) - 1;
        let ids = self.open_parts(s, p);
        let is_there = |i: usize, id: &FrameId| {
            log.frames
                .get(question + i)
                .is_some_and(|there| there == id || !self.rules.question_by_chain)
        };
        let found = ids
            .iter()
            .enumerate()
            .take_while(|&(i, id)| is_there(i, id))
            .count();
        for id in &ids[found..] {
            s.absent |= id.bit();
        }
        let all = found == ids.len();
        self.note(match found {
            _ if all => Branch::FoundApplied,
            0 => Branch::FoundAbsent,
            _ => Branch::FoundInPart,
        });
        let process = &mut s.processes[p];
        process.asks = false;
        process.question = 0;
        if all {
            process.waits_for = (question + ids.len()) as u8;
            process.at = At::Wait;
            s.locks.release_all_of(p);
        } else {
            process.part += found as u8;
            process.attempt += 1;
            process.at = if self.rules.question_under_lock {
                At::Decide
            } else {
                At::Idle
            };
        }
    }
}

pub fn sync_directory(s: &mut State) {
    for segment in &mut s.segments {
        segment.entry_synced = true;
    }
}
