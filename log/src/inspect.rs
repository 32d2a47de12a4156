//! Shows what stands in segment files, stretch by stretch: every byte of every file is accounted for, whatever it is.
//! Reads only. It judges nothing: that is [`verify`](crate::verify::verify()).

use std::io;

use crate::fault::Fault;
use crate::format::{SEGMENT_HEADER_BYTES, SegmentHeader, SegmentName};
use crate::look::{Look, read_header};
use crate::position::Head;
use crate::scan::{Checks, Cursor, ReadAt, Span, Step, Walk, Window};

/// One line of an inspection.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A segment file begins.
    Segment {
        /// Its name, as it is in the directory.
        name: &'a str,
        /// Its size.
        bytes: u64,
        /// Its header, or what is wrong with it.
        header: Result<SegmentHeader, Fault>,
        /// Whether the frames that follow are read by the header of another segment of the same store, this one's being
        /// lost.
        borrowed: bool,
    },
    /// A stretch of it.
    Step {
        /// Where.
        span: Span,
        /// What.
        step: Step<'a>,
    },
    /// A file that could not be read, from here on.
    Unreadable {
        /// Its name.
        name: &'a str,
        /// The system's answer.
        error: io::Error,
    },
}

/// Shows every file of a store's segments directory, in the order of the log where the names say it, otherwise by name.
/// A file whose header is lost is read by what the other headers and its name say.
///
/// # Errors
/// When the directory itself cannot be listed.
pub fn inspect_all(
    look: &dyn Look,
    checks: Checks,
    each: &mut dyn FnMut(Entry<'_>),
) -> io::Result<()> {
    let mut names = look.names()?;
    names.sort_by_cached_key(|name| (name.parse::<SegmentName>().ok(), name.clone()));
    let siblings = siblings(look, &names);
    for name in &names {
        match look.open(name) {
            Ok(file) => inspect_file(name, &file, &siblings, checks, each),
            Err(error) => each(Entry::Unreadable { name, error }),
        }
    }
    Ok(())
}

/// Shows one segment file. `siblings` are headers of the same store, for when this file's own is lost.
pub fn inspect_file(
    name: &str,
    file: &dyn ReadAt,
    siblings: &[SegmentHeader],
    checks: Checks,
    each: &mut dyn FnMut(Entry<'_>),
) {
    if let Err(error) = inspect_steps(name, file, siblings, checks, each) {
        each(Entry::Unreadable { name, error });
    }
}

fn inspect_steps(
    name: &str,
    file: &dyn ReadAt,
    siblings: &[SegmentHeader],
    checks: Checks,
    each: &mut dyn FnMut(Entry<'_>),
) -> io::Result<()> {
    let (bytes, header) = read_header(file)?;
    let borrowed = match header {
        Ok(_) => None,
        Err(_) => borrowed_header(name, file, siblings)?,
    };
    each(Entry::Segment {
        name,
        bytes,
        header,
        borrowed: borrowed.is_some(),
    });
    let header = match (header, borrowed) {
        (Ok(header), _) | (Err(_), Some(header)) => header,
        (Err(fault), None) => {
            raw(bytes, fault, each);
            return Ok(());
        }
    };
    let mut walk = Walk::new(Window::new(file)?, &header, checks, None);
    if borrowed.is_some() {
        walk = walk.detached();
    }
    while let Some((span, step)) = walk.next()? {
        each(Entry::Step { span, step });
    }
    Ok(())
}

/// Without any header nothing in the file can be told from noise: it is shown as one bad stretch.
fn raw(bytes: u64, fault: Fault, each: &mut dyn FnMut(Entry<'_>)) {
    let offset = SEGMENT_HEADER_BYTES as u64;
    if bytes > offset {
        let span = Span {
            offset,
            bytes: bytes - offset,
        };
        each(Entry::Step {
            span,
            step: Step::Bad(fault, None),
        });
    }
}

/// The good headers of a directory, one for each life of the store.
fn siblings(look: &dyn Look, names: &[String]) -> Vec<SegmentHeader> {
    let mut siblings: Vec<SegmentHeader> = Vec::new();
    for name in names {
        let header = look.open(name).and_then(|file| read_header(&file));
        if let Ok((_, Ok(header))) = header
            && !siblings.iter().any(|known| known.salt == header.salt)
        {
            siblings.push(header);
        }
    }
    siblings
}

/// The header a file would have in the life of one of its siblings: the one by which a frame is found in it.
pub(crate) fn borrowed_header(
    name: &str,
    file: &dyn ReadAt,
    siblings: &[SegmentHeader],
) -> io::Result<Option<SegmentHeader>> {
    let Ok(SegmentName { first, epoch }) = name.parse::<SegmentName>() else {
        return Ok(None);
    };
    for sibling in siblings {
        let header = SegmentHeader {
            first,
            epoch,
            predecessor: None,
            ..*sibling
        };
        let before = Head {
            position: first.before(),
            chain: sibling.chain,
        };
        let cursor = Cursor::resume(&header, Checks::REPLAY, before, SEGMENT_HEADER_BYTES as u64);
        let mut walk = Walk::resume(Window::new(file)?, cursor, None).detached();
        while let Some((_, step)) = walk.next()? {
            if matches!(step, Step::Frame(..) | Step::Bad(_, Some(_))) {
                return Ok(Some(header));
            }
        }
    }
    Ok(None)
}
