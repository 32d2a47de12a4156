//! A worker: threads that write notes, take sessions over, and say what they were told.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::core::id::{Name, Token};
use tenure_projection::core::refusal::Code;
use tenure_projection::error::{Error, Failure};
use tenure_projection::host::System;
use tenure_projection::store::{Answer, OpenOptions, Store};

use super::Dice;

/// The environment variable that makes a program a worker.
pub const ORDER: &str = "TENURE_HAMMER_WORKER";

/// Sessions that the workers fight over.
const SESSIONS: u64 = 6;

/// What [`ORDER`] says.
#[must_use]
pub fn order(store: &Path, number: u32, threads: u32) -> String {
    format!("{number} {threads} {}", store.display())
}

/// Works if this process was started as a worker; returns whether it was.
///
/// # Errors
/// Whatever the store says besides refusals.
pub fn work_if_ordered() -> Result<bool, Box<dyn std::error::Error>> {
    let Ok(order) = std::env::var(ORDER) else {
        return Ok(false);
    };
    let mut words = order.splitn(3, ' ');
    let mut word = || words.next().ok_or("an order has three words");
    let (number, threads): (u64, u64) = (word()?.parse()?, word()?.parse()?);
    let store = PathBuf::from(word()?);
    let store = Store::open(
        // Every other process has its snapshots written beside the work.
        &OpenOptions::new(store)
            .create(true)
            .snapshots_aside(number % 2 == 1),
        Arc::new(System::of_this_user()),
    )?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let (store, over) = (&store, &over);
                scope.spawn(move || Thread::new(store, number * threads + thread).work(over))
            })
            .collect();
        // The hammer ends the work by closing standard input.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Relaxed);
        workers
            .into_iter()
            .try_for_each(|w| w.join().expect("a worker does not panic"))
    })?;
    Ok(true)
}

struct Thread<'s> {
    store: &'s Store,
    number: u64,
    notes: u64,
    dice: Dice,
    token: Option<Token>,
}

impl<'s> Thread<'s> {
    fn new(store: &'s Store, number: u64) -> Self {
        let dice = Dice::new(
            number
                .wrapping_mul(77)
                .wrapping_add(u64::from(std::process::id())),
        );
        Self {
            store,
            number,
            notes: 0,
            dice,
            token: None,
        }
    }

    fn work(mut self, over: &AtomicBool) -> Result<(), Error> {
        while !over.load(Ordering::Relaxed) {
            let Some(token) = self.token.clone() else {
                self.token = self.take()?;
                continue;
            };
            self.note(&token)?;
            if self.dice.roll(50) == 0 {
                self.token = self.take()?;
            }
        }
        Ok(())
    }

    /// Writes a note; a stale token is given up now and then only, so that stale writes are tried.
    fn note(&mut self, token: &Token) -> Result<(), Error> {
        let note = (self.number << 32) | self.notes;
        self.notes += 1;
        let verb = Verb::Note {
            body: note.to_string().into_bytes(),
            on: None,
        };
        match self
            .store
            .execute(Call::new(verb).under(token).by("hammer"))
        {
            Ok(done) => say(&format!("ack {note} {}", done.receipt.position.0)),
            Err(Failure::Refused(refusal)) => {
                say(&format!("refused {note} {}", refusal.code.as_str()));
                if self.dice.roll(4) == 0 {
                    self.token = None;
                }
            }
            Err(Failure::Unknown { .. }) => say(&format!("unknown {note}")),
            Err(Failure::Failed(error)) => return self.tolerate(error),
            Err(_) => say("failed: a new kind of failure"),
        }
        Ok(())
    }

    /// Becomes the holder of a session, from whoever has it.
    fn take(&mut self) -> Result<Option<Token>, Error> {
        let name = format!("worker-{}", self.dice.roll(SESSIONS));
        let name = Name::parse(&name).expect("a name");
        let register = Verb::Register {
            name: name.clone(),
            bearer: Bearer::itself(),
            labels: Vec::new(),
            checkout: None,
        };
        let adopt = Verb::Adopt {
            name,
            bearer: Bearer::itself(),
            labels: Vec::new(),
        };
        let adopt = Call::new(adopt).by_force("the hammer falls").by("hammer");
        let granted = match self.store.execute(Call::new(register).by("hammer")) {
            Err(Failure::Refused(refusal)) if refusal.code == Code::AlreadyActive => {
                self.store.execute(adopt)
            }
            other => other,
        };
        match granted {
            Ok(done) => match done.answer {
                Answer::Granted(grant) => Ok(Some(grant.token)),
                _ => Ok(None),
            },
            Err(Failure::Failed(error)) => self.tolerate(error).map(|()| None),
            Err(_) => Ok(None),
        }
    }

    /// Waiting too long is no fault of the store's.
    fn tolerate(&self, error: Error) -> Result<(), Error> {
        match &error {
            Error::Log(source)
                if matches!(**source, tenure_projection::log::error::Error::Busy { .. }) =>
            {
                Ok(())
            }
            _ => {
                say(&format!("failed: {error}"));
                Err(error)
            }
        }
    }
}

/// One line, with one write, so that lines of threads do not mix.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // When the hammer is gone there is nobody to tell.
    let _ = out.write_all(format!("{line}\n").as_bytes());
    let _ = out.flush();
}
