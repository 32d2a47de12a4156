//! Writing a frame's parts. What a request alone says can be written before it is decided: digests are then made outside
//! of any lock.

use alloc::vec::Vec;

use bincode::Encode;

use super::{
    Context, FENCE_BYTES, Fault, HAS_GRANTED, HAS_NAMED, HAS_SESSION, HAS_TREE, Item, NONCE_BYTES,
    Parts, REQUIRING, Row, SEALING, TREE_FENCE_BYTES, VERSION, first_half,
};
use crate::codec::append;
use crate::command::{Input, Request};
use crate::event::{Event, Fence, FenceKind};
use crate::history::BodyDigest;
use crate::id::SessionNo;

/// Room made at once for the tables and the input, and for the events: more than most need.
const ROOM_BYTES: usize = 256;

/// The same for the payload of a command or an event.
const PAYLOAD_ROOM_BYTES: usize = 64;

/// What a frame holds of a request, whatever is decided about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// The facts between the fence and the events.
    facts: Vec<u8>,
    texts: Vec<u8>,
    bodies: Vec<u8>,
    digests: Vec<BodyDigest>,
}

/// Encodes a request.
///
/// `nonce` gives 16 fresh random bytes for each text and body, so that short texts cannot be guessed from
/// their digests.
///
/// # Errors
/// [`Fault::TooLarge`] when a number does not fit its field.
pub fn encode_request(
    request: &Request,
    mut nonce: impl FnMut() -> [u8; NONCE_BYTES],
) -> Result<Encoded, Fault> {
    let mut facts = Vec::with_capacity(ROOM_BYTES);
    let texts = encode_table(request.texts.iter(), &mut facts, |_| {}, &mut nonce)?;
    let mut digests = Vec::with_capacity(request.bodies.iter().len());
    let note = |digest| digests.push(digest);
    let bodies = encode_table(request.bodies.iter(), &mut facts, note, &mut nonce)?;
    encode_input(&request.input, &mut facts)?;
    Ok(Encoded {
        facts,
        texts,
        bodies,
        digests,
    })
}

impl Encoded {
    /// Adds what was decided: the parts of the frame, and the digests of its bodies in order.
    ///
    /// # Errors
    /// [`Fault::TooLarge`] when a number does not fit its field.
    pub fn decided(
        self,
        fence: &Fence,
        events: &[Event],
    ) -> Result<(Parts, Vec<BodyDigest>), Fault> {
        let room = FENCE_BYTES + TREE_FENCE_BYTES + self.facts.len() + ROOM_BYTES;
        let mut facts = Vec::with_capacity(room);
        encode_fence(fence, &mut facts)?;
        facts.extend_from_slice(&self.facts);
        put(&mut facts, &(events.len() as u64))?;
        let mut payload = Vec::with_capacity(PAYLOAD_ROOM_BYTES);
        for event in events {
            payload.clear();
            event
                .encode_payload(&mut payload)
                .map_err(|_| Fault::TooLarge)?;
            put(
                &mut facts,
                &Item {
                    kind: event.kind(),
                    version: VERSION,
                    payload: &payload,
                },
            )?;
        }
        let parts = Parts {
            facts,
            texts: self.texts,
            bodies: self.bodies,
        };
        Ok((parts, self.digests))
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
    let (parts, _) = encode_request(request, nonce)?.decided(fence, events)?;
    Ok(parts)
}

fn put<T: Encode>(out: &mut Vec<u8>, value: &T) -> Result<(), Fault> {
    append(out, value).map_err(|_| Fault::TooLarge)
}

fn encode_input(i: &Input, facts: &mut Vec<u8>) -> Result<(), Fault> {
    let mut input = Vec::with_capacity(ROOM_BYTES);
    let mut payload = Vec::with_capacity(PAYLOAD_ROOM_BYTES);
    i.command
        .encode_payload(&mut payload)
        .map_err(|_| Fault::TooLarge)?;
    put(
        &mut input,
        &Item {
            kind: i.command.kind(),
            version: match (&i.require, i.seal) {
                (_, Some(_)) => SEALING,
                (Some(_), None) => REQUIRING,
                (None, None) => VERSION,
            },
            payload: &payload,
        },
    )?;
    let context = Context {
        origin: i.origin,
        presented: i.presented,
        force: i.force,
        evidence: i.evidence.clone(),
        key: i.key,
    };
    put(&mut input, &context)?;
    match (&i.require, i.seal) {
        (require, Some(seal)) => put(&mut input, &(require, seal))?,
        (Some(require), None) => put(&mut input, require)?,
        (None, None) => {}
    }
    put(facts, &input.as_slice())
}

fn encode_fence(fence: &Fence, out: &mut Vec<u8>) -> Result<(), Fault> {
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
    out.extend_from_slice(&[kind, flags, VERSION, 0]);
    out.extend_from_slice(&short(fence.session.unwrap_or(SessionNo(0)))?);
    out.extend_from_slice(&fence.named.map_or(0, |g| g.number).to_le_bytes());
    out.extend_from_slice(&fence.granted.map_or(0, |g| g.number).to_le_bytes());
    if let Some(tree) = fence.tree {
        out.extend_from_slice(&short(tree.root)?);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&tree.epoch.0.to_le_bytes());
    }
    Ok(())
}

fn short(session: SessionNo) -> Result<[u8; 4], Fault> {
    let number = u32::try_from(session.0).map_err(|_| Fault::TooLarge)?;
    Ok(number.to_le_bytes())
}

/// Writes a table into the facts, and gives the part that it names.
fn encode_table<'a>(
    contents: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    facts: &mut Vec<u8>,
    mut note: impl FnMut(BodyDigest),
    nonce: &mut impl FnMut() -> [u8; NONCE_BYTES],
) -> Result<Vec<u8>, Fault> {
    let bytes = contents.clone().map(|content| NONCE_BYTES + content.len());
    let mut part = Vec::with_capacity(bytes.sum());
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
        note(row.digest);
    }
    Ok(part)
}
