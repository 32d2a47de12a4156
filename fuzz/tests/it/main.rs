//! Integration tests of the models and properties.

mod hammer;
mod model;
mod rigs;
mod targets;
