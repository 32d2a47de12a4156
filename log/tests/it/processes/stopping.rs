//! The disk, on which a process stops itself around one write of a frame.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use tenure_log::storage::disk::Disk;
use tenure_log::storage::{
    Access, BootId, Directory, FileIdentity, FileSystem, Onto, Opening, ProcessId, SealedBytes,
    SharedMemory, Storage, StoredFile,
};

use super::say;

/// The disk, on which this process stops itself around one write of a frame.
#[derive(Debug)]
pub(super) struct Stopping {
    pub(super) at: String,
}

#[derive(Debug)]
struct StoppingDirectory(Arc<dyn Directory>, String);

#[derive(Debug)]
struct StoppingFile(Arc<dyn StoredFile>, String);

pub(super) fn stop_here() {
    say("stopping");
    kill_process(rustix::process::getpid(), Signal::STOP).expect("stopped");
    // The signal may reach another thread first; this one does nothing until all are stopped.
    std::thread::sleep(Duration::from_millis(100));
}

impl Storage for Stopping {
    fn directory(&self, path: &Path, opening: Opening) -> std::io::Result<Arc<dyn Directory>> {
        Ok(Arc::new(StoppingDirectory(
            Disk.directory(path, opening)?,
            self.at.clone(),
        )))
    }
    fn now(&self) -> Instant {
        Disk.now()
    }
    fn boot(&self) -> std::io::Result<BootId> {
        Disk.boot()
    }
    fn process(&self) -> ProcessId {
        Disk.process()
    }
    fn wait(&self, word: &std::sync::atomic::AtomicU32, expected: u32, bound: Duration) {
        Disk.wait(word, expected, bound);
    }
    fn wake(&self, word: &std::sync::atomic::AtomicU32, count: u32) {
        Disk.wake(word, count);
    }
    fn random(&self, into: &mut [u8]) -> std::io::Result<()> {
        Disk.random(into)
    }
}

impl Directory for StoppingDirectory {
    fn path(&self) -> &Path {
        self.0.path()
    }
    fn identity(&self) -> std::io::Result<FileIdentity> {
        self.0.identity()
    }
    fn file_system(&self) -> std::io::Result<FileSystem> {
        self.0.file_system()
    }
    fn make_directory(&self, name: &str) -> std::io::Result<()> {
        self.0.make_directory(name)
    }
    fn list(&self, name: &str) -> std::io::Result<Vec<String>> {
        self.0.list(name)
    }
    fn open(&self, name: &str, access: Access) -> std::io::Result<Arc<dyn StoredFile>> {
        let file = self.0.open(name, access)?;
        let at = if name.ends_with(".seg") {
            self.1.clone()
        } else {
            String::new()
        };
        Ok(Arc::new(StoppingFile(file, at)))
    }
    fn rename(&self, from: &str, to: &str, onto: Onto) -> std::io::Result<()> {
        self.0.rename(from, to, onto)
    }
    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.0.remove(name)
    }
    fn sync(&self, name: &str) -> std::io::Result<()> {
        self.0.sync(name)
    }
}

impl StoredFile for StoppingFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.0.read_at(into, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> std::io::Result<usize> {
        let stops = bytes.starts_with(b"TNF1");
        if stops && self.1 == "before-write" {
            stop_here();
        }
        let written = self.0.write_at(bytes, offset);
        if stops && self.1 == "after-write" {
            stop_here();
        }
        written
    }
    fn size(&self) -> std::io::Result<u64> {
        self.0.size()
    }
    fn sync(&self) -> std::io::Result<()> {
        if self.1 == "in-sync" {
            stop_here();
        }
        self.0.sync()
    }
    fn try_lock(&self) -> std::io::Result<bool> {
        self.0.try_lock()
    }
    fn unlock(&self) -> std::io::Result<()> {
        self.0.unlock()
    }
    fn identity(&self) -> std::io::Result<FileIdentity> {
        self.0.identity()
    }
    fn is_linked(&self) -> std::io::Result<bool> {
        self.0.is_linked()
    }
    fn map_shared(&self, access: Access) -> std::io::Result<Arc<dyn SharedMemory>> {
        self.0.map_shared(access)
    }
    fn map_sealed(&self, bytes: u64) -> std::io::Result<Arc<dyn SealedBytes>> {
        self.0.map_sealed(bytes)
    }
}
