//! One process of the simulated machine: every operation is a step.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::image::InodeId;
use super::{Fault, Killed, State, World};
use crate::storage::{
    Access, BootId, Directory, FileIdentity, FileSystem, Onto, Opening, ProcessId, SealedBytes,
    SharedMemory, Storage, StoredFile,
};

/// A process of a simulated machine.
pub struct SimProcess {
    pub(super) world: Arc<World>,
    pub(super) id: ProcessId,
}

impl fmt::Debug for SimProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimProcess({})", self.id.0)
    }
}

impl SimProcess {
    /// One step: lets others run, lets faults happen, and gives the machine to the caller.
    fn enter(&self, step: &'static str) -> io::Result<MutexGuard<'_, State>> {
        enter(&self.world, self.id.0, step)
    }
}

/// Ends the process, unless it is ending already: then its steps do nothing.
fn die() -> io::Error {
    if !std::thread::panicking() {
        std::panic::resume_unwind(Box::new(Killed));
    }
    io::Error::other("killed")
}

fn enter<'w>(world: &'w World, id: u32, step: &'static str) -> io::Result<MutexGuard<'w, State>> {
    if std::thread::panicking() {
        return Err(die());
    }
    let mut state = world.state.lock();
    if state.schedule.is_running() {
        state.choose();
        world.hand_over(&mut state);
        if !world.await_turn(&mut state, id) {
            drop(state);
            return Err(die());
        }
    }
    state.record();
    let number = state.count(step);
    if state.fault == Some((number, Fault::Kill)) {
        state.fault = None;
        state.image.release_locks_of(id);
        drop(state);
        return Err(die());
    }
    Ok(state)
}

impl State {
    /// The answer of a file system that was shut down.
    fn is_up(&self) -> io::Result<()> {
        match self.is_shut_down {
            true => Err(io::Error::from_raw_os_error(5)),
            false => Ok(()),
        }
    }

    /// The fault planned for the step that is made, if it is of this kind.
    fn fault_now(&mut self, of_kind: impl Fn(Fault) -> bool) -> Option<Fault> {
        let (at, fault) = self.fault?;
        if at + 1 != self.steps || !of_kind(fault) {
            return None;
        }
        self.fault = None;
        Some(fault)
    }
}

impl Storage for SimProcess {
    fn directory(&self, path: &Path, opening: Opening) -> io::Result<Arc<dyn Directory>> {
        let mut state = self.enter("open directory")?;
        if !state.image.exists {
            if opening == Opening::Existing {
                return Err(io::ErrorKind::NotFound.into());
            }
            state.image.exists = true;
        }
        drop(state);
        Ok(Arc::new(SimDirectory {
            world: self.world.clone(),
            id: self.id.0,
            path: path.to_owned(),
        }))
    }

    fn now(&self) -> Instant {
        self.world.began + self.world.state.lock().clock
    }

    fn boot(&self) -> io::Result<BootId> {
        let mut boot = [0; 16];
        boot[..8].copy_from_slice(&self.world.state.lock().boot.to_le_bytes());
        Ok(BootId(boot))
    }

    fn process(&self) -> ProcessId {
        self.id
    }

    fn wait(&self, word: &AtomicU32, expected: u32, bound: Duration) {
        let Ok(mut state) = self.enter("wait") else {
            return;
        };
        if word.load(SeqCst) != expected {
            return;
        }
        if !state.schedule.is_running() {
            // Nobody schedules: whoever shares the machine runs on a thread of its own.
            let nap = bound.min(Duration::from_millis(1));
            state.clock += nap;
            drop(state);
            std::thread::sleep(nap);
            return;
        }
        let until = state.clock + bound;
        state
            .schedule
            .sleep(self.id.0, std::ptr::from_ref(word) as usize, until);
        state.choose();
        self.world.hand_over(&mut state);
        if !self.world.await_turn(&mut state, self.id.0) {
            drop(state);
            die();
        }
    }

    fn wake(&self, word: &AtomicU32, count: u32) {
        if let Ok(mut state) = self.enter("wake") {
            state
                .schedule
                .wake(std::ptr::from_ref(word) as usize, count);
        }
    }

    fn random(&self, into: &mut [u8]) -> io::Result<()> {
        let mut state = self.world.state.lock();
        for chunk in into.chunks_mut(8) {
            let bytes = state.random.next().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
        Ok(())
    }

    fn step(&self) {
        // A killed process ends here; an ending one goes on to its end.
        drop(self.enter("shared memory"));
    }
}

struct SimDirectory {
    world: Arc<World>,
    id: u32,
    path: PathBuf,
}

impl fmt::Debug for SimDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimDirectory({})", self.path.display())
    }
}

impl Directory for SimDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(FileIdentity {
            device: 1,
            inode: 2,
        })
    }

    fn file_system(&self) -> io::Result<FileSystem> {
        Ok(self.world.state.lock().file_system.clone())
    }

    fn make_directory(&self, name: &str) -> io::Result<()> {
        enter(&self.world, self.id, "make folder")?
            .image
            .make_folder(name);
        Ok(())
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        enter(&self.world, self.id, "list")?.image.list(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn StoredFile>> {
        let mut state = enter(&self.world, self.id, "open")?;
        let inode = state.image.open(name, access)?;
        state.handles += 1;
        let handle = state.handles;
        let passed = AtomicU64::new(state.image.errors_passed(inode));
        drop(state);
        Ok(Arc::new(SimFile {
            world: self.world.clone(),
            id: self.id,
            inode,
            handle,
            passed,
        }))
    }

    fn rename(&self, from: &str, to: &str, onto: Onto) -> io::Result<()> {
        enter(&self.world, self.id, "rename")?
            .image
            .rename(from, to, onto)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        enter(&self.world, self.id, "remove")?.image.remove(name)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        let mut state = enter(&self.world, self.id, "sync folder")?;
        state.is_up()?;
        state.image.sync_folder(name);
        Ok(())
    }
}

struct SimFile {
    world: Arc<World>,
    id: u32,
    inode: InodeId,
    handle: u64,
    /// How many failed syncs this handle was told of, or is too young for.
    passed: AtomicU64,
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimFile({:?})", self.inode)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.world
            .state
            .lock()
            .image
            .unlock(self.inode, self.id, self.handle);
    }
}

impl StoredFile for SimFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = enter(&self.world, self.id, "read")?;
        state.is_up()?;
        Ok(state.image.read(self.inode, into, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = enter(&self.world, self.id, "write")?;
        state.is_up()?;
        match state.fault_now(|fault| matches!(fault, Fault::NoSpace | Fault::Short(_))) {
            Some(Fault::Short(taken)) if taken < bytes.len() && taken > 0 => {
                // Whoever goes on writing finds the disk full.
                let next = state.steps;
                state.fault = Some((next, Fault::NoSpace));
                state.image.write(self.inode, &bytes[..taken], offset)
            }
            Some(_) => Err(io::ErrorKind::StorageFull.into()),
            None => state.image.write(self.inode, bytes, offset),
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(enter(&self.world, self.id, "size")?.image.size(self.inode))
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = enter(&self.world, self.id, "sync")?;
        state.is_up()?;
        if state.fault_now(|fault| fault == Fault::Shutdown).is_some() {
            state.is_shut_down = true;
            return Ok(());
        }
        let planned = state.fault_now(|fault| matches!(fault, Fault::FailedSync | Fault::LastSync));
        if planned == Some(Fault::LastSync) {
            state.fault = Some((state.steps, Fault::Kill));
        }
        let fails = planned.is_some() || state.sync_fails();
        let mut passed = self.passed.load(SeqCst);
        let told = state.image.sync(self.inode, fails, &mut passed);
        self.passed.store(passed, SeqCst);
        if told {
            Err(io::Error::from_raw_os_error(5))
        } else {
            Ok(())
        }
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(enter(&self.world, self.id, "lock")?
            .image
            .try_lock(self.inode, self.id, self.handle))
    }

    fn unlock(&self) -> io::Result<()> {
        enter(&self.world, self.id, "unlock")?
            .image
            .unlock(self.inode, self.id, self.handle);
        Ok(())
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(FileIdentity {
            device: 1,
            inode: self.inode.0,
        })
    }

    fn is_linked(&self) -> io::Result<bool> {
        Ok(self.world.state.lock().image.is_linked(self.inode))
    }

    fn map_shared(&self, _: Access) -> io::Result<Arc<dyn SharedMemory>> {
        Ok(enter(&self.world, self.id, "map")?.image.map(self.inode))
    }

    fn map_sealed(&self, bytes: u64) -> io::Result<Arc<dyn SealedBytes>> {
        let state = enter(&self.world, self.id, "map")?;
        if state.image.size(self.inode) < bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut copy = vec![0; bytes as usize];
        state.image.read(self.inode, &mut copy, 0);
        Ok(Arc::new(Copied(copy)))
    }
}

#[derive(Debug)]
struct Copied(Vec<u8>);

impl SealedBytes for Copied {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}
