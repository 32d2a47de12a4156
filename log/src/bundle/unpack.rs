//! Making a store of a bundle: beside its place, looked through, and then put there as a whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{HEADING_BYTES_MAX, Heading, MARKER};
use crate::format::SegmentName;
use crate::look::PlainDirectory;
use crate::options::SEGMENTS_MAX;
use crate::position::Receipt;
use crate::segment::SEGMENTS_FOLDER;
use crate::verify::{self, ReceiptState, verify};

/// The longest line of a bundle outside of its segments.
const LINE_BYTES_MAX: u64 = 200;

/// Why no store was made of a bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The bytes are not a bundle.
    #[error("it is no bundle: {what}")]
    NotABundle {
        /// What is not as a bundle has it.
        what: String,
    },
    /// What the bundle holds is not what was written.
    #[error("the bundle is damaged: {what}")]
    Damaged {
        /// What was found.
        what: String,
    },
    /// There is something at the place of the store.
    #[error("{} is there already", path.display())]
    Taken {
        /// The place.
        path: PathBuf,
    },
    /// The system's answer.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The bundle could not be read.
    #[error("the bundle cannot be read: {0}")]
    Read(#[source] io::Error),
}

/// Makes the store `to` of the bundle that `from` gives: all of it or nothing. It is looked through before it stands
/// there: checksums, chain, and that it ends with the frame that the heading names.
///
/// # Errors
/// [`Refused`].
pub fn unpack(from: &mut impl BufRead, to: &Path) -> Result<Heading, Refused> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(Refused::Taken {
            path: to.to_owned(),
        });
    }
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let beside = to.with_file_name(format!(".{name}.{}", std::process::id()));
    let made = unpack_into(from, &beside).and_then(|heading| {
        put_in_place(&beside, to)?;
        Ok(heading)
    });
    if made.is_err() {
        // What was refused is told; what is left beside it is not the store.
        let _ = fs::remove_dir_all(&beside);
    }
    made
}

fn put_in_place(beside: &Path, to: &Path) -> Result<(), Refused> {
    let renamed = renameat_with(CWD, beside, CWD, to, RenameFlags::NOREPLACE);
    renamed.map_err(|error| match io::Error::from(error) {
        error if error.kind() == io::ErrorKind::AlreadyExists => Refused::Taken {
            path: to.to_owned(),
        },
        error => unwritten(to)(error),
    })?;
    let parent = match to.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    File::open(parent)
        .and_then(|dir| dir.sync_all())
        .map_err(unwritten(parent))
}

fn unwritten(path: &Path) -> impl Fn(io::Error) -> Refused {
    let path = path.to_owned();
    move |source| Refused::Write {
        path: path.clone(),
        source,
    }
}

fn unpack_into(from: &mut impl BufRead, dir: &Path) -> Result<Heading, Refused> {
    let mut bundle = Bundle {
        from,
        hasher: blake3::Hasher::new(),
    };
    let heading = bundle.heading()?;
    let count: usize = bundle.field("segments ")?;
    if count > SEGMENTS_MAX {
        return Err(damaged(format!(
            "{count} segments, at most {SEGMENTS_MAX} can be"
        )));
    }
    let segments = dir.join(SEGMENTS_FOLDER);
    let mut folder = DirBuilder::new();
    folder.mode(0o700);
    for path in [dir, &segments] {
        folder.create(path).map_err(unwritten(path))?;
    }
    for _ in 0..count {
        bundle.segment(&segments)?;
    }
    let found = bundle.hasher.finalize().to_string();
    let stated: String = bundle.field("blake3 ")?;
    if stated != found {
        return Err(damaged(format!("its hash is {found}, it states {stated}")));
    }
    let more = bundle.from.fill_buf().map_err(Refused::Read)?;
    if !more.is_empty() {
        return Err(damaged("something stands behind its end".to_owned()));
    }
    let marker = dir.join(MARKER);
    create(&marker)?
        .write_all(heading.to_string().as_bytes())
        .map_err(unwritten(&marker))?;
    look_through(dir, &heading)?;
    for path in [&marker, &segments, dir] {
        File::open(path)
            .and_then(|f| f.sync_all())
            .map_err(unwritten(path))?;
    }
    Ok(heading)
}

/// Whether the log is whole and ends where the heading says.
fn look_through(dir: &Path, heading: &Heading) -> Result<(), Refused> {
    let head = Receipt {
        store: heading.store,
        position: heading.head.position,
        chain: heading.head.chain,
    };
    let options = verify::Options {
        store: Some(heading.store),
        receipts: vec![head],
        ..verify::Options::default()
    };
    let report = verify(&PlainDirectory::new(dir), &options);
    if let Some(finding) = report.findings.first() {
        return Err(damaged(finding.meaning.clone()));
    }
    let kept = report
        .receipts
        .iter()
        .all(|(_, state)| *state == ReceiptState::Kept);
    if !kept || report.coverage.horizon != heading.head.position {
        return Err(damaged(
            "it does not end with the frame that it names".to_owned(),
        ));
    }
    Ok(())
}

fn damaged(what: String) -> Refused {
    Refused::Damaged { what }
}

fn create(path: &Path) -> Result<File, Refused> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).map_err(unwritten(path))
}

struct Bundle<'b, R> {
    from: &'b mut R,
    hasher: blake3::Hasher,
}

impl<R: BufRead> Bundle<'_, R> {
    fn line(&mut self) -> Result<String, Refused> {
        let mut line = Vec::new();
        let mut from = (&mut *self.from).take(LINE_BYTES_MAX);
        from.read_until(b'\n', &mut line).map_err(Refused::Read)?;
        let ended = line.ends_with(b"\n");
        match String::from_utf8(line) {
            Ok(line) if ended => Ok(line),
            _ => Err(damaged("it was cut, or a line in it is none".to_owned())),
        }
    }

    fn heading(&mut self) -> Result<Heading, Refused> {
        let mut text = String::new();
        for _ in 0..5 {
            let not_one = |refused| match refused {
                Refused::Damaged { what } => Refused::NotABundle { what },
                other => other,
            };
            text += &self.line().map_err(not_one)?;
        }
        let heading = Heading::parse(&text).filter(|_| text.len() <= HEADING_BYTES_MAX);
        let heading = heading.ok_or_else(|| Refused::NotABundle {
            what: "it does not begin as one".to_owned(),
        })?;
        self.hasher.update(text.as_bytes());
        Ok(heading)
    }

    /// A line with one value behind a word. The hash goes up to the line that states it.
    fn field<T: std::str::FromStr>(&mut self, word: &str) -> Result<T, Refused> {
        let line = self.line()?;
        if word != "blake3 " {
            self.hasher.update(line.as_bytes());
        }
        let value = line
            .strip_prefix(word)
            .and_then(|rest| rest.trim_end().parse().ok());
        value.ok_or_else(|| damaged(format!("a line should say {:?}", word.trim_end())))
    }

    fn segment(&mut self, into: &Path) -> Result<(), Refused> {
        let line: String = self.field("segment ")?;
        let parsed = line.split_once(' ').and_then(|(name, bytes)| {
            let (name, bytes): (SegmentName, u64) = (name.parse().ok()?, bytes.parse().ok()?);
            (line == format!("{name} {bytes}")).then_some((name, bytes))
        });
        let (name, bytes) = parsed.ok_or_else(|| damaged(format!("{line:?} is no segment")))?;
        let path = into.join(name.to_string());
        let mut file = create(&path)?;
        let mut left = bytes;
        while left > 0 {
            let held = self.from.fill_buf().map_err(Refused::Read)?;
            let take = held.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if take == 0 {
                return Err(damaged(format!("segment {name} was cut")));
            }
            self.hasher.update(&held[..take]);
            file.write_all(&held[..take]).map_err(unwritten(&path))?;
            self.from.consume(take);
            left -= take as u64;
        }
        file.sync_all().map_err(unwritten(&path))
    }
}
