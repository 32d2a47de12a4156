//! Where a reader of the log left off. A cursor is a receipt: one of another past is told apart from one that is
//! merely old, and never taken for the beginning (E21, F19).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tenure_projection::core::id::Position;
use tenure_projection::log::frame::Depth;
use tenure_projection::log::position::{Head, Receipt};
use tenure_projection::reader::Reader;

use crate::clock::When;
use crate::context::Context;
use crate::exit::Cause;
use crate::fault::{Fault, Stop};
use crate::private_file::PrivateFile;

use super::{foreign, receipt};

/// A cursor, and the file to leave the next one in.
pub struct Cursor {
    after: Option<String>,
    file: Option<PathBuf>,
}

impl Cursor {
    /// From the options.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn open(after: Option<&str>, file: Option<&Path>) -> Result<Self, Stop> {
        let kept = match file {
            None => None,
            Some(path) => match fs::read_to_string(path) {
                Ok(text) => Some(text.trim().to_owned()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(Fault::file("read", path, error).into()),
            },
        };
        Ok(Self {
            after: after.map(str::to_owned).or(kept),
            file: file.map(Path::to_owned),
        })
    }

    /// Where to begin behind.
    ///
    /// # Errors
    /// When the cursor is none, or not in this log.
    pub fn begin(&self, ctx: &Context, reader: &Reader) -> Result<Head, Stop> {
        let Some(text) = &self.after else {
            return Ok(Head::default());
        };
        let cursor = match text.parse::<Receipt>() {
            Ok(cursor) => cursor,
            Err(_) => match When::parse(text, crate::clock::now()) {
                Some(When::At(position)) => return at(ctx, reader, position, text),
                _ => {
                    let message = format!(
                        "{text:?} is no cursor: a position, or a receipt STORE:POSITION:CHAIN"
                    );
                    return Err(Fault::new(Cause::BadPosition, message).into());
                }
            },
        };
        let head = at(ctx, reader, Position(cursor.position.0), text)?;
        let here = receipt(ctx, reader, head)?;
        let born = cursor.position.0 == 0 && cursor.store == here.store;
        if here == cursor || born {
            Ok(head)
        } else {
            Err(foreign(text))
        }
    }

    /// Leaves the newest head in the file, also when nothing matched.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn leave(&self, ctx: &Context, reader: &Reader, head: Head) -> Result<(), Stop> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        let text = receipt(ctx, reader, head)?.to_string();
        PrivateFile::prepare(path)?.commit(&text)
    }
}

/// The head at a position that a cursor names.
fn at(ctx: &Context, reader: &Reader, position: Position, text: &str) -> Result<Head, Stop> {
    if position.0 == 0 {
        return Ok(Head::default());
    }
    let newest = reader.head().map_err(|error| ctx.fault(&error))?;
    if position.0 > newest.position.0 {
        return Err(foreign(text));
    }
    let mut found = None;
    let read = reader.frames(position, position, Depth::Facts, |frame| {
        found = Some(frame.header.head());
        Ok(false)
    });
    read.map_err(|error| ctx.fault(&error))?;
    found.ok_or_else(|| foreign(text))
}
