//! `guard may-remove`: whether a directory may be removed as far as anybody can tell (D19).
//!
//! | row | found | answer |
//! |---|---|---|
//! | session | a session is at work there, and its holder is not provably dead | no |
//! | former | a former holder was at work there, and was never proven dead | no |
//! | changes | what is not committed: changed, staged, or new and not ignored | no |
//! | commits | `HEAD` is on no branch, and has commits that no branch, tag or remote has | no |
//! | lock | git left a lock in the repository, or holds one | no |
//! | unknown | any of these cannot be looked at | no |
//! | free | none of these | yes |

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_projection::core::holder::Verdict;
use tenure_projection::core::path::Level;
use tenure_projection::guards::locks;

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::output::{Object, PLAIN, WARN, human};

use super::ask::{of_guard, repository};
use super::git;
use super::hook::reason;

/// Arguments of `guard may-remove`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory [default: where you are]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

/// Why not: the row, and what it is about.
struct Why {
    row: &'static str,
    said: String,
}

impl Args {
    /// Looks at everything that would be lost, and answers. Nothing is removed.
    ///
    /// # Errors
    /// When the answer cannot be printed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let path = self.path.unwrap_or_else(|| ".".into());
        let mut why = Vec::new();
        for found in [at_work(ctx, &path), in_git(&path), locked(ctx, &path)] {
            match found {
                Ok(found) => why.extend(found),
                Err(stop) => why.push(Why {
                    row: "unknown",
                    said: format!("it cannot be told: {}", reason(&stop)),
                }),
            }
        }
        let shown = path.to_string_lossy();
        if ctx.out.is_json() {
            let reasons = why
                .iter()
                .map(|w| serde_json::json!({ "row": w.row, "message": w.said }));
            let object = Object::new("guard-may-remove")
                .with("path", shown.as_ref())
                .with("removable", why.is_empty())
                .with("reasons", reasons.collect::<Vec<Value>>());
            ctx.out.object(&object)?;
        } else if why.is_empty() {
            ctx.out.styled(
                PLAIN,
                format_args!(
                    "{shown} may be removed: nobody is at work there and nothing would be lost"
                ),
            )?;
        } else {
            ctx.out.styled(WARN, format_args!("{shown} stays:"))?;
            for w in &why {
                ctx.out.say(format_args!("  {}: {}", w.row, w.said))?;
            }
        }
        Ok(if why.is_empty() {
            Exit::DONE
        } else {
            Exit::NEGATIVE
        })
    }
}

/// Rows session and former.
fn at_work(ctx: &Context, path: &Path) -> Result<Vec<Why>, Stop> {
    let reader = ctx.reading()?;
    let (list, _) = reader
        .shared_at(None, &[path.to_owned()])
        .map_err(|error| ctx.fault(&error))?;
    ctx.look(&reader, |lens| {
        let mut why = Vec::new();
        for shared in list.iter().filter(|s| s.level == Level::Tree) {
            let view = lens.shared(shared);
            let Some(holder) = view.holder.as_ref().filter(|h| h.verdict != Verdict::Dead) else {
                continue;
            };
            let (row, former) = match view.former {
                Some(generation) => ("former", format!(" (generation {generation})")),
                None => ("session", String::new()),
            };
            let (name, source) = (&view.session, shared.source.as_str());
            let holder = human::holder(holder);
            why.push(Why {
                row,
                said: format!("{name}{former} works there ({source}): {holder}"),
            });
        }
        Ok(why)
    })
}

/// Rows changes and commits.
fn in_git(path: &Path) -> Result<Vec<Why>, Stop> {
    let mut why = Vec::new();
    let changes = git::uncommitted(path)?;
    if changes > 0 {
        let files = if changes == 1 { "file is" } else { "files are" };
        why.push(Why {
            row: "changes",
            said: format!("{changes} {files} not committed"),
        });
    }
    let commits = git::on_no_branch(path)?;
    if commits > 0 {
        let have = if commits == 1 {
            "commit is"
        } else {
            "commits are"
        };
        why.push(Why {
            row: "commits",
            said: format!("{commits} {have} on no branch"),
        });
    }
    Ok(why)
}

/// Row lock.
fn locked(ctx: &Context, path: &Path) -> Result<Vec<Why>, Stop> {
    let repository = repository(Some(path))?;
    let found = locks(&*ctx.host(), &repository).map_err(|error| of_guard(&error))?;
    let why = found.found.iter().map(|lock| Why {
        row: "lock",
        said: format!("{}: {}", lock.path.display(), lock.verdict.as_str()),
    });
    Ok(why.collect())
}
