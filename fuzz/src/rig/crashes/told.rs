//! What a writer does in the rig, and what it is told of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenure_log::error::Error as LogError;
use tenure_log::format::RulesVersion;
use tenure_log::frame::{Depth, Draft, Parts};
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Deadline, Journal, TransactError};
use tenure_log::position::{Head, Position, TimeMicros};
use tenure_log::storage::sim::{Sim, SimProcess};
use tenure_log::writer::site::Tuning;

/// What a writer does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Appends a frame.
    Append,
    /// Appends one that goes over several sectors; two of them do not fit into a segment.
    AppendLarge,
    /// Appends two in one transaction.
    AppendTwo,
    /// Appends a frame, and does not wait for its answer.
    AppendUnanswered,
    /// Begins a new life.
    Raise,
    /// Closes the store and opens it again.
    Reopen,
}

/// Every operation.
pub const OPERATIONS: [Operation; 6] = [
    Operation::Append,
    Operation::AppendLarge,
    Operation::AppendTwo,
    Operation::AppendUnanswered,
    Operation::Raise,
    Operation::Reopen,
];

/// The store's log on the machine, made where there is none; its segments are small.
///
/// # Errors
/// As [`SegmentLog::open`].
pub fn open(process: Arc<SimProcess>) -> Result<SegmentLog, LogError> {
    let tuning = Tuning {
        append_wait: Duration::from_millis(200),
        sync_wait: Duration::from_millis(200),
        segment_bytes: vec![4096 + 2048],
        fill_bytes: 256,
        ..Tuning::default()
    };
    let options = Options {
        create: true,
        rules: RulesVersion(1),
        tuning,
        ..Options::default()
    };
    SegmentLog::open(process, Path::new("/store"), options)
}

fn draft(text: &str) -> Draft {
    Draft {
        time: TimeMicros(1),
        parts: Parts {
            texts: text.as_bytes().to_vec(),
            ..Parts::default()
        },
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Heard {
    Tried(String),
    Acknowledged(String, Head),
}

/// What was asked and answered, each with the steps that were made before.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Told(Vec<(u64, Heard)>);

impl Told {
    /// What was asked and answered before a step was made, as the beginning of another run.
    pub fn before(&self, step: u64) -> Self {
        let earlier = self.0.iter().filter(|(at, _)| *at <= step);
        Self(earlier.map(|(_, heard)| (0, heard.clone())).collect())
    }

    /// A text that nobody has tried to write, for what comes after a crash.
    pub fn afterwards(&self) -> String {
        format!("afterwards {}", self.0.len())
    }

    fn note(&mut self, sim: &Sim, heard: Heard) {
        self.0.push((sim.steps(), heard));
    }

    /// Appends frames with those texts in one transaction, and waits until they are durable.
    ///
    /// # Errors
    /// What the log says.
    ///
    /// # Panics
    /// When somebody else has moved the head: there is nobody.
    pub fn append(
        &mut self,
        sim: &Sim,
        log: &SegmentLog,
        texts: &[String],
    ) -> Result<(), LogError> {
        self.transact(sim, log, texts, true)
    }

    fn transact(
        &mut self,
        sim: &Sim,
        log: &SegmentLog,
        texts: &[String],
        waits: bool,
    ) -> Result<(), LogError> {
        for text in texts {
            self.note(sim, Heard::Tried(text.clone()));
        }
        let drafts: Vec<Draft> = texts.iter().map(|text| draft(text)).collect();
        let known = log.head()?;
        let done = log.transact(known, Deadline::NEVER, &mut |_| drafts.clone());
        let heads = done.map(|appended| appended.heads);
        match waits {
            true => self.hear(sim, log, texts, heads),
            false => heads.map(drop).map_err(failed),
        }
    }

    fn raise(&mut self, sim: &Sim, log: &SegmentLog, text: String) -> Result<(), LogError> {
        self.note(sim, Heard::Tried(text.clone()));
        let known = log.head()?;
        let done = log.raise(known, Deadline::NEVER, &mut |_, _| draft(&text));
        self.hear(sim, log, &[text], done.map(|appended| appended.heads))
    }

    fn hear(
        &mut self,
        sim: &Sim,
        log: &SegmentLog,
        texts: &[String],
        done: Result<Vec<Head>, TransactError>,
    ) -> Result<(), LogError> {
        let heads = done.map_err(failed)?;
        let last = heads.last().map_or(Position::ZERO, |head| head.position);
        log.wait_durable(last, Deadline::NEVER)?;
        for (text, head) in texts.iter().zip(heads) {
            self.note(sim, Heard::Acknowledged(text.clone(), head));
        }
        Ok(())
    }

    /// What a log holds otherwise than was told.
    ///
    /// # Errors
    /// When it cannot be read to its end.
    pub fn broken(&self, log: &SegmentLog) -> Result<Option<String>, LogError> {
        let is_tried = |text: &[u8]| {
            let mut heard = self.0.iter();
            heard.any(|(_, heard)| matches!(heard, Heard::Tried(tried) if tried.as_bytes() == text))
        };
        let mut walk = log.read_from(Position::ZERO, Depth::Whole)?;
        let mut seen: Vec<(Vec<u8>, Head)> = Vec::new();
        while let Some(frame) = walk.next() {
            let frame = frame?;
            if !is_tried(frame.texts) {
                let text = named(frame.texts);
                return Ok(Some(format!("{text} is there, and nobody wrote it")));
            }
            if seen.iter().any(|(text, _)| text == frame.texts) {
                let text = named(frame.texts);
                return Ok(Some(format!("{text} is there twice")));
            }
            seen.push((frame.texts.to_vec(), frame.header.head()));
        }
        for (_, heard) in &self.0 {
            if let Heard::Acknowledged(text, head) = heard
                && !seen.iter().any(|(t, h)| t == text.as_bytes() && h == head)
            {
                let (text, position) = (named(text.as_bytes()), head.position);
                let line = format!("{text}, acknowledged at {position}, is not there");
                return Ok(Some(line));
            }
        }
        Ok(None)
    }
}

/// The beginning of a text, by which it is told from the others.
fn named(text: &[u8]) -> String {
    let beginning = &text[..text.len().min(16)];
    format!("{:?}", String::from_utf8_lossy(beginning))
}

fn failed(error: TransactError) -> LogError {
    match error {
        TransactError::Failed(error) | TransactError::Unknown { source: error, .. } => error,
        // One process, which saw the head just now: nobody moved it.
        other => panic!("{other}"),
    }
}

/// Plays a sequence; says how many steps there were before its last operation.
///
/// # Errors
/// What the log says.
pub fn play(
    sim: &Sim,
    process: Arc<SimProcess>,
    sequence: &[Operation],
    told: &mut Told,
) -> Result<u64, LogError> {
    let mut before = 0;
    let mut log = open(process.clone())?;
    for (number, operation) in sequence.iter().enumerate() {
        before = sim.steps();
        match operation {
            Operation::Append => told.append(sim, &log, &[format!("{number}")])?,
            Operation::AppendLarge => {
                let text = format!("{number} {}", "l".repeat(1100));
                told.append(sim, &log, &[text])?;
            }
            Operation::AppendTwo => {
                let texts = [format!("{number}a"), format!("{number}b")];
                told.append(sim, &log, &texts)?;
            }
            Operation::AppendUnanswered => {
                told.transact(sim, &log, &[format!("{number}u")], false)?;
            }
            Operation::Raise => told.raise(sim, &log, format!("{number} raised"))?,
            Operation::Reopen => {
                drop(log);
                log = open(process.clone())?;
            }
        }
    }
    Ok(before)
}
