//! Where every 32nd frame stands, so that finding a frame by its position walks over few others.
//!
//! Files beside the snapshot, one for every [`FILE_FRAMES`] frames: magic, store, then the landmarks of its frames 32, 64,
//! and so on; zeros where one is not known. So a snapshot writes the newest file again, and not all there is. Never
//! truth: a landmark is looked at again before it is used, and where it does not stand the frame is searched for.

use std::collections::BTreeMap;

use tenure_log::frame::Depth;
use tenure_log::journal::{Frames, Landmark};
use tenure_log::position::Position;

use crate::error::Error;
use crate::source::Source;

use super::files::Files;

/// How names of files begin.
const PREFIX: &str = "marks-";
const MAGIC: &[u8; 8] = b"tnrmrk03";
/// Magic and store.
const HEADER_BYTES: usize = 8 + 16;
/// Frames from one landmark to the next.
const STRIDE: u64 = 32;
/// Frames whose landmarks share a file, which has some 110 KiB.
const FILE_FRAMES: u64 = 1 << 16;

/// The file and the slot of the landmark of a frame, which is every 32nd.
fn place(at: Position) -> (u64, usize) {
    let number = (at.0 / STRIDE).saturating_sub(1);
    let slot = number % (FILE_FRAMES / STRIDE);
    // A slot is a number below 2048.
    (number * STRIDE / FILE_FRAMES, slot as usize)
}

fn name(file: u64) -> String {
    format!("{PREFIX}{file}")
}

/// The frames behind `after`, from the nearest landmark on.
///
/// # Errors
/// When the log cannot be read.
pub(crate) fn read_from(
    source: &dyn Source,
    after: Position,
    depth: Depth,
) -> Result<Box<dyn Frames + '_>, Error> {
    let behind = match near(source, after) {
        Some(mark) => source.read_behind(&mark, depth)?.map(|f| (mark, f)),
        None => None,
    };
    let Some((mark, mut frames)) = behind else {
        return Ok(source.read_from(after, depth)?);
    };
    let mut passed = mark.head.position;
    while passed < after {
        match frames.next() {
            Some(frame) => passed = frame?.header.position,
            None => break,
        }
    }
    Ok(frames)
}

/// The newest landmark at or before a position. A file that cannot be read is as good as none; whose it is shows when
/// the landmark is looked at.
fn near(source: &dyn Source, at: Position) -> Option<Landmark> {
    let at = Position(at.0 - at.0 % STRIDE);
    if at.0 == 0 {
        return None;
    }
    let (file, slot) = place(at);
    let mut bytes = [0; Landmark::BYTES];
    let offset = (HEADER_BYTES + slot * Landmark::BYTES) as u64;
    let read = source.blobs().read_part(&name(file), offset, &mut bytes);
    let whole = read.ok()?? == Landmark::BYTES;
    let mark = Landmark::from_bytes(&bytes);
    (whole && mark.head.position == at).then_some(mark)
}

/// Landmarks found on the way along the log.
#[derive(Default)]
pub(crate) struct Marks {
    found: Vec<Landmark>,
    newest: Option<Landmark>,
}

impl Marks {
    /// Takes in where the newest frame of a walk stands.
    pub fn note(&mut self, at: Option<Landmark>) {
        self.newest = at;
        self.found
            .extend(at.filter(|at| at.head.position.0.is_multiple_of(STRIDE)));
    }

    /// Takes in what was found behind these.
    pub fn join(&mut self, behind: Marks) {
        self.newest = behind.newest;
        self.found.extend(behind.found);
    }

    /// Where the newest frame of the walk stands, as far as that is known.
    pub fn newest(&self) -> Option<Landmark> {
        self.newest
    }

    /// Has them written down beside those of before.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn save(self, source: &dyn Source, into: &mut Files) -> Result<(), Error> {
        let (blobs, store) = (source.blobs(), source.identity()?.store);
        let mut files: BTreeMap<u64, Vec<(usize, Landmark)>> = BTreeMap::new();
        for mark in self.found {
            let (file, slot) = place(mark.head.position);
            files.entry(file).or_default().push((slot, mark));
        }
        for (file, marks) in files {
            let name = name(file);
            let kept = blobs.read(&name).ok().flatten();
            let mut bytes = kept
                .filter(|kept| kept.starts_with(MAGIC) && kept[8..].starts_with(&store.0))
                .unwrap_or_else(|| [&MAGIC[..], &store.0].concat());
            let slots = marks.last().map_or(0, |(slot, _)| slot + 1);
            let whole = HEADER_BYTES + slots * Landmark::BYTES;
            bytes.resize(whole.max(bytes.len()), 0);
            let (kept, _) = bytes[HEADER_BYTES..].as_chunks_mut::<{ Landmark::BYTES }>();
            for (slot, mark) in marks {
                if let Some(kept) = kept.get_mut(slot) {
                    *kept = mark.to_bytes();
                }
            }
            into.write(name, bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE_FRAMES, HEADER_BYTES, STRIDE, place};
    use tenure_log::journal::Landmark;
    use tenure_log::position::Position;

    /// Every landmark has a place of its own, and a file as many as its frames.
    #[test]
    fn landmarks_of_one_file_follow_each_other() {
        let slots = (FILE_FRAMES / STRIDE) as usize;
        let mut next = (0, 0);
        for at in (STRIDE..=3 * FILE_FRAMES).step_by(STRIDE as usize) {
            assert_eq!(place(Position(at)), next, "{at}");
            next.1 += 1;
            if next.1 == slots {
                next = (next.0 + 1, 0);
            }
        }
        assert_eq!(next, (3, 0));
        assert!(HEADER_BYTES + slots * Landmark::BYTES < 1 << 17);
    }
}
