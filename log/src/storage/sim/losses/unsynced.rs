//! A file of which something is not synced, and what it can hold after a cut.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use crate::storage::sim::image::{Inode, SECTOR_BYTES, Write, put, sectors};

/// Up to so many changes of one thing every subset of them is tried; beyond, every first few and all but one.
const SUBSETS_OF_MAX: usize = 3;

/// So many contents of one mapped page at most; of more, some between the first and the last are left out.
const PAGE_CONTENTS_MAX: usize = 96;

/// What a file can hold after a cut, as contents and their digests; made when first asked for.
type Contents = Arc<OnceLock<(Arc<Vec<u8>>, [u8; 32])>>;

/// A sector of which something is not synced.
pub(super) struct Sector {
    /// Its number in the file.
    number: usize,
    /// What can stand there: first what is on the disk, then what some of the writes make of it.
    whole: Vec<Vec<u8>>,
    /// What can stand there when the disk stops within it.
    torn: Vec<Vec<u8>>,
    /// When each prefix of the writes came about, and which of `whole` it is.
    prefixes: Vec<(u64, u32)>,
}

/// A file of which something is not synced.
pub(super) enum Unsynced {
    Written {
        durable: Arc<Vec<u8>>,
        /// The length that processes see, where it is not the one on the disk.
        grown: Option<usize>,
        sectors: Vec<Sector>,
    },
    Mapped {
        /// Each version with when it came about; the first is on the disk.
        versions: Vec<(u64, Arc<Vec<u8>>)>,
        /// The sectors in which they differ.
        differing: Vec<usize>,
        /// Which version each of those sectors has.
        contents: Vec<Vec<u32>>,
        made: Vec<Contents>,
    },
}

impl Unsynced {
    pub(super) fn of(inode: &Inode) -> Option<Self> {
        if !inode.versions.is_empty() {
            return Some(Self::mapped(inode));
        }
        if inode.dirty.is_empty() {
            return None;
        }
        let mut numbers: BTreeSet<usize> = BTreeSet::new();
        for write in &inode.dirty {
            let each = sectors(write.offset, write.bytes.len());
            numbers.extend(each.map(|sector| sector.start / SECTOR_BYTES));
        }
        let sectors = numbers.into_iter().map(|number| Sector::of(inode, number));
        let sectors: Vec<Sector> = sectors.filter(|sector| sector.whole.len() > 1).collect();
        let grown = inode.seen.len() > inode.durable.len();
        Some(Self::Written {
            durable: inode.durable.clone(),
            grown: grown.then_some(inode.seen.len()),
            sectors,
        })
    }

    fn mapped(inode: &Inode) -> Self {
        let mut versions = vec![(0, inode.durable.clone())];
        if let Some(last) = inode.dirty.last() {
            let mut bytes = inode.durable.to_vec();
            for write in &inode.dirty {
                put(&mut bytes, write.offset, &write.bytes);
            }
            versions.push((last.order, Arc::new(bytes)));
        }
        versions.extend(inode.versions.iter().cloned());
        let longest = versions.iter().map(|(_, version)| version.len()).max();
        let count = longest.unwrap_or_default().div_ceil(SECTOR_BYTES);
        let differs = |number: &usize| {
            let first = sector_of(&versions[0].1, *number);
            versions.iter().any(|(_, v)| sector_of(v, *number) != first)
        };
        let differing: Vec<usize> = (0..count).filter(differs).collect();
        let contents = page_contents(&versions, &differing);
        Self::Mapped {
            made: contents.iter().map(|_| Contents::default()).collect(),
            versions,
            differing,
            contents,
        }
    }

    /// How many digits it takes.
    pub(super) fn digits(&self) -> usize {
        match self {
            Self::Mapped { .. } => 1,
            Self::Written { grown, sectors, .. } => sectors.len() + usize::from(grown.is_some()),
        }
    }

    pub(super) fn radices(&self) -> Vec<u32> {
        match self {
            Self::Mapped { contents, .. } => vec![contents.len() as u32],
            Self::Written { grown, sectors, .. } => {
                let each = sectors.iter().map(|sector| sector.whole.len() as u32);
                each.chain(grown.map(|_| 2)).collect()
            }
        }
    }

    pub(super) fn torn(&self) -> Vec<u32> {
        match self {
            Self::Mapped { .. } => vec![0],
            Self::Written { grown, sectors, .. } => {
                let each = sectors.iter().map(|sector| sector.torn.len() as u32);
                each.chain(grown.map(|_| 0)).collect()
            }
        }
    }

    pub(super) fn orders(&self, into: &mut BTreeSet<u64>) {
        match self {
            Self::Mapped { versions, .. } => into.extend(versions.iter().map(|(order, _)| *order)),
            Self::Written { sectors, .. } => {
                let prefixes = sectors.iter().flat_map(|sector| &sector.prefixes);
                into.extend(prefixes.map(|(order, _)| *order));
            }
        }
    }

    /// The digits with which it is what it was once that change was made.
    pub(super) fn as_of(&self, order: u64) -> Vec<u32> {
        match self {
            // Whole versions come first, in their order.
            Self::Mapped { versions, .. } => {
                let until = versions.iter().filter(|(made, _)| *made <= order);
                vec![(until.count() - 1) as u32]
            }
            Self::Written { grown, sectors, .. } => {
                let digit = |sector: &Sector| {
                    let mut until = sector.prefixes.iter().rev();
                    let last = until.find(|(made, _)| *made <= order);
                    last.map_or(0, |(_, digit)| *digit)
                };
                let each = sectors.iter().map(digit);
                each.chain(grown.map(|_| 0)).collect()
            }
        }
    }

    pub(super) fn content(&self, digits: &[u32]) -> (Arc<Vec<u8>>, [u8; 32]) {
        match self {
            Self::Mapped {
                versions,
                differing,
                contents,
                made,
            } => {
                let choice = digits[0] as usize;
                let make = || {
                    let mut bytes = versions[0].1.to_vec();
                    for (number, version) in differing.iter().zip(&contents[choice]) {
                        let sector = sector_of(&versions[*version as usize].1, *number);
                        put(&mut bytes, number * SECTOR_BYTES, sector);
                    }
                    let digest = digest_of(&bytes);
                    (Arc::new(bytes), digest)
                };
                made[choice].get_or_init(make).clone()
            }
            Self::Written {
                durable,
                grown,
                sectors,
            } => {
                let mut bytes = durable.to_vec();
                for (sector, digit) in sectors.iter().zip(digits) {
                    let digit = *digit as usize;
                    let content = match digit.checked_sub(sector.whole.len()) {
                        None => &sector.whole[digit],
                        Some(torn) => &sector.torn[torn],
                    };
                    put(&mut bytes, sector.number * SECTOR_BYTES, content);
                }
                if let (Some(length), Some(1)) = (grown, digits.get(sectors.len())) {
                    bytes.resize(*length, 0);
                }
                let digest = digest_of(&bytes);
                (Arc::new(bytes), digest)
            }
        }
    }
}

impl Sector {
    fn of(inode: &Inode, number: usize) -> Self {
        let range = number * SECTOR_BYTES..(number + 1) * SECTOR_BYTES;
        let on_disk = sector_of(&inode.durable, number).to_vec();
        let part = |write: &Write| {
            let from = write.offset.max(range.start);
            let to = (write.offset + write.bytes.len()).min(range.end);
            let bytes = write
                .bytes
                .get(from - write.offset..to.checked_sub(write.offset)?);
            Some((write.order, from - range.start, bytes?.to_vec()))
        };
        let parts = inode.dirty.iter();
        let parts = parts
            .filter(|write| write.offset < range.end)
            .filter_map(part);
        let parts: Vec<(u64, usize, Vec<u8>)> =
            parts.filter(|(_, _, bytes)| !bytes.is_empty()).collect();
        let with = |chosen: &[usize]| {
            let mut bytes = on_disk.clone();
            for index in chosen {
                put(&mut bytes, parts[*index].1, &parts[*index].2);
            }
            bytes
        };
        let mut whole = vec![on_disk.clone()];
        for chosen in choices(parts.len()) {
            let bytes = with(&chosen);
            if !whole.contains(&bytes) {
                whole.push(bytes);
            }
        }
        let (mut prefixes, mut torn) = (Vec::new(), Vec::new());
        let mut before = on_disk.clone();
        for (index, (order, _, _)) in parts.iter().enumerate() {
            let after = with(&(0..=index).collect::<Vec<_>>());
            let digit = whole.iter().position(|bytes| *bytes == after);
            prefixes.push((*order, digit.expect("each first few is a choice") as u32));
            for bytes in torn_between(&before, &after) {
                if !whole.contains(&bytes) && !torn.contains(&bytes) {
                    torn.push(bytes);
                }
            }
            before = after;
        }
        Self {
            number,
            whole,
            torn,
            prefixes,
        }
    }
}

/// A sector that was being made `after` from `before`: what is new of it ends after its first byte, in the middle, or before its
/// last byte; or only that end of it is new.
fn torn_between(before: &[u8], after: &[u8]) -> Vec<Vec<u8>> {
    let at = |bytes: &[u8], index: usize| bytes.get(index).copied().unwrap_or(0);
    let changed = |index: &usize| at(before, *index) != at(after, *index);
    let length = before.len().max(after.len());
    let (Some(first), Some(last)) = ((0..length).find(changed), (0..length).rfind(changed)) else {
        return Vec::new();
    };
    let mut torn = Vec::new();
    for cut in [first + 1, (first + last).div_ceil(2), last] {
        let mix = |new: &dyn Fn(usize) -> bool| {
            let byte = |index| at(if new(index) { after } else { before }, index);
            (0..length).map(byte).collect()
        };
        torn.push(mix(&|index| index < cut));
        torn.push(mix(&|index| index >= cut));
    }
    torn
}

/// Which of so many changes survive, nothing left out: every subset of few; of many, each first few, each alone and all
/// but each. Each first few is among them.
pub(super) fn choices(count: usize) -> Vec<Vec<usize>> {
    if count <= SUBSETS_OF_MAX {
        let subset = |mask: usize| (0..count).filter(|index| mask >> index & 1 == 1).collect();
        return (1..1 << count).map(subset).collect();
    }
    let mut chosen: Vec<Vec<usize>> = (1..=count).map(|first| (0..first).collect()).collect();
    for index in 0..count {
        chosen.push(vec![index]);
        chosen.push((0..count).filter(|other| *other != index).collect());
    }
    chosen
}

/// Which version each differing sector of a mapped page can have: all of one version, in their order; then mixtures of
/// two that follow each other, and of each with the newest.
fn page_contents(versions: &[(u64, Arc<Vec<u8>>)], differing: &[usize]) -> Vec<Vec<u32>> {
    // The first version with the same sector stands for all.
    let same = |version: usize, number: usize| {
        let sector = sector_of(&versions[version].1, number);
        let mut all = versions.iter();
        all.position(|(_, v)| sector_of(v, number) == sector)
    };
    let row = |version: usize| -> Vec<u32> {
        let each = differing.iter().map(|number| same(version, *number));
        each.map(|version| version.unwrap_or_default() as u32)
            .collect()
    };
    let rows: Vec<Vec<u32>> = (0..versions.len()).map(row).collect();
    let last = rows.len() - 1;
    let follows = (0..last).map(|version| (version, version + 1));
    let newest = (0..last.saturating_sub(1)).map(|version| (version, last));
    let mut mixed = Vec::new();
    for (old, new) in follows.chain(newest) {
        let differ = (0..differing.len()).filter(|index| rows[old][*index] != rows[new][*index]);
        let differ: Vec<usize> = differ.collect();
        for chosen in choices(differ.len()) {
            let mut content = rows[old].clone();
            for index in chosen {
                content[differ[index]] = rows[new][differ[index]];
            }
            if !rows.contains(&content) && !mixed.contains(&content) {
                mixed.push(content);
            }
        }
    }
    let room = PAGE_CONTENTS_MAX.saturating_sub(rows.len()).max(1);
    let step = mixed.len().div_ceil(room).max(1);
    rows.into_iter()
        .chain(mixed.into_iter().step_by(step))
        .collect()
}

/// The bytes of a sector, as far as the file has it.
fn sector_of(bytes: &[u8], number: usize) -> &[u8] {
    let start = (number * SECTOR_BYTES).min(bytes.len());
    &bytes[start..(start + SECTOR_BYTES).min(bytes.len())]
}

pub(super) fn digest_of(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}
