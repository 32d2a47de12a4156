//! Codex's transcripts: records follow each other. Some files number them; a number that comes again shows a second
//! writer, and as far as numbers, turns and calls say whose a record is, the two come apart.

use std::collections::HashMap;

use super::branches::{Branches, Draft, Origin, finding, ordered, whole};
use super::finding::{About, Findings, Kind};
use super::id::Id;
use super::shape::{Host, Part};
use super::{Reading, Record};

pub(super) fn separate(reading: &Reading) -> Branches {
    let mut findings = Findings::default();
    let own = || {
        reading
            .records
            .iter()
            .filter(|r| r.shape == Some(Host::Codex))
    };
    for record in own().filter(|r| r.part == Part::Head).skip(1) {
        findings.add(finding(Kind::SecondHeader, record, About::Place));
    }
    if own().all(|r| r.ordinal.is_none()) {
        turns(reading, &mut findings);
        return whole(reading, findings);
    }
    let mut sorter = Sorter {
        reading,
        lines: Vec::new(),
        ties: HashMap::new(),
        given: HashMap::new(),
        last: None,
        unplaced: Vec::new(),
        findings,
    };
    for number in 0..reading.records.len() {
        sorter.take(number);
    }
    sorter.done()
}

/// Turns of one writer follow each other: one that goes on after another began is another writer's.
fn turns(reading: &Reading, findings: &mut Findings) {
    let mut seen: HashMap<Id, u64> = HashMap::new();
    let mut newest = 0;
    for record in reading.records.iter().filter(|r| r.part == Part::Turn) {
        let Some(turn) = record.turn else { continue };
        let began = *seen.entry(turn).or_insert_with(|| {
            newest += 1;
            newest
        });
        if began < newest {
            findings.add(finding(Kind::TwoWriters, record, About::Id(turn)));
        }
    }
}

struct Numbered {
    draft: Draft,
    /// The ordinal that comes next; none before the first.
    due: Option<u64>,
    /// Whether a record that could not be placed may have been its next one.
    unsure: bool,
    /// The newest record at which another line leaves it: what stands before it is no line's own.
    shared: Option<usize>,
}

impl Numbered {
    fn may_continue_with(&self, ordinal: u64) -> bool {
        match self.due {
            None => true,
            Some(due) if self.unsure => due <= ordinal,
            Some(due) => due == ordinal,
        }
    }
}

struct Sorter<'r> {
    reading: &'r Reading,
    lines: Vec<Numbered>,
    /// The line of each turn and call, and the record that says so.
    ties: HashMap<Id, (usize, usize)>,
    /// The records with each ordinal, and their lines.
    given: HashMap<u64, Vec<(usize, usize)>>,
    /// The line that was written last.
    last: Option<usize>,
    unplaced: Vec<usize>,
    findings: Findings,
}

impl Sorter<'_> {
    fn record(&self, number: usize) -> &Record {
        &self.reading.records[number]
    }

    fn find(&mut self, kind: Kind, number: usize, about: About) {
        self.findings.add(finding(kind, self.record(number), about));
    }

    fn take(&mut self, number: usize) {
        let record = self.record(number);
        let ids = [record.turn, record.call].into_iter().flatten();
        let own = |(line, by): (usize, usize)| {
            let shared = self.lines[line].shared;
            shared.is_none_or(|shared| by > shared).then_some(line)
        };
        let tied = ids
            .filter_map(|id| self.ties.get(&id).copied().and_then(own))
            .next();
        let ordinal = record.ordinal.filter(|_| record.shape == Some(Host::Codex));
        let line = match (ordinal, tied) {
            (_, None) if self.lines.is_empty() => Some(self.begin(Origin::Start)),
            (None, Some(line)) => Some(line),
            (None, None) => (self.lines.len() == 1).then_some(0),
            (Some(ordinal), tied) => self.line_of(number, ordinal, tied),
        };
        let Some(line) = line else {
            self.find(Kind::Unplaced, number, About::Place);
            self.unplaced.push(number);
            return;
        };
        if ordinal.is_none() && self.record(number).shape == Some(Host::Codex) {
            self.find(Kind::OrdinalMissing, number, About::Place);
        }
        self.put(number, line, ordinal);
    }

    fn begin(&mut self, origin: Origin) -> usize {
        self.lines.push(Numbered {
            draft: Draft::new(origin, false),
            due: None,
            unsure: false,
            shared: None,
        });
        self.lines.len() - 1
    }

    /// The line of a record with an ordinal: the only one that can have it next, or a new one where the number was
    /// given before. `None` where there is more than one answer.
    fn line_of(&mut self, number: usize, ordinal: u64, tied: Option<usize>) -> Option<usize> {
        let behind = |line: &Numbered| line.due.is_none_or(|due| due <= ordinal);
        if let Some(line) = tied.filter(|line| behind(&self.lines[*line])) {
            return Some(line);
        }
        let all = 0..self.lines.len();
        let may: Vec<usize> = all
            .clone()
            .filter(|n| self.lines[*n].may_continue_with(ordinal))
            .collect();
        if let [line] = may[..] {
            return Some(line);
        }
        if may.is_empty() && !self.lines.iter().any(behind) {
            return self.again(number, ordinal);
        }
        if may.is_empty() && self.lines.len() == 1 {
            return Some(0);
        }
        for line in all {
            self.lines[line].unsure |= behind(&self.lines[line]);
        }
        None
    }

    /// A number that every line has gone past: a new line continues the record with the number before, when there is
    /// one such record.
    fn again(&mut self, number: usize, there: u64) -> Option<usize> {
        let due = self.last.and_then(|l| self.lines[l].due).unwrap_or(0);
        self.find(
            Kind::OrdinalRepeated,
            number,
            About::Ordinals { due, there },
        );
        let Some(before) = there.checked_sub(1) else {
            return Some(self.begin(Origin::Start));
        };
        let given = self.given.get(&before).map_or(&[][..], |given| given);
        let [(at, of)] = *given else {
            return None;
        };
        let shared = &mut self.lines[of].shared;
        *shared = (*shared).max(Some(at));
        Some(self.begin(Origin::Fork { of, at }))
    }

    fn put(&mut self, number: usize, line: usize, ordinal: Option<u64>) {
        if let Some(there) = ordinal {
            if let Some(due) = self.lines[line].due.filter(|due| *due != there) {
                self.find(Kind::OrdinalGap, number, About::Ordinals { due, there });
            }
            self.lines[line].due = there.checked_add(1);
            self.lines[line].unsure = false;
            self.given.entry(there).or_default().push((number, line));
        }
        if self.last.is_some_and(|last| last != line) && !self.lines[line].draft.records.is_empty()
        {
            self.find(Kind::TwoWriters, number, About::Place);
        }
        self.last = Some(line);
        let record = &self.reading.records[number];
        for id in [record.turn, record.call].into_iter().flatten() {
            self.ties.entry(id).or_insert((line, number));
        }
        self.lines[line].draft.records.push(number);
    }

    fn done(self) -> Branches {
        let drafts: Vec<Draft> = self.lines.into_iter().map(|l| l.draft).collect();
        Branches {
            branches: ordered(drafts, 0, self.unplaced),
            repeated: Vec::new(),
            findings: self.findings,
        }
    }
}
