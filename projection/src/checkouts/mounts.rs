//! The directories around a path that its spelling does not name: where a directory is mounted a second time, those
//! that hold it at the other place hold it here too (D16).
//!
//! The kernel's list of mounts says of each which directory of which file system stands where. Where it cannot be
//! read, or the other place cannot be seen from here, nothing is added, and nothing is known of it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use tenure_core::path::Inode;

use super::identity;

/// What this process sees mounted.
const LIST: &str = "/proc/self/mountinfo";

/// A directory of a file system, and where it stands.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: Vec<u8>,
    root: PathBuf,
    point: PathBuf,
}

/// Identities of the directories that hold `deepest` at other places where the same files are mounted, the nearest
/// first.
pub(super) fn around(deepest: &Path) -> Vec<Inode> {
    let list = fs::read(LIST).unwrap_or_default();
    let mounts: Vec<Mount> = list.split(|b| *b == b'\n').filter_map(parse).collect();
    let on_path = mounts.iter().filter(|m| deepest.starts_with(&m.point));
    // Of two at one point the later one is seen.
    let Some(own) = on_path.max_by_key(|m| m.point.components().count()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for elsewhere in mounts.iter().filter_map(|m| elsewhere(own, deepest, m)) {
        // Something else may be mounted over it.
        if identity::of(&elsewhere).ok() != identity::of(deepest).ok() {
            continue;
        }
        for holder in elsewhere.ancestors().skip(1) {
            let inode = identity::of(holder).ok();
            found.extend(inode.filter(|inode| !found.contains(inode)));
        }
    }
    found
}

/// Where `path`, which is below `own`, stands by way of another mount of the same file system.
fn elsewhere(own: &Mount, path: &Path, other: &Mount) -> Option<PathBuf> {
    if own.device != other.device || own.point == other.point {
        return None;
    }
    let inside = own.root.join(path.strip_prefix(&own.point).ok()?);
    let rest = inside.strip_prefix(&other.root).ok()?;
    Some(other.point.join(rest))
}

/// `ID PARENT MAJOR:MINOR ROOT POINT ...`
fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|b| *b == b' ').skip(2);
    let device = fields.next()?.to_vec();
    let root = unescaped(fields.next()?);
    let point = unescaped(fields.next()?);
    (root.is_absolute() && point.is_absolute()).then_some(Mount {
        device,
        root,
        point,
    })
}

/// Space, tab, newline and backslash stand as three octal digits behind a backslash.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.first_chunk::<3>().filter(|_| *first == b'\\');
        let code = digits.and_then(|d| std::str::from_utf8(d).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_list_is_read_as_the_kernel_writes_it() {
        let line = b"36 35 98:0 /mnt1/a\\040b /mnt2\\134x rw,noatime master:1 - ext3 /dev/root rw";
        let mount = parse(line).expect("a mount");
        assert_eq!(mount.device, b"98:0");
        assert_eq!(mount.root, Path::new("/mnt1/a b"));
        assert_eq!(mount.point, Path::new("/mnt2\\x"));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"36 35 98:0 relative /x"), None);
    }

    #[test]
    fn the_other_place_is_the_other_mount_and_what_is_left_of_the_path() {
        let mount = |device: &str, root: &str, point: &str| Mount {
            device: device.into(),
            root: root.into(),
            point: point.into(),
        };
        let own = mount("8:1", "/houses/w/src", "/mnt");
        let at = |other: &Mount| elsewhere(&own, Path::new("/mnt/a"), other);
        let is = |path: &str| Some(PathBuf::from(path));
        assert_eq!(at(&mount("8:1", "/", "/")), is("/houses/w/src/a"));
        assert_eq!(at(&mount("8:1", "/houses", "/h")), is("/h/w/src/a"));
        assert_eq!(at(&mount("8:1", "/houses/w/src", "/x")), is("/x/a"));
        assert_eq!(at(&mount("8:1", "/houses/w/src/a", "/y")), is("/y"));
        assert_eq!(at(&mount("8:2", "/", "/")), None);
        assert_eq!(at(&mount("8:1", "/houses/w/src/b", "/y")), None);
        assert_eq!(at(&own), None);
    }
}
