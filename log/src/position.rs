//! The small words the log counts and names with: positions, chains, store ids, incarnations, epochs, receipts.

use std::fmt;
use std::str::FromStr;

/// How many frames stand in the log up to here. The first frame has position 1; [`Position::ZERO`] is before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(pub u64);

impl Position {
    /// Before the first frame.
    pub const ZERO: Position = Position(0);

    /// The position behind this one. Positions read from bytes are bounded by
    /// [`POSITION_MAX`](crate::options::POSITION_MAX), so that this never wraps.
    #[must_use]
    pub const fn next(self) -> Position {
        Position(self.0.saturating_add(1))
    }

    /// The position before this one; before the first stands [`Position::ZERO`].
    #[must_use]
    pub const fn before(self) -> Position {
        Position(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Positions from one on, up to a last one as far as that is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Positions {
    /// The first.
    pub first: Position,
    /// The last; unknown when nothing good follows.
    pub last: Option<Position>,
}

impl Positions {
    /// From `first` on, for as long as nothing says where it ends.
    #[must_use]
    pub fn from(first: Position) -> Positions {
        Positions { first, last: None }
    }

    /// From `first` to `last`.
    #[must_use]
    pub fn to(first: Position, last: Position) -> Positions {
        Positions {
            first,
            last: Some(last),
        }
    }
}

impl fmt::Display for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) if last == self.first => write!(f, "position {last}"),
            Some(last) => write!(f, "positions {} to {last}", self.first),
            None => write!(f, "positions from {}", self.first),
        }
    }
}

/// The incarnation (life) of a store; starts at 1, raised by restore, copy and salvage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Incarnation(pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The writer epoch; starts at 1, raised by whoever takes over from a writer that stands still or whose sync failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A point in time: UTC microseconds since 1970. Information only; the log never orders by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TimeMicros(pub i64);

impl fmt::Display for TimeMicros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! sixteen_bytes {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub [u8; 16]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = NotANumber;

            fn from_str(text: &str) -> Result<Self, NotANumber> {
                sixteen_from_hex(text).map($name).ok_or_else(|| NotANumber::new(text, $what))
            }
        }
    };
}

sixteen_bytes!(
    /// The first 16 bytes of the BLAKE3 hash that a frame makes of its predecessor's chain and itself.
    /// Displayed as 32 hex digits.
    Chain,
    "32 lower-case hex digits"
);
sixteen_bytes!(
    /// The random name a store is born with. Displayed as 32 hex digits.
    StoreId,
    "32 lower-case hex digits"
);
sixteen_bytes!(
    /// The random bytes of a store's life that seed every header CRC, so that a frame copied
    /// from another store or an older life is good nowhere else. Displayed as 32 hex digits.
    Salt,
    "32 lower-case hex digits"
);

impl Chain {
    /// The chain a store is born with: the first 16 bytes of BLAKE3(`"tenure born"`, store id, salt).
    #[must_use]
    pub fn born(store: StoreId, salt: Salt) -> Chain {
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(b"tenure born")
            .update(&store.0)
            .update(&salt.0);
        Chain::of(&hasher.finalize())
    }

    /// The first half of a hash.
    pub(crate) fn of(hash: &blake3::Hash) -> Chain {
        let (half, _) = hash
            .as_bytes()
            .split_first_chunk::<16>()
            .expect("a BLAKE3 hash has 32 bytes");
        Chain(*half)
    }
}

fn sixteen_from_hex(text: &str) -> Option<[u8; 16]> {
    let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
    }
    Some(bytes)
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// The last frame of the log: its position and chain. [`Position::ZERO`] with the chain the store was born with
/// when there is no frame yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Head {
    /// The position of the last frame.
    pub position: Position,
    /// The chain of the last frame.
    pub chain: Chain,
}

/// Proof, to be kept outside of the store, that a frame stood in it: shown later, it finds a rollback or a split view.
/// Written and read as `STORE:POSITION:CHAIN`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Receipt {
    /// The store the frame stands in.
    pub store: StoreId,
    /// The frame's position.
    pub position: Position,
    /// The frame's chain.
    pub chain: Chain,
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.store, self.position, self.chain)
    }
}

impl FromStr for Receipt {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Receipt, NotANumber> {
        let not = || NotANumber::new(text, "a receipt STORE:POSITION:CHAIN");
        let mut fields = text.split(':');
        let (Some(store), Some(position), Some(chain), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(not());
        };
        Ok(Receipt {
            store: store.parse().map_err(|_| not())?,
            position: Position(decimal(position).ok_or_else(not)?),
            chain: chain.parse().map_err(|_| not())?,
        })
    }
}

/// A number in digits only (`u64::from_str` also takes a leading `+`), without leading zeros: one spelling for one value.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    (canonical && text.bytes().all(|digit| digit.is_ascii_digit())).then(|| text.parse().ok())?
}

/// A text that is not what it was given as.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{found:?} is not {wanted}")]
pub struct NotANumber {
    /// The text that was given, cut after 80 characters.
    pub found: String,
    /// What was wanted.
    pub wanted: &'static str,
}

impl NotANumber {
    fn new(text: &str, wanted: &'static str) -> NotANumber {
        NotANumber {
            found: text.chars().take(80).collect(),
            wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_has_one_spelling_and_comes_back() {
        let receipt = Receipt {
            store: StoreId([0xab; 16]),
            position: Position(17),
            chain: Chain([3; 16]),
        };
        let text = receipt.to_string();
        assert_eq!(text, format!("{}:17:{}", "ab".repeat(16), "03".repeat(16)));
        assert_eq!(text.parse(), Ok(receipt));
        for bad in [
            "",
            "::",
            &text.to_uppercase(),
            &text.replace(":17:", ":+17:"),
            &text.replace(":17:", ":017:"),
        ] {
            assert!(bad.parse::<Receipt>().is_err(), "{bad}");
        }
        assert!(format!("{text}:").parse::<Receipt>().is_err());
    }

    #[test]
    fn hex_of_the_wrong_length_or_case_is_refused_by_name() {
        let refused = "AB".repeat(16).parse::<Chain>().expect_err("upper case");
        assert_eq!(
            refused.to_string(),
            format!("{:?} is not 32 lower-case hex digits", "AB".repeat(16))
        );
        assert!("é".repeat(16).parse::<StoreId>().is_err());
    }

    #[test]
    fn positions_neither_wrap_nor_go_below_zero() {
        assert_eq!(Position::ZERO.before(), Position::ZERO);
        assert_eq!(Position(u64::MAX).next(), Position(u64::MAX));
        assert_eq!(Position(4).next().before(), Position(4));
    }
}
