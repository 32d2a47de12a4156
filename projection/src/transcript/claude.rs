//! Claude's transcripts: each record names the one that it continues, so what two writers wrote to one file comes
//! apart again. The table of `docs/transcripts.md` says which continuations make a branch.

use std::collections::{HashMap, HashSet};

use super::branches::{Branch, Branches, Draft, Origin, finding, ordered, whole};
use super::finding::{About, Findings, Kind};
use super::id::Id;
use super::json::Link;
use super::shape::{Host, Part};
use super::{Reading, Record};

mod loose;

pub(super) fn separate(reading: &Reading) -> Branches {
    let mut graph = Graph::new(reading);
    if graph.chained().next().is_none() {
        return whole(reading, graph.findings);
    }
    graph.link();
    graph.circles();
    if graph.roots.is_empty() {
        return graph.rootless();
    }
    graph.weigh();
    let first = graph.divide();
    let loose = loose::place(&graph, first);
    graph.lines(first, &loose)
}

/// No record.
const NONE: usize = usize::MAX;

/// What of a subtree decides about branches.
#[derive(Clone, Copy)]
struct Weight {
    /// The newest record.
    newest: usize,
    /// The first and the last one in which somebody says something; `NONE` when nobody does.
    said: (usize, usize),
}

struct Graph<'r> {
    reading: &'r Reading,
    by_id: HashMap<Id, usize>,
    /// Of each record: the one that it continues.
    parent: Vec<usize>,
    /// Of each record: whether it is part of the graph at all.
    chained: Vec<bool>,
    /// What continues each record, in the order of the file.
    children: HashMap<usize, Vec<usize>>,
    /// Records that continue nothing, or what is not there.
    roots: Vec<usize>,
    /// From the roots to the leaves.
    order: Vec<usize>,
    weight: Vec<Weight>,
    /// Of each record: its line and its piece. A piece is a part of a line in which nothing branches.
    line: Vec<usize>,
    piece: Vec<usize>,
    drafts: Vec<Draft>,
    /// Of each piece: the one that it continues.
    before: Vec<usize>,
    /// The first record that two continued at the same time: behind it, who wrote a note is anybody's guess.
    contended: usize,
    repeated: Vec<usize>,
    unplaced: Vec<usize>,
    findings: Findings,
}

impl<'r> Graph<'r> {
    fn new(reading: &'r Reading) -> Self {
        let count = reading.records.len();
        let mut graph = Self {
            reading,
            by_id: HashMap::new(),
            parent: vec![NONE; count],
            chained: vec![false; count],
            children: HashMap::new(),
            roots: Vec::new(),
            order: Vec::new(),
            weight: Vec::new(),
            line: vec![NONE; count],
            piece: vec![NONE; count],
            drafts: Vec::new(),
            before: Vec::new(),
            contended: NONE,
            repeated: Vec::new(),
            unplaced: Vec::new(),
            findings: Findings::default(),
        };
        for (number, record) in reading.records.iter().enumerate() {
            graph.name(number, record);
        }
        graph
    }

    /// One id is one record. The same bytes again are the same record; other bytes are another one, and nobody can
    /// say which of the two is continued.
    fn name(&mut self, number: usize, record: &Record) {
        if record.shape == Some(Host::Claude)
            && let Some(session) = record.session
            && self.reading.session.is_some_and(|s| s != session)
        {
            self.find(Kind::SecondSession, number, About::Id(session));
        }
        let Some(id) = record.id.filter(|_| record.shape == Some(Host::Claude)) else {
            return;
        };
        let Some(first) = self.by_id.get(&id).copied() else {
            self.by_id.insert(id, number);
            self.chained[number] = true;
            return;
        };
        if self.record(first).digest == record.digest {
            self.find(Kind::Repeated, number, About::Id(id));
            self.repeated.push(number);
        } else {
            self.find(Kind::DuplicateId, number, About::Id(id));
            self.find(Kind::Unplaced, number, About::Place);
            self.unplaced.push(number);
        }
    }

    fn record(&self, number: usize) -> &'r Record {
        &self.reading.records[number]
    }

    fn find(&mut self, kind: Kind, number: usize, about: About) {
        self.findings.add(finding(kind, self.record(number), about));
    }

    /// The records of the graph, in the order of the file.
    fn chained(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.chained.len()).filter(|n| self.chained[*n])
    }

    /// Finds what each record continues.
    fn link(&mut self) {
        for number in self.chained().collect::<Vec<_>>() {
            let Link::To(id) = self.record(number).parent else {
                continue;
            };
            let Some(parent) = self.by_id.get(&id).copied() else {
                self.find(Kind::Dangling, number, About::Id(id));
                continue;
            };
            self.parent[number] = parent;
        }
    }

    /// Records that continue themselves have no beginning, and neither has what continues them: they leave the graph.
    fn circles(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            No,
            Now,
            Sound,
            Endless,
        }
        let mut seen = vec![Seen::No; self.parent.len()];
        for number in self.chained().collect::<Vec<_>>() {
            let (mut path, mut at) = (Vec::new(), number);
            while at != NONE && seen[at] == Seen::No {
                seen[at] = Seen::Now;
                path.push(at);
                at = self.parent[at];
            }
            let end = match at {
                NONE => Seen::Sound,
                at if seen[at] == Seen::Now => {
                    let circle = path.iter().position(|n| *n == at).unwrap_or_default();
                    let about = self.record(at).id.map_or(About::Place, About::Id);
                    let first = path[circle..].iter().copied().min().unwrap_or(at);
                    self.find(Kind::Cycle, first, about);
                    Seen::Endless
                }
                at => seen[at],
            };
            for at in path {
                seen[at] = end;
                if end == Seen::Endless {
                    self.chained[at] = false;
                    self.unplaced.push(at);
                    self.find(Kind::Unplaced, at, About::Place);
                }
            }
        }
        for number in self.chained().collect::<Vec<_>>() {
            match self.parent[number] {
                NONE => self.roots.push(number),
                parent => {
                    self.children.entry(parent).or_default().push(number);
                    if parent > number {
                        self.find(Kind::OutOfOrder, number, About::Place);
                    }
                }
            }
        }
        self.order.clone_from(&self.roots);
        let mut next = 0;
        while let Some(number) = self.order.get(next) {
            if let Some(children) = self.children.get(number) {
                self.order.extend_from_slice(children);
            }
            next += 1;
        }
    }

    /// Whether a record belongs to another thread than the one that it continues: a subagent's.
    fn detached(&self, number: usize) -> bool {
        let parent = self.parent[number];
        parent != NONE && self.record(parent).sidechain != self.record(number).sidechain
    }

    /// Whether somebody says something new in it: no result of a call, and not the next part of one answer.
    fn says(&self, number: usize) -> bool {
        let record = self.record(number);
        match record.part {
            Part::Prompt => true,
            Part::Answer => {
                let parent = self.parent[number];
                let same = |p: &Record| p.part == Part::Answer && p.message == record.message;
                record.message.is_none() || parent == NONE || !same(self.record(parent))
            }
            _ => false,
        }
    }

    /// Adds up every subtree, from the leaves to the roots.
    fn weigh(&mut self) {
        self.weight = (0..self.parent.len())
            .map(|number| Weight {
                newest: number,
                said: match self.chained[number] && self.says(number) {
                    true => (number, number),
                    false => (NONE, NONE),
                },
            })
            .collect();
        for number in self.order.iter().rev().copied() {
            let parent = self.parent[number];
            if parent == NONE || self.detached(number) {
                continue;
            }
            let own = self.weight[number];
            let all = &mut self.weight[parent];
            all.newest = all.newest.max(own.newest);
            all.said = match (all.said, own.said) {
                ((NONE, _), said) | (said, (NONE, _)) => said,
                (a, b) => (a.0.min(b.0), a.1.max(b.1)),
            };
        }
    }

    /// Gives every record its line and piece; tells the line that a resume goes on with.
    fn divide(&mut self) -> usize {
        for root in self.roots.clone() {
            let (origin, sidechain) = match self.record(root).parent {
                Link::To(_) => (Origin::Lost, self.record(root).sidechain),
                _ => (Origin::Start, self.record(root).sidechain),
            };
            self.begins(root, origin, sidechain, NONE);
        }
        for number in self.order.clone() {
            let children = self.children.get(&number).cloned().unwrap_or_default();
            let (apart, joined): (Vec<usize>, Vec<usize>) =
                children.into_iter().partition(|c| self.detached(*c));
            for child in apart {
                let of = self.line[number];
                let sidechain = self.record(child).sidechain;
                self.begins(
                    child,
                    Origin::Fork { of, at: number },
                    sidechain,
                    self.piece[number],
                );
            }
            self.shared_out(number, &joined);
        }
        let main = |root: &usize| !self.record(*root).sidechain;
        let newest = |root: &usize| self.weight[*root].newest;
        let of_main = self.roots.iter().copied().filter(main).max_by_key(newest);
        let first = of_main.or_else(|| self.roots.iter().copied().max_by_key(newest));
        let first = first.expect("what has no root was told before");
        let mut begun = false;
        for root in self.roots.clone() {
            let lost = matches!(self.record(root).parent, Link::To(_));
            if self.record(root).sidechain {
                self.find(Kind::Sidechain, root, About::Place);
            } else if !lost && std::mem::replace(&mut begun, true) {
                self.find(Kind::SecondRoot, root, About::Place);
            }
        }
        self.line[first]
    }

    fn begins(&mut self, number: usize, origin: Origin, sidechain: bool, before: usize) {
        self.line[number] = self.drafts.len();
        self.drafts.push(Draft::new(origin, sidechain));
        self.piece[number] = self.before.len();
        self.before.push(before);
        if matches!(origin, Origin::Fork { .. }) && sidechain {
            self.find(Kind::Sidechain, number, About::Place);
        }
    }

    /// What continues a record goes on with its line, except where more than one continuation says something: then
    /// the one with the newest record goes on, and each other one is a branch.
    fn shared_out(&mut self, number: usize, children: &[usize]) {
        for child in children {
            (self.line[*child], self.piece[*child]) = (self.line[number], self.piece[number]);
        }
        let says = |child: &usize| self.weight[*child].said.0 != NONE;
        let mut saying: Vec<usize> = children.iter().copied().filter(says).collect();
        if saying.len() < 2 {
            if children.len() > 1 {
                self.find(Kind::ParallelCalls, number, About::Place);
            }
            return;
        }
        let goes_on = saying
            .iter()
            .copied()
            .max_by_key(|c| self.weight[*c].newest);
        saying.sort_by_key(|c| self.weight[*c].said.0);
        let mut ended = NONE;
        for child in &saying {
            let (first, last) = self.weight[*child].said;
            if ended != NONE {
                let at_once = ended > first;
                if at_once {
                    self.contended = self.contended.min(number);
                }
                let kind = if at_once {
                    Kind::TwoWriters
                } else {
                    Kind::Fork
                };
                let about = self.record(number).id.map_or(About::Place, About::Id);
                self.find(kind, first, about);
            }
            ended = if ended == NONE { last } else { ended.max(last) };
        }
        for child in saying {
            let piece = self.before.len();
            if Some(child) == goes_on {
                self.piece[child] = piece;
                self.before.push(self.piece[number]);
            } else {
                let of = self.line[number];
                let sidechain = self.record(child).sidechain;
                let before = self.piece[number];
                self.begins(child, Origin::Fork { of, at: number }, sidechain, before);
            }
        }
    }

    /// Nothing has a beginning: what is left are notes.
    fn rootless(mut self) -> Branches {
        self.drafts.push(Draft::new(Origin::Start, false));
        let apart: HashSet<usize> = self
            .unplaced
            .iter()
            .chain(&self.repeated)
            .copied()
            .collect();
        let notes: Vec<(usize, usize)> = (0..self.line.len())
            .filter(|number| !apart.contains(number))
            .map(|number| (number, 0))
            .collect();
        self.lines(0, &notes)
    }

    /// Puts the lines together: every record behind the one that it continues, else in the order of the file.
    fn lines(mut self, first: usize, loose: &[(usize, usize)]) -> Branches {
        for (number, line) in loose {
            match *line {
                NONE => {
                    self.unplaced.push(*number);
                    self.find(Kind::Unplaced, *number, About::Place);
                }
                line => self.line[*number] = line,
            }
        }
        let mut written = vec![false; self.line.len()];
        let mut waiting: HashMap<usize, Vec<usize>> = HashMap::new();
        for number in 0..self.line.len() {
            let line = self.line[number];
            if line == NONE {
                continue;
            }
            let parent = self.parent[number];
            if parent != NONE && self.line[parent] == line && !written[parent] {
                waiting.entry(parent).or_default().push(number);
                continue;
            }
            let mut ready = vec![number];
            while let Some(number) = ready.pop() {
                written[number] = true;
                self.drafts[line].records.push(number);
                if let Some(mut freed) = waiting.remove(&number) {
                    freed.reverse();
                    ready.extend(freed);
                }
            }
        }
        self.unplaced.sort_unstable();
        let branches: Vec<Branch> = ordered(self.drafts, first, self.unplaced);
        Branches {
            branches,
            repeated: self.repeated,
            findings: self.findings,
        }
    }
}
