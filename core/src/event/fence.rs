//! The fence of a frame: what its write stands on, and all that a replay of authority reads.

use crate::generation::{Epoch, Generation};
use crate::id::SessionNo;

wire_enum! {
    /// What a write claims to stand on.
    pub enum FenceKind {
        /// Nothing: the store's own frames, and what an operator does.
        None = 0 "none",
        /// A write under a token.
        Write = 1 "write",
        /// A grant: a register or an adopt.
        Grant = 2 "grant",
        /// A write that stands on the epoch of a tree and no token.
        Claim = 3 "claim",
    }
}

/// The tree that a fence is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeFence {
    /// Its root.
    pub root: SessionNo,
    /// Its epoch once the frame is applied.
    pub epoch: Epoch,
}

/// The fence fields: first in the facts, at fixed width, so that a replay of authority reads nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fence {
    /// What the write claims.
    pub kind: FenceKind,
    /// The session named.
    pub session: Option<SessionNo>,
    /// The generation named with it.
    pub named: Option<Generation>,
    /// The generation granted.
    pub granted: Option<Generation>,
    /// The tree, where the frame is a grant of a child or changes an epoch or stands on one.
    pub tree: Option<TreeFence>,
}

impl Fence {
    /// A frame that claims nothing.
    pub const NONE: Self = Self {
        kind: FenceKind::None,
        session: None,
        named: None,
        granted: None,
        tree: None,
    };
}

impl Default for Fence {
    fn default() -> Self {
        Self::NONE
    }
}
