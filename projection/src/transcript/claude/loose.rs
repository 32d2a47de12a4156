//! Records that continue nothing and that nothing continues: the host's own notes, and objects of no known shape.
//! They stand in the line that they name, else in the one that was being written around them.

use std::collections::BTreeSet;

use super::super::shape::Host;
use super::{Graph, NONE};

/// Where a piece lies in the file.
#[derive(Clone, Copy)]
struct Extent {
    first: usize,
    last: usize,
}

/// The line of every record outside of the graph; `NONE` where it cannot be told. Notes are the session's, whose line
/// is `first`: what its subagents wrote around them says nothing.
pub(super) fn place(graph: &Graph<'_>, first: usize) -> Vec<(usize, usize)> {
    let own = graph.drafts[first].sidechain;
    let piece_of = |number: usize| match graph.line[number] {
        NONE => NONE,
        line if graph.drafts[line].sidechain != own => NONE,
        _ => graph.piece[number],
    };
    let extents = extents(graph, &piece_of);
    // The next record of the graph behind each place.
    let mut next = vec![NONE; graph.line.len() + 1];
    for number in (0..graph.line.len()).rev() {
        let piece = piece_of(number);
        next[number] = if piece == NONE {
            next[number + 1]
        } else {
            number
        };
    }
    let apart: BTreeSet<usize> = graph
        .unplaced
        .iter()
        .chain(&graph.repeated)
        .copied()
        .collect();
    let mut open: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut placed = Vec::new();
    let mut before = NONE;
    for (number, &in_line) in graph.line.iter().enumerate() {
        let piece = piece_of(number);
        if piece != NONE {
            before = number;
            let extent = extents[piece];
            if extent.first == number {
                open.insert((piece, in_line));
            }
            if extent.last == number {
                open.remove(&(piece, in_line));
            }
        } else if in_line == NONE && !apart.contains(&number) {
            let line = named(graph, number);
            let line = line.unwrap_or_else(|| match number < graph.contended {
                true => around(graph, &open, before, next[number]),
                false => NONE,
            });
            placed.push((number, line));
        }
    }
    placed
}

/// The line of the record that this one says it is about.
fn named(graph: &Graph<'_>, number: usize) -> Option<usize> {
    let record = graph.record(number);
    let about = record
        .about
        .filter(|_| record.shape == Some(Host::Claude))?;
    let line = graph.line[*graph.by_id.get(&about)?];
    (line != NONE).then_some(line)
}

/// The line that was being written between two records, when only one was. `open` are the pieces that have records on
/// both sides.
fn around(
    graph: &Graph<'_>,
    open: &BTreeSet<(usize, usize)>,
    before: usize,
    after: usize,
) -> usize {
    let mut open = open.iter();
    match (open.next(), open.next()) {
        (Some((_, line)), None) => return *line,
        (Some(_), Some(_)) => return NONE,
        (None, _) => {}
    }
    match (before, after) {
        (NONE, NONE) => NONE,
        (NONE, only) | (only, NONE) => graph.line[only],
        (before, after) => match graph.before[graph.piece[after]] == graph.piece[before] {
            true => graph.line[after],
            false => NONE,
        },
    }
}

fn extents(graph: &Graph<'_>, piece_of: &impl Fn(usize) -> usize) -> Vec<Extent> {
    let nowhere = Extent {
        first: NONE,
        last: NONE,
    };
    let mut extents = vec![nowhere; graph.before.len()];
    for number in 0..graph.line.len() {
        if let Some(extent) = extents.get_mut(piece_of(number)) {
            let first = if extent.first == NONE {
                number
            } else {
                extent.first
            };
            *extent = Extent {
                first,
                last: number,
            };
        }
    }
    extents
}
