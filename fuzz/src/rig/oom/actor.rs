//! The story of a process that gets no memory at some moment: it says what was acknowledged, line by line.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_log::look::PlainDirectory;
use tenure_log::position::Receipt;
use tenure_log::verify::{Options, Outcome, verify};
use tenure_projection::error::Failure;
use tenure_projection::host::System;
use tenure_projection::reader::Reader;
use tenure_projection::salvage::{self, Target};
use tenure_projection::store::{OpenOptions, Store};

use crate::allocator;
use crate::rig::play::{Ask, Tok};

/// The environment variable that makes a program such a process.
pub const ORDER: &str = "TENURE_STARVED";

/// What [`ORDER`] says.
#[must_use]
pub fn order(room: &Path, number: u64, onwards: bool) -> String {
    format!("{number} {onwards} {}", room.display())
}

/// Where the store is.
#[must_use]
pub fn store_in(room: &Path) -> PathBuf {
    room.join("store")
}

/// Where what is salvaged goes.
#[must_use]
pub fn salvage_in(room: &Path) -> PathBuf {
    room.join("salvaged")
}

/// Plays the story if this process was started for it; returns whether it was.
///
/// # Errors
/// Whatever comes instead of an answer.
pub fn act_if_ordered() -> Result<bool, Box<dyn std::error::Error>> {
    let Ok(order) = std::env::var(ORDER) else {
        return Ok(false);
    };
    if order == super::bombs::WORD {
        super::bombs::throw()?;
        return Ok(true);
    }
    let mut words = order.splitn(3, ' ');
    let mut word = || words.next().ok_or("an order has three words");
    let (number, onwards): (u64, bool) = (word()?.parse()?, word()?.parse()?);
    let room = PathBuf::from(word()?);
    allocator::refuse(number, onwards);
    play(&room)?;
    let requests = allocator::counted();
    println!("requests {requests}");
    Ok(true)
}

const fn tok(name: &'static str, generation: u64) -> Tok {
    Tok { name, generation }
}

/// What is asked for. Each is one frame.
fn commands() -> [Ask; 12] {
    let pid = std::process::id();
    let (api, web) = (tok("api", 1), tok("web", 1));
    [
        Ask::Register("api", pid),
        Ask::Register("web", pid),
        Ask::Dispatch("one", "web", Some(api)),
        Ask::Accept(web, 1),
        Ask::Dispatch("two", "web", None),
        Ask::Send(api, "web", None),
        Ask::Note(web),
        Ask::Report(web, 1),
        Ask::Adopt("web", pid, true, None),
        Ask::Deliver(tok("web", 2), 2),
        Ask::Branch("web", "ops", pid),
        Ask::Retire(api, false),
    ]
}

fn play(room: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let (dir, host) = (store_in(room), Arc::new(System::of_this_user()));
    let options = OpenOptions::new(&dir).create(true);
    let mut store = Store::open(&options, host.clone())?;
    for (number, command) in commands().into_iter().enumerate() {
        if number == 6 {
            // The second half is played by one who opens what is there.
            drop(store);
            store = Store::open(&options, host.clone())?;
        }
        match store.execute(command.call()) {
            Ok(done) => say(&done.receipt)?,
            Err(Failure::Refused(refusal)) => panic!("{command:?}: {}", refusal.message),
            Err(other) => return Err(other.into()),
        }
    }
    let reader = Reader::open(&dir, host.clone())?;
    reader.view(|state| state.at)?;
    drop((reader, store));
    let report = verify(&PlainDirectory::new(&dir), &Options::default());
    assert_eq!(report.outcome, Outcome::Clean, "nobody changed a byte");
    let order = salvage::Order {
        source: dir,
        target: Target::Directory(salvage_in(room)),
        actor: None,
        reason: "to see".to_owned(),
    };
    salvage::run(&order, &*host, &mut |_| {})?;
    Ok(())
}

/// One line in one piece, or none of it.
fn say(receipt: &Receipt) -> std::io::Result<()> {
    let line = format!("done {receipt}\n");
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}
