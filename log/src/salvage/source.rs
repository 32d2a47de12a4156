//! What there is of a damaged store: its segment files in order, each with the best header to read it by.

use std::collections::BTreeMap;
use std::io;

use crate::control::copy::PageCopy;
use crate::error::Error;
use crate::fault::Fault;
use crate::format::{SEGMENT_HEADER_BYTES, SegmentHeader, SegmentName};
use crate::inspect::borrowed_header;
use crate::look::{Look, read_header};
use crate::position::{Epoch, Incarnation, Position, StoreId};
use crate::scan::{ReadAt, read_full};

/// A segment file of the line.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    /// The segment.
    pub name: SegmentName,
    /// The file it stands in.
    pub file: String,
    /// Its own header; or one made of a sibling's and the name, which gives places but no chain.
    pub header: SegmentHeader,
    /// Whether the header is a sibling's.
    pub is_borrowed: bool,
    /// Where the next segment's header ends it.
    pub end: Option<u64>,
    /// Its last position, where there is a next one.
    pub last: Option<Position>,
}

/// The segments of a store, in order.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub store: StoreId,
    /// The newest life that any header or name shows.
    pub incarnation: Incarnation,
    /// The greatest epoch.
    pub epoch: Epoch,
    pub volumes: Vec<Volume>,
    /// Files that are not in the line, and from where on they are kept.
    pub late: Vec<(String, u64)>,
    /// Files without anything to read them by.
    pub unreadable: Vec<String>,
    pub skipped: Vec<(String, String)>,
    /// A position that the control page knows to be durable.
    pub durable: Position,
}

/// Puts the files in order. The newest segment is that of the greatest epoch and, in it, the greatest first position; each
/// one before it ends where the next begins. So names alone give the line, and headers give exact ends.
pub(super) fn line(look: &dyn Look) -> Result<Line, Error> {
    let names = look
        .names()
        .map_err(|error| crate::storage::failed("list", crate::segment::SEGMENTS_FOLDER, error))?;
    let (mut headed, mut lost, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for file in names {
        if file.ends_with(".tmp") || file == "prepared" {
            continue;
        }
        match header_of(look, &file) {
            Ok(Ok(header)) => headed.push((file, header)),
            Ok(Err(Fault::NewerFormat { found, known })) => {
                let path = file.into();
                return Err(Error::NewerFormat { path, found, known });
            }
            Ok(Err(_)) => lost.push(file),
            Err(error) => skipped.push((file, error.to_string())),
        }
    }
    let page = look.control().ok().flatten();
    let page = page.and_then(|bytes| PageCopy::of(&bytes));
    let Some(store) = store_of(&headed, page.as_ref().map(PageCopy::store)) else {
        return Err(Error::NotAStore {
            path: "segments".into(),
        });
    };
    let mut found = ours(store, headed, &mut skipped);
    let mut unreadable = Vec::new();
    for file in lost {
        match borrowed(look, &file, &found) {
            Some(header) if !found.contains_key(&header.name()) => {
                found.insert(header.name(), (file, header, true));
            }
            _ => unreadable.push(file),
        }
    }
    let mut line = Line {
        store,
        incarnation: found
            .values()
            .map(|(_, header, _)| header.incarnation)
            .max()
            .unwrap_or(Incarnation(1)),
        epoch: found
            .keys()
            .map(|name| name.epoch)
            .max()
            .unwrap_or(Epoch(1)),
        volumes: Vec::new(),
        late: Vec::new(),
        unreadable,
        skipped,
        durable: page
            .filter(|page| page.store() == store)
            .and_then(|page| page.mark())
            .map_or(Position::ZERO, |mark| mark.head.position),
    };
    line.follow_back(found);
    Ok(line)
}

/// The segments of `store`, each in one file; why the others are not read goes to `skipped`.
fn ours(
    store: StoreId,
    mut headed: Vec<(String, SegmentHeader)>,
    skipped: &mut Vec<(String, String)>,
) -> Found {
    let mut found = Found::new();
    // A file under its own name comes before a copy of it under another.
    headed.sort_by_key(|(file, header)| (*file != header.name().to_string(), file.clone()));
    for (file, header) in headed {
        if header.store != store {
            let why = format!("it belongs to store {}", header.store);
            skipped.push((file, why));
        } else if let Some((same, ..)) = found.get(&header.name()) {
            let why = format!("{same} is the same segment");
            skipped.push((file, why));
        } else {
            found.insert(header.name(), (file, header, false));
        }
    }
    found
}

type Found = BTreeMap<SegmentName, (String, SegmentHeader, bool)>;

impl Line {
    fn follow_back(&mut self, found: Found) {
        let mut next: Option<SegmentHeader> = None;
        // A sibling's header names no predecessor of this file's.
        let mut next_is_borrowed = false;
        for (name, (file, header, is_borrowed)) in found.into_iter().rev() {
            if next.is_some_and(|next| name.first >= next.first) {
                self.late.push((file, SEGMENT_HEADER_BYTES as u64));
                continue;
            }
            let stated = next
                .filter(|_| !next_is_borrowed)
                .and_then(|next| next.predecessor)
                .filter(|before| before.name == name);
            self.volumes.push(Volume {
                name,
                file,
                header,
                is_borrowed,
                end: stated.map(|before| before.end_offset),
                last: next.map(|next| next.first.before()),
            });
            (next, next_is_borrowed) = (Some(header), is_borrowed);
        }
        self.volumes.reverse();
    }
}

/// The store that the control page names, if any header does; else the one that most headers name.
fn store_of(headed: &[(String, SegmentHeader)], page: Option<StoreId>) -> Option<StoreId> {
    let mut counts: BTreeMap<[u8; 16], usize> = BTreeMap::new();
    for (_, header) in headed {
        *counts.entry(header.store.0).or_default() += 1;
    }
    if let Some(page) = page.filter(|page| counts.contains_key(&page.0)) {
        return Some(page);
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(store, _)| StoreId(store))
}

/// A file's header, also when one bit of it has turned over: the CRC then says which.
fn header_of(look: &dyn Look, file: &str) -> io::Result<Result<SegmentHeader, Fault>> {
    let opened = look.open(file)?;
    let (_, header) = read_header(&opened)?;
    let fault = match header {
        Ok(header) => return Ok(Ok(header)),
        Err(fault) => fault,
    };
    let mut block = vec![0; SEGMENT_HEADER_BYTES];
    if matches!(fault, Fault::NewerFormat { .. })
        || read_full(&opened, &mut block, 0)? < block.len()
    {
        return Ok(Err(fault));
    }
    Ok(mended(&mut block).ok_or(fault))
}

/// CRC-32 as division of polynomials, the least bit first: what is left of a bit with 32 bits behind it.
const CRC_POLYNOMIAL: u32 = 0xEDB8_8320;

/// The header that differs from `block` in one bit and is good. There is at most one: the CRC tells any two apart that
/// differ in so few bits of so short a block.
fn mended(block: &mut [u8]) -> Option<SegmentHeader> {
    let bit = flipped(block)?;
    block[bit / 8] ^= 1 << (bit % 8);
    SegmentHeader::decode(block).ok()
}

/// The one bit that makes the CRC at the end of `block` wrong, if it is one. A CRC is linear: each bit changes it by what
/// the division leaves of that bit alone, whatever the others are, so that one pass over the places finds it.
fn flipped(block: &[u8]) -> Option<usize> {
    let (content, stored) = block.split_last_chunk::<4>()?;
    let wrong = crc32fast::hash(content) ^ u32::from_le_bytes(*stored);
    let bits = content.len() * 8;
    if wrong.is_power_of_two() {
        return Some(bits + wrong.trailing_zeros() as usize);
    }
    // What is left of each bit of a byte, the last byte first.
    let mut left = [CRC_POLYNOMIAL; 8];
    for bit in (0..7).rev() {
        left[bit] = divided(left[bit + 1]);
    }
    for byte in (0..content.len()).rev() {
        if let Some(bit) = left.iter().position(|left| *left == wrong) {
            return Some(byte * 8 + bit);
        }
        left = left.map(|left| (0..8).fold(left, |left, _| divided(left)));
    }
    None
}

/// One more bit behind it.
fn divided(left: u32) -> u32 {
    (left >> 1) ^ ((left & 1) * CRC_POLYNOMIAL)
}

fn borrowed(look: &dyn Look, file: &str, found: &Found) -> Option<SegmentHeader> {
    let siblings: Vec<SegmentHeader> = found.values().map(|(_, header, _)| *header).collect();
    let opened = look.open(file).ok()?;
    borrowed_header(file, &*opened, &siblings).ok()?
}

/// The offset behind the last byte that is not zero, at or behind `from`.
pub(super) fn dirty_end(file: &dyn ReadAt, from: u64) -> io::Result<u64> {
    let left = file.size()?.saturating_sub(from);
    let mut piece = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(64 << 10)];
    let (mut offset, mut end) = (from, from);
    loop {
        let read = read_full(file, &mut piece, offset)?;
        if read == 0 {
            return Ok(end);
        }
        if let Some(last) = piece[..read].iter().rposition(|byte| *byte != 0) {
            end = offset + last as u64 + 1;
        }
        offset += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every bit of a block that ends with its CRC is found when it is turned over, and two bits are not taken for one.
    #[test]
    fn a_bit_that_turned_over_is_found_by_the_checksum() {
        let mut block: Vec<u8> = (0..SEGMENT_HEADER_BYTES - 4)
            .map(|at| (at * 7) as u8)
            .collect();
        let crc = crc32fast::hash(&block);
        block.extend(crc.to_le_bytes());
        assert_eq!(flipped(&block), None);
        for bit in (0..block.len() * 8)
            .step_by(61)
            .chain(block.len() * 8 - 33..block.len() * 8)
        {
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(flipped(&block), Some(bit));
            block[0] ^= 2;
            assert_ne!(flipped(&block), Some(bit), "bits 1 and {bit}");
            block[0] ^= 2;
            block[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
