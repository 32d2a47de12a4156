//! Bundles: the segments of a log up to a position in one file, with contents taken out of its frames, and the stores
//! that are made of them, which are only looked at. `docs/bundles.md` has the bytes.

mod pack;
mod unpack;

pub use pack::{Contents, pack};
pub use unpack::{Refused, unpack};

use std::fmt;
use std::io;

use crate::error::Error;
use crate::position::{Chain, Head, Position, StoreId};
use crate::storage::{self, Access, Directory};

/// The file in a store's directory that says that it was made from a bundle: the bundle's heading.
pub const MARKER: &str = "bundle";
/// The first line of a heading.
const FIRST_LINE: &str = "tenure bundle 1";
/// The most bytes of a heading.
const HEADING_BYTES_MAX: usize = 400;

/// What a bundle says about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heading {
    /// The store it was made of.
    pub store: StoreId,
    /// Its last frame.
    pub head: Head,
    /// What was taken out of its frames, in the caller's words.
    pub redacted: Vec<String>,
}

impl fmt::Display for Heading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}")?;
        writeln!(f, "store {}", self.store)?;
        writeln!(f, "position {}", self.head.position)?;
        writeln!(f, "chain {}", self.head.chain)?;
        writeln!(f, "redacted {}", self.redacted.join(" "))
    }
}

impl Heading {
    /// Reads what [`Heading`]'s `Display` wrote; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Heading> {
        let mut lines = text.lines();
        let mut field = |name: &str| lines.next()?.strip_prefix(name);
        let first = field("")?;
        let (store, position) = (field("store ")?, field("position ")?);
        let (chain, redacted) = (field("chain ")?, field("redacted ")?);
        let heading = Heading {
            store: store.parse().ok()?,
            head: Head {
                position: Position(position.parse().ok()?),
                chain: chain.parse::<Chain>().ok()?,
            },
            redacted: redacted.split_whitespace().map(str::to_owned).collect(),
        };
        (first == FIRST_LINE && heading.to_string() == text).then_some(heading)
    }
}

/// The heading in a store's directory, where it was made from a bundle.
///
/// # Errors
/// When it is there and cannot be read, or is none.
pub fn marker(dir: &dyn Directory) -> Result<Option<Heading>, Error> {
    let failed = |error| storage::failed("read", dir.path_of(MARKER), error);
    let file = match dir.open(MARKER, Access::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = vec![0; HEADING_BYTES_MAX];
    let read = storage::read_full(&*file, &mut bytes, 0).map_err(failed)?;
    let heading = std::str::from_utf8(&bytes[..read])
        .ok()
        .and_then(Heading::parse);
    heading.map(Some).ok_or_else(|| {
        let what = "it is not the heading of a bundle";
        failed(io::Error::new(io::ErrorKind::InvalidData, what))
    })
}

/// A store that was made from a bundle is not appended to.
pub(crate) fn is_no_copy(dir: &dyn Directory) -> Result<(), Error> {
    match dir.open(MARKER, Access::Read) {
        Ok(_) => Err(Error::ReadOnlyCopy {
            path: dir.path().to_owned(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(storage::failed("open", dir.path_of(MARKER), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::Heading;
    use crate::position::{Chain, Head, Position, StoreId};

    #[test]
    fn a_heading_is_read_as_it_was_written_and_nothing_else_is() {
        let heading = Heading {
            store: StoreId([7; 16]),
            head: Head {
                position: Position(31),
                chain: Chain([9; 16]),
            },
            redacted: vec!["bodies".to_owned(), "labels".to_owned()],
        };
        let nothing = Heading {
            redacted: Vec::new(),
            ..heading.clone()
        };
        assert_eq!(Heading::parse(&nothing.to_string()), Some(nothing));
        let text = heading.to_string();
        assert_eq!(Heading::parse(&text), Some(heading));
        assert_eq!(Heading::parse(&text.replace("bundle 1", "bundle 2")), None);
        assert_eq!(Heading::parse(&text.replace("31", "031")), None);
        for cut in 0..text.len() {
            assert_eq!(Heading::parse(&text[..cut]), None);
        }
        assert_eq!(Heading::parse(&(text + "more")), None);
    }
}
