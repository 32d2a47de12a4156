//! Where every 256th frame stands, so that finding a frame by its position does not walk a whole segment.
//!
//! One file beside the snapshot: magic, store, then the landmark of frame 256, of frame 512, and so on; zeros where
//! one is not known. Never truth: a landmark is looked at again before it is used, and where it does not stand the
//! frame is searched for.

use tenure_log::frame::Depth;
use tenure_log::journal::{Frames, Landmark};
use tenure_log::position::Position;

use crate::error::Error;
use crate::source::Source;

/// The name of the file.
const BLOB: &str = "marks";
const MAGIC: &[u8; 8] = b"tnrmrk02";
/// Magic and store.
const HEADER_BYTES: usize = 8 + 16;
/// Frames from one landmark to the next.
const STRIDE: u64 = 256;

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

/// The newest landmark at or before a position. A file that cannot be read is as good as none.
fn near(source: &dyn Source, at: Position) -> Option<Landmark> {
    let number = (at.0 / STRIDE).checked_sub(1)?;
    let (blobs, store) = (source.blobs(), source.identity().ok()?.store);
    let mut header = [0; HEADER_BYTES];
    let mut bytes = [0; Landmark::BYTES];
    let offset = HEADER_BYTES as u64 + number * Landmark::BYTES as u64;
    let whole = blobs.read_part(BLOB, 0, &mut header).ok()?? == HEADER_BYTES
        && blobs.read_part(BLOB, offset, &mut bytes).ok()?? == Landmark::BYTES;
    let ours = header[..8] == *MAGIC && header[8..] == store.0;
    let mark = Landmark::from_bytes(&bytes);
    let fits = mark.head.position.0 == (number + 1) * STRIDE;
    (whole && ours && fits).then_some(mark)
}

/// Landmarks found on the way along the log.
#[derive(Default)]
pub(crate) struct Marks(Vec<Landmark>);

impl Marks {
    /// Takes in where the newest frame of a walk stands.
    pub fn note(&mut self, at: Option<Landmark>) {
        self.0
            .extend(at.filter(|at| at.head.position.0.is_multiple_of(STRIDE)));
    }

    /// Writes them down beside those of before. `head` is how far the walk went.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(self, source: &dyn Source, head: Position) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let (blobs, store) = (source.blobs(), source.identity()?.store);
        let kept = blobs.read(BLOB).ok().flatten();
        let mut bytes = kept
            .filter(|kept| kept.starts_with(MAGIC) && kept[8..].starts_with(&store.0))
            .unwrap_or_else(|| [&MAGIC[..], &store.0].concat());
        let whole = usize::try_from(head.0 / STRIDE).unwrap_or_default() * Landmark::BYTES;
        bytes.resize(HEADER_BYTES + whole, 0);
        let slots = bytes[HEADER_BYTES..]
            .as_chunks_mut::<{ Landmark::BYTES }>()
            .0;
        for mark in self.0 {
            let number = usize::try_from(mark.head.position.0 / STRIDE).unwrap_or_default();
            if let Some(slot) = number.checked_sub(1).and_then(|n| slots.get_mut(n)) {
                *slot = mark.to_bytes();
            }
        }
        Ok(blobs.write_atomic(BLOB, &bytes)?)
    }
}
