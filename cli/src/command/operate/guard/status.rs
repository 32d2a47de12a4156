//! `guard status`: what is really enforced, and which locks git left.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tenure_projection::core::holder::Verdict;
use tenure_projection::core::path::Level;
use tenure_projection::guards::{GitRepository, LockFile, LockVerdict, Locks, locks, owners};
use tenure_projection::host::{Hold, Host, Opener};
use tenure_projection::reader::Reader;
use tenure_projection::views::HolderView;

use crate::clock;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::{Stop, shell_word};
use crate::output::human::Line;
use crate::output::{BAD, DIM, HEAD, Object, PLAIN, WARN, human};

use super::ask::{of_guard, repository};
use super::block::{self, Guarded, Settings};
use super::hooks::Place;

/// Arguments of `guard status`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A checkout of the repository [default: where you are]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

/// How a hook stands in a worktree: the rows of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Git runs our block first, in our version, with a program that is there, on a store that can be read.
    Enforced,
    /// There is no hook.
    Absent,
    /// There is a hook without our block.
    Overwritten,
    /// Git passes over it.
    NotExecutable,
    /// Our block, not as this program writes it, or not first.
    OtherVersion,
    /// The program that it names is not there.
    ProgramMissing,
    /// The store that it would ask cannot be read.
    StoreUnreadable,
}

impl Standing {
    fn as_str(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Absent => "absent",
            Self::Overwritten => "overwritten",
            Self::NotExecutable => "not-executable",
            Self::OtherVersion => "other-version",
            Self::ProgramMissing => "program-missing",
            Self::StoreUnreadable => "store-unreadable",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Enforced => "git asks the ledger first",
            Self::Absent => "git asks nobody",
            Self::Overwritten => "git runs a hook that asks nobody",
            Self::NotExecutable => "git passes over the hook: it may not be run",
            Self::OtherVersion => "the block is not as this program writes it, or not first",
            Self::ProgramMissing => {
                "the program that the hook names is not there; its policy decides"
            }
            Self::StoreUnreadable => "the store cannot be read; the hook's policy decides",
        }
    }
}

/// One hook of one worktree.
struct Hooked {
    worktree: PathBuf,
    hook: Guarded,
    file: PathBuf,
    standing: Standing,
    settings: Option<Settings>,
}

impl Args {
    /// Looks, and says.
    ///
    /// # Errors
    /// When there is no repository, or it cannot be looked at.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let repository = repository(self.path.as_deref())?;
        let hooks = hooks(ctx, &repository)?;
        let host = ctx.host();
        let locks = locks(&*host, &repository).map_err(|error| of_guard(&error))?;
        let owners = owners(&repository, &locks).map_err(|error| of_guard(&error))?;
        let sharing = sharing(ctx, &repository);
        let enforced = hooks.iter().all(|h| h.standing == Standing::Enforced);
        if ctx.out.is_json() {
            let uids: Vec<Value> = owners
                .iter()
                .map(
                    |(uid, path)| serde_json::json!({ "uid": uid, "path": path.to_string_lossy() }),
                )
                .collect();
            let object = Object::new("guard")
                .with("repository", repository.common.to_string_lossy().as_ref())
                .with("enforced", enforced)
                .with("hooks", hooks.iter().map(hook_object).collect::<Vec<_>>())
                .with(
                    "locks",
                    locks.found.iter().map(lock_object).collect::<Vec<_>>(),
                )
                .with("locks_cut", locks.cut)
                .with(
                    "sharing",
                    sharing.iter().map(sharing_object).collect::<Vec<_>>(),
                )
                .with("uids", uids);
            ctx.out.object(&object)?;
        } else {
            ctx.out.lines(hook_lines(&hooks))?;
            ctx.out.lines(lock_lines(&locks))?;
            if !locks.found.is_empty() {
                ctx.out.lines(sharing.iter().map(sharing_line))?;
            }
            if owners.len() > 1 {
                ctx.out
                    .styled(WARN, "more than one user owns parts of this repository:")?;
                for (uid, path) in &owners {
                    ctx.out
                        .say(format_args!("  uid {uid}: {}", path.display()))?;
                }
            }
            if !enforced {
                ctx.out.say("tenure guard install  puts the hooks in")?;
            }
        }
        Ok(if enforced { Exit::DONE } else { Exit::NEGATIVE })
    }
}

/// Whether every hook of this worktree is enforced; not where it cannot be looked at.
pub fn is_guarded(ctx: &Context, repository: &GitRepository) -> bool {
    let Ok(hooks) = hooks(ctx, repository) else {
        return false;
    };
    let mut here = hooks
        .iter()
        .filter(|hook| hook.worktree == repository.top)
        .peekable();
    here.peek().is_some() && here.all(|hook| hook.standing == Standing::Enforced)
}

/// A live session at work in a worktree: it shares the index there.
struct Sharing {
    worktree: PathBuf,
    session: String,
    holder: HolderView,
}

/// Who shares the index of each worktree. Of a store that cannot be read it is said that the hooks cannot read it either.
fn sharing(ctx: &Context, repository: &GitRepository) -> Vec<Sharing> {
    let Ok(reader) = ctx.reading() else {
        return Vec::new();
    };
    let mut sharing = Vec::new();
    for top in repository
        .worktrees
        .iter()
        .filter_map(|tree| tree.top.as_ref())
    {
        let Ok((list, _)) = reader.shared_at(None, std::slice::from_ref(top)) else {
            continue;
        };
        let views = ctx.look(&reader, |lens| {
            let here = list
                .iter()
                .filter(|s| s.level == Level::Tree && s.former.is_none());
            Ok(here.map(|s| lens.shared(s)).collect::<Vec<_>>())
        });
        for view in views.unwrap_or_default() {
            let holder = view.holder.filter(|h| h.verdict != Verdict::Dead);
            sharing.extend(holder.map(|holder| Sharing {
                worktree: top.clone(),
                session: view.session,
                holder,
            }));
        }
    }
    sharing
}

fn sharing_object(sharing: &Sharing) -> Value {
    serde_json::json!({
        "worktree": sharing.worktree.to_string_lossy(),
        "session": sharing.session,
        "holder": human::holder(&sharing.holder),
    })
}

fn sharing_line(sharing: &Sharing) -> Line {
    let (name, worktree) = (&sharing.session, sharing.worktree.display());
    let holder = human::holder(&sharing.holder);
    (
        PLAIN,
        format!("{name} shares the index of {worktree}: {holder}"),
    )
}

fn hooks(ctx: &Context, repository: &GitRepository) -> Result<Vec<Hooked>, Stop> {
    let host = ctx.host();
    let mut hooks = Vec::new();
    for tree in &repository.worktrees {
        let Some(top) = tree.top.as_ref().filter(|top| top.join(".git").exists()) else {
            continue;
        };
        let place = Place::of(repository, top, &tree.git)?;
        for hook in Guarded::ALL {
            let file = place.file(hook);
            let (standing, settings) = stands(&file, hook, &host);
            hooks.push(Hooked {
                worktree: top.clone(),
                hook,
                file,
                standing,
                settings,
            });
        }
    }
    Ok(hooks)
}

/// How the hook in `file` stands: first matching row.
fn stands(file: &Path, hook: Guarded, host: &Arc<dyn Host>) -> (Standing, Option<Settings>) {
    let Ok(script) = std::fs::read(file) else {
        return (Standing::Absent, None);
    };
    let Some(range) = block::find(&script) else {
        return (Standing::Overwritten, None);
    };
    let settings = block::settings(&script);
    let Some(set) = settings.clone() else {
        return (Standing::OtherVersion, None);
    };
    let runs = |path: &Path| {
        let meta = std::fs::metadata(path);
        meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let before = script[..range.start].split(|b| *b == b'\n');
    let first = before
        .skip(1)
        .all(|line| line.is_empty() || line.starts_with(b"#"));
    let standing = match () {
        () if !runs(file) => Standing::NotExecutable,
        () if script[range] != block::text(hook, &set)[..] || !first => Standing::OtherVersion,
        () if !runs(&set.program) => Standing::ProgramMissing,
        () if Reader::open(&set.store, Arc::clone(host)).is_err() => Standing::StoreUnreadable,
        () => Standing::Enforced,
    };
    (standing, settings)
}

fn hook_object(hooked: &Hooked) -> Value {
    let settings = hooked.settings.as_ref();
    serde_json::json!({
        "worktree": hooked.worktree.to_string_lossy(),
        "hook": hooked.hook.name(),
        "file": hooked.file.to_string_lossy(),
        "standing": hooked.standing.as_str(),
        "policy": settings.map(|s| s.policy.as_str()),
        "deletions_max": settings.map(|s| s.deletions_max),
        "program": settings.map(|s| s.program.to_string_lossy()),
        "store": settings.map(|s| s.store.to_string_lossy()),
        "passed_by": passed_by(hooked.hook),
    })
}

/// By what git itself passes over a hook, without leaving a trace here.
fn passed_by(hook: Guarded) -> Option<&'static str> {
    match hook {
        Guarded::PreCommit => Some("git commit --no-verify; merge, rebase, cherry-pick and am"),
        Guarded::ReferenceTransaction => None,
    }
}

fn hook_lines(hooks: &[Hooked]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut worktree: Option<&Path> = None;
    for hooked in hooks {
        if worktree != Some(&hooked.worktree) {
            lines.push((HEAD, hooked.worktree.to_string_lossy().into_owned()));
            worktree = Some(&hooked.worktree);
        }
        let style = if hooked.standing == Standing::Enforced {
            PLAIN
        } else {
            BAD
        };
        let policy = hooked.settings.as_ref();
        let policy = policy.map(|s| format!("; policy {}", s.policy.as_str()));
        lines.push((
            style,
            format!(
                "  {:<22} {}: {}{}",
                hooked.hook.name(),
                hooked.standing.as_str(),
                hooked.standing.meaning(),
                policy.unwrap_or_default()
            ),
        ));
        if let Some(how) = passed_by(hooked.hook) {
            lines.push((DIM, format!("  {:<22} not asked by: {how}", "")));
        }
    }
    lines.push((
        DIM,
        "hooks warn, and refuse what a policy says; git's own locks are what excludes".to_owned(),
    ));
    lines
}

/// A lock file for programs.
pub fn lock_object(lock: &LockFile) -> Value {
    let (by, why) = match &lock.verdict {
        LockVerdict::Held(by) => (by.as_slice(), None),
        LockVerdict::Unsure(doubt) => (&[][..], Some(doubt.to_string())),
        LockVerdict::Left => (&[][..], None),
    };
    let by: Vec<Value> = by
        .iter()
        .map(|o| {
            serde_json::json!({
                "pid": o.pid, "name": o.name, "open": o.hold == Hold::Open,
            })
        })
        .collect();
    serde_json::json!({
        "path": lock.path.to_string_lossy(),
        "bytes": lock.bytes,
        "uid": lock.uid,
        "age_seconds": lock.age_micros / 1_000_000,
        "verdict": lock.verdict.as_str(),
        "held_by": by,
        "why": why,
    })
}

/// Lock files for people.
pub fn lock_lines(locks: &Locks) -> Vec<Line> {
    let mut lines = Vec::new();
    for lock in &locks.found {
        let age = clock::age(lock.modified, clock::now());
        let said = match &lock.verdict {
            LockVerdict::Held(by) => {
                let one = |o: &Opener| match o.hold {
                    Hold::Open => format!("pid {} ({}) has it open", o.pid, o.name),
                    Hold::AtWork => format!("pid {} ({}) is at work here", o.pid, o.name),
                };
                by.iter().map(one).collect::<Vec<_>>().join("; ")
            }
            LockVerdict::Unsure(doubt) => doubt.to_string(),
            LockVerdict::Left => "no process has it open".to_owned(),
        };
        let (path, verdict) = (lock.path.display(), lock.verdict.as_str());
        lines.push((
            WARN,
            format!(
                "{path}: {verdict}: {said}; {} bytes, uid {}, {age}",
                lock.bytes, lock.uid
            ),
        ));
        if lock.verdict == LockVerdict::Left {
            let word = shell_word(&lock.path);
            lines.push((
                PLAIN,
                format!("  tenure guard unlock {word} --reason TEXT  removes it"),
            ));
        }
    }
    if locks.cut {
        lines.push((WARN, "there is more than could be looked at".to_owned()));
    }
    lines
}
