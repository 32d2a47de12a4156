//! Syncs, and what a power loss leaves.

use super::super::check::breaks;
use super::super::rules::Bounds;
use super::super::state::{Broken, Budget};
use super::{power, quiet};

#[test]
fn a_cut_that_is_not_synced_brings_frames_of_another_history_back() {
    let budget = Budget {
        power_losses: 2,
        ..Budget::default()
    };
    let bounds = Bounds {
        segment_frames: 4,
        ..quiet(2, 2, budget)
    };
    breaks(
        |r| r.cut_is_synced = false,
        bounds,
        Broken::DecidedElsewhere,
    );
}

#[test]
fn a_name_before_its_bytes_outlives_them() {
    let bounds = Bounds {
        segment_frames: 1,
        ..quiet(2, 1, power())
    };
    breaks(
        |r| r.segment_synced_before_name = false,
        bounds,
        Broken::Lineage,
    );
}

#[test]
fn a_segment_used_before_its_entry_is_synced_is_gone_after_a_power_loss() {
    let bounds = Bounds {
        segment_frames: 1,
        ..quiet(2, 1, power())
    };
    breaks(
        |r| r.entry_synced_before_use = false,
        bounds,
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn a_dead_creators_entry_has_to_be_synced_by_who_finds_it() {
    let bounds = Bounds {
        segment_frames: 1,
        ..quiet(
            2,
            2,
            Budget {
                kills: 1,
                ..power()
            },
        )
    };
    breaks(|r| r.found_entry_synced = false, bounds, Broken::Lineage);
}

#[test]
fn a_raise_without_a_synced_lock_entry_gives_an_epoch_twice() {
    breaks(
        |r| (r.lock_entry_synced, r.segments_count_for_epoch) = (false, false),
        quiet(
            2,
            2,
            Budget {
                raises: 1,
                ..power()
            },
        ),
        Broken::PrefixChanged,
    );
}

#[test]
fn a_segment_closed_without_a_sync_loses_its_end() {
    let bounds = Bounds {
        segment_frames: 1,
        ..quiet(2, 1, power())
    };
    breaks(|r| r.closed_segment_synced = false, bounds, Broken::Gap);
}

#[test]
fn an_acknowledgement_before_the_sync_is_lost_with_the_power() {
    breaks(
        |r| r.acknowledged_when_durable = false,
        quiet(2, 1, power()),
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn a_refusal_by_a_head_that_is_not_durable_is_lost_with_the_power() {
    let budget = Budget {
        refusals: 1,
        ..power()
    };
    breaks(
        |r| r.refused_when_durable = false,
        quiet(2, 1, budget),
        Broken::PrefixChanged,
    );
}

#[test]
fn a_leader_that_counts_its_target_before_it_succeeded_promises_too_much() {
    breaks(
        |r| r.durable_after_success = false,
        quiet(2, 1, power()),
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn a_dead_leaders_failure_is_nobodys_unless_frames_are_written_again() {
    let budget = Budget {
        failed_syncs: 1,
        kills: 1,
        ..power()
    };
    breaks(
        |r| (r.target_is_left_behind, r.older_frames_written_again) = (false, false),
        quiet(2, 1, budget).with_late_openers(),
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn a_target_without_success_does_not_show_every_stopped_leader() {
    let budget = Budget {
        failed_syncs: 1,
        ..power()
    };
    let bounds = Bounds {
        work: vec![(1, 1), (2, 1), (1, 1)],
        segment_frames: 4,
        late: vec![0b100],
        ..quiet(3, 1, budget)
    };
    breaks(
        |r| r.older_frames_written_again = false,
        bounds,
        Broken::PrefixChanged,
    );
}

#[test]
fn a_failed_sync_tried_again_succeeds_for_nothing() {
    let budget = Budget {
        failed_syncs: 1,
        raises: 1,
        ..power()
    };
    breaks(
        |r| r.failed_sync_poisons = false,
        quiet(2, 2, budget),
        Broken::PrefixChanged,
    );
}

#[test]
fn carried_frames_with_a_new_chain_are_other_frames() {
    let budget = Budget {
        failed_syncs: 1,
        raises: 1,
        ..Budget::default()
    };
    breaks(
        |r| r.carried_keep_chain = false,
        quiet(2, 2, budget),
        Broken::AbsentPresent,
    );
}

#[test]
fn a_sync_without_a_probe_believes_a_file_system_that_is_gone() {
    let budget = Budget {
        shutdowns: 1,
        ..power()
    };
    breaks(
        |r| r.sync_is_probed = false,
        quiet(2, 1, budget),
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn one_sync_number_strands_the_followers_of_a_stopped_leader() {
    let budget = Budget {
        stops: 1,
        ..Budget::default()
    };
    breaks(
        |r| r.next_sync_number = false,
        quiet(2, 1, budget),
        Broken::Stranded,
    );
}

#[test]
fn a_place_from_a_woken_holder_sends_the_leader_to_the_wrong_file() {
    let budget = Budget {
        raises: 1,
        ..power()
    };
    breaks(
        |r| r.place_epoch_is_compared = false,
        Bounds {
            places_race: true,
            ..quiet(2, 1, budget)
        },
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn a_takeover_that_carries_nothing_closes_over_what_is_not_durable() {
    let budget = Budget {
        raises: 1,
        ..power()
    };
    breaks(
        |r| r.takeover_carries = false,
        quiet(2, 2, budget),
        Broken::Gap,
    );
}

#[test]
fn carried_frames_count_for_nothing_before_the_head_is_settled() {
    let budget = Budget {
        raises: 2,
        ..power()
    };
    breaks(
        |r| r.carried_count_when_settled = false,
        quiet(3, 1, budget),
        Broken::Gap,
    );
}

#[test]
fn a_close_after_a_dead_leader_has_to_write_again() {
    let budget = Budget {
        failed_syncs: 1,
        kills: 1,
        ..power()
    };
    let bounds = Bounds {
        segment_frames: 1,
        ..quiet(2, 1, budget)
    }
    .with_late_openers();
    breaks(
        |r| r.close_writes_again = false,
        bounds,
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn frames_written_again_unread_leave_a_hole() {
    let budget = Budget {
        failed_syncs: 1,
        evictions: 1,
        ..Budget::default()
    };
    let bounds = quiet(2, 1, budget).with_late_openers();
    breaks(
        |r| r.written_again_is_verified = false,
        bounds,
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn a_log_shorter_than_its_head_gives_a_position_twice() {
    let budget = Budget {
        failed_syncs: 1,
        evictions: 1,
        ..Budget::default()
    };
    let bounds = Bounds {
        segment_frames: 4,
        ..quiet(3, 1, budget)
    }
    .with_late_openers();
    breaks(
        |r| (r.short_log_stops, r.short_poisoned_log_stops) = (false, false),
        bounds,
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn zeros_found_in_doubt_may_be_lost_with_who_wrote_them() {
    let budget = Budget {
        kills: 1,
        power_losses: 2,
        ..Budget::default()
    };
    breaks(
        |r| r.found_zeros_synced = false,
        quiet(2, 2, budget),
        Broken::DecidedElsewhere,
    );
}

#[test]
fn a_poisoned_log_shorter_than_its_head_answers_for_anothers_frame() {
    let budget = Budget {
        failed_syncs: 1,
        evictions: 1,
        raises: 1,
        ..Budget::default()
    };
    breaks(
        |r| r.short_poisoned_log_stops = false,
        quiet(2, 2, budget),
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn zeros_that_a_dead_holder_began_count_for_nothing() {
    let budget = Budget {
        kills: 1,
        failed_syncs: 1,
        power_losses: 2,
        ..Budget::default()
    };
    breaks(
        |r| r.zeros_are_marked = false,
        quiet(2, 2, budget),
        Broken::DecidedElsewhere,
    );
}

#[test]
fn a_descriptor_opened_in_doubt_may_be_younger_than_what_is_published_later() {
    let budget = Budget {
        failed_syncs: 1,
        refusals: 2,
        ..power()
    };
    let bounds = Bounds {
        work: vec![(1, 1), (1, 1), (2, 1)],
        segment_frames: 4,
        leads_by_another: true,
        late: vec![0b100],
        ..quiet(3, 1, budget)
    };
    breaks(
        |r| r.opened_in_doubt_is_younger_than_nothing = false,
        bounds,
        Broken::AcknowledgedMissing,
    );
}
