//! Arbitrary bytes for everything that decodes: the files of the corpus, changed by chance, half of them with checksums
//! made right again.
//!
//! What must hold is what each target asserts, and that none asks for more memory at once than the greatest frame has.

use std::error::Error;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tenure_core::codec::encode;

use super::{Figures, Order, Outcome, for_each_seed};
use crate::allocator;
use crate::hammer::Dice;
use crate::mutate::{change, reseal};
use crate::targets::{TARGETS, folded};

/// The most that one request for memory may be, in bytes.
pub const CEILING: usize = 64 << 20;

/// Executions between two looks at what was asked for.
const ROUND: u64 = 500;

/// Runs the rig.
///
/// # Errors
/// When a corpus cannot be read.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let mut figures = Figures::default();
    for (name, target) in TARGETS {
        let corpus = corpus(name)?;
        // Those that make files or look at whole stores are slower than those that look at bytes.
        let seeds = match *name {
            "bundle" => order.seeds(1, 8, 20_000),
            "store" => order.seeds(1, 8, 40_000),
            "transcript" => order.seeds(4, 60, 40_000),
            "segment" => order.seeds(4, 60, 800_000),
            "facts" => order.seeds(4, 60, 600_000),
            "snapshot" => order.seeds(4, 60, 400_000),
            _ => order.seeds(4, 60, 200_000),
        };
        let (begun, executions) = (processor_time(), (seeds.end - seeds.start) * ROUND);
        let tried = |seed: u64, figures: &mut Figures| -> Result<(), Box<dyn Error>> {
            let broken = round(*target, &corpus, seed);
            figures.count(name, ROUND);
            let named = broken.map(|line| format!("{name}, round {seed}: {line}"));
            figures.violations.extend(named);
            Ok(())
        };
        figures.join(for_each_seed(seeds, tried)?);
        let took = (processor_time() - begun).as_secs_f64();
        let rate = executions as f64 / took;
        eprintln!("{name}: {executions} executions, {rate:.0} in a second of one processor");
    }
    Ok(Outcome::Ran(figures))
}

/// What this process has used of its processors: what a rate is of, on a machine that does something else too.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// The files of a target's corpus, in the order of their names.
///
/// # Errors
/// When they cannot be read, or there is none.
pub fn corpus(name: &str) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    if name == "snapshot" {
        // Those that the frames of another one come to: how a state is written may change with the program.
        let states = corpus("projector")?;
        let states = states.iter().filter_map(|segment| folded(segment));
        return Ok(states.filter_map(|state| encode(&state).ok()).collect());
    }
    let files = corpus_files(name)?.into_iter().map(fs::read);
    let files: Vec<Vec<u8>> = files.collect::<Result<_, _>>()?;
    if files.is_empty() {
        return Err(format!("fuzz/corpus/{name} is empty").into());
    }
    Ok(files)
}

/// Where they are.
///
/// # Errors
/// When the directory cannot be read.
pub fn corpus_files(name: &str) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let listed = fs::read_dir(dir)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = listed.collect::<std::io::Result<_>>()?;
    files.sort();
    Ok(files)
}

/// So many executions, and what the first of them broke that broke something.
fn round(target: fn(&[u8]), corpus: &[Vec<u8>], seed: u64) -> Option<String> {
    let (mut dice, mut bytes) = (Dice::new(seed), Vec::new());
    for number in 0..ROUND {
        bytes.clone_from(&corpus[dice.roll(corpus.len() as u64) as usize]);
        change(&mut bytes, corpus, &mut dice);
        if dice.roll(2) == 0 {
            reseal(&mut bytes);
        }
        if catch_unwind(AssertUnwindSafe(|| target(&bytes))).is_err() {
            let head: String = bytes
                .iter()
                .take(200)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            return Some(format!(
                "execution {number} panicked on {} bytes: {head}",
                bytes.len()
            ));
        }
    }
    let largest = allocator::largest();
    (largest > CEILING).then(|| format!("it asked for {largest} bytes at once"))
}
