//! Where the head stands, and what is durable across boots: two records of several words each.
//!
//! Each has two slots, so that one is whole at every moment. A place is read like a sequence lock
//! and believed when its position is the published head; a mark carries a checksum, because it is
//! also read after a power cut.

use std::sync::atomic::Ordering::SeqCst;

use super::{bytes_to_halves, halves_to_bytes};
use crate::format::SegmentName;
use crate::position::{Chain, Epoch, Head, Position};
use crate::storage::SharedMemory;

const SLOT_WORDS: usize = 16;
const FIELDS: usize = 7;

/// Where a head stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadPlace {
    /// The head.
    pub head: Head,
    /// The newest segment: the one that the next frame goes into.
    pub segment: SegmentName,
    /// The offset in it of the head's frame; equal to `end` when it holds no frame yet.
    pub offset: u64,
    /// The offset in it behind the head's frame.
    pub end: u64,
}

/// A position known durable, and where it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DurableMark {
    /// The position and its chain.
    pub head: Head,
    /// The segment it stands in.
    pub segment: SegmentName,
    /// The offset behind its frame.
    pub end: u64,
}

impl HeadPlace {
    fn fields(&self) -> [u64; FIELDS] {
        let [low, high] = bytes_to_halves(self.head.chain.0);
        let HeadPlace {
            head,
            segment,
            offset,
            end,
        } = self;
        [
            head.position.0,
            low,
            high,
            segment.first.0,
            segment.epoch.0,
            *offset,
            *end,
        ]
    }

    fn from_fields([position, low, high, first, epoch, offset, end]: [u64; FIELDS]) -> HeadPlace {
        HeadPlace {
            head: Head {
                position: Position(position),
                chain: Chain(halves_to_bytes(low, high)),
            },
            segment: SegmentName {
                first: Position(first),
                epoch: Epoch(epoch),
            },
            offset,
            end,
        }
    }
}

/// A slot: its sequence number (zero while it is written), then the fields.
fn read_place(memory: &dyn SharedMemory, slot: usize) -> Option<(u64, HeadPlace)> {
    let sequence = memory.word(slot).load(SeqCst);
    let fields = std::array::from_fn(|index| memory.word(slot + 1 + index).load(SeqCst));
    let unchanged = memory.word(slot).load(SeqCst) == sequence;
    (sequence != 0 && unchanged).then(|| (sequence, HeadPlace::from_fields(fields)))
}

/// The newest place of the published head; `None` when writers were faster than this reader.
pub(super) fn newest(
    memory: &dyn SharedMemory,
    at: usize,
    published: impl Fn() -> Position,
) -> Option<HeadPlace> {
    for _ in 0..100 {
        let head = published();
        let slots = [read_place(memory, at), read_place(memory, at + SLOT_WORDS)];
        let of_head = slots
            .into_iter()
            .flatten()
            .filter(|(_, place)| place.head.position == head);
        if let Some((_, place)) = of_head.max_by_key(|(sequence, _)| *sequence) {
            return Some(place);
        }
        std::hint::spin_loop();
    }
    None
}

/// Writes into the slot that is not the published head's.
pub(super) fn put(memory: &dyn SharedMemory, at: usize, place: &HeadPlace, published: Position) {
    let slots = [read_place(memory, at), read_place(memory, at + SLOT_WORDS)];
    let of_head = |slot: &Option<(u64, HeadPlace)>| {
        slot.filter(|(_, place)| place.head.position == published)
            .map_or(0, |(sequence, _)| sequence)
    };
    let target = if of_head(&slots[0]) >= of_head(&slots[1]) {
        at + SLOT_WORDS
    } else {
        at
    };
    let newest = slots
        .iter()
        .flatten()
        .map(|(sequence, _)| *sequence)
        .max()
        .unwrap_or(0);
    memory.word(target).store(0, SeqCst);
    for (index, field) in place.fields().into_iter().enumerate() {
        memory.word(target + 1 + index).store(field, SeqCst);
    }
    memory.word(target).store(newest + 1, SeqCst);
}

pub(super) fn lay_place(words: &mut [u64], place: &HeadPlace) {
    words[0] = 1;
    words[1..=FIELDS].copy_from_slice(&place.fields());
}

impl DurableMark {
    fn fields(&self) -> [u64; FIELDS] {
        let [low, high] = bytes_to_halves(self.head.chain.0);
        let fields = [
            self.head.position.0,
            low,
            high,
            self.segment.first.0,
            self.segment.epoch.0,
            self.end,
        ];
        let [position, low, high, first, epoch, end] = fields;
        [position, low, high, first, epoch, end, checksum(&fields)]
    }

    fn from_fields(fields: [u64; FIELDS]) -> Option<DurableMark> {
        let [position, low, high, first, epoch, end, sum] = fields;
        if position == 0 || sum != checksum(&[position, low, high, first, epoch, end]) {
            return None;
        }
        Some(DurableMark {
            head: Head {
                position: Position(position),
                chain: Chain(halves_to_bytes(low, high)),
            },
            segment: SegmentName {
                first: Position(first),
                epoch: Epoch(epoch),
            },
            end,
        })
    }
}

fn checksum(fields: &[u64]) -> u64 {
    let mut hasher = crc32fast::Hasher::new();
    fields
        .iter()
        .for_each(|field| hasher.update(&field.to_le_bytes()));
    u64::from(hasher.finalize())
}

fn read_mark(memory: &dyn SharedMemory, slot: usize) -> Option<DurableMark> {
    DurableMark::from_fields(std::array::from_fn(|index| {
        memory.word(slot + index).load(SeqCst)
    }))
}

/// The greater of the two whole marks.
pub(super) fn mark(memory: &dyn SharedMemory, at: usize) -> Option<DurableMark> {
    let slots = [read_mark(memory, at), read_mark(memory, at + SLOT_WORDS)];
    slots
        .into_iter()
        .flatten()
        .max_by_key(|mark| mark.head.position)
}

/// Writes over the lesser mark; never lowers. A leader that was passed by may write at the same
/// time: a slot mixed of two fails its checksum, and the other one stands.
pub(super) fn put_mark(memory: &dyn SharedMemory, at: usize, mark: &DurableMark) {
    let positions = [at, at + SLOT_WORDS]
        .map(|slot| read_mark(memory, slot).map_or(Position::ZERO, |mark| mark.head.position));
    if positions
        .iter()
        .any(|position| *position >= mark.head.position)
    {
        return;
    }
    let target = if positions[0] <= positions[1] {
        at
    } else {
        at + SLOT_WORDS
    };
    for (index, field) in mark.fields().into_iter().enumerate() {
        memory.word(target + index).store(field, SeqCst);
    }
}

pub(super) fn lay_mark(words: &mut [u64], mark: &DurableMark) {
    words[..FIELDS].copy_from_slice(&mark.fields());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64};

    use super::*;

    #[derive(Debug)]
    struct Words(Vec<AtomicU64>);

    impl SharedMemory for Words {
        fn word(&self, index: usize) -> &AtomicU64 {
            &self.0[index]
        }
        fn half_word(&self, _: usize) -> &AtomicU32 {
            unreachable!("places are words")
        }
    }

    fn words() -> Words {
        Words((0..2 * SLOT_WORDS).map(|_| AtomicU64::new(0)).collect())
    }

    fn place(position: u64, first: u64) -> HeadPlace {
        HeadPlace {
            head: Head {
                position: Position(position),
                chain: Chain([position as u8; 16]),
            },
            segment: SegmentName {
                first: Position(first),
                epoch: Epoch(1),
            },
            offset: position * 100,
            end: position * 100 + 100,
        }
    }

    #[test]
    fn the_published_head_keeps_its_place_until_the_next_is_published() {
        let memory = words();
        put(&memory, 0, &place(4, 1), Position(3));
        put(&memory, 0, &place(5, 1), Position(4));
        // A holder that died after this did not take 4's place away, nor did the one after it.
        put(&memory, 0, &place(5, 3), Position(4));
        assert_eq!(newest(&memory, 0, || Position(4)), Some(place(4, 1)));
        assert_eq!(newest(&memory, 0, || Position(5)), Some(place(5, 3)));
        assert_eq!(newest(&memory, 0, || Position(6)), None);
    }

    #[test]
    fn the_newer_place_of_one_head_wins() {
        let memory = words();
        put(&memory, 0, &place(4, 1), Position(3));
        put(&memory, 0, &place(4, 5), Position(4));
        assert_eq!(newest(&memory, 0, || Position(4)), Some(place(4, 5)));
        put(&memory, 0, &place(5, 5), Position(4));
        assert_eq!(newest(&memory, 0, || Position(4)), Some(place(4, 5)));
    }

    #[test]
    fn marks_only_rise_and_a_torn_one_leaves_the_other() {
        let memory = words();
        let of = |position| {
            let HeadPlace {
                head, segment, end, ..
            } = place(position, 1);
            DurableMark { head, segment, end }
        };
        assert_eq!(mark(&memory, 0), None);
        for position in [7, 9, 8] {
            put_mark(&memory, 0, &of(position));
        }
        assert_eq!(mark(&memory, 0), Some(of(9)));
        for index in 0..2 * SLOT_WORDS {
            let old = memory.word(index).fetch_xor(1 << 17, SeqCst);
            let found = mark(&memory, 0);
            assert!(
                found == Some(of(9)) || found == Some(of(7)),
                "word {index}: {found:?}"
            );
            memory.word(index).store(old, SeqCst);
        }
    }
}
