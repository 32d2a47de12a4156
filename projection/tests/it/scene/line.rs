//! One line per command.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tenure_core::command::{Outcome, Ref};
use tenure_core::generation::{Epoch, Generation};
use tenure_core::id::{DispatchNo, EnvelopeNo, Name, Position, Time, Token};
use tenure_projection::call::{Bearer, Call, Label, ProcessChoice, Verb};

mod history;
mod rights;

/// A line in its words: plain ones, and `key=value`.
pub struct Words<'l> {
    /// Words that stand alone.
    pub plain: Vec<&'l str>,
    named: BTreeMap<&'l str, &'l str>,
}

impl<'l> Words<'l> {
    /// Takes a line apart.
    pub fn parse(line: &'l str) -> Self {
        let mut words = Words {
            plain: Vec::new(),
            named: BTreeMap::new(),
        };
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some((key, value)) => drop(words.named.insert(key, value)),
                None => words.plain.push(word),
            }
        }
        words
    }

    /// A number that is named.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.named.get(key).map(|n| n.parse().expect("a number"))
    }

    fn text(&self, key: &str) -> Option<String> {
        self.named.get(key).map(ToString::to_string)
    }

    fn paths(&self, key: &str) -> Vec<PathBuf> {
        self.named
            .get(key)
            .map_or(Vec::new(), |p| p.split(',').map(PathBuf::from).collect())
    }

    fn body(&self) -> Option<Vec<u8>> {
        self.named.get("body").map(|b| b.as_bytes().to_vec())
    }

    fn reason(&self) -> String {
        self.text("reason").unwrap_or_else(|| "because".into())
    }

    fn bearer(&self) -> Bearer {
        let process = match self.named.get("pid") {
            None => ProcessChoice::Itself,
            Some(&"none") => ProcessChoice::None,
            Some(&"default") => ProcessChoice::Parent,
            Some(pid) => ProcessChoice::Pid(pid.parse().expect("a pid")),
        };
        Bearer {
            process,
            engine: self.text("engine"),
        }
    }

    fn epoch(&self) -> Option<Epoch> {
        let epoch = self.named.get("epoch")?;
        Some(Epoch(epoch.parse().expect("a number")))
    }

    fn labels(&self) -> Vec<Label> {
        let label = self.named.get("label").and_then(|l| l.split_once(':'));
        let label = label.map(|(key, value)| Label {
            key: key.into(),
            value: value.into(),
        });
        label.into_iter().collect()
    }
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn dispatch_no(text: &str) -> DispatchNo {
    DispatchNo::parse(text).expect("a dispatch number")
}

fn envelope_no(text: &str) -> EnvelopeNo {
    EnvelopeNo::parse(text).expect("an envelope number")
}

fn reference(text: &str) -> Ref {
    match DispatchNo::parse(text) {
        Some(dispatch) => Ref::Dispatch(dispatch),
        None => Ref::Envelope(envelope_no(text)),
    }
}

/// The call that a line asks for.
pub fn call(words: &Words<'_>) -> Call {
    let mut call = Call::new(verb(words)).by("tester");
    call.token = words.named.get("as").map(|t| t.parse().expect("a token"));
    if let Some(parent) = words.named.get("parent").filter(|p| **p != "none") {
        call.token = Some(parent.parse().expect("a token"));
    }
    if words.plain[0] == "retire" && words.plain[1].contains('@') {
        call.token = Some(words.plain[1].parse::<Token>().expect("a token"));
    }
    if let Some(reason) = words.text("force") {
        call = call.by_force(reason);
    }
    if let Some(role) = words.named.get("require") {
        call = call.requiring(role.parse().expect("a role"));
    }
    if let Some(secret) = words.named.get("secret") {
        call = call.sealed_with(secret.parse().expect("a secret"));
    }
    if let Some(key) = words.text("key") {
        call = call.keyed(key);
    }
    call
}

fn verb(words: &Words<'_>) -> Verb {
    let first = words.plain.get(1).copied().unwrap_or_default();
    let second = words.plain.get(2).copied().unwrap_or_default();
    match words.plain[0] {
        "register" if words.named.contains_key("parent") => Verb::RegisterChild {
            name: name(first),
            bearer: words.bearer(),
            labels: words.labels(),
            checkout: words.paths("checkout").pop(),
        },
        "register" => Verb::Register {
            name: name(first),
            bearer: words.bearer(),
            labels: words.labels(),
            checkout: words.paths("checkout").pop(),
        },
        "adopt" if second == "tree" => Verb::AdoptTree {
            name: name(first),
            bearer: words.bearer(),
            labels: words.labels(),
        },
        "adopt" if words.epoch().is_some() => Verb::AdoptClaimed {
            name: name(first),
            bearer: words.bearer(),
            labels: words.labels(),
            epoch: words.epoch().expect("it is given"),
        },
        "adopt" => Verb::Adopt {
            name: name(first),
            bearer: words.bearer(),
            labels: words.labels(),
        },
        "retire" => Verb::Retire {
            name: name(first.split('@').next().expect("a part")),
            if_idle: second == "idle",
            reason: words.text("reason"),
        },
        "dispatch" => {
            let (to, generation) = match second.split_once('@') {
                Some((to, g)) => (to, Some(Generation::parse(g).expect("one"))),
                None => (second, None),
            };
            Verb::Dispatch {
                item: name(first),
                to: name(to),
                to_generation: generation,
                title: words.text("title"),
                writes: words.paths("writes"),
                body: words.body(),
            }
        }
        _ => verb_on_things(words, first, second),
    }
}

fn verb_on_things(words: &Words<'_>, first: &str, second: &str) -> Verb {
    let re = |key| words.named.get(key).map(|t| reference(t));
    match words.plain[0] {
        "accept" => Verb::Accept {
            dispatch: dispatch_no(first),
        },
        "decline" => Verb::Decline {
            dispatch: dispatch_no(first),
            reason: words.reason(),
        },
        "report" => Verb::Report {
            dispatch: dispatch_no(first),
            outcome: Outcome::from_word(second).expect("an outcome"),
            body: words.body(),
        },
        "cancel" => Verb::Cancel {
            dispatch: dispatch_no(first),
            reason: words.reason(),
        },
        "fail" => Verb::Fail {
            dispatch: dispatch_no(first),
            reason: words.reason(),
        },
        "note" => Verb::Note {
            body: first.into(),
            on: re("on"),
        },
        "observe" => Verb::Observe {
            status: first.into(),
            wrote: words.paths("wrote"),
        },
        "send" => Verb::Send {
            to: name(first),
            body: second.into(),
            re: re("re"),
        },
        "deliver" => Verb::Deliver {
            envelope: envelope_no(first),
        },
        "ack" => Verb::Acknowledge {
            envelope: envelope_no(first),
        },
        "finding" => Verb::AcceptFinding {
            position: Position(first.parse().expect("a position")),
            reason: words.reason(),
        },
        _ => verb_on_checkouts(words, first, second),
    }
}

fn verb_on_checkouts(words: &Words<'_>, first: &str, second: &str) -> Verb {
    match words.plain[0] {
        "bypass" => Verb::BypassGuard {
            hook: first.into(),
            checkout: words.paths("at").pop().expect("a checkout"),
            said: words.text("said").unwrap_or_default(),
            reason: words.reason(),
        },
        "unlocked" => Verb::RemoveLock {
            path: first.into(),
            uid: 1000,
            bytes: 7,
            modified: Time(5),
            reason: words.reason(),
        },
        _ => verb_on_trees(words, first, second),
    }
}

fn verb_on_trees(words: &Words<'_>, first: &str, second: &str) -> Verb {
    let name = || name(first);
    let epoch = words.epoch();
    match words.plain[0] {
        "reserve" => Verb::Reserve {
            name: name(),
            bearer: words.bearer(),
            labels: words.labels(),
            checkout: words.paths("checkout").pop(),
        },
        "publish" => Verb::Publish {
            name: name(),
            epoch,
        },
        "claim" => Verb::Claim {
            name: name(),
            bearer: words.bearer(),
        },
        "rollback" => Verb::Rollback {
            name: name(),
            epoch: epoch.expect("an epoch"),
        },
        "recover" => Verb::Recover {
            name: name(),
            epoch: epoch.expect("an epoch"),
            body: second.into(),
        },
        "release" => Verb::Release {
            name: name(),
            epoch,
            reason: words.text("reason"),
        },
        "release-dead" => Verb::ReleaseDead { name: name() },
        "seal" => Verb::SealStore,
        _ => rights::verb(words).unwrap_or_else(|| history::verb(words, first)),
    }
}
