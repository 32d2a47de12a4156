//! TEMP
use std::fmt::Debug;
use tenure_core::holder::{Bearing, BootId, HostId, Sighting};
use tenure_core::id::Time;
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessChoice { None, Parent, Itself, Pid(u32) }
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct This { pub id: HostId, pub name: String, pub boot: Option<BootId>, pub uid: u32, pub pid: u32 }
#[derive(Debug, thiserror::Error)]
pub enum HostError { #[error("x")] X }
pub trait Host: Send + Sync + Debug {
    fn now(&self) -> Time;
    fn this(&self) -> This;
    fn bearing(&self, choice: ProcessChoice) -> Result<Bearing, HostError>;
    fn remember_boot(&self) -> Result<(), HostError>;
    fn sight(&self, record: &Bearing) -> Sighting;
}
