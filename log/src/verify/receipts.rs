//! Receipts held outside of the store, against its frames: the one way to see a rollback or a rewritten history.

use std::collections::BTreeMap;

use crate::position::{Chain, Head, Position, Receipt, StoreId};

/// What became of the frame a receipt was given for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReceiptState {
    /// It stands where it stood.
    Kept,
    /// Another frame stands there: the history was rewritten, or went another way behind a restore.
    Differs {
        /// The chain found at the receipt's position.
        found: Chain,
    },
    /// The log ends before it: the store was rolled back, or what was acknowledged was lost.
    Ahead {
        /// Where the log ends.
        head: Position,
    },
    /// No good frame stands there, and the log goes on behind it or could not be judged.
    Unreadable,
    /// It was given by another store.
    OtherStore {
        /// The store looked at.
        found: StoreId,
    },
}

/// Remembers the chains at the positions that receipts name.
#[derive(Debug, Default)]
pub(super) struct Witness {
    found: BTreeMap<Position, Option<Chain>>,
}

impl Witness {
    pub(super) fn of(receipts: &[Receipt]) -> Witness {
        Witness {
            found: receipts
                .iter()
                .map(|receipt| (receipt.position, None))
                .collect(),
        }
    }

    pub(super) fn see(&mut self, head: Head) {
        if let Some(chain) = self.found.get_mut(&head.position) {
            *chain = Some(head.chain);
        }
    }

    /// Takes over what was seen behind: where both saw a frame at a position, the later one counts.
    pub(super) fn take_over(&mut self, behind: Witness) {
        for (position, chain) in behind.found {
            if chain.is_some() {
                self.found.insert(position, chain);
            }
        }
    }

    pub(super) fn judge(
        &self,
        receipt: &Receipt,
        store: Option<StoreId>,
        head: Option<Position>,
    ) -> ReceiptState {
        let found = self.found.get(&receipt.position).copied().flatten();
        match (store, found, head) {
            (Some(found), ..) if found != receipt.store => ReceiptState::OtherStore { found },
            (_, Some(chain), _) if chain == receipt.chain => ReceiptState::Kept,
            (_, Some(found), _) => ReceiptState::Differs { found },
            (_, None, Some(head)) if head < receipt.position => ReceiptState::Ahead { head },
            _ => ReceiptState::Unreadable,
        }
    }
}
