//! Guards that stand behind another one: switched back alone, they break nothing. They are kept, because what stands
//! before them is a promise of somebody else's: of a file system, of a kernel, of whoever copies a store.

use super::super::check::holds_without;
use super::super::rules::Bounds;
use super::super::state::Budget;
use super::{power, quiet};

#[test]
fn epochs_in_names_hold_where_a_rename_replaces() {
    let budget = Budget {
        raises: 1,
        kills: 1,
        refusals: 1,
        ..power()
    };
    let bounds = Bounds {
        segment_frames: 1,
        ..quiet(2, 1, budget)
    };
    holds_without(
        "a rename that replaces",
        |r| r.rename_never_replaces = false,
        bounds.with_late_openers(),
    );
}

#[test]
fn segments_hold_where_a_lock_entry_is_lost() {
    let budget = Budget {
        raises: 1,
        kills: 1,
        ..power()
    };
    holds_without(
        "lost lock entries",
        |r| r.lock_entry_synced = false,
        quiet(2, 1, budget),
    );
    holds_without(
        "lock entries alone",
        |r| r.segments_count_for_epoch = false,
        quiet(2, 1, budget),
    );
}

#[test]
fn writing_older_frames_again_holds_where_no_target_is_left_behind() {
    let budget = Budget {
        raises: 1,
        kills: 1,
        failed_syncs: 1,
        ..power()
    };
    let bounds = quiet(2, 1, budget).with_late_openers();
    holds_without("no targets", |r| r.target_is_left_behind = false, bounds);
}
