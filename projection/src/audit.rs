//! Re-adjudication: every decision in the log is made again from its recorded input, and compared (AUD-1).
//!
//! A log whose bytes are sound may still hold what no correct store would have written: a build with a guard
//! missing wrote it, or somebody computed the checksums. Two judges look at each frame. The first is the pure
//! decision code of this program, in front of the state that the log gives at that position. The second is a
//! [`Ledger`] of a few rules that shares no code with the first.

use tenure_core::apply::apply;
use tenure_core::command::Request;
use tenure_core::decide::{Decision, decide, is_unproven, refused, refused_with, stands};
use tenure_core::event::{Entry, Event, Refused};
use tenure_core::id::Position;
use tenure_core::redaction::{self, Classes};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::state::State;
use tenure_log::frame::{Depth, FrameRef};

use crate::entry;
use crate::error::Error;
use crate::reader::Reader;
use crate::store::RULES;
use crate::views::code_word;

mod ledger;

pub use ledger::Ledger;

/// The rule that a frame breaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// It was accepted, and a correct store refuses it so.
    Refused(Code),
    /// It was refused, and a correct store does it.
    RefusedWithoutReason,
    /// It was refused under another code than a correct store gives.
    RefusedOtherwise(Code),
    /// Its events are not those that its input comes to.
    OtherEvents,
    /// Its fence fields are not those that its input comes to.
    OtherFence,
    /// Its fence, or an event of it, does not stand at its position; nobody honours it.
    DoesNotStand,
    /// A verdict on a holder that does not follow from the reasons recorded with it.
    UnprovenVerdict,
    /// A token was issued that had been issued before.
    TokenIssuedTwice,
    /// A generation was granted that is below one granted before.
    GenerationWentBack,
    /// An item got a second active binding.
    TwoBindings,
    /// An envelope of a generation that nobody was granted yet (OUT-9).
    EnvelopeAhead,
    /// A receipt by a session that the envelope was not addressed to.
    ReceiptByStranger,
    /// Content was taken out of a store that is no copy from a bundle.
    Redacted,
}

impl Rule {
    /// The word printed for it; the refusal's own code where one is missing.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused(code) => code.as_str(),
            Self::RefusedWithoutReason => "refused-without-reason",
            Self::RefusedOtherwise(_) => "refused-otherwise",
            Self::OtherEvents => "other-events",
            Self::OtherFence => "other-fence",
            Self::DoesNotStand => "does-not-stand",
            Self::UnprovenVerdict => "unproven-verdict",
            Self::TokenIssuedTwice => "token-issued-twice",
            Self::GenerationWentBack => "generation-went-back",
            Self::TwoBindings => "two-bindings",
            Self::EnvelopeAhead => "envelope-ahead",
            Self::ReceiptByStranger => "receipt-by-stranger",
            Self::Redacted => "redacted",
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A frame that a correct store would not have written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The frame.
    pub position: Position,
    /// The rule it breaks.
    pub rule: Rule,
    /// What was asked; `None` where the input does not decode.
    pub command: Option<&'static str>,
    /// One sentence: what was recorded, and what a correct store says.
    pub message: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} at position {}: {}",
            self.rule, self.position, self.message
        )
    }
}

/// Frames, one behind the other, that were not judged for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unjudged {
    /// The first of them.
    pub first: Position,
    /// The last of them.
    pub last: Position,
    /// Why.
    pub why: NotJudged,
}

/// Why a frame was not judged.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotJudged {
    /// It was written under rules of another version.
    OtherRules(u32),
    /// It holds a kind of command or event that this program does not know.
    Unknown,
    /// Its input does not decode, or was redacted.
    Input(String),
}

impl std::fmt::Display for NotJudged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OtherRules(version) => {
                write!(
                    f,
                    "decided by version {version} of the rules, of which this program knows {}",
                    RULES.0
                )
            }
            Self::Unknown => f.write_str("it holds a kind that this program does not know"),
            Self::Input(why) => write!(f, "its input cannot be read: {why}"),
        }
    }
}

/// What an audit found.
#[must_use = "what was found stands in it"]
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The newest position looked at.
    pub until: Position,
    /// Frames whose decision was made again.
    pub judged: u64,
    /// Frames that could not be judged, with why, in the order of positions.
    pub not_judged: Vec<Unjudged>,
    /// Frames between a loss and the incarnation begun behind it: what they stood on cannot be proven, so that they
    /// are neither judged nor findings.
    pub unproven: u64,
    /// What breaks a rule, in the order of positions.
    pub findings: Vec<Finding>,
    /// Texts and bodies that were taken out before the log came here: no judge has seen their content.
    pub redacted: (u64, u64),
}

impl Report {
    /// How many frames could not be judged.
    #[must_use]
    pub fn unjudged(&self) -> u64 {
        let frames = |stretch: &Unjudged| stretch.last.0 - stretch.first.0 + 1;
        self.not_judged.iter().map(frames).sum()
    }

    /// Whether every frame was judged and none broke a rule.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.not_judged.is_empty()
    }
}

/// An audit on its way: the state at one position, and what was found up to it.
#[derive(Debug)]
pub struct Audit {
    state: State,
    ledger: Ledger,
    report: Report,
    /// What may have been taken out of the log.
    redacted: Classes,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            state: State::new(),
            ledger: Ledger::default(),
            report: Report::default(),
            redacted: Classes::default(),
        }
    }
}

impl Audit {
    /// An audit that begins behind the position of `state`. The second judge has seen nothing of what was before.
    #[must_use]
    pub fn at(state: State) -> Self {
        Self {
            state,
            ..Self::default()
        }
    }

    /// What was found.
    pub fn into_report(self) -> Report {
        self.report
    }

    /// Audits a log from its beginning to `to`, or to the newest position that can be shown. `watch` is told of
    /// every position passed.
    ///
    /// # Errors
    /// [`Error::BeyondHead`] when the log does not reach `to`; when a frame cannot be read.
    pub fn of(
        reader: &Reader,
        to: Option<Position>,
        mut watch: impl FnMut(Position),
    ) -> Result<Report, Error> {
        let head = Position(reader.head()?.position.0);
        let asked = to.unwrap_or(head);
        if head < asked {
            return Err(Error::BeyondHead { head, asked });
        }
        let mut audit = Self {
            redacted: reader.redacted(),
            ..Self::default()
        };
        // Each frame by the rules of its own segment. Of those there is one version so far.
        let rules = reader.rules()?;
        let mut changes = rules.into_iter().peekable();
        let mut rules = RULES;
        reader.frames(Position(1), asked, Depth::Whole, |frame| {
            let position = frame.header.position.0;
            while let Some((_, version)) = changes.next_if(|(first, _)| first.0 <= position) {
                rules = version;
            }
            if rules == RULES {
                audit.frame(frame)?;
            } else {
                audit.pass(frame, NotJudged::OtherRules(rules.0))?;
            }
            watch(audit.state.at.position);
            Ok(true)
        })?;
        Ok(audit.into_report())
    }

    /// Judges the next frame, and folds it.
    ///
    /// # Errors
    /// [`Error::Facts`] when the frame does not even give its events.
    pub fn frame(&mut self, frame: &FrameRef<'_>) -> Result<(), Error> {
        let entry = entry::decode(frame)?;
        if is_unproven(&self.state, &entry) && stands(&self.state, &entry) {
            self.report.unproven += 1;
            self.fold(&entry);
            return Ok(());
        }
        let known = entry.unknown.is_none();
        self.count_redacted(&entry, frame);
        match entry::decode_request(frame) {
            Ok(request) if known => {
                self.judge(&entry, request);
                self.report.judged += 1;
            }
            Ok(_) => self.skip(&entry, NotJudged::Unknown),
            Err(Error::Facts { fault, .. }) => {
                self.skip(&entry, NotJudged::Input(fault.to_string()));
            }
            Err(error) => return Err(error),
        }
        self.fold(&entry);
        Ok(())
    }

    /// Counts what was taken out, which is nothing in a store that was not made from a bundle.
    fn count_redacted(&mut self, entry: &Entry, frame: &FrameRef<'_>) {
        // What does not decode is told by whoever judges it.
        let taken = redaction::taken(frame.facts, frame.texts, frame.bodies);
        let (texts, bodies) = taken.unwrap_or_default();
        self.report.redacted.0 += texts;
        self.report.redacted.1 += bodies;
        if texts + bodies > 0 && !self.redacted.is_any() {
            let message =
                "texts or bodies were taken out, and the store says of nothing that it was";
            self.found(entry, Rule::Redacted, None, message.to_owned());
        }
    }

    fn pass(&mut self, frame: &FrameRef<'_>, why: NotJudged) -> Result<(), Error> {
        let entry = entry::decode(frame)?;
        self.skip(&entry, why);
        self.fold(&entry);
        Ok(())
    }

    fn skip(&mut self, entry: &Entry, why: NotJudged) {
        let position = entry.at.position;
        match self.report.not_judged.last_mut() {
            Some(open) if open.why == why && open.last.0 + 1 == position.0 => open.last = position,
            _ => self.report.not_judged.push(Unjudged {
                first: position,
                last: position,
                why,
            }),
        }
    }

    fn fold(&mut self, entry: &Entry) {
        if is_unproven(&self.state, entry) {
            self.ledger.believe(entry);
        } else {
            for (rule, message) in self.ledger.note(entry) {
                self.found(entry, rule, None, message);
            }
        }
        apply(&mut self.state, entry);
        self.report.until = entry.at.position;
    }

    fn found(&mut self, entry: &Entry, rule: Rule, command: Option<&'static str>, message: String) {
        self.report.findings.push(Finding {
            position: entry.at.position,
            rule,
            command,
            message,
        });
    }

    /// The record of a refusal made again. Of a body that was taken out, the digest is taken as it was recorded.
    fn again(
        &self,
        request: &mut Request,
        refusal: &Refusal,
        recorded: &Refused,
    ) -> Option<Decision> {
        if self.redacted.bodies && request.bodies.iter().len() > 0 {
            return refused_with(&self.state, request, refusal, recorded.body);
        }
        refused(&self.state, request, refusal)
    }

    fn judge(&mut self, entry: &Entry, mut request: Request) {
        let word = request.input.command.word();
        if let Some(evidence) = request.input.evidence.as_ref().filter(|e| !e.follows()) {
            let message = format!(
                "the holder of generation {} was taken for {}, which does not follow from what was seen",
                evidence.generation,
                evidence.verdict.as_str()
            );
            self.found(entry, Rule::UnprovenVerdict, Some(word), message);
        }
        let recorded_refusal = entry.events.iter().find_map(|event| match event {
            Event::Refused(refused) => Some(refused),
            _ => None,
        });
        let verdict = match (decide(&self.state, &request), recorded_refusal) {
            (Ok(decision), None) => compare(entry, (&decision.fence, &decision.events)),
            (Err(refusal), None) => Some((Rule::Refused(refusal.code), accepted(&refusal))),
            (Ok(_), Some(recorded)) => Some((
                Rule::RefusedWithoutReason,
                format!(
                    "it was refused as {}; a correct store does it",
                    code_word(recorded.code)
                ),
            )),
            (Err(refusal), Some(recorded)) if refusal.code.number() != recorded.code => Some((
                Rule::RefusedOtherwise(refusal.code),
                format!(
                    "it was refused as {}; a correct store says {}",
                    code_word(recorded.code),
                    refusal.code.as_str()
                ),
            )),
            (Err(refusal), Some(recorded)) => match self.again(&mut request, &refusal, recorded) {
                Some(decision) => compare(entry, (&decision.fence, &decision.events)),
                None => Some((
                    Rule::OtherEvents,
                    "it was recorded once more; a correct store only counts it".into(),
                )),
            },
        };
        if let Some((rule, message)) = verdict {
            self.found(entry, rule, Some(word), message);
        } else if !stands(&self.state, entry) {
            let message = "no projection honours it at its position".to_owned();
            self.found(entry, Rule::DoesNotStand, Some(word), message);
        }
    }
}

fn accepted(refusal: &Refusal) -> String {
    format!(
        "it was accepted; a correct store refuses it: {}",
        refusal.message
    )
}

/// What differs between an entry and what its input comes to.
fn compare(
    entry: &Entry,
    (fence, events): (&tenure_core::event::Fence, &[Event]),
) -> Option<(Rule, String)> {
    let words = |events: &[Event]| {
        let words: Vec<_> = events.iter().map(Event::word).collect();
        if words.is_empty() {
            "nothing".to_owned()
        } else {
            words.join(", ")
        }
    };
    if entry.events != events {
        let (recorded, correct) = (words(&entry.events), words(events));
        let message = if recorded == correct {
            format!("it recorded {recorded} with other content than its input comes to")
        } else {
            format!("it recorded {recorded}; its input comes to {correct}")
        };
        return Some((Rule::OtherEvents, message));
    }
    (entry.fence != *fence).then(|| {
        let message = "its fence names another session or generation than its input comes to";
        (Rule::OtherFence, message.to_owned())
    })
}
