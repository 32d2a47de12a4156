//! Taking texts and bodies out of frames without breaking what stands on them, as `docs/bundles.md` says.
//!
//! Facts name each text and body by a digest over 16 random bytes and the content. What is taken out loses both: the
//! random bytes become zeros, and a *stand-in* of the same length takes the place of the content. Stand-ins consist of
//! control characters. Equal parts of paths get equal stand-ins, so that decisions about paths come out the same.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::codec::v1::{self, Fault, NONCE_BYTES, Place};
use crate::command::{Bearer, Command, Input, Label, Outcome, Ref, Regained, Settlement};
use crate::disclosure::{Peer, Rule};
use crate::event::{Reconciliation, ReleaseCause};
use crate::generation::{Epoch, Generation};
use crate::history::{Activity, FoundRecord, HistoryHash, Point};
use crate::holder::{Bearing, Evidence};
use crate::id::{DispatchNo, EnvelopeNo, Moment, Position, RefusalNo, RoleNo, SessionNo, Time};
use crate::path::Scope;
use crate::role::{ProcessEvidence, RoleScope};
use crate::seal::Seal;
use crate::text::{BodyId, TextId};

/// What a text is where it is mentioned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Use {
    /// A name that facts are about: of a session, an item, a role, an actor, a host, an engine. Never taken out.
    Name,
    /// A path.
    Path,
    /// The key or the value of a label.
    Label,
    /// What somebody wrote: a title, a reason, a status.
    Free,
    /// What a guard said, which names paths.
    Said,
    /// What a refused command was about: a name, or `ROLE@PATH`.
    Subject,
}

/// What a field of a command or an event mentions.
pub(crate) trait Mention {
    /// Shows each text to `see`. `field` is the field's name.
    fn mention(&self, field: &'static str, see: &mut dyn FnMut(TextId, Use));
}

impl Mention for TextId {
    fn mention(&self, field: &'static str, see: &mut dyn FnMut(TextId, Use)) {
        let used = match field {
            "name" | "to" | "from" | "source" | "parent" | "role" | "item" | "kind" | "hook"
            | "file" => Use::Name,
            "path" | "checkout" => Use::Path,
            "said" => Use::Said,
            "subject" => Use::Subject,
            // What is not named above is taken for what somebody wrote.
            _ => Use::Free,
        };
        see(*self, used);
    }
}

impl Mention for Option<TextId> {
    fn mention(&self, field: &'static str, see: &mut dyn FnMut(TextId, Use)) {
        self.iter().for_each(|text| text.mention(field, see));
    }
}

impl Mention for Vec<Label> {
    fn mention(&self, _: &'static str, see: &mut dyn FnMut(TextId, Use)) {
        for (key, value) in self {
            see(*key, Use::Label);
            see(*value, Use::Label);
        }
    }
}

impl Mention for Bearer {
    fn mention(&self, _: &'static str, see: &mut dyn FnMut(TextId, Use)) {
        let texts = [Some(self.actor), Some(self.host_name), self.engine];
        texts.into_iter().flatten().for_each(|t| see(t, Use::Name));
    }
}

impl Mention for Scope<TextId> {
    fn mention(&self, _: &'static str, see: &mut dyn FnMut(TextId, Use)) {
        let _: Scope<()> = self.map(|path| see(*path, Use::Path));
    }
}

impl Mention for Option<Scope<TextId>> {
    fn mention(&self, field: &'static str, see: &mut dyn FnMut(TextId, Use)) {
        self.iter().for_each(|scope| scope.mention(field, see));
    }
}

impl Mention for Vec<Scope<TextId>> {
    fn mention(&self, field: &'static str, see: &mut dyn FnMut(TextId, Use)) {
        self.iter().for_each(|scope| scope.mention(field, see));
    }
}

impl Mention for RoleScope<TextId> {
    fn mention(&self, field: &'static str, see: &mut dyn FnMut(TextId, Use)) {
        let used = self.place.as_ref().map_or(Use::Name, |_| Use::Path);
        see(self.text, used);
        self.place.mention(field, see);
    }
}

impl Mention for Option<Regained> {
    fn mention(&self, _: &'static str, see: &mut dyn FnMut(TextId, Use)) {
        self.iter()
            .for_each(|regained| see(regained.name, Use::Name));
    }
}

/// Fields that name no text.
macro_rules! mentions_nothing {
    ($($of:ty),* $(,)?) => {
        $(impl Mention for $of {
            fn mention(&self, _: &'static str, _: &mut dyn FnMut(TextId, Use)) {}
        })*
    };
}

mentions_nothing!(
    BodyId,
    DispatchNo,
    EnvelopeNo,
    Epoch,
    Generation,
    HistoryHash,
    Option<Activity>,
    Option<u64>,
    Option<Bearing>,
    Option<BodyId>,
    Option<Epoch>,
    Option<Evidence>,
    Option<FoundRecord>,
    Option<Generation>,
    Option<Point>,
    Option<Position>,
    Option<ProcessEvidence>,
    Option<Ref>,
    Option<SessionNo>,
    Option<[u8; 16]>,
    Outcome,
    Position,
    Reconciliation,
    RefusalNo,
    ReleaseCause,
    RoleNo,
    Rule,
    Seal,
    SessionNo,
    Settlement,
    Time,
    Vec<Peer>,
    bool,
    u16,
    u32,
    u64,
);

/// What is taken out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Classes {
    /// Bodies, and what else somebody wrote: titles, reasons, statuses.
    pub bodies: bool,
    /// Paths, also where the subject of a refusal or what a guard said names one.
    pub paths: bool,
    /// Keys and values of labels.
    pub labels: bool,
}

impl Classes {
    /// Their words, in the order in which they are told.
    pub const WORDS: [&str; 3] = ["bodies", "paths", "labels"];

    /// As a number: 1 for bodies, 2 for paths, 4 for labels.
    #[must_use]
    pub fn bits(self) -> u8 {
        u8::from(self.bodies) | u8::from(self.paths) << 1 | u8::from(self.labels) << 2
    }

    /// From that number; other bits are passed over.
    #[must_use]
    pub fn from_bits(bits: u8) -> Self {
        Self {
            bodies: bits & 1 != 0,
            paths: bits & 2 != 0,
            labels: bits & 4 != 0,
        }
    }

    /// The class of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let number = Self::WORDS.iter().position(|known| *known == word)?;
        Some(Self::from_bits(1 << number))
    }

    /// Whether anything is taken out at all.
    #[must_use]
    pub fn is_any(self) -> bool {
        self.bits() != 0
    }

    /// The words of what is taken out.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let taken = move |number: &usize| self.bits() >> number & 1 != 0;
        (0..Self::WORDS.len())
            .filter(taken)
            .map(|number| Self::WORDS[number])
    }

    fn takes(self, used: Use) -> bool {
        match used {
            Use::Name => false,
            Use::Path | Use::Subject => self.paths,
            Use::Label => self.labels,
            Use::Free => self.bodies,
            Use::Said => self.bodies || self.paths,
        }
    }
}

impl core::fmt::Display for Classes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let words: Vec<&str> = self.words().collect();
        f.write_str(&words.join(","))
    }
}

/// Why something cannot be taken out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cannot {
    /// The frame's parts are not what an encoder wrote.
    #[error(transparent)]
    Parts(#[from] Fault),
    /// A path is also a name that facts are about, and a frame keeps equal texts once.
    #[error("the path {path:?} is also the name of something in the same frame")]
    PathIsName {
        /// The path.
        path: String,
    },
    /// More different parts of one length than there are stand-ins of that length.
    #[error("there are more than {max} different parts of {bytes} bytes")]
    TooMany {
        /// That length.
        bytes: usize,
        /// How many can be told apart.
        max: u64,
    },
}

/// The characters of stand-ins: control characters but tab, line feed and carriage return.
const ALPHABET: &[u8; 29] =
    b"\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f";

/// The stand-in of that number and length; `None` when there is none.
fn stand_in(mut number: u64, bytes: usize) -> Option<Vec<u8>> {
    let base = ALPHABET.len() as u64;
    let mut text = Vec::with_capacity(bytes);
    for _ in 0..bytes {
        text.push(ALPHABET[(number % base) as usize]);
        number /= base;
    }
    (number == 0).then_some(text)
}

/// The number of a stand-in; `None` for any other bytes. Numbers too great to count are the greatest.
#[must_use]
pub fn number_of(part: &[u8]) -> Option<u64> {
    if part.is_empty() {
        return None;
    }
    part.iter().rev().try_fold(0_u64, |number, byte| {
        let digit = ALPHABET.iter().position(|known| known == byte)? as u64;
        Some(
            number
                .saturating_mul(ALPHABET.len() as u64)
                .saturating_add(digit),
        )
    })
}

/// How a part of a text that is a stand-in is printed; `None` for any other.
#[must_use]
pub fn told(part: &[u8]) -> Option<String> {
    let number = number_of(part)?;
    Some(match number {
        0 => "[redacted]".to_string(),
        number => format!("[redacted {}.{number}]", part.len()),
    })
}

/// Takes things out of the frames of one log, one after the other.
#[derive(Clone, Default, Debug)]
pub struct Redactor {
    classes: Classes,
    /// The numbers of parts of paths and of labels, from 1 for each length.
    numbers: BTreeMap<(Use, Vec<u8>), u64>,
    counts: BTreeMap<(Use, usize), u64>,
    texts: u64,
    bodies: u64,
}

impl Redactor {
    /// For these classes.
    #[must_use]
    pub fn new(classes: Classes) -> Self {
        Self {
            classes,
            ..Self::default()
        }
    }

    /// What it takes out.
    #[must_use]
    pub fn classes(&self) -> Classes {
        self.classes
    }

    /// How many texts and how many bodies were taken out so far.
    #[must_use]
    pub fn taken(&self) -> (u64, u64) {
        (self.texts, self.bodies)
    }

    /// Takes out of the texts and bodies of a frame, in their place. What was taken out before stays so.
    ///
    /// # Errors
    /// [`Cannot`]; `texts` and `bodies` are then not to be used.
    pub fn redact(
        &mut self,
        facts: &[u8],
        texts: &mut [u8],
        bodies: &mut [u8],
    ) -> Result<(), Cannot> {
        let shape = Shape::of(facts, texts, bodies)?;
        for (place, uses) in shape.texts.iter().zip(&shape.uses) {
            let Some(used) = self.what_takes(uses).filter(|_| !place.taken_out) else {
                continue;
            };
            let content = &texts[place.content.clone()];
            let instead = match used {
                Use::Path if uses.contains(&Use::Name) => {
                    let path = String::from_utf8_lossy(content).into_owned();
                    return Err(Cannot::PathIsName { path });
                }
                Use::Path => self.path(content)?,
                Use::Label => self.part(Use::Label, content)?,
                Use::Subject => self.subject(content, &shape.role_paths)?,
                _ => constant(content.len()),
            };
            self.texts += u64::from(put(texts, place, &instead));
        }
        for place in &shape.bodies {
            if self.classes.bodies && !place.taken_out {
                let instead = constant(place.content.len());
                self.bodies += u64::from(put(bodies, place, &instead));
            }
        }
        Ok(())
    }

    /// As what a text is taken out, if it is: not where it is anything that stays, unless it is a path. A text that
    /// nothing known mentions may be anything, and is taken out with any class.
    fn what_takes(&self, uses: &[Use]) -> Option<Use> {
        let taken = |used: &&Use| self.classes.takes(**used);
        if uses.contains(&Use::Path) && self.classes.paths {
            return Some(Use::Path);
        }
        match uses {
            [] => self.classes.is_any().then_some(Use::Free),
            uses if uses.iter().all(|used| taken(&used)) => uses.iter().min().copied(),
            _ => None,
        }
    }

    fn path(&mut self, path: &[u8]) -> Result<Vec<u8>, Cannot> {
        let mut instead = Vec::with_capacity(path.len());
        for (number, part) in path.split(|byte| *byte == b'/').enumerate() {
            if number > 0 {
                instead.push(b'/');
            }
            instead.extend(self.part(Use::Path, part)?);
        }
        Ok(instead)
    }

    /// The stand-in of a part: equal ones for equal parts.
    fn part(&mut self, used: Use, part: &[u8]) -> Result<Vec<u8>, Cannot> {
        let bytes = part.len();
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let count = self.counts.entry((used, bytes)).or_default();
        let known = self.numbers.entry((used, part.to_vec()));
        let number = *known.or_insert_with(|| {
            *count += 1;
            *count
        });
        stand_in(number, bytes).ok_or_else(|| Cannot::TooMany {
            bytes,
            max: *count - 1,
        })
    }

    /// What a refused command was about: `ROLE@PATH` loses its path, anything else stays.
    fn subject(&mut self, subject: &[u8], paths: &[Vec<u8>]) -> Result<Vec<u8>, Cannot> {
        for path in paths {
            let spelled = String::from_utf8_lossy(path).into_owned();
            let role = subject.strip_suffix(spelled.as_bytes());
            if let Some(role) = role.filter(|role| role.ends_with(b"@")) {
                let path = match spelled.as_bytes() == &path[..] {
                    true => self.path(path)?,
                    // Bytes that are no UTF-8 were written otherwise there.
                    false => constant(spelled.len()),
                };
                return Ok([role, &path].concat());
            }
        }
        Ok(subject.to_vec())
    }
}

/// Puts a stand-in where a content stands, and zeros before it; says whether that was another content.
fn put(part: &mut [u8], place: &Place, instead: &[u8]) -> bool {
    let content = place.content.clone();
    if part[content.clone()] == *instead {
        return false;
    }
    part[content.start - NONCE_BYTES..content.start].fill(0);
    part[content].copy_from_slice(instead);
    true
}

fn constant(bytes: usize) -> Vec<u8> {
    [ALPHABET[0]].repeat(bytes)
}

/// What redacting needs to know of a frame.
struct Shape {
    texts: Vec<Place>,
    bodies: Vec<Place>,
    /// What each text is, wherever it is mentioned.
    uses: Vec<Vec<Use>>,
    /// The paths of the roles that the input is about or stands on.
    role_paths: Vec<Vec<u8>>,
}

impl Shape {
    fn of(facts: &[u8], texts: &[u8], bodies: &[u8]) -> Result<Self, Fault> {
        let [text_places, body_places] = v1::places(facts, texts, bodies)?;
        let entry = v1::decode_entry(facts, texts, Moment::default(), 1)?;
        let input = match v1::decode_request(facts, texts, bodies, Time::default()) {
            Ok(request) => Some(request.input),
            // A command of a newer program: what it alone mentions is taken out.
            Err(Fault::UnknownCommand(_) | Fault::InputVersion(_)) => None,
            Err(fault) => return Err(fault),
        };
        let mut uses: Vec<Vec<Use>> = text_places.iter().map(|_| Vec::new()).collect();
        let mut see = |text: TextId, used: Use| {
            if let Some(uses) = uses.get_mut(text.0 as usize) {
                uses.push(used);
            }
        };
        entry
            .events
            .iter()
            .for_each(|event| event.mention(&mut see));
        if let Some(input) = &input {
            mention_input(input, &mut see);
        }
        let command = input.as_ref().and_then(|input| role_scope(&input.command));
        let required = input.as_ref().and_then(|input| input.require.as_ref());
        let scopes = command.into_iter().chain(required.map(|r| &r.scope));
        let paths = scopes.filter(|scope| scope.place.is_some());
        let role_paths = paths.map(|scope| entry.texts.get(scope.text).to_vec());
        Ok(Self {
            texts: text_places,
            bodies: body_places,
            uses,
            role_paths: role_paths.collect(),
        })
    }
}

fn role_scope(command: &Command) -> Option<&RoleScope<TextId>> {
    match command {
        Command::TakeRole(c) => Some(&c.scope),
        Command::ReleaseRole(c) => Some(&c.scope),
        Command::CheckRole(c) => Some(&c.scope),
        Command::ClearRole(c) => Some(&c.scope),
        Command::LapseRole(c) => Some(&c.scope),
        _ => None,
    }
}

fn mention_input(input: &Input, see: &mut dyn FnMut(TextId, Use)) {
    input.command.mention(see);
    see(input.origin.actor, Use::Name);
    if let Some(presented) = &input.presented {
        see(presented.name, Use::Name);
    }
    input.force.mention("reason", see);
    if let Some(require) = &input.require {
        see(require.role, Use::Name);
        require.scope.mention("scope", see);
    }
}

/// How much of a frame was taken out: texts and bodies.
///
/// # Errors
/// A [`Fault`] for bytes that no encoder wrote.
pub fn taken(facts: &[u8], texts: &[u8], bodies: &[u8]) -> Result<(u64, u64), Fault> {
    let count = |all: &[Place]| all.iter().filter(|place| place.taken_out).count() as u64;
    let [texts, bodies] = v1::places(facts, texts, bodies)?;
    Ok((count(&texts), count(&bodies)))
}

/// Whether a content may be a stand-in: every part of it is one, but for the role in `ROLE@PATH`.
pub(crate) fn is_stand_in(content: &[u8]) -> bool {
    let mut parts = content.split(|byte| *byte == b'/');
    let first = parts.next().unwrap_or_default();
    let begins = first.is_empty() || first.ends_with(b"@") || number_of(first).is_some();
    begins && !content.is_empty() && parts.all(|part| number_of(part).is_some())
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::{Classes, Redactor, Use, is_stand_in, number_of, stand_in, told};

    #[test]
    fn stand_ins_are_told_apart_and_told_again() {
        for bytes in 1..4 {
            let numbers = 0..29_u64.pow(u32::try_from(bytes).expect("small")).min(2000);
            let all: BTreeSet<_> = numbers.clone().map(|n| stand_in(n, bytes)).collect();
            assert_eq!(all.len() as u64, numbers.end);
            for number in numbers {
                let text = stand_in(number, bytes).expect("there is one");
                assert_eq!((text.len(), number_of(&text)), (bytes, Some(number)));
            }
        }
        assert_eq!(stand_in(29, 1), None);
        assert_eq!(told(b"\x01\x01").as_deref(), Some("[redacted]"));
        assert_eq!(told(b"\x02\x01").as_deref(), Some("[redacted 2.1]"));
        for text in [&b""[..], b"a", b"\x01a", b"\n", b"\t\t"] {
            assert_eq!(told(text), None);
        }
        let not = [&b""[..], b"a", b"a/\x01", b"\x01/a", b"tester@/a"];
        assert!(not.iter().all(|content| !is_stand_in(content)));
        let may_be = [&b"\x01"[..], b"/\x01/\x02\x01", b"tester@/\x01"];
        assert!(may_be.iter().all(|content| is_stand_in(content)));
    }

    /// Whether one path is inside another is the same of their stand-ins.
    #[test]
    fn paths_keep_their_shape() {
        let mut redactor = Redactor::new(Classes::from_bits(2));
        let paths = [
            "/",
            "/a",
            "/a/b",
            "/ab",
            "/ab/a",
            "/b/a",
            "/a/b/long-name/b",
        ];
        let instead = paths.map(|path| redactor.path(path.as_bytes()).expect("there is room"));
        for (path, other) in paths.iter().zip(&instead) {
            assert_eq!(path.len(), other.len());
            assert_eq!(*path == "/", path.as_bytes() == &other[..]);
            for (inner, replaced) in paths.iter().zip(&instead) {
                let nested = crate::path::nested(path.as_bytes(), inner.as_bytes());
                assert_eq!(
                    crate::path::nested(other, replaced),
                    nested,
                    "{path} {inner}"
                );
            }
        }
        for number in 0..26_u8 {
            let more = redactor.part(Use::Path, &[b'c' + number]);
            assert!(more.is_ok(), "{number}");
        }
        let one_too_many = redactor.part(Use::Path, b"\xff");
        assert!(one_too_many.is_err(), "28 of one byte, beside the constant");
    }
}
