//! What every engine has to do, as checks that panic with what was wrong. One suite for all of them.
//!
//! An engine is handed in as a [`Bench`]: something that opens handles on one and the same journal.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::frame::{Depth, Draft, Frame, Parts};
use crate::journal::{Appended, CounterTag, Deadline, Journal, TransactError};
use crate::position::{Head, Position, TimeMicros};

/// Opens handles on one journal, which is empty at first.
pub trait Bench: Sync {
    /// A handle like that of another process, as far as the engine can tell.
    fn open(&self) -> Arc<dyn Journal>;
}

/// Runs every check, each on a journal of its own that `fresh` makes.
///
/// # Panics
/// When the engine does not conform.
pub fn run(fresh: &dyn Fn() -> Box<dyn Bench>) {
    for check in [
        drafts_become_frames_in_order,
        a_decision_sees_what_it_did_not_know,
        a_head_of_another_log_is_refused,
        nothing_decided_is_nothing_written,
        every_part_comes_back_at_its_limit_and_not_beyond,
        racing_writers_lose_and_double_nothing,
        a_list_then_follow_misses_nothing,
        what_is_durable_is_there_after_reopening,
        a_raise_begins_a_life_that_others_see,
        lives_can_begin_before_anything_and_one_after_the_other,
        waiting_behind_a_position_that_is_not_there_is_an_error,
        counters_and_blobs_are_shared,
    ] {
        check(&*fresh());
    }
}

/// A draft whose parts say what it is.
#[must_use]
pub fn draft(text: &str) -> Draft {
    let parts = Parts {
        facts: format!("facts {text}").into_bytes(),
        texts: text.as_bytes().to_vec(),
        bodies: text.bytes().rev().collect(),
    };
    Draft {
        time: TimeMicros(7),
        parts,
    }
}

/// Appends one draft, whatever stands there, and waits until it is durable.
///
/// # Panics
/// When it cannot.
pub fn append(journal: &dyn Journal, text: &str) -> Appended {
    let mut known = journal.head().expect("a head");
    for _ in 0..1000 {
        match journal.transact(known, Deadline::NEVER, &mut |_| vec![draft(text)]) {
            Ok(appended) => {
                let until = Deadline::after(Duration::from_secs(60));
                journal
                    .wait_durable(appended.head.position, until)
                    .expect("durable");
                return appended;
            }
            Err(TransactError::Moved { appended }) if appended.is_empty() => {
                known = journal.head().expect("a head")
            }
            Err(error) => panic!("{text} was not appended: {error}"),
        }
    }
    panic!("{text} was moved a thousand times");
}

/// All frames behind `after`.
///
/// # Panics
/// When they cannot be read.
pub fn read(journal: &dyn Journal, after: Position) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut walk = journal.read_from(after, Depth::Whole).expect("a walk");
    while let Some(frame) = walk.next() {
        frames.push(frame.expect("a good frame").to_owned());
    }
    frames
}

/// Whether frames follow each other without a gap, from `after` on.
///
/// # Panics
/// When they do not.
pub fn follow_each_other(after: Head, frames: &[Frame]) {
    let mut before = after;
    for frame in frames {
        assert_eq!(
            frame.header.position,
            before.position.next(),
            "positions have no gap"
        );
        let chain = frame.header.chain_after(before.chain, &frame.parts.facts);
        assert_eq!(
            frame.header.chain, chain,
            "the chain follows at {}",
            frame.header.position
        );
        assert!(
            frame.header.durable < frame.header.position,
            "nothing is durable before it is written"
        );
        before = frame.header.head();
    }
}

fn text(frame: &Frame) -> String {
    String::from_utf8(frame.parts.texts.clone()).expect("texts of the suite are UTF-8")
}

fn drafts_become_frames_in_order(bench: &dyn Bench) {
    let journal = bench.open();
    let born = journal.head().expect("a head");
    assert_eq!(born.position, Position::ZERO);
    let nothing = journal.wait_durable(Position::ZERO, Deadline::after(Duration::from_secs(60)));
    assert!(nothing.is_ok(), "nothing is durable at once");
    let drafts: Vec<Draft> = ["a", "b", "c"].map(draft).to_vec();
    let appended = journal.transact(born, Deadline::NEVER, &mut |tail| {
        assert_eq!(tail.head, born);
        assert!(tail.frames.is_empty());
        drafts.clone()
    });
    let appended = appended.expect("appended");
    assert_eq!(appended.first, Position(1));
    assert_eq!(appended.heads.len(), 3);
    assert_eq!(appended.heads.last(), Some(&appended.head));
    assert_eq!(journal.head().expect("a head"), appended.head);
    journal
        .wait_durable(Position(3), Deadline::NEVER)
        .expect("durable");
    assert!(journal.durable().expect("known") >= Position(3));
    let frames = read(&*journal, Position::ZERO);
    follow_each_other(born, &frames);
    let parts: Vec<&Parts> = frames.iter().map(|frame| &frame.parts).collect();
    assert_eq!(
        parts,
        drafts.iter().map(|draft| &draft.parts).collect::<Vec<_>>()
    );
    let heads: Vec<Head> = frames.iter().map(|frame| frame.header.head()).collect();
    assert_eq!(heads, appended.heads);
    assert_eq!(read(&*journal, Position(2)), frames[2..]);
    assert_eq!(read(&*journal, Position(3)), []);
    let beyond = journal.wait_durable(Position(4), Deadline::after(Duration::from_millis(1)));
    assert!(beyond.is_err(), "what was not published is not durable");
}

fn a_decision_sees_what_it_did_not_know(bench: &dyn Bench) {
    let (one, two) = (bench.open(), bench.open());
    let born = one.head().expect("a head");
    for index in 0..5 {
        append(&*one, &format!("{index}"));
    }
    let frames = read(&*one, Position::ZERO);
    let heads: Vec<Head> = [born]
        .into_iter()
        .chain(frames.iter().map(|frame| frame.header.head()))
        .collect();
    for (index, known) in heads.iter().enumerate() {
        let mut calls = 0;
        let answer = two.transact(*known, Deadline::NEVER, &mut |tail| {
            calls += 1;
            assert_eq!(
                tail.frames,
                &frames[index..],
                "the frames behind {}",
                known.position
            );
            assert_eq!(tail.head, heads[5]);
            Vec::new()
        });
        assert_eq!(answer.expect("decided").head, heads[5]);
        assert_eq!(calls, 1, "a decision runs once");
    }
}

fn a_head_of_another_log_is_refused(bench: &dyn Bench) {
    let journal = bench.open();
    for index in 0..3 {
        append(&*journal, &format!("{index}"));
    }
    let frames = read(&*journal, Position::ZERO);
    let chain = frames[0].header.chain;
    for position in [Position::ZERO, Position(2), Position(3), Position(4)] {
        let known = Head { position, chain };
        let answer = journal.transact(known, Deadline::NEVER, &mut |_| {
            panic!("decided on another past")
        });
        let Err(TransactError::Failed(Error::Diverged { known: named, .. })) = answer else {
            panic!("{position} was taken for a head of this log: {answer:?}");
        };
        assert_eq!(named, known);
    }
}

fn nothing_decided_is_nothing_written(bench: &dyn Bench) {
    let journal = bench.open();
    let before = append(&*journal, "one").head;
    let answer = journal
        .transact(before, Deadline::NEVER, &mut |_| Vec::new())
        .expect("decided");
    assert_eq!((answer.first, answer.head), (before.position, before));
    assert_eq!(answer.heads, Vec::new());
    assert_eq!(journal.head().expect("a head"), before);
}

fn every_part_comes_back_at_its_limit_and_not_beyond(bench: &dyn Bench) {
    use crate::options::{BODIES_BYTES_MAX, FACTS_BYTES_MAX, TEXTS_BYTES_MAX};
    let journal = bench.open();
    let sized = |facts: u32, texts: u32, bodies: u32| {
        let part = |len: u32| (0..len).map(|index| index as u8 | 1).collect::<Vec<u8>>();
        let parts = Parts {
            facts: part(facts),
            texts: part(texts),
            bodies: part(bodies),
        };
        Draft {
            time: TimeMicros(-1),
            parts,
        }
    };
    let full = sized(FACTS_BYTES_MAX, TEXTS_BYTES_MAX, BODIES_BYTES_MAX);
    let (empty, before) = (sized(0, 0, 0), journal.head().expect("a head"));
    let batch = vec![empty.clone(), full.clone(), empty.clone()];
    let appended = journal
        .transact(before, Deadline::NEVER, &mut |_| batch.clone())
        .expect("appended");
    let parts: Vec<Parts> = read(&*journal, Position::ZERO)
        .into_iter()
        .map(|frame| frame.parts)
        .collect();
    assert!(
        parts == [empty.parts.clone(), full.parts, empty.parts.clone()],
        "parts at their limits come back"
    );
    for over in [
        (FACTS_BYTES_MAX + 1, 0, 0),
        (0, TEXTS_BYTES_MAX + 1, 0),
        (0, 0, BODIES_BYTES_MAX + 1),
    ] {
        let batch = vec![empty.clone(), sized(over.0, over.1, over.2)];
        let answer = journal.transact(appended.head, Deadline::NEVER, &mut |_| batch.clone());
        assert!(
            matches!(
                answer,
                Err(TransactError::Failed(Error::LimitExceeded { .. }))
            ),
            "{answer:?}"
        );
        assert_eq!(
            journal.head().expect("a head"),
            appended.head,
            "nothing of the batch was appended"
        );
    }
}

fn racing_writers_lose_and_double_nothing(bench: &dyn Bench) {
    const WRITERS: usize = 4;
    const EACH: usize = 25;
    let born = bench.open().head().expect("a head");
    let shared = bench.open();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            // Half of them are threads on one handle, half have handles of their own.
            let journal = if writer % 2 == 0 {
                shared.clone()
            } else {
                bench.open()
            };
            scope.spawn(move || {
                for index in 0..EACH {
                    append(&*journal, &format!("{writer}:{index}"));
                }
            });
        }
    });
    let frames = read(&*bench.open(), Position::ZERO);
    follow_each_other(born, &frames);
    let texts: Vec<String> = frames.iter().map(text).collect();
    let distinct: BTreeSet<&String> = texts.iter().collect();
    assert_eq!(
        (texts.len(), distinct.len()),
        (WRITERS * EACH, WRITERS * EACH),
        "each once"
    );
    for writer in 0..WRITERS {
        let own = texts
            .iter()
            .filter(|text| text.starts_with(&format!("{writer}:")));
        let order: Vec<String> = (0..EACH).map(|index| format!("{writer}:{index}")).collect();
        assert!(own.eq(order.iter()), "in the order they were written");
    }
}

fn a_list_then_follow_misses_nothing(bench: &dyn Bench) {
    const FRAMES: u64 = 60;
    let (writer, reader) = (bench.open(), bench.open());
    let born = reader.head().expect("a head");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for index in 0..FRAMES {
                append(&*writer, &format!("{index}"));
            }
        });
        let (mut seen, mut before) = (Vec::new(), born);
        while before.position.0 < FRAMES {
            let until = Deadline::after(Duration::from_secs(60));
            let head = reader.wait_beyond(before.position, until).expect("a head");
            assert!(
                head.position > before.position,
                "the wait ended with something new"
            );
            let new = read(&*reader, before.position);
            assert!(
                new.len() as u64 >= head.position.0 - before.position.0,
                "all that was announced is read"
            );
            follow_each_other(before, &new);
            before = new.last().map_or(before, |frame| frame.header.head());
            seen.extend(new);
        }
        let texts: Vec<String> = seen.iter().map(text).collect();
        assert_eq!(
            texts,
            (0..FRAMES)
                .map(|index| index.to_string())
                .collect::<Vec<_>>()
        );
    });
    let began = std::time::Instant::now();
    let wait = Duration::from_millis(20);
    let head = reader
        .wait_beyond(Position(FRAMES), Deadline::after(wait))
        .expect("a head");
    assert_eq!(head.position, Position(FRAMES));
    assert!(
        began.elapsed() >= wait,
        "a wait for nothing lasts until its deadline"
    );
}

fn what_is_durable_is_there_after_reopening(bench: &dyn Bench) {
    let journal = bench.open();
    let identity = journal.identity();
    let heads: Vec<Head> = (0..10)
        .map(|index| append(&*journal, &format!("{index}")).head)
        .collect();
    let frames = read(&*journal, Position::ZERO);
    drop(journal);
    let journal = bench.open();
    assert_eq!(journal.identity(), identity);
    assert_eq!(journal.head().expect("a head"), heads[9]);
    assert_eq!(read(&*journal, Position::ZERO), frames);
    let next = append(&*journal, "ten");
    assert_eq!(next.first, Position(11));
}

fn a_raise_begins_a_life_that_others_see(bench: &dyn Bench) {
    let (one, two) = (bench.open(), bench.open());
    let born = one.head().expect("a head");
    let before = append(&*one, "old").head;
    let old = one.identity().incarnation;
    let mut told = None;
    let raised = one.raise(born, Deadline::NEVER, &mut |tail, new| {
        assert_eq!(
            (tail.frames.len(), tail.head, tail.incarnation),
            (1, before, old)
        );
        told = Some(new);
        draft("raised")
    });
    let raised = raised.expect("raised");
    let told = told.expect("the draft was asked for");
    assert!(
        told > old && told.0 <= old.0 + (1 << 31),
        "one plus less than 2^31"
    );
    assert_eq!(one.identity().incarnation, told);
    assert_eq!(two.identity().incarnation, told);
    let next = append(&*two, "new").head;
    let frames = read(&*one, Position::ZERO);
    follow_each_other(born, &frames);
    let lives: Vec<_> = frames
        .iter()
        .map(|frame| frame.header.incarnation)
        .collect();
    assert_eq!(lives, [old, told, told]);
    assert_eq!((raised.first, next.position), (Position(2), Position(3)));
}

/// F19.
fn waiting_behind_a_position_that_is_not_there_is_an_error(bench: &dyn Bench) {
    let log = bench.open();
    let head = append(&*log, "one").head.position;
    for beyond in [1, 2, 1_000_000] {
        let asked = Position(head.0 + beyond);
        let answer = log.wait_beyond(asked, Deadline::NEVER);
        let expected = matches!(&answer, Err(Error::BeyondHead { head: h, asked: a }) if (*h, *a) == (head, asked));
        assert!(expected, "{answer:?}");
    }
}

fn lives_can_begin_before_anything_and_one_after_the_other(bench: &dyn Bench) {
    let (one, two) = (bench.open(), bench.open());
    let born = one.head().expect("a head");
    let mut known = born;
    for journal in [&one, &two, &one] {
        let raised = journal.raise(known, Deadline::NEVER, &mut |tail, _| {
            assert_eq!(tail.head, known);
            draft("raised")
        });
        known = raised.expect("raised").head;
    }
    let frames = read(&*two, Position::ZERO);
    follow_each_other(born, &frames);
    let lives: Vec<_> = frames
        .iter()
        .map(|frame| frame.header.incarnation)
        .collect();
    assert!(lives.is_sorted_by(|one, other| one < other), "{lives:?}");
    append(&*two, "after");
}

fn counters_and_blobs_are_shared(bench: &dyn Bench) {
    let (one, two) = (bench.open(), bench.open());
    let tag = CounterTag(3);
    assert_eq!(one.counters().get(tag), 0);
    assert_eq!(one.counters().add(tag, 2), Some(2));
    assert_eq!(two.counters().add(tag, 3), Some(5));
    let mut all = Vec::new();
    one.counters().for_each(&mut |tag, n| all.push((tag, n)));
    assert_eq!(all, [(tag, 5)]);
    assert_eq!(one.counters().take(tag), 5);
    assert_eq!(two.counters().get(tag), 0);
    one.snapshots()
        .write_atomic("state-1", b"first")
        .expect("written");
    one.snapshots()
        .write_atomic("state-1", b"second")
        .expect("replaced");
    assert_eq!(
        two.snapshots().read("state-1").expect("read"),
        Some(b"second".to_vec())
    );
    let mut part = [0; 64];
    for (offset, room) in [(0, 64), (1, 2), (500, 4)] {
        let whole = two
            .snapshots()
            .read("state-1")
            .expect("read")
            .expect("there");
        let wanted: Vec<u8> = whole.iter().skip(offset).take(room).copied().collect();
        let read = two
            .snapshots()
            .read_part("state-1", offset as u64, &mut part[..room]);
        let read = read.expect("read").expect("there");
        assert_eq!(part[..read], wanted, "{room} bytes from {offset}");
    }
    assert_eq!(
        two.snapshots()
            .read_part("state-2", 0, &mut part)
            .expect("read"),
        None
    );
    assert_eq!(two.snapshots().list().expect("listed"), ["state-1"]);
    for name in ["../home", "a/b", "", ".hidden"] {
        assert!(
            one.snapshots().write_atomic(name, b"").is_err(),
            "{name:?} leads out"
        );
    }
    let mapped = two.snapshots().map("state-1").expect("mapped");
    let mapped = mapped.expect("there");
    one.snapshots()
        .write_atomic("state-1", b"third")
        .expect("replaced");
    assert_eq!(mapped.bytes(), b"second", "what was mapped stays");
    assert!(two.snapshots().map("state-2").expect("mapped").is_none());
    two.snapshots().remove("state-1").expect("removed");
    two.snapshots().remove("state-1").expect("removed already");
    assert_eq!(one.snapshots().read("state-1").expect("read"), None);
}
