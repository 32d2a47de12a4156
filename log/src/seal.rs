//! Seals: what a closed segment held when somebody had time to look, beside it in `seals/`.
//!
//! A seal is made later, by whoever has time, and never under a lock; a segment without one is whole all the same.
//! Checksums and the chain show damage; a seal shows a file that was exchanged for another whole one.

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
        match hash(file, self.bytes) {
            Ok(hash) => Ok(hash == self.hash),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// BLAKE3 of the first `bytes` bytes.
fn hash(file: &dyn ReadAt, bytes: u64) -> io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    let mut offset = 0;
    while offset < bytes {
        let want = usize::try_from(bytes - offset)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = file.read_at(&mut buffer[..want], offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        hasher.update(&buffer[..read]);
        offset += read as u64;
    }
    Ok(*hasher.finalize().as_bytes())
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
