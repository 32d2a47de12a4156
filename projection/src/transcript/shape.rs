//! What a record is: of which host it looks, its kind in that host's words, and its part in a conversation.

use super::json::Fields;

/// A program whose transcripts are read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Host {
    /// Claude Code: records name the one that they continue.
    Claude,
    /// Codex CLI: records follow each other, some files number them.
    Codex,
    /// Gemini CLI: records follow each other, a later one of an id replaces an earlier one.
    Gemini,
}

impl Host {
    /// Every host.
    pub const ALL: &[Self] = &[Self::Claude, Self::Codex, Self::Gemini];

    /// Its word on the command line, in labels and in kinds of records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// The host of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|host| host.as_str() == word)
    }
}

/// A record's part in a conversation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Part {
    /// What a person asked.
    Prompt,
    /// What a model answered, calls included.
    Answer,
    /// What a call came to.
    Result,
    /// The head of a session.
    Head,
    /// The beginning of a turn.
    Turn,
    /// What was said is taken back.
    Rewind,
    /// Anything else: the host's own notes.
    Note,
}

/// The host that writes records of this shape; `None` when no host does.
pub(super) fn host(fields: &Fields) -> Option<Host> {
    let id = |link: super::json::Link| link.id().is_some();
    let named = id(fields.uuid) || id(fields.session) || id(fields.leaf) || id(fields.message_ref);
    let typed = fields.kind.is_some();
    if typed && fields.payload && fields.timestamp {
        Some(Host::Codex)
    } else if fields.set || id(fields.rewind) || (id(fields.session) && fields.project_hash) {
        Some(Host::Gemini)
    } else if typed && named {
        Some(Host::Claude)
    } else if typed && id(fields.id) && fields.timestamp {
        Some(Host::Gemini)
    } else {
        None
    }
}

/// The longest word of a host that becomes a kind as it is.
const WORD_BYTES_MAX: usize = 64;

fn word(text: Option<&str>) -> &str {
    let plain = |t: &&str| t.len() <= WORD_BYTES_MAX && t.bytes().all(|b| b.is_ascii_graphic());
    text.filter(plain)
        .filter(|t| !t.is_empty())
        .unwrap_or("other")
}

/// The kind of a record in its host's words, the host before it; `unknown` behind the host where it has no shape.
pub(super) fn kind(shape: Option<Host>, fields: &Fields) -> String {
    let kind = word(fields.kind.as_deref());
    match shape {
        None => "unknown".to_owned(),
        Some(Host::Claude) => match fields.subtype.as_deref() {
            Some(subtype) => format!("{kind}.{}", word(Some(subtype))),
            None => kind.to_owned(),
        },
        Some(Host::Codex) => match fields.payload_kind.as_deref() {
            Some(inner) => format!("{kind}.{}", word(Some(inner))),
            None => kind.to_owned(),
        },
        Some(Host::Gemini) if fields.rewind.id().is_some() => "$rewindTo".to_owned(),
        Some(Host::Gemini) if fields.set => "$set".to_owned(),
        Some(Host::Gemini) if fields.project_hash => "head".to_owned(),
        Some(Host::Gemini) => kind.to_owned(),
    }
}

/// A record's part in the conversation.
pub(super) fn part(shape: Option<Host>, fields: &Fields) -> Part {
    match (shape, fields.kind.as_deref().unwrap_or_default()) {
        (Some(Host::Claude), "assistant") => Part::Answer,
        (Some(Host::Claude), "user") if fields.result => Part::Result,
        (Some(Host::Claude), "user") if !fields.meta => Part::Prompt,
        (Some(Host::Codex), "session_meta") => Part::Head,
        (Some(Host::Codex), "turn_context") => Part::Turn,
        (Some(Host::Gemini), _) if fields.rewind.id().is_some() => Part::Rewind,
        (Some(Host::Gemini), _) if fields.set => Part::Note,
        (Some(Host::Gemini), _) if fields.project_hash => Part::Head,
        (Some(Host::Gemini), "user") => Part::Prompt,
        (Some(Host::Gemini), "gemini") => Part::Answer,
        _ => Part::Note,
    }
}
