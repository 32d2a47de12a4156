//! Write scopes: do two paths overlap?
//!
//! A scope is a canonical path with the identities (device, inode, birth) of the directories on it. Two
//! scopes of one host overlap when one path is inside the other by components (DSC-2), or when they share a
//! directory under different spellings (a bind mount, D16) and one remainder below it is inside the other.
//! Identities count only within one boot. Two scopes in different trees of one repository meet at the second
//! level: they share refs, stash and branches (D07, DSC-8).

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::holder::{BootId, HostId};

/// Identity of a directory or file that exists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub struct Inode {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Birth time in nanoseconds since 1970, where the file system tells one; tells a recycled inode.
    pub birth: Option<i64>,
}

/// A directory on a scope's path: its identity and how many components of the path lead to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Anchor {
    /// Which directory.
    pub inode: Inode,
    /// Components of the canonical path that are above or at it.
    pub depth: u32,
}

/// A write scope. `P` is how its path is named: a text of a frame, or a symbol of a state.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Scope<P> {
    /// The canonical path (bytes, absolute, no `.`, `..`, doubled or trailing separators).
    pub path: P,
    /// The host whose path it is; equal paths on different hosts do not overlap (DSC-13).
    pub host: HostId,
    /// The boot in which the identities were read.
    pub boot: Option<BootId>,
    /// Identities of the existing part of the path, nearest the root first.
    pub anchors: Vec<Anchor>,
    /// The common git directory, for a path inside a checkout.
    pub repository: Option<Repository<P>>,
}

/// The repository that a checkout belongs to.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Repository<P> {
    /// Canonical path of the common git directory.
    pub common: P,
    /// Its identity.
    pub inode: Option<Inode>,
    /// Canonical path of the checkout's top directory.
    pub top: P,
}

impl<P> Scope<P> {
    /// The same scope with its paths named otherwise.
    pub fn map<Q>(&self, mut name: impl FnMut(&P) -> Q) -> Scope<Q> {
        Scope {
            path: name(&self.path),
            host: self.host,
            boot: self.boot,
            anchors: self.anchors.clone(),
            repository: self.repository.as_ref().map(|r| Repository {
                common: name(&r.common),
                inode: r.inode,
                top: name(&r.top),
            }),
        }
    }
}

wire_enum! {
    /// How two scopes meet.
    pub enum Level {
        /// The same files.
        Tree = 1 "tree",
        /// The same repository, other files: shared refs, stash and branches.
        Repository = 2 "repository",
    }
}

/// The components of a canonical path.
fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|b| *b == b'/').filter(|c| !c.is_empty())
}

/// Whether one path is equal to or inside the other, by components: `/w/a` and `/w/a-site` are strangers.
#[must_use]
pub fn nested(a: &[u8], b: &[u8]) -> bool {
    components(a).zip(components(b)).all(|(x, y)| x == y)
}

/// Whether the parts of two paths below `a_depth` and `b_depth` components are nested.
fn nested_below(a: &[u8], a_depth: u32, b: &[u8], b_depth: u32) -> bool {
    components(a)
        .skip(a_depth as usize)
        .zip(components(b).skip(b_depth as usize))
        .all(|(x, y)| x == y)
}

/// How two scopes meet, if they do. Both name their paths in the same pool, `text`.
pub fn overlap<'t, P: Copy + Eq>(
    a: &Scope<P>,
    b: &Scope<P>,
    text: impl Fn(P) -> &'t [u8],
) -> Option<Level> {
    if a.host != b.host {
        return None;
    }
    if nested(text(a.path), text(b.path)) {
        return Some(Level::Tree);
    }
    let same_boot = a.boot.is_some() && a.boot == b.boot;
    if same_boot && meet_by_identity(a, b, text(a.path), text(b.path)) {
        return Some(Level::Tree);
    }
    match (&a.repository, &b.repository) {
        (Some(x), Some(y)) => {
            let same_path = text(x.common) == text(y.common);
            let same_inode = same_boot && x.inode.is_some() && x.inode == y.inode;
            // One checkout, disjoint files: not an overlap. Two checkouts of one repository: second level.
            let same_top = text(x.top) == text(y.top);
            ((same_path || same_inode) && !same_top).then_some(Level::Repository)
        }
        _ => None,
    }
}

fn meet_by_identity<P>(a: &Scope<P>, b: &Scope<P>, a_path: &[u8], b_path: &[u8]) -> bool {
    a.anchors.iter().any(|x| {
        b.anchors
            .iter()
            .any(|y| x.inode == y.inode && nested_below(a_path, x.depth, b_path, y.depth))
    })
}
