//! Bytes changed by chance: as a fuzzer without a view of the code does it, and with checksums made right again, so that
//! what lies behind them is reached.

use tenure_log::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use tenure_log::frame::FRAME_MAGIC;

use crate::hammer::Dice;

/// Numbers at which something changes.
const INTERESTING: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    1 << 20,
    (1 << 20) + 1,
    0x7fff_ffff,
    0xffff_ffff,
    (1 << 48) - 1,
    1 << 48,
    u64::MAX,
];

/// The most bytes that an input has.
const BYTES_MAX: usize = 64 << 10;

/// How far a frame's header is covered by the checksum behind it.
const COVERED: usize = 80;

/// Changes the bytes up to eight times; `others` are what a part may come from.
pub fn change(bytes: &mut Vec<u8>, others: &[Vec<u8>], dice: &mut Dice) {
    for _ in 0..=dice.roll(8) {
        change_once(bytes, others, dice);
    }
    bytes.truncate(BYTES_MAX);
}

fn below(dice: &mut Dice, sides: usize) -> usize {
    dice.roll(sides as u64) as usize
}

/// A stretch of up to `most` bytes.
fn stretch(dice: &mut Dice, bytes: &[u8], most: usize) -> std::ops::Range<usize> {
    let from = below(dice, bytes.len() + 1);
    let to = from + below(dice, most.min(bytes.len() - from) + 1);
    from..to
}

fn change_once(bytes: &mut Vec<u8>, others: &[Vec<u8>], dice: &mut Dice) {
    if bytes.is_empty() {
        bytes.push(dice.roll(256) as u8);
    }
    let at = below(dice, bytes.len());
    match dice.roll(9) {
        0 | 1 => bytes[at] ^= 1 << dice.roll(8),
        2 => bytes[at] = dice.roll(256) as u8,
        3 => {
            let number = INTERESTING[below(dice, INTERESTING.len())].to_le_bytes();
            let width = [1, 2, 4, 8][below(dice, 4)].min(bytes.len() - at);
            bytes[at..at + width].copy_from_slice(&number[..width]);
        }
        4 => bytes[at] = bytes[at].wrapping_add(dice.roll(9) as u8).wrapping_sub(4),
        5 => drop(bytes.drain(stretch(dice, bytes, 64))),
        6 => {
            let copy = bytes[stretch(dice, bytes, 64)].to_vec();
            bytes.splice(at..at, copy);
        }
        7 => {
            let other = &others[below(dice, others.len())];
            let part = other[stretch(dice, other, 512)].to_vec();
            let over = at..(at + part.len() * below(dice, 2)).min(bytes.len());
            bytes.splice(over, part);
        }
        _ => bytes.truncate(at),
    }
}

/// Makes the checksums of a segment right again, as somebody would who edits a store.
pub fn reseal(bytes: &mut [u8]) {
    if bytes.len() < SEGMENT_HEADER_BYTES {
        return;
    }
    let end = SEGMENT_HEADER_BYTES - 4;
    let crc = crc32fast::hash(&bytes[..end]).to_le_bytes();
    bytes[end..end + 4].copy_from_slice(&crc);
    let Ok(header) = SegmentHeader::decode(bytes) else {
        return;
    };
    let mut at = SEGMENT_HEADER_BYTES;
    while at + COVERED + 4 <= bytes.len() {
        if bytes[at..at + 4] == FRAME_MAGIC.to_le_bytes() {
            reseal_frame(bytes, at, &header);
        }
        at += 8;
    }
}

fn reseal_frame(bytes: &mut [u8], at: usize, header: &SegmentHeader) {
    let length = |field: usize| {
        let field = at + field..at + field + 4;
        let four = bytes[field].first_chunk::<4>().copied();
        u32::from_le_bytes(four.unwrap_or_default()) as usize
    };
    let facts = at + COVERED + 4..(at + COVERED + 4).saturating_add(length(4));
    let rest = facts.end
        ..facts
            .end
            .saturating_add(length(8))
            .saturating_add(length(12));
    for (part, place) in [(facts, 72), (rest, 76)] {
        if let Some(part) = bytes.get(part) {
            let crc = crc32fast::hash(part).to_le_bytes();
            bytes[at + place..at + place + 4].copy_from_slice(&crc);
        }
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header.salt.0);
    for number in [header.first.0, header.epoch.0, at as u64] {
        crc.update(&number.to_le_bytes());
    }
    crc.update(&bytes[at..at + COVERED]);
    bytes[at + COVERED..at + COVERED + 4].copy_from_slice(&crc.finalize().to_le_bytes());
}
