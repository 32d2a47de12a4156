//! Reading a page of sessions: what opening a store with a tail does most.
//!
//! The encoding is that of any other value. What nearly every session has is read the [plain](crate::codec::plain) way; what
//! few have is left to the decoder for everything.

use alloc::vec::Vec;

use bincode::Decode;

use crate::codec::plain::{self, Plain, fields};
use crate::codec::split;
use crate::generation::{Epoch, Generation};
use crate::history::Point;
use crate::holder::Bearing;
use crate::id::{GrantNo, Moment};
use crate::state::history::History;
use crate::state::tree::{Tree, TreeStanding};
use crate::text::Symbol;

use super::{Earlier, GrantNote, Granted, Holder, Session};

/// The sessions of a page. `None` for bytes that are none, or that only the other decoder reads.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Session>> {
    plain::page(bytes)
}

/// A value that every session has.
#[inline]
pub(super) fn each<T: Plain>(bytes: &mut &[u8]) -> Option<T> {
    T::plain(bytes)
}

/// A list that many sessions have something in.
#[inline]
pub(super) fn list<T: Plain>(bytes: &mut &[u8]) -> Option<Vec<T>> {
    let len = usize::try_from(u64::plain(bytes)?).ok()?;
    // Each takes a byte at least.
    let mut list = Vec::with_capacity(len.min(bytes.len()));
    for _ in 0..len {
        list.push(T::plain(bytes)?);
    }
    Some(list)
}

/// A list or an option that is empty in most sessions; both begin with a zero then.
pub(super) fn rare<T: Decode<()> + Default>(bytes: &mut &[u8]) -> Option<T> {
    if let Some((0, rest)) = bytes.split_first() {
        *bytes = rest;
        return Some(T::default());
    }
    let (value, rest) = split(bytes)?;
    *bytes = rest;
    Some(value)
}

fields! {
    Earlier { 0: Option<GrantNo>, }
    Holder { bearing: Bearing, actor: Symbol, host_name: Symbol, engine: Option<Symbol>, }
    GrantNote {
        generation: Generation,
        how: Granted,
        at: Moment,
        actor: Option<Symbol>,
        reason: Option<Symbol>,
    }
}

impl Plain for Tree {
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            epoch: Epoch::plain(bytes)?,
            standing: TreeStanding::plain(bytes)?,
            grown: bool::plain(bytes)?,
            claimer: rare(bytes)?,
            members: list(bytes)?,
            notes: rare(bytes)?,
        })
    }
}

impl Plain for History {
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            tip: Option::<Point>::plain(bytes)?,
            cut: Option::<Point>::plain(bytes)?,
            open: rare(bytes)?,
            reverts: rare(bytes)?,
            origin: rare(bytes)?,
            imported: rare(bytes)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec;

    use super::*;
    use crate::codec;
    use crate::disclosure::Presence;
    use crate::history::{ActivityKind, Hidden, HistoryHash};
    use crate::holder::{BootId, HostId, Process, Source};
    use crate::id::{DispatchNo, EnvelopeNo, Position, SessionNo, Time};
    use crate::path::Scope;
    use crate::seal::Seal;
    use crate::state::paged::Item;
    use crate::state::{Claimer, Former, ImportNote, OpenActivity, Origin, Place, Told, TreeNote};
    use crate::text::Text;

    fn holder(number: u64) -> Holder {
        let process = Process {
            pid: u32::MAX,
            start: Some(number << 40),
            pidns: Some(u64::MAX),
            timens: None,
            pidfs: Some(251),
            ancestor: true,
            source: Source::Declared,
        };
        Holder {
            bearing: Bearing {
                host: HostId([3; 16]),
                boot: (number > 1).then_some(BootId([9; 16])),
                process: (number > 0).then_some(process),
                uid: 70_000,
                recorded: Time(-5),
            },
            actor: Symbol::of(250),
            host_name: Symbol::of(251),
            engine: Some(Symbol::of(u32::MAX)),
        }
    }

    /// A history with everything in it that one may have.
    fn history(at: Moment, id: Text) -> History {
        let point = Point {
            position: Position(66_000),
            index: 1 << 33,
            hash: HistoryHash([5; 16]),
        };
        History {
            tip: Some(point),
            cut: Some(point),
            open: vec![OpenActivity {
                kind: ActivityKind::ALL[0],
                id,
                since: at,
            }],
            reverts: vec![Hidden {
                to: Position(1),
                marker: Position(2),
            }],
            origin: Some(Origin {
                source: SessionNo(1),
                at: Some(point),
                taken: at,
            }),
            imported: Some(ImportNote {
                from: Symbol::of(1),
                parent: Some(Symbol::of(2)),
                hash: HistoryHash([8; 16]),
                at,
            }),
        }
    }

    /// A session of which nothing is as in most.
    fn full() -> Session {
        let at = Moment {
            position: Position(u64::MAX),
            time: Time(i64::MIN),
        };
        let generation = Generation {
            incarnation: 7,
            number: 300,
        };
        let scope = Scope {
            path: Symbol::of(8),
            host: HostId([1; 16]),
            boot: None,
            anchors: Vec::new(),
            repository: None,
        };
        let place = Place {
            source: Presence::Observed,
            dispatch: Some(DispatchNo(4)),
            scope: scope.clone(),
        };
        let text = Text::from(&b"a text"[..]);
        let mut session = Session::blank();
        session.aliases = vec![Symbol::of(1), Symbol::of(2)];
        session.generation = generation;
        session.seal = Some(Seal([6; 16]));
        session.holder = Some(holder(2));
        session.parent = Some(SessionNo(3));
        session.tree.grown = true;
        session.tree.claimer = Some(Box::new(Claimer {
            holder: holder(1),
            since: at,
        }));
        session.tree.members = vec![SessionNo(9); 3];
        session.tree.notes = vec![TreeNote {
            epoch: Epoch(4),
            how: Granted::RolledBack,
            at,
            actor: None,
            reason: Some(Symbol::of(1)),
        }];
        session.labels = vec![(Symbol::of(1), Symbol::of(300))];
        session.last_seen = at;
        session.status = Some(text.clone());
        session.checkout = Some(scope.clone());
        session.observed = vec![scope];
        session.formers = vec![Former {
            generation,
            holder: holder(0),
            places: vec![place],
        }];
        session.grants = vec![GrantNote {
            generation,
            how: Granted::Forced,
            at,
            actor: Some(Symbol::of(1)),
            reason: Some(Symbol::of(2)),
        }];
        session.earlier = Earlier(Some(GrantNo(70_000)));
        session.told = vec![Told {
            peer: SessionNo(1),
            generation,
            at,
        }];
        session.open = vec![DispatchNo(251), DispatchNo(u64::MAX)];
        session.inbox = vec![EnvelopeNo(65_536)];
        session.cursor = Some(EnvelopeNo(1));
        session.history = history(at, text);
        session
    }

    /// Both ways of reading a page read the same, whatever is in it; bytes cut short are none.
    #[test]
    fn a_page_is_read_as_any_other_value_is() {
        let mut held = Session::blank();
        held.holder = Some(holder(1));
        for page in [vec![], vec![Session::blank()], vec![full(), held, full()]] {
            let bytes = codec::encode(&page).expect("it encodes");
            assert_eq!(read(&bytes), Some(page.clone()));
            assert_eq!(codec::decode(&bytes), Ok(page));
            let earlier = |page: Vec<Session>| -> Vec<_> {
                page.iter().map(|session| session.earlier.0).collect()
            };
            let decoded = codec::decode(&bytes).expect("it decodes");
            assert_eq!(read(&bytes).map(earlier), Some(earlier(decoded)));
            assert!((0..bytes.len()).all(|cut| read(&bytes[..cut]).is_none()));
            assert!(read(&[&bytes[..], &[0]].concat()).is_none());
        }
    }
}
