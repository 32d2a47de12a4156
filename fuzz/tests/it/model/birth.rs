//! The steps that make a segment: at a rotation, and in a new epoch.

use super::append::sync_directory;
use super::branch::Branch;
use super::files::{self, Log, Segment};
use super::protocol::{Protocol, leads};
use super::state::{At, FileId, FrameId, Handle, State};

impl Protocol {
    pub fn step_of_birth(&self, s: &mut State, p: usize, at: At) {
        match at {
            At::CloseBegin => self.begin_close(s, p),
            At::CloseSync => self.sync_file(s, p, At::CloseRaise, At::ClosePoison),
            At::CloseRaise if s.shut_down && self.rules.sync_is_probed => {
                self.note(Branch::ProbeFailed);
                s.processes[p].at = At::ClosePoison;
            }
            At::CloseRaise => {
                let target = s.processes[p].target;
                self.raise_durable(s, target);
                s.processes[p].target = 0;
                s.processes[p].at = At::Create;
            }
            At::ClosePoison => {
                self.note(Branch::Poisoned);
                s.poison = s.poison.max(s.processes[p].epoch);
                s.processes[p].target = 0;
                s.processes[p].handle = None;
                self.leave_poisoned(s, p);
            }
            At::Create => self.rotate(s, p),
            At::Succeed => self.succeed(s, p),
            At::CreateSync => {
                sync_directory(s);
                s.processes[p].at = At::Place;
            }
            _ => {
                sync_directory(s);
                if !self.rules.carried_count_when_settled {
                    let head = s.processes[p].opened().caught_up();
                    self.raise_durable(s, head);
                }
                s.processes[p].at = At::Settle;
            }
        }
    }

    fn begin_close(&self, s: &mut State, p: usize) {
        let handle = s.processes[p].opened();
        self.note(Branch::Rotated);
        if s.processes
            .iter()
            .any(|q| leads(q) && q.led.or(q.handle).is_some_and(|h| h.file == handle.file))
        {
            self.note(Branch::RotatedUnderLeader);
        }
        let head = handle.caught_up();
        if !self.rules.closed_segment_synced {
            s.processes[p].at = At::Create;
        } else if !self.bounds.disk_matters() {
            self.raise_durable(s, head);
            s.processes[p].at = At::Create;
        } else {
            s.processes[p].target = head;
            let verified = !self.rules.close_writes_again || self.write_again(s, p);
            s.target = s.target.max(head);
            s.processes[p].at = if verified {
                At::CloseSync
            } else {
                At::ClosePoison
            };
        }
    }

    /// The frames of the command are in the next segment before that has a name.
    fn rotate(&self, s: &mut State, p: usize) {
        self.begin_attempt(s, p);
        let known = s.processes[p].opened();
        let head = known.caught_up();
        let file = FileId {
            first: head + 1,
            epoch: s.processes[p].epoch,
            again: 0,
        };
        let mut segment = Segment::new(file, Some(known.file), known.tip);
        segment.begin_with(self.open_parts(s, p).into_iter());
        if self.name(
            s,
            p,
            segment,
            Handle {
                file,
                opened_at: 0,
                errors_seen: 0,
                ..known
            },
        ) {
            s.processes[p].born = true;
            let syncs = self.bounds.disk_matters() && self.rules.entry_synced_before_use;
            s.processes[p].at = if syncs { At::CreateSync } else { At::Place };
        }
    }

    /// Closes the older epoch's segment at the durable position and carries over what stands above it, read through the
    /// descriptor that was looked through: whoever was overtaken knows nothing of newer files.
    fn succeed(&self, s: &mut State, p: usize) {
        self.note(Branch::TookOver);
        let known = s.processes[p].opened();
        let log = self.log_of_older(s, known.file);
        let head = known.caught_up();
        if log.head() < head {
            return self.meet_damage(s, p);
        }
        let closed_at = if self.rules.takeover_carries {
            s.durable.clamp(known.file.first - 1, head)
        } else {
            head
        };
        let carried = &log.frames[usize::from(closed_at)..usize::from(head)];
        if !carried.is_empty() {
            self.note(Branch::CarriedOver);
        }
        let chained = |id: FrameId| {
            if self.rules.carried_keep_chain {
                id
            } else {
                id.chained_anew()
            }
        };
        let tip_at = |position: u8| {
            usize::from(position)
                .checked_sub(1)
                .map_or(FrameId::NONE, |at| log.frames[at])
        };
        let file = FileId {
            first: closed_at + 1,
            epoch: s.processes[p].epoch,
            again: 0,
        };
        let mut segment = Segment::new(file, Some(known.file), tip_at(closed_at));
        segment.begin_with(carried.iter().copied().map(chained));
        let tip = if carried.is_empty() {
            tip_at(head)
        } else {
            chained(tip_at(head))
        };
        if self.name(
            s,
            p,
            segment,
            Handle {
                file,
                head: Some(head),
                tip,
                opened_at: 0,
                errors_seen: 0,
            },
        ) {
            if s.word.epoch > s.processes[p].epoch {
                self.note(Branch::LateSegment);
            }
            s.processes[p].born = self.rules.takeover_carries;
            let syncs = self.bounds.disk_matters() && self.rules.entry_synced_before_use;
            s.processes[p].at = if syncs { At::SucceedSync } else { At::Settle };
        }
    }

    /// The log as it is read from a segment that was the newest when it was opened.
    fn log_of_older(&self, s: &State, newest: FileId) -> Log {
        let age = |file: FileId| (file.epoch, file.first);
        let older = s
            .segments
            .partition_point(|segment| age(segment.file) <= age(newest));
        files::read(&s.segments[..older], &self.rules).expect("what it was opened with is there")
    }

    /// Header, frames, sync, rename: one step, the name appears with all of it or not at all. False where the name was
    /// taken.
    fn name(&self, s: &mut State, p: usize, mut segment: Segment, mut handle: Handle) -> bool {
        if let Some(there) = files::taken(&s.segments, segment.file, &self.rules) {
            if self.rules.rename_never_replaces {
                let epoch = s.processes[p].epoch;
                s.segments[there].opened_in = s.segments[there].opened_in.max(epoch);
                s.processes[p].handle = None;
                s.processes[p].at = At::Check;
                return false;
            }
            segment.file.again = s.segments.remove(there).file.again + 1;
            handle.file = segment.file;
        }
        if self.bounds.disk_matters() {
            segment.entry_synced = false;
            segment.header_synced = self.rules.segment_synced_before_name;
        }
        s.segments.push(segment);
        s.segments
            .sort_by_key(|segment| (segment.file.epoch, segment.file.first));
        s.processes[p].handle = Some(handle);
        true
    }
}
