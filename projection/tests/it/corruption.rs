//! Every change of a store is found by `verify`, or lies in a range that `docs/format.md` declares don't-care (F07).
//!
//! The store is one that a writer left: segments, seals, a control page, frames of every kind that the rules' random
//! streams make. The ordinary run takes a sample of each sort of change; `TENURE_EXHAUSTIVE=1` takes all of them, best
//! with `--release`, and says how many they were.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_log::position::{Position, Receipt};
use tenure_log::recovery::Row;
use tenure_log::verify::{Options, Outcome, Report, verify};

mod image;

use image::{Image, Place};

/// Whether every change is made, not a sample.
fn is_exhaustive() -> bool {
    std::env::var_os("TENURE_EXHAUSTIVE").is_some_and(|v| v == "1")
}

/// What a sample leaves out between two changes: numbers without a common factor with what is changed.
fn stride(sample: usize) -> usize {
    if is_exhaustive() { 1 } else { sample }
}

/// How many frames the store has.
fn size() -> usize {
    if is_exhaustive() { 300 } else { 120 }
}

/// What `verify` says; each byte of each segment is accounted for, whatever was done to it.
fn judged(image: &Image) -> Report {
    let report = verify(&image.files, &Options::default());
    let bytes: usize = image.segments.values().map(|bytes| bytes.len()).sum();
    assert_eq!(
        report.coverage.accounts.sum(),
        bytes as u64,
        "{:?}",
        report.coverage
    );
    report
}

/// With the receipt of the newest frame, as somebody holds it outside.
fn judged_by(image: &Image, receipt: Receipt) -> Report {
    let receipts = vec![receipt];
    verify(
        &image.files,
        &Options {
            receipts,
            ..Options::default()
        },
    )
}

/// The ranges of the page, by their names, as changes are found in them.
#[derive(Default)]
struct Counts {
    found: AtomicU64,
    late: AtomicU64,
    prepared: AtomicU64,
}

impl Counts {
    fn say(&self, what: &str) -> u64 {
        let counts = [&self.found, &self.late, &self.prepared];
        let [found, late, prepared] = counts.map(|n| n.load(Ordering::Relaxed));
        println!("{what}: {found} found; {late} in `late`, {prepared} in `prepared`");
        found
    }

    /// Counts a change from `at` of a segment on, made as it says.
    fn count(&self, image: &Image, place: (&str, usize), is_cut: bool, report: &Report) {
        let range = image.dont_care(place.0, place.1, is_cut);
        let counter = match (range, report.outcome) {
            (Some("late"), Outcome::Clean) => &self.late,
            (Some("prepared"), Outcome::Clean) => &self.prepared,
            (None, Outcome::Damaged | Outcome::TornTail) => &self.found,
            (None, Outcome::Incomplete) if !report.findings.is_empty() => &self.found,
            _ => panic!(
                "{place:?} in {range:?}: {:?} {:?}",
                report.row, report.findings
            ),
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Gives numbers below `end` to as many threads as the machine has, each with an image of its own.
fn on_threads(image: &Image, end: usize, each: impl Fn(&mut Image, usize) + Sync) {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut own = image.deep();
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed) as usize;
                    if n >= end {
                        break;
                    }
                    each(&mut own, n);
                }
            });
        }
    });
}

/// The page names the ranges that this test knows, and no other.
#[test]
fn the_page_declares_the_ranges_that_are_not_looked_at() {
    let page = include_str!("../../../docs/format.md");
    let (_, section) = page
        .split_once("## Don't-care ranges")
        .expect("it is there");
    let section = section.split("\n## ").next().expect("it ends");
    let rows = section.lines().filter(|l| l.starts_with("| `"));
    let names: BTreeSet<&str> = rows
        .map(|row| row.split('`').nth(1).expect("a name"))
        .collect();
    assert_eq!(names, BTreeSet::from(["late", "prepared"]));
}

/// The store itself is what it should be: several segments, seals, many kinds of frames, all of it good.
#[test]
fn the_store_that_is_damaged_is_whole() {
    let image = Image::of_a_store(size());
    let report = judged_by(&image, image.receipt);
    assert_eq!((report.outcome, report.row), (Outcome::Clean, Row::Clean));
    assert_eq!(report.findings, []);
    assert!(report.coverage.skipped.is_empty(), "{:?}", report.coverage);
    assert!(report.coverage.segments >= 4, "{:?}", report.coverage);
    assert_eq!(report.coverage.seals, report.coverage.segments - 1);
    assert_eq!(report.coverage.frames, image.frames.len() as u64);
    assert_eq!(report.coverage.horizon, image.receipt.position);
    assert!(image.kinds >= 40, "{} kinds", image.kinds);
}

/// F07, F14, LOG-6: every flipped bit of every segment.
#[test]
fn every_flipped_bit_of_a_store_is_found() {
    let image = Image::of_a_store(size());
    let counts = Counts::default();
    for (name, bytes) in &image.segments {
        let step = stride(97);
        on_threads(&image, (bytes.len() * 8).div_ceil(step), |own, n| {
            let (at, bit) = (n * step / 8, n * step % 8);
            own.edit(name, |bytes| bytes[at] ^= 1 << bit);
            counts.count(&image, (name, at), false, &judged(own));
            own.edit(name, |bytes| bytes[at] ^= 1 << bit);
        });
    }
    assert!(counts.say("flipped bits") > 3000);
    assert!(counts.late.into_inner() > 0);
}

/// F14: seals and the control page can be made anew: a flipped bit there damages nothing, and a seal that says
/// otherwise is not counted as one that holds.
#[test]
fn a_flipped_bit_beside_the_segments_is_no_damage_to_the_log() {
    let image = Image::of_a_store(size());
    let step = stride(53);
    for (name, seal) in &image.seals {
        on_threads(&image, (seal.len() * 8).div_ceil(step), |own, n| {
            let bit = n * step;
            own.seals.get_mut(name).expect("it is there")[bit / 8] ^= 1 << (bit % 8);
            let report = judged(own);
            let held = report.coverage.seals == image.seals.len() as u64;
            assert!(!held, "bit {bit} of the seal of {name}");
            own.seals.get_mut(name).expect("it is there")[bit / 8] ^= 1 << (bit % 8);
        });
    }
    let page = image.control.clone().expect("it is there");
    on_threads(&image, (page.len() * 8).div_ceil(step), |own, n| {
        let bit = n * step;
        let mut page = page.clone();
        page[bit / 8] ^= 1 << (bit % 8);
        own.control = Some(page);
        assert_eq!(judged(own).outcome, Outcome::Clean, "bit {bit} of the page");
    });
}

/// F01, F02, LOG-2: the store cut at every byte of every segment, as it stands and as a copy without its control page,
/// where a receipt held outside says what is missing.
#[test]
fn every_cut_of_a_store_is_found() {
    let image = Image::of_a_store(size());
    let counts = Counts::default();
    let mut copied = image.deep();
    copied.control = None;
    for (name, bytes) in &image.segments {
        let step = stride(41);
        on_threads(&image, bytes.len().div_ceil(step), |own, n| {
            let at = n * step;
            own.replace(name, bytes[..at].to_vec());
            counts.count(&image, (name, at), true, &judged(own));
            own.restore(&image);
        });
        on_threads(&copied, bytes.len().div_ceil(step), |own, n| {
            let at = n * step;
            own.replace(name, bytes[..at].to_vec());
            counts.count(&image, (name, at), true, &judged_by(own, image.receipt));
            own.restore(&image);
        });
    }
    assert!(counts.say("cuts") > 1000);
    assert!(counts.late.into_inner() + counts.prepared.into_inner() > 0);
}

/// F15, B24: every pair of frames swapped, dropped, and each put behind each once more; as they are, and with header
/// CRCs that are right for their new places, as somebody would make them who edits a store.
#[test]
fn every_pair_swapped_dropped_or_doubled_is_found() {
    let image = Image::of_a_store(size());
    let frames = image.frames.len();
    let (counts, step) = (Counts::default(), stride(17));
    for sealed in [false, true] {
        on_threads(&image, (frames * frames).div_ceil(step), |own, n| {
            let (a, b) = (n * step / frames, n * step % frames);
            let changes: &[image::Change] = match a.cmp(&b) {
                std::cmp::Ordering::Less => &[image::Change::Swap, image::Change::Drop],
                _ => &[],
            };
            for change in changes.iter().chain(&[image::Change::Double]) {
                own.change(*change, a, b, sealed);
                let (name, offset) = own.first_change(&image);
                counts.count(&image, (&name, offset), false, &judged(own));
                own.restore(&image);
            }
        });
    }
    assert!(counts.say("swapped, dropped and doubled") > 1000);
}

fn place(image: &Image, frame: Place) -> (String, usize) {
    (image.name_of(frame).to_owned(), frame.offset)
}

/// F15: frames of another store, and of an older life of this one, put in the place of each frame and behind the last.
#[test]
fn every_frame_of_another_store_or_life_is_found() {
    let image = Image::of_a_store(size());
    let (counts, step) = (Counts::default(), stride(3));
    for other in [image.of_another_store(), image.of_an_older_life()] {
        for sealed in [false, true] {
            on_threads(&image, image.frames.len().div_ceil(step), |own, n| {
                let frame = image.frames[n * step];
                own.splice(&other, n * step, sealed);
                let (name, offset) = place(&image, frame);
                counts.count(&image, (&name, offset), false, &judged(own));
                own.restore(&image);
            });
        }
        for name in other.segments.keys() {
            let mut own = image.deep();
            own.replace(name, other.segments[name].to_vec());
            let report = judged(&own);
            assert_ne!(report.outcome, Outcome::Clean, "{name}");
        }
    }
    assert!(counts.say("spliced frames") > 100);
}

/// The receipt of the newest frame shows a store that was put back to any earlier moment, whole as it is.
#[test]
fn every_rollback_is_shown_by_a_receipt() {
    let image = Image::of_a_store(size());
    for frames in (0..image.frames.len()).step_by(stride(7)) {
        let earlier = image.rolled_back(frames);
        assert_eq!(judged(&earlier).outcome, Outcome::Clean, "{frames}");
        let report = judged_by(&earlier, image.receipt);
        assert_eq!(report.outcome, Outcome::Damaged, "{frames}");
        assert_eq!(report.coverage.horizon, Position(frames as u64));
    }
}
