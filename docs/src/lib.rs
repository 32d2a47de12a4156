//! Compiles the code in the pages, and holds the test that keeps the repository tidy.
//!
//! The crate has nothing to call. `cargo test -p tenure-docs` compiles every Rust block of the pages
//! below and runs the checks in `tests/it`.

#![forbid(unsafe_code)]

/// One item per page, so that its Rust blocks are compiled and run as documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../embedding.md")]
    struct Embedding;
}
