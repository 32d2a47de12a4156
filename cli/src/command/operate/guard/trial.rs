//! `guard test`: does not believe files. A scratch repository whose hooks are this repository's, a store of its own,
//! and real git commands: what the guard says of each is compared with what it has to say.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tenure_projection::call::{Bearer, Call, ProcessChoice, Verb};
use tenure_projection::core::id::{DispatchNo, Name, Token};
use tenure_projection::store::{Answer, OpenOptions, Store};

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::output::{BAD, DIM, Object, PLAIN};

use super::Policy;
use super::ask::repository;
use super::block::{self, Guarded};
use super::git;

/// Arguments of `guard test`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A checkout of the repository [default: where you are]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

/// Something that was tried.
struct Tried {
    what: &'static str,
    /// What has to be seen.
    expected: &'static str,
    holds: bool,
    /// What git said.
    said: String,
}

impl Args {
    /// Tries, and says what held.
    ///
    /// # Errors
    /// When there is no repository, or the scratch one cannot be made.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let repository = repository(self.path.as_deref())?;
        let hooks = git::hooks_directory(&repository.top)?;
        let script = std::fs::read(hooks.join(Guarded::PreCommit.name())).unwrap_or_default();
        let settings = block::settings(&script);
        let policy = settings.as_ref().map_or(Policy::Disclose, |s| s.policy);
        let deletions = settings.map_or(super::install::DELETIONS_MAX, |s| s.deletions_max);
        let hooks = hooks.canonicalize().unwrap_or(hooks);
        let tried = Scratch::make(ctx, &hooks)?.play(policy, deletions)?;
        let held = tried.iter().filter(|t| t.holds).count();
        for one in &tried {
            if ctx.out.is_json() {
                let object = Object::new("guard-test")
                    .with("tried", one.what)
                    .with("expected", one.expected)
                    .with("holds", one.holds)
                    .with("said", one.said.as_str());
                ctx.out.object(&object)?;
                continue;
            }
            let (style, word) = if one.holds {
                (PLAIN, "holds")
            } else {
                (BAD, "does not hold")
            };
            ctx.out.styled(
                style,
                format_args!("{word}: {}: {}", one.what, one.expected),
            )?;
            if !one.holds {
                ctx.out.body(&one.said)?;
            }
        }
        if !ctx.out.is_json() {
            let all = tried.len();
            ctx.out.styled(
                DIM,
                format_args!(
                    "{held} of {all} hold, in a scratch repository; nothing here was touched"
                ),
            )?;
        }
        Ok(if held == tried.len() {
            Exit::DONE
        } else {
            Exit::NEGATIVE
        })
    }
}

/// A repository and a store that are thrown away.
struct Scratch {
    dir: tempfile::TempDir,
    store: Store,
    hooks: PathBuf,
}

fn failed(what: &str, why: &dyn std::fmt::Display) -> Stop {
    Fault::new(Cause::Io, format!("the scratch repository: {what}: {why}")).into()
}

impl Scratch {
    fn make(ctx: &Context, hooks: &Path) -> Result<Self, Stop> {
        let dir = tempfile::tempdir().map_err(|error| failed("make a directory", &error))?;
        let options = OpenOptions::new(dir.path().join("store")).create(true);
        let store = Store::open(&options, ctx.host()).map_err(|e| failed("make a store", &e))?;
        let scratch = Self {
            dir,
            store,
            hooks: hooks.to_owned(),
        };
        std::fs::create_dir(scratch.top()).map_err(|error| failed("make a directory", &error))?;
        // Without hooks, so that nothing of the user's runs before there is something to try.
        scratch.git(None, Path::new("/dev/null"), &["init", "-q"])?;
        scratch.write("shared/a", "1")?;
        scratch.write("own/b", "1")?;
        scratch.git(None, Path::new("/dev/null"), &["add", "."])?;
        scratch.git(None, Path::new("/dev/null"), &["commit", "-qm", "first"])?;
        Ok(scratch)
    }

    fn top(&self) -> PathBuf {
        self.dir.path().join("checkout")
    }

    fn write(&self, path: &str, text: &str) -> Result<(), Stop> {
        let path = self.top().join(path);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, text))
            .map_err(|error| failed("write a file", &error))
    }

    fn git(&self, token: Option<&Token>, hooks: &Path, words: &[&str]) -> Result<Output, Stop> {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("TENURE_") || text.starts_with("GIT_") {
                command.env_remove(&name);
            }
        }
        let path = |key: &str, value: &Path| {
            let mut setting = std::ffi::OsString::from(key);
            setting.push(value);
            setting
        };
        command
            .arg("-C")
            .arg(self.top())
            .arg("-c")
            .arg(path("core.hooksPath=", hooks))
            .args([
                "-c",
                "user.name=guard test",
                "-c",
                "user.email=guard@test",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(words.iter().map(OsStr::new))
            .env("TENURE_STORE", self.dir.path().join("store"))
            .stdin(Stdio::null());
        if let Some(token) = token {
            command.env("TENURE_TOKEN", token.to_string());
        }
        command.output().map_err(|error| failed("run git", &error))
    }

    fn hold(&self, name: &str, force: bool) -> Result<Token, Stop> {
        let name = Name::parse(name).map_err(|fault| failed("a name", &fault))?;
        let bearer = Bearer {
            process: ProcessChoice::Itself,
            engine: None,
        };
        let labels = Vec::new();
        let call = match force {
            false => Call::new(Verb::Register {
                name,
                bearer,
                labels,
                checkout: None,
            }),
            true => Call::new(Verb::Adopt {
                name,
                bearer,
                labels,
            })
            .by_force("guard test"),
        };
        match self.execute(call)? {
            Answer::Granted(grant) => Ok(grant.token),
            _ => Err(failed("a grant", &"it was answered without a token")),
        }
    }

    fn execute(&self, call: Call) -> Result<Answer, Stop> {
        let done = self.store.execute(call);
        done.map(|done| done.answer)
            .map_err(|failure| failed("the store", &failure))
    }

    fn play(&self, policy: Policy, deletions_max: u32) -> Result<Vec<Tried>, Stop> {
        let other = self.hold("guard-test-other", false)?;
        let us = self.hold("guard-test", false)?;
        let dispatch = Verb::Dispatch {
            item: Name::parse("guard-test-item").map_err(|fault| failed("a name", &fault))?,
            to: other.name.clone(),
            to_generation: None,
            title: None,
            writes: vec![self.top().join("shared")],
            body: None,
        };
        self.execute(Call::new(dispatch))?;
        let accept = Verb::Accept {
            dispatch: DispatchNo(1),
        };
        self.execute(Call::new(accept).under(&other))?;
        let mut tried = vec![self.own(&us)?, self.foreign(&us, policy)?];
        tried.push(self.mass(&us, deletions_max)?);
        tried.push(self.moves(&us, "a current token moves a ref", "it passes", true)?);
        self.hold("guard-test", true)?;
        tried.push(self.moves(&us, "a stale token moves a ref", "it is refused", false)?);
        tried.push(self.stale_commit(&us)?);
        Ok(tried)
    }

    fn tried(what: &'static str, expected: &'static str, output: &Output, holds: bool) -> Tried {
        Tried {
            what,
            expected,
            holds,
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Whether the guard itself refused, rather than another hook or git.
    fn refused(output: &Output) -> bool {
        let said = String::from_utf8_lossy(&output.stderr);
        let ours = said.contains("tenure guard: refused") || said.contains("is not current");
        !output.status.success() && ours
    }

    /// Hooks of the user's may refuse what ours lets pass; what counts is that ours did not.
    fn own(&self, us: &Token) -> Result<Tried, Stop> {
        self.write("own/b", "2")?;
        self.git(Some(us), &self.hooks, &["add", "own/b"])?;
        let output = self.git(Some(us), &self.hooks, &["commit", "-qm", "own"])?;
        let quiet = !String::from_utf8_lossy(&output.stderr).contains("tenure guard:");
        Ok(Self::tried(
            "a commit of own paths",
            "nothing is said",
            &output,
            quiet,
        ))
    }

    fn foreign(&self, us: &Token, policy: Policy) -> Result<Tried, Stop> {
        self.write("shared/a", "2")?;
        self.git(Some(us), &self.hooks, &["add", "-A"])?;
        let output = self.git(Some(us), &self.hooks, &["commit", "-qm", "sweep"])?;
        let said = String::from_utf8_lossy(&output.stderr);
        let named = said.contains("guard-test-other") && said.contains("shared/a");
        let what = "a sweeping add takes another session's path along";
        Ok(match policy {
            Policy::Refuse | Policy::WarnOnce => {
                let holds = named && Self::refused(&output);
                Self::tried(what, "it is named and refused", &output, holds)
            }
            Policy::Disclose => {
                let holds = named && !Self::refused(&output);
                Self::tried(what, "it is named and passes", &output, holds)
            }
        })
    }

    fn mass(&self, us: &Token, deletions_max: u32) -> Result<Tried, Stop> {
        for n in 0..=deletions_max {
            self.write(&format!("shared/many/{n}"), "1")?;
        }
        let plain = Path::new("/dev/null");
        self.git(None, plain, &["add", "-A"])?;
        self.git(None, plain, &["commit", "-qm", "many"])?;
        self.git(None, plain, &["rm", "-rq", "shared/many"])?;
        let output = self.git(Some(us), &self.hooks, &["commit", "-qm", "mass"])?;
        let holds = Self::refused(&output);
        self.git(None, plain, &["reset", "-q", "--hard"])?;
        let what = "a commit deletes more of another session's paths than it may";
        Ok(Self::tried(what, "it is refused", &output, holds))
    }

    fn moves(
        &self,
        us: &Token,
        what: &'static str,
        expected: &'static str,
        passes: bool,
    ) -> Result<Tried, Stop> {
        let words = ["update-ref", "refs/heads/guard-test", "HEAD"];
        let output = self.git(Some(us), &self.hooks, &words)?;
        let moved = self.git(
            None,
            Path::new("/dev/null"),
            &["rev-parse", "-q", "--verify", "refs/heads/guard-test"],
        )?;
        let holds = match passes {
            true => !Self::refused(&output),
            false => Self::refused(&output) && !moved.status.success(),
        };
        let _ = self.git(
            None,
            Path::new("/dev/null"),
            &["update-ref", "-d", "refs/heads/guard-test"],
        )?;
        Ok(Self::tried(what, expected, &output, holds))
    }

    fn stale_commit(&self, us: &Token) -> Result<Tried, Stop> {
        self.write("own/b", "3")?;
        let output = self.git(
            Some(us),
            &self.hooks,
            &["commit", "-qam", "late", "--no-verify"],
        )?;
        let holds = Self::refused(&output);
        let what = "a stale token commits with --no-verify";
        Ok(Self::tried(what, "its ref does not move", &output, holds))
    }
}
