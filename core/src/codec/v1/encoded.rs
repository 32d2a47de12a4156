//! Writing a frame's parts. What a request alone says can be written before it is decided: digests are then made outside
//! of any lock.

use alloc::vec::Vec;

use bincode::Encode;

use super::{
    Context, FENCE_BYTES, Facts, Fault, HAS_GRANTED, HAS_NAMED, HAS_SESSION, HAS_TREE, NONCE_BYTES,
    Parts, REQUIRING, Row, SEALING, TREE_FENCE_BYTES, VERSION, first_half,
};
use crate::codec::{append, length};
use crate::command::{Input, Request};
use crate::event::{Event, Fence, FenceKind, TreeFence};
use crate::history::BodyDigest;
use crate::id::SessionNo;

/// Room made at once for the facts: more than most need.
const ROOM_BYTES: usize = 320;

/// What a frame holds of a request, whatever is decided about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// The facts up to the events, with room before them for a fence without a tree.
    facts: Vec<u8>,
    /// Where in them the table of bodies begins.
    table: usize,
    texts: Vec<u8>,
    bodies: Vec<u8>,
}

/// Encodes a request.
///
/// It takes the place of whatever `room` held. `nonce` gives 16 fresh random bytes for each text and body, so that short
/// texts cannot be guessed from their digests.
///
/// # Errors
/// [`Fault::TooLarge`] when a number does not fit its field.
pub fn encode_request(
    request: &Request,
    room: Parts,
    mut nonce: impl FnMut() -> [u8; NONCE_BYTES],
) -> Result<Encoded, Fault> {
    let Parts {
        mut facts,
        mut texts,
        mut bodies,
    } = room;
    facts.clear();
    facts.reserve(ROOM_BYTES);
    facts.resize(FENCE_BYTES, 0);
    encode_table(request.texts.iter(), &mut facts, &mut texts, &mut nonce)?;
    let table = facts.len();
    encode_table(request.bodies.iter(), &mut facts, &mut bodies, &mut nonce)?;
    encode_input(&request.input, &mut facts)?;
    Ok(Encoded {
        facts,
        table,
        texts,
        bodies,
    })
}

impl Encoded {
    /// The digests of its bodies, in order.
    pub fn body_digests(&self, mut each: impl FnMut(BodyDigest)) {
        let mut reader = Facts {
            rest: &self.facts[self.table..],
        };
        let read = reader.digests("bodies", &mut each);
        read.expect("the table was written as it is read");
    }

    /// Adds what was decided: the parts of the frame.
    ///
    /// # Errors
    /// [`Fault::TooLarge`] when a number does not fit its field.
    pub fn decided(self, fence: &Fence, events: &[Event]) -> Result<Parts, Fault> {
        let mut facts = self.facts;
        facts[..FENCE_BYTES].copy_from_slice(&encode_fence(fence)?);
        if let Some(tree) = fence.tree {
            put_before(&mut facts, FENCE_BYTES, &encode_tree(tree)?);
        }
        put(&mut facts, &(events.len() as u64))?;
        for event in events {
            put_item(&mut facts, (event.kind(), VERSION), |out| {
                event.encode_payload(out).map_err(|_| Fault::TooLarge)
            })?;
        }
        Ok(Parts {
            facts,
            texts: self.texts,
            bodies: self.bodies,
        })
    }
}

/// Encodes one decision: [`encode_request`] and [`Encoded::decided`].
///
/// # Errors
/// As those.
pub fn encode(
    fence: &Fence,
    request: &Request,
    events: &[Event],
    nonce: impl FnMut() -> [u8; NONCE_BYTES],
) -> Result<Parts, Fault> {
    encode_request(request, Parts::default(), nonce)?.decided(fence, events)
}

fn put<T: Encode>(out: &mut Vec<u8>, value: &T) -> Result<(), Fault> {
    append(out, value).map_err(|_| Fault::TooLarge)
}

/// Writes an item's kind, version and payload; a reader finds it as an `Item`.
fn put_item(
    out: &mut Vec<u8>,
    (kind, version): (u16, u8),
    payload: impl FnOnce(&mut Vec<u8>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    put(out, &kind)?;
    out.push(version);
    put_sized(out, payload)
}

/// Writes bytes before those from `at` on.
fn put_before(out: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out[at..].rotate_right(bytes.len());
}

/// Writes bytes and before them how many there are, in place: without a buffer between, which would have to be made for
/// each item of each frame. Nearly every length takes one byte, for which there is room; for a longer one what was
/// written moves on.
fn put_sized(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let begin = out.len();
    out.push(0);
    write(out)?;
    let (number, used) = length(out.len() - begin - 1).map_err(|_| Fault::TooLarge)?;
    out[begin] = number[0];
    if used > 1 {
        put_before(out, begin + 1, &number[1..used]);
    }
    Ok(())
}

fn encode_input(i: &Input, facts: &mut Vec<u8>) -> Result<(), Fault> {
    let version = match (&i.require, i.seal) {
        (_, Some(_)) => SEALING,
        (Some(_), None) => REQUIRING,
        (None, None) => VERSION,
    };
    put_sized(facts, |input| {
        put_item(input, (i.command.kind(), version), |out| {
            i.command.encode_payload(out).map_err(|_| Fault::TooLarge)
        })?;
        let context = Context {
            origin: i.origin,
            presented: i.presented,
            force: i.force,
            evidence: i.evidence.clone(),
            key: i.key,
        };
        put(input, &context)?;
        match (&i.require, i.seal) {
            (require, Some(seal)) => put(input, &(require, seal)),
            (Some(require), None) => put(input, require),
            (None, None) => Ok(()),
        }
    })
}

fn encode_fence(fence: &Fence) -> Result<[u8; FENCE_BYTES], Fault> {
    let kind = match fence.kind {
        FenceKind::None => 0,
        FenceKind::Write => 1,
        FenceKind::Grant => 2,
        FenceKind::Claim => 3,
    };
    let mut flags = 0;
    let mut flag = |bit, set| flags |= if set { bit } else { 0 };
    flag(HAS_SESSION, fence.session.is_some());
    flag(HAS_NAMED, fence.named.is_some());
    flag(HAS_GRANTED, fence.granted.is_some());
    flag(HAS_TREE, fence.tree.is_some());
    let mut out = [0; FENCE_BYTES];
    out[..4].copy_from_slice(&[kind, flags, VERSION, 0]);
    out[4..8].copy_from_slice(&short(fence.session.unwrap_or(SessionNo(0)))?);
    out[8..16].copy_from_slice(&fence.named.map_or(0, |g| g.number).to_le_bytes());
    out[16..].copy_from_slice(&fence.granted.map_or(0, |g| g.number).to_le_bytes());
    Ok(out)
}

fn encode_tree(tree: TreeFence) -> Result<[u8; TREE_FENCE_BYTES], Fault> {
    let mut out = [0; TREE_FENCE_BYTES];
    out[..4].copy_from_slice(&short(tree.root)?);
    out[8..].copy_from_slice(&tree.epoch.0.to_le_bytes());
    Ok(out)
}

fn short(session: SessionNo) -> Result<[u8; 4], Fault> {
    let number = u32::try_from(session.0).map_err(|_| Fault::TooLarge)?;
    Ok(number.to_le_bytes())
}

/// Writes a table into the facts, and the part that it names.
fn encode_table<'a>(
    contents: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    facts: &mut Vec<u8>,
    part: &mut Vec<u8>,
    nonce: &mut impl FnMut() -> [u8; NONCE_BYTES],
) -> Result<(), Fault> {
    let bytes = contents.clone().map(|content| NONCE_BYTES + content.len());
    part.clear();
    part.reserve(bytes.sum());
    put(facts, &(contents.len() as u64))?;
    for content in contents {
        let begin = part.len();
        part.extend_from_slice(&nonce());
        part.extend_from_slice(content);
        let row = Row {
            // At once over what now stands together: half as dear as in two pieces, for texts as short as most are.
            digest: first_half(&blake3::hash(&part[begin..])),
            length: content.len() as u64,
        };
        put(facts, &row)?;
    }
    Ok(())
}
