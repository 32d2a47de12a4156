//! A state as it is written down: whole, as digests are made of it; and in pages, as snapshots keep it.
//!
//! Both say the same. What is large stands in pages ([`Paged`]), which are read when an item of one is asked for;
//! the rest, and the directory of the pages, is read at once.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use crate::codec;
use crate::id::{RoleNo, SessionNo};
use crate::text::{Pool, Symbol};

use super::names::Names;
use super::paged::{Directory, Layout, Paged, Shelf};
use super::{Live, State, Table, Touched, lost};

impl Encode for State {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.at.encode(encoder)?;
        self.incarnation.encode(encoder)?;
        self.pool.encode(encoder)?;
        self.encode_sessions(encoder)?;
        self.dispatches.encode(encoder)?;
        self.live.encode(encoder)?;
        self.envelopes.encode(encoder)?;
        self.refusals.encode(encoder)?;
        Rest(self).encode(encoder)
    }
}

/// Sessions are compared with all their grants, wherever these stand.
impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            at,
            incarnation,
            sealed,
            pool,
            sessions,
            by_name,
            dispatches,
            live,
            envelopes,
            refusals,
            touched: _,
            grants: _,
            roles,
            by_role,
            policies,
            blocked,
            findings,
            dishonoured,
            set_aside,
            unproven,
            unknown,
        } = self;
        (*at, *incarnation, *sealed, *unknown)
            == (other.at, other.incarnation, other.sealed, other.unknown)
            && *pool == other.pool
            && *sessions == other.sessions
            && self.grants_are(other)
            && *by_name == other.by_name
            && *dispatches == other.dispatches
            && *live == other.live
            && *envelopes == other.envelopes
            && *refusals == other.refusals
            && (roles, by_role, policies) == (&other.roles, &other.by_role, &other.policies)
            && (blocked, findings) == (&other.blocked, &other.findings)
            && (dishonoured, set_aside) == (&other.dishonoured, &other.set_aside)
            && *unproven == other.unproven
    }
}

/// What is never in pages.
struct Rest<'a>(&'a State);

impl Encode for Rest<'_> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let state = self.0;
        state.sealed.encode(encoder)?;
        state.roles.encode(encoder)?;
        state.policies.encode(encoder)?;
        state.blocked.encode(encoder)?;
        state.findings.encode(encoder)?;
        state.dishonoured.encode(encoder)?;
        state.set_aside.encode(encoder)?;
        lost::encode(&state.unproven, encoder)?;
        state.unknown.encode(encoder)
    }
}

impl State {
    fn decode_rest<D: Decoder>(&mut self, decoder: &mut D) -> Result<(), DecodeError> {
        self.sealed = Decode::decode(decoder)?;
        self.roles = Decode::decode(decoder)?;
        self.policies = Decode::decode(decoder)?;
        self.blocked = Decode::decode(decoder)?;
        self.findings = Decode::decode(decoder)?;
        self.dishonoured = Decode::decode(decoder)?;
        self.set_aside = Decode::decode(decoder)?;
        (self.unproven, self.unknown) = lost::decode(decoder)?;
        let names: Vec<Symbol> = self.roles.iter().map(|role| role.name).collect();
        for (n, name) in names.into_iter().enumerate() {
            self.index_role(name, RoleNo(n as u64));
        }
        Ok(())
    }
}

impl Decode<()> for State {
    fn decode<D: Decoder<Context = ()>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let mut state = Self {
            at: Decode::decode(decoder)?,
            incarnation: Decode::decode(decoder)?,
            pool: Decode::decode(decoder)?,
            ..Self::default()
        };
        state.decode_sessions(decoder)?;
        state.dispatches = Decode::decode(decoder)?;
        state.live = Decode::decode(decoder)?;
        state.envelopes = Decode::decode(decoder)?;
        state.refusals = Decode::decode(decoder)?;
        state.decode_rest(decoder)?;
        let records = state.refusals.iter().enumerate().skip(1);
        let open = records.filter(|(_, record)| state.is_open(record));
        state.touched = Touched::of(open.map(|(n, _)| n as u64));
        for (n, session) in state.sessions.iter().enumerate() {
            for name in session.aliases.iter().chain([&session.name]) {
                state.by_name.set(*name, Some(SessionNo(n as u64)));
            }
        }
        Ok(state)
    }
}

impl State {
    /// The state as it is now, to be written down while this one goes on: what is large is shared, and copied page by
    /// page when it is written to.
    #[must_use]
    pub fn share(&mut self) -> Self {
        self.pool.share();
        self.sessions.share();
        self.by_name.0.share();
        self.dispatches.share();
        self.envelopes.share();
        self.refusals.share();
        self.grants.share();
        self.clone()
    }

    /// Writes the state down in pages. Equal states of one log are written as equal bytes.
    ///
    /// # Errors
    /// When a page of a snapshot cannot be had any more, or one is too long.
    pub fn lay_out(&self) -> Result<Layout, codec::Error> {
        let mut layout = Layout::default();
        self.lay_out_in(&mut layout)
            .map_err(codec::Error::encoding)?;
        Ok(layout)
    }

    fn lay_out_in(&self, layout: &mut Layout) -> Result<(), EncodeError> {
        layout.note(self.at)?;
        layout.note(self.incarnation)?;
        self.pool.lay_out(layout)?;
        self.sessions
            .lay_out_noting(layout, |session| !self.may_be_at_work(session))?;
        self.by_name.0.lay_out(layout)?;
        self.dispatches.lay_out(layout)?;
        self.live.lay_out(layout)?;
        self.envelopes.lay_out(layout)?;
        self.refusals.lay_out(layout)?;
        self.grants.lay_out(layout)?;
        let open = self.open_records().map(|(number, _)| number.0);
        layout.note(open.collect::<Vec<u64>>())?;
        layout.note(Rest(self))
    }

    /// Reads what [`State::lay_out`] wrote, and how many bytes its pages take, which stand on `shelf`.
    ///
    /// # Errors
    /// For any other bytes than the head of a layout.
    pub fn find_again(head: &[u8], shelf: Arc<dyn Shelf>) -> Result<(Self, u64), codec::Error> {
        codec::read_with(head, |decoder| {
            let mut found = Directory::of(shelf);
            let mut state = Self {
                at: Decode::decode(decoder)?,
                incarnation: Decode::decode(decoder)?,
                pool: Pool::find_again(decoder, &mut found)?,
                sessions: Paged::find_again(decoder, &mut found)?,
                by_name: Names(Paged::find_again(decoder, &mut found)?),
                dispatches: Table::find_again(decoder, &mut found)?,
                live: Live::find_again(decoder, &mut found)?,
                envelopes: Table::find_again(decoder, &mut found)?,
                refusals: Paged::find_again(decoder, &mut found)?,
                grants: Table::find_again(decoder, &mut found)?,
                touched: Touched::of(Vec::<u64>::decode(decoder)?.into_iter()),
                ..Self::default()
            };
            state.decode_rest(decoder)?;
            Ok((state, found.bytes()))
        })
    }
}

#[cfg(test)]
mod tests;
