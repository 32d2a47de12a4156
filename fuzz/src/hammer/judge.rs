//! The log, judged after the hammer.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tenure_projection::core::apply::{Applied, apply};
use tenure_projection::core::event::{Event, FenceKind};
use tenure_projection::core::id::Position;
use tenure_projection::core::state::State;
use tenure_projection::entry;
use tenure_projection::error::Error;
use tenure_projection::host::System;
use tenure_projection::log::frame::Depth;
use tenure_projection::reader::Reader;

use super::Tally;

/// What the log showed.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Frames in the log.
    pub frames: u64,
    /// Notes in it.
    pub notes: u64,
    /// Grants in it.
    pub grants: u64,
    /// Broken promises, in words.
    pub violations: Vec<String>,
}

/// Judges the log in `store` by what was acknowledged.
///
/// # Errors
/// When the log cannot be read.
pub fn judge(store: &Path, tally: &Tally) -> Result<Report, Error> {
    let reader = Reader::open(store, Arc::new(System::of_this_user()))?;
    let mut report = Report::default();
    let mut state = State::new();
    let mut notes: HashMap<u64, u64> = HashMap::new();
    reader.frames(Position(1), Position(u64::MAX), Depth::Whole, |frame| {
        let entry = entry::decode(frame)?;
        report.frames += 1;
        let at = entry.at.position;
        if at.0 != report.frames {
            report.violations.push(format!(
                "position {at} stands where {} should",
                report.frames
            ));
        }
        if entry.fence.kind == FenceKind::Write {
            let (session, named) = (entry.fence.session, entry.fence.named);
            let current = session
                .zip(named)
                .is_some_and(|(s, g)| state.check(s, g).is_ok());
            if !current {
                report
                    .violations
                    .push(format!("position {at} names a generation that was stale"));
            }
        }
        report.grants += u64::from(entry.fence.kind == FenceKind::Grant);
        if entry.events.iter().any(|e| matches!(e, Event::Noted(_))) {
            let request = entry::decode_request(frame)?;
            let body = request.bodies.iter().next().unwrap_or_default();
            let note = std::str::from_utf8(body)
                .ok()
                .and_then(|t| t.parse::<u64>().ok());
            if let Some(earlier) = note.and_then(|n| notes.insert(n, at.0)) {
                report
                    .violations
                    .push(format!("the note at {earlier} stands again at {at}"));
            }
        }
        if apply(&mut state, &entry) != Applied::Honoured {
            report
                .violations
                .push(format!("position {at} does not stand"));
        }
        Ok(true)
    })?;
    report.notes = notes.len() as u64;
    for (note, position) in &tally.acknowledged {
        match notes.get(note) {
            Some(found) if found == position => {}
            Some(found) => report.violations.push(format!(
                "note {note} was acknowledged at {position} and stands at {found}"
            )),
            None => report.violations.push(format!(
                "note {note}, acknowledged at {position}, is missing"
            )),
        }
    }
    Ok(report)
}
