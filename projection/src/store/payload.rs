//! What makes two calls under one idempotency key the same: everything the caller said, and nothing that the
//! host found (process, canonical identities, time), since a retry is made by another process.

use tenure_core::command::{Bearer, Command, Label, Ref, Request};
use tenure_core::generation::Epoch;
use tenure_core::history::Activity;
use tenure_core::id::Position;
use tenure_core::role::RoleScope;
use tenure_core::text::TextId;

use super::keys::short;

/// Digest of what the caller said.
pub(super) fn digest(request: &Request) -> [u8; 16] {
    let mut said = Said {
        request,
        hasher: blake3::Hasher::new_derive_key("tenure call payload v1"),
    };
    let input = &request.input;
    said.number(u64::from(input.command.kind()));
    said.text(Some(input.origin.actor));
    said.text(input.force);
    said.text(input.presented.map(|p| p.name));
    said.number(input.presented.map_or(0, |p| p.generation.incarnation));
    said.number(input.presented.map_or(0, |p| p.generation.number));
    said.command(&input.command);
    // A call that requires nothing has the digest that it had before anything could be required.
    if let Some(required) = &input.require {
        said.role(required.role, &required.scope, None);
    }
    if let Some(seal) = input.seal {
        said.bytes(&seal.0);
    }
    for body in request.bodies.iter() {
        said.bytes(body);
    }
    short(&said.hasher)
}

struct Said<'r> {
    request: &'r Request,
    hasher: blake3::Hasher,
}

impl Said<'_> {
    fn number(&mut self, number: u64) {
        self.hasher.update(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.hasher.update(bytes);
    }

    /// A text that may be missing; missing and empty differ.
    fn text(&mut self, text: Option<TextId>) {
        self.number(u64::from(text.is_some()));
        if let Some(text) = text {
            self.bytes(self.request.texts.get(text));
        }
    }

    fn texts(&mut self, texts: impl ExactSizeIterator<Item = TextId>) {
        self.number(texts.len() as u64);
        texts.for_each(|t| self.text(Some(t)));
    }

    fn reference(&mut self, to: Option<Ref>) {
        let (kind, number) = match to {
            None => (0, 0),
            Some(Ref::Dispatch(d)) => (1, d.0),
            Some(Ref::Envelope(e)) => (2, e.0),
        };
        self.number(kind);
        self.number(number);
    }

    fn activity(&mut self, activity: Option<Activity>) {
        self.number(activity.map_or(0, |a| u64::from(a.kind.number())));
        self.text(activity.map(|a| a.id));
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Register(c) => {
                self.named(c.name, &c.bearer, &c.labels);
                self.text(c.checkout.as_ref().map(|s| s.path));
            }
            Command::Adopt(c) => self.named(c.name, &c.bearer, &c.labels),
            Command::Retire(c) => {
                self.text(Some(c.name));
                self.number(u64::from(c.if_idle));
                self.text(c.reason);
            }
            Command::Dispatch(c) => {
                self.text(Some(c.item));
                self.text(Some(c.to));
                self.number(c.to_generation.map_or(0, |g| g.incarnation));
                self.number(c.to_generation.map_or(0, |g| g.number));
                self.text(c.title);
                self.texts(c.writes.iter().map(|w| w.path));
            }
            Command::Observe(c) => {
                self.text(Some(c.status));
                self.texts(c.wrote.iter().map(|w| w.path));
            }
            Command::Send(c) => {
                self.text(Some(c.to));
                self.reference(c.re);
            }
            Command::Note(c) => self.reference(c.on),
            Command::BypassGuard(c) => {
                self.texts([c.hook, c.checkout, c.said, c.reason].into_iter());
            }
            Command::RemoveLock(c) => {
                self.texts([c.path, c.reason].into_iter());
                self.number(u64::from(c.uid));
                self.number(c.bytes);
                self.bytes(&c.modified.0.to_le_bytes());
            }
            other => self.about_a_history(other),
        }
    }

    /// Commands about histories.
    fn about_a_history(&mut self, command: &Command) {
        match command {
            Command::Revert(c) => self.number(c.to.0),
            Command::Branch(c) => {
                self.branched((c.source, c.name), c.at, &c.bearer, &c.labels);
                self.text(c.checkout.as_ref().map(|s| s.path));
            }
            Command::BranchInTree(c) => {
                self.branched((c.source, c.name), c.at, &c.bearer, &c.labels);
                self.text(c.checkout.as_ref().map(|s| s.path));
            }
            Command::Import(c) => {
                self.text(Some(c.from));
                self.text(c.parent);
                self.bytes(&c.hash.0);
            }
            Command::Rename(c) => self.texts([c.name, c.to].into_iter()),
            Command::Record(c) => {
                self.text(Some(c.kind));
                self.number(c.expect.map_or(u64::MAX, |p| p.0));
                self.activity(c.opens);
                self.activity(c.closes);
            }
            other => self.about_rights(other),
        }
    }

    /// Commands about roles, hand-over and policies.
    fn about_rights(&mut self, command: &Command) {
        match command {
            Command::HandOff(c) => {
                self.number(c.dispatch.0);
                self.text(Some(c.to));
                self.number(c.to_generation.map_or(0, |g| g.incarnation));
                self.number(c.to_generation.map_or(0, |g| g.number));
            }
            Command::SetPolicy(c) => {
                self.number(u64::from(c.rule.number()));
                self.number(u64::from(c.shared));
                self.text(Some(c.scope.path));
            }
            Command::CheckWrite(c) => self.texts(c.writes.iter().map(|w| w.path)),
            Command::TakeRole(c) => self.role(c.role, &c.scope, None),
            Command::LapseRole(c) => self.role(c.role, &c.scope, None),
            Command::ReleaseRole(c) => self.role(c.role, &c.scope, None),
            Command::CheckRole(c) => {
                self.role(c.role, &c.scope, None);
                self.number(c.generation.map_or(0, |g| g.incarnation));
                self.number(c.generation.map_or(0, |g| g.number));
            }
            Command::ClearRole(c) => self.role(c.role, &c.scope, Some(c.reason)),
            other => self.about_a_tree(other),
        }
    }

    /// Commands about trees.
    fn about_a_tree(&mut self, command: &Command) {
        let presented = |epoch: Option<Epoch>| epoch.map_or(0, |e| e.0);
        match command {
            Command::RegisterChild(c) => {
                self.named(c.name, &c.bearer, &c.labels);
                self.text(c.checkout.as_ref().map(|s| s.path));
            }
            Command::Reserve(c) => {
                self.named(c.name, &c.bearer, &c.labels);
                self.text(c.checkout.as_ref().map(|s| s.path));
            }
            Command::Claim(c) => self.named(c.name, &c.bearer, &[]),
            Command::AdoptTree(c) => self.named(c.name, &c.bearer, &c.labels),
            Command::AdoptClaimed(c) => {
                self.named(c.name, &c.bearer, &c.labels);
                self.number(c.epoch.0);
            }
            Command::Publish(c) => {
                self.text(Some(c.name));
                self.number(presented(c.epoch));
            }
            Command::Rollback(c) => {
                self.text(Some(c.name));
                self.number(c.epoch.0);
            }
            Command::Recover(c) => {
                self.text(Some(c.name));
                self.number(c.epoch.0);
            }
            Command::Release(c) => {
                self.text(Some(c.name));
                self.number(presented(c.epoch));
                self.text(c.reason);
            }
            Command::ReleaseDead(c) => self.text(Some(c.name)),
            other => self.about_one_thing(other),
        }
    }

    /// A role by its scope: whether that is a name or a place makes two of one text.
    fn role(&mut self, role: TextId, scope: &RoleScope<TextId>, reason: Option<TextId>) {
        self.texts([role, scope.text].into_iter());
        self.number(u64::from(scope.place.is_some()));
        self.text(reason);
    }

    /// A branch: of what, under which name, and where.
    fn branched(
        &mut self,
        (source, name): (TextId, TextId),
        at: Option<Position>,
        bearer: &Bearer,
        labels: &[Label],
    ) {
        self.text(Some(source));
        self.text(Some(name));
        self.number(at.map_or(u64::MAX, |p| p.0));
        self.bearer(bearer, labels);
    }

    /// A session, who is to act for it, and its labels.
    fn named(&mut self, name: TextId, bearer: &Bearer, labels: &[Label]) {
        self.text(Some(name));
        self.bearer(bearer, labels);
    }

    fn bearer(&mut self, bearer: &Bearer, labels: &[Label]) {
        self.text(bearer.engine);
        self.texts(labels.iter().map(|l| l.0));
        self.texts(labels.iter().map(|l| l.1));
    }

    /// Commands about one dispatch, envelope or position.
    fn about_one_thing(&mut self, command: &Command) {
        let (number, detail, reason) = match command {
            Command::Accept(c) => (c.dispatch.0, 0, None),
            Command::Decline(c) => (c.dispatch.0, 0, Some(c.reason)),
            Command::Report(c) => (c.dispatch.0, u64::from(c.outcome.number()), None),
            Command::Cancel(c) => (c.dispatch.0, 0, Some(c.reason)),
            Command::Fail(c) => (c.dispatch.0, 0, Some(c.reason)),
            Command::Attend(c) => (c.dispatch.0, 0, c.reason),
            Command::Deliver(c) => (c.envelope.0, 0, None),
            Command::Acknowledge(c) => (c.envelope.0, 0, None),
            Command::Settle(c) => (0, u64::from(c.how.number()), Some(c.reason)),
            Command::AcceptFinding(c) => (c.position.0, 0, Some(c.reason)),
            _ => (0, 0, None),
        };
        self.number(number);
        self.number(detail);
        self.text(reason);
    }
}
