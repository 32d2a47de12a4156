//! Names and numbers. A name is parsed once, at the edge, and stored bit for bit (REG-17).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;

use bincode::{Decode, Encode};

use crate::generation::Generation;
use crate::limits::NAME_BYTES_MAX;
use crate::seal::{Secret, SecretFault};

/// A name that passed the rules: 1 to 128 bytes of letters, digits and `._:+/-`, not beginning with
/// `-`, `.` or `/`, without `@`. Clones share it: every call under a token has its name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(Arc<str>);

/// Why a text is no name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameFault {
    /// Nothing was given.
    #[error("a name needs at least one character")]
    Empty,
    /// Longer than [`NAME_BYTES_MAX`].
    #[error("a name has at most {NAME_BYTES_MAX} bytes, this one has {0}")]
    TooLong(usize),
    /// The first character would make it an option, a hidden file or a path.
    #[error("a name cannot begin with '{0}'")]
    Beginning(char),
    /// A character outside the alphabet.
    #[error("a name is made of letters, digits and ._:+/- , not {0:?} (byte {1})")]
    Character(char, usize),
}

impl Name {
    /// Checks `text` and keeps it bit for bit.
    ///
    /// # Errors
    /// [`NameFault`] with the first rule that is broken.
    pub fn parse(text: &str) -> Result<Self, NameFault> {
        let Some(first) = text.chars().next() else {
            return Err(NameFault::Empty);
        };
        if text.len() > NAME_BYTES_MAX {
            return Err(NameFault::TooLong(text.len()));
        }
        if matches!(first, '-' | '.' | '/') {
            return Err(NameFault::Beginning(first));
        }
        for (at, c) in text.char_indices() {
            if !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '+' | '/' | '-')) {
                return Err(NameFault::Character(c, at));
            }
        }
        Ok(Self(text.into()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
        pub struct $name(pub u64);

        impl $name {
            /// The place of this number in a dense table.
            #[must_use]
            pub fn index(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }

            /// Reads the printed form.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                let digits = text.strip_prefix($prefix)?;
                if digits.is_empty() || digits.starts_with('+') { return None; }
                digits.parse().ok().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

number!(
    /// Number of a session, dense from 0; it stands in the event that introduces the name and never changes.
    SessionNo, "s"
);
number!(
    /// Number of a dispatch, dense from 1; printed `d1`.
    DispatchNo, "d"
);
number!(
    /// Number of an envelope, dense from 1; printed `e1`.
    EnvelopeNo, "e"
);
number!(
    /// Number of a refusal record, dense from 1; printed `r1`.
    RefusalNo, "r"
);

number!(
    /// Number of a grant that newer ones of its session pushed out of it, dense from 0.
    GrantNo, "g"
);

number!(
    /// Number of a role, dense from 0; it stands in the event that introduces its name and scope.
    RoleNo, "role"
);

/// Index of a frame in the log, from 1; the only order there is. Zero stands before the first frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Encode, Decode)]
pub struct Position(pub u64);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Microseconds since 1970 (UTC). Informs, never decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Encode, Decode)]
pub struct Time(pub i64);

/// A position with its time: when something happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
pub struct Moment {
    /// Where in the log.
    pub position: Position,
    /// What the clock said then.
    pub time: Time,
}

/// What a caller presents with every write: `NAME@[INCARNATION.]GENERATION[~SECRET]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// The session.
    pub name: Name,
    /// The generation it was granted.
    pub generation: Generation,
    /// The secret of a sealed grant; kept out of every output, `Debug` included (S5).
    pub secret: Option<Secret>,
}

impl Token {
    /// The token with its secret, as it is presented. Whoever reads it can write as its session: it is for the file or
    /// the answer that the token is handed over in, and for nothing else. What is printed is the `Display` of a token,
    /// which has no secret.
    #[must_use]
    pub fn reveal(&self) -> String {
        match &self.secret {
            Some(secret) => format!("{self}~{}", secret.reveal()),
            None => self.to_string(),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seal = if self.secret.is_some() { "~..." } else { "" };
        write!(f, "Token({self}{seal})")
    }
}

/// The token without its secret.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.generation)
    }
}

/// Why a text is no token (E04: missing, empty, zero and malformed are told apart).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFault {
    /// No `@` in it.
    #[error("a token is NAME@GENERATION, and this one names no generation")]
    NoGeneration,
    /// The part before `@`.
    #[error(transparent)]
    Name(#[from] NameFault),
    /// The part after `@`.
    #[error("{0:?} is no generation: a whole number from 1, or INCARNATION.GENERATION")]
    Generation(String),
    /// `~` with nothing behind it.
    #[error("the token ends in '~' without a secret")]
    EmptySecret,
    /// What stands behind `~`.
    #[error("what stands behind '~' is no secret: {0}")]
    Secret(#[from] SecretFault),
}

impl core::str::FromStr for Token {
    type Err = TokenFault;

    fn from_str(text: &str) -> Result<Self, TokenFault> {
        let (name, rest) = text.split_once('@').ok_or(TokenFault::NoGeneration)?;
        let (generation, secret) = match rest.split_once('~') {
            Some((_, "")) => return Err(TokenFault::EmptySecret),
            Some((generation, secret)) => (generation, Some(secret.parse()?)),
            None => (rest, None),
        };
        Ok(Self {
            name: Name::parse(name)?,
            generation: Generation::parse(generation)
                .ok_or_else(|| TokenFault::Generation(generation.to_string()))?,
            secret,
        })
    }
}
