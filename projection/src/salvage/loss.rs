//! What lost frames may have been about: the parts of the loss report.

use tenure_core::generation::{Epoch, Generation};
use tenure_core::id::{DispatchNo, Position, RoleNo, SessionNo};
use tenure_core::state::{DispatchState, TreeStanding};

/// A session about which lost frames may have said something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionLoss {
    /// Its number.
    pub number: SessionNo,
    /// Its name, also where only a later frame has it; a made-up one where none does.
    pub name: String,
    /// Its generation as far as it was known before the loss; none when it was introduced in a lost frame.
    pub before: Option<Generation>,
    /// The newest generation that a frame behind the loss names; none when no frame does.
    pub seen: Option<Generation>,
}

impl SessionLoss {
    /// Whether a frame about it is certainly lost; otherwise one may be.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.before.is_none() || self.seen > self.before
    }
}

/// A dispatch about which lost frames may have said something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ItemLoss {
    /// Its number.
    pub dispatch: DispatchNo,
    /// Its item; none when the frame that gave it is lost.
    pub item: Option<String>,
    /// The session it was given to; none when the frame that gave it is lost.
    pub session: Option<String>,
    /// How it stood before the loss, and stands in the new store; none when the frame that gave it is lost.
    pub state: Option<DispatchState>,
}

/// A role about which lost frames may have said something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleLoss {
    /// Its number.
    pub number: RoleNo,
    /// Its name; none when no kept frame has it.
    pub role: Option<String>,
    /// Its scope; none when no kept frame has it.
    pub scope: Option<String>,
    /// The session that holds it, as far as is known.
    pub session: Option<String>,
    /// Its generation before the loss; none when it was first taken in a lost frame.
    pub before: Option<Generation>,
    /// The generation that a frame behind the loss names, where it does not follow that one.
    pub seen: Option<Generation>,
}

impl RoleLoss {
    /// Whether a frame about it is certainly lost; otherwise one may be.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.before.is_none() || self.seen.is_some()
    }
}

/// A tree of several sessions about which lost frames may have said something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeLoss {
    /// The number of its root.
    pub root: SessionNo,
    /// The name of its root, as in [`SessionLoss`].
    pub name: String,
    /// How it stands, as far as is known.
    pub standing: Option<TreeStanding>,
    /// Its epoch before the loss; none when its root was introduced in a lost frame.
    pub before: Option<Epoch>,
    /// The epoch that a frame behind the loss names, where it does not follow that one.
    pub seen: Option<Epoch>,
}

impl TreeLoss {
    /// Whether a frame about it is certainly lost; otherwise one may be.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.before.is_none() || self.seen.is_some()
    }
}

/// What is known of idempotency keys. One that was given in a lost frame is free again: what is asked with it is carried
/// out as if for the first time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyLoss {
    /// How many keys the kept frames bind.
    pub kept: u64,
    /// Keys that were certainly given in a lost frame: a later one found them taken.
    pub lost: Vec<LostKey>,
}

/// A key that was given in a lost frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostKey {
    /// Its digest, which is all that a log has of it: 16 bytes of BLAKE3 in the mode of deriving keys, with the context
    /// `tenure idempotency key v1`.
    pub digest: [u8; 16],
    /// The position of the lost frame.
    pub position: Position,
}
