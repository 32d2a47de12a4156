//! Write scopes: do two paths overlap?
//!
//! A scope is a canonical path with the identities (device, inode, birth) of the directories on it. Two
//! scopes of one host overlap when one path is inside the other by components (DSC-2), or when they share a
//! directory under different spellings (a bind mount, D16) and one remainder below it is inside the other.
//! Identities count only within one boot, and prove something only where the birth time is known. Two scopes in different trees of one repository meet at the second
//! level: they share refs, stash and branches (D07, DSC-8).

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::holder::{BootId, HostId};
use crate::zoo::planted;

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

impl Repository<&[u8]> {
    /// The common git directory of the superproject, for a submodule whose own stands in it (D11): git puts it at
    /// `modules/NAME` there, or in the part of it that belongs to a linked worktree. `None` for anything else.
    #[must_use]
    pub fn superproject(&self) -> Option<&[u8]> {
        let git = &self.common[..last(self.common, b"/modules/")?];
        let git = match last(git, b"/worktrees/") {
            Some(at) if !git[at + b"/worktrees/".len()..].contains(&b'/') => &git[..at],
            _ => git,
        };
        let is_git = git.ends_with(b"/.git") || last(git, b"/.git/modules/").is_some();
        is_git.then_some(git)
    }
}

/// Where `part` begins for the last time.
fn last(path: &[u8], part: &[u8]) -> Option<usize> {
    path.windows(part.len()).rposition(|window| window == part)
}

impl<P> Scope<P> {
    /// The same scope with its paths borrowed.
    pub fn by_ref(&self) -> Scope<&P> {
        Scope {
            path: &self.path,
            host: self.host,
            boot: self.boot,
            anchors: self.anchors.clone(),
            repository: self.repository.as_ref().map(|r| Repository {
                common: &r.common,
                inode: r.inode,
                top: &r.top,
            }),
        }
    }

    /// The same scope with its paths named otherwise.
    pub fn map<'s, Q>(&'s self, mut name: impl FnMut(&'s P) -> Q) -> Scope<Q> {
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
    if planted("overlap-by-prefix") {
        return a.starts_with(b) || b.starts_with(a);
    }
    components(a).zip(components(b)).all(|(x, y)| x == y)
}

/// Whether `path` is `dir` or below it, by components.
#[must_use]
pub fn is_in(dir: &[u8], path: &[u8]) -> bool {
    depth(dir) <= depth(path) && nested(dir, path)
}

/// Whether the parts of two paths below `a_depth` and `b_depth` components are nested.
fn nested_below(a: &[u8], a_depth: u32, b: &[u8], b_depth: u32) -> bool {
    components(a)
        .skip(a_depth as usize)
        .zip(components(b).skip(b_depth as usize))
        .all(|(x, y)| x == y)
}

/// Marks an anchor that is not on the path: a directory that holds it where the same files are mounted elsewhere.
pub const AROUND: u32 = u32::MAX;

/// How and how surely two scopes meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meeting {
    /// How near.
    pub level: Level,
    /// Whether it is certain; one that is not is disclosed, and refuses nothing.
    pub certain: bool,
    /// Whether the second scope is the deeper of the two: where they meet.
    pub second_is_deeper: bool,
}

impl Meeting {
    fn tree(certain: bool, second_is_deeper: bool) -> Self {
        Self {
            level: Level::Tree,
            certain,
            second_is_deeper,
        }
    }
}

/// How many components a path has.
fn depth(path: &[u8]) -> u32 {
    u32::try_from(components(path).count()).unwrap_or(AROUND - 1)
}

impl<P> Scope<P> {
    /// The identity of what the path itself names, if that is a directory.
    fn own(&self, path: &[u8]) -> Option<Inode> {
        let depth = depth(path);
        let own = self.anchors.iter().find(|a| a.depth == depth);
        own.map(|a| a.inode)
    }
}

/// How two scopes meet, if they do. Both name their paths in the same pool, `text`.
pub fn overlap<'t, P: Copy + Eq>(
    a: &Scope<P>,
    b: &Scope<P>,
    text: impl Fn(P) -> &'t [u8],
) -> Option<Level> {
    meet(&a.map(|p| text(*p)), &b.map(|p| text(*p))).map(|meeting| meeting.level)
}

/// How two scopes of one host meet, if they do: the table of `docs/disclosure.md`.
#[must_use]
pub fn meet(a: &Scope<&[u8]>, b: &Scope<&[u8]>) -> Option<Meeting> {
    if a.host != b.host {
        return None;
    }
    let same_boot = a.boot.is_some() && a.boot == b.boot;
    if nested(a.path, b.path) {
        let certain = same_boot && !contradict(a, b);
        return Some(Meeting::tree(certain, depth(b.path) > depth(a.path)));
    }
    if same_boot && let Some(meeting) = by_identity(a, b).or_else(|| around(a, b)) {
        return Some(meeting);
    }
    match (&a.repository, &b.repository) {
        (Some(x), Some(y)) => {
            let same_inode = same_boot && x.inode.is_some() && x.inode == y.inode;
            // One checkout, disjoint files: not an overlap. Two checkouts of one repository: second level.
            let meets = (x.common == y.common || same_inode) && x.top != y.top;
            meets.then_some(Meeting {
                level: Level::Repository,
                certain: false,
                second_is_deeper: false,
            })
        }
        _ => None,
    }
}

/// Whether both are in the same place on different hosts, by their paths alone.
#[must_use]
pub fn meet_elsewhere(a: &Scope<&[u8]>, b: &Scope<&[u8]>) -> Option<Meeting> {
    nested(a.path, b.path).then(|| Meeting::tree(false, depth(b.path) > depth(a.path)))
}

/// Whether a directory on both paths is another one than it was: it was replaced, or something is mounted there.
fn contradict<P>(a: &Scope<P>, b: &Scope<P>) -> bool {
    a.anchors.iter().any(|x| {
        let same_depth = |y: &&Anchor| y.depth == x.depth && x.depth != AROUND;
        b.anchors
            .iter()
            .find(same_depth)
            .is_some_and(|y| y.inode != x.inode)
    })
}

/// A directory of both, by different paths.
fn by_identity(a: &Scope<&[u8]>, b: &Scope<&[u8]>) -> Option<Meeting> {
    let on_path = |anchors: &[Anchor]| {
        let on_path = anchors.iter().filter(|a| a.depth != AROUND);
        on_path.copied().collect::<Vec<_>>()
    };
    let (xs, ys) = (on_path(&a.anchors), on_path(&b.anchors));
    let pairs = xs.iter().flat_map(|x| ys.iter().map(move |y| (x, y)));
    pairs
        .filter(|(x, y)| x.inode == y.inode && nested_below(a.path, x.depth, b.path, y.depth))
        .map(|(x, y)| {
            let below = |path: &[u8], above: u32| depth(path).saturating_sub(above);
            Meeting::tree(
                x.inode.birth.is_some(),
                below(b.path, y.depth) > below(a.path, x.depth),
            )
        })
        .max_by_key(|meeting| meeting.certain)
}

/// One is a directory that holds the other where the same files are mounted elsewhere (D16).
fn around(a: &Scope<&[u8]>, b: &Scope<&[u8]>) -> Option<Meeting> {
    let holds = |outer: &Scope<&[u8]>, inner: &Scope<&[u8]>| {
        let own = outer.own(outer.path)?;
        let held = |anchor: &Anchor| anchor.depth == AROUND && anchor.inode == own;
        inner
            .anchors
            .iter()
            .any(held)
            .then_some(own.birth.is_some())
    };
    holds(a, b)
        .map(|certain| Meeting::tree(certain, true))
        .or_else(|| holds(b, a).map(|certain| Meeting::tree(certain, false)))
}

/// Whether both are one place, whatever they are called.
#[must_use]
pub fn same_place(a: &Scope<&[u8]>, b: &Scope<&[u8]>) -> bool {
    let same_boot = a.boot.is_some() && a.boot == b.boot;
    let one = |x: Inode, y: Inode| x == y && x.birth.is_some();
    let identical = || matches!((a.own(a.path), b.own(b.path)), (Some(x), Some(y)) if one(x, y));
    let same_path = components(a.path).eq(components(b.path));
    a.host == b.host && (same_path || same_boot && identical())
}

/// Whether `inner` is in or below `outer`; how many components lead to `outer`.
#[must_use]
pub fn contains(outer: &Scope<&[u8]>, inner: &Scope<&[u8]>) -> Option<u32> {
    let length = depth(outer.path);
    let below = is_in(outer.path, inner.path);
    let same_boot = outer.boot.is_some() && outer.boot == inner.boot;
    let by_identity = || {
        let own = outer.own(outer.path).filter(|own| own.birth.is_some());
        own.is_some_and(|own| inner.anchors.iter().any(|a| a.inode == own))
    };
    let meets = outer.host == inner.host && (below || same_boot && by_identity());
    meets.then_some(length)
}
