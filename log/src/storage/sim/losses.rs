//! What a crash can leave: the machine before every step, as it was recorded, and each state of the disk that a power
//! cut can make of it.
//!
//! Of what no sync has covered, a name is there or not, a sector of a file has seen some of the writes to it or ends
//! within one, a file has its old length or its new one, and a mapped page is as it was at some moment, or a mixture by
//! sectors of two. What of it comes about is chosen by digits, one for each thing that can be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::image::{Change, Folder, Image, Inode, InodeId, apply};
use super::{Random, Sim};
use unsynced::{Unsynced, choices, digest_of};

mod unsynced;

/// The machine before one of its steps.
#[derive(Clone)]
pub struct KillPoint {
    pub(super) step: u64,
    pub(super) boot: u64,
    pub(super) processes: u32,
    pub(super) image: Arc<Image>,
}

/// What can be lost at a kill point, its names apart: they are already as one cut leaves them.
pub struct Losses {
    point: KillPoint,
    folders: BTreeMap<String, Arc<Folder>>,
    settled: BTreeMap<InodeId, Arc<Inode>>,
    files: Vec<(InodeId, Arc<Unsynced>)>,
    digest: blake3::Hasher,
}

/// What identifies a crash state: two that have the same are the same to whoever opens the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StateId(pub [u8; 16]);

/// A machine without processes, as a crash left it.
pub struct CrashState {
    /// Its identity.
    pub id: StateId,
    boot: u64,
    processes: u32,
    image: Image,
}

impl CrashState {
    /// The machine, started. What it draws by chance follows from what it is, so that equal ones go on alike.
    #[must_use]
    pub fn start(&self) -> Sim {
        let sim = Sim::new(0);
        let mut state = sim.world.state.lock();
        let first = self.id.0.first_chunk().expect("sixteen bytes hold eight");
        state.random = Random(u64::from_le_bytes(*first));
        state.boot = self.boot;
        state.processes = self.processes;
        state.image = self.image.clone();
        drop(state);
        sim
    }
}

impl fmt::Debug for KillPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KillPoint({})", self.step)
    }
}

impl KillPoint {
    /// The step that was not made, counted from zero.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Whether the disk, and what of it is not synced, is what it was at `earlier` of the same run.
    #[must_use]
    pub fn is_as(&self, earlier: &KillPoint) -> bool {
        Arc::ptr_eq(&self.image, &earlier.image)
    }

    /// What is left when the processes die and nothing else happens.
    #[must_use]
    pub fn killed(&self) -> CrashState {
        let mut digest = self.digest(b"killed", &self.image.folders);
        for (id, inode) in &self.image.inodes {
            count_in(&mut digest, *id, &inode.seen, &digest_of(&inode.seen));
        }
        CrashState {
            id: identity(&digest),
            boot: self.boot,
            processes: self.processes,
            image: Image::clone(&self.image),
        }
    }

    /// What a cut can leave, for each set of names that can be left.
    #[must_use]
    pub fn losses(&self) -> Vec<Losses> {
        let mut files: BTreeMap<InodeId, Arc<Unsynced>> = BTreeMap::new();
        for (id, inode) in &self.image.inodes {
            files.extend(Unsynced::of(inode).map(|unsynced| (*id, Arc::new(unsynced))));
        }
        let namings = self.namings().into_iter();
        namings.map(|folders| self.under(folders, &files)).collect()
    }

    /// What every folder can hold after a cut.
    fn namings(&self) -> Vec<BTreeMap<String, Arc<Folder>>> {
        let mut namings = vec![BTreeMap::new()];
        for (name, folder) in &self.image.folders {
            let outcomes = outcomes(folder);
            let longer = namings.into_iter().flat_map(|naming| {
                let with = |outcome: &Arc<Folder>| {
                    let mut naming: BTreeMap<String, Arc<Folder>> = naming.clone();
                    naming.insert(name.clone(), outcome.clone());
                    naming
                };
                outcomes.iter().map(with).collect::<Vec<_>>()
            });
            namings = longer.collect();
        }
        namings
    }

    fn under(
        &self,
        folders: BTreeMap<String, Arc<Folder>>,
        unsynced: &BTreeMap<InodeId, Arc<Unsynced>>,
    ) -> Losses {
        let names = folders.values().flat_map(|folder| folder.seen.values());
        let named: BTreeSet<InodeId> = names.copied().collect();
        let mut digest = self.digest(b"cut", &folders);
        let (mut settled, mut files) = (BTreeMap::new(), Vec::new());
        for id in named {
            if let Some(unsynced) = unsynced.get(&id) {
                files.push((id, unsynced.clone()));
                continue;
            }
            let bytes = &self.image.inodes[&id].durable;
            count_in(&mut digest, id, bytes, &digest_of(bytes));
            settled.insert(id, Inode::at_rest(bytes.clone()));
        }
        Losses {
            point: self.clone(),
            folders,
            settled,
            files,
            digest,
        }
    }

    /// What identifies a state besides its files.
    fn digest(&self, how: &[u8], folders: &BTreeMap<String, Arc<Folder>>) -> blake3::Hasher {
        let mut digest = blake3::Hasher::new();
        digest.update(how);
        for number in [
            self.boot,
            self.processes.into(),
            self.image.made,
            self.image.capacity,
            self.image.exists.into(),
        ] {
            digest.update(&number.to_le_bytes());
        }
        for (name, folder) in folders {
            digest.update(format!("/{name}:").as_bytes());
            for (name, inode) in &folder.seen {
                digest.update(format!("{name}={};", inode.0).as_bytes());
            }
        }
        digest
    }
}

impl Losses {
    /// How many things can be chosen for each digit of a state in which no sector is torn.
    #[must_use]
    pub fn radices(&self) -> Vec<u32> {
        let each = self.files.iter().flat_map(|(_, file)| file.radices());
        each.collect()
    }

    /// Digits beyond the radices, with which one sector is torn: the place of the digit and how many there are.
    #[must_use]
    pub fn torn(&self) -> Vec<u32> {
        let each = self.files.iter().flat_map(|(_, file)| file.torn());
        each.collect()
    }

    /// The digits of each moment: what was written until then has survived, and nothing else.
    #[must_use]
    pub fn moments(&self) -> Vec<Vec<u32>> {
        let mut orders: BTreeSet<u64> = BTreeSet::from([0]);
        for (_, file) in &self.files {
            file.orders(&mut orders);
        }
        let digits = |order: u64| {
            let each = self.files.iter().flat_map(|(_, file)| file.as_of(order));
            each.collect()
        };
        orders.into_iter().map(digits).collect()
    }

    /// The state with those digits.
    ///
    /// # Panics
    /// When a digit is beyond what can be chosen.
    #[must_use]
    pub fn state(&self, digits: &[u32]) -> CrashState {
        let mut digest = self.digest.clone();
        let (mut inodes, mut digits) = (self.settled.clone(), digits);
        for (id, file) in &self.files {
            let (mine, rest) = digits.split_at(file.digits());
            digits = rest;
            let (bytes, content) = file.content(mine);
            count_in(&mut digest, *id, &bytes, &content);
            inodes.insert(*id, Inode::at_rest(bytes));
        }
        let image = &self.point.image;
        CrashState {
            id: identity(&digest),
            boot: self.point.boot + 1,
            processes: self.point.processes,
            image: Image {
                inodes,
                folders: self.folders.clone(),
                ..image.emptied()
            },
        }
    }
}

/// What a folder can hold after a cut.
fn outcomes(folder: &Folder) -> Vec<Arc<Folder>> {
    let mut held = vec![folder.durable.clone()];
    for chosen in choices(folder.changes.len()) {
        let mut names = folder.durable.clone();
        for index in chosen {
            let (_, change): &(u64, Change) = &folder.changes[index];
            apply(&mut names, change);
        }
        if !held.contains(&names) {
            held.push(names);
        }
    }
    let folder = |names: BTreeMap<String, InodeId>| {
        Arc::new(Folder {
            seen: names.clone(),
            durable: names,
            changes: Vec::new(),
        })
    };
    held.into_iter().map(folder).collect()
}

fn count_in(digest: &mut blake3::Hasher, inode: InodeId, bytes: &[u8], content: &[u8; 32]) {
    digest.update(&inode.0.to_le_bytes());
    digest.update(&(bytes.len() as u64).to_le_bytes());
    digest.update(content);
}

fn identity(digest: &blake3::Hasher) -> StateId {
    let whole = digest.finalize();
    let half = whole.as_bytes().first_chunk();
    StateId(*half.expect("thirty-two bytes hold sixteen"))
}
