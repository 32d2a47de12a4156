//! Bundles of a store: its log up to a position with texts and bodies taken out, to be looked at elsewhere.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use tenure_core::id::Position;
use tenure_core::redaction::{Cannot, Classes, Redactor};
use tenure_log::bundle::{Heading, pack};
use tenure_log::position;
use tenure_log::reader::open::SegmentReader;
use tenure_log::storage::disk::Disk;

use crate::error;

/// What was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// What the bundle says about itself.
    pub heading: Heading,
    /// Texts taken out.
    pub texts: u64,
    /// Bodies taken out.
    pub bodies: u64,
}

/// Why no bundle was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log cannot be read, or does not reach so far.
    #[error(transparent)]
    Store(#[from] error::Error),
    /// Something cannot be taken out.
    #[error("position {position} cannot be redacted: {cannot}")]
    Cannot {
        /// Where.
        position: Position,
        /// Why.
        cannot: Cannot,
    },
    /// The bundle cannot be written.
    #[error("the bundle cannot be written: {0}")]
    Write(#[from] io::Error),
}

impl From<tenure_log::error::Error> for Error {
    fn from(source: tenure_log::error::Error) -> Self {
        Self::Store(source.into())
    }
}

/// Writes the log of the store in `dir` up to `until`, which is at least 1, without what `classes` name. `watch` is
/// told of every position passed.
///
/// # Errors
/// [`Error`]; what was written until then is no bundle.
pub fn write(
    dir: &Path,
    until: Position,
    classes: Classes,
    out: &mut impl Write,
    mut watch: impl FnMut(Position) -> io::Result<()>,
) -> Result<Written, Error> {
    let reader = SegmentReader::open(Arc::new(Disk), dir)?;
    // What a copy of a copy lacks is what either lacks.
    let before = reader.bundle()?.map(|heading| heading.redacted);
    let before = before
        .iter()
        .flatten()
        .filter_map(|w| Classes::from_word(w));
    let all = before.fold(classes.bits(), |all, class| all | class.bits());
    let words = Classes::from_bits(all).words().map(str::to_owned).collect();
    let mut redactor = Redactor::new(classes);
    let until = position::Position(until.0);
    let heading = pack::<Error>(
        &reader,
        until,
        words,
        |contents| {
            let position = Position(contents.frame.header.position.0);
            let redacted = redactor.redact(contents.frame.facts, contents.texts, contents.bodies);
            redacted.map_err(|cannot| Error::Cannot { position, cannot })?;
            Ok(watch(position)?)
        },
        out,
    )?;
    let (texts, bodies) = redactor.taken();
    Ok(Written {
        heading,
        texts,
        bodies,
    })
}
