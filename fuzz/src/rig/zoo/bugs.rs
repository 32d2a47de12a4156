//! The bugs that can be planted, and what has to catch each.

/// What has to fail with the bug, and succeed without it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Guard {
    /// Tests of a package whose names begin so; `unit` says that they stand beside the code.
    Tests {
        /// The package's directory.
        room: &'static str,
        /// Whether they stand beside the code.
        unit: bool,
        /// What their names begin with.
        names: &'static str,
    },
    /// A rig of the runner, at the tier that is a sample.
    Rig(&'static str),
    /// The tests of threads that share a store, whose names begin so, in a build in which a scheduler plays them.
    Played(&'static str),
}

/// One bug.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// Its name, as the code has it at the place where the rule stands.
    pub name: &'static str,
    /// What it does, for the page.
    pub what: &'static str,
    /// Each of these has to catch it.
    pub guards: &'static [Guard],
}

const fn it(room: &'static str, names: &'static str) -> Guard {
    Guard::Tests {
        room,
        unit: false,
        names,
    }
}

const fn unit(room: &'static str, names: &'static str) -> Guard {
    Guard::Tests {
        room,
        unit: true,
        names,
    }
}

const fn bug(name: &'static str, what: &'static str, guards: &'static [Guard]) -> Bug {
    Bug { name, what, guards }
}

const CRASHES: Guard = it("log", "simulated::a_crash_at_every_step");
const FAILED_SYNCS: Guard = it("log", "simulated::failed_syncs_among_stopped_processes");
const CHAOS: Guard = it("log", "simulated::processes_killed_and_stopped");
const CORRUPTION: Guard = it("projection", "corruption::");
const BRANCHES: Guard = it("projection", "rules::branch::");
const LIVENESS: Guard = it("core", "liveness::");
const DISK: Guard = unit("log", "storage::disk::");

/// Every bug, in the order of the list in which they were asked for.
pub const BUGS: &[Bug] = &[
    bug(
        "no-data-sync",
        "a sync of frames is left out",
        &[CRASHES, Guard::Rig("crashes"), Guard::Rig("power")],
    ),
    bug(
        "sync-before-write",
        "a sync is taken for one of frames that were written while it ran",
        &[it("log", "simulated::what_is_acknowledged_among")],
    ),
    bug(
        "no-directory-sync",
        "the name of a new segment is not synced",
        &[CRASHES, Guard::Rig("crashes")],
    ),
    bug(
        "no-probe",
        "no byte is read back between a sync and the answer",
        &[it("log", "simulated::a_sync_that_raced")],
    ),
    bug(
        "retry-after-failed-sync",
        "a failed sync is tried again, and its success is believed",
        &[FAILED_SYNCS, Guard::Rig("syscalls")],
    ),
    bug(
        "cut-at-first-bad-frame",
        "a bad frame that was durable is taken for a torn tail",
        &[it("log", "recovery::"), Guard::Rig("corruption")],
    ),
    bug(
        "file-length-trusted",
        "a closed segment that is shorter than its stated end is taken as it is",
        &[Guard::Rig("corruption")],
    ),
    bug(
        "header-crc-ignored",
        "a header's checksum is not held against it",
        &[CORRUPTION, Guard::Rig("corruption")],
    ),
    bug(
        "crc-without-position",
        "the header's checksum does not cover the position",
        &[it("log", "golden::")],
    ),
    bug(
        "length-off-by-one",
        "a part may be one byte longer than its limit",
        &[it("log", "frame::each_part_fits")],
    ),
    bug(
        "zeros-end-the-log",
        "zeros with frames behind them end the log",
        &[
            CORRUPTION,
            it("log", "verify::a_hole_of_zeros"),
            Guard::Rig("corruption"),
        ],
    ),
    bug(
        "gap-accepted",
        "a frame whose position leaves a gap is taken",
        &[it("log", "frame::a_frame_that_leaves_a_gap")],
    ),
    bug(
        "chain-ignored",
        "the chain is not held against a frame",
        &[CORRUPTION, it("log", "damage::an_edit_with_right_crcs")],
    ),
    bug(
        "mark-before-sync",
        "the durable mark is written before the sync",
        &[CRASHES, Guard::Rig("crashes")],
    ),
    bug(
        "mark-slot-not-alternated",
        "the durable mark is always written into the same slot",
        &[unit("log", "control::place::")],
    ),
    bug(
        "durable-of-the-unsynced",
        "a frame states that what was only written before it is durable",
        &[Guard::Rig("crashes")],
    ),
    bug(
        "recovery-once-only",
        "a recovery that was cut short cannot be done again",
        &[it("log", "recovery::two_who_put"), Guard::Rig("crashes")],
    ),
    bug(
        "quarantine-overwritten",
        "what is put into quarantine replaces what is there",
        &[it("log", "recovery::two_who_put")],
    ),
    bug(
        "salvage-stops-early",
        "a salvage ends a segment at the first bad frame",
        &[it("log", "salvage::"), Guard::Rig("corruption")],
    ),
    bug(
        "salvage-trusts-length",
        "behind a bad header, frames are looked for where its length says",
        &[it("log", "salvage::"), Guard::Rig("corruption")],
    ),
    bug(
        "generation-at-least",
        "a generation above the current one is taken for current",
        &[
            it("projection", "rules::registration::"),
            Guard::Rig("model"),
        ],
    ),
    bug(
        "decided-before-the-lock",
        "a command is decided on the state before the lock was taken",
        &[
            Guard::Rig("hammer"),
            Guard::Rig("histories"),
            Guard::Rig("stops"),
            Guard::Rig("simulation"),
            Guard::Played("shuttled::threads_of_two_stores"),
        ],
    ),
    bug(
        "not-read-again",
        "after waiting for the lock the log is not looked at again",
        &[CHAOS, Guard::Rig("hammer"), Guard::Rig("simulation")],
    ),
    bug(
        "adopt-bumps-twice",
        "an adopt raises the generation by two",
        &[it("projection", "rules::adoption::"), Guard::Rig("model")],
    ),
    bug(
        "answered-before-durable",
        "a grant is answered before it is durable, and lost with the power",
        &[
            it("projection", "cases::space::a_power_cut"),
            Guard::Rig("power"),
            Guard::Rig("syscalls"),
            Guard::Played("shuttled::threads_of_one_store"),
        ],
    ),
    bug(
        "cancelled-again",
        "an envelope that was ended is ended again",
        &[Guard::Rig("model")],
    ),
    bug(
        "envelope-dropped",
        "an adopt leaves one envelope behind",
        &[
            it("projection", "rules::adoption::pending_mail"),
            Guard::Rig("model"),
        ],
    ),
    bug(
        "branch-takes-a-name",
        "a branch does not look whether its name is taken when it is decided",
        &[BRANCHES, Guard::Rig("model")],
    ),
    bug(
        "branch-writes-source",
        "a branch changes the history of its source",
        &[BRANCHES],
    ),
    bug(
        "overlap-by-prefix",
        "paths overlap when one text begins with the other",
        &[it("core", "paths::")],
    ),
    bug(
        "lock-of-a-removed-file",
        "a lock file in place of a removed one counts as the lock",
        &[it("log", "simulated::lock_files_replaced")],
    ),
    bug(
        "descriptor-leaks",
        "files of the store stay open in programs that are started",
        &[it("projection", "cases::locks::a_child_of_the_owner")],
    ),
    bug(
        "record-lock",
        "locks are POSIX record locks, lost at any close of the file",
        &[DISK],
    ),
    bug(
        "pid-is-enough",
        "a holder is alive while any process has its number",
        &[LIVENESS, Guard::Rig("model"), Guard::Rig("pids")],
    ),
    bug(
        "start-ignored",
        "the start time of a process is not compared",
        &[LIVENESS],
    ),
    bug(
        "wall-clock-lease",
        "a holder that was recorded an hour ago is dead",
        &[Guard::Rig("clock")],
    ),
    bug(
        "umask-trusted",
        "files are made with the modes that the umask leaves",
        &[DISK],
    ),
    bug(
        "paths-lead-out",
        "a path may lead out of the store's directory",
        &[DISK],
    ),
    bug(
        "raw-to-the-terminal",
        "what a terminal obeys is printed as it is",
        &[it("cli", "hostile::")],
    ),
    bug(
        "home-not-looked-at",
        "a store that was copied elsewhere is written to as if it had not been",
        &[it("log", "segment_log::a_store_that_was_copied")],
    ),
    bug(
        "host-ignored",
        "a request is served whatever its field `Host` says",
        &[it("cli", "served::http::each_row_of_the_table")],
    ),
];
