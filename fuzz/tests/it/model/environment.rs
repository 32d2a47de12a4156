//! What happens to the processes and the disk.

use super::branch::Branch;
use super::files;
use super::protocol::{Action, Protocol};
use super::state::{At, State, Word};

impl Protocol {
    pub fn environment(&self, s: &State, actions: &mut Vec<Action>) {
        for (p, process) in s.processes.iter().enumerate() {
            if process.commands_left == 0 || process.stopped || process.at == At::Idle {
                continue;
            }
            if s.left.kills > 0 {
                actions.push(Action::Kill(p, process.at));
            }
            if s.left.stops > 0 {
                actions.push(Action::Stop(p, process.at));
            }
        }
        if s.left.evictions > 0 {
            let evictable = s
                .segments
                .iter()
                .enumerate()
                .filter(|(_, segment)| segment.can_be_evicted());
            actions.extend(evictable.map(|(index, _)| Action::Evict(index)));
        }
        if s.left.removals > 0 && !s.locks.removed {
            actions.push(Action::RemoveLock);
        }
        if s.left.power_losses > 0 {
            let locks = if s.locks.greatest_synced < s.locks.greatest {
                2
            } else {
                1
            };
            actions.extend(
                (0..files::power_loss_outcomes(&s.segments) * locks).map(Action::PowerLoss),
            );
        }
    }

    /// What was published and not called durable is no promise any more.
    pub fn evict(&self, s: &mut State, index: usize) {
        self.note(Branch::Evicted);
        s.left.evictions -= 1;
        s.segments[index].evict();
        s.published.truncate(usize::from(s.confirmed));
        s.evicted = true;
    }

    /// Every process is gone; what is left is on the disk. The page is void: the next opener builds it again under the
    /// greatest lock, in doubt.
    pub fn power_loss(&self, s: &mut State, outcome: usize) {
        s.left.power_losses -= 1;
        let lock_ways = files::power_loss_outcomes(&s.segments);
        if outcome >= lock_ways {
            s.locks.greatest = s.locks.greatest_synced;
        }
        s.locks.greatest_synced = s.locks.greatest;
        s.segments = files::after_power_loss(&s.segments, outcome % lock_ways);
        s.locks.release_all();
        if self.rules.segments_count_for_epoch {
            let newest = s.segments.last().map_or(0, |segment| segment.file.epoch);
            s.locks.greatest = s.locks.greatest.max(newest);
            s.locks.greatest_synced = s.locks.greatest;
        }
        s.word = Word {
            epoch: s.locks.greatest,
            head: 0,
            in_doubt: true,
        };
        (s.target, s.durable, s.poison, s.zeroing) = (0, 0, 0, 0);
        s.locks.removed = false;
        (s.shut_down, s.evicted) = (false, false);
        s.places.clear();
        if usize::from(s.confirmed) < s.published.len() {
            self.note(Branch::PowerLossTookPublished);
        }
        s.published.truncate(usize::from(s.confirmed));
        for process in s.processes.iter_mut().filter(|p| p.commands_left > 0) {
            let begun =
                process.at != At::Idle || process.asks || process.repairs || process.attempt > 0;
            process.stopped = false;
            if begun {
                process.next_command();
            }
            process.handle = None;
        }
    }
}
