//! A process held by a descriptor: a signal reaches it or nobody, whoever has its number by then (LIV-18).

use std::io;
use std::process::Child;

/// A process of ours that was started, held by a descriptor.
#[derive(Debug)]
pub struct Pinned {
    #[cfg(target_os = "linux")]
    descriptor: std::os::fd::OwnedFd,
}

impl Pinned {
    /// Holds a child that was not waited for yet, so that its number is still its own.
    ///
    /// # Errors
    /// The system's answer, where it has no such descriptors.
    #[cfg(target_os = "linux")]
    pub fn of(child: &Child) -> io::Result<Self> {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let descriptor = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
        Ok(Self { descriptor })
    }

    /// Holds a child that was not waited for yet, so that its number is still its own.
    ///
    /// # Errors
    /// Always: this system has no such descriptors.
    #[cfg(not(target_os = "linux"))]
    pub fn of(_child: &Child) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends a signal to it, by the number of the signal.
    ///
    /// # Errors
    /// The system's answer: that there is no such process once it has ended and was waited for.
    #[cfg(target_os = "linux")]
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let named = rustix::process::Signal::from_named_raw(signal);
        let signal = named.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(rustix::process::pidfd_send_signal(
            &self.descriptor,
            signal,
        )?)
    }

    /// Sends a signal to it, by the number of the signal.
    ///
    /// # Errors
    /// Always: this system has no such descriptors.
    #[cfg(not(target_os = "linux"))]
    pub fn signal(&self, _signal: i32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
