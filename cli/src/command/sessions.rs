//! Commands about who holds a session.

pub mod adopt;
pub mod check;
pub mod exec;
pub mod grant;
pub mod init;
pub mod register;
pub mod retire;
