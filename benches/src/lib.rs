//! What the benchmarks and the comparison with other stores have in common.
//!
//! `cargo bench` measures parts; the package in `compare`, outside the workspace, measures whole stores side
//! by side. Both do the work that [`workload`] describes, so that their figures speak of the same thing.

pub mod figures;
pub mod machine;
pub mod ours;
pub mod reading;
pub mod workload;
