//! A session: a durable identity whose number never changes while who acts for it does.

use alloc::vec::Vec;

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use crate::codec::plain::Plain;
use crate::disclosure::Presence;
use crate::generation::{Epoch, Generation};
use crate::holder::Bearing;
use crate::id::{DispatchNo, EnvelopeNo, GrantNo, Moment, SessionNo};
use crate::path::Scope;
use crate::seal::Seal;
use crate::text::{Symbol, Text};

use super::history::History;
use super::paged::Item;
use super::policy::Told;
use super::tree::{Tree, TreeStanding};

mod page;

/// Who a grant was made to, with the texts that people read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Holder {
    /// The record that can be judged.
    pub bearing: Bearing,
    /// On whose behalf.
    pub actor: Symbol,
    /// Name of the host.
    pub host_name: Symbol,
    /// claude, codex, gemini, ...
    pub engine: Option<Symbol>,
}

wire_enum! {
    /// How a generation came to be, or ended.
    pub enum Granted {
        /// By a register.
        Registered = 1 "registered",
        /// By an adopt.
        Adopted = 2 "adopted",
        /// By an adopt that was forced.
        Forced = 3 "forced",
        /// Not a grant: the session was retired.
        Retired = 4 "retired",
        /// Not a grant: the incarnation was raised.
        Raised = 5 "incarnation-raised",
        /// Not a grant: its tree was claimed, so that its token lapsed.
        Claimed = 6 "claimed",
        /// Not a grant: its tree was released.
        Released = 7 "released",
        /// Not a grant: the claim on its tree was rolled back.
        RolledBack = 8 "rolled-back",
    }
}

/// One change of who is current: kept so that whoever lost can be told who, when and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct GrantNote {
    /// The generation after it.
    pub generation: Generation,
    /// What it was.
    pub how: Granted,
    /// When.
    pub at: Moment,
    /// By whom.
    pub actor: Option<Symbol>,
    /// Why, where a reason was given.
    pub reason: Option<Symbol>,
}

/// The row of the newest grant that is not in its session any more. Its number says nothing of the session; states compare
/// what stands in the rows.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Earlier(pub Option<GrantNo>);

impl PartialEq for Earlier {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Earlier {}

/// Somewhere a session is at work.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Place {
    /// How that is known.
    pub source: Presence,
    /// The dispatch that declares it.
    pub dispatch: Option<DispatchNo>,
    /// Where it is.
    pub scope: Scope<Symbol>,
}

/// A holder that was superseded without proof of death, and may still be writing files.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Former {
    /// The generation it held.
    pub generation: Generation,
    /// Who it was.
    pub holder: Holder,
    /// Where it was at work when it was superseded. What its session does since says nothing about it.
    pub places: Vec<Place>,
}

/// A session.
///
/// What nearly every frame of a session looks at or changes stands first and together, on few lines of a processor's
/// cache: a replay meets sessions in any order, and waits for each line. How it is written down is another order.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub struct Session {
    /// The current generation.
    pub generation: Generation,
    /// The newest accepted event or refused contact.
    pub last_seen: Moment,
    /// The root of the tree that it is in: itself, unless it was delegated.
    pub root: SessionNo,
    /// The epoch of its tree that the current generation was granted under.
    pub epoch: Epoch,
    /// Whether it was given back.
    pub retired: bool,
    /// What it knows as a root.
    pub tree: Tree,
    /// Who the current generation was granted to, which of a root is who holds it and its tree; `None` after a
    /// raise, until somebody adopts.
    pub holder: Option<Holder>,
    /// Live dispatches, oldest first.
    pub open: Vec<DispatchNo>,
    /// Envelopes neither acknowledged nor cancelled, oldest first.
    pub inbox: Vec<EnvelopeNo>,
    /// The newest envelope that it acknowledged; `None` until it has acknowledged one.
    pub cursor: Option<EnvelopeNo>,
    /// What it recorded.
    pub history: History,
    /// The digest of the secret that the current generation was granted with; `None` where the store is not sealed.
    pub seal: Option<Seal>,
    /// Its name.
    pub name: Symbol,
    /// Names that it had before, oldest first; they still lead to it.
    pub aliases: Vec<Symbol>,
    /// The session that delegated it.
    pub parent: Option<SessionNo>,
    /// Labels, sorted by key.
    pub labels: Vec<(Symbol, Symbol)>,
    /// The first grant ever.
    pub registered_at: Moment,
    /// What it last said it is doing.
    pub status: Option<Text>,
    /// The checkout it works in.
    pub checkout: Option<Scope<Symbol>>,
    /// Paths it was seen to write under the current generation, oldest first.
    pub observed: Vec<Scope<Symbol>>,
    /// Former holders not proven dead.
    pub formers: Vec<Former>,
    /// The newest grants, retirements and raises, oldest first: all of them says `State::grants_of`.
    pub grants: Vec<GrantNote>,
    /// The newest of those before them.
    pub earlier: Earlier,
    /// Whom the current holder was shown, oldest first.
    pub told: Vec<Told>,
}

/// Writes and reads a session, field by field in this order; behind each, how a [page](mod@page) reads it.
macro_rules! written_as {
    ($($field:ident: $how:ident,)*) => {
        impl Session {
            /// Writes it without saying where earlier grants stand.
            pub(super) fn encode_whole<E: Encoder>(
                &self,
                encoder: &mut E,
            ) -> Result<(), EncodeError> {
                $(self.$field.encode(encoder)?;)*
                Ok(())
            }

            /// Reads what [`Session::encode_whole`] wrote.
            pub(super) fn decode_whole<D: Decoder>(decoder: &mut D) -> Result<Self, DecodeError> {
                $(let $field = Decode::decode(decoder)?;)*
                Ok(Self { $($field,)* earlier: Earlier(None) })
            }
        }

        impl Plain for Session {
            fn plain(bytes: &mut &[u8]) -> Option<Self> {
                $(let $field = page::$how(bytes)?;)*
                Some(Self { $($field,)* earlier: page::each(bytes)? })
            }
        }
    };
}

impl Encode for Session {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.encode_whole(encoder)?;
        self.earlier.encode(encoder)
    }
}

impl<C> Decode<C> for Session {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let session = Self::decode_whole(decoder)?;
        Ok(Self {
            earlier: Decode::decode(decoder)?,
            ..session
        })
    }
}

written_as! {
    name: each,
    aliases: list,
    generation: each,
    seal: each,
    retired: each,
    holder: each,
    root: each,
    parent: each,
    epoch: each,
    tree: each,
    labels: list,
    registered_at: each,
    last_seen: each,
    status: rare,
    checkout: rare,
    observed: rare,
    formers: rare,
    grants: list,
    told: rare,
    open: list,
    inbox: list,
    cursor: each,
    history: each,
}

impl Item for Session {
    const ROWS: usize = 16;

    fn read_page(bytes: &[u8]) -> Option<Vec<Self>> {
        page::read(bytes)
    }

    fn blank() -> Self {
        Self::unheld(Symbol::default(), SessionNo(0), Moment::default(), 0)
    }
}

impl Session {
    /// A session that nobody holds and of which nothing is known but its name and number.
    pub(crate) fn unheld(name: Symbol, number: SessionNo, at: Moment, incarnation: u64) -> Self {
        Self {
            name,
            aliases: Vec::new(),
            generation: Generation {
                incarnation,
                number: 0,
            },
            seal: None,
            retired: true,
            holder: None,
            root: number,
            parent: None,
            epoch: Epoch::FIRST,
            tree: Tree {
                standing: TreeStanding::Unowned,
                ..Tree::new()
            },
            labels: Vec::new(),
            registered_at: at,
            last_seen: at,
            status: None,
            checkout: None,
            observed: Vec::new(),
            formers: Vec::new(),
            grants: Vec::new(),
            earlier: Earlier(None),
            told: Vec::new(),
            open: Vec::new(),
            inbox: Vec::new(),
            cursor: None,
            history: History::default(),
        }
    }

    /// Whether the current holder was shown that generation of another session.
    #[must_use]
    pub fn knows(&self, peer: SessionNo, generation: Generation) -> bool {
        self.told
            .iter()
            .any(|told| told.peer == peer && told.generation == generation)
    }

    /// Since when the current generation is current.
    #[must_use]
    pub fn since(&self) -> Moment {
        self.grants.last().map_or(self.registered_at, |g| g.at)
    }
}
