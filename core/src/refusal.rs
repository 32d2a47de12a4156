//! Refusals: a command that was not carried out, with what was presented, what is current, who holds it and
//! what may be done next. A refusal is normal; it is not an error.

use alloc::string::String;
use alloc::vec::Vec;

use crate::holder::{Proof, Verdict};
use crate::id::{Moment, Position, SessionNo};
use crate::state::{Holder, RefusalKey};

macro_rules! codes {
    ($($(#[$meta:meta])* $variant:ident = $number:literal $word:literal exit $exit:literal,)*) => {
        /// Why a command was refused. The number is recorded, the word is printed, the exit code is returned
        /// by the command line: one table for all three.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Code { $($(#[$meta])* $variant,)* }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The recorded number.
            #[must_use]
            pub fn number(self) -> u16 { match self { $(Self::$variant => $number,)* } }

            /// The code with that number.
            #[must_use]
            pub fn from_number(number: u16) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }

            /// The printed word.
            #[must_use]
            pub fn as_str(self) -> &'static str { match self { $(Self::$variant => $word,)* } }

            /// The exit code of the command line.
            #[must_use]
            pub fn exit(self) -> u8 { match self { $(Self::$variant => $exit,)* } }
        }
    };
}

codes! {
    /// The generation was superseded.
    StaleGeneration = 1 "stale-generation" exit 10,
    /// The generation was never granted.
    NeverIssued = 2 "never-issued" exit 10,
    /// The session was retired at this generation.
    Retired = 3 "retired" exit 10,
    /// The item has a live dispatch.
    DuplicateItem = 4 "duplicate-item" exit 11,
    /// The key was used for another command.
    KeyReused = 5 "key-reused" exit 11,
    /// It has ended already.
    AlreadyTerminal = 6 "already-terminal" exit 11,
    /// The envelope or dispatch is another session's.
    NotYourEnvelope = 7 "not-your-envelope" exit 11,
    /// There is no active binding of this session and generation.
    NoBinding = 8 "no-binding" exit 11,
    /// Something is open.
    OpenObligations = 9 "open-obligations" exit 11,
    /// It is not pending.
    NotPending = 10 "not-pending" exit 11,
    /// The session is active.
    AlreadyActive = 11 "already-active" exit 12,
    /// Somebody else may still hold it.
    Held = 12 "held" exit 12,
    /// No session has that name.
    UnknownSession = 13 "unknown-session" exit 66,
    /// No dispatch has that number.
    UnknownDispatch = 14 "unknown-dispatch" exit 66,
    /// No envelope has that number.
    UnknownEnvelope = 15 "unknown-envelope" exit 66,
    /// The command needs a token and none was given.
    MissingToken = 16 "missing-token" exit 64,
    /// The name is another session's, or the id of something open.
    NameTaken = 25 "name-taken" exit 11,
    /// The history moved on since the caller looked.
    PositionMoved = 26 "position-moved" exit 11,
    /// No visible record stands there at which a history can be cut.
    BadPosition = 27 "bad-position" exit 64,
    /// A session cannot be a branch of itself, nor be renamed to the name it has.
    SameName = 28 "same-name" exit 64,
    /// Another session holds the role.
    RoleHeld = 30 "role-held" exit 12,
    /// The role is not, or no longer, the asker's.
    RoleStale = 31 "role-stale" exit 10,
}

wire_enum! {
    /// How the asker stands to what is current.
    pub enum Relation {
        /// A later grant took its place.
        Superseded = 1 "superseded",
        /// It was given back.
        Retired = 2 "retired",
        /// It was never granted.
        NeverIssued = 3 "never-issued",
        /// It belongs to somebody else.
        Foreign = 4 "foreign",
        /// It is taken.
        Taken = 5 "taken",
    }
}

/// A command that may be given next, and what it would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Next {
    /// The command line, ready to type.
    pub command: String,
    /// Its effect.
    pub effect: &'static str,
}

/// A refused command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Why.
    pub code: Code,
    /// One sentence: what was offered, what is current.
    pub message: String,
    /// What it was about.
    pub subject: String,
    /// The session concerned, if it exists.
    pub session: Option<SessionNo>,
    /// The token or object presented.
    pub presented: Option<String>,
    /// What is current instead.
    pub current: Option<String>,
    /// Who holds it.
    pub holder: Option<Holder>,
    /// Since when.
    pub since: Option<Moment>,
    /// How the asker stands to it.
    pub relation: Option<Relation>,
    /// The verdict on the holder, where it mattered, and why.
    pub evidence: Option<(Verdict, Vec<Proof>)>,
    /// What may be done.
    pub next: Vec<Next>,
    /// Where an equal command stands recorded already.
    pub recorded_at: Option<Position>,
    /// What makes refusals alike, for the record.
    pub key: RefusalKey,
}
