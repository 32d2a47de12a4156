//! Chains of several frames at once.
//!
//! A chain is one BLAKE3 over less than a kilobyte: its blocks come one after the other, and a processor that can
//! compress eight blocks side by side compresses one. But the header before a frame states the chain that its own
//! follows from, so frames need not wait for one another: the whole blocks of those that have as many of them go side by
//! side, and only the last block of each, which is shorter, goes by itself.

use blake3::platform::Platform;
use blake3::{BLOCK_LEN, IncrementCounter, OUT_LEN};

use crate::frame::{CHAINED_BYTES, FrameRef};
use crate::position::Chain;

/// Frames that are held against their chains at once: a multiple of the inputs that any processor takes side by side, and
/// so many that few of these places stand empty.
pub(super) const LANES: usize = 64;
const _: () = assert!(LANES.is_multiple_of(blake3::platform::MAX_SIMD_DEGREE));
/// Whole blocks of an input that goes side by side with others. What is longer is hashed by itself.
const BLOCKS_MAX: usize = 8;
/// Bytes of an input besides the facts: the chain before, and the header up to its own.
const LEAD_BYTES: usize = 16 + CHAINED_BYTES;
/// Room for whole blocks, and for a last one.
const INPUT_BYTES: usize = (BLOCKS_MAX + 1) * BLOCK_LEN;

/// What BLAKE3 starts a hash from (its specification, table 1).
const START: [u32; 8] = [
    0x6A09_E667,
    0xBB67_AE85,
    0x3C6E_F372,
    0xA54F_F53A,
    0x510E_527F,
    0x9B05_688C,
    0x1F83_D9AB,
    0x5BE0_CD19,
];
/// Flags of a block (its specification, table 3).
const CHUNK_START: u8 = 1;
const CHUNK_END: u8 = 2;
const ROOT: u8 = 8;

/// Inputs of chains, and what the frames state.
pub(super) struct Lanes {
    platform: Platform,
    inputs: Vec<[u8; INPUT_BYTES]>,
    lengths: Vec<usize>,
    stated: Vec<Chain>,
    /// Of those that were too long, whether what they state is so.
    long: Vec<(usize, bool)>,
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lanes({} frames)", self.lengths.len())
    }
}

impl Lanes {
    pub(super) fn new() -> Lanes {
        Lanes {
            platform: Platform::detect(),
            inputs: Vec::new(),
            lengths: Vec::new(),
            stated: Vec::new(),
            long: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.lengths.clear();
        self.stated.clear();
        self.long.clear();
    }

    /// Adds a frame whose checksums hold, behind one that states `before`. There is room for [`LANES`].
    pub(super) fn add(&mut self, before: Chain, frame: &FrameRef<'_>) {
        let lane = self.lengths.len();
        if lane == self.inputs.len() {
            self.inputs.push([0; INPUT_BYTES]);
        }
        let length = LEAD_BYTES + frame.facts.len();
        self.stated.push(frame.header.chain);
        if let Some(input) = self.inputs[lane].get_mut(..length) {
            let (chain, rest) = input.split_at_mut(16);
            let (header, facts) = rest.split_at_mut(CHAINED_BYTES);
            chain.copy_from_slice(&before.0);
            header.copy_from_slice(&frame.header.chained_bytes());
            facts.copy_from_slice(frame.facts);
            self.lengths.push(length);
        } else {
            let follows = frame.header.chain_after(before, frame.facts) == frame.header.chain;
            self.long.push((lane, follows));
            self.lengths.push(0);
        }
    }

    /// How many of the frames, from the first on, state the chain that follows.
    pub(super) fn good(&self) -> usize {
        let mut good = [true; LANES];
        for (lane, follows) in &self.long {
            good[*lane] = *follows;
        }
        for blocks in 0..=BLOCKS_MAX {
            let mut alike = [0_u8; LANES];
            let mut count = 0;
            for (lane, length) in self.lengths.iter().enumerate() {
                if *length > 0 && (length - 1) / BLOCK_LEN == blocks {
                    alike[count] = lane as u8;
                    count += 1;
                }
            }
            self.judge(blocks, &alike[..count], &mut good);
        }
        let lanes = &good[..self.lengths.len()];
        lanes.iter().position(|good| !good).unwrap_or(lanes.len())
    }

    /// Judges the lanes that have so many whole blocks before their last one.
    fn judge(&self, blocks: usize, alike: &[u8], good: &mut [bool; LANES]) {
        if alike.is_empty() {
            return;
        }
        let mut values = [0; LANES * OUT_LEN];
        match blocks {
            1 => self.side_by_side::<{ BLOCK_LEN }>(alike, &mut values),
            2 => self.side_by_side::<{ 2 * BLOCK_LEN }>(alike, &mut values),
            3 => self.side_by_side::<{ 3 * BLOCK_LEN }>(alike, &mut values),
            4 => self.side_by_side::<{ 4 * BLOCK_LEN }>(alike, &mut values),
            5 => self.side_by_side::<{ 5 * BLOCK_LEN }>(alike, &mut values),
            6 => self.side_by_side::<{ 6 * BLOCK_LEN }>(alike, &mut values),
            7 => self.side_by_side::<{ 7 * BLOCK_LEN }>(alike, &mut values),
            8 => self.side_by_side::<{ 8 * BLOCK_LEN }>(alike, &mut values),
            _ => {}
        }
        for (lane, value) in alike.iter().zip(values.as_chunks::<OUT_LEN>().0) {
            let lane = usize::from(*lane);
            let value = match blocks {
                0 => START,
                _ => words(value),
            };
            good[lane] = self.last(lane, blocks, value) == self.stated[lane];
        }
    }

    /// Compresses the whole blocks of each of these lanes.
    fn side_by_side<const N: usize>(&self, alike: &[u8], values: &mut [u8; LANES * OUT_LEN]) {
        let mut inputs: [&[u8; N]; LANES] = [&[0; N]; LANES];
        for (input, lane) in inputs.iter_mut().zip(alike) {
            let blocks = self.inputs[usize::from(*lane)].first_chunk();
            *input = blocks.expect("an input has room for so many blocks");
        }
        // Lanes that stand empty cost less than two inputs that go one after the other.
        let degree = self.platform.simd_degree();
        let count = match alike.len() % degree {
            0 | 1 => alike.len(),
            _ => alike.len().next_multiple_of(degree),
        };
        self.platform.hash_many(
            &inputs[..count],
            &START,
            0,
            IncrementCounter::No,
            0,
            CHUNK_START,
            0,
            values,
        );
    }

    /// Compresses the last block of a lane: the chain.
    fn last(&self, lane: usize, blocks: usize, mut value: [u32; 8]) -> Chain {
        let from = blocks * BLOCK_LEN;
        let length = self.lengths[lane] - from;
        let mut block = [0; BLOCK_LEN];
        block[..length].copy_from_slice(&self.inputs[lane][from..from + length]);
        let first = if blocks == 0 { CHUNK_START } else { 0 };
        let flags = first | CHUNK_END | ROOT;
        self.platform
            .compress_in_place(&mut value, &block, length as u8, 0, flags);
        let mut chain = [0; 16];
        for (bytes, word) in chain.chunks_exact_mut(4).zip(value) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Chain(chain)
    }
}

fn words(bytes: &[u8; OUT_LEN]) -> [u32; 8] {
    let mut words = [0; 8];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Header;
    use crate::position::{Epoch, Incarnation, Position, TimeMicros};

    fn header(position: u64, facts: &[u8]) -> Header {
        Header {
            position: Position(position),
            incarnation: Incarnation(1),
            epoch: Epoch(2),
            time: TimeMicros(-3),
            durable: Position(position - 1),
            facts_len: facts.len() as u32,
            texts_len: 4,
            bodies_len: 5,
            chain: Chain::default(),
        }
    }

    /// How many are good when the facts have these lengths, and the chain of `wrong` is another.
    fn good(lengths: &[usize], wrong: Option<usize>) -> usize {
        let mut lanes = Lanes::new();
        let mut before = Chain([9; 16]);
        for (at, length) in lengths.iter().enumerate() {
            let facts: Vec<u8> = (0..*length).map(|n| (n * 7 + at) as u8).collect();
            let mut header = header(at as u64 + 1, &facts);
            header.chain = header.chain_after(before, &facts);
            if wrong == Some(at) {
                header.chain.0[at % 16] ^= 1;
            }
            let frame = FrameRef {
                header,
                facts: &facts,
                texts: &[],
                bodies: &[],
            };
            lanes.add(before, &frame);
            before = header.chain;
        }
        lanes.good()
    }

    /// Whatever the number of blocks, a chain in a lane is the one that is hashed by itself.
    #[test]
    fn lanes_are_hashed_as_one_frame_is() {
        let lengths: Vec<usize> = (0..1300).collect();
        for lengths in lengths.chunks(LANES) {
            assert_eq!(good(lengths, None), lengths.len());
        }
        for count in 1..=LANES {
            assert_eq!(good(&vec![200; count], None), count);
        }
    }

    #[test]
    fn a_chain_that_does_not_follow_is_found_in_every_lane() {
        let mixed: Vec<usize> = (0..LANES).map(|n| n * 13 % 700).collect();
        for wrong in 0..LANES {
            assert_eq!(good(&mixed, Some(wrong)), wrong);
            assert_eq!(good(&[130; LANES], Some(wrong)), wrong);
        }
    }

    /// Whoever is used again knows nothing of what it held.
    #[test]
    fn lanes_are_used_again() {
        let mut lanes = Lanes::new();
        for facts in [&[7; 300][..], &[8; 2][..], &[9; 2000][..]] {
            lanes.clear();
            let mut header = header(1, facts);
            header.chain = header.chain_after(Chain::default(), facts);
            let frame = FrameRef {
                header,
                facts,
                texts: &[],
                bodies: &[],
            };
            lanes.add(Chain::default(), &frame);
            assert_eq!(lanes.good(), 1);
        }
    }
}
