//! What is wrong with a transcript, and what is only odd: a kind for each, with its word and its meaning.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::id::Id;

/// How many findings of one kind are listed; the others are counted.
pub const LISTED_MAX: usize = 1000;

/// Whether something is a fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Weight {
    /// Something was lost, broken or doubled.
    Fault,
    /// Healthy files have it.
    Oddity,
}

impl Weight {
    /// The printed word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Oddity => "oddity",
        }
    }
}

macro_rules! kinds {
    ($($(#[$meta:meta])* $variant:ident $weight:ident $word:literal $meaning:literal,)*) => {
        /// A kind of finding, as `docs/transcripts.md` lists them.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[non_exhaustive]
        pub enum Kind { $($(#[$meta])* $variant,)* }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The printed word.
            #[must_use]
            pub fn as_str(self) -> &'static str { match self { $(Self::$variant => $word,)* } }

            /// Whether it is a fault.
            #[must_use]
            pub fn weight(self) -> Weight { match self { $(Self::$variant => Weight::$weight,)* } }

            /// What it means.
            #[must_use]
            pub fn meaning(self) -> &'static str { match self { $(Self::$variant => $meaning,)* } }
        }
    };
}

kinds! {
    /// A line ends inside a record.
    TornLine Fault "torn-line" "a record was not written to its end",
    /// The file ends inside a record.
    TornTail Fault "torn-tail" "the last record is not written to its end: cut off, or still being written",
    /// A record begins on the line of another.
    GluedLine Fault "glued-line" "a record begins on a line that another one was written to",
    /// Bytes of zero.
    NulBlock Fault "nul-block" "zeros where nothing was ever written to the disk",
    /// Bytes that are no record.
    NotJson Fault "not-json" "bytes that are no record",
    /// A byte order mark inside the file.
    StrayBom Fault "stray-bom" "a byte order mark inside the file: files were joined",
    /// A text that is no UTF-8.
    InvalidUtf8 Fault "invalid-utf8" "a text of the record is no UTF-8",
    /// Half of a surrogate pair.
    LoneSurrogate Fault "lone-surrogate" "half of a character, as where a text was cut inside an emoji",
    /// The same record twice.
    Repeated Fault "repeated-record" "the same record again, byte for byte; it is kept once",
    /// One id, two records.
    DuplicateId Fault "duplicate-id" "another record has the same id and other bytes; the first is the one that others continue",
    /// A parent that is not there.
    Dangling Fault "dangling-id" "it continues a record that is not in the file; what came before it is lost",
    /// Records that continue each other in a circle.
    Cycle Fault "cycle" "it continues itself, through others or directly",
    /// Ordinals that leave numbers out.
    OrdinalGap Fault "ordinal-gap" "the numbers between are missing",
    /// Two records with one ordinal.
    OrdinalRepeated Fault "ordinal-repeated" "the number was given before: a second writer went on from an earlier record",
    /// A record without an ordinal among those with one.
    OrdinalMissing Fault "ordinal-missing" "the others are numbered, this one is not",
    /// Two continuations of one record, written at the same time.
    TwoWriters Fault "two-writers" "two continued the same record and wrote at the same time",
    /// A record whose branch cannot be told.
    Unplaced Fault "unplaced" "which branch it belongs to cannot be told; it is kept apart",

    /// A byte order mark at the start.
    Bom Oddity "bom" "a byte order mark at the start",
    /// Lines that end as on Windows.
    Crlf Oddity "crlf" "lines that end in CR LF",
    /// Empty lines.
    BlankLine Oddity "blank-line" "empty lines",
    /// The last line has no end.
    NoLineEnd Oddity "no-line-end" "the last record is whole and its line has no end",
    /// U+0085, U+2028, U+2029.
    OddSeparator Oddity "odd-separator" "characters inside of texts that some programs take for line ends",
    /// A record of a type that says nothing here.
    UnknownRecord Oddity "unknown-record" "an object that no record of this host looks like",
    /// Continuations one after the other.
    Fork Oddity "fork" "continued more than once, one after the other, as after a rewind",
    /// Results of calls beside the continuation.
    ParallelCalls Oddity "parallel-calls" "several calls of one answer, each with its result",
    /// Another beginning.
    SecondRoot Oddity "second-root" "a record that begins anew and continues nothing",
    /// A subagent's records.
    Sidechain Oddity "sidechain" "records of a subagent among those of the session",
    /// A child written before its parent.
    OutOfOrder Oddity "out-of-order" "a record stands before the one that it continues",
    /// Another session's id.
    SecondSession Oddity "second-session" "records that name another session",
    /// A header again.
    SecondHeader Oddity "second-header" "the head of a session again, as a resume or a fork copies it",
    /// A message written again.
    Rewritten Oddity "rewritten" "a message again under its id; the last one counts",
    /// What was said is taken back.
    Rewind Oddity "rewind" "what was said from there on is taken back",
}

/// Something found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How many bytes it is about; zero where it is a place between bytes.
    pub bytes: u64,
    /// On which line, from 1.
    pub line: u64,
    /// What it is about.
    pub about: About,
}

/// What a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum About {
    /// The place itself.
    #[default]
    Place,
    /// An id.
    Id(Id),
    /// Ordinals: which one was due, and which one is there.
    Ordinals {
        /// The one that was due.
        due: u64,
        /// The one that is there.
        there: u64,
    },
}

impl Display for About {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place => Ok(()),
            Self::Id(id) => id.fmt(f),
            Self::Ordinals { due, there } => write!(f, "{there} where {due} was due"),
        }
    }
}

/// How often a kind was found, and where first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// Where first.
    pub first: Finding,
}

/// All that was found. Faults are listed up to [`LISTED_MAX`] of a kind; everything is counted.
#[derive(Clone, Default, Debug)]
pub struct Findings {
    listed: Vec<Finding>,
    tallies: BTreeMap<Kind, Tally>,
}

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        let tally = self.tallies.entry(finding.kind).or_insert(Tally {
            count: 0,
            first: finding,
        });
        tally.count += 1;
        if finding.kind.weight() == Weight::Fault && tally.count <= LISTED_MAX as u64 {
            self.listed.push(finding);
        }
    }

    /// How often each kind was found, and where first.
    pub fn tallies(&self) -> impl Iterator<Item = (Kind, Tally)> + '_ {
        self.tallies.iter().map(|(kind, tally)| (*kind, *tally))
    }

    /// How often a kind was found.
    #[must_use]
    pub fn count(&self, kind: Kind) -> u64 {
        self.tallies.get(&kind).map_or(0, |tally| tally.count)
    }

    /// How many faults there are.
    #[must_use]
    pub fn faults(&self) -> u64 {
        let faults = self
            .tallies()
            .filter(|(kind, _)| kind.weight() == Weight::Fault);
        faults.map(|(_, tally)| tally.count).sum()
    }

    /// The faults that are listed, in the order of the file.
    #[must_use]
    pub fn listed(&self) -> Vec<Finding> {
        let mut listed = self.listed.clone();
        listed.sort_by_key(|f| (f.offset, f.kind));
        listed
    }

    /// These and others.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        for (kind, tally) in &others.tallies {
            let own = self.tallies.entry(*kind).or_insert(Tally {
                count: 0,
                first: tally.first,
            });
            own.count += tally.count;
            if tally.first.offset < own.first.offset {
                own.first = tally.first;
            }
        }
        self.listed.extend_from_slice(&others.listed);
        self
    }
}
