//! Where a frame stands, and the CRC of its header, which that seeds.

use std::sync::LazyLock;

use super::CRC_COVERED_BYTES;
use crate::position::{Epoch, Position, Salt};
use crate::zoo::planted;

/// The header bytes that the header CRC covers, behind the frame's offset, which it covers too.
const HEADER_CRC_BYTES: usize = 8 + CRC_COVERED_BYTES;

/// By what the CRC of a header differs when the frame stands at this offset and not at 0: a CRC is linear, so that each
/// byte of the offset has a part in it that follows from that byte alone.
static OFFSET_CRC: [[u32; 256]; 8] = offset_crc();

const fn offset_crc() -> [[u32; 256]; 8] {
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    let mut table = [[0; 256]; 8];
    let mut place = 0;
    while place < 8 {
        let mut bit = 0;
        while bit < 8 {
            let mut crc: u32 = 1 << bit;
            let mut shifts = 8 * (HEADER_CRC_BYTES - place);
            while shifts > 0 {
                crc = (crc >> 1) ^ (POLYNOMIAL & 0_u32.wrapping_sub(crc & 1));
                shifts -= 1;
            }
            let mut byte = 1 << bit;
            while byte < 256 {
                if byte & 1 << bit != 0 {
                    table[place][byte] ^= crc;
                }
                byte += 1;
            }
            bit += 1;
        }
        place += 1;
    }
    table
}

/// Where a frame stands. It seeds the header CRC, so that the same bytes are good nowhere else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    epoch: Epoch,
    offset: u64,
    /// By what the CRC of a header at offset 0 differs when salt, first position, epoch and that offset stand before it.
    /// That follows from these and the length alone, so it is made once for a segment.
    segment_crc: u32,
}

impl Place {
    /// The start of the file of the segment with this salt, first position and writer epoch.
    #[must_use]
    pub fn in_segment(salt: Salt, segment_first: Position, epoch: Epoch) -> Place {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&salt.0);
        hasher.update(&segment_first.0.to_le_bytes());
        hasher.update(&epoch.0.to_le_bytes());
        let zeros = [0; HEADER_CRC_BYTES];
        hasher.update(&zeros);
        Place {
            epoch,
            offset: 0,
            segment_crc: hasher.finalize() ^ crc32(&zeros[..CRC_COVERED_BYTES]),
        }
    }

    /// The same segment, at a byte offset counted from the start of its file.
    #[must_use]
    pub fn at(self, offset: u64) -> Place {
        Place { offset, ..self }
    }

    /// The byte offset in the segment's file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The writer epoch of the segment.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    #[inline(always)]
    pub(super) fn header_crc(&self, covered: &[u8; CRC_COVERED_BYTES]) -> u32 {
        let mut covered = *covered;
        if planted("crc-without-position") {
            covered[16..24].fill(0);
        }
        let mut crc = crc32(&covered) ^ self.segment_crc;
        let mut rest = self.offset;
        for place in &OFFSET_CRC {
            crc ^= place[(rest & 0xff) as usize];
            rest >>= 8;
            // No segment of this program is so long that the upper bytes count.
            if rest == 0 {
                break;
            }
        }
        crc
    }
}

/// CRC-32 of `bytes`. A hasher asks the processor what it can do, which costs as much as a short checksum: that is done
/// once.
#[inline]
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    static NEW: LazyLock<crc32fast::Hasher> = LazyLock::new(crc32fast::Hasher::new);
    let mut hasher = NEW.clone();
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/format.md`: salt, first position, epoch, offset, header, in this order.
    #[test]
    fn a_header_crc_is_that_of_everything_side_by_side() {
        let (salt, first, epoch) = (Salt([0xa5; 16]), Position(0x1234_5678_9abc), Epoch(77));
        let mut covered = [0; CRC_COVERED_BYTES];
        for (at, byte) in covered.iter_mut().enumerate() {
            *byte = (at * 37) as u8;
        }
        let bits = (0..64).map(|bit| 1 << bit);
        let offsets = bits.chain([0, 4096, 0xdead_bee8, 0x0123_4567_89ab_cdef, u64::MAX]);
        for offset in offsets {
            let mut bytes = salt.0.to_vec();
            for word in [first.0, epoch.0, offset] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            bytes.extend_from_slice(&covered);
            let place = Place::in_segment(salt, first, epoch).at(offset);
            assert_eq!(
                place.header_crc(&covered),
                crc32fast::hash(&bytes),
                "{offset}"
            );
        }
    }
}
