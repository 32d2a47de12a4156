//! Random interleavings of several writers of one file: what each of them wrote comes apart again.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tenure_projection::transcript::{Branches, Kind, Origin, Reading};

use super::{claude, codex, taken};

/// What a writer does next.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A prompt and what follows.
    Record,
    /// A note that names nothing.
    Note,
    /// It forgets what it knows and resumes the file as it is.
    Resume,
}

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let act = prop_oneof![8 => Just(Act::Record), 2 => Just(Act::Note), 1 => Just(Act::Resume)];
    proptest::collection::vec((0..3_usize, act), 1..60)
}

/// The records of a branch, with those that it shares.
fn whole(branches: &Branches, number: usize) -> Vec<usize> {
    let branch = &branches.branches[number];
    let mut all = match branch.origin {
        Origin::Fork { of, at } => {
            let mut shared = whole(branches, of);
            let end = shared.iter().position(|n| *n == at).expect("it is there");
            shared.truncate(end + 1);
            shared
        }
        _ => Vec::new(),
    };
    all.extend_from_slice(&branch.records);
    all
}

/// The branch that a record is in.
fn home(branches: &Branches, record: usize) -> usize {
    let mut numbers = 0..branches.branches.len();
    numbers
        .find(|n| branches.branches[*n].records.contains(&record))
        .expect("it is in one")
}

fn ids(reading: &Reading, records: &[usize]) -> Vec<String> {
    let named = records.iter().filter_map(|n| reading.records[*n].id);
    named.map(|id| id.to_string()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A01, A02, B24: up to three writers of a transcript of Claude's: every record is kept once, each branch is a chain,
    /// and what each writer had before it is exactly one branch. No note is put to a writer who did not write it.
    #[test]
    fn what_several_wrote_to_one_file_comes_apart(acts in acts(), writers in 2..4_usize) {
        let (mut file, mut tip) = (String::new(), "-".to_owned());
        let mut views: Vec<Vec<String>> = vec![Vec::new(); writers];
        let mut wrote: Vec<(usize, Option<String>)> = Vec::new();
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (number, (writer, act)) in acts.into_iter().enumerate() {
            let writer = writer % writers;
            let id = format!("w{writer}-{number}");
            match act {
                Act::Record => {
                    let view = &mut views[writer];
                    let parent = view.last().cloned().unwrap_or_else(|| tip.clone());
                    if view.is_empty() {
                        view.clone_from(all.get(&parent).unwrap_or(&Vec::new()));
                    }
                    let what = if number % 2 == 0 { "u" } else { "a" };
                    file.push_str(&(claude(&id, &parent, what) + "\n"));
                    view.push(id.clone());
                    all.insert(id.clone(), view.clone());
                    tip.clone_from(&id);
                    wrote.push((writer, Some(id)));
                }
                Act::Note => {
                    file.push_str("{\"type\":\"mode\",\"sessionId\":\"s\"}\n");
                    wrote.push((writer, None));
                }
                Act::Resume => views[writer].clear(),
            }
        }
        let (reading, branches) = taken(file.as_bytes());
        prop_assert_eq!(reading.records.len(), wrote.len());
        prop_assert!(branches.repeated.is_empty());
        // Every view that any writer ever had of the file is the way to its last record.
        let numbers: BTreeMap<String, usize> = (0..reading.records.len())
            .filter_map(|n| Some((reading.records[n].id?.to_string(), n)))
            .collect();
        for (id, view) in &all {
            let record = numbers[id];
            let mut way = whole(&branches, home(&branches, record));
            way.truncate(way.iter().position(|n| *n == record).expect("it is there") + 1);
            prop_assert_eq!(&ids(&reading, &way), view);
        }
        let two = branches.findings.count(Kind::TwoWriters) > 0;
        for (number, (writer, _)) in wrote.iter().enumerate().filter(|(_, (_, id))| id.is_none()) {
            let own = |n: &usize| wrote[*n].1.is_some() && wrote[*n].0 == *writer;
            let before = (0..number).rev().find(own);
            let after = (number..wrote.len()).find(own);
            let at = branches.branches.iter().find(|b| b.records.contains(&number)).expect("it is kept");
            // Continuations that do not overlap are read as one process: that may be another's.
            if let (true, Some(before), Some(_)) = (two, before, after)
                && at.origin != Origin::Unplaced
                && number > first_contended(&reading, &branches, &wrote)
            {
                prop_assert!(at.records.contains(&before), "a note of {writer} at {number}");
            }
        }
    }

    /// The same for numbered rollouts of Codex: what is placed stands where one writer put it, the numbers of a branch
    /// follow each other, and everything is kept once.
    #[test]
    fn what_two_numbered_comes_apart_or_is_kept_apart(
        acts in proptest::collection::vec((0..2_usize, any::<bool>()), 1..40),
        shared in 1..5_u64,
    ) {
        let mut file = String::new();
        let mut wrote: Vec<usize> = Vec::new();
        for ordinal in 0..shared {
            file.push_str(&(codex(Some(ordinal), "response_item", None, "shared") + "\n"));
            wrote.push(2);
        }
        let mut next = [None, None];
        let mut newest = shared;
        for (number, (writer, tied)) in acts.into_iter().enumerate() {
            let ordinal = next[writer].unwrap_or(newest);
            let turn = format!("turn-{writer}");
            let line = codex(Some(ordinal), "response_item", tied.then_some(&turn), &number.to_string());
            file.push_str(&(line + "\n"));
            wrote.push(writer);
            next[writer] = Some(ordinal + 1);
            newest = ordinal + 1;
        }
        let (_, branches) = taken(file.as_bytes());
        for (number, branch) in branches.branches.iter().enumerate() {
            if branch.origin == Origin::Unplaced {
                continue;
            }
            let forks = branches.branches.iter().filter_map(|b| match b.origin {
                Origin::Fork { of, at } if of == number => Some(at),
                _ => None,
            });
            let shared = forks.max();
            let own = branch.records.iter().filter(|n| shared.is_none_or(|at| **n > at));
            let by: BTreeSet<usize> = own.map(|n| wrote[*n]).filter(|w| *w < 2).collect();
            let forked = shared.is_some() || matches!(branch.origin, Origin::Fork { .. });
            prop_assert!(!forked || by.len() <= 1, "branch {}: {:?} {}", number + 1, by, file);
        }
    }
}

/// The first record that two continued at the same time.
fn first_contended(
    reading: &Reading,
    branches: &Branches,
    wrote: &[(usize, Option<String>)],
) -> usize {
    let two = branches
        .findings
        .listed()
        .into_iter()
        .filter(|f| f.kind == Kind::TwoWriters);
    let ids: BTreeSet<String> = two.map(|f| f.about.to_string()).collect();
    let is_one = |n: &usize| wrote[*n].1.as_ref().is_some_and(|id| ids.contains(id));
    (0..reading.records.len())
        .find(is_one)
        .expect("it is in the file")
}
