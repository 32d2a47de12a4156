//! From a frame of the log to an entry of the rules, and back to a draft.

use tenure_core::codec::v1::{self, Encoded};
use tenure_core::command::Request;
use tenure_core::decide::Decision;
use tenure_core::event::Entry;
use tenure_core::id::{Moment, Position, Time};
use tenure_core::seal::Secret;
use tenure_log::frame::{Draft, Frame, FrameRef, Header, Parts};
use tenure_log::position::TimeMicros;

use crate::error::Error;
use crate::sync::Mutex;

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

/// Encodes a decision into what the log appends.
///
/// # Errors
/// [`Error::TooLarge`] when a number does not fit its field; [`Error::Random`] when the system has no random numbers.
pub fn draft(request: &Request, decision: &Decision) -> Result<Draft, Error> {
    decided(encode(None, request)?, request.time, decision)
}

/// A random number of its own for a text or a body.
type Nonce = [u8; v1::NONCE_BYTES];

/// As many as most requests need.
const FEW: usize = 8;

/// Bytes of random numbers drawn at once: what some dozen frames need.
const DRAWN_BYTES: usize = 1024;

/// Random numbers for texts and bodies, drawn many with one system call. Each is given once. Kept with one handle of a
/// store, which refuses after a fork: a copy would give them a second time.
#[derive(Default)]
struct Nonces {
    drawn: Vec<u8>,
}

/// What requests are encoded with, kept with one handle of a store: random numbers, and the room of drafts that were
/// appended.
#[derive(Default)]
pub(crate) struct Supplies {
    nonces: Nonces,
    rooms: Vec<v1::Parts>,
}

/// The most drafts whose room is kept: as many as one transaction appends.
const ROOMS_MAX: usize = 256;

/// The largest part whose room is kept. Most are far shorter, and one of megabytes is not held on to.
const ROOM_BYTES_MAX: usize = 2048;

impl Supplies {
    /// Takes drafts back that were appended, for their room.
    pub fn take_back(&mut self, drafts: Vec<Draft>) {
        let few = |parts: &v1::Parts| {
            let each = [&parts.facts, &parts.texts, &parts.bodies];
            each.iter().all(|part| part.capacity() <= ROOM_BYTES_MAX)
        };
        let rooms = drafts.into_iter().map(|draft| v1::Parts {
            facts: draft.parts.facts,
            texts: draft.parts.texts,
            bodies: draft.parts.bodies,
        });
        let left = ROOMS_MAX.saturating_sub(self.rooms.len());
        self.rooms.extend(rooms.filter(few).take(left));
    }
}

impl Nonces {
    /// As many as a request needs.
    fn take(&mut self, into: &mut [Nonce]) -> Result<(), Error> {
        let needed = size_of_val(into);
        if self.drawn.len() < needed {
            self.drawn.resize(needed.max(DRAWN_BYTES), 0);
            if let Err(refused) = draw(&mut self.drawn) {
                self.drawn.clear();
                return Err(refused);
            }
        }
        let left = self.drawn.len() - needed;
        into.as_flattened_mut().copy_from_slice(&self.drawn[left..]);
        self.drawn.truncate(left);
        Ok(())
    }
}

fn draw(into: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(into).map_err(|refused| Error::Random(refused.to_string()))
}

/// A secret that nobody has seen.
///
/// # Errors
/// [`Error::Random`] when the system has no random numbers.
pub fn draw_secret() -> Result<Secret, Error> {
    let mut bytes = [0; Secret::BYTES];
    draw(&mut bytes)?;
    Ok(Secret::from_bytes(bytes))
}

/// Encodes a request before it is decided, with random numbers that were drawn before and in room that there is or,
/// without, with its own.
///
/// # Errors
/// [`Error::TooLarge`] when a number does not fit its field; [`Error::Random`] when the system has no random numbers.
pub(crate) fn encode(
    supplies: Option<&Mutex<Supplies>>,
    request: &Request,
) -> Result<Encoded, Error> {
    let count = request.texts.iter().len() + request.bodies.iter().len();
    let (mut few, mut many) = ([Nonce::default(); FEW], Vec::new());
    let room = match few.get_mut(..count) {
        Some(room) => room,
        None => {
            many.resize(count, Nonce::default());
            &mut many[..]
        }
    };
    let parts = match supplies {
        Some(supplies) => {
            let mut supplies = supplies.lock();
            supplies.nonces.take(room)?;
            supplies.rooms.pop()
        }
        None => {
            draw(room.as_flattened_mut())?;
            None
        }
    };
    let mut taken = room.iter();
    v1::encode_request(request, parts.unwrap_or_default(), || {
        *taken
            .next()
            .expect("one nonce was taken for every text and body")
    })
    .map_err(|_| Error::TooLarge)
}

/// Adds what was decided to an encoded request: what the log appends.
///
/// # Errors
/// [`Error::TooLarge`] when a number does not fit its field.
pub(crate) fn decided(encoded: Encoded, time: Time, decision: &Decision) -> Result<Draft, Error> {
    let parts = encoded
        .decided(&decision.fence, &decision.events)
        .map_err(|_| Error::TooLarge)?;
    Ok(Draft {
        time: TimeMicros(time.0),
        parts: Parts {
            facts: parts.facts,
            texts: parts.texts,
            bodies: parts.bodies,
        },
    })
}
