//! What a directory is, whatever it is called: device, inode and birth.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tenure_core::path::Inode;

/// The identity of what stands at `path`, not following a link.
///
/// # Errors
/// The system's answer.
pub(super) fn of(path: &Path) -> io::Result<Inode> {
    #[cfg(target_os = "linux")]
    match with_birth(path) {
        // Kernels before 4.11, and sandboxes that do not know the call.
        Err(rustix::io::Errno::NOSYS) => {}
        answer => return Ok(answer?),
    }
    let meta = path.symlink_metadata()?;
    Ok(Inode {
        device: meta.dev(),
        inode: meta.ino(),
        birth: None,
    })
}

#[cfg(target_os = "linux")]
fn with_birth(path: &Path) -> rustix::io::Result<Inode> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let seen = statx(CWD, path, flags, StatxFlags::INO | StatxFlags::BTIME)?;
    let told = StatxFlags::from_bits_retain(seen.stx_mask).contains(StatxFlags::BTIME);
    let birth = told.then(|| {
        let seconds = seen.stx_btime.tv_sec.saturating_mul(1_000_000_000);
        seconds.saturating_add(i64::from(seen.stx_btime.tv_nsec))
    });
    Ok(Inode {
        device: makedev(seen.stx_dev_major, seen.stx_dev_minor),
        inode: seen.stx_ino,
        birth,
    })
}
