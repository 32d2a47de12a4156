//! The simulated disk: what processes see, what is durable, and what lies between.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::{Random, SimMemory, Survival};
use crate::storage::{Access, Onto, SharedMemory};

/// What a disk writes or does not, as a whole.
const SECTOR_BYTES: usize = 512;

/// The size of a disk that nobody gave another one: a write far out takes no more memory.
const CAPACITY_BYTES: u64 = 256 << 20;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct InodeId(pub(super) u64);

#[derive(Clone, Default)]
struct Inode {
    /// As processes see it.
    seen: Vec<u8>,
    /// As it is on the disk.
    durable: Vec<u8>,
    /// Writes that no sync has covered.
    dirty: Vec<(usize, Vec<u8>)>,
    /// How many syncs failed, and whether anybody was told of the last one: every handle is told
    /// once, and one opened later only if nobody was (Linux since 4.13).
    errors: u64,
    told: bool,
    /// The process and handle that hold the lock.
    lock: Option<(u32, u64)>,
    memory: Option<Arc<SimMemory>>,
}

#[derive(Clone)]
enum Change {
    Add(String, InodeId),
    Remove(String),
    Rename(String, String, InodeId),
}

/// A folder: its names, and the changes that no sync of it has covered.
#[derive(Clone, Default)]
struct Folder {
    seen: BTreeMap<String, InodeId>,
    durable: BTreeMap<String, InodeId>,
    changes: Vec<Change>,
}

pub(super) struct Image {
    pub(super) exists: bool,
    pub(super) capacity: u64,
    inodes: BTreeMap<InodeId, Inode>,
    folders: BTreeMap<String, Folder>,
    made: u64,
}

impl Default for Image {
    fn default() -> Image {
        let folders = BTreeMap::from([(String::new(), Folder::default())]);
        Image {
            exists: false,
            capacity: CAPACITY_BYTES,
            inodes: BTreeMap::new(),
            folders,
            made: 0,
        }
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn apply(names: &mut BTreeMap<String, InodeId>, change: &Change) {
    match change {
        Change::Add(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        Change::Remove(name) => {
            names.remove(name);
        }
        Change::Rename(from, to, inode) => {
            names.remove(from);
            names.insert(to.clone(), *inode);
        }
    }
}

fn put(bytes: &mut Vec<u8>, offset: usize, new: &[u8]) {
    if bytes.len() < offset + new.len() {
        bytes.resize(offset + new.len(), 0);
    }
    bytes[offset..offset + new.len()].copy_from_slice(new);
}

impl Image {
    /// A copy without locks.
    pub(super) fn copy(&self) -> Image {
        let mut inodes = self.inodes.clone();
        for inode in inodes.values_mut() {
            inode.lock = None;
            if let Some(memory) = &inode.memory {
                inode.memory = Some(Arc::new(SimMemory::new(&memory.bytes())));
            }
        }
        let Image {
            exists,
            capacity,
            made,
            ..
        } = *self;
        Image {
            exists,
            capacity,
            inodes,
            folders: self.folders.clone(),
            made,
        }
    }

    pub(super) fn make_folder(&mut self, name: &str) {
        // Folders are made once and never renamed: their loss is not what is simulated.
        self.folders.entry(name.to_owned()).or_default();
    }

    fn folder(&mut self, name: &str) -> io::Result<&mut Folder> {
        self.folders
            .get_mut(name)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn find(&self, path: &str) -> Option<InodeId> {
        let (folder, name) = split(path);
        self.folders.get(folder)?.seen.get(name).copied()
    }

    fn change(&mut self, folder: &str, change: Change) -> io::Result<()> {
        let folder = self.folder(folder)?;
        apply(&mut folder.seen, &change);
        folder.changes.push(change);
        Ok(())
    }

    fn inode(&self, inode: InodeId) -> &Inode {
        self.inodes.get(&inode).expect("inodes are never removed")
    }

    fn inode_mut(&mut self, inode: InodeId) -> &mut Inode {
        self.inodes
            .get_mut(&inode)
            .expect("inodes are never removed")
    }

    pub(super) fn list(&mut self, folder: &str) -> io::Result<Vec<String>> {
        Ok(self.folder(folder)?.seen.keys().cloned().collect())
    }

    pub(super) fn open(&mut self, path: &str, access: Access) -> io::Result<InodeId> {
        match (self.find(path), access) {
            (Some(_), Access::CreateNew) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(inode), _) => Ok(inode),
            (None, Access::Read | Access::Write) => Err(io::ErrorKind::NotFound.into()),
            (None, Access::CreateNew | Access::CreateOrOpen) => {
                self.made += 1;
                let inode = InodeId(self.made);
                let (folder, name) = split(path);
                self.change(folder, Change::Add(name.to_owned(), inode))?;
                self.inodes.insert(inode, Inode::default());
                Ok(inode)
            }
        }
    }

    pub(super) fn rename(&mut self, from: &str, to: &str, onto: Onto) -> io::Result<()> {
        let inode = self.find(from).ok_or(io::ErrorKind::NotFound)?;
        if onto == Onto::Nothing && self.find(to).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let ((folder, old), (other, new)) = (split(from), split(to));
        assert_eq!(folder, other, "the log renames within a folder only");
        self.change(
            folder,
            Change::Rename(old.to_owned(), new.to_owned(), inode),
        )
    }

    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        self.find(path).ok_or(io::ErrorKind::NotFound)?;
        let (folder, name) = split(path);
        self.change(folder, Change::Remove(name.to_owned()))
    }

    pub(super) fn sync_folder(&mut self, name: &str) {
        if let Some(folder) = self.folders.get_mut(name) {
            folder.durable = folder.seen.clone();
            folder.changes.clear();
        }
    }

    pub(super) fn is_linked(&self, inode: InodeId) -> bool {
        self.folders
            .values()
            .any(|folder| folder.seen.values().any(|other| *other == inode))
    }

    pub(super) fn size(&self, inode: InodeId) -> u64 {
        self.inode(inode).seen.len() as u64
    }

    pub(super) fn read(&self, inode: InodeId, into: &mut [u8], offset: u64) -> usize {
        let inode = self.inode(inode);
        let mapped = inode.memory.as_ref().map(|memory| memory.bytes());
        let bytes = mapped.as_ref().unwrap_or(&inode.seen);
        let Some(from) = usize::try_from(offset)
            .ok()
            .and_then(|offset| bytes.get(offset..))
        else {
            return 0;
        };
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        count
    }

    pub(super) fn write(&mut self, inode: InodeId, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let used: u64 = self
            .inodes
            .values()
            .map(|inode| inode.seen.len() as u64)
            .sum();
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let capacity = self.capacity;
        let inode = self.inode_mut(inode);
        let room = usize::try_from(capacity.saturating_sub(used)).unwrap_or(usize::MAX);
        let fits = (inode.seen.len().saturating_add(room))
            .saturating_sub(offset)
            .min(bytes.len());
        if fits == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        put(&mut inode.seen, offset, &bytes[..fits]);
        inode.dirty.push((offset, bytes[..fits].to_vec()));
        Ok(fits)
    }

    /// How many failed syncs a handle opened now is not told of.
    pub(super) fn errors_passed(&self, inode: InodeId) -> u64 {
        let inode = self.inode(inode);
        if inode.told {
            inode.errors
        } else {
            inode.errors.saturating_sub(1)
        }
    }

    /// Syncs; what a sync that fails should have written counts as clean and is not. Says whether the
    /// handle that knows of `passed` failures is told of one.
    pub(super) fn sync(&mut self, inode: InodeId, fails: bool, passed: &mut u64) -> bool {
        let inode = self.inode_mut(inode);
        if let Some(memory) = &inode.memory {
            inode.durable = memory.bytes();
        }
        for (offset, bytes) in std::mem::take(&mut inode.dirty) {
            if !fails {
                put(&mut inode.durable, offset, &bytes);
            }
        }
        if fails {
            inode.errors += 1;
            inode.told = false;
        }
        let tells = *passed < inode.errors;
        *passed = inode.errors;
        inode.told |= tells;
        tells
    }

    pub(super) fn try_lock(&mut self, inode: InodeId, process: u32, handle: u64) -> bool {
        let inode = self.inode_mut(inode);
        let free = inode.lock.is_none_or(|held| held == (process, handle));
        if free {
            inode.lock = Some((process, handle));
        }
        free
    }

    pub(super) fn unlock(&mut self, inode: InodeId, process: u32, handle: u64) {
        let inode = self.inode_mut(inode);
        if inode.lock == Some((process, handle)) {
            inode.lock = None;
        }
    }

    pub(super) fn release_locks_of(&mut self, process: u32) {
        for inode in self.inodes.values_mut() {
            inode.lock = inode.lock.filter(|(holder, _)| *holder != process);
        }
    }

    pub(super) fn map(&mut self, inode: InodeId) -> Arc<dyn SharedMemory> {
        let inode = self.inode_mut(inode);
        let seen = &inode.seen;
        inode
            .memory
            .get_or_insert_with(|| Arc::new(SimMemory::new(seen)))
            .clone()
    }

    pub(super) fn bytes_of(&self, path: &str) -> Option<Vec<u8>> {
        self.find(path).map(|inode| self.inode(inode).seen.clone())
    }

    pub(super) fn flip(&mut self, path: &str, offset: u64, bit: u8) {
        let inode = self.find(path).expect("a file of that name");
        let inode = self.inode_mut(inode);
        let at = usize::try_from(offset).expect("an offset in memory");
        inode.seen[at] ^= 1 << bit;
        if let Some(byte) = inode.durable.get_mut(at) {
            *byte ^= 1 << bit;
        }
    }

    /// What is left after a power cut is durable, and nothing else is there.
    pub(super) fn cut_power(&mut self, survival: Survival, random: &mut Random) {
        for inode in self.inodes.values_mut() {
            inode.lock = None;
            if let Some(memory) = inode.memory.take() {
                // Mapped pages reach the disk whenever the system likes.
                let bytes = memory.bytes();
                inode.dirty.push((0, bytes));
            }
            let dirty = std::mem::take(&mut inode.dirty);
            let last = dirty.len().saturating_sub(1);
            for (index, (offset, bytes)) in dirty.into_iter().enumerate() {
                for sector in sectors(offset, bytes.len()) {
                    let survives = match survival {
                        Survival::Nothing => false,
                        Survival::Everything => true,
                        Survival::Some(_) => random.below(2) == 0,
                        Survival::LastWrite => index == last,
                    };
                    if survives {
                        put(
                            &mut inode.durable,
                            sector.start,
                            &bytes[sector.start - offset..sector.end - offset],
                        );
                    }
                }
            }
            inode.seen = inode.durable.clone();
        }
        for folder in self.folders.values_mut() {
            let survive = match survival {
                Survival::Nothing | Survival::LastWrite => 0,
                Survival::Everything => folder.changes.len(),
                Survival::Some(_) => random.below(folder.changes.len() as u64 + 1) as usize,
            };
            for change in folder.changes.drain(..).take(survive) {
                apply(&mut folder.durable, &change);
            }
            folder.seen = folder.durable.clone();
        }
    }
}

/// The parts of `offset..offset + len` that lie in one sector each.
fn sectors(offset: usize, len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let end = offset + len;
    let mut start = offset;
    std::iter::from_fn(move || {
        let next = ((start / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
        let sector = start..next;
        start = next;
        (!sector.is_empty()).then_some(sector)
    })
}
