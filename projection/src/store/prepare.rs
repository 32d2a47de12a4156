//! From a call to a request: limits, canonical paths, the process to be recorded, evidence. Everything that
//! looks at the outside happens here, before any lock.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::codec::v1::Encoded;
use tenure_core::command::{
    Accept, AcceptFinding, Acknowledge, Adopt, Bearer, BypassGuard, Cancel, Command, Decline,
    Deliver, Dispatch, Fail, Input, Key, Note, Observe, Origin, Presented, Register, RemoveLock,
    Report, Request, Retire, SealStore, Send, Settle,
};
use tenure_core::holder::Evidence;
use tenure_core::id::{Name, Position, SessionNo};
use tenure_core::limits;
use tenure_core::path::Scope;
use tenure_core::seal::{Seal, Secret};
use tenure_core::state::State;
use tenure_core::text::{Bodies, BodyId, TextId, Texts};
use tenure_log::journal::Deadline;

use crate::call::{self, Call, IdempotencyKey, Verb};
use crate::entry;
use crate::error::{Error, Failure};
use crate::host::This;

use super::Store;
use super::group::Order;
use super::{keys, payload};

mod history;
mod rights;
mod tree;

/// A request that is ready to be judged.
pub(super) struct Prepared {
    pub request: Request,
    /// The request as a frame holds it, until a draft is made of it. Another draft, because that one was not written or
    /// the request says more, encodes it anew.
    pub encoded: Option<Encoded>,
    pub key: Option<IdempotencyKey>,
    pub deadline: Deadline,
    /// What a log would keep of the secret in the token presented.
    pub presented: Option<Seal>,
    /// The secret of the grant that is asked for; its answer has it.
    pub secret: Option<Secret>,
}

impl Prepared {
    /// Says of the token presented whether its secret is the right one in `state`. Whether that is something else than it
    /// said before.
    pub fn match_secret(&mut self, state: &State) -> bool {
        let matched = self.matched(state);
        let Some(presented) = &mut self.request.input.presented else {
            return false;
        };
        std::mem::replace(&mut presented.secret_matched, matched) != matched
    }

    fn matched(&self, state: &State) -> Option<bool> {
        let (presented, seal) = (self.request.input.presented?, self.presented?);
        let session = state.find(self.request.texts.get(presented.name));
        let matched = session.is_some_and(|s| state.is_sealed_with(s, presented.generation, seal));
        Some(matched)
    }
}

/// Builds the request of a call.
pub(super) fn prepare(store: &Store, mut call: Call) -> Result<Arc<Order>, Failure> {
    let mut write = Writing {
        store,
        texts: Texts::with_room(),
        bodies: Bodies::default(),
    };
    let this = store.host().this();
    let actor = write.actor(call.actor.as_deref(), &this)?;
    let mut command = write.command(&mut call.verb, actor)?;
    let require = call.require.as_ref();
    let require = require.map(|at| write.role(at)).transpose()?;
    let presented = call.token.as_ref().map(|token| Presented {
        name: write.texts.add(token.name.as_str().as_bytes()),
        generation: token.generation,
        secret_matched: None,
    });
    let secret = secret(store, &call)?;
    let force = call.force.as_deref().map(|r| write.reason(r)).transpose()?;
    let evidence = about_a_holder(store, &call.verb, &mut command, &write.texts)?;
    let (texts, bodies) = (write.texts, write.bodies);
    let origin = Origin {
        actor,
        uid: this.uid,
        pid: this.pid,
        host: this.id,
    };
    // Where it stays: it has some 900 bytes, and is not moved from hand to hand.
    let order = Arc::new(Order::new(Prepared {
        request: Request {
            input: Input {
                command,
                origin,
                presented,
                force,
                evidence,
                key: None,
                require,
                seal: secret.map(|secret| secret.seal()),
            },
            texts,
            bodies,
            time: store.now(),
        },
        encoded: None,
        key: call.key,
        deadline: call.deadline,
        presented: call.token.and_then(|t| t.secret).map(|s| s.seal()),
        secret,
    }));
    finish(store, &mut order.prepared.lock())?;
    Ok(order)
}

/// What follows from a request as it stands: its key, whether its token has the right secret, and its bytes.
fn finish(store: &Store, prepared: &mut Prepared) -> Result<(), Failure> {
    if let Some(key) = &prepared.key {
        prepared.request.input.key = Some(recorded(key, &prepared.request)?);
    }
    if prepared.presented.is_some() {
        // As far as can be seen: it is asked again under the lock.
        prepared.match_secret(&store.live.read().state);
    }
    prepared.encoded = Some(entry::encode(Some(&store.0.supplies), &prepared.request)?);
    Ok(())
}

/// A key as a log has it, with what the call says.
fn recorded(key: &IdempotencyKey, request: &Request) -> Result<Key, Error> {
    if key.0.is_empty() {
        return Err(Error::Empty("an idempotency key"));
    }
    within("the idempotency key", key.0.len(), limits::KEY_BYTES_MAX)?;
    Ok(Key {
        digest: keys::digest(key),
        payload: payload::digest(request),
        taken: None,
    })
}

/// The secret of a grant in a sealed store: as chosen, else one that nobody has seen.
fn secret(store: &Store, call: &Call) -> Result<Option<Secret>, Error> {
    if !call.verb.asks_for_a_grant() {
        return Ok(None);
    }
    // Of a store that has events it is known for ever. Nothing waits here for a disk.
    if store.live.read().state.at.position == Position(0) {
        store.catch_up()?;
    }
    let sealed = store.live.read().state.sealed;
    match (sealed, call.secret) {
        (true, None) => entry::draw_secret().map(Some),
        (true, chosen) => Ok(chosen),
        (false, None) => Ok(None),
        (false, Some(_)) => Err(Error::NotSealed),
    }
}

fn within(what: &'static str, offered: usize, max: usize) -> Result<(), Error> {
    if offered > max {
        Err(Error::Limit { what, offered, max })
    } else {
        Ok(())
    }
}

/// What the probe says about the holder that a verb takes over from, or that may be in its way.
fn about_a_holder(
    store: &Store,
    verb: &Verb,
    command: &mut Command,
    texts: &Texts,
) -> Result<Option<Evidence>, Error> {
    match command {
        Command::TakeRole(c) => {
            return rights::look_at_holder(store, (c.role, &c.scope), &mut c.found, texts);
        }
        Command::LapseRole(c) => {
            return rights::look_at_holder(store, (c.role, &c.scope), &mut c.found, texts);
        }
        _ => {}
    }
    Ok(match verb {
        Verb::HandOff { to, .. } => evidence(store, to, |_, _| true)?,
        Verb::Branch {
            source,
            labels,
            in_tree,
            ..
        } => {
            // Without a token, who holds the tree may be in the way.
            let evidence = evidence(store, source, |_, _| *in_tree)?;
            labels_fit(store, source, labels)?;
            evidence
        }
        Verb::Adopt { name, labels, .. }
        | Verb::AdoptTree { name, labels, .. }
        | Verb::AdoptClaimed { name, labels, .. } => {
            let evidence = evidence(store, name, |_, _| true)?;
            labels_fit(store, name, labels)?;
            evidence
        }
        Verb::Claim { name, .. } | Verb::ReleaseDead { name } => {
            evidence(store, name, |_, _| true)?
        }
        // A name may be reserved, or its tree claimed by others.
        Verb::Register { name, .. }
        | Verb::RegisterChild { name, .. }
        | Verb::Reserve { name, .. } => evidence(store, name, |state, session| {
            !state.is_active(session) || !state.is_published(session)
        })?,
        _ => None,
    })
}

/// What the probe says about who holds the session of that name, where it is one that is `asked` about.
fn evidence(
    store: &Store,
    name: &Name,
    asked: impl Fn(&State, SessionNo) -> bool,
) -> Result<Option<Evidence>, Error> {
    store.catch_up()?;
    let live = store.live.read();
    let session = live.state.find(name.as_str().as_bytes());
    let session = session.filter(|s| asked(&live.state, *s));
    Ok(session.and_then(|s| store.evidence(&live.state, s)))
}

/// Whoever adopts adds labels to those that a session has, and whoever branches to those of the source: all
/// together are limited.
fn labels_fit(store: &Store, name: &Name, labels: &[call::Label]) -> Result<(), Error> {
    let live = store.live.read();
    let session = live.state.find(name.as_str().as_bytes());
    let known = session.and_then(|s| live.state.session(s));
    let known = known.into_iter().flat_map(|s| &s.labels);
    let mut keys: BTreeSet<&[u8]> = known.map(|(key, _)| live.state.pool.get(*key)).collect();
    keys.extend(labels.iter().map(|label| label.key.as_bytes()));
    within("the list of labels", keys.len(), limits::LABELS_MAX)
}

/// Locates paths relative to the working directory.
fn locate_all(store: &Store, paths: &[PathBuf]) -> Result<Vec<Scope<Vec<u8>>>, Error> {
    within("the list of write scopes", paths.len(), limits::SCOPES_MAX)?;
    paths.iter().map(|path| store.locate(path)).collect()
}

/// A request being written.
struct Writing<'s> {
    store: &'s Store,
    texts: Texts,
    bodies: Bodies,
}

impl Writing<'_> {
    /// On whose behalf it is: as named, else the user of the process that asks.
    fn actor(&mut self, named: Option<&str>, this: &This) -> Result<TextId, Error> {
        let user;
        let actor = match named {
            Some(actor) => actor,
            None => {
                user = format!("uid{}@{}", this.uid, this.name);
                &user
            }
        };
        if actor.trim().is_empty() {
            return Err(Error::Empty("the actor"));
        }
        self.text("the actor", actor, limits::LABEL_BYTES_MAX)
    }

    fn text(&mut self, what: &'static str, text: &str, max: usize) -> Result<TextId, Error> {
        within(what, text.len(), max)?;
        Ok(self.texts.add(text.as_bytes()))
    }

    /// A path as it is spelled: of something that is no scope.
    fn path(&mut self, what: &'static str, path: &Path) -> Result<TextId, Error> {
        let bytes = path.as_os_str().as_bytes();
        within(what, bytes.len(), limits::PATH_BYTES_MAX)?;
        Ok(self.texts.add(bytes))
    }

    fn name(&mut self, name: &Name) -> TextId {
        self.texts.add(name.as_str().as_bytes())
    }

    fn reason(&mut self, reason: &str) -> Result<TextId, Error> {
        if reason.trim().is_empty() {
            return Err(Error::Empty("a reason"));
        }
        self.text("the reason", reason, limits::REASON_BYTES_MAX)
    }

    fn body(&mut self, body: Vec<u8>) -> Result<BodyId, Error> {
        within("the text", body.len(), limits::BODY_BYTES_MAX)?;
        Ok(self.bodies.add(body))
    }

    fn scope(&mut self, path: &Path) -> Result<Scope<TextId>, Error> {
        let scope = self.store.locate(path)?;
        Ok(scope.map(|bytes| self.texts.add(bytes)))
    }

    fn scopes(&mut self, paths: &[PathBuf]) -> Result<Vec<Scope<TextId>>, Error> {
        let scopes = locate_all(self.store, paths)?;
        Ok(scopes
            .iter()
            .map(|s| s.map(|bytes| self.texts.add(bytes)))
            .collect())
    }

    fn labels(&mut self, labels: &[call::Label]) -> Result<Vec<(TextId, TextId)>, Error> {
        within("the list of labels", labels.len(), limits::LABELS_MAX)?;
        let mut pair = |label: &call::Label| {
            let key = self.text("a label's key", &label.key, limits::LABEL_BYTES_MAX)?;
            let value = self.text("a label's value", &label.value, limits::LABEL_BYTES_MAX)?;
            Ok((key, value))
        };
        labels.iter().map(&mut pair).collect()
    }

    fn bearer(&mut self, bearer: &call::Bearer, actor: TextId) -> Result<Bearer, Error> {
        let host = self.store.host();
        let bearing = host.bearing(bearer.process)?;
        let host_name = host.this().name;
        let host_name = self.text("the host's name", &host_name, limits::LABEL_BYTES_MAX)?;
        let engine = bearer.engine.as_deref();
        let engine = engine
            .map(|e| self.text("the engine", e, limits::LABEL_BYTES_MAX))
            .transpose()?;
        Ok(Bearer {
            bearing,
            actor,
            host_name,
            engine,
        })
    }

    fn command(&mut self, verb: &mut Verb, actor: TextId) -> Result<Command, Error> {
        if let Some(command) = self.about_a_history(verb, actor)? {
            return Ok(command);
        }
        if let Some(command) = self.about_rights(verb)? {
            return Ok(command);
        }
        if let Some(command) = self.about_a_tree(verb, actor)? {
            return Ok(command);
        }
        Ok(match verb {
            Verb::Register {
                name,
                bearer,
                labels,
                checkout,
            } => Register {
                name: self.name(name),
                bearer: self.bearer(bearer, actor)?,
                labels: self.labels(labels)?,
                checkout: checkout.as_ref().map(|c| self.scope(c)).transpose()?,
            }
            .into(),
            Verb::Adopt {
                name,
                bearer,
                labels,
            } => Adopt {
                name: self.name(name),
                bearer: self.bearer(bearer, actor)?,
                labels: self.labels(labels)?,
            }
            .into(),
            Verb::Retire {
                name,
                if_idle,
                reason,
            } => Retire {
                name: self.name(name),
                if_idle: *if_idle,
                reason: reason.as_deref().map(|r| self.reason(r)).transpose()?,
            }
            .into(),
            Verb::Dispatch {
                item,
                to,
                to_generation,
                title,
                writes,
                body,
            } => Dispatch {
                item: self.name(item),
                to: self.name(to),
                to_generation: *to_generation,
                title: title
                    .as_deref()
                    .map(|t| self.text("the title", t, limits::TITLE_BYTES_MAX))
                    .transpose()?,
                writes: self.scopes(writes)?,
                body: body.take().map(|b| self.body(b)).transpose()?,
            }
            .into(),
            other => self.about_a_dispatch(other)?,
        })
    }

    /// What ends or begins the work on a dispatch.
    fn about_a_dispatch(&mut self, verb: &mut Verb) -> Result<Command, Error> {
        Ok(match verb {
            Verb::Accept { dispatch } => Accept {
                dispatch: *dispatch,
            }
            .into(),
            Verb::Decline { dispatch, reason } => Decline {
                dispatch: *dispatch,
                reason: self.reason(reason)?,
            }
            .into(),
            Verb::Report {
                dispatch,
                outcome,
                body,
            } => Report {
                dispatch: *dispatch,
                outcome: *outcome,
                body: body.take().map(|b| self.body(b)).transpose()?,
            }
            .into(),
            Verb::Cancel { dispatch, reason } => Cancel {
                dispatch: *dispatch,
                reason: self.reason(reason)?,
            }
            .into(),
            Verb::Fail { dispatch, reason } => Fail {
                dispatch: *dispatch,
                reason: self.reason(reason)?,
            }
            .into(),
            other => self.about_the_rest(other)?,
        })
    }

    /// Notes, mail, and the store's own affairs.
    fn about_the_rest(&mut self, verb: &mut Verb) -> Result<Command, Error> {
        Ok(match verb {
            Verb::Note { body, on } => Note {
                body: self.body(std::mem::take(body))?,
                on: *on,
            }
            .into(),
            Verb::Observe { status, wrote } => Observe {
                status: self.text("the status", status, limits::STATUS_BYTES_MAX)?,
                wrote: self.scopes(wrote)?,
            }
            .into(),
            Verb::Send { to, body, re } => Send {
                to: self.name(to),
                body: self.body(std::mem::take(body))?,
                re: *re,
            }
            .into(),
            Verb::Deliver { envelope } => Deliver {
                envelope: *envelope,
            }
            .into(),
            Verb::Acknowledge { envelope } => Acknowledge {
                envelope: *envelope,
            }
            .into(),
            Verb::Settle { how, reason } => Settle {
                how: *how,
                incarnation: 0,
                reason: self.reason(reason)?,
            }
            .into(),
            Verb::SealStore => SealStore {}.into(),
            Verb::AcceptFinding { position, reason } => AcceptFinding {
                position: *position,
                reason: self.reason(reason)?,
            }
            .into(),
            other => self.about_checkouts(other)?,
        })
    }

    /// What was done in a checkout beside the ledger.
    fn about_checkouts(&mut self, verb: &Verb) -> Result<Command, Error> {
        Ok(match verb {
            Verb::BypassGuard {
                hook,
                checkout,
                said,
                reason,
            } => BypassGuard {
                hook: self.text("the hook's name", hook, limits::LABEL_BYTES_MAX)?,
                checkout: self.path("the checkout", checkout)?,
                said: self.text("what the guard said", said, limits::REASON_BYTES_MAX)?,
                reason: self.reason(reason)?,
            }
            .into(),
            Verb::RemoveLock {
                path,
                uid,
                bytes,
                modified,
                reason,
            } => RemoveLock {
                path: self.path("the lock's path", path)?,
                uid: *uid,
                bytes: *bytes,
                modified: *modified,
                reason: self.reason(reason)?,
            }
            .into(),
            _ => unreachable!("the other verbs were handled before"),
        })
    }
}
