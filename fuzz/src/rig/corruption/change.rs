//! What is done to the bytes of a store.

use super::image::Image;
use tenure_log::format::SEGMENT_HEADER_BYTES;

/// What a disk writes or does not, as a whole.
const BLOCK_BYTES: usize = 512;

/// Where a change lies, the least telling first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Found {
    /// The bytes are the same.
    Nothing,
    /// Where nothing is ever read.
    Unread,
    /// Behind the last frame, where the next one would stand.
    Prepared,
    /// In the log.
    Log,
}

/// One change. Files are named by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// One bit turned over.
    Flip { file: usize, bit: usize },
    /// Two bits turned over, each a file and a place in it.
    Pair {
        first: (usize, usize),
        second: (usize, usize),
    },
    /// Up to 32 bits turned over in a row of four bytes.
    Burst {
        file: usize,
        at: usize,
        bits: [u8; 4],
    },
    /// The file ends there.
    Cut { file: usize, at: usize },
    /// A block of zeros.
    Zeroed { file: usize, block: usize },
    /// A block of ones.
    Ones { file: usize, block: usize },
    /// A block with what another one has.
    Copied {
        file: usize,
        block: usize,
        from: (usize, usize),
    },
    /// Two blocks, each in the other's place.
    Swapped {
        file: usize,
        block: usize,
        with: (usize, usize),
    },
    /// A block as it was when its file had only so many frames.
    RolledBack {
        file: usize,
        block: usize,
        frames: usize,
    },
    /// The file is not there.
    Deleted { file: usize },
    /// Two files, each under the other's name.
    Renamed { file: usize, with: usize },
    /// The file, as well under the name that the next epoch would give it.
    Doubled { file: usize },
    /// The file as it was when it had only so many frames.
    Older { file: usize, frames: usize },
    /// All of the store as it was then: the file, and those behind it gone.
    Restored { file: usize, frames: usize },
}

/// Every change there is.
pub fn changes(image: &Image) -> Vec<Change> {
    let mut all = Vec::new();
    let names = image.names();
    let blocks: Vec<(usize, usize)> = (0..names.len())
        .flat_map(|file| {
            let bytes = image.segments[&names[file]].len();
            (0..bytes.div_ceil(BLOCK_BYTES)).map(move |block| (file, block))
        })
        .collect();
    for (file, name) in names.iter().enumerate() {
        let bytes = image.segments[name].len();
        all.extend((0..bytes * 8).map(|bit| Change::Flip { file, bit }));
        all.extend((0..bytes).map(|at| Change::Cut { file, at }));
        for at in 0..bytes.saturating_sub(4) {
            // Patterns that end and begin with a changed bit, of every length up to 32.
            let number = (at as u32).wrapping_mul(0x9E37_79B9) | 1;
            let bits = (number | 1 << (31 - at % 31)).to_le_bytes();
            all.push(Change::Burst { file, at, bits });
            let bits = [0xff; 4];
            all.push(Change::Burst { file, at, bits });
        }
        all.push(Change::Deleted { file });
        all.push(Change::Doubled { file });
        all.extend((0..file).map(|with| Change::Renamed { file, with }));
        for frames in 0..image.frames_of(name).count() {
            all.push(Change::Older { file, frames });
            all.push(Change::Restored { file, frames });
        }
    }
    for &(file, block) in &blocks {
        all.push(Change::Zeroed { file, block });
        all.push(Change::Ones { file, block });
        for &from in &blocks {
            all.push(Change::Copied { file, block, from });
            if from < (file, block) {
                let with = from;
                all.push(Change::Swapped { file, block, with });
            }
        }
        for frames in 0..image.frames_of(&names[file]).count() {
            all.push(Change::RolledBack {
                file,
                block,
                frames,
            });
        }
    }
    all
}

/// Every kind, as it is counted.
pub const KINDS: [&str; 10] = [
    "bits",
    "pairs of bits",
    "bursts",
    "cuts",
    "blocks wiped",
    "blocks copied",
    "blocks swapped",
    "blocks rolled back",
    "segments deleted, renamed, doubled",
    "older copies",
];

/// The bits of a store's files, numbered through.
pub struct Bits {
    /// Where the bits of each file begin, and behind the last where they end.
    starts: Vec<u64>,
}

/// The bits of a store's files.
pub fn bits(image: &Image) -> Bits {
    let mut starts = vec![0];
    for name in image.names() {
        let bits = image.segments[name].len() as u64 * 8;
        starts.push(starts[starts.len() - 1] + bits);
    }
    Bits { starts }
}

impl Bits {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// The file and the place in it of one of them.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn at(&self, number: u64) -> (usize, usize) {
        assert!(number < self.count(), "there is no bit {number}");
        let file = self.starts.partition_point(|start| *start <= number) - 1;
        (file, (number - self.starts[file]) as usize)
    }
}

impl Change {
    /// Its kind, for counting.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Flip { .. } => "bits",
            Self::Pair { .. } => "pairs of bits",
            Self::Burst { .. } => "bursts",
            Self::Cut { .. } => "cuts",
            Self::Zeroed { .. } | Self::Ones { .. } => "blocks wiped",
            Self::Copied { .. } => "blocks copied",
            Self::Swapped { .. } => "blocks swapped",
            Self::RolledBack { .. } => "blocks rolled back",
            Self::Deleted { .. } | Self::Renamed { .. } | Self::Doubled { .. } => {
                "segments deleted, renamed, doubled"
            }
            Self::Older { .. } | Self::Restored { .. } => "older copies",
        }
    }

    /// Whether everything that it does not touch is where it was, under the name that it had.
    pub fn leaves_places(self) -> bool {
        !matches!(self, Self::Renamed { .. } | Self::Doubled { .. })
    }

    /// Makes it.
    pub fn make(self, image: &mut Image, whole: &Image) {
        let names = whole.names();
        match self {
            Self::Flip { file, bit } => flip(image, &names[file], bit),
            Self::Pair { first, second } => {
                for (file, bit) in [first, second] {
                    flip(image, &names[file], bit);
                }
            }
            Self::Burst { file, at, bits } => image.edit(&names[file], |bytes| {
                bytes[at..at + 4]
                    .iter_mut()
                    .zip(bits)
                    .for_each(|(b, x)| *b ^= x);
            }),
            Self::Cut { file, at } => image.edit(&names[file], |bytes| bytes.truncate(at)),
            Self::Zeroed { file, block } => fill(image, &names[file], block, 0),
            Self::Ones { file, block } => fill(image, &names[file], block, 0xff),
            Self::Copied { file, block, from } => {
                put(image, whole, names, (file, block), from);
            }
            Self::Swapped { file, block, with } => {
                put(image, whole, names, (file, block), with);
                put(image, whole, names, with, (file, block));
            }
            Self::RolledBack {
                file,
                block,
                frames,
            } => {
                let from = end_after(whole, &names[file], frames);
                image.edit(&names[file], |bytes| {
                    let range = range(block, bytes.len());
                    let from = from.clamp(range.start, range.end);
                    bytes[from..range.end].fill(0);
                });
            }
            Self::Deleted { file } => drop(image.segments.remove(&names[file])),
            Self::Renamed { file, with } => {
                let (a, b) = (&names[file], &names[with]);
                image.segments.insert(a.clone(), whole.segments[b].clone());
                image.segments.insert(b.clone(), whole.segments[a].clone());
            }
            Self::Doubled { file } => {
                let bytes = whole.segments[&names[file]].clone();
                let twin = names[file].replace("-1.seg", "-2.seg");
                image.segments.insert(twin, bytes);
            }
            Self::Older { file, frames } => older(image, whole, &names[file], frames),
            Self::Restored { file, frames } => {
                older(image, whole, &names[file], frames);
                for behind in &names[file + 1..] {
                    image.segments.remove(behind);
                }
            }
        }
    }
}

fn range(block: usize, bytes: usize) -> std::ops::Range<usize> {
    block * BLOCK_BYTES..((block + 1) * BLOCK_BYTES).min(bytes)
}

fn flip(image: &mut Image, name: &str, bit: usize) {
    image.edit(name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
}

fn fill(image: &mut Image, name: &str, block: usize, with: u8) {
    image.edit(name, |bytes| {
        let range = range(block, bytes.len());
        bytes[range].fill(with);
    });
}

fn put(
    image: &mut Image,
    whole: &Image,
    names: &[String],
    (file, block): (usize, usize),
    from: (usize, usize),
) {
    let source = &whole.segments[&names[from.0]];
    let source = &source[range(from.1, source.len())];
    image.edit(&names[file], |bytes| {
        let range = range(block, bytes.len());
        let n = range.len().min(source.len());
        bytes[range.start..range.start + n].copy_from_slice(&source[..n]);
    });
}

/// Where the first so many frames of a file end.
fn end_after(whole: &Image, name: &str, frames: usize) -> usize {
    let before = frames.checked_sub(1);
    let last = before.and_then(|last| whole.frames_of(name).nth(last));
    last.map_or(SEGMENT_HEADER_BYTES, |frame| frame.offset + frame.bytes)
}

fn older(image: &mut Image, whole: &Image, name: &str, frames: usize) {
    let from = end_after(whole, name, frames);
    image.edit(name, |bytes| bytes[from..].fill(0));
}
