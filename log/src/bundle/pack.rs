//! Writing a bundle: frame by frame, so that its memory is a frame.

use std::io::{self, Write};

use super::Heading;
use crate::error::Error;
use crate::format::SEGMENT_HEADER_BYTES;
use crate::frame::{Depth, FrameRef, carry_into};
use crate::position::Position;
use crate::reader::open::SegmentReader;

/// The texts and bodies of a frame, to be changed in place: lengths stay.
#[derive(Debug)]
pub struct Contents<'a> {
    /// The frame as it stands in the log.
    pub frame: FrameRef<'a>,
    /// Its texts.
    pub texts: &'a mut [u8],
    /// Its bodies.
    pub bodies: &'a mut [u8],
}

/// Writes the log up to `until`, which is at least 1, as a bundle. `redact` takes contents out of each frame;
/// `redacted` says in words what it takes out. Gives the heading.
///
/// # Errors
/// When the log cannot be read or does not reach `until`; what `redact` and `out` return.
pub fn pack<E: From<Error> + From<io::Error>>(
    reader: &SegmentReader,
    until: Position,
    redacted: Vec<String>,
    mut redact: impl FnMut(Contents<'_>) -> Result<(), E>,
    out: &mut impl Write,
) -> Result<Heading, E> {
    let (head, parts) = reader.parts(until)?;
    let heading = Heading {
        store: reader.store(),
        head,
        redacted,
    };
    let mut out = Hashing {
        out,
        hasher: blake3::Hasher::new(),
    };
    let invalid = |what: String| E::from(io::Error::new(io::ErrorKind::InvalidData, what));
    writeln!(out, "{heading}segments {}", parts.len())?;
    let mut frames = reader.read_from(Position::ZERO, Depth::Whole)?;
    let mut buffer = Vec::new();
    let mut passed = Position::ZERO;
    for part in &parts {
        writeln!(out, "segment {} {}", part.segment.name(), part.end)?;
        out.write_all(&part.segment.header().encode())?;
        let mut offset = SEGMENT_HEADER_BYTES as u64;
        while passed < part.last {
            let Some(frame) = frames.next() else { break };
            let frame = frame?;
            passed = frame.header.position;
            let (mut texts, mut bodies) = (frame.texts.to_vec(), frame.bodies.to_vec());
            let (header, facts) = (frame.header, frame.facts);
            redact(Contents {
                frame,
                texts: &mut texts,
                bodies: &mut bodies,
            })?;
            let frame = FrameRef {
                header,
                facts,
                texts: &texts,
                bodies: &bodies,
            };
            buffer.clear();
            let place = part.segment.place().at(offset);
            carry_into(&mut buffer, &place, &frame).map_err(|fault| invalid(fault.to_string()))?;
            offset += buffer.len() as u64;
            out.write_all(&buffer)?;
        }
        if (passed, offset) != (part.last, part.end) {
            let name = part.segment.name();
            return Err(invalid(format!("segment {name} changed while it was read")));
        }
    }
    let hash = out.hasher.finalize();
    writeln!(out.out, "blake3 {hash}")?;
    Ok(heading)
}

struct Hashing<W> {
    out: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
