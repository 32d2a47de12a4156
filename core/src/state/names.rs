//! Which session a name leads to.

use alloc::vec::Vec;

use crate::codec::plain;
use crate::id::SessionNo;
use crate::text::Symbol;

use super::paged::{Item, Paged};

/// Sessions by the number of a name: dense, since most texts of a pool are names.
#[derive(Clone, Default, Debug)]
pub(super) struct Names(pub Paged<Option<SessionNo>>);

impl Item for Option<SessionNo> {
    const ROWS: usize = 256;

    fn read_page(bytes: &[u8]) -> Option<Vec<Self>> {
        plain::page(bytes)
    }

    fn blank() -> Self {
        None
    }
}

impl Names {
    /// The session of a name.
    pub fn get(&self, name: Symbol) -> Option<SessionNo> {
        self.0.get(name.index()).copied().flatten()
    }

    /// From now on the name leads to that session, or to none.
    pub fn set(&mut self, name: Symbol, session: Option<SessionNo>) {
        while self.0.len() <= name.index() {
            self.0.push(None);
        }
        self.0[name.index()] = session;
    }
}

/// Equal names lead to equal sessions, whatever other texts there are.
impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        let longest = self.0.len().max(other.0.len());
        let of = |names: &Self, n| names.0.get(n).copied().flatten();
        (0..longest).all(|n| of(self, n) == of(other, n))
    }
}
