//! Bundles: a store without what is not to leave it, in one file, and the read-only store that is made of one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tenure_projection::bundle::{self, Written};
use tenure_projection::core::id::Position;
use tenure_projection::core::redaction::Classes;
use tenure_projection::log::bundle::{Heading, Refused, unpack};
use tenure_projection::log::position::Receipt;

use crate::clock::When;
use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop, shell_word};
use crate::output::{Object, Progress};

use super::super::audit::place::resolve;

/// The first line of every bundle.
const FIRST_LINE: &[u8] = b"tenure bundle 1\n";

/// Whether bytes begin as a bundle does.
pub fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(FIRST_LINE)
}

/// A class of contents, by its word.
///
/// # Errors
/// For any other word.
pub fn class(word: &str) -> Result<Classes, String> {
    Classes::from_word(word).ok_or_else(|| format!("one of {}", Classes::WORDS.join(", ")))
}

/// Writes the store to a new file, up to `to` or its newest position.
///
/// # Errors
/// When the file is there already or cannot be written, the place is not in the log, or the log cannot be read; there
/// is no file then.
pub fn export(
    ctx: &mut Context,
    classes: Classes,
    to: Option<When>,
    file: &Path,
) -> Result<Exit, Stop> {
    let dir = ctx.dir()?;
    let reader = ctx.reading()?;
    let until = match to {
        Some(when) => resolve(ctx, &reader, when)?.position,
        None => Position(reader.head().map_err(|error| ctx.fault(&error))?.position.0),
    };
    if until.0 == 0 {
        let message = "there is nothing in the log up to there".to_owned();
        return Err(Fault::new(Cause::BadPosition, message).into());
    }
    let mut new = OpenOptions::new();
    new.write(true).create_new(true).mode(0o600);
    let made = new.open(file).map_err(|e| Fault::file("create", file, e))?;
    let mut progress = Progress::new(&ctx.out, until.0);
    let written = write(ctx, &dir, (until, classes), made, &mut progress);
    progress.wipe(&mut ctx.out)?;
    match written {
        Ok(written) => exported(ctx, &written, classes, file),
        Err(error) => {
            // What is told is why it was not written.
            let _ = fs::remove_file(file);
            Err(match error {
                bundle::Error::Store(error) => ctx.fault(&error),
                bundle::Error::Write(error) => Fault::file("write", file, error).into(),
                other => Fault::new(Cause::Unsupported, other.to_string())
                    .then(
                        "tenure export --redact bodies,labels --output FILE",
                        "leaves paths in",
                    )
                    .into(),
            })
        }
    }
}

fn write(
    ctx: &mut Context,
    dir: &Path,
    (until, classes): (Position, Classes),
    file: File,
    progress: &mut Progress,
) -> Result<Written, bundle::Error> {
    let mut out = BufWriter::new(file);
    let watch = |position: Position| {
        let drawn = progress.at(&mut ctx.out, position.0);
        drawn.map_err(|_| io::Error::other("standard output was closed"))
    };
    let written = bundle::write(dir, until, classes, &mut out, watch)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(written)
}

fn exported(
    ctx: &mut Context,
    written: &Written,
    classes: Classes,
    file: &Path,
) -> Result<Exit, Stop> {
    let Written {
        heading,
        texts,
        bodies,
    } = written;
    if ctx.out.is_json() {
        let object = object(heading)
            .with("file", file.display().to_string())
            .with("texts_redacted", *texts)
            .with("bodies_redacted", *bodies);
        ctx.out.object(&object)?;
        return Ok(Exit::DONE);
    }
    ctx.out.say(format_args!(
        "{}: the store up to position {}, without {classes}: {texts} texts and {bodies} bodies taken out",
        file.display(),
        heading.head.position
    ))?;
    let left = "names, actors, hosts, items, times, lengths and digests are in it; docs/bundles.md lists them";
    ctx.out.say(left)?;
    Ok(Exit::DONE)
}

/// Makes a read-only store of a bundle.
///
/// # Errors
/// When there is something at its place, or the file is not a bundle or not whole; there is no store then.
pub fn import(ctx: &mut Context, file: Option<&PathBuf>, into: &Path) -> Result<Exit, Stop> {
    let mut from: Box<dyn BufRead> = match file {
        None => Box::new(io::stdin().lock()),
        Some(path) => {
            let opened = File::open(path).map_err(|source| Fault::file("read", path, source))?;
            Box::new(BufReader::with_capacity(1 << 20, opened))
        }
    };
    let heading = unpack(&mut from, into).map_err(refused)?;
    if ctx.out.is_json() {
        let object = object(&heading).with("directory", into.display().to_string());
        ctx.out.object(&object)?;
        return Ok(Exit::DONE);
    }
    ctx.out.say(format_args!(
        "{}: a read-only copy of store {} up to position {}, without {}",
        into.display(),
        heading.store,
        heading.head.position,
        heading.redacted.join(", ")
    ))?;
    let at = shell_word(into);
    ctx.out.say(format_args!("tenure --store {at} audit"))?;
    Ok(Exit::DONE)
}

fn refused(refused: Refused) -> Stop {
    let message = refused.to_string();
    match refused {
        Refused::NotABundle { .. } => Fault::usage(message),
        Refused::Damaged { .. } => Fault::new(Cause::Damaged, message).then(
            "tenure export --redact CLASSES --output FILE",
            "where the store is, makes it anew",
        ),
        Refused::Taken { .. } => Fault::new(Cause::CannotCreate, message),
        Refused::Write { path, source } => Fault::file("write", &path, source),
        _ => Fault::new(Cause::Io, message),
    }
    .into()
}

fn object(heading: &Heading) -> Object {
    let receipt = Receipt {
        store: heading.store,
        position: heading.head.position,
        chain: heading.head.chain,
    };
    Object::new("bundle")
        .with("store", heading.store.to_string())
        .with("position", heading.head.position.0)
        .with("receipt", receipt.to_string())
        .with("redacted", heading.redacted.clone())
}
