//! Version 1 of a frame's parts.
//!
//! ```text
//! facts  = fence  tables  input  events
//! fence  = kind:u8 flags:u8 version:u8 0:u8 session:u32 named:u64 granted:u64      (24 bytes, little endian)
//!          and, where the flags say so: root:u32 0:u32 epoch:u64                    (16 more)
//! tables = count (digest:16 length)*   for texts, then the same for bodies
//! input  = length, then: kind version length payload, context
//! events = count (kind version length payload)*
//! texts  = (nonce:16 content)*         bodies = (nonce:16 content)*
//! digest = first 16 bytes of BLAKE3(nonce, content)
//! ```
//!
//! Counts, lengths, kinds and payloads are in bincode's standard encoding (variable-length integers).

use alloc::vec::Vec;
use core::ops::Range;

use bincode::{Decode, Encode};

use crate::command::{Command, Input, Key, Origin, Presented, Request};
use crate::event::{Entry, Event, Fence, FenceKind, OPAQUE_KIND_MIN, TreeFence};
use crate::generation::{Epoch, Generation};
use crate::history::BodyDigest;
use crate::holder::Evidence;
use crate::id::{Moment, SessionNo, Time};
use crate::limits::TEXTS_MAX;
use crate::redaction::is_stand_in;
use crate::role::Requirement;
use crate::seal::Seal;
use crate::text::{Bodies, TextId, Texts};

use super::{exact, split_number};

mod encoded;
mod parts;

pub use encoded::{Encoded, encode, encode_request};
pub(crate) use parts::{Place, places};
pub use parts::{decode_key, decode_kinds};

/// Bytes of the fence fields.
pub const FENCE_BYTES: usize = 24;
/// Bytes behind them of the fields of a tree, where the fence has one.
pub const TREE_FENCE_BYTES: usize = 16;
/// Bytes of a nonce before each text and body.
pub const NONCE_BYTES: usize = 16;
const VERSION: u8 = 1;
const HAS_SESSION: u8 = 1;
const HAS_NAMED: u8 = 2;
const HAS_GRANTED: u8 = 4;
const HAS_TREE: u8 = 8;

/// Why the parts of a frame do not decode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Fewer bytes than a fence.
    #[error("facts have {0} bytes, a fence alone has {FENCE_BYTES}")]
    Short(usize),
    /// Another version than this program's.
    #[error("facts are of version {0}, this program reads version {VERSION}")]
    Version(u8),
    /// The fence fields contradict themselves.
    #[error("the fence fields are impossible")]
    Fence,
    /// A structure does not decode.
    #[error("{0} do not decode")]
    Structure(&'static str),
    /// The texts or bodies part is not as long as the facts say.
    #[error("the {0} part is not as long as the facts say")]
    PartLength(&'static str),
    /// A text or body is not the one that the facts name.
    #[error("{0} number {1} is not the one that the facts name")]
    Digest(&'static str, usize),
    /// A command or context kind that this program does not know.
    #[error("command kind {0} is not known to this program")]
    UnknownCommand(u16),
    /// An input of a version that this program does not know.
    #[error("the input is of version {0}, this program reads versions {VERSION} to {SEALING}")]
    InputVersion(u8),
    /// More than a frame may hold.
    #[error("a value is too large to encode")]
    TooLarge,
}

/// The three parts of a frame.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Parts {
    /// Numbers: the decision's input and its events.
    pub facts: Vec<u8>,
    /// Names, titles, paths, labels.
    pub texts: Vec<u8>,
    /// Free text and payload bytes.
    pub bodies: Vec<u8>,
}

/// A table row: which content belongs to a number.
#[derive(Encode)]
struct Row {
    digest: [u8; 16],
    length: u64,
}

/// A command or an event as it stands in the facts.
struct Item<'a> {
    kind: u16,
    version: u8,
    payload: &'a [u8],
}

/// What stands beside the command in the input.
#[derive(Encode, Decode)]
struct Context {
    origin: Origin,
    presented: Option<Presented>,
    force: Option<TextId>,
    evidence: Option<Evidence>,
    key: Option<Key>,
}

/// Version of an input whose context is followed by a requirement.
const REQUIRING: u8 = 2;
/// Version of an input whose context is followed by a requirement or none, and by the seal of the grant asked for.
const SEALING: u8 = 3;

/// What stands beside the command, whatever the version of the input.
struct Beside {
    context: Context,
    require: Option<Requirement<TextId>>,
    seal: Option<Seal>,
}

/// Reads what stands beside the command in an input of `version`.
fn context(version: u8, bytes: &[u8]) -> Result<Beside, Fault> {
    let beside = |context, require, seal| Beside {
        context,
        require,
        seal,
    };
    let read = match version {
        VERSION => exact(bytes).map(|context| beside(context, None, None)),
        REQUIRING => exact(bytes).map(|(context, require)| beside(context, Some(require), None)),
        SEALING => {
            exact(bytes).map(|(context, require, seal)| beside(context, require, Some(seal)))
        }
        other => return Err(Fault::InputVersion(other)),
    };
    read.map_err(|_| Fault::Structure("input"))
}

fn digest(nonce: &[u8], content: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(nonce);
    hasher.update(content);
    first_half(&hasher.finalize())
}

fn first_half(hash: &blake3::Hash) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&hash.as_bytes()[..16]);
    short
}

/// Reads the fence fields alone: all that a replay of authority needs. Generations are of `incarnation`,
/// the one in the frame's header.
///
/// # Errors
/// [`Fault::Short`], [`Fault::Version`] or [`Fault::Fence`].
#[inline]
pub fn decode_fence(facts: &[u8], incarnation: u64) -> Result<Fence, Fault> {
    let bytes: &[u8; FENCE_BYTES] = facts.first_chunk().ok_or(Fault::Short(facts.len()))?;
    let [kind, flags, version, zero, ..] = *bytes;
    if version != VERSION {
        return Err(Fault::Version(version));
    }
    let kind = match kind {
        0 => FenceKind::None,
        1 => FenceKind::Write,
        2 => FenceKind::Grant,
        3 => FenceKind::Claim,
        _ => return Err(Fault::Fence),
    };
    let word = |at: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(eight)
    };
    let session = word(0) >> 32;
    let (named, granted) = (word(8), word(16));
    let given = |bit: u8, value: u64| match (flags & bit != 0, value) {
        (true, value) => Ok(Some(value)),
        (false, 0) => Ok(None),
        (false, _) => Err(Fault::Fence),
    };
    if zero != 0 || flags & !(HAS_SESSION | HAS_NAMED | HAS_GRANTED | HAS_TREE) != 0 {
        return Err(Fault::Fence);
    }
    let tree = if flags & HAS_TREE == 0 {
        None
    } else {
        Some(decode_tree(&facts[FENCE_BYTES..])?)
    };
    let generation = |number| Generation {
        incarnation,
        number,
    };
    Ok(Fence {
        kind,
        session: given(HAS_SESSION, session)?.map(SessionNo),
        named: given(HAS_NAMED, named)?.map(generation),
        granted: given(HAS_GRANTED, granted)?.map(generation),
        tree,
    })
}

/// Reads the fields of a tree, behind the others of its fence.
fn decode_tree(rest: &[u8]) -> Result<TreeFence, Fault> {
    let bytes: &[u8; TREE_FENCE_BYTES] = rest
        .first_chunk()
        .ok_or(Fault::Short(FENCE_BYTES + rest.len()))?;
    let [root, zero, low, high] = *bytes.as_chunks::<4>().0 else {
        return Err(Fault::Fence);
    };
    if zero != [0; 4] {
        return Err(Fault::Fence);
    }
    let epoch = u64::from(u32::from_le_bytes(low)) | u64::from(u32::from_le_bytes(high)) << 32;
    Ok(TreeFence {
        root: SessionNo(u64::from(u32::from_le_bytes(root))),
        epoch: Epoch(epoch),
    })
}

/// A reader over the facts behind the fence.
struct Facts<'a> {
    rest: &'a [u8],
}

impl<'a> Facts<'a> {
    /// What stands behind a fence that was decoded from these facts.
    fn behind(fence: &Fence, facts: &'a [u8]) -> Self {
        let tree = fence.tree.map_or(0, |_| TREE_FENCE_BYTES);
        Self {
            rest: &facts[FENCE_BYTES + tree..],
        }
    }

    fn number(&mut self, what: &'static str) -> Result<u64, Fault> {
        let (number, rest) = split_number(self.rest).ok_or(Fault::Structure(what))?;
        self.rest = rest;
        Ok(number)
    }

    fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], Fault> {
        let length = usize::try_from(self.number(what)?).map_err(|_| Fault::Structure(what))?;
        let split = self.rest.split_at_checked(length);
        let (bytes, rest) = split.ok_or(Fault::Structure(what))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A row of a table, as [`Row`] is written.
    fn row(&mut self, what: &'static str) -> Result<(&'a [u8; 16], u64), Fault> {
        let split = self.rest.split_first_chunk();
        let (digest, rest) = split.ok_or(Fault::Structure(what))?;
        self.rest = rest;
        Ok((digest, self.number(what)?))
    }

    /// Reads the rows of a table without its contents.
    fn digests(
        &mut self,
        what: &'static str,
        mut each: impl FnMut(BodyDigest),
    ) -> Result<(), Fault> {
        for _ in 0..self.number(what)? {
            each(*self.row(what)?.0);
        }
        Ok(())
    }

    /// A command or event, as [`Item`] is written.
    fn item(&mut self, what: &'static str) -> Result<Item<'a>, Fault> {
        let kind = u16::try_from(self.number(what)?).map_err(|_| Fault::Structure(what))?;
        let (&version, rest) = self.rest.split_first().ok_or(Fault::Structure(what))?;
        self.rest = rest;
        Ok(Item {
            kind,
            version,
            payload: self.bytes(what)?,
        })
    }

    /// Reads a table and hands out each content: where in its part it stands, and its bytes.
    fn table(
        &mut self,
        what: &'static str,
        mut part: &'a [u8],
        check: bool,
        mut each: impl FnMut(Range<usize>, &'a [u8]),
    ) -> Result<(), Fault> {
        let whole = part.len();
        let count = self.number(what)?;
        if count > TEXTS_MAX as u64 {
            return Err(Fault::Structure(what));
        }
        for number in 0..count {
            let (row_digest, length) = self.row(what)?;
            let length = usize::try_from(length).map_err(|_| Fault::PartLength(what))?;
            let (nonce, behind) = part
                .split_at_checked(NONCE_BYTES)
                .ok_or(Fault::PartLength(what))?;
            let (content, behind) = behind
                .split_at_checked(length)
                .ok_or(Fault::PartLength(what))?;
            let taken_out = || is_taken_out(nonce, content);
            if check && digest(nonce, content) != *row_digest && !taken_out() {
                return Err(Fault::Digest(what, number as usize));
            }
            let end = whole - behind.len();
            each(end - length..end, content);
            part = behind;
        }
        if part.is_empty() {
            Ok(())
        } else {
            Err(Fault::PartLength(what))
        }
    }

    /// Reads the events; gives the first kind that may decide and is not known.
    fn events(&mut self, events: &mut Vec<Event>) -> Result<Option<u16>, Fault> {
        let count = self.number("events")?;
        let mut unknown = None;
        for _ in 0..count {
            let item = self.item("events")?;
            let known = match item.version {
                VERSION => {
                    events.reserve(1);
                    Event::decode_payload(item.kind, item.payload, |event| events.push(event))
                }
                _ => None,
            };
            match known {
                Some(decoded) => decoded.map_err(|_| Fault::Structure("events"))?,
                _ if item.kind >= OPAQUE_KIND_MIN => {}
                _ => unknown = unknown.or(Some(item.kind)),
            }
        }
        if self.rest.is_empty() {
            Ok(unknown)
        } else {
            Err(Fault::Structure("events"))
        }
    }
}

/// Decodes what a replay needs: fence, texts, events. The input is skipped and the bodies are not read.
///
/// # Errors
/// A [`Fault`] for bytes that no [`encode`] wrote. Digests of texts are not compared here; see
/// [`decode_request`].
pub fn decode_entry(
    facts: &[u8],
    texts: &[u8],
    at: Moment,
    incarnation: u64,
) -> Result<Entry, Fault> {
    let mut entry = Entry::default();
    decode_entry_into(&mut entry, facts, texts, at, incarnation)?;
    Ok(entry)
}

/// As [`decode_entry`], in place of whatever `entry` held, whose room is used again.
///
/// # Errors
/// As [`decode_entry`]; the entry is then none.
pub fn decode_entry_into(
    entry: &mut Entry,
    facts: &[u8],
    texts: &[u8],
    at: Moment,
    incarnation: u64,
) -> Result<(), Fault> {
    entry.at = at;
    entry.incarnation = incarnation;
    entry.fence = decode_fence(facts, incarnation)?;
    entry.texts.take(texts);
    entry.bodies.clear();
    entry.events.clear();
    let mut reader = Facts::behind(&entry.fence, facts);
    reader.table("texts", texts, false, |at, _| {
        entry.texts.name(at.start, at.end);
    })?;
    reader.digests("bodies", |digest| entry.bodies.push(digest))?;
    reader.bytes("input")?;
    entry.unknown = reader.events(&mut entry.events)?;
    Ok(())
}

/// Decodes the input as it was judged, comparing every text and body with its digest.
///
/// # Errors
/// A [`Fault`] for bytes that no [`encode`] wrote.
pub fn decode_request(
    facts: &[u8],
    texts: &[u8],
    bodies: &[u8],
    time: Time,
) -> Result<Request, Fault> {
    let mut reader = Facts::behind(&decode_fence(facts, 1)?, facts);
    let mut text_table = Texts::default();
    reader.table("texts", texts, true, |_, text| text_table.push(text))?;
    let mut body_table = Bodies::default();
    reader.table("bodies", bodies, true, |_, body| {
        body_table.add(body.to_vec());
    })?;
    let mut reader = Facts {
        rest: reader.bytes("input")?,
    };
    let item = reader.item("input")?;
    let command = Command::decode_payload(item.kind, item.payload, |command| command)
        .ok_or(Fault::UnknownCommand(item.kind))?
        .map_err(|_| Fault::Structure("input"))?;
    let Beside {
        context,
        require,
        seal,
    } = context(item.version, reader.rest)?;
    Ok(Request {
        input: Input {
            command,
            origin: context.origin,
            presented: context.presented,
            force: context.force,
            evidence: context.evidence,
            key: context.key,
            require,
            seal,
        },
        texts: text_table,
        bodies: body_table,
        time,
    })
}

/// The body with number `index` in a frame's bodies part, checked against the digest in its facts.
///
/// # Errors
/// A [`Fault`] for bytes that no [`encode`] wrote; `Ok(None)` when there is no such body.
pub fn decode_body<'a>(
    facts: &'a [u8],
    texts: &'a [u8],
    bodies: &'a [u8],
    index: usize,
) -> Result<Option<&'a [u8]>, Fault> {
    let mut reader = Facts::behind(&decode_fence(facts, 1)?, facts);
    reader.table("texts", texts, false, |_, _| {})?;
    let (mut found, mut number) = (None, 0);
    reader.table("bodies", bodies, true, |_, body| {
        if number == index {
            found = Some(body);
        }
        number += 1;
    })?;
    Ok(found)
}

/// The kind and payload of the command, or of the first event, in facts that are good.
#[cfg(test)]
pub(crate) fn an_item(facts: &[u8], command: bool) -> (u16, &[u8]) {
    let mut reader = Facts::behind(&decode_fence(facts, 1).expect("good"), facts);
    for what in ["texts", "bodies"] {
        reader.digests(what, |_| {}).expect("good");
    }
    let rest = reader.bytes("input").expect("good");
    let mut reader = match command {
        true => Facts { rest },
        false => reader,
    };
    if !command {
        reader.number("events").expect("good");
    }
    let item = reader.item("item").expect("good");
    (item.kind, item.payload)
}

/// Whether a text or body whose digest is another than the one in its facts was taken out.
fn is_taken_out(nonce: &[u8], content: &[u8]) -> bool {
    nonce == [0; NONCE_BYTES] && is_stand_in(content)
}
