//! Transcripts that agent hosts keep: read as bytes, however damaged, explained, and separated into the branches that
//! were written to one file (`docs/transcripts.md`).
//!
//! Reading is pure: bytes in, an index out. Nothing here opens, writes or remembers a file.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};

pub use tenure_log::scan::Span;

mod branches;
mod claude;
mod codex;
mod finding;
mod gemini;
mod id;
mod json;
mod scan;
mod shape;

pub use branches::{Branch, Branches, Origin, separate};
pub use finding::{About, Finding, Findings, Kind, LISTED_MAX, Tally, Weight};
pub use id::Id;
pub use json::{DEPTH_MAX, Link};
pub use scan::Digest;
pub use shape::{Host, Part};

use scan::{Damage, Found, Scanner, Stretch, What};

/// Bytes read at a time.
const READ_BYTES: usize = 1 << 16;

/// A record of a transcript: where it stands, and what it says of itself. Its bytes stay in the file.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its bytes, from `{` to `}`.
    pub span: Span,
    /// The line that it begins on, from 1.
    pub line: u64,
    /// The first 16 bytes of BLAKE3 of its bytes.
    pub digest: Digest,
    /// Its part in the conversation.
    pub part: Part,
    /// The host that writes such records.
    pub shape: Option<Host>,
    /// Its own id.
    pub id: Option<Id>,
    /// The record that it continues.
    pub parent: Link,
    /// Whether it is a subagent's.
    pub sidechain: bool,
    kind: u16,
    /// Another record that it is about: the leaf of a summary, the message of a snapshot, the target of a rewind.
    about: Option<Id>,
    session: Option<Id>,
    /// The model's message that it is a part of.
    message: Option<Id>,
    turn: Option<Id>,
    call: Option<Id>,
    ordinal: Option<u64>,
}

/// How many bytes of a transcript are what. Together they are the file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Shares {
    /// In records.
    pub records: u64,
    /// Between them: line ends, blanks, a mark at the start.
    pub separators: u64,
    /// In damage.
    pub damage: u64,
}

/// What a transcript is made of.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The host that wrote it: the one asked for, else the one that most records look like.
    pub host: Option<Host>,
    /// The first 16 bytes of BLAKE3 of the file.
    pub digest: Digest,
    /// How many bytes are what.
    pub shares: Shares,
    /// The records, in the order of the file.
    pub records: Vec<Record>,
    /// The session's id, as its first record names it.
    pub session: Option<Id>,
    /// What was found in its bytes.
    pub findings: Findings,
    kinds: Vec<String>,
}

impl Reading {
    /// The kind of a record in its host's words.
    #[must_use]
    pub fn kind(&self, record: &Record) -> &str {
        &self.kinds[usize::from(record.kind)]
    }

    /// How long the file is, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shares.records + self.shares.separators + self.shares.damage
    }
}

/// Reads a transcript to its end. `progress` is told how many bytes were read so far.
///
/// # Errors
/// When the source cannot be read. No bytes are an error: what is no record is damage, and is counted.
pub fn read(
    mut source: impl Read,
    host: Option<Host>,
    mut progress: impl FnMut(u64),
) -> io::Result<Reading> {
    let mut index = Index::default();
    let mut scanner = Scanner::default();
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut bytes = 0;
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..read]);
        scanner.push(&buffer[..read], &mut |stretch| index.take(stretch));
        bytes += read as u64;
        progress(bytes);
    }
    scanner.finish(&mut |stretch| index.take(stretch));
    index.separators(&scanner, bytes);
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Ok(index.done(host, digest))
}

#[derive(Default)]
struct Index {
    records: Vec<Record>,
    kinds: Vec<String>,
    numbers: HashMap<String, u16>,
    findings: Findings,
    shares: Shares,
    /// How many records look like each host's.
    votes: [u64; Host::ALL.len()],
}

impl Index {
    fn take(&mut self, stretch: Stretch) {
        let Stretch { span, line, what } = stretch;
        let share = match &what {
            What::Record(_) => &mut self.shares.records,
            What::Separator => &mut self.shares.separators,
            What::Damage(_) => &mut self.shares.damage,
        };
        *share += span.bytes;
        match what {
            What::Record(found) => self.record(span, line, *found),
            What::Separator => {}
            What::Damage(damage) => {
                let kind = match damage {
                    Damage::Torn => Kind::TornLine,
                    Damage::Unfinished => Kind::TornTail,
                    Damage::Nul => Kind::NulBlock,
                    Damage::NotJson => Kind::NotJson,
                    Damage::StrayBom => Kind::StrayBom,
                };
                self.find(kind, span.offset, span.bytes, line);
            }
        }
    }

    fn find(&mut self, kind: Kind, offset: u64, bytes: u64, line: u64) {
        self.findings.add(Finding {
            kind,
            offset,
            bytes,
            line,
            about: About::Place,
        });
    }

    fn record(&mut self, span: Span, line: u64, found: Found) {
        let shape = shape::host(&found.fields);
        if let Some(host) = shape {
            self.votes[host as usize] += 1;
        }
        let at = span.offset;
        if found.glued {
            self.find(Kind::GluedLine, at, 0, line);
        }
        if let Some(there) = found.texts.invalid_utf8 {
            self.find(Kind::InvalidUtf8, at + there, 1, line);
        }
        if let Some(there) = found.texts.lone_surrogate {
            self.find(Kind::LoneSurrogate, at + there, 6, line);
        }
        if found.texts.odd_separators > 0 {
            self.find(Kind::OddSeparator, at, span.bytes, line);
        }
        let fields = &found.fields;
        let kind = self.number(shape::kind(shape, fields));
        let parent = match (fields.parent, fields.logical_parent) {
            (Link::Null | Link::Absent, Link::To(id)) => Link::To(id),
            (parent, _) => parent,
        };
        let about = fields.rewind.id().or(fields.leaf.id());
        self.records.push(Record {
            span,
            line,
            digest: found.digest,
            part: shape::part(shape, fields),
            shape,
            id: fields.uuid.id().or(fields.id.id()),
            parent,
            sidechain: fields.sidechain,
            kind,
            about: about.or(fields.message_ref.id()),
            session: fields.session.id().or(fields.payload_id.id()),
            message: fields.message_id.id(),
            turn: fields.turn.id(),
            call: fields.call.id(),
            ordinal: fields.ordinal,
        });
    }

    fn number(&mut self, kind: String) -> u16 {
        if let Some(number) = self.numbers.get(&kind) {
            return *number;
        }
        // A file with more kinds than that is nobody's; the last one stands for all further ones.
        let number = u16::try_from(self.kinds.len()).unwrap_or(u16::MAX);
        if number < u16::MAX {
            self.kinds.push(kind.clone());
            self.numbers.insert(kind, number);
            return number;
        }
        u16::MAX - 1
    }

    fn separators(&mut self, scanner: &Scanner, bytes: u64) {
        let found = scanner.separators;
        let kinds = [
            (Kind::Bom, u64::from(found.bom)),
            (Kind::Crlf, found.crlf),
            (Kind::BlankLine, found.blank),
        ];
        for (kind, count) in kinds {
            for _ in 0..count {
                self.find(kind, 0, 0, 1);
            }
        }
        let last = self.records.last();
        if let Some(last) = last.filter(|r| found.open && r.span.end() == bytes) {
            let line = last.line;
            self.find(Kind::NoLineEnd, bytes, 0, line);
        }
    }

    fn done(mut self, host: Option<Host>, digest: Digest) -> Reading {
        let most = self.votes.iter().copied().max().filter(|most| *most > 0);
        let voted = most.and_then(|most| {
            let mut all = Host::ALL.iter().copied();
            all.find(|host| self.votes[*host as usize] == most)
        });
        let host = host.or(voted);
        let names = |r: &&Record| r.shape == host && r.session.is_some();
        let session = match host {
            Some(Host::Codex) => {
                let mut heads = self.records.iter().filter(|r| r.part == Part::Head);
                heads.find(names).and_then(|r| r.session)
            }
            _ => self.records.iter().find(names).and_then(|r| r.session),
        };
        for record in &self.records {
            let (at, bytes, line) = (record.span.offset, record.span.bytes, record.line);
            if record.shape != host {
                self.findings.add(Finding {
                    kind: Kind::UnknownRecord,
                    offset: at,
                    bytes,
                    line,
                    about: About::Place,
                });
            }
        }
        Reading {
            host,
            digest,
            shares: self.shares,
            records: self.records,
            session,
            findings: self.findings,
            kinds: self.kinds,
        }
    }
}
