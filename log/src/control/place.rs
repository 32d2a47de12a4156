//! Where the head stands, and what is durable across boots: two records of several words each.
//!
//! A place belongs to the epoch in which it is published. Each epoch writes into slots of its own, two
//! of them, so that a holder whose epoch was raised can neither take away nor forge a place of a later
//! one, and one slot is whole at every moment. A mark carries a checksum because it is also read after
//! a power cut.

use std::sync::atomic::Ordering::SeqCst;

use super::{Word, bytes_to_halves, halves_to_bytes};
use crate::format::SegmentName;
use crate::position::{Chain, Epoch, Head, Position};
use crate::storage::SharedMemory;
use crate::zoo::planted;

const SLOT_WORDS: usize = 16;
const FIELDS: usize = 7;

/// How many epochs have slots of their own. A holder that comes back after this many raises writes into
/// the slots of a later epoch; the checksum tells, and the head is looked up.
const EPOCHS: u64 = 4;

/// The words of all places.
pub(super) const PLACES_WORDS: usize = EPOCHS as usize * 2 * SLOT_WORDS;

/// The words of both marks.
pub(super) const MARKS_WORDS: usize = 2 * SLOT_WORDS;

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

/// The slots of an epoch.
fn slots_of(at: usize, epoch: Epoch) -> [usize; 2] {
    let first = at + (epoch.0 % EPOCHS) as usize * 2 * SLOT_WORDS;
    [first, first + SLOT_WORDS]
}

/// A slot: its sequence number, its epoch, the fields, a checksum over all.
fn read_place(memory: &dyn SharedMemory, slot: usize, epoch: Epoch) -> Option<(u64, HeadPlace)> {
    let words: [u64; FIELDS + 3] =
        std::array::from_fn(|index| memory.word(slot + index).load(SeqCst));
    let [sequence, of, fields @ .., sum] = words;
    (of == epoch.0 && sum == checksum(&words[..FIELDS + 2]))
        .then(|| (sequence, HeadPlace::from_fields(fields)))
}

fn place_words(sequence: u64, epoch: Epoch, place: &HeadPlace) -> [u64; FIELDS + 3] {
    let mut words = [0; FIELDS + 3];
    words[0] = sequence;
    words[1] = epoch.0;
    words[2..FIELDS + 2].copy_from_slice(&place.fields());
    words[FIELDS + 2] = checksum(&words[..FIELDS + 2]);
    words
}

/// The place of the published head, if its epoch has written one. While a raised epoch's holder has not
/// settled yet there is none: what an overtaken holder wrote down last may never have been published.
pub(super) fn newest(
    memory: &dyn SharedMemory,
    at: usize,
    word: impl Fn() -> Word,
) -> Option<HeadPlace> {
    for _ in 0..100 {
        let before = word();
        let slots = slots_of(at, before.epoch).map(|slot| read_place(memory, slot, before.epoch));
        let of_head = slots
            .into_iter()
            .flatten()
            .filter(|(_, place)| place.head.position == before.head);
        let found = of_head.max_by_key(|(sequence, _)| *sequence);
        let after = word();
        // A place read before the epoch was raised, of a segment that had its name before: the next
        // holder sees that segment.
        if (before.epoch, before.head) == (after.epoch, after.head)
            && (found.is_some() || before.in_doubt)
        {
            return found.map(|(_, place)| place);
        }
        std::hint::spin_loop();
    }
    None
}

/// Writes into the slot that is not the published head's. Only the holder of the epoch's lock does.
pub(super) fn put(
    memory: &dyn SharedMemory,
    at: usize,
    epoch: Epoch,
    place: &HeadPlace,
    published: Position,
) {
    let [one, two] = slots_of(at, epoch);
    let slots = [one, two].map(|slot| read_place(memory, slot, epoch));
    let of_head = |slot: &Option<(u64, HeadPlace)>| {
        slot.filter(|(_, place)| place.head.position == published)
            .map_or(0, |(sequence, _)| sequence)
    };
    let target = if of_head(&slots[0]) >= of_head(&slots[1]) {
        two
    } else {
        one
    };
    let newest = slots
        .iter()
        .flatten()
        .map(|(sequence, _)| *sequence)
        .max()
        .unwrap_or(0);
    for (index, word) in place_words(newest + 1, epoch, place)
        .into_iter()
        .enumerate()
    {
        memory.word(target + index).store(word, SeqCst);
    }
}

/// Lays a place into the words of a new page, of all places.
pub(super) fn lay_place(words: &mut [u64], epoch: Epoch, place: &HeadPlace) {
    let [slot, _] = slots_of(0, epoch);
    words[slot..slot + FIELDS + 3].copy_from_slice(&place_words(1, epoch, place));
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
    let target = if positions[0] <= positions[1] || planted("mark-slot-not-alternated") {
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
        Words((0..PLACES_WORDS).map(|_| AtomicU64::new(0)).collect())
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

    fn at(epoch: u64, head: u64, in_doubt: bool) -> Word {
        Word {
            epoch: Epoch(epoch),
            head: Position(head),
            in_doubt,
        }
    }

    #[test]
    fn the_published_head_keeps_its_place_until_the_next_is_published() {
        let memory = words();
        put(&memory, 0, Epoch(1), &place(4, 1), Position(3));
        put(&memory, 0, Epoch(1), &place(5, 1), Position(4));
        // A holder that died after this did not take 4's place away, nor did the one after it.
        put(&memory, 0, Epoch(1), &place(5, 3), Position(4));
        assert_eq!(newest(&memory, 0, || at(1, 4, true)), Some(place(4, 1)));
        assert_eq!(newest(&memory, 0, || at(1, 5, false)), Some(place(5, 3)));
        assert_eq!(newest(&memory, 0, || at(1, 6, true)), None);
    }

    #[test]
    fn the_newer_place_of_one_head_wins() {
        let memory = words();
        put(&memory, 0, Epoch(1), &place(4, 1), Position(3));
        put(&memory, 0, Epoch(1), &place(4, 5), Position(4));
        assert_eq!(newest(&memory, 0, || at(1, 4, false)), Some(place(4, 5)));
        put(&memory, 0, Epoch(1), &place(5, 5), Position(4));
        assert_eq!(newest(&memory, 0, || at(1, 4, false)), Some(place(4, 5)));
    }

    #[test]
    fn an_overtaken_holder_neither_forges_nor_takes_away_the_place_of_a_later_epoch() {
        let memory = words();
        put(&memory, 0, Epoch(1), &place(4, 1), Position(3));
        assert_eq!(
            newest(&memory, 0, || at(2, 4, true)),
            None,
            "nobody has settled in the new epoch"
        );
        put(&memory, 0, Epoch(2), &place(5, 5), Position(4));
        for late in [place(5, 1), place(6, 1)] {
            put(&memory, 0, Epoch(1), &late, Position(4));
            assert_eq!(newest(&memory, 0, || at(2, 5, false)), Some(place(5, 5)));
        }
        // So late that it shares the slots: then nothing is found, and never a wrong place.
        put(&memory, 0, Epoch(2 + EPOCHS), &place(5, 9), Position(4));
        put(&memory, 0, Epoch(2 + EPOCHS), &place(6, 9), Position(5));
        assert_eq!(newest(&memory, 0, || at(2, 5, false)), None);
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
        for index in 0..MARKS_WORDS {
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
