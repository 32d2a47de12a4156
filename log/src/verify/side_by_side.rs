//! Segments looked through side by side. What is found is put together in the order of the segments, so that a report
//! is the same on however many processors.

use std::panic::resume_unwind;
use std::thread;

use super::{BAD_SPANS_MAX, Options, Survey};
use crate::format::{SegmentHeader, SegmentName};
use crate::look::Look;
use crate::recovery::Closed;

/// From how many bytes on segments are worth a thread: what one looks through in a few milliseconds.
const BYTES_MIN: u64 = 4 << 20;
/// More look at once than most disks and memories serve; each holds a window and what it found.
const AT_ONCE_MAX: usize = 8;

/// A segment to be looked through.
#[derive(Clone, Copy)]
pub(super) enum Task<'t> {
    Closed(&'t Closed),
    Newest(&'t SegmentHeader),
}

impl Task<'_> {
    fn name(self) -> SegmentName {
        match self {
            Task::Closed(closed) => closed.header.name(),
            Task::Newest(header) => header.name(),
        }
    }

    /// A survey of this segment alone.
    fn look(self, look: &dyn Look, options: &Options) -> Survey {
        let mut survey = Survey::new(options.clone());
        match self {
            Task::Closed(closed) => survey.look_at_closed(look, closed),
            Task::Newest(header) => survey.look_at_newest(look, header),
        }
        survey
    }
}

impl Survey {
    /// Looks through segments, as many at once as there are processors, and takes over what is found.
    pub(super) fn side_by_side(&mut self, look: &dyn Look, tasks: &[Task<'_>]) {
        let bytes = |task: &Task<'_>| self.unread.get(&task.name()).copied().unwrap_or(0);
        let at_once = if tasks.iter().map(bytes).sum::<u64>() < BYTES_MIN {
            1
        } else {
            thread::available_parallelism().map_or(1, |n| n.get().min(AT_ONCE_MAX))
        };
        for group in tasks.chunks(at_once) {
            let options = &self.options;
            let (first, others) = group.split_first().expect("a group has a task");
            let looked = thread::scope(|scope| {
                let others: Vec<_> = others
                    .iter()
                    .map(|task| scope.spawn(|| task.look(look, options)))
                    .collect();
                let mut looked = vec![first.look(look, options)];
                looked.extend(others.into_iter().map(|other| {
                    // A panic there is one here.
                    other.join().unwrap_or_else(|panic| resume_unwind(panic))
                }));
                looked
            });
            for part in looked {
                self.take_over(part);
            }
        }
    }

    /// What was found in the next segment, after what was found in those before.
    fn take_over(&mut self, part: Survey) {
        self.found.obstacles.extend(part.found.obstacles);
        self.found.closed.extend(part.found.closed);
        self.found.late.extend(part.found.late);
        self.found.newest = part.found.newest.or(self.found.newest.take());
        self.coverage.add(part.coverage);
        self.witness.take_over(part.witness);
        let room = BAD_SPANS_MAX.saturating_sub(self.bad.len());
        self.bad_omitted += part.bad_omitted + part.bad.len().saturating_sub(room) as u64;
        self.bad.extend(part.bad.into_iter().take(room));
        self.broken_seals.extend(part.broken_seals);
        self.read.extend(part.read);
    }
}
