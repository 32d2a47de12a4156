//! The real machine: files beneath a directory, `flock`, futexes, the system's clock.
//!
//! Paths are resolved beneath the store's directory without following links. Descriptors are closed
//! on exec and never 0, 1 or 2, where a stray message of the process would be written into the log.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{self as sys, AtFlags, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::thread::futex;

use super::{
    Access, BootId, Directory, FileIdentity, FileSystem, Onto, Opening, ProcessId, SealedBytes,
    SharedMemory, Storage, StoredFile, Trust, Unfit,
};
use crate::zoo::planted;

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The real machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Storage for Disk {
    fn directory(&self, path: &Path, opening: Opening) -> io::Result<Arc<dyn Directory>> {
        if opening == Opening::Create && !path.exists() {
            DirBuilder::new()
                .recursive(true)
                .mode(DIRECTORY_MODE)
                .create(path)?;
            sync_parent(path)?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = above_stderr(sys::open(path, flags, Mode::empty())?)?;
        let file = File::from(fd);
        let meta = file.metadata()?;
        belongs_to_us(&meta)?;
        Ok(Arc::new(DiskDirectory {
            path: path.to_owned(),
            file,
        }))
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn boot(&self) -> io::Result<BootId> {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
        let number = u128::from_str_radix(&digits, 16).map_err(io::Error::other)?;
        Ok(BootId(number.to_be_bytes()))
    }

    fn process(&self) -> ProcessId {
        ProcessId(std::process::id())
    }

    fn wait(&self, word: &AtomicU32, expected: u32, bound: Duration) {
        let timeout = futex::Timespec {
            tv_sec: i64::try_from(bound.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(bound.subsec_nanos()),
        };
        // Every answer means: look again.
        let _ = futex::wait(word, futex::Flags::empty(), expected, Some(&timeout));
    }

    fn put_away(&self, bytes: &[u8]) -> io::Result<Option<Arc<dyn SealedBytes>>> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(FILE_MODE);
        let fd = match sys::open(std::env::temp_dir(), flags, mode) {
            Ok(fd) => above_stderr(fd)?,
            // A file system or a kernel that has no files without a name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let file = File::from(fd);
        file.write_all_at(bytes, 0)?;
        crate::reader::map_sealed(&file, bytes.len() as u64).map(Some)
    }

    fn wake(&self, word: &AtomicU32, count: u32) {
        // Waking nobody is no error, and a waiter looks again by itself.
        let _ = futex::wake(word, futex::Flags::empty(), count.min(i32::MAX as u32));
    }

    fn random(&self, into: &mut [u8]) -> io::Result<()> {
        getrandom::fill(into).map_err(|refused| io::Error::other(refused.to_string()))
    }
}

/// The parent of a bare name is the empty path, which cannot be opened.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => return Ok(()),
    };
    File::open(parent)?.sync_all()
}

fn above_stderr(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        Ok(fd)
    } else {
        Ok(rustix::io::fcntl_dupfd_cloexec(&fd, 3)?)
    }
}

fn belongs_to_us(meta: &std::fs::Metadata) -> io::Result<()> {
    let us = rustix::process::geteuid().as_raw();
    if meta.uid() != us {
        return Err(Unfit::error(format!(
            "it belongs to user {}, this process runs as {us}",
            meta.uid()
        )));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(Unfit::error(format!(
            "its mode is {:04o}, open to others",
            meta.mode() & 0o7777
        )));
    }
    Ok(())
}

#[derive(Debug)]
struct DiskDirectory {
    path: PathBuf,
    file: File,
}

impl DiskDirectory {
    fn open_beneath(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        static NO_OPENAT2: AtomicBool = AtomicBool::new(false);
        let mut flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if planted("descriptor-leaks") {
            flags.remove(OFlags::CLOEXEC);
        }
        if !NO_OPENAT2.load(Ordering::Relaxed) {
            let resolve =
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            let resolve = match planted("paths-lead-out") {
                true => ResolveFlags::empty(),
                false => resolve,
            };
            match sys::openat2(&self.file, name, flags, mode, resolve) {
                Ok(fd) => return above_stderr(fd),
                // Kernels before 5.6, and sandboxes that answer "not permitted" to calls they do not know.
                Err(Errno::NOSYS | Errno::PERM) => NO_OPENAT2.store(true, Ordering::Relaxed),
                Err(error) => return Err(error.into()),
            }
        }
        self.open_stepwise(name, flags, mode)
    }

    /// Names of the log have at most one folder, so two steps without following links are enough.
    fn open_stepwise(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let fd = match name.split_once('/') {
            None => sys::openat(&self.file, name, flags, mode)?,
            Some((folder, leaf)) => {
                let steps = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                let folder = sys::openat(&self.file, folder, steps, Mode::empty())?;
                sys::openat(&folder, leaf, flags, mode)?
            }
        };
        above_stderr(fd)
    }

    fn open_folder(&self, name: &str) -> io::Result<OwnedFd> {
        let name = if name.is_empty() { "." } else { name };
        self.open_beneath(name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    fn folder_and_leaf<'n>(&self, name: &'n str) -> io::Result<(OwnedFd, &'n str)> {
        let (folder, leaf) = name.rsplit_once('/').unwrap_or(("", name));
        Ok((self.open_folder(folder)?, leaf))
    }
}

impl Directory for DiskDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        let meta = self.file.metadata()?;
        Ok(FileIdentity {
            device: meta.dev(),
            inode: meta.ino(),
        })
    }

    fn file_system(&self) -> io::Result<FileSystem> {
        // The type is a number of 32 bits whatever width the platform gives the field.
        Ok(file_system(sys::fstatfs(&self.file)?.f_type as u32))
    }

    fn make_directory(&self, name: &str) -> io::Result<()> {
        let (folder, leaf) = self.folder_and_leaf(name)?;
        match sys::mkdirat(&folder, leaf, Mode::from_raw_mode(DIRECTORY_MODE)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in sys::Dir::read_from(self.open_folder(name)?)? {
            let entry = entry?;
            // A name that is not UTF-8 is none of the log's.
            if let Ok(name) = entry.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn StoredFile>> {
        // Without NONBLOCK, opening a fifo somebody planted waits for ever.
        let flags = OFlags::NONBLOCK
            | match access {
                Access::Read => OFlags::RDONLY,
                Access::Write => OFlags::RDWR,
                Access::CreateNew => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
                Access::CreateOrOpen => OFlags::RDWR | OFlags::CREATE,
            };
        let creates = matches!(access, Access::CreateNew | Access::CreateOrOpen);
        let mode = if creates {
            Mode::from_raw_mode(if planted("umask-trusted") {
                0o666
            } else {
                FILE_MODE
            })
        } else {
            Mode::empty()
        };
        let file = File::from(self.open_beneath(name, flags, mode)?);
        if access == Access::CreateNew && !planted("umask-trusted") {
            // The umask may have taken bits away.
            sys::fchmod(&file, Mode::from_raw_mode(FILE_MODE))?;
        }
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(Unfit::error("it is not a regular file"));
        }
        if meta.nlink() > 1 {
            return Err(Unfit::error(format!("it has {} names", meta.nlink())));
        }
        belongs_to_us(&meta)?;
        Ok(Arc::new(DiskFile { file }))
    }

    fn rename(&self, from: &str, to: &str, onto: Onto) -> io::Result<()> {
        let (old, old_leaf) = self.folder_and_leaf(from)?;
        let (new, new_leaf) = self.folder_and_leaf(to)?;
        if onto == Onto::Anything {
            return Ok(sys::renameat(&old, old_leaf, &new, new_leaf)?);
        }
        match sys::renameat_with(&old, old_leaf, &new, new_leaf, RenameFlags::NOREPLACE) {
            // File systems without the flag still refuse a second hard link onto a taken name.
            Err(Errno::INVAL | Errno::NOSYS) => {
                sys::linkat(&old, old_leaf, &new, new_leaf, AtFlags::empty())?;
                Ok(sys::unlinkat(&old, old_leaf, AtFlags::empty())?)
            }
            answer => Ok(answer?),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (folder, leaf) = self.folder_and_leaf(name)?;
        Ok(sys::unlinkat(&folder, leaf, AtFlags::empty())?)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        if name.is_empty() {
            return self.file.sync_all();
        }
        File::from(self.open_folder(name)?).sync_all()
    }
}

/// What `path` lies on, whoever owns it.
///
/// # Errors
/// The system's answer.
pub fn file_system_at(path: &Path) -> io::Result<FileSystem> {
    Ok(file_system(sys::statfs(path)?.f_type as u32))
}

/// Magic numbers from `linux/magic.h` and the file systems' own headers.
fn file_system(magic: u32) -> FileSystem {
    const KNOWN: &[(u32, &str, Trust)] = &[
        (0x0000_EF53, "ext4", Trust::Durable),
        (0x5846_5342, "xfs", Trust::Durable),
        (0x9123_683E, "btrfs", Trust::Durable),
        (0xF2F5_2010, "f2fs", Trust::Durable),
        (0x2FC1_2FC1, "zfs", Trust::Durable),
        (0xCA45_1A4E, "bcachefs", Trust::Durable),
        (0x794C_7630, "overlayfs", Trust::Durable),
        (0x0102_1994, "tmpfs", Trust::Memory),
        (0x8584_58F6, "ramfs", Trust::Memory),
        (0x0000_6969, "nfs", Trust::Doubtful),
        (0x0000_517B, "smb", Trust::Doubtful),
        (0xFF53_4D42, "cifs", Trust::Doubtful),
        (0xFE53_4D42, "smb2", Trust::Doubtful),
        (0x0102_1997, "9p", Trust::Doubtful),
        (0x6573_5546, "fuse", Trust::Doubtful),
        (0x00C3_6400, "ceph", Trust::Doubtful),
        (0x5346_414F, "afs", Trust::Doubtful),
        (0x786F_4256, "vboxsf", Trust::Doubtful),
    ];
    match KNOWN.iter().find(|(known, ..)| *known == magic) {
        Some((_, kind, trust)) => FileSystem {
            kind: (*kind).to_owned(),
            trust: *trust,
        },
        None => FileSystem {
            kind: format!("{magic:#x}"),
            trust: Trust::Durable,
        },
    }
}

#[derive(Debug)]
struct DiskFile {
    file: File,
}

/// Repeats a call that a signal interrupted.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

impl StoredFile for DiskFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        uninterrupted(|| self.file.read_at(into, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        uninterrupted(|| self.file.write_at(bytes, offset))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        if planted("record-lock") {
            let locked = sys::fcntl_lock(&self.file, FlockOperation::NonBlockingLockExclusive);
            return Ok(locked.is_ok());
        }
        uninterrupted(|| match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        })
    }

    fn unlock(&self) -> io::Result<()> {
        if planted("record-lock") {
            return Ok(sys::fcntl_lock(&self.file, FlockOperation::Unlock)?);
        }
        uninterrupted(|| self.file.unlock())
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        let metadata = self.file.metadata()?;
        Ok(FileIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    fn is_linked(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.nlink() > 0)
    }

    fn map_shared(&self, access: Access) -> io::Result<Arc<dyn SharedMemory>> {
        crate::control::map_shared(&self.file, access)
    }

    fn map_sealed(&self, bytes: u64) -> io::Result<Arc<dyn SealedBytes>> {
        crate::reader::map_sealed(&self.file, bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Bytes that are put away are as they were.
    #[test]
    fn what_is_put_away_is_there() {
        let bytes: Vec<u8> = (0..70_000_u32).map(|n| n as u8).collect();
        if let Some(away) = Disk.put_away(&bytes).expect("there is room") {
            assert!(away.bytes() == bytes);
        }
    }

    fn store() -> (tempfile::TempDir, Arc<dyn Directory>) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Disk
            .directory(&temp.path().join("a/b"), Opening::Create)
            .expect("made");
        dir.make_directory("segments").expect("made");
        (temp, dir)
    }

    fn unfit(answer: io::Result<Arc<dyn StoredFile>>) -> String {
        let error = answer.expect_err("refused");
        error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Unfit>())
            .expect("unfit")
            .why
            .clone()
    }

    /// S1: modes do not depend on the umask, and wider ones are refused.
    #[test]
    fn files_are_private_and_others_are_refused() {
        let (_temp, dir) = store();
        dir.open("segments/x", Access::CreateNew).expect("made");
        let path = dir.path_of("segments/x");
        assert_eq!(
            std::fs::metadata(&path).expect("there").mode() & 0o7777,
            0o600
        );
        assert_eq!(
            std::fs::metadata(dir.path()).expect("there").mode() & 0o7777,
            0o700
        );
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("widened");
        assert_eq!(
            unfit(dir.open("segments/x", Access::Write)),
            "its mode is 0640, open to others"
        );
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o750))
            .expect("widened");
        assert!(Disk.directory(dir.path(), Opening::Existing).is_err());
    }

    /// S1, S2: neither a link in the last component nor in the folder is followed, a second name or a
    /// fifo is refused, and nothing outside is reached; the same without `openat2`.
    #[test]
    fn links_and_paths_that_lead_out_are_refused() {
        let (temp, dir) = store();
        let outside = temp.path().join("outside");
        std::fs::create_dir(&outside).expect("made");
        std::fs::write(outside.join("f"), b"secret").expect("written");
        // Fit in every other way, so that nothing but where it is can be the reason.
        std::fs::set_permissions(outside.join("f"), std::fs::Permissions::from_mode(0o600))
            .expect("narrowed");
        symlink(outside.join("f"), dir.path_of("segments/link")).expect("linked");
        symlink(&outside, dir.path_of("folder")).expect("linked");
        for name in ["segments/link", "folder/f", "../../outside/f"] {
            assert!(dir.open(name, Access::Read).is_err(), "{name}");
        }
        let plain = DiskDirectory {
            path: dir.path().to_owned(),
            file: File::open(dir.path()).expect("open"),
        };
        for name in ["segments/link", "folder/f"] {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW;
            assert!(
                plain.open_stepwise(name, flags, Mode::empty()).is_err(),
                "{name}"
            );
        }
        dir.open("segments/one", Access::CreateNew).expect("made");
        std::fs::hard_link(dir.path_of("segments/one"), dir.path_of("segments/two"))
            .expect("linked");
        assert_eq!(
            unfit(dir.open("segments/two", Access::Read)),
            "it has 2 names"
        );
        let fifo = dir.path_of("segments/fifo");
        let private = Mode::from_raw_mode(0o600);
        sys::mknodat(sys::CWD, &fifo, sys::FileType::Fifo, private, 0).expect("made");
        assert_eq!(
            unfit(dir.open("segments/fifo", Access::Read)),
            "it is not a regular file"
        );
    }

    #[test]
    fn a_rename_onto_nothing_never_replaces() {
        let (_temp, dir) = store();
        for (name, text) in [("segments/a", b"a"), ("segments/b", b"b")] {
            let file = dir.open(name, Access::CreateNew).expect("made");
            file.write_at(text, 0).expect("written");
        }
        let refused = dir
            .rename("segments/a", "segments/b", Onto::Nothing)
            .expect_err("taken");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            std::fs::read(dir.path_of("segments/b")).expect("there"),
            b"b"
        );
        dir.rename("segments/a", "segments/b", Onto::Anything)
            .expect("replaced");
        assert_eq!(
            std::fs::read(dir.path_of("segments/b")).expect("there"),
            b"a"
        );
        assert_eq!(dir.list("segments").expect("listed"), ["b"]);
    }

    #[test]
    fn a_lock_excludes_every_other_open_file_until_it_is_given_back() {
        let (_temp, dir) = store();
        let one = dir.open("segments/l", Access::CreateOrOpen).expect("made");
        let two = dir
            .open("segments/l", Access::CreateOrOpen)
            .expect("opened");
        assert!(one.try_lock().expect("locked"));
        assert!(!two.try_lock().expect("asked"));
        one.unlock().expect("unlocked");
        assert!(two.try_lock().expect("locked"));
        assert!(one.is_linked().expect("asked"));
        dir.remove("segments/l").expect("removed");
        assert!(!one.is_linked().expect("asked"));
    }

    #[test]
    fn doubtful_file_systems_are_named() {
        assert_eq!(file_system(0x6969).trust, Trust::Doubtful);
        assert_eq!(
            file_system(0x0102_1994),
            FileSystem {
                kind: "tmpfs".to_owned(),
                trust: Trust::Memory
            }
        );
        assert_eq!(file_system(0x1234).kind, "0x1234");
    }
}
