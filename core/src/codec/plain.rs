//! The plain way to read a payload or a page: numbers, options and enums straight off the bytes, without an encoder's
//! reader, limits and faults. A replay reads a payload for every frame, and nearly all of them are plain; opening a store
//! with a tail reads little else than pages of sessions.
//!
//! It is a short cut and not a second meaning. Where it gives a value, bincode gives the same; where it gives none,
//! the payload is read with bincode, which alone says what decodes, what does not, and why.

use alloc::vec::Vec;

use crate::command::{Bearer, Ref, Regained};
use crate::disclosure::Peer;
use crate::generation::{Epoch, Generation};
use crate::history::{Activity, ActivityKind, FoundRecord, HistoryHash, Point};
use crate::holder::{Bearing, BootId, Evidence, HostId, Process, Source};
use crate::id::{
    DispatchNo, EnvelopeNo, GrantNo, Moment, Position, RefusalNo, RoleNo, SessionNo, Time,
};
use crate::path::Scope;
use crate::role::{ProcessEvidence, RoleScope};
use crate::seal::Seal;
use crate::text::{BodyId, Symbol, TextId};

use super::split_number;

/// What can be read so.
pub(crate) trait Plain: Sized {
    /// Takes a value off the front. `None`: it is not plain, or there is none.
    fn plain(bytes: &mut &[u8]) -> Option<Self>;

    /// The value that fills `bytes`.
    #[inline]
    fn whole(mut bytes: &[u8]) -> Option<Self> {
        let value = Self::plain(&mut bytes)?;
        bytes.is_empty().then_some(value)
    }
}

impl Plain for u64 {
    #[inline]
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        let (number, rest) = split_number(bytes)?;
        *bytes = rest;
        Some(number)
    }
}

/// A shorter number has fewer spellings: those of a longer one are bincode's to refuse.
macro_rules! shorter {
    ($($number:ty: $first_max:literal,)*) => {$(
        impl Plain for $number {
            #[inline]
            fn plain(bytes: &mut &[u8]) -> Option<Self> {
                if *bytes.first()? > $first_max {
                    return None;
                }
                Self::try_from(u64::plain(bytes)?).ok()
            }
        }
    )*};
}

shorter! {
    u16: 251,
    u32: 252,
}

impl Plain for u8 {
    #[inline]
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(*first)
    }
}

impl Plain for bool {
    #[inline]
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        match u8::plain(bytes)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<const N: usize> Plain for [u8; N] {
    #[inline]
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        let (array, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*array)
    }
}

impl<T: Plain> Plain for Option<T> {
    #[inline]
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        match u8::plain(bytes)? {
            0 => Some(None),
            1 => T::plain(bytes).map(Some),
            _ => None,
        }
    }
}

/// Only an empty list is plain: what a longer one may take in memory is bincode's to bound.
impl<T> Plain for Vec<T> {
    #[inline]
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        (u8::plain(bytes)? == 0).then(Self::new)
    }
}

/// Signed numbers are written with their sign as the lowest bit.
impl Plain for Time {
    #[inline]
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        let number = u64::plain(bytes)?;
        let sign = (number & 1).cast_signed();
        Some(Self((number >> 1).cast_signed() ^ -sign))
    }
}

impl Plain for Symbol {
    #[inline]
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        u32::plain(bytes).map(Self::of)
    }
}

impl<A: Plain, B: Plain> Plain for (A, B) {
    #[inline]
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        Some((A::plain(bytes)?, B::plain(bytes)?))
    }
}

impl Plain for Ref {
    #[inline]
    fn plain(bytes: &mut &[u8]) -> Option<Self> {
        match u8::plain(bytes)? {
            1 => DispatchNo::plain(bytes).map(Self::Dispatch),
            2 => EnvelopeNo::plain(bytes).map(Self::Envelope),
            _ => None,
        }
    }
}

/// The items of a page, which have nothing behind them. `None` for bytes that only the other decoder reads.
pub(crate) fn page<T: Plain>(mut bytes: &[u8]) -> Option<Vec<T>> {
    let len = usize::try_from(u64::plain(&mut bytes)?).ok()?;
    // Each takes a byte at least.
    let mut items = Vec::with_capacity(len.min(bytes.len()));
    for _ in 0..len {
        items.push(T::plain(&mut bytes)?);
    }
    bytes.is_empty().then_some(items)
}

/// A struct, by its fields in the order in which they are written.
macro_rules! fields {
    ($($name:ident { $($field:tt: $of:ty,)* })*) => {$(
        impl $crate::codec::plain::Plain for $name {
            #[inline]
            fn plain(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: <$of as $crate::codec::plain::Plain>::plain(bytes)?,)* })
            }
        }
    )*};
}

pub(crate) use fields;

fields! {
    SessionNo { 0: u64, }
    DispatchNo { 0: u64, }
    EnvelopeNo { 0: u64, }
    RefusalNo { 0: u64, }
    GrantNo { 0: u64, }
    RoleNo { 0: u64, }
    Position { 0: u64, }
    Epoch { 0: u64, }
    TextId { 0: u32, }
    BodyId { 0: u32, }
    HistoryHash { 0: [u8; 16], }
    Seal { 0: [u8; 16], }
    Generation { incarnation: u64, number: u64, }
    Point { position: Position, index: u64, hash: HistoryHash, }
    Activity { kind: ActivityKind, id: TextId, }
    Moment { position: Position, time: Time, }
    HostId { 0: [u8; 16], }
    BootId { 0: [u8; 16], }
    Process {
        pid: u32,
        start: Option<u64>,
        pidns: Option<u64>,
        timens: Option<u64>,
        pidfs: Option<u64>,
        ancestor: bool,
        source: Source,
    }
    Bearing {
        host: HostId,
        boot: Option<BootId>,
        process: Option<Process>,
        uid: u32,
        recorded: Time,
    }
}

/// What is met too seldom for a short cut.
macro_rules! never {
    ($($name:ty,)*) => {$(
        impl Plain for $name {
            #[inline]
            fn plain(_: &mut &[u8]) -> Option<Self> {
                None
            }
        }
    )*};
}

never! {
    Bearer,
    Evidence,
    FoundRecord,
    Peer,
    ProcessEvidence,
    Regained,
    RoleScope<TextId>,
    Scope<TextId>,
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use crate::codec::v1;
    use crate::command::Command;
    use crate::event::Event;

    /// A payload of every kind of command and event, with its kind.
    fn payloads() -> Vec<(bool, u16, Vec<u8>)> {
        let golden = include_str!("../../tests/golden/facts-v1.txt");
        let lines = golden.lines().filter_map(|line| line.split_once(' '));
        lines
            .filter_map(|(name, hex)| {
                let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
                let facts: Vec<u8> = (0..hex.len()).step_by(2).map(digit).collect();
                let command = match name {
                    _ if name.starts_with("command-") => true,
                    _ if name.starts_with("event-") => false,
                    _ => return None,
                };
                let (kind, payload) = v1::an_item(&facts, command);
                Some((command, kind, payload.to_vec()))
            })
            .collect()
    }

    /// Compares both ways; whether the payload was plain.
    fn agree(command: bool, kind: u16, payload: &[u8]) -> bool {
        if command {
            let (plain, whole) = Command::both_ways(kind, payload).expect("a known kind");
            plain.is_some_and(|plain| {
                assert_eq!(whole.expect("it is plain"), plain, "{kind}: {payload:?}");
                true
            })
        } else {
            let (plain, whole) = Event::both_ways(kind, payload).expect("a known kind");
            plain.is_some_and(|plain| {
                assert_eq!(whole.expect("it is plain"), plain, "{kind}: {payload:?}");
                true
            })
        }
    }

    /// Every sample with every byte changed, with every end cut off and with something behind it.
    #[test]
    fn what_is_plain_is_what_bincode_reads() {
        let payloads = payloads();
        assert_eq!(payloads.len(), Command::KINDS.len() + Event::KINDS.len());
        let (mut samples, mut all) = (0, 0);
        for (command, kind, payload) in payloads {
            samples += u32::from(agree(command, kind, &payload));
            for at in 0..payload.len() {
                agree(command, kind, &payload[..at]);
                for byte in [0, 1, 2, 3, 7, 127, 250, 251, 252, 253, 254, 255] {
                    let mut changed = payload.clone();
                    changed[at] = byte;
                    all += u32::from(agree(command, kind, &changed));
                    // What is longer than its marker says, and what has no more bytes than a marker needs.
                    changed.insert(at + 1, byte);
                    all += u32::from(agree(command, kind, &changed));
                    changed.truncate(at + 3);
                    all += u32::from(agree(command, kind, &changed));
                }
            }
            let longer = [&payload[..], &[0]].concat();
            assert!(!agree(command, kind, &longer), "{kind}");
        }
        assert!(samples > 40 && all > 2_000, "{samples} {all}");
    }
}
