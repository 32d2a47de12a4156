//! What the log told, by all processes together, held against what is found later.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_log::conformance::draft;
use tenure_log::error::Error;
use tenure_log::frame::{Depth, Frame};
use tenure_log::journal::segment::SegmentLog;
use tenure_log::journal::{Deadline, Journal, TransactError};
use tenure_log::position::{Head, Position};
use tenure_log::reader::open::SegmentReader;
use tenure_log::storage::Storage;
use tenure_log::storage::sim::SimProcess;

use super::STORE;

/// What the log said about each text, by all processes together.
#[derive(Clone, Default)]
pub(super) struct Told(Arc<Mutex<Answers>>);

#[derive(Default)]
struct Answers {
    tried: BTreeSet<String>,
    acknowledged: Vec<(String, Head)>,
    absent: BTreeSet<String>,
    read: BTreeMap<Position, Head>,
}

impl Told {
    /// Appends a text once; retries only where the log said that it is certainly not there.
    pub(super) fn append(&self, log: &SegmentLog, text: &str) -> Result<(), Error> {
        self.0.lock().tried.insert(text.to_owned());
        let mut known = log.head()?;
        loop {
            match log.transact(known, Deadline::NEVER, &mut |_| vec![draft(text)]) {
                Ok(appended) => {
                    log.wait_durable(appended.head.position, Deadline::NEVER)?;
                    self.0
                        .lock()
                        .acknowledged
                        .push((text.to_owned(), appended.head));
                    return Ok(());
                }
                Err(TransactError::Moved { appended }) => {
                    assert!(appended.is_empty(), "one draft is in the log or is not");
                    known = log.head()?;
                }
                Err(TransactError::Unknown { source, .. }) => return Err(source),
                Err(TransactError::Failed(error)) => {
                    self.0.lock().absent.insert(text.to_owned());
                    return Err(error);
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Begins a new life with a text, as [`Told::append`] appends one.
    pub(super) fn raise(&self, log: &SegmentLog, text: &str) -> Result<(), Error> {
        self.0.lock().tried.insert(text.to_owned());
        let mut known = log.head()?;
        loop {
            match log.raise(known, Deadline::NEVER, &mut |_, _| draft(text)) {
                Ok(appended) => {
                    log.wait_durable(appended.head.position, Deadline::NEVER)?;
                    self.0
                        .lock()
                        .acknowledged
                        .push((text.to_owned(), appended.head));
                    return Ok(());
                }
                Err(TransactError::Moved { .. }) => known = log.head()?,
                Err(TransactError::Unknown { source, .. }) => return Err(source),
                Err(TransactError::Failed(error)) => {
                    self.0.lock().absent.insert(text.to_owned());
                    return Err(error);
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Reads like a process that only reads; what it once read stays. Between two reads others run.
    pub(super) fn read_along(&self, process: &Arc<SimProcess>, times: usize) -> Result<(), Error> {
        let mut newest = Position::ZERO;
        for _ in 0..times {
            process.step();
            let reader = match SegmentReader::open(process.clone(), Path::new(STORE)) {
                Ok(reader) => reader,
                // There is no store yet, or writers are faster.
                Err(Error::NotAStore { .. } | Error::Busy { .. }) => continue,
                Err(error) => return Err(error),
            };
            let head = match reader.head() {
                Ok(head) => head,
                Err(Error::Busy { .. }) => continue,
                Err(error) => return Err(error),
            };
            let mut walk = match reader.read_from(Position::ZERO, Depth::Whole) {
                Ok(walk) => walk,
                Err(Error::Busy { .. }) => continue,
                Err(error) => return Err(error),
            };
            let mut last = Head::default();
            while let Some(frame) = walk.next() {
                last = frame?.header.head();
                self.0.lock().read.insert(last.position, last);
            }
            assert!(
                last.position >= head.position,
                "{} was announced, {} was read",
                head.position,
                last.position
            );
            assert!(
                last.position >= newest,
                "{} was read after {newest}",
                last.position
            );
            newest = last.position;
        }
        Ok(())
    }

    /// Whether what was read is still there.
    pub(super) fn judge_what_was_read(&self, frames: &[Frame]) {
        for (position, head) in &self.0.lock().read {
            let found = frames
                .iter()
                .find(|frame| frame.header.position == *position);
            assert_eq!(
                found.map(|frame| frame.header.head()),
                Some(*head),
                "{position} was read"
            );
        }
    }

    /// Whether a log holds what was said about it.
    pub(super) fn judge(&self, frames: &[Frame]) {
        let answers = self.0.lock();
        let texts: Vec<String> = frames
            .iter()
            .map(|frame| String::from_utf8(frame.parts.texts.clone()).expect("UTF-8"))
            .collect();
        let distinct: BTreeSet<&String> = texts.iter().collect();
        assert_eq!(distinct.len(), texts.len(), "doubled: {texts:?}");
        for text in &texts {
            assert!(answers.tried.contains(text), "{text} was never appended");
            assert!(
                !answers.absent.contains(text),
                "{text} was said to be absent"
            );
        }
        for (text, head) in &answers.acknowledged {
            let found = frames.iter().find(|frame| frame.header.head() == *head);
            let found = found.unwrap_or_else(|| {
                panic!(
                    "{text} was acknowledged at {} and is not there",
                    head.position
                )
            });
            assert_eq!(found.parts.texts, text.as_bytes());
        }
    }
}

pub(super) fn copy(told: &Told) -> Told {
    let answers = told.0.lock();
    Told(Arc::new(Mutex::new(Answers {
        tried: answers.tried.clone(),
        acknowledged: answers.acknowledged.clone(),
        absent: answers.absent.clone(),
        read: answers.read.clone(),
    })))
}
