//! Where the demo plays: a temporary directory with a store and a real git checkout, and the actors.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tenure_projection::host::System;
use tenure_projection::store::{OpenOptions, Store};

use super::Broken;
use super::actor::ACTOR_STORE;

/// The stage.
pub struct Stage {
    /// The checkout.
    pub checkout: PathBuf,
    /// The store's directory.
    pub store_dir: PathBuf,
    /// The operator's handle.
    pub store: Store,
    // Removed with everything in it when the stage is struck.
    _room: Option<tempfile::TempDir>,
}

impl Stage {
    /// Builds it: a checkout with one commit, and an empty store beside it.
    pub fn set(keep: Option<&Path>) -> Result<Self, Broken> {
        let (root, room) = match keep {
            Some(dir) => {
                std::fs::create_dir_all(dir)
                    .map_err(Broken::setting(format!("cannot make {}", dir.display())))?;
                (dir.to_owned(), None)
            }
            None => {
                let room = tempfile::tempdir()
                    .map_err(Broken::setting("cannot make a temporary directory"))?;
                (room.path().to_owned(), Some(room))
            }
        };
        let (checkout, store_dir) = (root.join("checkout"), root.join("store"));
        std::fs::create_dir_all(checkout.join("src"))
            .map_err(Broken::setting("cannot make the checkout"))?;
        std::fs::write(checkout.join("src/login.html"), "<form></form>\n")
            .map_err(Broken::setting("cannot write into the checkout"))?;
        git(&checkout, &["init", "--quiet"])?;
        git(&checkout, &["add", "src/login.html"])?;
        let commit = [
            "-c",
            "user.name=demo",
            "-c",
            "user.email=demo@localhost",
            "-c",
            "commit.gpgsign=false",
            "commit",
            "--quiet",
            "--message",
            "begin",
        ];
        git(&checkout, &commit)?;
        let host = Arc::new(System::of_this_user());
        let store = Store::open(&OpenOptions::new(&store_dir).create(true), host)?;
        Ok(Self {
            checkout,
            store_dir,
            store,
            _room: room,
        })
    }

    /// Starts an actor and waits until it has opened its handle.
    pub fn actor(&self, name: &'static str) -> Result<Player, Broken> {
        let this = std::env::current_exe().map_err(Broken::setting("cannot find this program"))?;
        let mut child = Command::new(this)
            .env(ACTOR_STORE, &self.store_dir)
            .current_dir(&self.checkout)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Broken::setting("cannot start an actor"))?;
        let orders = child.stdin.take().expect("standard input is piped");
        let answers = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let mut player = Player {
            name,
            child,
            orders: Some(orders),
            answers,
        };
        let ready = player.answer()?;
        if ready.get("ready").is_none() {
            return Err(Broken::Step(format!(
                "{name} opens its handle on the store"
            )));
        }
        Ok(player)
    }
}

fn git(checkout: &Path, args: &[&str]) -> Result<(), Broken> {
    let what = "cannot run git, which the demo needs for a real checkout";
    let status = Command::new("git")
        .arg("-C")
        .arg(checkout)
        .args(args)
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE")
        .status()
        .map_err(Broken::setting(what))?;
    if status.success() {
        return Ok(());
    }
    Err(Broken::Step(format!(
        "git {} in {}",
        args.join(" "),
        checkout.display()
    )))
}

/// An actor as the demo sees it.
pub struct Player {
    /// Its name in the story.
    pub name: &'static str,
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Player {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order and waits for the answer.
    pub fn told(&mut self, order: &Value) -> Result<Value, Broken> {
        self.order(order)?;
        self.answer()
    }

    /// Gives an order and does not wait.
    pub fn order(&mut self, order: &Value) -> Result<(), Broken> {
        let gone = || Broken::Step(format!("{} is there to take an order", self.name));
        let orders = self.orders.as_mut().ok_or_else(gone)?;
        writeln!(orders, "{order}")
            .and_then(|()| orders.flush())
            .map_err(Broken::setting(format!(
                "cannot give {} an order",
                self.name
            )))
    }

    /// Waits for an answer.
    pub fn answer(&mut self) -> Result<Value, Broken> {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .map_err(Broken::setting(format!("cannot hear {}", self.name)))?;
        serde_json::from_str(&line)
            .map_err(|_| Broken::Step(format!("{} answers (it said {line:?})", self.name)))
    }

    /// Stops it, as a debugger, a full terminal or a suspended laptop would, and waits until it stands still.
    pub fn stop(&self) -> Result<(), Broken> {
        self.signal(Signal::STOP)?;
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            if self.is_stopped() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(Broken::Step(format!(
            "{} stands still after SIGSTOP",
            self.name
        )))
    }

    /// Lets it go on.
    pub fn wake(&self) -> Result<(), Broken> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), Broken> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Broken::Step(format!("{} has a process id", self.name)))?;
        kill_process(pid, signal)
            .map_err(|e| Broken::setting(format!("cannot signal {}", self.name))(e.into()))
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        let after_name = stat.rsplit(|b| *b == b')').next().unwrap_or_default();
        after_name.trim_ascii_start().first() == Some(&b'T')
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // A stopped actor would never see its orders end.
        let _ = self.signal(Signal::CONT);
        drop(self.orders.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Appends a line to a file of the checkout: the actors' work is real.
pub fn edit(checkout: &Path, file: impl AsRef<OsStr>, line: &str) -> Result<(), Broken> {
    let path = checkout.join(Path::new(&file));
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .map_err(Broken::setting(format!("cannot open {}", path.display())))?;
    writeln!(file, "{line}").map_err(Broken::setting(format!("cannot write {}", path.display())))
}
