//! One player: a process that takes the session over, writes under the tokens that it had, and says when it asked and
//! what it was told.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::time::{ClockId, clock_gettime};
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::core::id::{Name, Token};
use tenure_projection::error::Failure;
use tenure_projection::host::System;
use tenure_projection::store::{Answer, OpenOptions, Store};

use crate::hammer::Dice;

/// The environment variable that makes a program a player.
pub const ORDER: &str = "TENURE_HISTORY_PLAYER";

/// The session that all of them want.
const SESSION: &str = "api";

/// Plays if this process was started as a player; returns whether it was.
///
/// # Errors
/// When the order cannot be read or the store not opened.
pub fn play_if_ordered() -> Result<bool, Box<dyn std::error::Error>> {
    let Ok(order) = std::env::var(ORDER) else {
        return Ok(false);
    };
    let (number, store) = order.split_once(' ').ok_or("an order has two words")?;
    let number: u64 = number.parse()?;
    let options = OpenOptions::new(PathBuf::from(store)).create(true);
    let store = Store::open(&options, Arc::new(System::of_this_user()))?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| play(&store, number, &over));
        // Whoever records ends the play by closing standard input.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Relaxed);
    });
    Ok(true)
}

/// Nanoseconds of the machine's clock that never goes back, the same for every process.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

fn play(store: &Store, number: u64, over: &AtomicBool) {
    let mut dice = Dice::new(number.wrapping_mul(7919) + u64::from(std::process::id()));
    let mut token: Option<Token> = None;
    let mut count = 0_u64;
    while !over.load(Ordering::Relaxed) {
        let name = format!("{number}.{count}");
        count += 1;
        let takes = token.is_none() || dice.roll(6) == 0;
        let call = match &token {
            Some(token) if !takes => Call::new(note()).under(token),
            _ if dice.roll(3) == 0 => Call::new(register()),
            _ => Call::new(adopt()).by_force("it is wanted"),
        };
        let kind = match (&call.token, &call.force) {
            (Some(token), _) => format!("note {}", token.generation.number),
            (None, Some(_)) => "adopt 0".to_owned(),
            (None, None) => "register 0".to_owned(),
        };
        say(&format!("asks {name} {} {kind}", now()));
        let told = store.execute(call.by(name.clone()));
        let answered = now();
        let told = match told {
            Ok(done) => {
                let position = done.receipt.position.0;
                match done.answer {
                    Answer::Granted(grant) => {
                        let generation = grant.token.generation.number;
                        token = Some(grant.token);
                        format!("done {position} {generation}")
                    }
                    _ => format!("done {position} 0"),
                }
            }
            Err(Failure::Refused(refusal)) => format!("refused 0 {}", refusal.code.as_str()),
            // Nothing is known of it: the log says.
            Err(_) => continue,
        };
        say(&format!("told {name} {answered} {told}"));
    }
}

fn session() -> Name {
    Name::parse(SESSION).expect("a plain name")
}

fn note() -> Verb {
    Verb::Note {
        body: b"here".to_vec(),
        on: None,
    }
}

fn register() -> Verb {
    Verb::Register {
        name: session(),
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
    }
}

fn adopt() -> Verb {
    Verb::Adopt {
        name: session(),
        bearer: Bearer::itself(),
        labels: Vec::new(),
    }
}

/// One line, with one write.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // When nobody records there is nobody to tell.
    let _ = out.write_all(format!("{line}\n").as_bytes());
    let _ = out.flush();
}
