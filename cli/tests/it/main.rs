//! Tests of the command line, through the binary.

mod demo;
mod readme;
