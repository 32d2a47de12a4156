//! The JSON contract: one function for each kind, and nothing else makes its fields. Fields may be added; none is
//! removed or changes its meaning within v1.

use std::io::{self, Write};

use serde_json::ser::Formatter;
use serde_json::{Map, Serializer, Value, json};
use tenure_projection::core::generation::Generation;
use tenure_projection::core::holder::Proof;
use tenure_projection::core::id::Moment;
use tenure_projection::core::redaction;
use tenure_projection::core::refusal::Next;
use tenure_projection::log::position::Receipt;
use tenure_projection::views::{
    CheckView, DispatchView, EnvelopeView, EventView, Field, FormerView, HolderView, LossView,
    PointView, RefusalView, SessionView, SharedView, WhoView,
};

use crate::clock::rfc3339;
use crate::fault::Fault;

use super::escape::is_obeyed;

pub mod history;
mod rights;
pub mod transcript;
mod tree;

pub use rights::{policy, role, shared_list, told};
pub use tree::tree;

/// A JSON object of one kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Object(Map<String, Value>);

impl Object {
    /// An object whose schema is `tenure.<kind>.v1`.
    #[must_use]
    pub fn new(kind: &str) -> Self {
        Self(Map::new()).with("schema", format!("tenure.{kind}.v1"))
    }

    /// The same object with one more field.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// The same object with where and by what proof a mutation stands in the log.
    #[must_use]
    pub fn standing(self, receipt: &Receipt) -> Self {
        self.with("position", receipt.position.0)
            .with("receipt", receipt.to_string())
    }

    /// A text that may be any bytes: `key`, or `key_base64` where it is not UTF-8; null when there is none. One that
    /// was taken out is said to be, with `key_redacted`.
    #[must_use]
    fn bytes(self, key: &str, bytes: Option<&[u8]>) -> Self {
        if let Some(told) = bytes.and_then(redaction::told) {
            return self.with(key, told).with(&format!("{key}_redacted"), true);
        }
        match bytes.map(std::str::from_utf8) {
            None => self.with(key, Value::Null),
            Some(Ok(text)) => self.with(key, text),
            Some(Err(_)) => {
                let key = format!("{key}_base64");
                self.with(&key, base64(bytes.unwrap_or_default()))
            }
        }
    }

    fn generation(self, generation: Option<Generation>) -> Self {
        self.with("generation", generation.map(|g| g.number))
            .with("incarnation", generation.map(|g| g.incarnation))
    }

    /// As a value inside of another object.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        object.into_value()
    }
}

/// Writes an object on one line. What a terminal would obey is written as `\uNNNN`, also where JSON would not ask
/// for it: people look at JSON in terminals too.
pub fn write(out: &mut impl Write, object: &Object) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(out, Plain);
    serde::Serialize::serialize(&object.0, &mut serializer).map_err(io::Error::from)
}

struct Plain;

impl Formatter for Plain {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_obeyed) {
            out.write_all(&rest.as_bytes()[..at])?;
            let obeyed = rest[at..].chars().next().unwrap_or_default();
            write!(out, "\\u{:04x}", u32::from(obeyed))?;
            rest = &rest[at + obeyed.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

/// Base64 with padding (RFC 4648).
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = (word >> (18 - 6 * place)) & 63;
            let filled = place <= chunk.len();
            text.push(if filled {
                ALPHABET[digit as usize] as char
            } else {
                '='
            });
        }
    }
    text
}

/// The bytes of what [`base64`] wrote; `None` for anything else.
#[must_use]
pub fn unbase64(text: &str) -> Option<Vec<u8>> {
    let coded = text.as_bytes();
    if !coded.len().is_multiple_of(4) {
        return None;
    }
    let digits = coded
        .strip_suffix(b"==")
        .or_else(|| coded.strip_suffix(b"="));
    let digits = digits.unwrap_or(coded);
    let value = |digit: u8| match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for chunk in digits.chunks(4) {
        let mut word = 0_u32;
        for digit in chunk {
            word = word << 6 | u32::from(value(*digit)?);
        }
        word <<= 6 * (4 - chunk.len());
        bytes.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
    }
    // One spelling for each: nothing else comes back as it was.
    (base64(&bytes) == text).then_some(bytes)
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn time(moment: Moment) -> Value {
    rfc3339(moment.time).into()
}

fn moment(moment: Moment) -> Value {
    json!({ "position": moment.position.0, "time": rfc3339(moment.time) })
}

fn evidence(proofs: &[Proof]) -> Value {
    proofs.iter().map(|p| Value::from(p.as_str())).collect()
}

fn next(next: &[Next]) -> Value {
    next.iter()
        .map(|n| json!({ "command": n.command, "effect": n.effect }))
        .collect()
}

fn point(point: &PointView) -> Value {
    json!({
        "position": point.at.position.0,
        "time": rfc3339(point.at.time),
        "event": point.event,
    })
}

/// Kind `holder`.
#[must_use]
pub fn holder(holder: &HolderView) -> Value {
    let process = holder.process;
    Object::new("holder")
        .with("host", holder.host.as_str())
        .with("host_id", hex(&holder.host_id.0))
        .with("boot", holder.boot.map(|b| hex(&b.0)))
        .with("pid", process.map(|p| p.pid))
        .with("start", process.and_then(|p| p.start))
        .with("pidns", process.and_then(|p| p.pidns))
        .with("uid", holder.uid)
        .with("engine", holder.engine.as_deref())
        .with("actor", holder.actor.as_str())
        .with("label", holder.label())
        .with("chosen", process.map(|p| p.source.as_str()))
        .with("ancestor", process.map(|p| p.ancestor))
        .with("recorded", rfc3339(holder.recorded))
        .with("verdict", holder.verdict.as_str())
        .with("evidence", evidence(&holder.evidence))
        .into_value()
}

fn maybe_holder(view: Option<&HolderView>) -> Value {
    view.map_or(Value::Null, holder)
}

fn former(former: &[FormerView]) -> Value {
    let entry = |f: &FormerView| {
        json!({
            "generation": f.generation.number,
            "incarnation": f.generation.incarnation,
            "holder": holder(&f.holder),
        })
    };
    former.iter().map(entry).collect()
}

fn labels(labels: &[(String, String)]) -> Value {
    Value::Object(
        labels
            .iter()
            .map(|(k, v)| (k.clone(), v.as_str().into()))
            .collect(),
    )
}

/// Kind `grant`.
#[must_use]
pub fn grant(session: &SessionView, receipt: &Receipt, repeated: bool) -> Object {
    Object::new("grant")
        .with("token", session.token.as_str())
        .with("session", session.name.as_str())
        .generation(Some(session.generation))
        .standing(receipt)
        .with("chain", receipt.chain.to_string())
        .with("holder", maybe_holder(session.holder.as_ref()))
        .with("former", former(&session.former))
        .with("labels", labels(&session.labels))
        .with("open", ids(&session.open))
        .with("pending", session.pending)
        .with("repeated", repeated)
}

fn ids(ids: &[impl std::fmt::Display]) -> Value {
    ids.iter().map(|id| Value::from(id.to_string())).collect()
}

/// Kind `session`.
#[must_use]
pub fn session(session: &SessionView) -> Object {
    Object::new("session")
        .with("name", session.name.as_str())
        .with("state", if session.active { "active" } else { "retired" })
        .generation(Some(session.generation))
        .with("token", session.token.as_str())
        .with("holder", maybe_holder(session.holder.as_ref()))
        .with("tree", session.tree.as_str())
        .with("parent", session.parent.as_deref())
        .with("writable", session.writable)
        .with(
            "branch_of",
            session.branch.as_ref().map(|b| b.source.as_str()),
        )
        .with(
            "branch_at",
            session
                .branch
                .as_ref()
                .and_then(|b| b.at)
                .map(|at| at.position.0),
        )
        .with("labels", labels(&session.labels))
        .with("registered_at", time(session.registered_at))
        .with("last_seen", time(session.last_seen))
        .with("since", moment(session.since))
        .with("status", session.status.as_deref())
        .with("checkout", session.checkout.as_deref())
        .with("superprojects", session.superprojects.clone())
        .with("former", former(&session.former))
        .with("open", ids(&session.open))
        .with("pending", session.pending)
        .with("delivered", session.delivered)
        .with("cursor", session.cursor.map(|c| c.to_string()))
        .with("aliases", session.aliases.clone())
        .with("records", session.records)
        .with("tip", session.tip.map(|tip| tip.position.0))
        .with("activities", session.activities.clone())
        .with(
            "imported",
            session
                .imported
                .as_ref()
                .map(|(from, parent)| json!({ "from": from, "parent": parent })),
        )
}

/// Kind `dispatch`.
#[must_use]
pub fn dispatch(dispatch: &DispatchView) -> Object {
    Object::new("dispatch")
        .with("id", dispatch.id.to_string())
        .with("item", dispatch.item.as_str())
        .with("title", dispatch.title.as_deref())
        .with("from", dispatch.from.as_deref())
        .with("session", dispatch.session.as_str())
        .generation(Some(dispatch.generation))
        .with("state", dispatch.state.as_str())
        .with("writes", dispatch.writes.clone())
        .with("reason", dispatch.reason.as_deref())
        .bytes("report", dispatch.report.as_deref())
        .bytes("body", dispatch.body.as_deref())
        .with("opened", moment(dispatch.opened))
        .with("since", moment(dispatch.since))
}

/// One entry of `shared_checkout`.
#[must_use]
pub fn shared(shared: &SharedView) -> Object {
    let holder = shared.holder.as_ref();
    Object::new("shared")
        .with("session", shared.session.as_str())
        .with("engine", holder.and_then(|h| h.engine.as_deref()))
        .with("actor", holder.map(|h| h.actor.as_str()))
        .with("status", shared.status.as_str())
        .with("writes", shared.writes.clone())
        .with("items", shared.items.clone())
        .with("titles", shared.titles.clone())
        .with("level", shared.level.as_str())
        .with("source", shared.source.as_str())
        .with("former", shared.former.map(|g| g.to_string()))
        .with("holder", maybe_holder(holder))
}

/// Kind `accepted`.
#[must_use]
pub fn accepted(
    dispatch: &DispatchView,
    list: &[SharedView],
    instruction: Option<&str>,
    receipt: &Receipt,
) -> Object {
    let binding = json!({
        "session": dispatch.session,
        "generation": dispatch.generation.number,
        "incarnation": dispatch.generation.incarnation,
        "item": dispatch.item,
        "since": moment(dispatch.since),
    });
    Object::new("accepted")
        .with("dispatch", dispatch.id.to_string())
        .with("binding", binding)
        .with("shared_checkout", shared_list(list))
        .with("instruction", instruction)
        .standing(receipt)
}

/// Kind `envelope`.
#[must_use]
pub fn envelope(envelope: &EnvelopeView) -> Object {
    let dispatch = envelope.dispatch.as_ref();
    Object::new("envelope")
        .with("id", envelope.id.to_string())
        .with("kind", envelope.kind.as_str())
        .with(
            "notice",
            Some(envelope.notice.as_str()).filter(|n| !n.is_empty()),
        )
        .with("session", envelope.session.as_str())
        .generation(Some(envelope.generation))
        .with("from", envelope.from.as_deref())
        .with("dispatch", dispatch.map(|d| d.id.to_string()))
        .with("item", dispatch.map(|d| d.item.as_str()))
        .with("re", envelope.re.map(|r| r.to_string()))
        .with("state", envelope.state.as_str())
        .with("reason", envelope.reason.map(|r| r.as_str()))
        .bytes("body", envelope.body.as_deref())
        .with("position", envelope.position.0)
        .with("issued_at", rfc3339(envelope.issued))
}

/// Kind `who`.
#[must_use]
pub fn who(who: &WhoView) -> Object {
    Object::new("who")
        .with("subject", who.subject.as_str())
        .with("at", moment(who.at))
        .with("session", who.session.as_deref())
        .generation(who.generation)
        .with("holder", maybe_holder(who.holder.as_ref()))
        .with("since", who.since.as_ref().map(point))
        .with("until", who.until.as_ref().map(point))
}

/// Kind `event`.
#[must_use]
pub fn event(event: &EventView) -> Object {
    let mut object = Object::new("event")
        .with("position", event.at.position.0)
        .with("index", event.index)
        .with("time", rfc3339(event.at.time))
        .with("kind", event.kind.as_str())
        .with("actor", event.actor.as_str())
        .with("session", event.session.as_deref())
        .generation(event.generation);
    for (name, field) in &event.payload {
        object = match field {
            Field::None => object.with(name, Value::Null),
            Field::Flag(flag) => object.with(name, *flag),
            Field::Number(number) => object.with(name, *number),
            Field::Text(text) => object.with(name, text.as_str()),
            Field::Body(body) => object.bytes(name, Some(body)),
            Field::List(list) => object.with(name, list.clone()),
            Field::Pairs(pairs) => object.with(name, labels(pairs)),
        };
    }
    object
}

fn lost(lost: &[LossView]) -> Value {
    let entry = |loss: &LossView| {
        json!({
            "event": loss.event(),
            "forced": loss.is_forced(),
            "position": loss.at.position.0,
            "time": rfc3339(loss.at.time),
            "generation": loss.generation.number,
            "incarnation": loss.generation.incarnation,
            "actor": loss.actor,
            "reason": loss.reason,
        })
    };
    lost.iter().map(entry).collect()
}

/// Kind `check`.
#[must_use]
pub fn check(check: &CheckView) -> Object {
    Object::new("check")
        .with("current", check.is_current())
        .with("token", check.token.as_str())
        .with("session", check.session.as_str())
        .generation(Some(check.generation))
        .with("holder", maybe_holder(check.holder.as_ref()))
        .with("since", moment(check.since))
        .with("relation", check.relation().map(|r| r.as_str()))
        .with("lost", lost(&check.lost))
}

/// Kind `refusal`: of the command in hand, or as the log keeps it.
#[must_use]
pub fn refusal(refusal: &RefusalView) -> Object {
    let object = Object::new("refusal")
        .with("code", refusal.word())
        .with("message", refusal.message.as_str())
        .with("subject", refusal.subject.as_str())
        .with("presented", refusal.presented.as_deref())
        .with("current", refusal.current.as_deref())
        .with("holder", maybe_holder(refusal.holder.as_ref()))
        .with("since", refusal.since.map(moment))
        .with("relation", refusal.relation.map(|r| r.as_str()))
        .with("evidence", evidence(&refusal.evidence))
        .with("lost", lost(&refusal.lost))
        .with("next", next(&refusal.next))
        .with("recorded_at", refusal.recorded_at.map(|p| p.0));
    let Some(stored) = &refusal.stored else {
        return object.with("body_kept", false);
    };
    let object = object
        .with("id", stored.id.to_string())
        .with("command", stored.command)
        .with("count", stored.count)
        .with("first_at", time(stored.first))
        .with("last_at", time(stored.last))
        .with("body_kept", stored.body_kept);
    let bodies = stored
        .bodies
        .iter()
        .map(|b| Object(Map::new()).bytes("body", Some(b)));
    object
        .bytes("body", stored.bodies.first().map(Vec::as_slice))
        .with("bodies", bodies.map(Object::into_value).collect::<Value>())
}

/// Kind `error`.
#[must_use]
pub fn error(fault: &Fault) -> Object {
    Object::new("error")
        .with("code", fault.cause.as_str())
        .with("message", fault.message.as_str())
        .with("next", next(&fault.next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(object: &Object) -> String {
        let mut out = Vec::new();
        write(&mut out, object).expect("a vector takes everything");
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in pairs {
            assert_eq!(base64(plain.as_bytes()), coded);
            assert_eq!(unbase64(coded).as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
        assert_eq!(unbase64("//79").as_deref(), Some(&[0xff, 0xfe, 0xfd][..]));
        for wrong in [
            "Zg=", "Zh==", "Z===", "====", "Zm9v\n", "Zm9", "Zm9!", "Zg==Zg==",
        ] {
            assert_eq!(unbase64(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_body_that_is_no_text_is_base64() {
        let object = Object::new("x")
            .bytes("body", Some(b"\xff"))
            .bytes("report", None);
        assert_eq!(
            written(&object),
            r#"{"schema":"tenure.x.v1","body_base64":"/w==","report":null}"#
        );
    }

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_comes_back() {
        let nasty = "a\x1b[2J\u{9b}\u{7f}\u{202e}b";
        let text = written(&Object::new("x").with("v", nasty));
        assert!(!text.contains(is_obeyed), "{text}");
        let back: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(back["v"], nasty);
    }
}
