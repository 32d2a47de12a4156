//! Writers that die, stop and wake.

use super::super::check::breaks;
use super::super::rules::Bounds;
use super::super::state::{Broken, Budget};
use super::{quiet, raises};

#[test]
fn a_head_stored_after_a_look_is_published_for_a_late_frame() {
    breaks(
        |r| r.word_is_swapped = false,
        quiet(3, 1, raises(1)),
        Broken::PrefixChanged,
    );
}

#[test]
fn without_the_in_doubt_bit_a_dead_writers_segment_is_overlooked() {
    let budget = Budget {
        kills: 1,
        ..Budget::default()
    };
    let bounds = Bounds {
        work: vec![(2, 1), (1, 2)],
        ..quiet(2, 1, budget)
    };
    breaks(|r| r.in_doubt_bit = false, bounds, Broken::PrefixChanged);
}

#[test]
fn without_the_epoch_in_the_comparison_a_closed_segment_is_written() {
    let budget = Budget {
        refusals: 2,
        ..raises(1)
    };
    breaks(
        |r| r.epoch_is_compared = false,
        quiet(3, 1, budget),
        Broken::PrefixChanged,
    );
}

#[test]
fn segment_names_without_the_epoch_let_two_epochs_write_one_file() {
    breaks(
        |r| r.names_carry_epoch = false,
        quiet(3, 1, raises(2)),
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn segment_names_without_the_epoch_that_replace_lose_a_segment() {
    breaks(
        |r| (r.names_carry_epoch, r.rename_never_replaces) = (false, false),
        quiet(3, 1, raises(2)),
        Broken::Lineage,
    );
}

#[test]
fn unless_the_highest_epoch_decides_a_woken_rotation_wins() {
    let bounds = Bounds {
        segment_frames: 1,
        ..quiet(2, 2, raises(1))
    };
    breaks(
        |r| r.highest_epoch_decides = false,
        bounds,
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn a_question_without_the_lock_is_answered_too_early() {
    breaks(
        |r| r.question_under_lock = false,
        quiet(3, 1, raises(2)),
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn a_question_by_position_alone_finds_another_frame() {
    breaks(
        |r| r.question_by_chain = false,
        quiet(2, 1, raises(1)),
        Broken::AcknowledgedMissing,
    );
}

#[test]
fn an_answer_before_the_own_segment_is_taken_back() {
    breaks(
        |r| r.own_segment_first = false,
        quiet(3, 1, raises(2)),
        Broken::PrefixChanged,
    );
}

#[test]
fn without_a_raise_a_stopped_holder_strands_everybody() {
    let budget = Budget {
        stops: 1,
        ..raises(1)
    };
    breaks(
        |r| r.epoch_can_be_raised = false,
        quiet(2, 1, budget),
        Broken::Stranded,
    );
}

#[test]
fn a_place_from_a_woken_holder_takes_the_heads_away() {
    let budget = Budget {
        kills: 1,
        ..raises(1)
    };
    let bounds = Bounds {
        places_race: true,
        ..quiet(2, 1, budget)
    };
    breaks(
        |r| r.lost_place_is_repaired = false,
        bounds,
        Broken::Stranded,
    );
}

#[test]
fn a_lock_file_made_again_lets_two_append_at_once() {
    let budget = Budget {
        removals: 1,
        ..raises(1)
    };
    breaks(
        |r| r.removed_lock_ends_epoch = false,
        quiet(2, 1, budget).with_late_openers(),
        Broken::PrefixChanged,
    );
}
