//! What the hooks call: `guard hook pre-commit`, `guard hook reference-transaction`.
//!
//! | exit | the hook's shell |
//! |---|---|
//! | 0 | goes on |
//! | 1 | stops git: what has to be said was said |
//! | anything else | nothing was checked; the hook's own policy decides |

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use clap::ValueEnum;
use tenure_projection::call::{Call, Verb};
use tenure_projection::core::disclosure::{INSTRUCTION_TREE, Rule};
use tenure_projection::core::id::Token;
use tenure_projection::core::limits::{REASON_BYTES_MAX, SCOPES_MAX};
use tenure_projection::error::Failure;
use tenure_projection::guards::{Along, Claim, locate_staged};
use tenure_projection::host::Host;
use tenure_projection::log::journal::Deadline;
use tenure_projection::reader::Reader;
use tenure_projection::store::{Done, OpenOptions, Store};
use tenure_projection::views::{CheckView, Lens};

use crate::clock::rfc3339;
use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop, quoted};
use crate::input;
use crate::output::{escape, human};

use super::Policy;
use super::ask::{Row, row};
use super::git;

mod refs;

/// How long git waits for the ledger at most.
const BOUND: Duration = Duration::from_secs(2);
/// How long a record may take of that.
const WRITE_BOUND: Duration = Duration::from_secs(1);
/// Paths listed for one session.
const PATHS_SHOWN: usize = 10;
/// The variable by which somebody passes a guard on purpose.
const BYPASS: &str = "TENURE_GUARD_BYPASS";

/// Which hook calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Calling {
    /// Before a commit is made.
    PreCommit,
    /// Before refs move; they come on standard input.
    ReferenceTransaction,
}

/// Arguments of `guard hook`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(value_enum)]
    hook: Calling,
    #[arg(long, value_enum, default_value = "disclose")]
    policy: Policy,
    #[arg(long, default_value_t = super::install::DELETIONS_MAX)]
    deletions_max: u32,
}

/// All that is needed to ask, apart from the thread that waits.
struct Question {
    dir: PathBuf,
    options: OpenOptions,
    host: Arc<dyn Host>,
    actor: Option<String>,
    policy: Policy,
    deletions_max: u32,
    /// The guarded refs that are to move.
    refs: Vec<refs::Moving>,
}

/// What was found, and what is said of it.
struct Finding {
    row: Row,
    lines: Vec<String>,
}

impl Args {
    /// Asks, within a bound.
    ///
    /// # Errors
    /// When nothing could be asked: the hook's shell says so, and its policy decides.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let refs = match self.hook {
            Calling::PreCommit => Vec::new(),
            Calling::ReferenceTransaction => refs::guarded()?,
        };
        if self.hook == Calling::ReferenceTransaction && refs.is_empty() {
            return Ok(Exit::DONE);
        }
        let dir = ctx.dir()?;
        let question = Question {
            options: ctx.options(&dir),
            dir,
            host: ctx.host(),
            actor: ctx.actor(),
            policy: self.policy,
            deletions_max: self.deletions_max,
            refs,
        };
        // A file system that hangs, or anything else that takes too long, must not hold git up.
        let (tell, told) = mpsc::channel();
        let hook = self.hook;
        std::thread::spawn(move || {
            // Nobody listens any more when it took too long.
            let _ = tell.send(question.answer(hook));
        });
        let finding = match told.recv_timeout(BOUND) {
            Ok(finding) => finding.map_err(|stop| blind(&reason(&stop)))?,
            Err(_) => return Err(blind(&format!("no answer within {} s", BOUND.as_secs()))),
        };
        for line in &finding.lines {
            eprintln!("tenure guard: {}", escape::line(line));
        }
        Ok(if finding.row.passes() {
            Exit::DONE
        } else {
            Exit::NEGATIVE
        })
    }
}

/// Nothing could be asked. The code is none that the hook's shell takes for an answer.
fn blind(why: &str) -> Stop {
    Fault::new(Cause::Io, format!("the ledger could not be asked: {why}")).into()
}

/// What stopped something, in one sentence.
pub(super) fn reason(stop: &Stop) -> String {
    match stop {
        Stop::Failed(fault) => fault.message.clone(),
        Stop::Refused(refusal) => refusal.message.clone(),
        Stop::OutputClosed => "nobody reads".to_owned(),
    }
}

impl Question {
    fn answer(&self, hook: Calling) -> Result<Finding, Stop> {
        let token = input::token(None)?;
        let failed = |error| crate::fault::of_store(&error, &self.dir);
        let reader = Reader::open(&self.dir, Arc::clone(&self.host)).map_err(failed)?;
        let standing = token
            .as_ref()
            .map(|token| self.standing(&reader, token))
            .transpose()?;
        if let Some(view) = standing.as_ref().filter(|view| !view.is_current()) {
            return Ok(stale(view));
        }
        if hook == Calling::ReferenceTransaction {
            return self.moved(&reader, token);
        }
        // Git calls its hooks at the top of the checkout that is committed to.
        let top = std::env::current_dir().map_err(|e| Fault::file("find", Path::new("."), e))?;
        let located = locate_staged(&*self.host, &top, git::staged(&top)?)
            .map_err(|error| blind(&error.to_string()))?;
        let along = self.look(&reader, |lens| {
            let asker = token
                .as_ref()
                .and_then(|t| lens.state.find(t.name.as_str().as_bytes()));
            lens.along(asker, &located, self.policy.rule())
        })?;
        let row = row(&along, token.is_some(), self.deletions_max);
        let mut lines = self.said(row, &along);
        let row = match bypass().filter(|_| row.can_be_passed()) {
            Some(why) => {
                let by = ("pre-commit", token);
                self.pass(row, &in_short(&along), by, &top, why, &mut lines)
            }
            None => {
                let recorded = token.map_or(Ok(()), |token| self.record(&along, token, &top));
                match recorded {
                    Ok(()) => row,
                    Err(failure) => {
                        lines.push(format!("that it was said could not be recorded: {failure}"));
                        // Nobody would know the repeat for one.
                        if row == Row::Warned {
                            Row::Disclosed
                        } else {
                            row
                        }
                    }
                }
            }
        };
        Ok(Finding { row, lines })
    }

    /// Records whom the session was shown, once for each, and a refusal that a recorded policy demands (DSC-11).
    fn record(&self, along: &[Along], token: Token, top: &Path) -> Result<(), Failure> {
        let new = |a: &&Along| a.claim == Claim::Foreign && (!a.known || a.rule == Rule::Refuse);
        let paths = along.iter().filter(new).filter_map(|a| a.paths.first());
        let paths = paths.take(SCOPES_MAX);
        let writes: Vec<PathBuf> = paths
            .map(|staged| top.join(OsStr::from_bytes(&staged.path)))
            .collect();
        if writes.is_empty() {
            return Ok(());
        }
        match self.write(Verb::CheckWrite { writes }, Some(token)) {
            // Whatever it says was said already.
            Ok(_) | Err(Failure::Refused(_)) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    fn write(&self, verb: Verb, token: Option<Token>) -> Result<Done, Failure> {
        let mut call = Call::new(verb).until(Deadline::after(WRITE_BOUND));
        call.token = token;
        call.actor = self.actor.clone();
        Store::open(&self.options, Arc::clone(&self.host))?.execute(call)
    }

    fn look<R>(&self, reader: &Reader, look: impl FnOnce(Lens<'_>) -> R) -> Result<R, Stop> {
        let looked = reader.view(|state| {
            look(Lens {
                state,
                host: reader.host(),
                shelf: reader,
            })
        });
        looked.map_err(|error| crate::fault::of_store(&error, &self.dir).into())
    }

    fn standing(&self, reader: &Reader, token: &Token) -> Result<CheckView, Stop> {
        let view = self.look(reader, |lens| lens.check(token))?;
        view.ok_or_else(|| blind(&format!("this store knows no session {}", token.name)))
    }

    /// Records that somebody passes the guard, and says so.
    fn pass(
        &self,
        row: Row,
        found: &str,
        (hook, token): (&str, Option<Token>),
        top: &Path,
        why: String,
        lines: &mut Vec<String>,
    ) -> Row {
        let mut end = found.len().min(REASON_BYTES_MAX);
        while !found.is_char_boundary(end) {
            end -= 1;
        }
        let verb = Verb::BypassGuard {
            hook: hook.to_owned(),
            checkout: top.to_owned(),
            said: found[..end].to_owned(),
            reason: why,
        };
        match self.write(verb, token) {
            Ok(done) => {
                lines.push(format!(
                    "passed by {BYPASS}, recorded at position {}",
                    done.at.position
                ));
                Row::Disclosed
            }
            Err(error) => {
                lines.push(format!(
                    "{BYPASS} is set, and could not be recorded: {error}"
                ));
                row
            }
        }
    }

    fn said(&self, row: Row, along: &[Along]) -> Vec<String> {
        let mut lines: Vec<String> = along.iter().flat_map(claims).collect();
        let foreign: Vec<&Along> = along.iter().filter(|a| a.claim == Claim::Foreign).collect();
        if foreign.is_empty() {
            return lines;
        }
        lines.push(INSTRUCTION_TREE.to_owned());
        lines.push(format!(
            "to leave them out: git reset -q -- {}",
            words(&foreign)
        ));
        let verdict = match row {
            Row::Mass => Some(format!(
                "refused: {} of their paths would be deleted, at most {} may be without somebody saying so",
                foreign.iter().map(|a| a.deleted()).sum::<usize>(),
                self.deletions_max
            )),
            Row::Refused => Some("refused: the policy here is refuse".to_owned()),
            Row::Warned => Some(
                "refused this once: the policy here is warn-once; the repeat goes on".to_owned(),
            ),
            _ => None,
        };
        if let Some(verdict) = verdict {
            lines.push(verdict);
            lines.push(format!(
                "to commit on purpose: {BYPASS}=REASON git commit ..., which is recorded"
            ));
        }
        lines.push("this only warns and refuses; git's own locks are what excludes".to_owned());
        lines
    }
}

fn bypass() -> Option<String> {
    let reason = std::env::var_os(BYPASS)?
        .to_string_lossy()
        .trim()
        .to_owned();
    (!reason.is_empty()).then_some(reason)
}

fn stale(view: &CheckView) -> Finding {
    let relation = view.relation().map_or("", |relation| relation.as_str());
    let mut lines = vec![format!(
        "{} is not current ({relation}): {}@{} is, since {}",
        view.token,
        view.session,
        view.generation,
        rfc3339(view.since.time)
    )];
    lines.extend(
        view.holder
            .iter()
            .map(|h| format!("held by {}", human::holder(h))),
    );
    lines.extend(human::lost(&view.lost).into_iter().map(|(_, line)| line));
    lines.push("a stale token moves nothing here; without one you act as nobody".to_owned());
    Finding {
        row: Row::StaleToken,
        lines,
    }
}

/// Whose paths, and which.
fn claims(along: &Along) -> Vec<String> {
    let holder = along
        .holder
        .as_ref()
        .map_or_else(|| "nobody".to_owned(), human::holder);
    let name = match along.former {
        Some(generation) => format!("{} (former, generation {generation})", along.name),
        None => along.name.clone(),
    };
    if along.claim == Claim::Present {
        return vec![format!("{name} works in this checkout: {holder}")];
    }
    let dispatches: Vec<String> = along.dispatches.iter().map(ToString::to_string).collect();
    let count = along.paths.len();
    let mut lines = vec![format!(
        "{} {count} {} of {name}: {holder}; {}{}{}",
        along.claim.as_str(),
        if count == 1 { "path" } else { "paths" },
        along.source.as_str(),
        if dispatches.is_empty() { "" } else { " by " },
        dispatches.join(" "),
    )];
    let shown = along.paths.iter().take(PATHS_SHOWN);
    lines.extend(shown.map(|staged| {
        let path = tenure_projection::views::shown(&staged.path);
        let how = if staged.deleted { " (deleted)" } else { "" };
        format!("  {path}{how}")
    }));
    if count > PATHS_SHOWN {
        lines.push(format!("  and {} more", count - PATHS_SHOWN));
    }
    lines
}

/// The paths of others, as words of a shell.
fn words(foreign: &[&Along]) -> String {
    let mut paths: Vec<&[u8]> = foreign
        .iter()
        .flat_map(|a| &a.paths)
        .map(|s| &s.path[..])
        .collect();
    paths.sort_unstable();
    paths.dedup();
    let shown = paths.iter().take(PATHS_SHOWN);
    let mut words: Vec<String> = shown.map(|p| quoted(&String::from_utf8_lossy(p))).collect();
    if paths.len() > PATHS_SHOWN {
        words.push("...".to_owned());
    }
    words.join(" ")
}

/// What the guard said, for the record.
fn in_short(along: &[Along]) -> String {
    let one = |a: &Along| format!("{} {} of {}", a.claim.as_str(), a.paths.len(), a.name);
    along.iter().map(one).collect::<Vec<_>>().join("; ")
}
