//! Lengths that pretend to be huge, under checksums that are right: none becomes a request for memory.

use std::error::Error;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tenure_log::inspect::inspect_all;
use tenure_log::salvage;
use tenure_log::scan::Checks;
use tenure_log::storage::Storage;
use tenure_log::storage::disk::Disk;
use tenure_log::verify::{Options, Outcome, verify};

use super::actor::ORDER;
use crate::allocator;
use crate::mutate::reseal;
use crate::rig::corruption::{Image, SEGMENT_BYTES};
use crate::rig::{Figures, Order};
use crate::unwritten::Unwritten;

/// What [`ORDER`] says to a process that throws them.
pub const WORD: &str = "bombs";

/// The most that one request may be, in bytes: that of a frame of the greatest size there is, and some more.
const CEILING: u64 = 64 << 20;

/// Where the header says how long the facts, texts and bodies are.
const LENGTHS: [usize; 3] = [4, 8, 12];

/// Throws them in a process of its own, which says what the largest request was.
///
/// # Errors
/// When it cannot be started.
pub fn run(order: &Order, figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    let out = Command::new(&order.itself)
        .env(ORDER, WORD)
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    let numbers = said.trim().split_once(' ');
    let Some((Ok(thrown), Ok(largest))) = numbers.map(|(a, b)| (a.parse(), b.parse::<u64>()))
    else {
        let err = String::from_utf8_lossy(&out.stderr);
        let line = format!("huge lengths end a process with {}: {err}", out.status);
        figures.violations.push(line);
        return Ok(());
    };
    figures.count("huge lengths", thrown);
    if largest > CEILING {
        let line = format!("a length from the log became a request for {largest} bytes");
        figures.violations.push(line);
    }
    Ok(())
}

/// Puts every huge length into every frame of a store, and looks at the store in every way.
///
/// # Errors
/// When the store cannot be made.
pub fn throw() -> Result<(), Box<dyn Error>> {
    let room = super::room()?;
    let image = Image::of_a_store(&room.path().join("store"), 24, SEGMENT_BYTES)?;
    let storage: Arc<dyn Storage> = Arc::new(Disk);
    let mut thrown = 0_u64;
    for name in image.names() {
        for frame in image.frames_of(name) {
            for length in LENGTHS {
                for value in [1 << 20, 33 << 20, u32::MAX / 2, u32::MAX] {
                    let mut changed = image.clone();
                    changed.edit(name, |bytes| {
                        let place = frame.offset + length;
                        bytes[place..place + 4].copy_from_slice(&u32::to_le_bytes(value));
                        reseal(bytes);
                    });
                    let report = verify(&changed.files, &Options::default());
                    if report.outcome != Outcome::Damaged {
                        return Err(format!("verify says {}", report.outcome).into());
                    }
                    inspect_all(&changed.files, Checks::ALL, &mut |_| {})?;
                    // What it says of such a store is judged by another rig.
                    let _ = salvage::salvage(
                        &changed.files,
                        &storage,
                        None,
                        &mut Unwritten::new(|_| true),
                    );
                    thrown += 1;
                }
            }
        }
    }
    println!("{thrown} {}", allocator::largest_of_all());
    Ok(())
}
