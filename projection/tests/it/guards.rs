//! Guards: what they see of real repositories.

mod locks;
mod shell;
