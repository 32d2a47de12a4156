//! Corruption: every way in which the bytes of a store at rest can be changed, judged by `verify`, by a salvage and by
//! opening it.
//!
//! What must hold: every change is found, but one of what `docs/format.md` declares not looked at; nothing that was
//! durable is taken for a torn tail; a salvage keeps every frame that is still what was written, and none that is not;
//! and no program answers from bytes that are not what was written.
//!
//! Two stores are changed, one of many segments and a small one, in every single way; the small one, which is judged much
//! sooner, in pairs of bits too, which are drawn.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use tenure_log::journal::segment::SegmentLog;
use tenure_log::salvage;
use tenure_log::storage::Storage;
use tenure_log::storage::disk::Disk;
use tenure_log::verify::{Options, Outcome as Verdict, verify};

use super::{Figures, Order, Outcome, side_by_side};
use crate::hammer::Dice;
use crate::unwritten::Unwritten;

mod change;
mod image;

use change::{Change, Found, changes};

pub(super) use image::{Image, SEGMENT_BYTES};

/// Frames of the small store, in three segments.
const SMALL: usize = 16;

/// Changes that one thread takes at a time.
const BATCH: u64 = 1000;

/// Runs the rig.
///
/// # Errors
/// When a store cannot be made, or a thread panics.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let room = tempfile::tempdir()?;
    let frames = order.tier.of(60, 60, 240);
    let dir = room.path().join("store");
    let image = Image::of_a_store(&dir, frames, SEGMENT_BYTES)?;
    let small = Image::of_a_store(&room.path().join("small"), SMALL, image::SMALL_BYTES)?;
    let mut figures = Figures::default();
    figures.count("segments of the small store", small.names().len() as u64);
    let points = order.draw(changes(&image), 1_500, 10_000);
    figures.join(every(&image, &points)?);
    figures.join(every(&small, &order.draw(changes(&small), 1_500, 20_000))?);
    let pairs = order.tier.of(1_000, 20_000, 8_500_000);
    figures.join(in_pairs(&small, order.seed, pairs)?);
    let opened = order.tier.of(40, 150, 20_000);
    let step = (points.len() / opened).max(1);
    for change in points.iter().step_by(step) {
        open(&image, *change, &mut figures)?;
    }
    image.put_into(&dir)?;
    Ok(Outcome::Ran(figures))
}

/// Each of the changes.
fn every(image: &Image, changes: &[Change]) -> Result<Figures, Box<dyn Error>> {
    let numbered: Vec<(usize, &[Change])> = changes.chunks(BATCH as usize).enumerate().collect();
    side_by_side(&numbered, |mine| {
        let mut trial = Trial::of(image);
        for (number, changes) in mine {
            for (at, change) in changes.iter().enumerate() {
                trial.make(*change, (number + at) % 2 == 1);
            }
        }
        trial.figures()
    })
}

/// So many pairs of bits, drawn.
fn in_pairs(image: &Image, seed: u64, count: u64) -> Result<Figures, Box<dyn Error>> {
    let batches = (0..count).step_by(BATCH as usize);
    let batches: Vec<Range<u64>> = batches
        .map(|from| from..(from + BATCH).min(count))
        .collect();
    let bits = change::bits(image);
    side_by_side(&batches, |mine| {
        let mut trial = Trial::of(image);
        for batch in mine {
            let mut dice = Dice::new(seed.wrapping_mul(1_000_003) + batch.start);
            for number in batch.clone() {
                let [first, second] = [(); 2].map(|()| bits.at(dice.roll(bits.count())));
                trial.make(Change::Pair { first, second }, number % 2 == 1);
            }
        }
        trial.figures()
    })
}

/// How often each kind was made, and what came of it.
#[derive(Default)]
struct Counts {
    kinds: Vec<(&'static str, u64)>,
    found: u64,
    unread: u64,
    prepared: u64,
    salvages: u64,
}

/// A store that is changed, judged, and made whole again.
struct Trial<'i> {
    image: &'i Image,
    changed: Image,
    storage: Arc<dyn Storage>,
    kept: Vec<bool>,
    counts: Counts,
    violations: Vec<String>,
}

impl<'i> Trial<'i> {
    fn of(image: &'i Image) -> Self {
        Self {
            image,
            changed: image.clone(),
            storage: Arc::new(Disk),
            kept: Vec::new(),
            counts: Counts::default(),
            violations: Vec::new(),
        }
    }

    /// Makes a change and judges it; `is_sealed` says whether the seals are there: they are made when somebody has time, and a
    /// copy may lack them.
    fn make(&mut self, change: Change, is_sealed: bool) {
        self.changed.restore(self.image, is_sealed);
        change.make(&mut self.changed, self.image);
        let found = self.image.difference(&self.changed);
        if found == Found::Nothing {
            return;
        }
        let kind = change.kind();
        match self.counts.kinds.iter_mut().find(|(name, _)| *name == kind) {
            Some((_, count)) => *count += 1,
            None => self.counts.kinds.push((kind, 1)),
        }
        self.verify(change, found);
        self.salvage(change);
    }

    fn violation(&mut self, change: Change, broken: &str) {
        self.violations.push(format!("{change:?}: {broken}"));
    }

    fn verify(&mut self, change: Change, found: Found) {
        let options = Options {
            receipts: vec![self.image.receipt],
            ..Options::default()
        };
        let report = verify(&self.changed.files, &options);
        let is_said = !report.findings.is_empty();
        let holds = match (found, report.outcome) {
            (Found::Unread | Found::Nothing, outcome) => outcome == Verdict::Clean,
            (Found::Prepared, outcome) => outcome == Verdict::TornTail,
            (Found::Log, Verdict::Damaged) => true,
            // A header that names a newer format or another store says nothing about the frames.
            (Found::Log, Verdict::Incomplete) => is_said,
            (Found::Log, Verdict::Clean | Verdict::TornTail) => false,
        };
        match found {
            Found::Log => self.counts.found += u64::from(holds),
            Found::Prepared => self.counts.prepared += 1,
            Found::Unread | Found::Nothing => self.counts.unread += 1,
        }
        if !holds {
            let said = report.outcome;
            let line = format!("verify says {said} of a change in {found:?}");
            self.violation(change, &line);
        }
    }

    fn salvage(&mut self, change: Change) {
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        kept.resize(self.image.frames.len(), false);
        let mut invented = 0_u64;
        let mut scribe = Unwritten::new(|frame| {
            let at = (frame.header.position.0 - 1) as usize;
            match self.image.frames.get(at) {
                Some(written) if written.is(frame) => kept[at] = true,
                _ => invented += 1,
            }
            true
        });
        let salvaged = salvage::salvage(&self.changed.files, &self.storage, None, &mut scribe);
        if invented > 0 {
            let line = format!("a salvage keeps {invented} frames that nobody wrote");
            self.violation(change, &line);
        }
        if salvaged.is_ok() && change.leaves_places() {
            let lost = self.image.still_whole(&self.changed, &kept);
            if let [first, ..] = &*lost {
                let count = lost.len();
                let line = format!(
                    "a salvage loses {count} frames that are whole, position {first} first"
                );
                self.violation(change, &line);
            }
            self.counts.salvages += 1;
        }
        self.kept = kept;
    }

    fn figures(self) -> Figures {
        let mut figures = Figures::default();
        let all = self.counts.kinds.iter().map(|(_, count)| count).sum();
        figures.count("changes", all);
        figures.count("found by verify", self.counts.found);
        figures.count("in declared ranges", self.counts.unread);
        figures.count("behind the last frame", self.counts.prepared);
        figures.count("salvages", self.counts.salvages);
        for kind in change::KINDS {
            let mut counts = self.counts.kinds.iter();
            let count = counts.find(|(name, _)| *name == kind);
            figures.count(kind, count.map_or(0, |(_, count)| *count));
        }
        figures.violations = self.violations;
        figures
    }
}

/// Opens the changed store on real files, for reading and writing.
fn open(image: &Image, change: Change, figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    let mut changed = image.clone();
    change.make(&mut changed, image);
    let found = image.difference(&changed);
    if found == Found::Nothing {
        return Ok(());
    }
    changed.put_into(&image.dir)?;
    figures.count("opened", 1);
    let opened = SegmentLog::open(Arc::new(Disk), &image.dir, image.options());
    let read = opened.map_err(|error| error.to_string()).and_then(|log| {
        let appended = image::append(&log, b"one more").map_err(|error| error.to_string());
        appended.and_then(|()| image::read(&log).map_err(|error| error.to_string()))
    });
    match read {
        Err(_) => figures.count("refused when opened", 1),
        Ok(frames) => {
            // Closed segments are judged by whoever reads them, and all of it was just read.
            let whole = frames.len() == image.frames.len() + 1 || found != Found::Log;
            let same = image.frames.iter().zip(&frames).all(|(a, b)| a == b);
            if !(whole && same) {
                let line = "a store that is not what was written was opened and read to its end";
                figures.violations.push(format!("{change:?}: {line}"));
            }
        }
    }
    Ok(())
}
