//! `verify` and what is known from outside the frames: receipts and the control page; and that looking leaves no trace.

use tenure_log::control::place::{DurableMark, HeadPlace};
use tenure_log::control::{Birth, Word};
use tenure_log::error::Next;
use tenure_log::inspect::inspect_all;
use tenure_log::look::PlainDirectory;
use tenure_log::position::{Epoch, Head, Position, Receipt, StoreId};
use tenure_log::recovery::Row;
use tenure_log::scan::Checks;
use tenure_log::storage::BootId;
use tenure_log::verify::{Options, Outcome, ReceiptState, verify};

use crate::store::{Builder, Files, STORE};

/// A receipt held outside of the store finds a rollback and a rewritten history that are whole in themselves.
#[test]
fn receipts_find_a_rollback_and_a_split_view() {
    let mut builder = Builder::born();
    builder.append_many(4);
    let receipt = |position: u64, chain| Receipt {
        store: STORE,
        position: Position(position),
        chain,
    };
    let fourth = receipt(4, builder.head.chain);
    let state = |files: &Files, receipt| {
        let report = verify(
            files,
            &Options {
                receipts: vec![receipt],
                ..Options::default()
            },
        );
        assert_eq!(report.receipts.len(), 1);
        let broken = report.receipts[0].1 != ReceiptState::Kept;
        assert_eq!(
            report.outcome == Outcome::Damaged,
            broken,
            "{:?}",
            report.findings
        );
        assert_eq!(
            report
                .findings
                .iter()
                .any(|finding| finding.next == Next::OtherCopy),
            broken
        );
        report.receipts[0].1
    };
    assert_eq!(state(&builder.files, fourth), ReceiptState::Kept);

    let mut rolled_back = Builder::born();
    rolled_back.append_many(3);
    assert_eq!(
        state(&rolled_back.files, fourth),
        ReceiptState::Ahead { head: Position(3) }
    );

    rolled_back.durable_behind = 2;
    rolled_back.append_many(2);
    let found = state(&rolled_back.files, fourth);
    assert!(matches!(found, ReceiptState::Differs { .. }), "{found:?}");

    let foreign = Receipt {
        store: StoreId([1; 16]),
        ..fourth
    };
    assert_eq!(
        state(&builder.files, foreign),
        ReceiptState::OtherStore { found: STORE }
    );
    let (name, offset, _) = builder.frames[3];
    builder.append_many(2).file(name)[offset + 84] ^= 1;
    assert_eq!(state(&builder.files, fourth), ReceiptState::Unreadable);
}

/// LOG-8: looking changes no byte, no name and no time, and waits for no lock.
#[test]
fn verify_and_inspect_change_nothing_and_take_no_lock() {
    let scratch = tempfile::tempdir().expect("a directory");
    let segments = scratch.path().join("segments");
    std::fs::create_dir(&segments).expect("fresh");
    let mut builder = Builder::small();
    let (name, offset, _) = builder.frames[7];
    builder.file(name)[offset + 84] ^= 1;
    let mut locked = Vec::new();
    for (name, bytes) in &builder.files.0 {
        std::fs::write(segments.join(name), bytes).expect("writable");
        let file = std::fs::File::open(segments.join(name)).expect("there");
        file.lock().expect("nobody else has it");
        locked.push(file);
    }
    let state = || {
        let entries = std::fs::read_dir(&segments)
            .expect("listed")
            .map(|entry| entry.expect("listed").path());
        let mut state: Vec<_> = entries
            .map(|path| {
                let changed = std::fs::metadata(&path)
                    .expect("there")
                    .modified()
                    .expect("known");
                (
                    path.clone(),
                    std::fs::read(path).expect("readable"),
                    changed,
                )
            })
            .collect();
        state.sort();
        state
    };
    let before = state();
    let look = PlainDirectory::new(scratch.path());
    assert_eq!(
        verify(&look, &Options::default()).row,
        Row::TornTailGoodBehind
    );
    inspect_all(&look, Checks::ALL, &mut |_| {}).expect("listed");
    assert_eq!(state(), before);
    assert_eq!(locked.len(), 3);
}

fn page_of(builder: &Builder, store: StoreId, durable: Position) -> Vec<u8> {
    let head = builder.head;
    let place = HeadPlace {
        head,
        segment: builder.header.name(),
        offset: 0,
        end: 0,
    };
    let mark = DurableMark {
        head: Head {
            position: durable,
            ..head
        },
        segment: place.segment,
        end: 0,
    };
    let word = Word {
        epoch: Epoch(2),
        head: head.position,
        in_doubt: false,
    };
    let boot = BootId([7; 16]);
    Birth {
        boot,
        store,
        word,
        place,
        durable: Position::ZERO,
        mark: Some(mark),
    }
    .bytes()
}

/// The control page's durable mark is read before the segments; a page that can tell nothing is said to be skipped.
#[test]
fn the_durable_mark_of_the_control_page_is_believed_when_it_is_of_this_store() {
    let mut builder = Builder::small();
    let page = |store, position| page_of(&builder, store, Position(position));
    let whole = page(STORE, 9);
    let foreign = page(StoreId([1; 16]), 9);
    let lesser = page(STORE, 8);
    let (name, offset, _) = builder.frames[8];
    builder.file(name)[offset + 84] ^= 1;
    let mut judge = |control: Option<Vec<u8>>| {
        builder.files.1 = control;
        let report = verify(&builder.files, &Options::default());
        (
            report.row,
            report.coverage.skipped.first().map(|skipped| skipped.why),
        )
    };
    assert_eq!(judge(Some(whole.clone())), (Row::DurableBad, None));
    assert_eq!(judge(Some(lesser.clone())), (Row::TornTail, None));
    let foreign = judge(Some(foreign));
    assert_eq!(
        foreign,
        (Row::TornTail, Some("it belongs to another store"))
    );
    for nothing in [None, Some(vec![0; 12288]), Some(whole[..12280].to_vec())] {
        let (row, why) = judge(nothing);
        assert_eq!(row, Row::TornTail);
        assert!(
            why.is_some_and(|why| why.ends_with("is not known")),
            "{why:?}"
        );
    }
    let mut torn = whole;
    // Pages that differ in their mark alone show where it stands.
    let at = torn
        .iter()
        .zip(&lesser)
        .position(|(one, other)| one != other);
    torn[at.expect("the marks differ") + 2] ^= 1;
    assert_eq!(
        judge(Some(torn)),
        (Row::TornTail, None),
        "its checksum is wrong"
    );
}
