//! `transcript`: what is in a host's transcript and what is wrong with it. Opens no store and changes nothing.

use std::fs::File;
use std::path::{Path, PathBuf};

use tenure_projection::transcript::{
    self, Branch, Branches, Findings, Host, Origin, Reading, Weight,
};

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::{Fault, Stop};
use crate::output::{BAD, DIM, HEAD, PLAIN, Progress, WARN, json};

mod form;

/// Arguments of `transcript`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The transcript: one JSON object a line
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Who wrote it [default: the one that most records look like]
    #[arg(long, value_name = "HOST", value_parser = ["claude", "codex", "gemini"])]
    host: Option<String>,
}

/// A transcript that was read, and taken apart.
pub struct Taken {
    /// The file, open for reading.
    pub file: File,
    /// What it is made of.
    pub reading: Reading,
    /// Its branches.
    pub branches: Branches,
    /// Everything found.
    pub findings: Findings,
}

/// Reads a transcript. The file is opened for reading and never written.
///
/// # Errors
/// When it cannot be read.
pub fn take(ctx: &mut Context, path: &Path, host: Option<&str>) -> Result<Taken, Stop> {
    let unreadable = |source| Stop::from(Fault::file("read", path, source));
    let mut file = File::open(path).map_err(unreadable)?;
    if let Some(fault) = form::other(&mut file, path).map_err(unreadable)? {
        return Err(fault.into());
    }
    let whole = file.metadata().map_err(unreadable)?.len();
    let mut progress = Progress::new(&ctx.out, whole);
    let host = host.and_then(Host::from_word);
    // A bar that cannot be drawn is no reason to stop.
    let read = transcript::read(&file, host, |bytes| drop(progress.at(&mut ctx.out, bytes)));
    progress.wipe(&mut ctx.out)?;
    let reading = read.map_err(unreadable)?;
    let branches = transcript::separate(&reading);
    let findings = branches.findings.clone().and(&reading.findings);
    Ok(Taken {
        file,
        reading,
        branches,
        findings,
    })
}

impl Args {
    /// Shows the transcript; a fault in it is a negative answer.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let taken = take(ctx, &self.file, self.host.as_deref())?;
        let name = self.file.display().to_string();
        match ctx.out.is_json() {
            true => objects(ctx, &name, &taken)?,
            false => text(ctx, &name, &taken)?,
        }
        Ok(match taken.findings.faults() {
            0 => Exit::DONE,
            _ => Exit::NEGATIVE,
        })
    }
}

fn objects(ctx: &mut Context, name: &str, taken: &Taken) -> Result<(), Stop> {
    let (reading, branches) = (&taken.reading, &taken.branches);
    let all = json::transcript::transcript(name, reading, branches, &taken.findings);
    ctx.out.object(&all)?;
    for (number, branch) in branches.branches.iter().enumerate() {
        ctx.out
            .object(&json::transcript::branch(number + 1, branch, reading))?;
    }
    for (finding, count) in json::transcript::told(&taken.findings) {
        ctx.out
            .object(&json::transcript::finding(&finding, count))?;
    }
    Ok(())
}

fn text(ctx: &mut Context, name: &str, taken: &Taken) -> Result<(), Stop> {
    let (reading, branches) = (&taken.reading, &taken.branches);
    let host = reading.host.map_or("no host that is known", |h| h.as_str());
    ctx.out.styled(
        HEAD,
        format_args!(
            "{name}: {host}, {} records, {} bytes",
            reading.records.len(),
            reading.bytes()
        ),
    )?;
    if let Some(session) = reading.session {
        ctx.out.say(format_args!("  session {session}"))?;
    }
    let shares = reading.shares;
    ctx.out.styled(
        DIM,
        format_args!(
            "  {} bytes of records, {} between them, {} damaged",
            shares.records, shares.separators, shares.damage
        ),
    )?;
    for (number, branch) in branches.branches.iter().enumerate() {
        let style = if branch.origin == Origin::Unplaced {
            WARN
        } else {
            PLAIN
        };
        ctx.out.styled(
            style,
            format_args!("  {}", described(number, branch, reading)),
        )?;
    }
    if branches.unreachable() > 0 && reading.host == Some(Host::Claude) {
        let whole = reading.records.len();
        let seen = whole - branches.unreachable() - branches.repeated.len();
        ctx.out.styled(
            WARN,
            format_args!("  a resume sees {seen} of {whole} records"),
        )?;
    }
    for (finding, count) in json::transcript::told(&taken.findings) {
        let about = match finding.about.to_string() {
            about if about.is_empty() => about,
            about => format!(" ({about})"),
        };
        let times = if count > 1 {
            format!(" x {count}")
        } else {
            String::new()
        };
        let style = match finding.kind.weight() {
            Weight::Fault => BAD,
            Weight::Oddity => DIM,
        };
        let (kind, meaning) = (finding.kind.as_str(), finding.kind.meaning());
        ctx.out.styled(
            style,
            format_args!(
                "  line {}, offset {} +{}: {kind}{times}{about}: {meaning}",
                finding.line, finding.offset, finding.bytes
            ),
        )?;
    }
    match taken.findings.faults() {
        0 => ctx.out.say("no faults"),
        1 => ctx.out.styled(BAD, "1 fault"),
        faults => ctx.out.styled(BAD, format_args!("{faults} faults")),
    }
}

/// A branch for people; numbers count from 1.
#[must_use]
pub fn described(number: usize, branch: &Branch, reading: &Reading) -> String {
    let from = match branch.origin {
        Origin::Start => "from the start".to_owned(),
        Origin::Lost => "continues what is not in the file".to_owned(),
        Origin::Unplaced => "of which it cannot be told".to_owned(),
        Origin::Fork { of, at } => {
            let at = &reading.records[at];
            let id = at.id.map(|id| format!(", {id}")).unwrap_or_default();
            format!(
                "from branch {} behind the record on line {}{id}",
                of + 1,
                at.line
            )
        }
    };
    let whose = if branch.sidechain {
        ", a subagent's"
    } else {
        ""
    };
    let follows = reading.host == Some(Host::Claude);
    let resumed = if number == 0 && follows {
        "; what a resume goes on with"
    } else {
        ""
    };
    format!(
        "branch {}: {} records, {from}{whose}{resumed}",
        number + 1,
        branch.records.len()
    )
}
