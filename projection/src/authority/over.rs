//! Who had declared work over a path: the bindings that lasted at a position, and their scopes.
//!
//! A binding with write scopes that has ended is written down once more for each *piece* of the log that it lasted
//! through. Pieces are runs of 1024 positions, of four such runs, and so on; the fewest that cover a stretch are taken. So the bindings
//! that lasted at a position are found in the few pieces that hold it, however many there ever were.

use tenure_core::disclosure::meets;
use tenure_core::event::Event;
use tenure_core::id::{DispatchNo, Position};
use tenure_core::path::{Level, Scope};
use tenure_core::text::Pool;

use crate::error::Error;
use crate::reader::Reader;

use super::Interval;
use super::kept::bindings_at;
use super::row::entry_at;

/// Bits of a position that do not count in the smallest piece.
const SMALLEST_BITS: u32 = 10;
/// Bits by which pieces grow from level to level.
const LEVEL_BITS: u32 = 2;
/// Levels: the greatest piece holds every position there can be.
const LEVELS: u32 = 20;

/// A piece of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// How great it is.
    pub level: u32,
    /// Its number among those.
    pub index: u64,
}

impl Piece {
    /// Every piece that holds a position.
    pub fn with(at: Position) -> Vec<Self> {
        let piece = |level| Self {
            level,
            index: at.0 >> (SMALLEST_BITS + LEVEL_BITS * level),
        };
        (0..LEVELS).map(piece).collect()
    }
}

/// The fewest pieces that cover a stretch that has ended.
pub(super) fn pieces(stretch: &Interval) -> Vec<Piece> {
    let Some(until) = stretch.until else {
        return Vec::new();
    };
    let first = stretch.since.at.position.0 >> SMALLEST_BITS;
    // It no longer holds at the position where it ended.
    let last = until.at.position.0.saturating_sub(1) >> SMALLEST_BITS;
    cover(first, last)
}

/// The fewest pieces from one smallest piece to another, both included.
fn cover(mut first: u64, last: u64) -> Vec<Piece> {
    let (mut pieces, mut end) = (Vec::new(), last + 1);
    for level in 0..LEVELS {
        let whole = (1 << LEVEL_BITS) - 1;
        let take = |index| Piece { level, index };
        let coarsest = level + 1 == LEVELS;
        while first < end && (coarsest || first & whole != 0) {
            pieces.push(take(first));
            first += 1;
        }
        while first < end && end & whole != 0 {
            end -= 1;
            pieces.push(take(end));
        }
        if first >= end {
            break;
        }
        (first, end) = (first >> LEVEL_BITS, end >> LEVEL_BITS);
    }
    pieces
}

/// Who had declared work over a path.
#[derive(Clone, Debug)]
pub struct Over {
    /// The bindings, by session and then the oldest first.
    pub stretches: Vec<Interval>,
    /// The texts of their holders.
    pub pool: Pool,
}

impl Over {
    pub(crate) fn read(
        reader: &Reader,
        path: &Scope<Vec<u8>>,
        at: Position,
    ) -> Result<Self, Error> {
        let source = &reader.source;
        let (bindings, mut pool) = bindings_at(reader, at)?;
        let mut stretches = Vec::new();
        for bound in bindings {
            let dispatch = bound.interval().dispatch;
            if let Some(dispatch) = dispatch
                && declared_over(reader, dispatch, path)?
            {
                stretches.push(bound.whole(&**source, &mut pool)?);
            }
        }
        stretches.sort_by_key(|i| (i.session, i.since.at.position, i.dispatch));
        Ok(Self { stretches, pool })
    }
}

/// Whether a dispatch was given with a write scope that meets the path.
fn declared_over(
    reader: &Reader,
    dispatch: DispatchNo,
    path: &Scope<Vec<u8>>,
) -> Result<bool, Error> {
    let given = reader.view(|state| state.dispatch(dispatch).map(|row| row.opened.position))?;
    let Some(given) = given else {
        return Ok(false);
    };
    let entry = entry_at(&*reader.source, given)?;
    let writes = entry.events.iter().find_map(|event| match event {
        Event::Dispatched(e) if e.dispatch == dispatch => Some(&e.writes),
        _ => None,
    });
    let path = path.map(|p| p.as_slice());
    reader.view(|state| {
        writes.into_iter().flatten().any(|scope| {
            let scope = scope.map(|text| entry.texts.get(*text));
            let meeting = meets(state, &path, &scope);
            meeting.is_some_and(|meeting| meeting.level == Level::Tree)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{LEVELS, Piece, SMALLEST_BITS, cover};
    use tenure_core::id::Position;

    /// Every position of a stretch is in exactly one of its pieces, every other in none, and they are few.
    #[test]
    fn pieces_cover_a_stretch_and_nothing_else() {
        let spans =
            (0..70_u64).flat_map(|first| (first..first + 70).map(move |last| (first, last)));
        let far = [(0, 1 << 20), (4095, 4096), (1 << 30, (1 << 30) + 77)];
        for (first, last) in spans.chain(far) {
            let pieces = cover(first, last);
            assert!(pieces.len() <= 6 * LEVELS as usize, "{first} to {last}");
            for run in (first.saturating_sub(3)..=first + 9).chain(last.saturating_sub(9)..last + 3)
            {
                let holding = Piece::with(Position(run << SMALLEST_BITS));
                let found = pieces
                    .iter()
                    .filter(|piece| holding.contains(piece))
                    .count();
                let wanted = usize::from((first..=last).contains(&run));
                assert_eq!(found, wanted, "{run} in {first} to {last}: {pieces:?}");
            }
        }
    }

    #[test]
    fn the_greatest_piece_holds_every_position() {
        let greatest = |at| Piece::with(Position(at)).pop().expect("there are levels");
        assert_eq!(greatest(1), greatest((1 << 48) - 1));
    }
}
