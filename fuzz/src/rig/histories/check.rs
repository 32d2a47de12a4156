//! A history held against the log.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use tenure_projection::core::event::FenceKind;
use tenure_projection::core::id::Position;
use tenure_projection::entry;
use tenure_projection::host::System;
use tenure_projection::log::frame::Depth;
use tenure_projection::reader::Reader;

use super::recorded::{Answer, History, Operation, Wish};
use crate::rig::Figures;

/// What the log says of one operation.
#[derive(Clone, Copy, Debug)]
struct Entry {
    position: u64,
    /// The generation granted; none for a note.
    granted: Option<u64>,
    /// The generation that was current before.
    before: u64,
}

/// The log as an order of operations.
struct Log {
    entries: BTreeMap<String, Entry>,
    /// Position and generation of each grant, in order.
    grants: Vec<(u64, u64)>,
    head: u64,
    doubled: Vec<String>,
}

impl Log {
    fn read(store: &Path) -> Result<Self, Box<dyn Error>> {
        let reader = Reader::open(store, Arc::new(System::of_this_user()))?;
        let mut log = Self {
            entries: BTreeMap::new(),
            grants: Vec::new(),
            head: 0,
            doubled: Vec::new(),
        };
        reader.frames(Position(1), Position(u64::MAX), Depth::Whole, |frame| {
            let decoded = entry::decode(frame)?;
            let position = decoded.at.position.0;
            log.head = position;
            let granted = match decoded.fence.kind {
                FenceKind::Grant => decoded.fence.granted.map(|g| g.number),
                FenceKind::Write => None,
                // A refusal that is kept is no operation: it is checked by its answer.
                _ => return Ok(true),
            };
            let before = log.generation_at(position - 1);
            log.grants.extend(granted.map(|g| (position, g)));
            let request = entry::decode_request(frame)?;
            let name = request.texts.get(request.input.origin.actor);
            let name = String::from_utf8_lossy(name).into_owned();
            let entry = Entry {
                position,
                granted,
                before,
            };
            if log.entries.insert(name.clone(), entry).is_some() {
                log.doubled.push(name);
            }
            Ok(true)
        })?;
        Ok(log)
    }

    /// The generation that is current behind a position; zero before the first grant.
    fn generation_at(&self, position: u64) -> u64 {
        let before = self.grants.partition_point(|(at, _)| *at <= position);
        before.checked_sub(1).map_or(0, |last| self.grants[last].1)
    }
}

/// What is broken.
///
/// # Errors
/// When the log does not read.
pub fn check(
    history: &History,
    store: &Path,
    figures: &mut Figures,
) -> Result<Vec<String>, Box<dyn Error>> {
    if !store.join("segments").exists() {
        // Everybody was killed before there was a store: nobody was told anything.
        let told = history.operations.values().filter(|o| o.told.is_some());
        let count = told.count();
        return Ok((count > 0)
            .then(|| format!("{count} answers, and no store"))
            .into_iter()
            .collect());
    }
    let log = Log::read(store)?;
    let mut broken: Vec<String> = log
        .doubled
        .iter()
        .map(|name| format!("{name} stands in the log twice"))
        .collect();
    for name in log.entries.keys() {
        if !history.operations.contains_key(name) {
            broken.push(format!("{name} stands in the log, and nobody asked it"));
        }
    }
    let windows = Windows::of(history, &log);
    for (name, operation) in &history.operations {
        let entry = log.entries.get(name).copied();
        let window = windows.around(operation, log.head);
        let kind = match (&operation.told, entry) {
            (None, Some(_)) => "done and not told",
            (None, None) => "not done and not told",
            (Some((_, Answer::Done(..))), _) => "done",
            (Some((_, Answer::Refused(_))), _) => "refused",
        };
        figures.count(kind, 1);
        if let Some(line) = judge(operation, entry, window, &log) {
            broken.push(format!("{name} {operation:?} in {window:?}: {line}"));
        }
    }
    Ok(broken)
}

/// The positions between which an operation may have its place, both among them.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Above everything that was done before it was asked.
    from: u64,
    /// Below everything that was asked after it was told.
    to: u64,
}

/// What was done, by when it was told and when it was asked.
struct Windows {
    /// Time of an answer, and the greatest position told up to then.
    told: Vec<(u64, u64)>,
    /// Time of a question, latest first, and the least position of what was asked from then on.
    asked: Vec<(u64, u64)>,
}

impl Windows {
    fn of(history: &History, log: &Log) -> Self {
        let (mut told, mut asked) = (Vec::new(), Vec::new());
        for (name, operation) in &history.operations {
            let Some(entry) = log.entries.get(name) else {
                continue;
            };
            if let Some((time, _)) = operation.told {
                told.push((time, entry.position));
            }
            asked.push((operation.asked, entry.position));
        }
        told.sort_unstable();
        let mut greatest = 0;
        for (_, position) in &mut told {
            greatest = greatest.max(*position);
            *position = greatest;
        }
        asked.sort_unstable_by(|a, b| b.cmp(a));
        let mut least = u64::MAX;
        for (_, position) in &mut asked {
            least = least.min(*position);
            *position = least;
        }
        Self { told, asked }
    }

    fn around(&self, operation: &Operation, head: u64) -> Window {
        let before = self
            .told
            .partition_point(|(time, _)| *time < operation.asked);
        let from = before.checked_sub(1).map_or(0, |last| self.told[last].1);
        let until = operation.told.as_ref().map_or(u64::MAX, |(time, _)| *time);
        let after = self.asked.partition_point(|(time, _)| *time > until);
        let to = after
            .checked_sub(1)
            .map_or(head, |last| self.asked[last].1.saturating_sub(1).min(head));
        Window { from, to }
    }
}

fn judge(operation: &Operation, entry: Option<Entry>, window: Window, log: &Log) -> Option<String> {
    if let Some(entry) = entry {
        if entry.position <= window.from || entry.position > window.to {
            return Some(format!("it stands at {}", entry.position));
        }
        if let Some(line) = out_of_order(operation.wish, entry) {
            return Some(line);
        }
    }
    match (&operation.told, entry) {
        (None, _) => None,
        (Some((_, Answer::Done(position, generation))), Some(entry)) => {
            let stands = (entry.position, entry.granted.unwrap_or_default());
            (stands != (*position, *generation)).then(|| format!("the log says {stands:?}"))
        }
        (Some((_, Answer::Done(..))), None) => Some("it was done, and the log has it not".into()),
        (Some((_, Answer::Refused(_))), Some(entry)) => {
            Some(format!("it was refused, and stands at {}", entry.position))
        }
        (Some((_, Answer::Refused(code))), None) => untrue(operation.wish, code, window, log),
    }
}

/// Whether an operation may stand where it does.
fn out_of_order(wish: Wish, entry: Entry) -> Option<String> {
    let Entry {
        granted, before, ..
    } = entry;
    let may = match wish {
        Wish::Register => before == 0 && granted == Some(1),
        Wish::Adopt => before > 0 && granted == Some(before + 1),
        Wish::Note(generation) => granted.is_none() && generation == before,
    };
    (!may).then(|| format!("it grants {granted:?} where {before} was current"))
}

/// Whether a refusal was true at no moment at which it can have been made. Generations only rise.
fn untrue(wish: Wish, code: &str, window: Window, log: &Log) -> Option<String> {
    let (first, last) = (log.generation_at(window.from), log.generation_at(window.to));
    let was_true = match (wish, code) {
        (Wish::Register, "already-active") => last > 0,
        (Wish::Adopt, "unknown-session") => first == 0,
        (Wish::Note(generation), "stale-generation") => last > generation,
        _ => false,
    };
    (!was_true).then(|| format!("generations {first} to {last} were current"))
}
