//! Corruption: every way in which the bytes of a store at rest can be changed, judged by `verify`, by a salvage and by
//! opening it.
//!
//! What must hold: every change is found, but one of what `docs/format.md` declares not looked at; nothing that was
//! durable is taken for a torn tail; a salvage keeps every frame that is still what was written, and none that is not;
//! and no program answers from bytes that are not what was written.

use std::error::Error;
use std::sync::Arc;

use tenure_log::journal::segment::SegmentLog;
use tenure_log::salvage;
use tenure_log::storage::Storage;
use tenure_log::storage::disk::Disk;
use tenure_log::verify::{Options, Outcome as Verdict, verify};

use super::{Figures, Order, Outcome, side_by_side};
use crate::unwritten::Unwritten;

mod change;
mod image;

use change::{Change, Found, changes};

pub(super) use image::Image;

/// Runs the rig.
///
/// # Errors
/// When the store cannot be made.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let room = tempfile::tempdir()?;
    let frames = order.tier.of(60, 60, 240);
    let dir = room.path().join("store");
    let image = Image::of_a_store(&dir, frames)?;
    let points = order.draw(changes(&image), 1_500, 10_000);
    let mut figures = side_by_side(&points, |mine| part(&image, mine))?;
    let opened = order.tier.of(40, 150, 20_000);
    let step = (points.len() / opened).max(1);
    for change in points.iter().step_by(step) {
        open(&image, *change, &mut figures)?;
    }
    image.put_into(&dir)?;
    Ok(Outcome::Ran(figures))
}

fn part<'c>(image: &Image, changes: impl Iterator<Item = &'c Change>) -> Figures {
    let mut figures = Figures::default();
    for (number, change) in changes.enumerate() {
        let mut changed = image.clone();
        // Seals are made when somebody has time, and a copy may lack them.
        if number % 2 == 1 {
            changed.without_seals();
        }
        change.make(&mut changed, image);
        let found = image.difference(&changed);
        if found == Found::Nothing {
            continue;
        }
        figures.count("changes", 1);
        figures.count(change.kind(), 1);
        for broken in judge(image, &changed, *change, found, &mut figures) {
            figures.violations.push(format!("{change:?}: {broken}"));
        }
    }
    figures
}

/// What does not hold for a changed store.
fn judge(
    image: &Image,
    changed: &Image,
    change: Change,
    found: Found,
    figures: &mut Figures,
) -> Vec<String> {
    let mut broken = Vec::new();
    let report = verify(
        &changed.files,
        &Options {
            receipts: vec![image.receipt],
            ..Options::default()
        },
    );
    let is_said = !report.findings.is_empty();
    let holds = match (found, report.outcome) {
        (Found::Unread | Found::Nothing, outcome) => outcome == Verdict::Clean,
        (Found::Prepared, outcome) => outcome == Verdict::TornTail,
        (Found::Log, Verdict::Damaged) => true,
        // A header that names a newer format or another store says nothing about the frames.
        (Found::Log, Verdict::Incomplete) => is_said,
        (Found::Log, Verdict::Clean | Verdict::TornTail) => false,
    };
    figures.count("found by verify", u64::from(found == Found::Log && holds));
    if !holds {
        let said = report.outcome;
        broken.push(format!("verify says {said} of a change in {found:?}"));
    }
    let (mut kept, mut invented) = (vec![false; image.frames.len()], 0u64);
    let mut scribe = Unwritten::new(|frame| {
        let at = (frame.header.position.0 - 1) as usize;
        match image.frames.get(at) {
            Some(written) if written.is(frame) => kept[at] = true,
            _ => invented += 1,
        }
        true
    });
    let storage: Arc<dyn Storage> = Arc::new(Disk);
    let salvaged = salvage::salvage(&changed.files, &storage, None, &mut scribe);
    if invented > 0 {
        broken.push(format!(
            "a salvage keeps {invented} frames that nobody wrote"
        ));
    }
    if salvaged.is_ok() && change.leaves_places() {
        let lost = image.still_whole(changed, &kept);
        if let [first, ..] = &*lost {
            let count = lost.len();
            broken.push(format!(
                "a salvage loses {count} frames that are whole, position {first} first"
            ));
        }
        figures.count("salvages", 1);
    }
    broken
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
    let opened = SegmentLog::open(Arc::new(Disk), &image.dir, image::options());
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
