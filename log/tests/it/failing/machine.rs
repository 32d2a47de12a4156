//! The real machine, but for one call that it fails.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tenure_log::storage::disk::Disk;
use tenure_log::storage::{
    Access, BootId, Directory, FileIdentity, FileSystem, Onto, Opening, ProcessId, SealedBytes,
    SharedMemory, Storage, StoredFile,
};

/// What the failing call answers.
pub const EIO: i32 = 5;

/// Which call fails, counted from zero, and whether every later one does too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    pub at: u32,
    pub lasting: bool,
}

/// The machine. Cloning gives the same one.
#[derive(Clone)]
pub struct Failing(Arc<Mutex<State>>);

struct State {
    plan: Option<Plan>,
    calls: u32,
    failed: Option<&'static str>,
}

impl fmt::Debug for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failing({:?})", self.0.lock().plan)
    }
}

impl Failing {
    pub fn new(plan: Plan) -> Failing {
        Failing(Arc::new(Mutex::new(State {
            plan: Some(plan),
            calls: 0,
            failed: None,
        })))
    }

    /// The first call that failed, if one did.
    pub fn failed(&self) -> Option<&'static str> {
        self.0.lock().failed
    }

    /// From now on nothing fails.
    pub fn heal(&self) {
        self.0.lock().plan = None;
    }

    fn call(&self, name: &'static str) -> io::Result<()> {
        let mut state = self.0.lock();
        let number = state.calls;
        state.calls += 1;
        match state.plan {
            Some(plan) if number == plan.at || plan.lasting && number > plan.at => {
                state.failed.get_or_insert(name);
                Err(io::Error::from_raw_os_error(EIO))
            }
            _ => Ok(()),
        }
    }
}

impl Storage for Failing {
    fn directory(&self, path: &Path, opening: Opening) -> io::Result<Arc<dyn Directory>> {
        self.call("open directory")?;
        let inner = Disk.directory(path, opening)?;
        let machine = self.clone();
        Ok(Arc::new(FailingDirectory { machine, inner }))
    }

    fn now(&self) -> Instant {
        Disk.now()
    }

    fn boot(&self) -> io::Result<BootId> {
        self.call("boot")?;
        Disk.boot()
    }

    fn process(&self) -> ProcessId {
        Disk.process()
    }

    fn wait(&self, word: &AtomicU32, expected: u32, bound: Duration) {
        Disk.wait(word, expected, bound);
    }

    fn wake(&self, word: &AtomicU32, count: u32) {
        Disk.wake(word, count);
    }

    fn random(&self, into: &mut [u8]) -> io::Result<()> {
        self.call("random")?;
        Disk.random(into)
    }
}

#[derive(Debug)]
struct FailingDirectory {
    machine: Failing,
    inner: Arc<dyn Directory>,
}

impl Directory for FailingDirectory {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        self.machine.call("directory's identity")?;
        self.inner.identity()
    }

    fn file_system(&self) -> io::Result<FileSystem> {
        self.machine.call("file system")?;
        self.inner.file_system()
    }

    fn make_directory(&self, name: &str) -> io::Result<()> {
        self.machine.call("make folder")?;
        self.inner.make_directory(name)
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        self.machine.call("list")?;
        self.inner.list(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn StoredFile>> {
        self.machine.call("open")?;
        let inner = self.inner.open(name, access)?;
        let machine = self.machine.clone();
        Ok(Arc::new(FailingFile { machine, inner }))
    }

    fn rename(&self, from: &str, to: &str, onto: Onto) -> io::Result<()> {
        self.machine.call("rename")?;
        self.inner.rename(from, to, onto)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.machine.call("remove")?;
        self.inner.remove(name)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.machine.call("sync folder")?;
        self.inner.sync(name)
    }
}

#[derive(Debug)]
struct FailingFile {
    machine: Failing,
    inner: Arc<dyn StoredFile>,
}

impl StoredFile for FailingFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.machine.call("read")?;
        self.inner.read_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.machine.call("write")?;
        self.inner.write_at(bytes, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.machine.call("size")?;
        self.inner.size()
    }

    fn sync(&self) -> io::Result<()> {
        self.machine.call("sync")?;
        self.inner.sync()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.machine.call("lock")?;
        self.inner.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        // Also where it is said to fail: a lock that nobody gives back is another test's.
        self.inner.unlock()?;
        self.machine.call("unlock")
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        self.machine.call("file's identity")?;
        self.inner.identity()
    }

    fn is_linked(&self) -> io::Result<bool> {
        self.machine.call("links")?;
        self.inner.is_linked()
    }

    fn map_shared(&self, access: Access) -> io::Result<Arc<dyn SharedMemory>> {
        self.machine.call("map")?;
        self.inner.map_shared(access)
    }

    fn map_sealed(&self, bytes: u64) -> io::Result<Arc<dyn SealedBytes>> {
        self.machine.call("map sealed")?;
        self.inner.map_sealed(bytes)
    }
}
