//! Bugs that can be planted, to show that a rig sees them (`docs/reliability.md`): without `cfg(tenure_zoo)` nothing of
//! them is compiled. One file, which is a part of each crate: none of them has to have a public item for it.

#[cfg(all(tenure_zoo, not(debug_assertions)))]
compile_error!("bugs are planted in builds with debug assertions only");

/// Whether this bug is the one that is planted.
#[cfg(not(tenure_zoo))]
#[inline(always)]
pub(crate) const fn planted(_bug: &str) -> bool {
    false
}

/// Whether this bug is the one that is planted: the environment names it.
#[cfg(tenure_zoo)]
pub(crate) fn planted(bug: &str) -> bool {
    static PLANTED: std::sync::OnceLock<Option<std::ffi::OsString>> = std::sync::OnceLock::new();
    let planted = PLANTED.get_or_init(|| std::env::var_os("PLANTED_BUG"));
    planted.as_ref().is_some_and(|planted| planted == bug)
}
