//! Changes of who is current: the newest stand in their session, and those before in rows of their own, so that a session
//! costs no more the longer it lives.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use crate::codec::plain::{self, fields};
use crate::generation::Generation;
use crate::id::{GrantNo, Moment, Position, SessionNo, Time};
use crate::text::Symbol;

use super::paged::Item;
use super::table::{Row, Sink, pack_words, unpack_words};
use super::{GrantNote, Granted, Session, State};

/// Changes that stand in their session at most: what is asked of one that lost is nearly always about the newest.
pub(crate) const NEAR_MAX: usize = 8;

/// So many are moved at a time.
const MOVED: usize = NEAR_MAX / 2;

/// A change of who is current that newer ones pushed out of its session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct GrantRow {
    /// What it was.
    pub note: GrantNote,
    /// The row of the one before it, of the same session.
    pub before: Option<GrantNo>,
}

fields! {
    GrantRow { note: GrantNote, before: Option<GrantNo>, }
}

impl Item for GrantRow {
    const ROWS: usize = 32;

    fn read_page(bytes: &[u8]) -> Option<Vec<Self>> {
        plain::page(bytes)
    }

    fn blank() -> Self {
        Self {
            note: GrantNote {
                generation: Generation {
                    incarnation: 0,
                    number: 0,
                },
                how: Granted::Registered,
                at: Moment::default(),
                actor: None,
                reason: None,
            },
            before: None,
        }
    }
}

/// Beside the number of how it came about: whether there is an actor, and whether there is a reason.
const ACTOR: u64 = 1 << 8;
const REASON: u64 = 1 << 9;

impl Row for GrantRow {
    const BYTES: usize = 56;

    fn pack(&self, out: &mut Vec<u8>) {
        let note = &self.note;
        let bit = |symbol: Option<Symbol>, bit| symbol.map_or(0, |_| bit);
        let number = |symbol: Option<Symbol>| symbol.map_or(0, |symbol| symbol.index() as u64);
        let words = [
            self.before.map_or(0, |before| before.0 + 1),
            note.generation.incarnation,
            note.generation.number,
            u64::from(note.how.number()) | bit(note.actor, ACTOR) | bit(note.reason, REASON),
            note.at.position.0,
            note.at.time.0.cast_unsigned(),
            number(note.actor) | number(note.reason) << 32,
        ];
        pack_words(&words, out);
    }

    fn unpack(bytes: &[u8]) -> Option<Self> {
        let [before, incarnation, number, how, position, time, symbols] = unpack_words(bytes);
        let symbol = |bit, number: u64| (how & bit != 0).then_some(Symbol::of(number as u32));
        Some(Self {
            note: GrantNote {
                generation: Generation {
                    incarnation,
                    number,
                },
                how: Granted::from_number(u8::try_from(how & !(ACTOR | REASON)).ok()?)?,
                at: Moment {
                    position: Position(position),
                    time: Time(time.cast_signed()),
                },
                actor: symbol(ACTOR, symbols),
                reason: symbol(REASON, symbols >> 32),
            },
            before: before.checked_sub(1).map(GrantNo),
        })
    }
}

impl State {
    /// Notes what became of who is current in a session; nothing for a number never given.
    pub(crate) fn note_grant(&mut self, number: SessionNo, note: GrantNote) {
        let Some(session) = self.sessions.get_mut(number.index()) else {
            return;
        };
        if session.grants.len() >= NEAR_MAX {
            for note in session.grants.drain(..MOVED) {
                let before = session.earlier.0;
                session.earlier.0 = Some(GrantNo(self.grants.len() as u64));
                self.grants.push(GrantRow { note, before });
            }
        }
        session.grants.push(note);
    }

    /// Every grant, retirement and raise of a session, oldest first; none for a number never given.
    #[must_use]
    pub fn grants_of(&self, number: SessionNo) -> Vec<GrantNote> {
        let Some(session) = self.session(number) else {
            return Vec::new();
        };
        let mut all: Vec<GrantNote> = session.grants.iter().rev().copied().collect();
        let mut next = session.earlier.0;
        while let Some(number) = next
            && let Some(row) = self.grants.get(number.index())
        {
            all.push(row.note);
            next = row.before.filter(|before| *before < number);
        }
        all.reverse();
        all
    }

    /// The same session, with all its grants in itself.
    fn whole(&self, number: usize, session: &Session) -> Session {
        Session {
            grants: self.grants_of(SessionNo(number as u64)),
            ..session.clone()
        }
    }

    /// Writes the sessions down with all their grants, wherever they stand: what a digest of a state is made of.
    pub(super) fn encode_sessions<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        (self.sessions.len() as u64).encode(encoder)?;
        for (number, session) in self.sessions.iter().enumerate() {
            match session.earlier.0 {
                Some(_) => self.whole(number, session).encode_whole(encoder)?,
                None => session.encode_whole(encoder)?,
            }
        }
        Ok(())
    }

    /// Reads what [`State::encode_sessions`] wrote.
    pub(super) fn decode_sessions<D: Decoder>(
        &mut self,
        decoder: &mut D,
    ) -> Result<(), DecodeError> {
        for number in 0..u64::decode(decoder)? {
            let mut session = Session::decode_whole(decoder)?;
            let grants = core::mem::take(&mut session.grants);
            self.sessions.push(session);
            let number = SessionNo(number);
            grants
                .into_iter()
                .for_each(|note| self.note_grant(number, note));
        }
        Ok(())
    }

    /// Whether every session of both has the same grants.
    pub(super) fn grants_are(&self, other: &Self) -> bool {
        let all = |state: &Self, number| state.grants_of(SessionNo(number as u64));
        (0..self.sessions.len()).all(|number| all(self, number) == all(other, number))
    }

    /// Has what is hardly ever asked for again put away as it comes, instead of keeping it in memory. What a state says
    /// does not depend on it.
    pub fn put_away_in(&mut self, sink: &Arc<dyn Sink>) {
        self.dispatches.put_away_in(sink);
        self.envelopes.put_away_in(sink);
        self.grants.put_away_in(sink);
        self.refusals.put_away_in(sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_packed() {
        let note = GrantNote {
            generation: Generation {
                incarnation: 3,
                number: u64::MAX,
            },
            how: Granted::RolledBack,
            at: Moment {
                position: Position(1 << 50),
                time: Time(-7),
            },
            actor: Some(Symbol::of(u32::MAX)),
            reason: Some(Symbol::of(0)),
        };
        let before = Some(GrantNo(0));
        let (actor, reason) = (note.actor, note.reason);
        for (actor, reason) in [(actor, reason), (None, reason), (actor, None), (None, None)] {
            let note = GrantNote {
                actor,
                reason,
                ..note
            };
            for row in [GrantRow { note, before }, GrantRow { note, before: None }] {
                let mut bytes = Vec::new();
                row.pack(&mut bytes);
                assert_eq!(bytes.len(), GrantRow::BYTES);
                assert_eq!(GrantRow::unpack(&bytes), Some(row));
            }
        }
        assert_eq!(GrantRow::unpack(&[0xff; 56]), None);
    }
}
