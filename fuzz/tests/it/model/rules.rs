//! The parts of the protocol that can be switched back one by one, and the bounds of a run.

use super::state::Budget;

/// Every field is true in the protocol. `docs/protocol.md` says what each guards against.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Head, epoch and in-doubt bit change by one compare-and-swap; else: look at the epoch, then store.
    pub word_is_swapped: bool,
    /// A cached head is not trusted while the in-doubt bit is set.
    pub in_doubt_bit: bool,
    /// "Nothing new" means the epoch and the head, not the head alone.
    pub epoch_is_compared: bool,
    /// Two epochs never want one name.
    pub names_carry_epoch: bool,
    /// A rename never replaces; who finds the name taken opens what is there.
    pub rename_never_replaces: bool,
    /// Of two segments that start at one position, that of the higher epoch is in the log.
    pub highest_epoch_decides: bool,
    /// A torn tail is zeroed and the zeros synced, before a frame is written over it.
    pub cut_is_synced: bool,
    /// So are zeros that were found in doubt: who wrote them may have died before the sync.
    pub found_zeros_synced: bool,
    /// Who makes zeros durable says so before, so that nobody takes up what a dead holder began.
    pub zeros_are_marked: bool,
    /// A place is believed when head and epoch are the word's, not the head alone.
    pub place_epoch_is_compared: bool,
    /// A waiter that finds no place of the head takes the lock and writes it again.
    pub lost_place_is_repaired: bool,
    /// Whether a frame is in the log is asked under the newest epoch's lock.
    pub question_under_lock: bool,
    /// It is asked by position and chain, not by position alone.
    pub question_by_chain: bool,
    /// A new holder makes its own segment before it answers or appends.
    pub own_segment_first: bool,
    /// Header and frames that come with a segment are synced before its name appears.
    pub segment_synced_before_name: bool,
    /// The creator syncs the directory before it uses the segment.
    pub entry_synced_before_use: bool,
    /// So does whoever finds a segment in doubt: its creator may not have.
    pub found_entry_synced: bool,
    /// The directory of the locks is synced before the word is raised.
    pub lock_entry_synced: bool,
    /// After a power loss, the epoch is that of the newest segment where its lock is gone.
    pub segments_count_for_epoch: bool,
    /// A full segment is synced up to its end before its successor has a name.
    pub closed_segment_synced: bool,
    /// A takeover closes the old segment at the durable position and carries the frames above it over.
    pub takeover_carries: bool,
    /// Carried frames keep their chain values.
    pub carried_keep_chain: bool,
    /// Carried frames count as durable when the head is settled, not when their file is synced.
    pub carried_count_when_settled: bool,
    /// A frame is acknowledged when its position is durable.
    pub acknowledged_when_durable: bool,
    /// A refusal is answered when the head it was judged by is durable.
    pub refused_when_durable: bool,
    /// The leader raises the durable position after its sync succeeded.
    pub durable_after_success: bool,
    /// A sync target above the durable position means that a leader died: frames are written again.
    pub target_is_left_behind: bool,
    /// Frames that may be older than the descriptor are written again before they are synced through it.
    pub older_frames_written_again: bool,
    /// While somebody writes, everything may be older than a descriptor that is opened.
    pub opened_in_doubt_is_younger_than_nothing: bool,
    /// Both hold for the sync of a segment that is closed, too.
    pub close_writes_again: bool,
    /// Frames are written again only where a read gives them back whole.
    pub written_again_is_verified: bool,
    /// A failed sync ends its epoch.
    pub failed_sync_poisons: bool,
    /// A log that ends before the published head is damage: nobody appends.
    pub short_log_stops: bool,
    /// Also where the epoch is poisoned: waiters know a position, not a frame.
    pub short_poisoned_log_stops: bool,
    /// A byte is read back after a sync.
    pub sync_is_probed: bool,
    /// A waiter past its bound takes the next sync number and leads.
    pub next_sync_number: bool,
    /// A waiter past its bound raises the epoch.
    pub epoch_can_be_raised: bool,
    /// A lock file that somebody removed is not made again: who misses it raises the epoch.
    pub removed_lock_ends_epoch: bool,
}

impl Rules {
    pub const PROTOCOL: Rules = Rules {
        word_is_swapped: true,
        in_doubt_bit: true,
        epoch_is_compared: true,
        names_carry_epoch: true,
        rename_never_replaces: true,
        highest_epoch_decides: true,
        cut_is_synced: true,
        found_zeros_synced: true,
        zeros_are_marked: true,
        place_epoch_is_compared: true,
        lost_place_is_repaired: true,
        question_under_lock: true,
        question_by_chain: true,
        own_segment_first: true,
        segment_synced_before_name: true,
        entry_synced_before_use: true,
        found_entry_synced: true,
        lock_entry_synced: true,
        segments_count_for_epoch: true,
        closed_segment_synced: true,
        takeover_carries: true,
        carried_keep_chain: true,
        carried_count_when_settled: true,
        acknowledged_when_durable: true,
        refused_when_durable: true,
        durable_after_success: true,
        target_is_left_behind: true,
        older_frames_written_again: true,
        opened_in_doubt_is_younger_than_nothing: true,
        close_writes_again: true,
        written_again_is_verified: true,
        failed_sync_poisons: true,
        short_log_stops: true,
        short_poisoned_log_stops: true,
        sync_is_probed: true,
        next_sync_number: true,
        epoch_can_be_raised: true,
        removed_lock_ends_epoch: true,
    };
}

/// How far a run goes.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Of each process: its commands, and the frames of each, written with one system call.
    pub work: Vec<(u8, u8)>,
    /// The frames that a segment has room for.
    pub segment_frames: u8,
    /// What the environment may do in one run.
    pub budget: Budget,
    /// A place is written and published in two steps, so that an overtaken writer can come in between.
    pub places_race: bool,
    /// A process syncs through a descriptor that it does not write through.
    pub leads_by_another: bool,
    /// One beginning for each: bit p says that process p has not opened the store yet.
    pub late: Vec<usize>,
}

impl Bounds {
    /// This many processes with this many commands each, and a quiet environment.
    pub fn quiet(processes: usize, commands: u8) -> Bounds {
        Bounds {
            work: vec![(commands, 1); processes],
            segment_frames: 2,
            budget: Budget::default(),
            places_race: false,
            leads_by_another: false,
            late: vec![0],
        }
    }

    /// Begins with every set of processes that open the store later.
    pub fn with_late_openers(mut self) -> Bounds {
        self.late = (0..1 << self.work.len()).collect();
        self
    }

    /// Whether it matters what is on the disk. Where nothing but processes dies, the page cache is the truth.
    pub fn disk_matters(&self) -> bool {
        self.budget.power_losses + self.budget.failed_syncs + self.budget.shutdowns > 0
    }
}
