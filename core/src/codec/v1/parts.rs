//! Single parts of a frame, read without the others.

use alloc::vec::Vec;
use core::ops::Range;

use crate::command::Key;

use super::{Facts, Fault, NONCE_BYTES, context, decode_fence, digest, is_taken_out};

/// Where a text or body stands in its part.
pub(crate) struct Place {
    /// Its content, behind its nonce.
    pub content: Range<usize>,
    /// Whether it was taken out.
    pub taken_out: bool,
}

/// Where every text and every body of a frame stands.
///
/// # Errors
/// A [`Fault`] for bytes that no [`encode`](super::encode) wrote, but for those that were taken out.
pub(crate) fn places(facts: &[u8], texts: &[u8], bodies: &[u8]) -> Result<[Vec<Place>; 2], Fault> {
    let mut reader = Facts::behind(&decode_fence(facts, 1)?, facts);
    let mut tables = [Vec::new(), Vec::new()];
    for ((what, part), table) in [("texts", texts), ("bodies", bodies)]
        .into_iter()
        .zip(&mut tables)
    {
        let mut begin = 0;
        for number in 0..reader.number(what)? {
            let (row_digest, length) = reader.row(what)?;
            let length = usize::try_from(length).map_err(|_| Fault::PartLength(what))?;
            let from = begin + NONCE_BYTES;
            let end = from.checked_add(length).ok_or(Fault::PartLength(what))?;
            let bytes = part.get(begin..end).ok_or(Fault::PartLength(what))?;
            let (nonce, content) = bytes.split_at(NONCE_BYTES);
            let other = digest(nonce, content) != *row_digest;
            if other && !is_taken_out(nonce, content) {
                return Err(Fault::Digest(what, number as usize));
            }
            table.push(Place {
                content: from..end,
                taken_out: other,
            });
            begin = end;
        }
        if begin != part.len() {
            return Err(Fault::PartLength(what));
        }
    }
    Ok(tables)
}

/// The kinds of a frame's events, in order, also of those that this program does not know.
///
/// # Errors
/// A [`Fault`] for bytes that no [`encode`](super::encode) wrote.
pub fn decode_kinds(facts: &[u8]) -> Result<Vec<u16>, Fault> {
    let mut reader = Facts::behind(&decode_fence(facts, 1)?, facts);
    for what in ["texts", "bodies"] {
        reader.digests(what, |_| {})?;
    }
    reader.bytes("input")?;
    let mut kinds = Vec::new();
    for _ in 0..reader.number("events")? {
        kinds.push(reader.item("events")?.kind);
    }
    Ok(kinds)
}

/// The idempotency key in a frame's input, without reading anything else.
///
/// # Errors
/// A [`Fault`] for bytes that no [`encode`](super::encode) wrote.
pub fn decode_key(facts: &[u8]) -> Result<Option<Key>, Fault> {
    let mut reader = Facts::behind(&decode_fence(facts, 1)?, facts);
    for what in ["texts", "bodies"] {
        reader.digests(what, |_| {})?;
    }
    let input = reader.bytes("input")?;
    let mut inner = Facts { rest: input };
    let item = inner.item("input")?;
    let beside = context(item.version, inner.rest)?;
    Ok(beside.context.key)
}
