//! Looking ahead: many frames held against everything before the first of them is taken, so that their chains can be
//! made side by side. What does not hold is left to be looked at by itself, which alone says what is wrong with it.

use super::lanes::{LANES, Lanes};
use super::{Checks, Cursor};
use crate::frame::{FrameRef, parts_of_good, stated_bytes};

/// How far the frames behind a cursor are known to be good.
#[derive(Debug)]
pub(crate) struct Ahead {
    until: u64,
    /// How many frames are looked at: fewer where the last ones did not all hold, so that damage everywhere costs no
    /// more than it did.
    reach: usize,
    lanes: Lanes,
}

/// Frames looked at first, and twice as many each time: who looks for one does not pay for more.
const REACH: usize = 1;

impl Ahead {
    pub(crate) fn new() -> Ahead {
        Ahead {
            until: 0,
            reach: REACH,
            lanes: Lanes::new(),
        }
    }

    /// Looks at the frames in `held`, the bytes from where the cursor stands, unless that was done. Says how many bytes
    /// the next frame has if it is known to be good: no fault says anything of one that is not.
    ///
    /// The bytes have to stay as they are until the cursor has passed what was looked at.
    #[inline]
    pub(crate) fn next_bytes(&mut self, cursor: &Cursor, held: &[u8]) -> Option<usize> {
        if cursor.offset >= self.until {
            self.look(cursor, held);
        }
        (cursor.offset < self.until).then(|| stated_bytes(held))
    }

    fn look(&mut self, cursor: &Cursor, held: &[u8]) {
        let checks = Checks {
            chain: false,
            ..cursor.checks
        };
        let mut ahead = Cursor { checks, ..*cursor };
        let mut ends = [0; LANES];
        let mut count = 0;
        self.lanes.clear();
        while count < self.reach {
            let before = ahead.head.chain;
            let rest = usize::try_from(ahead.offset - cursor.offset).ok();
            let Some(Ok(frame)) = rest.and_then(|at| held.get(at..)).map(|b| ahead.step(b)) else {
                break;
            };
            self.lanes.add(before, &frame);
            ends[count] = ahead.offset;
            count += 1;
        }
        let good = match cursor.checks.chain {
            true => self.lanes.good(),
            false => count,
        };
        self.reach = match good == count {
            true => LANES.min(2 * self.reach),
            false => 1,
        };
        self.until = good.checked_sub(1).map_or(cursor.offset, |last| ends[last]);
    }
}

impl Cursor {
    /// Moves behind the frame that fills `bytes`, which is known to be good.
    #[inline]
    pub(crate) fn step_over<'a>(&mut self, bytes: &'a [u8]) -> FrameRef<'a> {
        let frame = parts_of_good(bytes);
        self.pass(&frame, bytes.len());
        frame
    }
}
