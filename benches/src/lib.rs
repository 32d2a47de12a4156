//! What the benchmarks and the comparison with other stores have in common.
//!
//! `cargo bench` measures parts, the program `curves` how they grow, `hooks` what an agent waits for, and the package in
//! `compare`, outside the workspace, whole stores side by side. All do the work that [`workload`] describes, so that their figures
//! speak of the same thing.

pub mod figures;
pub mod machine;
pub mod options;
pub mod ours;
pub mod page;
pub mod reading;
pub mod workload;

use std::process::ExitCode;

/// How a program of these ends: what failed is said.
#[must_use]
pub fn ended(result: std::io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
