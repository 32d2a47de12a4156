//! Anchors: where frames begin in the segment in use, one per stretch of it, so that whoever looks
//! for a position reads a stretch and not the segment. Derived and volatile: without them looking
//! takes longer and finds the same.

use std::sync::atomic::Ordering::SeqCst;

use super::{bytes_to_halves, halves_to_bytes};
use crate::format::SegmentName;
use crate::position::{Chain, Epoch, Head, Position};
use crate::storage::SharedMemory;

/// How many anchors there are. A greater segment overwrites its first ones.
const ANCHORS: usize = 256;

/// The bytes of a segment that share an anchor: 64 MiB, the greatest usual segment, has one each.
pub const STRETCH_BYTES: u64 = 256 << 10;

const SLOT_WORDS: usize = 8;

pub(super) const ANCHORS_WORDS: usize = ANCHORS * SLOT_WORDS;

/// A point between two frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Anchor {
    /// The segment.
    pub segment: SegmentName,
    /// The frame before the point.
    pub head: Head,
    /// The offset behind it.
    pub offset: u64,
}

impl Anchor {
    fn fields(&self) -> [u64; SLOT_WORDS] {
        let [low, high] = bytes_to_halves(self.head.chain.0);
        let Anchor {
            segment,
            head,
            offset,
        } = self;
        let mut fields = [
            segment.first.0,
            segment.epoch.0,
            head.position.0,
            low,
            high,
            *offset,
            0,
            0,
        ];
        fields[7] = checksum(&fields);
        fields
    }

    /// Slots are written while others read them; the checksum tells a mixed one.
    fn from_fields(fields: [u64; SLOT_WORDS]) -> Option<Anchor> {
        let [first, epoch, position, low, high, offset, ..] = fields;
        (first != 0 && fields[7] == checksum(&fields)).then(|| Anchor {
            segment: SegmentName {
                first: Position(first),
                epoch: Epoch(epoch),
            },
            head: Head {
                position: Position(position),
                chain: Chain(halves_to_bytes(low, high)),
            },
            offset,
        })
    }
}

fn checksum(fields: &[u64; SLOT_WORDS]) -> u64 {
    let mut hasher = crc32fast::Hasher::new();
    fields[..7]
        .iter()
        .for_each(|field| hasher.update(&field.to_le_bytes()));
    u64::from(hasher.finalize())
}

/// Keeps the first anchor of each stretch.
pub(super) fn put(memory: &dyn SharedMemory, at: usize, anchor: &Anchor) {
    let slot = at + (anchor.offset / STRETCH_BYTES) as usize % ANCHORS * SLOT_WORDS;
    for (index, field) in anchor.fields().into_iter().enumerate() {
        memory.word(slot + index).store(field, SeqCst);
    }
}

pub(super) fn nearest(
    memory: &dyn SharedMemory,
    at: usize,
    segment: SegmentName,
    position: Position,
) -> Option<Anchor> {
    let slots = (0..ANCHORS).map(|slot| at + slot * SLOT_WORDS);
    slots
        .filter(|slot| memory.word(*slot).load(SeqCst) == segment.first.0)
        .filter_map(|slot| {
            Anchor::from_fields(std::array::from_fn(|index| {
                memory.word(slot + index).load(SeqCst)
            }))
        })
        .filter(|anchor| anchor.segment == segment && anchor.head.position <= position)
        .max_by_key(|anchor| anchor.head.position)
}
