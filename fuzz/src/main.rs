//! The runner of the rigs: what is promised is tried, and the figures are printed as JSON, a line for each rig.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use tenure_fuzz::allocator::Counting;
use tenure_fuzz::hammer::worker;
use tenure_fuzz::rig::histories::play_if_ordered;
use tenure_fuzz::rig::oom::act_if_ordered;
use tenure_fuzz::rig::page::with_figures;
use tenure_fuzz::rig::{Needs, Order, Outcome, RIGS, Rig, Tier, said};

/// For the rig `oom`; to all others it is the system's.
#[global_allocator]
static COUNTING: Counting = Counting;

/// Tries to break what the ledger promises (docs/reliability.md).
#[derive(Parser)]
struct Arguments {
    /// How much: 0 a sample within seconds, 1 within minutes, 2 everything
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    tier: u8,
    /// Seed of the random choices: the same seed repeats a run
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Only this rig; may be repeated
    #[arg(long, value_name = "NAME")]
    rig: Vec<String>,
    /// Every rig but this one; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "rig")]
    without: Vec<String>,
    /// The `tenure` program to try [default: built by cargo]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Keep the figures: below fuzz/figures, and in the table of docs/reliability.md
    #[arg(long)]
    keep: bool,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if worker::work_if_ordered()? || play_if_ordered()? || act_if_ordered()? {
        return Ok(ExitCode::SUCCESS);
    }
    let arguments = Arguments::parse();
    let left_out = named(&arguments.without)?;
    let mut rigs = match arguments.rig.is_empty() {
        true => RIGS.iter().collect(),
        false => named(&arguments.rig)?,
    };
    rigs.retain(|rig| left_out.iter().all(|left| left.name != rig.name));
    let order = Order {
        tier: Tier::from_number(arguments.tier).ok_or("a tier is 0, 1 or 2")?,
        seed: arguments.seed,
        program: match arguments.program {
            Some(program) => std::path::absolute(program)?,
            None if rigs.iter().any(|rig| rig.needs == Needs::Program) => built()?,
            None => PathBuf::new(),
        },
        itself: std::env::current_exe()?,
    };
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let kept = house.join("fuzz/figures");
    let mut is_whole = true;
    for rig in rigs {
        let begun = Instant::now();
        let outcome = match rig.needs.lacking() {
            Some(reason) => Outcome::Skipped(reason.to_owned()),
            None => (rig.run)(&order)?,
        };
        match &outcome {
            Outcome::Skipped(reason) => eprintln!("SKIPPED {} {reason}", rig.name),
            Outcome::Ran(figures) => {
                for line in figures.violations.iter().take(50) {
                    eprintln!("VIOLATION {} {line}", rig.name);
                }
                is_whole &= figures.violations.is_empty();
            }
        }
        let figures = said(rig, &order, &outcome, begun.elapsed());
        println!("{figures}");
        if arguments.keep {
            std::fs::write(
                kept.join(format!("{}.json", rig.name)),
                format!("{figures:#}\n"),
            )?;
        }
    }
    if arguments.keep {
        let page = house.join("docs/reliability.md");
        let text = std::fs::read_to_string(&page)?;
        std::fs::write(&page, with_figures(&text, &kept)?)?;
    }
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn named(names: &[String]) -> Result<Vec<&'static Rig>, String> {
    let find = |name: &String| {
        let known: Vec<_> = RIGS.iter().map(|rig| rig.name).collect();
        let rig = RIGS.iter().find(|rig| rig.name == name);
        rig.ok_or_else(|| format!("no rig is named {name}; there are {}", known.join(", ")))
    };
    names.iter().map(find).collect()
}

/// The program beside this one, built as this one was unless it is newer than every source file.
fn built() -> Result<PathBuf, Box<dyn Error>> {
    let itself = std::env::current_exe()?;
    let dir = itself.parent().ok_or("a program is in a directory")?;
    let program = dir.join("tenure");
    if is_newer(&program, &Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))? {
        return Ok(program);
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "-p", "tenure", "--profile"]);
    // A directory has the name of its profile, but for that of the profile `dev`.
    match dir.file_name().filter(|name| *name != "debug") {
        Some(profile) => cargo.arg(profile),
        None => cargo.arg("dev"),
    };
    if !cargo.status()?.success() {
        return Err("tenure does not build; name a program with --program".into());
    }
    Ok(program)
}

/// Whether the program is there and newer than the sources that it is made of.
fn is_newer(program: &Path, house: &Path) -> io::Result<bool> {
    let Ok(made) = program.metadata().and_then(|file| file.modified()) else {
        return Ok(false);
    };
    let mut places = ["core", "log", "projection", "cli"]
        .map(|room| house.join(room).join("src"))
        .to_vec();
    while let Some(place) = places.pop() {
        for entry in std::fs::read_dir(place)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                places.push(entry.path());
            } else if entry.metadata()?.modified()? > made {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
