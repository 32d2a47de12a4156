//! Seals: what a closed segment held when somebody had time to look, beside it in `seals/`.
//!
//! A seal is made later, by whoever has time, and never under a lock; a segment without one is whole all the same.
//! Checksums and the chain show damage; a seal shows a file that was exchanged for another whole one.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::str::FromStr;

use crate::format::SegmentName;
use crate::position::{Chain, Head, Position};
use crate::scan::ReadAt;

/// The folder of seals.
pub const SEALS_FOLDER: &str = "seals";

/// The most bytes of a seal's file: what is longer is none.
pub const SEAL_BYTES_MAX: usize = 1024;

/// What a closed segment holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal {
    /// The segment.
    pub segment: SegmentName,
    /// Its frames.
    pub frames: u64,
    /// Its last frame.
    pub end: Head,
    /// Its bytes up to the end that its successor's header states.
    pub bytes: u64,
    /// BLAKE3 of those bytes.
    pub hash: [u8; 32],
}

impl Seal {
    /// The seal of a segment that begins behind `start` and was closed at `end`, `bytes` into its file.
    ///
    /// # Errors
    /// The system's answer; [`io::ErrorKind::UnexpectedEof`] when the file is shorter than its stated end.
    pub fn of(
        segment: SegmentName,
        start: Position,
        end: Head,
        bytes: u64,
        file: &dyn ReadAt,
    ) -> io::Result<Seal> {
        let hash = hash(file, bytes)?;
        let frames = end.position.0.saturating_sub(start.0);
        Ok(Seal {
            segment,
            frames,
            end,
            bytes,
            hash,
        })
    }

    /// The name of its file in [`SEALS_FOLDER`].
    #[must_use]
    pub fn file_name(segment: SegmentName) -> String {
        format!("{segment}.seal")
    }

    /// Whether `file` still holds the bytes that were sealed.
    ///
    /// # Errors
    /// The system's answer.
    pub fn holds(&self, file: &dyn ReadAt) -> io::Result<bool> {
        self.is_of(&Hashing::new(file, self.bytes))
    }

    /// The same of a file that was hashed while it was read.
    pub(crate) fn is_of<R: ReadAt>(&self, file: &Hashing<R>) -> io::Result<bool> {
        match file.finish() {
            Ok(hash) => Ok(hash == self.hash),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// BLAKE3 of the first `bytes` bytes.
fn hash(file: &dyn ReadAt, bytes: u64) -> io::Result<[u8; 32]> {
    Hashing::new(file, bytes).finish()
}

/// A file whose first bytes are hashed while somebody else reads them for a reason of his own.
pub(crate) struct Hashing<R> {
    file: R,
    until: u64,
    so_far: RefCell<SoFar>,
}

struct SoFar {
    hasher: blake3::Hasher,
    bytes: u64,
}

impl<R: ReadAt> Hashing<R> {
    /// Of the first `until` bytes.
    pub(crate) fn new(file: R, until: u64) -> Hashing<R> {
        let so_far = SoFar {
            hasher: blake3::Hasher::new(),
            bytes: 0,
        };
        Hashing {
            file,
            until,
            so_far: RefCell::new(so_far),
        }
    }

    /// The hash; what nobody read is read now.
    ///
    /// # Errors
    /// The system's answer; [`io::ErrorKind::UnexpectedEof`] when the file is shorter.
    pub(crate) fn finish(&self) -> io::Result<[u8; 32]> {
        let mut buffer = Vec::new();
        loop {
            let offset = self.so_far.borrow().bytes;
            if offset >= self.until {
                return Ok(*self.so_far.borrow().hasher.finalize().as_bytes());
            }
            buffer.resize(1 << 18, 0);
            if self.read_at(&mut buffer, offset)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl SoFar {
    /// Takes what of `bytes`, which stand at `offset`, comes next.
    fn see(&mut self, bytes: &[u8], offset: u64, until: u64) {
        let left = usize::try_from(until.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(left)];
        let known = self.bytes.checked_sub(offset).map(usize::try_from);
        if let Some(Ok(known)) = known
            && let Some(new) = bytes.get(known..)
        {
            self.hasher.update(new);
            self.bytes += new.len() as u64;
        }
    }
}

impl<R: ReadAt> ReadAt for Hashing<R> {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(into, offset)?;
        self.so_far
            .borrow_mut()
            .see(&into[..read], offset, self.until);
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}

/// As `docs/format.md` says: lines of `name value`.
impl fmt::Display for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seal {
            segment,
            frames,
            end,
            bytes,
            hash,
        } = self;
        let (position, chain) = (end.position, end.chain);
        writeln!(
            f,
            "tenure seal 1\nsegment {segment}\nframes {frames}\nposition {position}"
        )?;
        write!(f, "chain {chain}\nbytes {bytes}\nblake3 ")?;
        hash.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        writeln!(f)
    }
}

/// A text that is no seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a seal of version 1")]
pub struct NotASeal;

impl FromStr for Seal {
    type Err = NotASeal;

    fn from_str(text: &str) -> Result<Seal, NotASeal> {
        let mut lines = text
            .strip_prefix("tenure seal 1\n")
            .ok_or(NotASeal)?
            .lines();
        let mut value = |name: &str| {
            lines
                .next()
                .and_then(|l| l.strip_prefix(name)?.strip_prefix(' '))
                .ok_or(NotASeal)
        };
        let segment = value("segment")?.parse().map_err(|_| NotASeal)?;
        let frames = value("frames")?.parse().map_err(|_| NotASeal)?;
        let position = Position(value("position")?.parse().map_err(|_| NotASeal)?);
        let chain: Chain = value("chain")?.parse().map_err(|_| NotASeal)?;
        let bytes = value("bytes")?.parse().map_err(|_| NotASeal)?;
        let digits = value("blake3")?.as_bytes();
        let seal = Seal {
            segment,
            frames,
            end: Head { position, chain },
            bytes,
            hash: thirty_two(digits).ok_or(NotASeal)?,
        };
        // One spelling: whatever else parses is none of ours.
        if seal.to_string() == text {
            Ok(seal)
        } else {
            Err(NotASeal)
        }
    }
}

fn thirty_two(digits: &[u8]) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three bytes at a time.
    struct Slow(Vec<u8>);

    impl ReadAt for Slow {
        fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
            let left = self.0.get(offset as usize..).unwrap_or(&[]);
            let n = left.len().min(into.len()).min(3);
            into[..n].copy_from_slice(&left[..n]);
            Ok(n)
        }

        fn size(&self) -> io::Result<u64> {
            Ok(self.0.len() as u64)
        }
    }

    #[test]
    fn a_hash_is_of_the_first_bytes_however_they_were_read() {
        let bytes: Vec<u8> = (0..50).collect();
        let ways: [&[u64]; 5] = [
            &[],
            &[0, 3, 6],
            &[0, 2, 1, 4, 6],
            &[9, 0, 30],
            &[45, 48, 50, 60],
        ];
        for way in ways {
            for until in [0, 1, 2, 3, 7, 49, 50] {
                let file = Hashing::new(Slow(bytes.clone()), until);
                for offset in way {
                    let read = file.read_at(&mut [0; 8], *offset).expect("memory");
                    assert_eq!(read, 50_usize.saturating_sub(*offset as usize).min(3));
                }
                let wanted = blake3::hash(&bytes[..until as usize]);
                assert_eq!(&file.finish().expect("long enough"), wanted.as_bytes());
            }
            let file = Hashing::new(Slow(bytes.clone()), 51);
            let error = file.finish().expect_err("too short");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
