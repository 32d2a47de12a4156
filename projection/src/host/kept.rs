//! What a host remembers between boots, in the state directory of a user: the boots it has seen, and an id where
//! the machine has none.
//!
//! Cloned images share a machine id, so another boot id alone proves nothing: it may be that of a twin that runs
//! now. A boot is past when this host's own list has it *before* the current one. The list is believed only
//! where no other machine can write it (a local file system, a directory that is ours alone), and not at all
//! once a boot comes back in it after another: then two machines that run at the same time share it.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use tenure_core::holder::{BootId, HostId};
use tenure_log::storage::disk::Disk;
use tenure_log::storage::{
    Access, Directory, Onto, Opening, Storage, read_full, replace_file, write_full,
};

use super::HostError;

/// The directory below the state directory.
const DIRECTORY: &str = "tenure-host";
/// One boot id a line, oldest first.
const BOOTS: &str = "boots";
/// The id of a machine that has none, 32 hexadecimal digits.
const IDENTITY: &str = "id";
/// Boots remembered; the oldest give way. Three years of one a day.
const BOOTS_MAX: usize = 1024;
/// The directory itself, as a folder of its own.
const HERE: &str = ".";
/// A line of the list: 32 hexadecimal digits and its end.
const LINE_BYTES: usize = 33;
/// Kinds of file system that one machine alone writes, as the log names them.
const LOCAL: &[&str] = &[
    "ext4",
    "xfs",
    "btrfs",
    "f2fs",
    "zfs",
    "bcachefs",
    "overlayfs",
    "tmpfs",
    "ramfs",
];

/// What is remembered, and where.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    /// The boot that was found at the end of the list, or put there. Nobody starts a machine anew under a process, so
    /// one look is enough for all that it records.
    listed: OnceLock<BootId>,
}

impl Kept {
    pub(super) fn new(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join(DIRECTORY),
            listed: OnceLock::new(),
        }
    }

    fn open(&self, opening: Opening) -> Result<Arc<dyn Directory>, HostError> {
        let failed = |source| self.failed(source);
        let directory = Disk.directory(&self.path, opening).map_err(failed)?;
        let file_system = directory.file_system().map_err(failed)?;
        if !LOCAL.contains(&file_system.kind.as_str()) {
            return Err(HostError::Shared {
                path: self.path.clone(),
                kind: file_system.kind,
            });
        }
        Ok(directory)
    }

    fn failed(&self, source: io::Error) -> HostError {
        HostError::State {
            path: self.path.clone(),
            source,
        }
    }

    /// Puts `boot` at the end of the list, durably, unless it stands there. Looks once.
    pub(super) fn remember(&self, boot: BootId) -> Result<(), HostError> {
        if self.listed.get() != Some(&boot) {
            self.list(boot)?;
            // Of two threads that come here together, either says the same.
            let _ = self.listed.set(boot);
        }
        Ok(())
    }

    fn list(&self, boot: BootId) -> Result<(), HostError> {
        let directory = self.open(Opening::Create)?;
        // A list that is none is begun anew: less is remembered, nothing is believed that should not be.
        let mut boots = read_boots(&*directory)
            .map_err(|e| self.failed(e))?
            .unwrap_or_default();
        if boots.last() == Some(&boot) {
            return Ok(());
        }
        boots.push(boot);
        let kept = &boots[boots.len().saturating_sub(BOOTS_MAX)..];
        let text: String = kept
            .iter()
            .map(|boot| format!("{:032x}\n", u128::from_be_bytes(boot.0)))
            .collect();
        // Two processes that come here together write the same list: they are in the same boot. All of it
        // is replaced, so that a power cut leaves the old list or the new one.
        replace_file(&*directory, HERE, BOOTS, unique(), text.as_bytes())
            .map_err(|e| self.failed(e))
    }

    /// Whether `boot` is an earlier boot of this host than `now`. What cannot be read proves nothing.
    pub(super) fn is_past(&self, boot: BootId, now: Option<BootId>) -> bool {
        let boots = self
            .open(Opening::Existing)
            .ok()
            .and_then(|directory| read_boots(&*directory).ok())
            .flatten();
        boots.is_some_and(|boots| is_past(&boots, boot, now))
    }

    /// The id of this host, made at the first call.
    pub(super) fn identity(&self) -> Result<HostId, HostError> {
        let directory = self.open(Opening::Create)?;
        let failed = |source| self.failed(source);
        if let Some(id) = read_identity(&*directory).map_err(failed)? {
            return Ok(id);
        }
        let mut id = [0; 16];
        Disk.random(&mut id).map_err(failed)?;
        let text = format!("{:032x}\n", u128::from_be_bytes(id));
        // The first to come decides for everybody, so an id that is there is never replaced.
        match create_file(&*directory, IDENTITY, text.as_bytes()) {
            Ok(()) => Ok(HostId(id)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let first = read_identity(&*directory).map_err(failed)?;
                first.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// The id of a machine that has a machine id; `machine` is the text of `/etc/machine-id`. A digest, since the
/// machine id itself is not to be given away (machine-id(5)).
pub(super) fn machine_identity(machine: &[u8]) -> Option<HostId> {
    // During the first boot the file says "uninitialized" or nothing.
    let number = hexadecimal(machine.trim_ascii())?;
    (number != 0).then(|| digest("tenure host id v1", &number.to_be_bytes()))
}

/// The id of a machine that has no other: good for one boot. Without a boot id everybody is a stranger.
pub(super) fn boot_identity(boot: Option<BootId>) -> HostId {
    match boot {
        Some(boot) => digest("tenure host id v1 of a boot", &boot.0),
        None => {
            let mut id = [0; 16];
            if Disk.random(&mut id).is_err() {
                id[..4].copy_from_slice(&std::process::id().to_be_bytes());
            }
            digest("tenure host id v1 of a process", &id)
        }
    }
}

fn digest(context: &str, bytes: &[u8]) -> HostId {
    let mut id = [0; 16];
    id.copy_from_slice(&blake3::derive_key(context, bytes)[..16]);
    HostId(id)
}

/// A list that has `boot` before `now`, and in which no boot comes back after another.
fn is_past(boots: &[BootId], boot: BootId, now: Option<BootId>) -> bool {
    let first = |wanted| boots.iter().position(|b| *b == wanted);
    let mut seen = HashSet::new();
    let comes_back = !boots.iter().all(|b| seen.insert(b));
    match (first(boot), now) {
        _ if comes_back => false,
        (Some(then), Some(now)) => first(now).is_none_or(|now| then < now),
        _ => false,
    }
}

/// 32 hexadecimal digits.
fn hexadecimal(digits: &[u8]) -> Option<u128> {
    let all = digits.len() == 32 && digits.iter().all(u8::is_ascii_hexdigit);
    all.then(|| u128::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())?
}

/// The list; `None` where the text is no list of ours.
fn parse_boots(text: &[u8]) -> Option<Vec<BootId>> {
    if text.len() > BOOTS_MAX * LINE_BYTES || !text.len().is_multiple_of(LINE_BYTES) {
        return None;
    }
    text.chunks(LINE_BYTES)
        .map(|line| {
            Some(BootId(
                hexadecimal(line.strip_suffix(b"\n")?)?.to_be_bytes(),
            ))
        })
        .collect()
}

fn read_boots(directory: &dyn Directory) -> io::Result<Option<Vec<BootId>>> {
    let text = read_file(directory, BOOTS, BOOTS_MAX * LINE_BYTES)?;
    Ok(text.map_or_else(|| Some(Vec::new()), |text| parse_boots(&text)))
}

fn read_identity(directory: &dyn Directory) -> io::Result<Option<HostId>> {
    let Some(text) = read_file(directory, IDENTITY, LINE_BYTES)? else {
        return Ok(None);
    };
    match hexadecimal(text.trim_ascii()) {
        Some(id) => Ok(Some(HostId(id.to_be_bytes()))),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the file {IDENTITY:?} holds no host id"),
        )),
    }
}

/// The file's bytes, at most one more than `bytes_max`; `None` where there is no such file.
fn read_file(
    directory: &dyn Directory,
    name: &str,
    bytes_max: usize,
) -> io::Result<Option<Vec<u8>>> {
    let file = match directory.open(name, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        answer => answer?,
    };
    let mut text = vec![0; bytes_max + 1];
    let read = read_full(&*file, &mut text, 0)?;
    text.truncate(read);
    Ok(Some(text))
}

/// Writes a file that is not there yet: all of it or nothing, durable on return.
fn create_file(directory: &dyn Directory, name: &str, bytes: &[u8]) -> io::Result<()> {
    let scratch = format!(".{name}.{:016x}.tmp", unique());
    let outcome = (|| {
        let file = directory.open(&scratch, Access::CreateNew)?;
        write_full(&*file, bytes, 0)?;
        file.sync()?;
        directory.rename(&scratch, name, Onto::Nothing)?;
        directory.sync("")
    })();
    if outcome.is_err() {
        // The scratch file may not exist, and the first error is the one to report.
        let _ = directory.remove(&scratch);
    }
    outcome
}

/// A number that no other writer of this directory uses now.
fn unique() -> u64 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    u64::from(std::process::id()) << 32 | u64::from(CALLS.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(n: u8) -> BootId {
        BootId([n; 16])
    }

    fn kept() -> (tempfile::TempDir, Kept) {
        let dir = tempfile::tempdir().expect("a directory");
        let kept = Kept::new(dir.path());
        (dir, kept)
    }

    /// LIV-2, C03: only a boot that stands before the current one is past.
    #[test]
    fn a_boot_is_past_when_the_list_has_it_before_the_current_one() {
        let (_dir, kept) = kept();
        assert!(
            !kept.is_past(boot(1), Some(boot(2))),
            "nothing is remembered"
        );
        for n in [1, 2, 3] {
            kept.remember(boot(n)).expect("kept");
            kept.remember(boot(n)).expect("kept once");
        }
        assert!(kept.is_past(boot(1), Some(boot(3))));
        assert!(kept.is_past(boot(2), Some(boot(3))));
        assert!(!kept.is_past(boot(3), Some(boot(3))));
        assert!(!kept.is_past(boot(9), Some(boot(3))), "a stranger");
        assert!(!kept.is_past(boot(3), Some(boot(2))), "it came later");
        assert!(
            kept.is_past(boot(3), Some(boot(4))),
            "nothing recorded since the reboot"
        );
        assert!(!kept.is_past(boot(1), None));
    }

    /// Two machines with one machine id that write one list are found out: one of them comes back.
    #[test]
    fn a_list_that_two_running_machines_share_proves_nothing() {
        let (_dir, kept) = kept();
        for n in [1, 2, 3, 2] {
            kept.remember(boot(n)).expect("kept");
        }
        for n in 1..=3 {
            for now in 1..=4 {
                assert!(!kept.is_past(boot(n), Some(boot(now))), "{n} from {now}");
            }
        }
    }

    #[test]
    fn the_oldest_boots_give_way() {
        let (_dir, kept) = kept();
        let number = |n: usize| BootId((n as u128 + 1).to_be_bytes());
        let full: String = (0..BOOTS_MAX)
            .map(|n| format!("{:032x}\n", n as u128 + 1))
            .collect();
        kept.remember(number(0)).expect("kept");
        std::fs::write(kept.path.join(BOOTS), full).expect("written");
        let last = number(BOOTS_MAX);
        assert!(kept.is_past(number(0), Some(last)));
        kept.remember(last).expect("kept");
        assert!(!kept.is_past(number(0), Some(last)));
        assert!(kept.is_past(number(1), Some(last)));
        let bytes = std::fs::metadata(kept.path.join(BOOTS))
            .expect("there")
            .len();
        assert_eq!(bytes, (BOOTS_MAX * LINE_BYTES) as u64);
    }

    /// LIV-9: what is no list is believed in nothing, and begun anew.
    #[test]
    fn a_malformed_list_proves_nothing_and_is_begun_anew() {
        let one = format!("{:032x}\n", u128::from_be_bytes(boot(1).0));
        let cases = [
            one.trim_end().to_owned(),
            format!("{one}x"),
            format!("{one}{}", &one[..20]),
            format!("{}\n\n", &one[..31]),
            format!("+{}", &one[1..]),
            one.repeat(BOOTS_MAX + 1),
            "\u{0}".repeat(LINE_BYTES),
        ];
        for text in cases {
            let (_dir, kept) = kept();
            kept.remember(boot(1)).expect("kept");
            assert!(kept.is_past(boot(1), Some(boot(2))));
            std::fs::write(kept.path.join(BOOTS), &text).expect("written");
            assert!(!kept.is_past(boot(1), Some(boot(2))), "{text:?}");
            kept.remember(boot(2)).expect("kept");
            assert!(kept.is_past(boot(2), Some(boot(3))), "{text:?}");
        }
    }

    #[test]
    fn a_directory_that_others_can_write_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, kept) = kept();
        kept.remember(boot(1)).expect("kept");
        assert!(kept.is_past(boot(1), Some(boot(2))));
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&kept.path, open).expect("set");
        assert!(!kept.is_past(boot(1), Some(boot(2))));
        let refused = kept.remember(boot(2)).expect_err("refused");
        assert!(matches!(refused, HostError::State { .. }), "{refused}");
    }

    #[test]
    fn the_list_is_for_this_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, kept) = kept();
        kept.remember(boot(1)).expect("kept");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode();
        assert_eq!(mode(&kept.path) & 0o777, 0o700);
        assert_eq!(mode(&kept.path.join(BOOTS)) & 0o777, 0o600);
        let left: Vec<_> = std::fs::read_dir(&kept.path).expect("there").collect();
        assert_eq!(left.len(), 1, "no scratch file is left: {left:?}");
    }

    /// C11
    #[test]
    fn a_machine_id_is_digested_and_anything_else_is_none() {
        let id = machine_identity(b"0123456789abcdef0123456789abcdef\n").expect("an id");
        assert_eq!(
            machine_identity(b"0123456789ABCDEF0123456789abcdef"),
            Some(id)
        );
        assert_ne!(id.0[..4], [0x01, 0x23, 0x45, 0x67]);
        assert_ne!(
            machine_identity(b"0123456789abcdef0123456789abcdee"),
            Some(id)
        );
        for none in [
            &b""[..],
            b"uninitialized\n",
            b"00000000000000000000000000000000",
            b"0123456789abcdef0123456789abcde",
            b"0123456789abcdef0123456789abcdefa",
            b"+123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(machine_identity(none), None, "{none:?}");
        }
    }

    #[test]
    fn an_id_is_made_once_for_all_who_ask_together() {
        let (dir, _) = kept();
        let ids: Vec<HostId> = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| Kept::new(dir.path()).identity().expect("an id")))
                .collect();
            asked
                .into_iter()
                .map(|t| t.join().expect("no panic"))
                .collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(Kept::new(dir.path()).identity().expect("an id"), ids[0]);
    }

    #[test]
    fn a_host_without_any_id_is_another_one_after_each_boot() {
        assert_eq!(boot_identity(Some(boot(1))), boot_identity(Some(boot(1))));
        assert_ne!(boot_identity(Some(boot(1))), boot_identity(Some(boot(2))));
        assert_ne!(boot_identity(None), boot_identity(None));
    }
}
