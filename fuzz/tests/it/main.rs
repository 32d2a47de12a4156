//! Integration tests of the models and properties.

mod model;
