//! `import`: a session from what `export` printed, of this store or another, or from a host's transcript.
//!
//! The name is reserved first, so that nobody sees half a history, and published last. Whatever goes wrong between
//! ends the reservation; a process that is killed leaves one that the next register or import of the name ends.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use tenure_projection::call::{Activity, Bearer, Verb};
use tenure_projection::core::id::{Name, Token};
use tenure_projection::store::{Done, Store};

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed};
use crate::output::json;

use super::super::sessions::grant;
use super::super::stands;
use super::bundle;

mod lines;
mod transcript;

use lines::{Line, Lines, Record};

/// Records on their way at a time.
const BATCH_RECORDS: usize = 64;
/// Bytes of records on their way at a time.
const BATCH_BYTES: usize = 32 << 20;

/// Arguments of `import`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What `export` printed or wrote [default: standard input]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The new session's name [default: the one that was exported]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The file is a bundle: makes a read-only store of it at DIR, which is made
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    into: Option<PathBuf>,
    #[command(flatten)]
    transcript: transcript::FromTranscript,
}

impl Args {
    /// Imports, and prints the session.
    ///
    /// # Errors
    /// When a line is not what `export` prints, the name is taken, or what failed; the name is free then.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        if let Some(transcript) = self.transcript.file()? {
            return transcript::run(ctx, &transcript);
        }
        if let Some(into) = &self.into {
            return bundle::import(ctx, self.file.as_ref(), into);
        }
        let (mut source, what): (Box<dyn BufRead>, _) = match self.file.as_deref() {
            None => (Box::new(io::stdin().lock()), Path::new("standard input")),
            Some(path) => {
                let file = File::open(path).map_err(|source| Fault::file("read", path, source))?;
                (Box::new(BufReader::new(file)), path)
            }
        };
        let begin = source.fill_buf();
        let begin = begin.map_err(|error| Fault::file("read", what, error))?;
        if bundle::begins(begin) {
            let message = format!("{} is a bundle, not a history", what.display());
            let made = Fault::usage(message).then(
                "tenure import FILE --into DIR",
                "makes a read-only store of it",
            );
            return Err(made.into());
        }
        let mut lines = Lines::new(source, what);
        let head = lines.head()?;
        let name = input::name(self.name.as_deref().unwrap_or(&head.session))?;
        let store = ctx.store_or_new()?;
        let reserve = Verb::Reserve {
            name: name.clone(),
            bearer: Bearer::itself(),
            labels: head.labels.clone(),
            checkout: None,
        };
        let done = ctx.execute(&store, Mutation::new(reserve, &Keyed::default()))?;
        let token = grant::granted(&done)?.token.clone();
        match fill(ctx, &store, &token, &mut lines, &head) {
            Ok((done, records, interrupted)) => {
                answer(ctx, &done, &token, records, &interrupted, &head.session)
            }
            Err(stop) => {
                let give_up = Verb::Retire {
                    name,
                    if_idle: false,
                    reason: Some("the import failed".to_owned()),
                };
                let mutation = Mutation::new(give_up, &Keyed::default()).under(Some(token));
                // What went wrong first is what is told.
                let _ = ctx.execute(&store, mutation);
                Err(stop)
            }
        }
    }
}

/// Records every line, and publishes. Gives how many there were and what was left open.
fn fill(
    ctx: &Context,
    store: &Store,
    token: &Token,
    lines: &mut Lines<'_>,
    head: &lines::Head,
) -> Result<(Done, u64, Vec<String>), Stop> {
    let under = |verb| Mutation::new(verb, &Keyed::default()).under(Some(token.clone()));
    let (mut batch, mut bytes, mut records) = (Vec::new(), 0, 0_u64);
    let mut open: BTreeSet<Activity> = BTreeSet::new();
    loop {
        match lines.next()? {
            Line::Record(record) => {
                records += 1;
                bytes += record.body.len();
                batch.push(under(verb(record, &mut open)));
            }
            Line::End { records: said } if said == records => break,
            Line::End { records: said } => {
                return Err(
                    lines.fault(&format!("{said} records were exported, {records} are here"))
                );
            }
        }
        if batch.len() >= BATCH_RECORDS || bytes >= BATCH_BYTES {
            ctx.execute_all(store, std::mem::take(&mut batch))?;
            bytes = 0;
        }
    }
    batch.push(under(Verb::Import {
        from: head.session.clone(),
        parent: head.parent.clone(),
        hash: head.hash,
    }));
    ctx.execute_all(store, batch)?;
    let name: Name = token.name.clone();
    let done = ctx.execute(store, under(Verb::Publish { name, epoch: None }))?;
    Ok((
        done,
        records,
        open.iter().map(ToString::to_string).collect(),
    ))
}

/// What is opened twice or closed without having been opened, as where a branch began in the middle of a run, is
/// recorded without that.
fn verb(record: Record, open: &mut BTreeSet<Activity>) -> Verb {
    let closes = record.closes.filter(|a| open.remove(a));
    let opens = record.opens.filter(|a| open.insert(a.clone()));
    Verb::Record {
        kind: record.kind,
        body: record.body,
        expect: None,
        opens,
        closes,
    }
}

fn answer(
    ctx: &mut Context,
    done: &Done,
    token: &Token,
    records: u64,
    interrupted: &[String],
    from: &str,
) -> Result<Exit, Stop> {
    if ctx.out.is_json() {
        let object = json::Object::new("done")
            .standing(&done.receipt)
            .with("repeated", done.repeated)
            .with("session", token.name.as_str())
            .with("token", token.to_string())
            .with("from", from)
            .with("records", records)
            .with("interrupted", interrupted.to_vec());
        ctx.out.object(&object)?;
        return Ok(Exit::DONE);
    }
    ctx.out.essential(token)?;
    ctx.out.say(format_args!("{records} records of {from}"))?;
    if !interrupted.is_empty() {
        let list = interrupted.join(" ");
        ctx.out.say(format_args!("interrupted: {list}"))?;
    }
    stands(ctx, done)?;
    Ok(Exit::DONE)
}
