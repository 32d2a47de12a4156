//! From a frame of the log to an entry of the rules, and back to a draft.

use tenure_core::codec::v1;
use tenure_core::command::Request;
use tenure_core::decide::Decision;
use tenure_core::event::Entry;
use tenure_core::history::BodyDigest;
use tenure_core::id::{Moment, Position, Time};
use tenure_log::frame::{Draft, Frame, FrameRef, Header, Parts};
use tenure_log::position::TimeMicros;

use crate::error::Error;

/// When and where a frame stands.
#[must_use]
pub fn moment(header: &Header) -> Moment {
    Moment {
        position: Position(header.position.0),
        time: Time(header.time.0),
    }
}

/// Decodes what a replay needs of a frame.
///
/// # Errors
/// [`Error::Facts`] when the parts do not decode: the frame's checksums held, and its content does not.
pub fn decode(frame: &FrameRef<'_>) -> Result<Entry, Error> {
    let at = moment(&frame.header);
    v1::decode_entry(frame.facts, frame.texts, at, frame.header.incarnation.0).map_err(|fault| {
        Error::Facts {
            position: at.position,
            fault,
        }
    })
}

/// As [`decode`], in place of whatever `entry` held, whose room is used again.
///
/// # Errors
/// As [`decode`]; the entry is then none.
pub fn decode_into(entry: &mut Entry, frame: &FrameRef<'_>) -> Result<(), Error> {
    let at = moment(&frame.header);
    let incarnation = frame.header.incarnation.0;
    v1::decode_entry_into(entry, frame.facts, frame.texts, at, incarnation).map_err(|fault| {
        Error::Facts {
            position: at.position,
            fault,
        }
    })
}

/// Decodes the input that a frame's decision was made on.
///
/// # Errors
/// [`Error::Facts`] when the parts do not decode or a text is not the one its facts name.
pub fn decode_request(frame: &FrameRef<'_>) -> Result<Request, Error> {
    let at = moment(&frame.header);
    v1::decode_request(frame.facts, frame.texts, frame.bodies, at.time).map_err(|fault| {
        Error::Facts {
            position: at.position,
            fault,
        }
    })
}

/// An owned frame, lent.
#[must_use]
pub fn lend(frame: &Frame) -> FrameRef<'_> {
    FrameRef {
        header: frame.header,
        facts: &frame.parts.facts,
        texts: &frame.parts.texts,
        bodies: &frame.parts.bodies,
    }
}

/// The digests of the bodies of a draft that is to stand at `position`.
pub(crate) fn body_digests(draft: &Draft, position: Position) -> Result<Vec<BodyDigest>, Error> {
    v1::decode_body_digests(&draft.parts.facts).map_err(|fault| Error::Facts { position, fault })
}

/// Encodes a decision into what the log appends.
///
/// # Errors
/// [`Error::TooLarge`] when a number does not fit its field.
pub fn draft(request: &Request, decision: &Decision) -> Result<Draft, Error> {
    let count = request.texts.iter().len() + request.bodies.iter().len();
    let mut random = vec![0; count * v1::NONCE_BYTES];
    getrandom::fill(&mut random).map_err(|e| Error::Random(e.to_string()))?;
    let mut nonces = random.as_chunks::<{ v1::NONCE_BYTES }>().0.iter();
    let parts = v1::encode(&decision.fence, request, &decision.events, || {
        *nonces
            .next()
            .expect("one nonce was drawn for every text and body")
    })
    .map_err(|_| Error::TooLarge)?;
    Ok(Draft {
        time: TimeMicros(request.time.0),
        parts: Parts {
            facts: parts.facts,
            texts: parts.texts,
            bodies: parts.bodies,
        },
    })
}
