//! The protocol as it is: no promise is broken within the bounds, and every turn named is taken.

use super::branch::Branch as B;
use super::check::{holds, large};
use super::rules::Bounds;
use super::state::Budget;

const NONE: Budget = Budget {
    raises: 0,
    kills: 0,
    stops: 0,
    refusals: 0,
    short_writes: 0,
    failed_syncs: 0,
    evictions: 0,
    shutdowns: 0,
    power_losses: 0,
    removals: 0,
};

/// The bounds of the plain check in the design, and beyond: descriptors opened late, and the sync outside the lock.
#[test]
fn holders_die_or_stand_still_and_are_passed() {
    let budget = Budget {
        raises: 2,
        kills: 1,
        ..NONE
    };
    let work = vec![(if large() { 2 } else { 1 }, 1), (1, 1), (1, 1)];
    let turns = [
        B::NothingNewTrusted,
        B::CaughtUp,
        B::ScannedInDoubt,
        B::TornTailCut,
        B::DeadWritersFrameAdopted,
        B::TookOver,
        B::CarriedOver,
        B::EpochRaised,
        B::MarkFailed,
        B::SettleFailed,
        B::PublishFailed,
        B::LateFrame,
        B::LateSegment,
        B::FoundApplied,
        B::FoundAbsent,
        B::WroteAfterAbsent,
        B::TwoLeaders,
        B::Acknowledged,
        B::AcknowledgedUnderNewerEpoch,
    ];
    holds(
        "die or stand still",
        Bounds {
            work,
            budget,
            ..Bounds::quiet(3, 1)
        }
        .with_late_openers(),
        &turns,
    );
}

#[test]
fn refusals_and_short_writes_come_in_between() {
    let raises = if large() { 2 } else { 1 };
    let budget = Budget {
        raises,
        kills: 1,
        refusals: 1,
        short_writes: 1,
        ..NONE
    };
    let bounds = Bounds {
        budget,
        ..Bounds::quiet(3, 1)
    }
    .with_late_openers();
    holds(
        "refusals, short writes",
        bounds,
        &[
            B::Refused,
            B::TornTailCut,
            B::FoundAbsent,
            B::WroteAfterAbsent,
        ],
    );
}

#[test]
fn segments_are_full_after_every_frame() {
    let budget = Budget {
        raises: 2,
        kills: 1,
        refusals: 1,
        ..NONE
    };
    let mut bounds = Bounds {
        segment_frames: 1,
        budget,
        ..Bounds::quiet(2, 2)
    }
    .with_late_openers();
    if large() {
        bounds.work = vec![(2, 1), (1, 1), (1, 1)];
    }
    holds(
        "rotation",
        bounds,
        &[
            B::Rotated,
            B::RotatedUnderLeader,
            B::LateSegment,
            B::DeadWritersFrameAdopted,
        ],
    );
}

#[test]
fn woken_writers_write_over_the_place_of_the_head() {
    let budget = Budget {
        raises: 2,
        kills: 1,
        ..NONE
    };
    let mut bounds = Bounds {
        segment_frames: 1,
        places_race: true,
        budget,
        ..Bounds::quiet(2, 2)
    };
    if large() {
        bounds = Bounds {
            segment_frames: 2,
            ..bounds
        };
        bounds.work = vec![(1, 1); 3];
    }
    holds("places", bounds, &[B::StalePlace, B::PlaceRepaired]);
}

#[test]
fn the_stopped_strand_nobody() {
    let budget = Budget {
        raises: if large() { 2 } else { 1 },
        stops: 1,
        ..NONE
    };
    let bounds = Bounds {
        budget,
        ..Bounds::quiet(3, 1)
    }
    .with_late_openers();
    holds(
        "stopped for ever",
        bounds,
        &[B::EpochRaised, B::LeaderOvertaken, B::TwoLeaders],
    );
}

#[test]
fn batches_are_in_the_log_whole_or_in_part() {
    let budget = Budget {
        raises: 2,
        kills: 1,
        refusals: 1,
        short_writes: 1,
        ..NONE
    };
    let mut bounds = Bounds {
        work: vec![(1, 2); 2],
        segment_frames: 3,
        budget,
        ..Bounds::quiet(2, 1)
    };
    if large() {
        bounds.work = vec![(1, 2), (1, 2), (1, 1)];
    }
    holds(
        "batches",
        bounds,
        &[
            B::FoundInPart,
            B::FoundApplied,
            B::FoundAbsent,
            B::Rotated,
            B::TornTailCut,
        ],
    );
}

#[test]
fn batches_lose_power() {
    let budget = Budget {
        raises: 1,
        power_losses: 2,
        ..NONE
    };
    let work = if large() {
        vec![(2, 2), (2, 1)]
    } else {
        vec![(2, 2), (1, 1)]
    };
    let bounds = Bounds {
        work,
        segment_frames: 3,
        budget,
        ..Bounds::quiet(2, 1)
    };
    holds(
        "batches and power",
        bounds,
        &[B::PowerLossTookPublished, B::TornTailCut, B::CarriedOver],
    );
}

#[test]
fn the_power_goes_at_any_moment() {
    let budget = Budget {
        raises: 1,
        kills: 1,
        power_losses: 1,
        ..NONE
    };
    let mut bounds = Bounds {
        segment_frames: 1,
        budget,
        ..Bounds::quiet(2, 2)
    }
    .with_late_openers();
    if large() {
        bounds = Bounds {
            segment_frames: 2,
            work: vec![(1, 1); 3],
            ..bounds
        };
        bounds.budget.raises = 2;
    }
    holds(
        "power",
        bounds,
        &[
            B::PowerLossTookPublished,
            B::Rotated,
            B::CarriedOver,
            B::FoundApplied,
            B::OpenedToLead,
        ],
    );
}

#[test]
fn the_power_goes_twice() {
    let budget = Budget {
        raises: u8::from(large()),
        kills: 1,
        power_losses: 2,
        ..NONE
    };
    let bounds = Bounds {
        budget,
        ..Bounds::quiet(2, 2)
    };
    holds(
        "power twice",
        bounds,
        &[B::PowerLossTookPublished, B::Rotated, B::TornTailCut],
    );
}

#[test]
fn a_sync_fails() {
    let budget = Budget {
        raises: 1,
        kills: u8::from(large()),
        failed_syncs: 1,
        power_losses: 1,
        ..NONE
    };
    let bounds = Bounds {
        budget,
        ..Bounds::quiet(2, 2)
    }
    .with_late_openers();
    let turns = [
        B::Poisoned,
        B::PoisonMet,
        B::AnsweredUnknown,
        B::WrittenAgain,
        B::SyncFailedForAnother,
        B::CarriedOver,
        B::Rotated,
    ];
    holds("failed sync", bounds, &turns);
}

#[test]
fn a_leader_that_was_passed_fails_later() {
    let budget = Budget {
        failed_syncs: 1,
        power_losses: 1,
        ..NONE
    };
    let work = vec![(1, 1), (2, 1), (1, 1)];
    let mut bounds = Bounds {
        work,
        segment_frames: 4,
        late: vec![0b100],
        budget,
        ..Bounds::quiet(3, 1)
    };
    if large() {
        bounds = bounds.with_late_openers();
    }
    holds(
        "leader passed",
        bounds,
        &[
            B::TwoLeaders,
            B::WrittenAgain,
            B::SyncFailedForAnother,
            B::AnsweredUnknown,
        ],
    );
}

#[test]
fn a_failed_sync_takes_the_bytes_away() {
    let budget = Budget {
        raises: 1,
        failed_syncs: 1,
        evictions: 1,
        power_losses: u8::from(large()),
        ..NONE
    };
    let bounds = Bounds {
        segment_frames: 3,
        budget,
        ..Bounds::quiet(2, 2)
    }
    .with_late_openers();
    let turns = [
        B::Evicted,
        B::ShortLogMet,
        B::NotThereToWriteAgain,
        B::AnsweredUnknown,
    ];
    holds("failed sync, bytes gone", bounds, &turns);
}

#[test]
fn the_file_system_is_shut_down() {
    let budget = Budget {
        raises: u8::from(large()),
        shutdowns: 1,
        power_losses: 1,
        ..NONE
    };
    let bounds = Bounds {
        budget,
        ..Bounds::quiet(2, 2)
    }
    .with_late_openers();
    holds(
        "shutdown",
        bounds,
        &[
            B::ProbeFailed,
            B::AnsweredUnknown,
            B::PowerLossTookPublished,
        ],
    );
}

#[test]
fn a_lock_file_is_removed() {
    let budget = Budget {
        raises: 1,
        kills: 1,
        removals: 1,
        ..NONE
    };
    let mut bounds = Bounds {
        budget,
        ..Bounds::quiet(3, 1)
    };
    if large() {
        bounds.budget.raises = 2;
        bounds.budget.power_losses = 1;
    }
    holds(
        "lock removed",
        bounds.with_late_openers(),
        &[B::LockMissed, B::TookOver, B::CarriedOver, B::LateFrame],
    );
}

#[test]
fn a_holder_dies_between_a_failed_sync_of_zeros_and_its_report() {
    let budget = Budget {
        raises: 1,
        kills: 1,
        failed_syncs: 1,
        power_losses: 2,
        ..NONE
    };
    let bounds = Bounds {
        budget,
        ..Bounds::quiet(2, if large() { 2 } else { 1 })
    };
    holds("zeros", bounds, &[B::ZerosLeftBehind, B::TornTailCut]);
}

#[test]
fn leaders_have_descriptors_of_their_own() {
    let budget = Budget {
        failed_syncs: 1,
        refusals: if large() { 2 } else { 1 },
        power_losses: 1,
        ..NONE
    };
    let bounds = Bounds {
        work: vec![(1, 1), (1, 1), (if large() { 2 } else { 1 }, 1)],
        segment_frames: 4,
        leads_by_another: true,
        late: vec![0b100],
        budget,
        ..Bounds::quiet(3, 1)
    };
    holds(
        "own descriptors",
        bounds,
        &[B::OpenedToLead, B::WrittenAgain, B::SyncFailedForAnother],
    );
}
