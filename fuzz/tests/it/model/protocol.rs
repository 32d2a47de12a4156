//! The model: which steps a state allows, and what each does. The steps under the lock are in `append` and
//! `birth`, the others in `sync`; this file has the environment and the verdict.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stateright::{Model, Property};

use super::branch::Branch;
use super::files::{self, Log, Segment};
use super::rules::{Bounds, Rules};
use super::state::{At, Broken, FileId, FrameId, Handle, Locks, Place, Process, State, Word};

/// One step of a process or of the environment. Processes are numbered as they stand in the state before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    Step(usize, At),
    /// Past the bound of the append lock.
    Raise(usize),
    /// Waits for a lock of an epoch that is over.
    Reload(usize),
    /// The decision is a refusal: nothing is written.
    Refuse(usize),
    /// The write ends before its last byte.
    WriteShort(usize, At),
    SyncFails(usize),
    /// The sync says success, the bytes are gone, and the file system with them.
    ShutDown(usize),
    /// Takes the sync number, or the next one, and leads.
    Lead(usize),
    AnswerUnknown(usize),
    /// Finds no place of the published head: takes the append lock to write it again.
    Repair(usize),
    Kill(usize, At),
    /// Stands still for ever and keeps what it holds.
    Stop(usize, At),
    /// The page cache lets go of what a failed sync lost in the segment at this index.
    Evict(usize),
    PowerLoss(usize),
    /// Somebody removes the newest lock file.
    RemoveLock,
    /// Does not find the lock file of its epoch.
    Miss(usize),
    /// Nobody can go on, and somebody waits.
    Strand,
}

/// The protocol with its switches, in bounds.
#[derive(Clone)]
pub struct Protocol {
    pub rules: Rules,
    pub bounds: Bounds,
    /// Treat processes as interchangeable. Off where a path is printed: renaming makes it hard to read.
    pub symmetric: bool,
    seen: Arc<AtomicU64>,
}

impl Protocol {
    pub fn new(rules: Rules, bounds: Bounds, symmetric: bool) -> Protocol {
        Protocol {
            rules,
            bounds,
            symmetric,
            seen: Arc::default(),
        }
    }

    /// Notes that a branch was taken on some path, so that a run can show what it covered.
    pub fn note(&self, branch: Branch) {
        let bit = 1 << branch as u32;
        if self.seen.load(Ordering::Relaxed) & bit == 0 {
            self.seen.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub fn took(&self, branch: Branch) -> bool {
        self.seen.load(Ordering::Relaxed) & 1 << branch as u32 != 0
    }

    /// A handle that keeps what the run notes.
    pub fn watched(&self) -> Protocol {
        self.clone()
    }

    pub fn log(&self, s: &State) -> Log {
        files::read(&s.segments, &self.rules).expect("a state with a broken chain has no steps")
    }

    /// The id of a part as its last attempt wrote it.
    pub fn written(&self, s: &State, p: usize, part: u8) -> FrameId {
        let process = &s.processes[p];
        FrameId::new(p, process.command, process.written[usize::from(part)], part)
    }

    /// The ids of the parts that are not in the log as far as their owner knows.
    pub fn open_parts(&self, s: &State, p: usize) -> Vec<FrameId> {
        (s.processes[p].part..s.processes[p].batch)
            .map(|part| self.written(s, p, part))
            .collect()
    }

    pub fn segment<'s>(&self, s: &'s mut State, file: FileId) -> Option<&'s mut Segment> {
        s.segments.iter_mut().find(|segment| segment.file == file)
    }

    pub fn raise_durable(&self, s: &mut State, position: u8) {
        s.durable = s.durable.max(position);
        s.confirmed = s.confirmed.max(s.durable);
    }

    fn steps_of(&self, s: &State, p: usize, actions: &mut Vec<Action>) {
        let process = &s.processes[p];
        let at = process.at;
        let step = Action::Step(p, at);
        match at {
            At::Lock if self.misses_lock(s, p) => actions.push(Action::Miss(p)),
            At::Lock => match s.locks.holder(process.epoch) {
                None => actions.push(step),
                Some(_) if s.word.epoch != process.epoch => actions.push(Action::Reload(p)),
                Some(_) if s.left.raises > 0 && self.rules.epoch_can_be_raised => {
                    actions.push(Action::Raise(p))
                }
                Some(_) => {}
            },
            At::Decide => {
                actions.push(step);
                if s.left.refusals > 0 && !process.asks && !process.repairs && process.attempt == 0
                {
                    actions.push(Action::Refuse(p));
                }
            }
            At::WriteMiddle | At::WriteEnd => {
                actions.push(step);
                if s.left.short_writes > 0 {
                    actions.push(Action::WriteShort(p, at));
                }
            }
            At::Sync | At::CloseSync | At::CutSync => {
                actions.push(step);
                if s.left.failed_syncs > 0 {
                    actions.push(Action::SyncFails(p));
                }
                if s.left.shutdowns > 0 && at != At::CutSync {
                    actions.push(Action::ShutDown(p));
                }
            }
            At::Wait => self.steps_of_waiter(s, p, actions),
            _ => actions.push(step),
        }
    }

    /// Whether a process opens the lock file of the newest epoch where it has no name. Whoever has the segment open took
    /// the lock before, and has it open too.
    fn misses_lock(&self, s: &State, p: usize) -> bool {
        let process = &s.processes[p];
        let is_newest = process.epoch == s.locks.greatest && s.word.epoch == process.epoch;
        let may = !self.rules.removed_lock_ends_epoch || s.left.raises > 0;
        s.locks.removed && is_newest && process.handle.is_none() && may
    }

    fn steps_of_waiter(&self, s: &State, p: usize, actions: &mut Vec<Action>) {
        let process = &s.processes[p];
        let answers_early = if process.refused {
            !self.rules.refused_when_durable
        } else {
            !self.rules.acknowledged_when_durable
        };
        if s.durable >= process.waits_for || answers_early {
            actions.push(Action::Step(p, At::Wait));
        } else if s.poison >= s.word.epoch {
            actions.push(Action::AnswerUnknown(p));
        } else if self.rules.next_sync_number || !s.processes.iter().any(leads) {
            match self.place(s) {
                Some(place) if s.poison >= place.file.epoch => {
                    actions.push(Action::AnswerUnknown(p))
                }
                Some(_) => actions.push(Action::Lead(p)),
                None if self.rules.lost_place_is_repaired => actions.push(Action::Repair(p)),
                None => {}
            }
        }
    }

    /// What can be done when every read and write fails: use what is mapped, and say what failed.
    fn needs_no_file(action: &Action) -> bool {
        match action {
            Action::Step(_, at) => {
                matches!(
                    at,
                    At::Wait
                        | At::SyncRaise
                        | At::CloseRaise
                        | At::SyncPoison
                        | At::ClosePoison
                        | At::Place
                        | At::Publish
                )
            }
            Action::AnswerUnknown(_) => true,
            _ => false,
        }
    }

    fn apply(&self, s: &mut State, action: Action) {
        match action {
            Action::Step(p, at) => self.step(s, p, at),
            Action::Raise(p) => self.begin_raise(s, p),
            Action::Reload(p) => s.processes[p].again(),
            Action::Refuse(p) => self.refuse(s, p),
            Action::WriteShort(p, _) => self.write_short(s, p),
            Action::SyncFails(p) => self.sync_fails(s, p),
            Action::ShutDown(p) => self.shut_down(s, p),
            Action::Lead(p) => self.lead(s, p),
            Action::AnswerUnknown(p) => {
                self.note(Branch::AnsweredUnknown);
                s.processes[p].next_command();
            }
            Action::Repair(p) => self.repair(s, p),
            Action::Evict(index) => self.evict(s, index),
            Action::Kill(p, _) => {
                s.left.kills -= 1;
                s.locks.release_all_of(p);
                s.processes[p].next_command();
                s.processes[p].handle = None;
            }
            Action::Stop(p, _) => {
                s.left.stops -= 1;
                s.processes[p].stopped = true;
            }
            Action::PowerLoss(outcome) => self.power_loss(s, outcome),
            Action::RemoveLock => {
                s.left.removals -= 1;
                s.locks.removed = true;
            }
            Action::Miss(p) => self.miss_lock(s, p),
            Action::Strand => s.broken = Some(Broken::Stranded),
        }
    }

    fn step(&self, s: &mut State, p: usize, at: At) {
        match at {
            At::Idle => {
                s.processes[p].epoch = s.word.epoch;
                s.processes[p].at = At::Lock;
            }
            At::Lock => {
                s.locks.take(s.processes[p].epoch, p);
                s.processes[p].at = At::Check;
            }
            At::RaiseCreate | At::RaiseSync | At::RaiseSwap => self.step_of_raise(s, p, at),
            At::Check
            | At::FoundSync
            | At::Cut
            | At::CutSync
            | At::Settle
            | At::SettleSwap
            | At::SettleRaise
            | At::Decide => {
                self.step_of_look(s, p, at);
            }
            At::Mark | At::Rotate | At::WriteBegin | At::WriteMiddle | At::WriteEnd => {
                self.step_of_write(s, p, at)
            }
            At::Place | At::Publish | At::PublishRaise | At::PublishStore => {
                self.step_of_write(s, p, at)
            }
            At::CloseBegin | At::CloseSync | At::CloseRaise | At::ClosePoison => {
                self.step_of_birth(s, p, at)
            }
            At::Create | At::CreateSync | At::Succeed | At::SucceedSync => {
                self.step_of_birth(s, p, at)
            }
            At::Wait
            | At::SyncBegin
            | At::SyncTarget
            | At::Sync
            | At::SyncRaise
            | At::SyncPoison => {
                self.step_of_sync(s, p, at);
            }
        }
    }

    fn judge(&self, s: &State) -> Option<Broken> {
        let log = match files::read(&s.segments, &self.rules) {
            Ok(log) => log,
            Err(broken) => return Some(broken),
        };
        let present = log.frames.iter().fold(0, |set, id| set | id.bit());
        let mut decisions: Vec<u8> = log.frames.iter().map(|id| id.decision()).collect();
        decisions.sort_unstable();
        if s.acknowledged & !present != 0 {
            Some(Broken::AcknowledgedMissing)
        } else if s.absent & present != 0 {
            Some(Broken::AbsentPresent)
        } else if !log.frames.starts_with(&s.published) {
            Some(Broken::PrefixChanged)
        } else if !decisions.is_sorted_by(|a, b| a < b) {
            Some(Broken::Doubled)
        } else if log.foreign {
            Some(Broken::DecidedElsewhere)
        } else {
            None
        }
    }
}

/// Whether a process waits though the bounds would let it go on: a raise may still be made.
fn waits_within_bounds(s: &State, process: &Process) -> bool {
    process.commands_left > 0 && !process.stopped && (process.at != At::Lock || s.left.raises > 0)
}

/// Whether a process holds a sync number.
pub fn leads(process: &Process) -> bool {
    matches!(
        process.at,
        At::SyncBegin | At::SyncTarget | At::Sync | At::SyncRaise | At::SyncPoison
    )
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let file = FileId {
            first: 1,
            epoch: 1,
            again: 0,
        };
        let opened = Handle {
            file,
            head: Some(0),
            tip: FrameId::NONE,
            opened_at: 0,
            errors_seen: 0,
        };
        let begin = |late: usize| State {
            word: Word {
                epoch: 1,
                head: 0,
                in_doubt: false,
            },
            target: 0,
            durable: 0,
            poison: 0,
            zeroing: 0,
            locks: Locks::new(),
            segments: vec![Segment::new(file, None, FrameId::NONE)],
            processes: (self.bounds.work.iter().enumerate())
                .map(|(p, &(commands, batch))| Process {
                    handle: (late >> p & 1 == 0).then_some(opened),
                    ..Process::new(commands, batch)
                })
                .collect(),
            left: self.bounds.budget,
            shut_down: false,
            evicted: false,
            places: vec![Place { head: 0, file }],
            published: Vec::new(),
            confirmed: 0,
            acknowledged: 0,
            absent: 0,
            broken: None,
        };
        self.bounds
            .late
            .iter()
            .map(|&late| {
                if self.symmetric {
                    begin(late).in_order()
                } else {
                    begin(late)
                }
            })
            .collect()
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        if s.broken.is_some() {
            return;
        }
        for (p, process) in s.processes.iter().enumerate() {
            if process.commands_left > 0 && !process.stopped {
                self.steps_of(s, p, actions);
            }
        }
        if s.shut_down {
            actions.retain(Protocol::needs_no_file);
        } else if actions.is_empty() && s.processes.iter().any(|p| waits_within_bounds(s, p)) {
            actions.push(Action::Strand);
        }
        self.environment(s, actions);
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut s = before.clone();
        self.apply(&mut s, action);
        let same = s.segments == before.segments
            && (s.acknowledged, s.absent, s.published.len())
                == (before.acknowledged, before.absent, before.published.len());
        if s.broken.is_none() && !same {
            s.broken = self.judge(&s);
        }
        if self.rules.place_epoch_is_compared {
            s.forget_old_places();
        }
        Some(if self.symmetric { s.in_order() } else { s })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! always_keeps {
            ($($broken:ident)*) => {
                vec![$(Property::always(Broken::$broken.promise(), |_, s: &State| s.broken != Some(Broken::$broken))),*]
            };
        }
        always_keeps!(AcknowledgedMissing AbsentPresent PrefixChanged Doubled DecidedElsewhere Gap Lineage Stranded)
    }
}
