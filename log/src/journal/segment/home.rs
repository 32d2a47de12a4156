//! Where a store lives, so that a copy does not go on as if it were the original.
//!
//! The file `home` names the machine, in its caller's words, and the directory's inode. Device
//! numbers change from boot to boot, so they count only within the boot that wrote them.

use std::io;
use std::path::PathBuf;

use crate::error::Error;
use crate::storage::{self, Access, BootId, Directory, FileIdentity, Storage};
use crate::zoo::planted;

/// The file that says where the store lives.
pub const HOME_NAME: &str = "home";

/// What is read of it at most.
const HOME_BYTES_MAX: usize = 64 << 10;

#[derive(Clone, PartialEq, Eq, Debug)]
struct Home {
    host: Vec<u8>,
    directory: FileIdentity,
    boot: BootId,
    path: PathBuf,
}

impl Home {
    fn here(storage: &dyn Storage, dir: &dyn Directory, host: &[u8]) -> Result<Home, Error> {
        let failed = |error| storage::failed("look at", dir.path(), error);
        Ok(Home {
            host: host.to_vec(),
            directory: dir.identity().map_err(failed)?,
            boot: storage.boot().map_err(failed)?,
            path: dir.path().to_owned(),
        })
    }

    /// Lines of `name value`; the path last, as it may hold anything, and `end` to tell a cut file.
    fn encode(&self) -> Vec<u8> {
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let FileIdentity { device, inode } = self.directory;
        let (host, boot, path) = (hex(&self.host), hex(&self.boot.0), self.path.display());
        format!(
            "tenure home 1\nhost {host}\ninode {inode}\ndevice {device}\nboot {boot}\npath {path}\nend\n"
        )
        .into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Home> {
        let text = std::str::from_utf8(bytes)
            .ok()?
            .strip_prefix("tenure home 1\n")?;
        let (host, text) = text.strip_prefix("host ")?.split_once('\n')?;
        let (inode, text) = text.strip_prefix("inode ")?.split_once('\n')?;
        let (device, text) = text.strip_prefix("device ")?.split_once('\n')?;
        let (boot, text) = text.strip_prefix("boot ")?.split_once('\n')?;
        let path = text.strip_prefix("path ")?.strip_suffix("\nend\n")?;
        Some(Home {
            host: from_hex(host)?,
            directory: FileIdentity {
                device: device.parse().ok()?,
                inode: inode.parse().ok()?,
            },
            boot: BootId(from_hex(boot)?.try_into().ok()?),
            path: path.into(),
        })
    }

    fn is(&self, here: &Home) -> bool {
        let same_device = self.boot != here.boot || self.directory.device == here.directory.device;
        self.host == here.host && self.directory.inode == here.directory.inode && same_device
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| Some(c.to_digit(16)? as u8)).collect();
    let digits = digits?;
    digits.len().is_multiple_of(2).then(|| {
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    })
}

/// Whether the store lives where it did; writes down where when nothing is written yet.
///
/// # Errors
/// [`Error::HomeChanged`] when it does not, or the system's answer.
pub(super) fn judge(storage: &dyn Storage, dir: &dyn Directory, host: &[u8]) -> Result<(), Error> {
    let here = Home::here(storage, dir, host)?;
    let failed = |error| storage::failed("read", dir.path_of(HOME_NAME), error);
    let file = match dir.open(HOME_NAME, Access::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return write(storage, dir, &here),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = vec![0; HOME_BYTES_MAX];
    let read = storage::read_full(&*file, &mut bytes, 0).map_err(failed)?;
    match Home::decode(&bytes[..read]) {
        Some(home) if home.is(&here) || planted("home-not-looked-at") => Ok(()),
        Some(home) => Err(Error::HomeChanged {
            was: home.path,
            is: here.path,
        }),
        None => Err(Error::HomeChanged {
            was: "a place that its file does not tell".into(),
            is: here.path,
        }),
    }
}

/// Writes down that the store lives here.
///
/// # Errors
/// The system's answer.
pub(super) fn accept(storage: &dyn Storage, dir: &dyn Directory, host: &[u8]) -> Result<(), Error> {
    write(storage, dir, &Home::here(storage, dir, host)?)
}

fn write(storage: &dyn Storage, dir: &dyn Directory, home: &Home) -> Result<(), Error> {
    let failed = |error| storage::failed("write", dir.path_of(HOME_NAME), error);
    let mut random = [0; 8];
    storage.random(&mut random).map_err(failed)?;
    storage::replace_file(
        dir,
        "",
        HOME_NAME,
        u64::from_le_bytes(random),
        &home.encode(),
    )
    .map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(host: &[u8], device: u64, inode: u64, boot: u8) -> Home {
        let directory = FileIdentity { device, inode };
        Home {
            host: host.to_vec(),
            directory,
            boot: BootId([boot; 16]),
            path: "/a b\nc".into(),
        }
    }

    #[test]
    fn a_home_comes_back_and_every_cut_is_none() {
        let home = home(b"\x00host", 7, 8, 9);
        let bytes = home.encode();
        assert_eq!(Home::decode(&bytes), Some(home));
        for len in 0..bytes.len() {
            assert_eq!(Home::decode(&bytes[..len]), None, "{len}");
        }
    }

    #[test]
    fn another_machine_or_inode_is_elsewhere_and_another_device_only_within_a_boot() {
        let was = home(b"h", 1, 2, 3);
        assert!(was.is(&home(b"h", 1, 2, 3)));
        assert!(was.is(&home(b"h", 9, 2, 4)));
        assert!(!was.is(&home(b"h", 9, 2, 3)));
        assert!(!was.is(&home(b"g", 1, 2, 3)));
        assert!(!was.is(&home(b"h", 1, 9, 3)));
    }
}
