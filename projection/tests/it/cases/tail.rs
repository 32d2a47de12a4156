//! The end of the log: cut, torn, half written while others look.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::event::{Event, TailSetAside};
use tenure_core::id::Position;
use tenure_log::fault::Fault;
use tenure_log::frame::Depth;
use tenure_log::journal::Deadline;
use tenure_log::recovery::Row;
use tenure_log::verify::{Kind, Outcome};
use tenure_projection::entry;
use tenure_projection::error::Error;
use tenure_projection::projector::Projector;

use super::{Ground, adopt, bytes_at, cut, flip, head, note, notes, numbered, poke, session};

/// The bytes without the zeros behind them.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0);
    &bytes[..end.map_or(0, |last| last + 1)]
}

/// B04, ADO-9, F39: wherever the last frame was cut, it alone is lost, a reader leaves it as it is, `verify` names it,
/// and the next writer moves what is left of it away, goes on, and finds nothing to do the next time.
#[test]
fn a_last_frame_cut_anywhere_costs_itself_and_nothing_else() {
    let ground = Ground::filled(9);
    ground.forget_control();
    let whole = ground.tree();
    let last = ground.frames().pop().expect("a frame");
    let frame = bytes_at(&last.path, last.offset, last.bytes);
    for left in 1..last.bytes {
        ground.restore(&whole);
        cut(&last.path, last.offset + left);
        let torn = ground.tree();
        let report = ground.verify();
        assert_eq!(
            (report.outcome, report.row),
            (Outcome::TornTail, Row::TornTail),
            "{left}"
        );
        assert_eq!(report.findings.len(), 1, "{left}");
        assert_eq!(report.findings[0].offset, last.offset);
        assert_eq!(report.coverage.horizon.0, last.position - 1);
        let reader = ground.read();
        assert_eq!(notes(&reader), numbered(8), "{left}");
        assert_eq!(ground.tree(), torn, "whoever reads changes nothing");

        let store = ground.open();
        assert_eq!(head(&store), last.position - 1);
        let kept = &frame[..usize::try_from(left).expect("small")];
        let quarantined = ground.quarantined();
        assert_eq!(quarantined.len(), 1, "{left}");
        let moved = fs::read(&quarantined[0]).expect("read");
        assert_eq!(trimmed(&moved), trimmed(kept), "{left}");
        let (before, after) = (&torn[&segment(&last)], fs::read(&last.path).expect("read"));
        let end = usize::try_from(last.offset).expect("small");
        assert_eq!(before[..end], after[..end], "the prefix is as it was");

        note(&adopt(&store, "api"), "after").expect("noted");
        drop(store);
        ground.assert_clean();
        let settled = ground.truth();
        let again = ground.open();
        assert_eq!(notes(&again).last().map(String::as_str), Some("after"));
        assert_eq!(
            ground.truth(),
            settled,
            "the second time there is nothing to do"
        );
    }
}

/// What the log says of torn tails: where the events stand, and what they say.
fn set_aside(store: &tenure_projection::reader::Reader) -> Vec<(u64, TailSetAside, String)> {
    let mut found = Vec::new();
    store
        .frames(
            Position(1),
            Position(u64::MAX >> 16),
            Depth::Facts,
            |frame| {
                let entry = entry::decode(frame)?;
                for event in &entry.events {
                    if let Event::TailSetAside(event) = event {
                        let file = String::from_utf8(entry.texts.get(event.file).to_vec());
                        found.push((entry.at.position.0, event.clone(), file.expect("UTF-8")));
                    }
                }
                Ok(true)
            },
        )
        .expect("it reads");
    found
}

/// Recovery rows 6 and 7: a torn tail is recorded once, in a frame of the store's own before the next append, by whoever
/// appends next: also when the one who repaired it died before, and when its bytes are torn again elsewhere later.
#[test]
fn a_torn_tail_is_recorded_once_by_whoever_appends_next() {
    let ground = Ground::filled(9);
    let mut recorded = Vec::new();
    for round in 0..3 {
        ground.forget_control();
        let last = ground.frames().pop().expect("a frame");
        poke(&last.path, last.end(), b"TNF1 and no more");
        if round > 0 {
            // It repairs, and ends before it appends.
            drop(ground.open());
            ground.forget_control();
        }
        let store = ground.open();
        assert_eq!(set_aside(&store), recorded, "opening appends nothing");
        note(&adopt(&store, "api"), &format!("after {round}")).expect("noted");
        let files = ground.quarantined();
        assert_eq!(files.len(), round + 1);
        let found = set_aside(&store);
        let [.., (at, event, file)] = &found[..] else {
            panic!("not recorded")
        };
        assert_eq!(*at, last.position + 1, "before everything else");
        assert_eq!((event.offset, event.bytes), (last.end(), 16));
        assert!(files.contains(&ground.dir.join("quarantine").join(file)));
        assert!(
            last.path
                .ends_with(file.split_once(".seg.").expect("its segment").0.to_owned() + ".seg")
        );
        recorded.push((*at, event.clone(), file.clone()));
        note(&adopt(&store, "api"), "again").expect("noted");
        drop(store);
        note(&adopt(&ground.open(), "api"), "and again").expect("noted");
        assert_eq!(set_aside(&ground.read()), recorded, "once");
        ground.assert_clean();
    }
}

fn segment(frame: &super::Stored) -> std::path::PathBuf {
    std::path::Path::new("segments").join(frame.path.file_name().expect("a name"))
}

/// B04, F39: what is known to have been durable is no torn tail, and is not cut off.
#[test]
fn a_last_frame_that_was_durable_is_damage_wherever_it_is_cut() {
    let ground = Ground::filled(9);
    let whole = ground.tree();
    let last = ground.frames().pop().expect("a frame");
    for left in (0..last.bytes).step_by(7) {
        ground.restore(&whole);
        cut(&last.path, last.offset + left);
        let report = ground.verify();
        assert_eq!(
            (report.outcome, report.row),
            (Outcome::Damaged, Row::DurableBad),
            "{left}"
        );
        let found = ground.truth();
        let store = ground.try_open();
        let refused = store.and_then(|store| store.head().map(drop));
        // Whether it is found at once or by the first who appends, it is damage and it stays.
        let store = match refused {
            Err(error) => Err(error),
            Ok(()) => ground.try_open(),
        };
        assert!(is_damage(store.map(drop)), "{left}");
        assert_eq!(ground.truth(), found, "{left}");
    }
}

pub fn is_damage(outcome: Result<(), Error>) -> bool {
    let Err(Error::Log(error)) = outcome else {
        return false;
    };
    matches!(&*error, tenure_log::error::Error::Damaged(_))
}

/// B05, F25: a writer killed after any number of bytes of a frame leaves a stub; nobody appends behind it.
#[test]
fn a_stub_of_a_frame_is_moved_away_before_anything_is_appended() {
    let ground = Ground::filled(6);
    let before = ground.tree();
    let store = ground.open();
    note(&adopt(&store, "api"), "never acknowledged").expect("noted");
    drop(store);
    let frames = ground.frames();
    let (adoption, stub) = (&frames[frames.len() - 2], &frames[frames.len() - 1]);
    assert_eq!(adoption.path, stub.path, "both in one segment");
    let bytes = bytes_at(&stub.path, adoption.offset, stub.end() - adoption.offset);
    for written in (1..bytes.len()).step_by(3) {
        ground.restore(&before);
        poke(&adoption.path, adoption.offset, &bytes[..written]);
        let whole = written as u64 >= adoption.bytes;
        let torn = written as u64 != adoption.bytes;
        let store = ground.open();
        let api = adopt(&store, "api");
        // The frame that says what was cut off stands before it.
        let expected = adoption.position + u64::from(whole) + u64::from(torn);
        assert_eq!(head(&store), expected, "{written}");
        note(&api, "X").expect("noted");
        drop(store);
        let mut expected = numbered(6);
        expected.push("X".into());
        assert_eq!(notes(&ground.read()), expected, "{written}");
        ground.assert_clean();
        assert_eq!(ground.quarantined().len(), usize::from(torn), "{written}");
    }
}

/// F25, F34: one to sixty-four bytes of anything behind the last frame, again and again: every append is found later, and
/// positions go on without a gap.
#[test]
fn junk_behind_the_last_frame_never_hides_what_comes_after() {
    let ground = Ground::filled(1);
    let mut expected = numbered(1);
    let junk: Vec<Vec<u8>> = (1..=64)
        .map(|n| vec![b'x'; n])
        .chain([
            b"TNF1".to_vec(),
            vec![8],
            b"TNF1\x08\0\0\0\x08\0\0\0".to_vec(),
        ])
        .collect();
    for (n, junk) in junk.iter().enumerate() {
        let last = ground.frames().pop().expect("a frame");
        let mut bytes = fs::read(&last.path).expect("read");
        let end = usize::try_from(last.end()).expect("small");
        bytes.resize(bytes.len().max(end + junk.len()), 0);
        bytes[end..end + junk.len()].copy_from_slice(junk);
        super::write_private(&last.path, &bytes);
        if n % 2 == 0 {
            // Killed with this boot's page, or found after a reboot.
            ground.forget_control();
        }
        let store = ground.open();
        let text = format!("after junk {n}");
        note(&adopt(&store, "api"), &text).expect("noted");
        drop(store);
        expected.push(text);
        ground.assert_clean();
    }
    assert_eq!(notes(&ground.read()), expected);
    let positions: Vec<u64> = ground.frames().iter().map(|frame| frame.position).collect();
    let rising: Vec<u64> = (1..=positions.len() as u64).collect();
    assert_eq!(positions, rising);
}

/// F39: damage that the segments' headers and sizes show is refused before a torn tail is touched.
#[test]
fn a_torn_tail_of_a_damaged_store_stays_as_it_is() {
    let ground = Ground::filled(20);
    let segments = ground.segments();
    assert!(segments.len() > 3);
    let last = ground.frames().pop().expect("a frame");
    ground.forget_control();
    cut(&last.path, last.end() - 3);
    cut(&segments[1], 4096 + 100);
    let found = ground.truth();
    assert_eq!(ground.verify().row, Row::Structure);
    assert!(is_damage(ground.try_open().map(drop)));
    assert_eq!(ground.truth(), found);
}

/// B28, F28: whoever follows a log, or verifies it while it is written, passes over no unfinished frame and takes none for
/// damage.
#[test]
fn a_frame_being_written_is_seen_once_and_whole() {
    let ground = Ground::filled(3);
    let store = ground.open();
    let api = adopt(&store, "api");
    let reader = ground.read();
    let before = head(&reader);
    let last = ground.frames().pop().expect("a frame");
    let stub = b"TNF1 the first half of a frame";
    poke(&last.path, last.end(), stub);
    for _ in 0..3 {
        assert_eq!(head(&reader), before);
        let wait = Deadline::after(Duration::from_millis(2));
        reader.wait_beyond(Position(before), wait).expect("waited");
        assert_eq!(notes(&reader), numbered(3));
    }
    let report = ground.verify_live();
    assert_eq!(
        (report.outcome, report.row),
        (Outcome::Clean, Row::InFlight)
    );
    assert!(
        matches!(report.findings[..], [ref found] if matches!(found.kind, Kind::InFlight(Fault::HeaderCrc { .. })))
    );
    note(&api, "whole").expect("noted");
    let mut expected = numbered(3);
    expected.push("whole".into());
    assert_eq!(notes(&reader), expected);
    assert_eq!(head(&reader), before + 1);
}

/// B28, F28: `verify` on a store that is being written says so and finds nothing, segment after segment.
#[test]
fn verify_of_a_live_store_finds_nothing() {
    let ground = Ground::filled(1);
    let done = AtomicBool::new(false);
    let looked = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let (mut looked, mut horizon) = (0, 0);
            while !done.load(Ordering::Relaxed) || looked < 3 {
                let report = ground.verify_live();
                assert_eq!(report.outcome, Outcome::Clean, "{:?}", report.findings);
                assert!(report.coverage.horizon.0 >= horizon, "it only grows");
                horizon = report.coverage.horizon.0;
                looked += 1;
            }
            looked
        });
        let store = ground.open();
        let api = adopt(&store, "api");
        for n in 0..120 {
            note(&api, &format!("live {n} {}", "x".repeat(n * 3))).expect("noted");
        }
        done.store(true, Ordering::Relaxed);
        looking.join().expect("it looked to the end")
    });
    assert!(looked >= 3);
    assert!(
        ground.segments().len() > 10,
        "segments were closed meanwhile"
    );
    ground.assert_clean();
}

/// F34: after each of several crashes positions and numbers go on behind the last that was acknowledged.
#[test]
fn numbers_go_on_after_every_crash() {
    let ground = Ground::new();
    let mut expected = Vec::new();
    drop(session(&ground.open(), "api"));
    for crash in 0..6 {
        let store = ground.open();
        let api = adopt(&store, "api");
        for n in 0..4 {
            let text = format!("{crash}.{n}");
            let done = note(&api, &text).expect("noted");
            assert_eq!(done.at.position.0, ground.frames().len() as u64, "{text}");
            expected.push(text);
        }
        // As after a kill: the page says nothing that was synced, and half a frame is left.
        std::mem::forget(store);
        let last = ground.frames().pop().expect("a frame");
        poke(
            &last.path,
            last.end(),
            &bytes_at(&last.path, last.offset, last.bytes / 2),
        );
        if crash % 2 == 0 {
            ground.forget_control();
        }
    }
    let store = ground.open();
    note(&adopt(&store, "api"), "last").expect("noted");
    expected.push("last".into());
    assert_eq!(notes(&store), expected);
    let mut replay = Projector::new();
    replay.read(&store, None, &mut []).expect("replayed");
    assert_eq!(replay.findings(), []);
    drop(store);
    ground.assert_clean();
    let first = &ground.frames()[0];
    flip(&first.path, first.offset + 90);
    assert_eq!(
        ground.verify().outcome,
        Outcome::Damaged,
        "the check can fail"
    );
}
