//! Reading a page of sessions: what opening a store with a tail does most.
//!
//! The encoding is that of any other value. What nearly every session has is read here number by number, without the
//! questions that a decoder for all configurations asks at each; what few have is left to that decoder.

use alloc::vec::Vec;

use bincode::Decode;

use crate::codec::{split, split_number};
use crate::generation::{Epoch, Generation};
use crate::history::{HistoryHash, Point};
use crate::holder::{Bearing, BootId, HostId, Process, Source};
use crate::id::{DispatchNo, EnvelopeNo, Moment, Position, SessionNo, Time};
use crate::seal::Seal;
use crate::state::history::History;
use crate::state::tree::{Tree, TreeStanding};
use crate::text::Symbol;

use super::{GrantNote, Granted, Holder, Session};

/// The sessions of a page. `None` for bytes that are none, or that only the other decoder reads.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Session>> {
    let mut left = Left(bytes);
    let sessions = left.list(Left::session)?;
    left.0.is_empty().then_some(sessions)
}

/// What is left to be read.
struct Left<'b>(&'b [u8]);

impl Left<'_> {
    #[inline]
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = split_number(self.0)?;
        self.0 = rest;
        Some(number)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    #[inline]
    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    #[inline]
    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? {
            return read(self).map(Some);
        }
        Some(None)
    }

    #[inline]
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = usize::try_from(self.number()?).ok()?;
        // Each takes a byte at least.
        let mut list = Vec::with_capacity(len.min(self.0.len()));
        for _ in 0..len {
            list.push(read(self)?);
        }
        Some(list)
    }

    /// A list or an option that is empty in most sessions; both begin with a zero then.
    fn rare<T: Decode<()> + Default>(&mut self) -> Option<T> {
        if let Some((0, rest)) = self.0.split_first() {
            self.0 = rest;
            return Some(T::default());
        }
        let (value, rest) = split(self.0)?;
        self.0 = rest;
        Some(value)
    }

    fn symbol(&mut self) -> Option<Symbol> {
        Some(Symbol::of(u32::try_from(self.number()?).ok()?))
    }

    fn generation(&mut self) -> Option<Generation> {
        Some(Generation {
            incarnation: self.number()?,
            number: self.number()?,
        })
    }

    fn time(&mut self) -> Option<Time> {
        let number = self.number()?;
        // Signed numbers are written with their sign as the lowest bit.
        Some(Time(
            (number >> 1).cast_signed() ^ -((number & 1).cast_signed()),
        ))
    }

    fn moment(&mut self) -> Option<Moment> {
        Some(Moment {
            position: Position(self.number()?),
            time: self.time()?,
        })
    }

    fn process(&mut self) -> Option<Process> {
        Some(Process {
            pid: u32::try_from(self.number()?).ok()?,
            start: self.option(Self::number)?,
            pidns: self.option(Self::number)?,
            timens: self.option(Self::number)?,
            pidfs: self.option(Self::number)?,
            ancestor: self.flag()?,
            source: Source::from_number(self.byte()?)?,
        })
    }

    fn holder(&mut self) -> Option<Holder> {
        let bearing = Bearing {
            host: HostId(self.array()?),
            boot: self.option(|left| left.array().map(BootId))?,
            process: self.option(Self::process)?,
            uid: u32::try_from(self.number()?).ok()?,
            recorded: self.time()?,
        };
        Some(Holder {
            bearing,
            actor: self.symbol()?,
            host_name: self.symbol()?,
            engine: self.option(Self::symbol)?,
        })
    }

    fn tree(&mut self) -> Option<Tree> {
        Some(Tree {
            epoch: Epoch(self.number()?),
            standing: TreeStanding::from_number(self.byte()?)?,
            grown: self.flag()?,
            claimer: self.rare()?,
            members: self.list(|left| left.number().map(SessionNo))?,
            notes: self.rare()?,
        })
    }

    fn grant(&mut self) -> Option<GrantNote> {
        Some(GrantNote {
            generation: self.generation()?,
            how: Granted::from_number(self.byte()?)?,
            at: self.moment()?,
            actor: self.option(Self::symbol)?,
            reason: self.option(Self::symbol)?,
        })
    }

    fn point(&mut self) -> Option<Point> {
        Some(Point {
            position: Position(self.number()?),
            index: self.number()?,
            hash: HistoryHash(self.array()?),
        })
    }

    fn history(&mut self) -> Option<History> {
        Some(History {
            tip: self.option(Self::point)?,
            cut: self.option(Self::point)?,
            open: self.rare()?,
            reverts: self.rare()?,
            origin: self.rare()?,
            imported: self.rare()?,
        })
    }

    fn session(&mut self) -> Option<Session> {
        Some(Session {
            name: self.symbol()?,
            aliases: self.list(Self::symbol)?,
            generation: self.generation()?,
            seal: self.option(|left| left.array().map(Seal))?,
            retired: self.flag()?,
            holder: self.option(Self::holder)?,
            root: SessionNo(self.number()?),
            parent: self.option(|left| left.number().map(SessionNo))?,
            epoch: Epoch(self.number()?),
            tree: self.tree()?,
            labels: self.list(|left| Some((left.symbol()?, left.symbol()?)))?,
            registered_at: self.moment()?,
            last_seen: self.moment()?,
            status: self.rare()?,
            checkout: self.rare()?,
            observed: self.rare()?,
            formers: self.rare()?,
            grants: self.list(Self::grant)?,
            told: self.rare()?,
            open: self.list(|left| left.number().map(DispatchNo))?,
            inbox: self.list(|left| left.number().map(EnvelopeNo))?,
            cursor: self.option(|left| left.number().map(EnvelopeNo))?,
            history: self.history()?,
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
    use crate::history::{ActivityKind, Hidden};
    use crate::path::Scope;
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
            assert!((0..bytes.len()).all(|cut| read(&bytes[..cut]).is_none()));
            assert!(read(&[&bytes[..], &[0]].concat()).is_none());
        }
    }
}
