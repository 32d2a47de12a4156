//! What a salvage keeps of a damaged store, counted over every way in which a small one can be damaged in one place.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tenure_log::conformance::draft;
use tenure_log::error::Error;
use tenure_log::format::SegmentName;
use tenure_log::frame::{Draft, FrameRef};
use tenure_log::journal::Journal;
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::position::{Epoch, Incarnation, Position};
use tenure_log::salvage::{Aside, Lost, Report, Scribe, salvage};
use tenure_log::storage::sim::Sim;
use tenure_log::storage::{Opening, Storage};
use tenure_log::verify::{Outcome, verify};

use crate::store::{Builder, Files};

mod crashed;
mod kept;
mod shuffled;

const DEST: &str = "/store";

/// Writes down what it is told.
#[derive(Default)]
struct Notes {
    kept: Vec<Position>,
    lost: Vec<Position>,
    bytes: u64,
}

impl Scribe for Notes {
    fn keeps(&mut self, frame: &FrameRef<'_>) -> bool {
        self.kept.push(frame.header.position);
        true
    }

    fn lost(&mut self, position: Position, _: Incarnation, _: &Lost) -> Draft {
        self.lost.push(position);
        draft("lost")
    }

    fn raised(&mut self, _: &Report) -> Draft {
        draft("raised")
    }

    fn passed(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

/// The parts of every frame, by position.
type Content = BTreeMap<u64, (Vec<u8>, Vec<u8>, Vec<u8>)>;

struct Salvaged {
    report: Report,
    notes: Notes,
    content: Content,
}

/// Salvages, and reads what came of it with the production reader.
fn salvaged(files: &Files) -> Salvaged {
    let sim = Sim::new(5);
    let done = sim.run_one(|process| {
        let storage: Arc<dyn Storage> = process.clone();
        let mut notes = Notes::default();
        let report = salvage(files, &storage, Some(Path::new(DEST)), &mut notes)?;
        let mut dry = Notes::default();
        let would = salvage(files, &storage, None, &mut dry)?;
        assert_eq!(
            (would.frames, &would.lost, would.end),
            (report.frames, &report.lost, report.end)
        );
        assert_eq!(
            (dry.kept, dry.lost),
            (notes.kept.clone(), notes.lost.clone())
        );
        let dir = process
            .directory(Path::new(DEST), Opening::Existing)
            .expect("made");
        let verified = verify(&dir, &Default::default());
        assert_eq!(verified.outcome, Outcome::Clean, "{:?}", verified.findings);
        let log = SegmentLog::open(process, Path::new(DEST), Options::default())?;
        assert_eq!(log.identity().incarnation, report.incarnation);
        let (mut content, mut position) = (Content::new(), 0);
        let mut frames = log.read_from(Position::ZERO, tenure_log::frame::Depth::Whole)?;
        while let Some(frame) = frames.next() {
            let frame = frame?;
            position += 1;
            assert_eq!(frame.header.position, Position(position));
            let parts = [frame.facts, frame.texts, frame.bodies].map(<[u8]>::to_vec);
            let [facts, texts, bodies] = parts;
            content.insert(position, (facts, texts, bodies));
        }
        drop(frames);
        Ok::<_, Error>(Salvaged {
            report,
            notes,
            content,
        })
    });
    done.expect("not killed").expect("salvaged")
}

fn content_of(files: &Files) -> Content {
    salvaged(files).content
}

/// Every untouched frame stands at its position as it was, every other position says that it was lost, and a new life
/// begins behind them.
fn judge(whole: &Content, files: &Files, touched: &[u64], context: &str) -> Salvaged {
    let found = salvaged(files);
    let last = found.content.keys().last().copied().expect("a new life");
    let lost = draft("lost").parts;
    for (position, parts) in whole {
        if touched.contains(position) || *position == 10 {
            continue;
        }
        assert_eq!(
            found.content.get(position),
            Some(parts),
            "{context}: {position}"
        );
    }
    for position in touched.iter().filter(|position| **position < last) {
        let (facts, texts, bodies) = &found.content[position];
        let untouched = found.content[position] == whole[position];
        let recorded = (facts, texts, bodies) == (&lost.facts, &lost.texts, &lost.bodies);
        assert!(untouched || recorded, "{context}: {position}");
    }
    assert_eq!(
        found.content[&last].1,
        draft("raised").parts.texts,
        "{context}"
    );
    assert_eq!(found.report.end.0 + 1, last, "{context}");
    assert_eq!(
        found.notes.kept.len() as u64,
        found.report.frames,
        "{context}"
    );
    assert!(found.report.incarnation > found.report.before, "{context}");
    found
}

fn file_of(files: &Files, name: SegmentName) -> Vec<u8> {
    files.0[&name.to_string()].clone()
}

/// Nine frames in three segments; a salvage of the whole store loses nothing.
#[test]
fn a_whole_store_is_copied_whole() {
    let files = Builder::small().files;
    let found = salvaged(&files);
    assert_eq!((found.report.frames, found.report.lost.len()), (9, 0));
    assert_eq!(found.report.quarantine, []);
    assert_eq!(found.content.len(), 10);
}

/// One bit of each byte, another one from byte to byte; all of them when `TENURE_EVERY_BIT` is set.
fn bits(at: usize) -> std::ops::Range<usize> {
    if std::env::var_os("TENURE_EVERY_BIT").is_some() {
        return 0..8;
    }
    let bit = (at / 3 + at) % 8;
    bit..bit + 1
}

/// F11, F15: bits of every frame, and of every header as far as something stands there: only the frame that was hit is lost, and a
/// header that was hit loses nothing.
#[test]
fn every_bit_turned_over_costs_one_frame_at_most() {
    let builder = Builder::small();
    let whole = content_of(&builder.files);
    let (mut tried, mut losses) = (0, 0);
    let names: Vec<SegmentName> = builder
        .files
        .0
        .keys()
        .map(|name| name.parse().expect("a name"))
        .collect();
    for name in names {
        let bytes = file_of(&builder.files, name);
        for at in 0..bytes.len() {
            // The unused part of a header is all alike.
            if (152..4088).contains(&at) && at % 61 != 0 {
                continue;
            }
            for bit in bits(at) {
                let mut files = builder.files.clone();
                files.0.get_mut(&name.to_string()).expect("there")[at] ^= 1 << bit;
                let hit = builder.frames.iter().position(|(segment, offset, len)| {
                    *segment == name && (*offset..offset + len).contains(&at)
                });
                let touched: Vec<u64> = hit.map(|index| index as u64 + 1).into_iter().collect();
                let found = judge(&whole, &files, &touched, &format!("{name} {at} bit {bit}"));
                losses += usize::from(!found.report.lost.is_empty());
                tried += 1;
            }
        }
    }
    println!("{tried} bits turned over, {losses} of them in a frame");
    assert!(
        tried > 1500 && losses > 700,
        "{tried} tried, {losses} lost a frame"
    );
}

/// Every length of every file: what stands before the cut is kept.
#[test]
fn every_cut_costs_what_stood_behind_it() {
    let builder = Builder::small();
    let whole = content_of(&builder.files);
    for name in builder.files.0.keys() {
        let bytes = builder.files.0[name].clone();
        for left in (0..bytes.len()).filter(|left| *left > 4000 || left % 97 == 0) {
            let mut files = builder.files.clone();
            files.0.get_mut(name).expect("there").truncate(left);
            let touched: Vec<u64> = (1_u64..)
                .zip(&builder.frames)
                .filter(|(_, (segment, offset, len))| {
                    segment.to_string() == *name && offset + len > left
                })
                .map(|(position, _)| position)
                .collect();
            judge(&whole, &files, &touched, &format!("{name} cut to {left}"));
        }
    }
}

/// B24: a file that is gone, or stands under another name, costs at most its own frames.
#[test]
fn a_lost_file_costs_its_frames_and_a_renamed_one_nothing() {
    let builder = Builder::small();
    let whole = content_of(&builder.files);
    for name in builder.files.0.keys() {
        let touched: Vec<u64> = (1_u64..)
            .zip(&builder.frames)
            .filter(|(_, (segment, ..))| segment.to_string() == *name)
            .map(|(position, _)| position)
            .collect();
        let mut files = builder.files.clone();
        let bytes = files.0.remove(name).expect("there");
        judge(&whole, &files, &touched, &format!("{name} gone"));
        files
            .0
            .insert("00000000000000000777-1.seg".to_owned(), bytes);
        judge(&whole, &files, &[], &format!("{name} renamed"));
    }
}

/// What a writer that had lost its epoch wrote is kept apart, and bad bytes are too.
#[test]
fn late_and_bad_bytes_go_to_quarantine() {
    let mut builder = Builder::small();
    let (name, offset, len) = builder.frames[4];
    let late = builder.files.0[&name.to_string()][offset..offset + len].to_vec();
    let end = offset + len;
    builder.file(name)[end..end + 8].copy_from_slice(b"too late");
    let (bad_name, bad, bad_len) = builder.frames[7];
    builder.file(bad_name)[bad + 90] ^= 1;
    let found = salvaged(&builder.files);
    let kept: Vec<(String, u64, u64, &str)> = found
        .report
        .quarantine
        .iter()
        .map(|kept| {
            (
                kept.from.clone(),
                kept.offset,
                kept.bytes,
                kept.kind.as_str(),
            )
        })
        .collect();
    assert_eq!(
        kept,
        [
            (name.to_string(), end as u64, 8, "late"),
            (bad_name.to_string(), bad as u64, bad_len as u64, "bad"),
        ]
    );
    assert!(!late.is_empty());
    assert_eq!(found.notes.lost, [Position(8)]);
}

/// A segment that a stopped holder made after its epoch was over is not in the line.
#[test]
fn a_late_segment_is_not_read_as_part_of_the_log() {
    let mut builder = Builder::small();
    let mut late = Builder::born();
    late.append_many(5).rotate().append_many(2);
    let (name, bytes) = late.files.0.pop_last().expect("the second");
    assert_eq!(name.parse::<SegmentName>().expect("a name").epoch, Epoch(1));
    builder.files.0.insert(name.clone(), bytes);
    let found = salvaged(&builder.files);
    assert_eq!((found.report.frames, found.report.lost.len()), (9, 0));
    assert!(
        found
            .report
            .quarantine
            .iter()
            .any(|kept| kept.from == name && kept.kind == Aside::Late)
    );
}

/// Nothing is written where something is.
#[test]
fn a_directory_with_anything_in_it_is_refused() {
    let files = Builder::small().files;
    let sim = Sim::new(1);
    let refused = sim.run_one(|process| {
        let storage: Arc<dyn Storage> = process;
        let dest = Some(Path::new(DEST));
        salvage(&files, &storage, dest, &mut Notes::default()).expect("written");
        let again = salvage(&files, &storage, dest, &mut Notes::default());
        assert!(matches!(again, Err(Error::Occupied { .. })), "{again:?}");
    });
    refused.expect("not killed");
}
