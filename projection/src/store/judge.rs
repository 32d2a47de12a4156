//! What happens under the append lock: every order that waits is decided on the true head and applied, before
//! anything is written.

use tenure_core::apply::Applied;
use tenure_core::codec::v1::Encoded;
use tenure_core::command::{Command, Origin, Request, SetAside};
use tenure_core::decide::{Decision, decide, refused};
use tenure_core::event::{Entry, Event};
use tenure_core::id::{Moment, Position};
use tenure_core::limits::REFUSED_BODY_BYTES_MAX;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::text::Texts;
use tenure_log::frame::{Draft, Frame};
use tenure_log::journal::Tail;
use tenure_log::position::Head;
use tenure_log::recovery::Torn;

use crate::entry;
use crate::error::Error;
use crate::sync::Mutex;
use crate::zoo::planted;

use super::answer::{Answer, answer, standing};
use super::group::Verdict;
use super::keys::Prior;
use super::live::Live;
use super::prepare::Prepared;

/// How an order stands while a transaction is being made.
pub(super) enum Judged {
    /// Draft number so-and-so.
    Drafted { draft: usize, answer: Box<Answer> },
    /// Decided without a draft.
    Final(Verdict),
    /// Not decided: what was read before the lock was given up since.
    Unread,
}

/// Decides the open orders on the true head, applying each as it is decided.
pub(super) fn judge<'j>(
    live: &mut Live,
    tail: &Tail<'_>,
    torn: &[Torn],
    orders: impl Iterator<Item = &'j Mutex<Prepared>>,
) -> Result<(Vec<Judged>, Vec<Draft>), Error> {
    // Between the head this handle knew and the lock, another thread of this process may have read on.
    let read = live.head.position;
    let unread = |f: &&Frame| f.header.position > read && !planted("decided-before-the-lock");
    for frame in tail.frames.iter().filter(unread) {
        live.fold(&frame.by_ref())?;
    }
    if tail.incarnation.0 != live.state.incarnation {
        // What is appended now would stand in no life that a reader knows of.
        return Err(Error::Unbegun {
            incarnation: tail.incarnation.0,
        });
    }
    let judged_head = tail.head;
    let (mut judged, mut drafts) = (Vec::new(), Vec::new());
    for order in orders {
        let mut prepared = order.lock();
        let next = |drafts: &[Draft]| Moment {
            position: Position(judged_head.position.0 + drafts.len() as u64 + 1),
            time: prepared.request.time,
        };
        if judged.is_empty() && appends(live) {
            for torn in torn {
                let at = next(&drafts);
                set_aside(live, torn, &prepared.request, at, &mut drafts)?;
            }
        }
        let at = next(&drafts);
        judged.push(one(live, &mut prepared, at, &mut drafts)?);
    }
    live.sound()?;
    Ok((judged, drafts))
}

/// Whether an ordinary frame may be appended.
fn appends(live: &Live) -> bool {
    live.state.unknown.is_none() && live.state.findings.is_empty() && !live.state.is_unproven()
}

/// Records a torn tail that the log says nothing of yet, in a frame of its own before the orders: the store's, in
/// the name of nobody's token. Whoever finds it in quarantine does, so that a crash before that changes nothing.
fn set_aside(
    live: &mut Live,
    torn: &Torn,
    asked: &Request,
    at: Moment,
    drafts: &mut Vec<Draft>,
) -> Result<(), Error> {
    let mut texts = Texts::default();
    let actor = texts.add(asked.texts.get(asked.input.origin.actor));
    let command = SetAside {
        first: Position(torn.segment.first.0),
        epoch: torn.segment.epoch.0,
        offset: torn.offset,
        bytes: torn.bytes,
        file: texts.add(torn.quarantine.as_bytes()),
    };
    let origin = Origin {
        actor,
        ..asked.input.origin
    };
    let mut request = Request::of_the_store(command.into(), origin, texts, asked.time);
    match decide(&live.state, &request) {
        Ok(decision) if !decision.events.is_empty() => {
            append(live, &mut request, decision, None, at, drafts).map(drop)
        }
        _ => Ok(()),
    }
}

/// Why nothing may be appended to this log, whatever is asked.
fn forbidden(live: &Live, request: &Request) -> Option<Error> {
    if let Some(kind) = live.state.unknown {
        return Some(Error::NewerEvents { kind });
    }
    if live.state.is_unproven() {
        return Some(Error::Unproven);
    }
    findings(live, request)
}

/// Decides one order.
fn one(
    live: &mut Live,
    prepared: &mut Prepared,
    at: Moment,
    drafts: &mut Vec<Draft>,
) -> Result<Judged, Error> {
    if let Some(found) = forbidden(live, &prepared.request) {
        return Ok(Judged::Final(Verdict::Failed(found)));
    }
    if prepared.presented.is_some() && prepared.match_secret(&live.state) {
        // What the request says of its token was not known when it was encoded.
        prepared.encoded = None;
    }
    let Prepared {
        request, encoded, ..
    } = prepared;
    let mut taken = None;
    if let Some(key) = &mut request.input.key {
        let Some(prior) = live.known_prior(key.digest) else {
            return Ok(Judged::Unread);
        };
        if let Some(prior) = prior.filter(|prior| prior.payload == key.payload) {
            return Ok(Judged::Final(repeat(live, request, prior, at, drafts)?));
        }
        taken = prior.map(|prior| prior.position);
        key.taken = taken;
    }
    match decide(&live.state, request) {
        Ok(decision) if decision.events.is_empty() => {
            let (at, answer) = standing(&live.state, request);
            let judged = live.state.at.position;
            Ok(Judged::Final(Verdict::Done {
                receipt: None,
                at,
                answer: Box::new(answer),
                repeated: true,
                judged,
            }))
        }
        Ok(decision) => {
            let draft = drafts.len();
            // What it says of its key was not known before.
            let encoded = encoded.take().filter(|_| taken.is_none());
            let events = append(live, request, decision, encoded, at, drafts)?;
            let prior = |key: tenure_core::command::Key| (key.digest, key.payload);
            if let Some((key, payload)) = request.input.key.map(prior) {
                live.note_key(
                    key,
                    Prior {
                        position: at.position,
                        payload,
                    },
                );
            }
            Ok(Judged::Drafted {
                draft,
                answer: Box::new(answer(&live.state, &request.texts, &events)),
            })
        }
        Err(refusal) => {
            let kept = record(live, request, &refusal, at, drafts)?;
            Ok(Judged::Final(Verdict::Refused {
                refusal: Box::new(refusal),
                judged: live.state.at.position,
                kept,
            }))
        }
    }
}

/// The same call under the same key again. Under a token that is no longer current it is refused like any
/// other write, and told where the first one stands; all else is found behind the lock.
fn repeat(
    live: &mut Live,
    request: &mut Request,
    prior: Prior,
    at: Moment,
    drafts: &mut Vec<Draft>,
) -> Result<Verdict, Error> {
    let grants = matches!(
        request.input.command,
        Command::Register(_)
            | Command::Adopt(_)
            | Command::RegisterChild(_)
            | Command::Reserve(_)
            | Command::Claim(_)
            | Command::AdoptTree(_)
            | Command::AdoptClaimed(_)
            | Command::Branch(_)
    );
    let lapsed = [Code::StaleGeneration, Code::NeverIssued, Code::Retired];
    Ok(match decide(&live.state, request) {
        Err(mut refusal) if !grants && lapsed.contains(&refusal.code) => {
            let kept = record(live, request, &refusal, at, drafts)?;
            refusal.code = Code::StaleGeneration;
            refusal.recorded_at = Some(prior.position);
            Verdict::Refused {
                refusal: Box::new(refusal),
                judged: live.state.at.position,
                kept,
            }
        }
        _ => Verdict::Again {
            prior,
            judged: live.state.at.position,
        },
    })
}

/// How much of a refusal the log keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kept {
    /// It is the first under its record.
    Opened,
    /// It carried something new.
    Added,
    /// It is only counted.
    Counted,
}

/// Keeps a refusal, unless it is only to be counted.
fn record(
    live: &mut Live,
    request: &mut Request,
    refusal: &Refusal,
    at: Moment,
    drafts: &mut Vec<Draft>,
) -> Result<Kept, Error> {
    let key = request.input.key;
    // A refusal binds no key: the frame names one only where the key itself is why. The call keeps its own, in
    // case it has to be decided again.
    request.input.key = key.filter(|key| key.taken.is_some());
    // A body that no record of refusals has room for is not kept; the call keeps it, as it does its key.
    let carried: u64 = request.bodies.iter().map(|b| b.len() as u64).sum();
    let oversized = (carried > REFUSED_BODY_BYTES_MAX).then(|| std::mem::take(&mut request.bodies));
    let known = live.state.refusals.len();
    let appended = refused(&live.state, request, refusal)
        .map(|decision| append(live, request, decision, None, at, drafts).map(drop))
        .transpose();
    request.input.key = key;
    if let Some(bodies) = oversized {
        request.bodies = bodies;
    }
    Ok(match appended? {
        None => Kept::Counted,
        Some(()) if live.state.refusals.len() > known => Kept::Opened,
        Some(()) => Kept::Added,
    })
}

/// Frames that did not stand stop every append but the one that acknowledges them.
fn findings(live: &Live, request: &Request) -> Option<Error> {
    let first = *live.state.findings.first()?;
    let settles = matches!(request.input.command, Command::AcceptFinding(_));
    (!settles).then_some(Error::Findings {
        first,
        count: live.state.findings.len(),
    })
}

/// Drafts a decision and applies it; gives its events back. `encoded` is the request as it is, where it was encoded before.
fn append(
    live: &mut Live,
    request: &mut Request,
    decision: Decision,
    encoded: Option<Encoded>,
    at: Moment,
    drafts: &mut Vec<Draft>,
) -> Result<Vec<Event>, Error> {
    let encoded = match encoded {
        Some(encoded) => encoded,
        None => entry::encode(None, request)?,
    };
    let mut bodies = live.room_for_bodies();
    encoded.body_digests(|digest| bodies.push(digest));
    drafts.push(entry::decided(encoded, request.time, &decision)?);
    let entry = Entry {
        at,
        incarnation: live.state.incarnation,
        fence: decision.fence,
        // Lent, and given back below.
        texts: std::mem::take(&mut request.texts),
        bodies,
        events: decision.events,
        unknown: None,
    };
    // The chain is known when the log has written the frame; `conclude` sets it.
    let head = Head {
        position: tenure_log::position::Position(at.position.0),
        ..live.head
    };
    let applied = live.append(&entry, head);
    request.texts = entry.texts;
    live.give_back(entry.bodies);
    match applied {
        Applied::Honoured => Ok(entry.events),
        // Every reader would see it as forged, and nothing could be appended any more.
        Applied::Finding | Applied::Unknown | Applied::Unproven => Err(Error::Described(
            "a decision of this program does not stand on its own state; nothing was appended"
                .into(),
        )),
    }
}
