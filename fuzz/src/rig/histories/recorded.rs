//! What players asked and were told, and when.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::player::ORDER;
use crate::hammer::Dice;

/// What was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Makes the session active.
    Register,
    /// Takes it over by force.
    Adopt,
    /// Writes under this generation.
    Note(u64),
}

/// What was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It stands at that position; with the generation that was granted, or zero.
    Done(u64, u64),
    /// The code of the refusal.
    Refused(String),
}

/// One operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    pub wish: Wish,
    /// When it was asked, in nanoseconds.
    pub asked: u64,
    /// When it was told what; nobody was told where there is none.
    pub told: Option<(u64, Answer)>,
}

/// A history.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The operations by name.
    pub operations: BTreeMap<String, Operation>,
    /// How many players were killed.
    pub kills: u64,
    /// How many were stopped for a while.
    pub stops: u64,
}

struct Player {
    child: Child,
    listener: thread::JoinHandle<()>,
    goes_on: Option<Instant>,
}

impl Player {
    fn start(
        program: &Path,
        store: &Path,
        number: u64,
        lines: &Arc<Mutex<Vec<String>>>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(program)
            .env(ORDER, format!("{number} {}", store.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = BufReader::new(child.stdout.take().ok_or("it is piped")?);
        let lines = lines.clone();
        let listener = thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Ok(mut lines) = lines.lock() {
                    lines.push(line);
                }
            }
        });
        Ok(Self {
            child,
            listener,
            goes_on: None,
        })
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, signal);
        }
    }

    fn end(mut self, is_killed: bool) -> Result<(), Box<dyn Error>> {
        if is_killed {
            self.child.kill()?;
        } else {
            self.signal(Signal::CONT);
            drop(self.child.stdin.take());
        }
        self.child.wait()?;
        let joined = self.listener.join();
        joined.map_err(|_| "a listener panicked".into())
    }
}

/// Lets players play for a while, kills some and stops some.
///
/// # Errors
/// When one cannot be started.
pub fn record(
    program: &Path,
    store: &Path,
    players: u32,
    time: Duration,
    dice: &mut Dice,
) -> Result<History, Box<dyn Error>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let mut history = History::default();
    let (mut playing, mut next) = (Vec::new(), 0);
    for _ in 0..players {
        playing.push(Player::start(program, store, next, &lines)?);
        next += 1;
    }
    let end = Instant::now() + time;
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(5 + dice.roll(40)));
        let which = dice.roll(playing.len() as u64) as usize;
        let now = Instant::now();
        for player in &mut playing {
            if player.goes_on.is_some_and(|at| at <= now) {
                player.signal(Signal::CONT);
                player.goes_on = None;
            }
        }
        match dice.roll(3) {
            0 => {
                let new = Player::start(program, store, next, &lines)?;
                next += 1;
                std::mem::replace(&mut playing[which], new).end(true)?;
                history.kills += 1;
            }
            1 => {
                playing[which].signal(Signal::STOP);
                playing[which].goes_on = Some(now + Duration::from_millis(20 + dice.roll(150)));
                history.stops += 1;
            }
            _ => {}
        }
    }
    for player in playing {
        player.end(false)?;
    }
    let lines = lines.lock().map_err(|_| "a listener panicked")?;
    for line in lines.iter() {
        hear(&mut history, line)?;
    }
    Ok(history)
}

/// A player's answers come behind its questions.
fn hear(history: &mut History, line: &str) -> Result<(), Box<dyn Error>> {
    let words: Vec<&str> = line.split(' ').collect();
    let at = |n: usize| words.get(n).copied().unwrap_or_default();
    let (name, time) = (at(1).to_owned(), at(2).parse()?);
    if at(0) == "asks" {
        let wish = match at(3) {
            "register" => Wish::Register,
            "adopt" => Wish::Adopt,
            "note" => Wish::Note(at(4).parse()?),
            other => return Err(format!("a player asks {other:?}").into()),
        };
        let (asked, told) = (time, None);
        history
            .operations
            .insert(name, Operation { wish, asked, told });
        return Ok(());
    }
    let answer = match at(3) {
        "done" => Answer::Done(at(4).parse()?, at(5).parse()?),
        _ => Answer::Refused(at(5).to_owned()),
    };
    let operation = history.operations.get_mut(&name);
    operation.ok_or("an answer has a question")?.told = Some((time, answer));
    Ok(())
}
