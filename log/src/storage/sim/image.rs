//! The simulated disk: what processes see, what is durable, and what lies between.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::{Random, SimMemory, Survival};
use crate::storage::{Access, Onto, SharedMemory};

/// What a disk writes or does not, as a whole.
pub(super) const SECTOR_BYTES: usize = 512;

/// The size of a disk that nobody gave another one: a write far out takes no more memory.
const CAPACITY_BYTES: u64 = 256 << 20;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct InodeId(pub(super) u64);

/// A write that no sync has covered.
#[derive(Clone)]
pub(super) struct Write {
    /// When it was made, among all changes of the disk.
    pub(super) order: u64,
    pub(super) offset: usize,
    pub(super) bytes: Arc<[u8]>,
}

#[derive(Clone, Default)]
pub(super) struct Inode {
    /// As processes see it; where it is mapped, as it was before.
    pub(super) seen: Arc<Vec<u8>>,
    /// As it is on the disk.
    pub(super) durable: Arc<Vec<u8>>,
    /// Writes that no sync has covered.
    pub(super) dirty: Vec<Write>,
    /// What a mapping of it has held since the last sync, the newest last, and since when: kept only while kill points
    /// are recorded.
    pub(super) versions: Vec<(u64, Arc<Vec<u8>>)>,
    /// How many syncs failed, and whether anybody was told of the last one: every handle is told
    /// once, and one opened later only if nobody was (Linux since 4.13).
    errors: u64,
    told: bool,
    /// The process and handle that hold the lock.
    lock: Option<(u32, u64)>,
    memory: Option<Arc<SimMemory>>,
}

#[derive(Clone)]
pub(super) enum Change {
    Add(String, InodeId),
    Remove(String),
    Rename(String, String, InodeId),
}

/// A folder: its names, and the changes that no sync of it has covered.
#[derive(Clone, Default)]
pub(super) struct Folder {
    pub(super) seen: BTreeMap<String, InodeId>,
    pub(super) durable: BTreeMap<String, InodeId>,
    pub(super) changes: Vec<(u64, Change)>,
}

/// The disk. Copies share what neither of them changes.
#[derive(Clone)]
pub(super) struct Image {
    pub(super) exists: bool,
    pub(super) capacity: u64,
    pub(super) inodes: BTreeMap<InodeId, Arc<Inode>>,
    pub(super) folders: BTreeMap<String, Arc<Folder>>,
    pub(super) made: u64,
    /// How often the disk or a mapping of it was changed, as far as that was looked at.
    pub(super) changes: u64,
}

impl Default for Image {
    fn default() -> Image {
        let folders = BTreeMap::from([(String::new(), Arc::default())]);
        Image {
            exists: false,
            capacity: CAPACITY_BYTES,
            inodes: BTreeMap::new(),
            folders,
            made: 0,
            changes: 0,
        }
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

pub(super) fn apply(names: &mut BTreeMap<String, InodeId>, change: &Change) {
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

pub(super) fn put(bytes: &mut Vec<u8>, offset: usize, new: &[u8]) {
    if bytes.len() < offset + new.len() {
        bytes.resize(offset + new.len(), 0);
    }
    bytes[offset..offset + new.len()].copy_from_slice(new);
}

impl Inode {
    /// A file of which everything is on the disk.
    pub(super) fn at_rest(bytes: Arc<Vec<u8>>) -> Arc<Inode> {
        Arc::new(Inode {
            seen: bytes.clone(),
            durable: bytes,
            ..Inode::default()
        })
    }
}

impl Image {
    /// A copy without locks.
    pub(super) fn copy(&self) -> Image {
        self.without_locks(|inode, memory| {
            inode.memory = Some(Arc::new(SimMemory::new(&memory.bytes())));
        })
    }

    /// A copy without locks, in which something becomes of each file that was mapped.
    fn without_locks(&self, of_mapped: impl Fn(&mut Inode, Arc<SimMemory>)) -> Image {
        let mut copy = self.clone();
        for inode in copy.inodes.values_mut() {
            if inode.lock.is_none() && inode.memory.is_none() {
                continue;
            }
            let inode = Arc::make_mut(inode);
            inode.lock = None;
            if let Some(memory) = inode.memory.take() {
                of_mapped(inode, memory);
            }
        }
        copy
    }

    /// The same disk with nothing on it.
    pub(super) fn emptied(&self) -> Image {
        Image {
            inodes: BTreeMap::new(),
            folders: BTreeMap::new(),
            ..*self
        }
    }

    /// Looks at what is mapped, and keeps what is otherwise than when it was last looked at.
    pub(super) fn look_at_mappings(&mut self) {
        for inode in self.inodes.values_mut() {
            let Some(memory) = &inode.memory else {
                continue;
            };
            let known = inode.versions.last().map_or(&inode.durable, |(_, v)| v);
            if memory.holds(known) {
                continue;
            }
            self.changes += 1;
            let version = (self.changes, Arc::new(memory.bytes()));
            Arc::make_mut(inode).versions.push(version);
        }
    }

    /// A copy without processes: what they mapped stays in the files as they see them.
    pub(super) fn without_processes(&self) -> Image {
        self.without_locks(|inode, memory| {
            inode.seen = match inode.versions.last() {
                Some((_, version)) if memory.holds(version) => version.clone(),
                _ => Arc::new(memory.bytes()),
            };
        })
    }

    pub(super) fn make_folder(&mut self, name: &str) {
        // Folders are made once and never renamed: their loss is not what is simulated.
        self.folders.entry(name.to_owned()).or_default();
        self.changes += 1;
    }

    fn folder(&mut self, name: &str) -> io::Result<&mut Folder> {
        self.folders
            .get_mut(name)
            .map(Arc::make_mut)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn find(&self, path: &str) -> Option<InodeId> {
        let (folder, name) = split(path);
        self.folders.get(folder)?.seen.get(name).copied()
    }

    fn change(&mut self, folder: &str, change: Change) -> io::Result<()> {
        let order = self.changes + 1;
        let folder = self.folder(folder)?;
        apply(&mut folder.seen, &change);
        folder.changes.push((order, change));
        self.changes = order;
        Ok(())
    }

    fn inode(&self, inode: InodeId) -> &Inode {
        self.inodes.get(&inode).expect("inodes are never removed")
    }

    fn inode_mut(&mut self, inode: InodeId) -> &mut Inode {
        let inode = self.inodes.get_mut(&inode);
        Arc::make_mut(inode.expect("inodes are never removed"))
    }

    pub(super) fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let folder = self.folders.get(folder).ok_or(io::ErrorKind::NotFound)?;
        Ok(folder.seen.keys().cloned().collect())
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
                self.inodes.insert(inode, Arc::default());
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
        if let Some(folder) = self.folders.get_mut(name)
            && !folder.changes.is_empty()
        {
            let folder = Arc::make_mut(folder);
            folder.durable = folder.seen.clone();
            folder.changes.clear();
            self.changes += 1;
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
        let Ok(offset) = usize::try_from(offset) else {
            return 0;
        };
        if let Some(memory) = &inode.memory {
            return memory.read(into, offset);
        }
        let Some(from) = inode.seen.get(offset..) else {
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
        let (capacity, order) = (self.capacity, self.changes + 1);
        let inode = self.inode_mut(inode);
        let room = usize::try_from(capacity.saturating_sub(used)).unwrap_or(usize::MAX);
        let fits = (inode.seen.len().saturating_add(room))
            .saturating_sub(offset)
            .min(bytes.len());
        if fits == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        put(Arc::make_mut(&mut inode.seen), offset, &bytes[..fits]);
        inode.dirty.push(Write {
            order,
            offset,
            bytes: bytes[..fits].into(),
        });
        self.changes = order;
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
        self.changes += 1;
        let inode = self.inode_mut(inode);
        if let Some(memory) = &inode.memory {
            inode.durable = Arc::new(memory.bytes());
        } else if !inode.versions.is_empty() {
            inode.durable = inode.seen.clone();
        }
        inode.versions.clear();
        for write in std::mem::take(&mut inode.dirty) {
            if !fails {
                put(
                    Arc::make_mut(&mut inode.durable),
                    write.offset,
                    &write.bytes,
                );
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
        inode.lock = inode.lock.filter(|held| *held != (process, handle));
    }

    pub(super) fn release_locks_of(&mut self, process: u32) {
        for inode in self.inodes.values_mut() {
            if inode.lock.is_some_and(|(holder, _)| holder == process) {
                Arc::make_mut(inode).lock = None;
            }
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
        self.find(path).map(|inode| self.inode(inode).seen.to_vec())
    }

    pub(super) fn flip(&mut self, path: &str, offset: u64, bit: u8) {
        let inode = self.find(path).expect("a file of that name");
        let inode = self.inode_mut(inode);
        let at = usize::try_from(offset).expect("an offset in memory");
        Arc::make_mut(&mut inode.seen)[at] ^= 1 << bit;
        if let Some(byte) = Arc::make_mut(&mut inode.durable).get_mut(at) {
            *byte ^= 1 << bit;
        }
    }

    /// What is left after a power cut is durable, and nothing else is there.
    pub(super) fn cut_power(&mut self, survival: Survival, random: &mut Random) {
        self.changes += 1;
        for inode in self.inodes.values_mut().map(Arc::make_mut) {
            inode.lock = None;
            let mapped = match inode.memory.take() {
                Some(memory) => Some(memory.bytes()),
                None if inode.versions.is_empty() => None,
                None => Some(inode.seen.to_vec()),
            };
            inode.versions.clear();
            // Mapped pages reach the disk whenever the system likes.
            let mapped = mapped.map(|bytes| (0, bytes.into()));
            let dirty = std::mem::take(&mut inode.dirty).into_iter();
            let dirty = dirty.map(|write| (write.offset, write.bytes));
            let dirty: Vec<(usize, Arc<[u8]>)> = dirty.chain(mapped).collect();
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
                            Arc::make_mut(&mut inode.durable),
                            sector.start,
                            &bytes[sector.start - offset..sector.end - offset],
                        );
                    }
                }
            }
            inode.seen = inode.durable.clone();
        }
        for folder in self.folders.values_mut().map(Arc::make_mut) {
            let survive = match survival {
                Survival::Nothing | Survival::LastWrite => 0,
                Survival::Everything => folder.changes.len(),
                Survival::Some(_) => random.below(folder.changes.len() as u64 + 1) as usize,
            };
            for (_, change) in folder.changes.drain(..).take(survive) {
                apply(&mut folder.durable, &change);
            }
            folder.seen = folder.durable.clone();
        }
    }
}

/// The parts of `offset..offset + len` that lie in one sector each.
pub(super) fn sectors(offset: usize, len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let end = offset + len;
    let mut start = offset;
    std::iter::from_fn(move || {
        let next = ((start / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
        let sector = start..next;
        start = next;
        (!sector.is_empty()).then_some(sector)
    })
}
