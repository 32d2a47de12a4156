//! `import --transcript`: the branches of a host's transcript, each a session of one tree.
//!
//! The root is reserved first and the tree published last, so that all of it is seen or nothing. The file is opened for
//! reading alone: once for an index of it, then record by record.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tenure_projection::call::{Bearer, Label, Verb};
use tenure_projection::core::history::HistoryHash;
use tenure_projection::core::id::{Name, Position, Token};
use tenure_projection::core::limits::{LABEL_BYTES_MAX, RECORD_BYTES_MAX};
use tenure_projection::store::{Done, Store};
use tenure_projection::transcript::{Branch, Finding, Host, Kind, Origin, Record};

use crate::context::{Context, Mutation};
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed};
use crate::output::{DIM, Progress, WARN, json};

use super::super::super::forensics::transcript::{Taken, described, take};
use super::super::super::sessions::grant;
use super::super::super::stands;
use super::{BATCH_BYTES, BATCH_RECORDS};

/// How many branches become sessions; each is one for ever.
const BRANCHES_MAX: usize = 1024;

/// Arguments of `import --transcript`.
#[derive(Debug, clap::Args)]
pub struct FromTranscript {
    /// Instead: a transcript of an agent host, each of its branches a session; the file is only read
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "name", "into"], requires = "as_name")]
    transcript: Option<PathBuf>,
    /// What the branch that a resume goes on with is called; the others are NAME/2, NAME/3, ...
    #[arg(
        long = "as",
        value_name = "NAME",
        id = "as_name",
        requires = "transcript"
    )]
    as_name: Option<String>,
    /// Who wrote the transcript [default: the one that most records look like]
    #[arg(long, value_name = "HOST", requires = "transcript", value_parser = ["claude", "codex", "gemini"])]
    host: Option<String>,
}

/// A transcript to be imported.
pub struct Wanted {
    file: PathBuf,
    name: Name,
    host: Option<String>,
}

impl FromTranscript {
    /// The transcript, if one is named.
    ///
    /// # Errors
    /// When its name is none.
    pub fn file(&self) -> Result<Option<Wanted>, Stop> {
        let (Some(file), Some(name)) = (&self.transcript, &self.as_name) else {
            return Ok(None);
        };
        Ok(Some(Wanted {
            file: file.clone(),
            name: input::name(name)?,
            host: self.host.clone(),
        }))
    }
}

/// Imports, and prints the sessions.
///
/// # Errors
/// When the file is no transcript, too much for the log, or changes while it is read, the name is taken, or what
/// failed; the name is free then.
pub fn run(ctx: &mut Context, wanted: &Wanted) -> Result<Exit, Stop> {
    let taken = take(ctx, &wanted.file, wanted.host.as_deref())?;
    let host = fits(&wanted.file, &taken)?;
    let store = ctx.store_or_new()?;
    let reserve = Verb::Reserve {
        name: wanted.name.clone(),
        bearer: Bearer::itself(),
        labels: labels(host, taken.branches.branches.first()),
        checkout: None,
    };
    let done = ctx.execute(&store, Mutation::new(reserve, &Keyed::default()))?;
    let root = grant::granted(&done)?.token.clone();
    let mut filling = Filling {
        ctx,
        store: &store,
        file: &wanted.file,
        taken: &taken,
        host,
        root: root.clone(),
        sessions: Vec::new(),
        positions: HashMap::new(),
    };
    match filling.fill() {
        Ok(done) => {
            let sessions = filling.sessions;
            answer(ctx, &done, &root, &taken, &sessions)
        }
        Err(stop) => {
            let give_up = Verb::Retire {
                name: wanted.name.clone(),
                if_idle: false,
                reason: Some("the import failed".to_owned()),
            };
            let mutation = Mutation::new(give_up, &Keyed::default()).under(Some(root));
            // What went wrong first is what is told.
            let _ = ctx.execute(&store, mutation);
            Err(stop)
        }
    }
}

/// Whether all of it can be kept: nothing is begun otherwise.
fn fits(file: &Path, taken: &Taken) -> Result<Host, Stop> {
    let what = file.display();
    let Some(host) = taken.reading.host else {
        let message = format!("nothing in {what} looks like a record of claude, codex or gemini");
        return Err(Fault::new(Cause::Damaged, message)
            .then(
                "tenure transcript FILE",
                "shows what is in it; changes nothing",
            )
            .into());
    };
    let large = |r: &&Record| r.span.bytes > RECORD_BYTES_MAX as u64;
    if let Some(record) = taken.reading.records.iter().find(large) {
        let message = format!(
            "line {} of {what}: the record has {} bytes, and at most {RECORD_BYTES_MAX} are kept; nothing was imported",
            record.line, record.span.bytes
        );
        return Err(Fault::new(Cause::LimitExceeded, message).into());
    }
    let count = taken.branches.branches.len();
    if count > BRANCHES_MAX {
        let message = format!(
            "{what} comes apart into {count} branches, and at most {BRANCHES_MAX} are imported; nothing was"
        );
        return Err(Fault::new(Cause::LimitExceeded, message).into());
    }
    Ok(host)
}

fn labels(host: Host, branch: Option<&Branch>) -> Vec<Label> {
    let label = |key: &str, value: &str| Label {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let mut labels = vec![label("host", host.as_str())];
    if let Some(branch) = branch {
        labels.push(label("branch", branch.origin.as_str()));
        if branch.sidechain {
            labels.push(label("sidechain", "yes"));
        }
    }
    labels
}

/// A session that was made.
struct Made {
    name: Name,
    records: usize,
    /// The session that it is a branch of, and where.
    from: Option<(Name, Position)>,
}

struct Filling<'a> {
    ctx: &'a mut Context,
    store: &'a Store,
    file: &'a Path,
    taken: &'a Taken,
    host: Host,
    root: Token,
    sessions: Vec<Made>,
    /// Where the records stand that others branch from.
    positions: HashMap<usize, Position>,
}

impl Filling<'_> {
    /// Fills every session, and publishes the tree.
    fn fill(&mut self) -> Result<Done, Stop> {
        let branches = &self.taken.branches.branches;
        let forks: HashSet<usize> = branches
            .iter()
            .filter_map(|branch| match branch.origin {
                Origin::Fork { at, .. } => Some(at),
                _ => None,
            })
            .collect();
        let mut progress = Progress::new(&self.ctx.out, self.taken.reading.records.len() as u64);
        let mut recorded = 0;
        let mut last = self.root.name.clone();
        for (number, branch) in branches.iter().enumerate() {
            let (token, from) = match number {
                0 => (self.root.clone(), None),
                _ => self.begin(branch, &last)?,
            };
            last = token.name.clone();
            self.records(&token, branch, &forks, |ctx, count| {
                recorded += count;
                progress.at(&mut ctx.out, recorded)
            })?;
            self.sessions.push(Made {
                name: token.name,
                records: branch.records.len(),
                from,
            });
        }
        progress.wipe(&mut self.ctx.out)?;
        if branches.is_empty() {
            self.came_from_elsewhere(&self.root)?;
        }
        let publish = Verb::Publish {
            name: self.root.name.clone(),
            epoch: None,
        };
        self.ctx
            .execute(self.store, self.under(&self.root, publish))
    }

    fn under(&self, token: &Token, verb: Verb) -> Mutation {
        Mutation::new(verb, &Keyed::default()).under(Some(token.clone()))
    }

    /// Makes the session of a branch: a branch of the session that it comes from, or one with a history of
    /// its own.
    fn begin(
        &self,
        branch: &Branch,
        last: &Name,
    ) -> Result<(Token, Option<(Name, Position)>), Stop> {
        let name = self.free(last)?;
        let labels = labels(self.host, Some(branch));
        let (verb, from) = match branch.origin {
            Origin::Fork { of, at } => {
                let (source, at) = (self.sessions[of].name.clone(), self.positions[&at]);
                let verb = Verb::Branch {
                    source: source.clone(),
                    name,
                    at: Some(at),
                    bearer: Bearer::itself(),
                    labels,
                    checkout: None,
                    in_tree: true,
                };
                (verb, Some((source, at)))
            }
            _ => {
                let verb = Verb::RegisterChild {
                    name,
                    bearer: Bearer::itself(),
                    labels,
                    checkout: None,
                };
                (verb, None)
            }
        };
        let done = self.ctx.execute(self.store, self.under(&self.root, verb))?;
        Ok((grant::granted(&done)?.token.clone(), from))
    }

    /// The next name that nobody ever had. An import that was killed leaves names behind.
    fn free(&self, last: &Name) -> Result<Name, Stop> {
        let root = self.root.name.as_str();
        let number = last
            .as_str()
            .strip_prefix(root)
            .and_then(|n| n.strip_prefix('/'));
        let mut number: u64 = number.and_then(|n| n.parse().ok()).unwrap_or(1);
        loop {
            number += 1;
            let name = input::name(&format!("{root}/{number}"))?;
            let taken = self
                .store
                .view(|state| state.find(name.as_str().as_bytes()).is_some());
            if !taken.map_err(|error| self.ctx.fault(&error))? {
                return Ok(name);
            }
        }
    }

    /// Records a branch, and says where it came from.
    fn records(
        &mut self,
        token: &Token,
        branch: &Branch,
        forks: &HashSet<usize>,
        mut recorded: impl FnMut(&mut Context, u64) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let mut first = 0;
        for (place, number) in branch.records.iter().enumerate() {
            let body = self.body(*number)?;
            bytes += body.len();
            let record = &self.taken.reading.records[*number];
            let kind = format!("{}/{}", self.host.as_str(), self.taken.reading.kind(record));
            let verb = Verb::Record {
                kind,
                body,
                expect: None,
                opens: None,
                closes: None,
            };
            batch.push(self.under(token, verb));
            let full = batch.len() >= BATCH_RECORDS || bytes >= BATCH_BYTES;
            if full || place + 1 == branch.records.len() {
                let done = self
                    .ctx
                    .execute_all(self.store, std::mem::take(&mut batch))?;
                recorded(self.ctx, done.len() as u64)?;
                for (number, done) in branch.records[first..].iter().zip(&done) {
                    if forks.contains(number) {
                        self.positions.insert(*number, done.at.position);
                    }
                }
                (first, bytes) = (place + 1, 0);
            }
        }
        self.came_from_elsewhere(token)
    }

    fn came_from_elsewhere(&self, token: &Token) -> Result<(), Stop> {
        let file = || {
            let name = self.file.file_name().unwrap_or(self.file.as_os_str());
            name.to_string_lossy().into_owned()
        };
        let session = self.taken.reading.session.map(|id| id.to_string());
        let import = Verb::Import {
            from: session
                .unwrap_or_else(file)
                .chars()
                .take(LABEL_BYTES_MAX / 4)
                .collect(),
            parent: None,
            hash: HistoryHash(self.taken.reading.digest),
        };
        self.ctx
            .execute(self.store, self.under(token, import))
            .map(drop)
    }

    /// The bytes of a record, which have to be those that were indexed.
    fn body(&self, number: usize) -> Result<Vec<u8>, Stop> {
        let record = &self.taken.reading.records[number];
        let mut body = vec![0; usize::try_from(record.span.bytes).unwrap_or_default()];
        let read = self.taken.file.read_exact_at(&mut body, record.span.offset);
        let same = blake3::hash(&body).as_bytes()[..16] == record.digest;
        match read {
            Ok(()) if same => Ok(body),
            Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
                Err(Fault::file("read", self.file, error).into())
            }
            _ => {
                let message = format!(
                    "line {} of {} changed while it was read; nothing was imported",
                    record.line,
                    self.file.display()
                );
                Err(Fault::new(Cause::Busy, message).into())
            }
        }
    }
}

fn answer(
    ctx: &mut Context,
    done: &Done,
    root: &Token,
    taken: &Taken,
    sessions: &[Made],
) -> Result<Exit, Stop> {
    let (reading, branches) = (&taken.reading, &taken.branches);
    if ctx.out.is_json() {
        let object = object(done, root, taken, sessions);
        ctx.out.object(&object)?;
        return Ok(Exit::DONE);
    }
    ctx.out.essential(root)?;
    for (number, (made, branch)) in sessions.iter().zip(&branches.branches).enumerate() {
        let what = described(number, branch, reading);
        ctx.out.say(format_args!("{}: {what}", made.name))?;
    }
    for finding in unplaced(taken) {
        let (line, offset, bytes) = (finding.line, finding.offset, finding.bytes);
        let meaning = finding.kind.meaning();
        ctx.out.styled(
            WARN,
            format_args!("  line {line}, offset {offset} +{bytes}: {meaning}"),
        )?;
    }
    if !branches.repeated.is_empty() {
        let count = branches.repeated.len();
        ctx.out.styled(
            DIM,
            format_args!("{count} records stood there twice and are kept once"),
        )?;
    }
    if reading.shares.damage > 0 {
        let bytes = reading.shares.damage;
        ctx.out.styled(
            WARN,
            format_args!("{bytes} bytes are no record and stay in the file alone; `tenure transcript` lists them"),
        )?;
    }
    stands(ctx, done)?;
    Ok(Exit::DONE)
}

/// What could not be placed, as far as it is listed.
fn unplaced(taken: &Taken) -> Vec<Finding> {
    let mut listed = taken.findings.listed();
    listed.retain(|finding| finding.kind == Kind::Unplaced);
    listed
}

fn object(done: &Done, root: &Token, taken: &Taken, sessions: &[Made]) -> json::Object {
    let (reading, branches) = (&taken.reading, &taken.branches);
    let each = |(made, branch): (&Made, &Branch)| {
        let (source, at) = made.from.clone().unzip();
        serde_json::json!({
            "session": made.name.as_str(),
            "origin": branch.origin.as_str(),
            "source": source.map(|s| s.as_str().to_owned()),
            "at": at.map(|at| at.0),
            "sidechain": branch.sidechain,
            "records": made.records,
        })
    };
    let each: Vec<_> = sessions.iter().zip(&branches.branches).map(each).collect();
    let apart =
        |f: &Finding| serde_json::json!({ "line": f.line, "offset": f.offset, "bytes": f.bytes });
    json::Object::new("done")
        .standing(&done.receipt)
        .with("repeated", done.repeated)
        .with("session", root.name.as_str())
        .with("token", root.to_string())
        .with("host", reading.host.map(|h| h.as_str()))
        .with("from", reading.session.map(|s| s.to_string()))
        .with("digest", json::transcript::hex(&reading.digest))
        .with("records", sessions.iter().map(|s| s.records).sum::<usize>())
        .with("sessions", each)
        .with(
            "unplaced",
            unplaced(taken).iter().map(apart).collect::<Vec<_>>(),
        )
        .with("repeated_records", branches.repeated.len())
        .with("damaged_bytes", reading.shares.damage)
        .with("faults", taken.findings.faults())
}
