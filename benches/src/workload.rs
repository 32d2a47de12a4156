//! The canonical workload: a seeded stream of steps that is the same for every store.
//!
//! Sessions are registered, given work, accept it, note things down, report, and record the turns of their
//! transcript; one step in a hundred is a write under a generation that an adoption has made stale, and has to
//! be refused; one in fifty is an adoption. Texts are as long as people and programs make them: most notes fit
//! on a line or two, a report is now and then a page, and a turn is now and then several. A store never chooses
//! what comes next: what it answers changes no step.

use tenure_core::id::{DispatchNo, Name};

/// Steps in a thousand that are adoptions.
const ADOPTIONS_PER_THOUSAND: u64 = 20;
/// Steps in a thousand that are writes under an older generation.
const LATE_PER_THOUSAND: u64 = 10;
/// Steps in a thousand that record a turn.
const RECORDS_PER_THOUSAND: u64 = 100;

/// The seed of every published figure.
pub const SEED: u64 = 0x7E_0001;

/// How long texts are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Bodies {
    /// As people and programs write them: see [`Bodies::bytes`].
    #[default]
    Mixed,
    /// All of so many bytes, to set beside figures of other stores that were measured so.
    Of(usize),
}

impl Bodies {
    /// The length of a text in bytes, from a draw.
    ///
    /// A note has 40 to 160 bytes; a report 60 to 240, and one in ten up to 1,200; a turn 100 to 600, and one in
    /// five up to 4,000.
    #[must_use]
    pub fn bytes(self, act: Act, draw: u64) -> usize {
        if let Self::Of(bytes) = self {
            return bytes;
        }
        let rare = draw >> 40;
        let (least, most): (u64, u64) = match act {
            Act::Report if rare.is_multiple_of(10) => (240, 1_200),
            Act::Report => (60, 240),
            Act::Record if rare.is_multiple_of(5) => (600, 4_000),
            Act::Record => (100, 600),
            _ => (40, 160),
        };
        (least + draw % (most - least + 1)) as usize
    }
}

/// SplitMix64: small, seeded, and good enough to spread steps.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A text of letters and spaces, as people and programs write them.
    pub fn text(&mut self, bytes: usize) -> Vec<u8> {
        const LETTERS: &[u8; 32] = b"etaoin shrdlu cmfwyp vbgkq jxz.,";
        let mut text = vec![0; bytes];
        for piece in text.chunks_mut(12) {
            let mut bits = self.draw();
            for byte in piece {
                *byte = LETTERS[(bits % 32) as usize];
                bits >>= 5;
            }
        }
        text
    }
}

/// What a session is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Its holder changes: the generation grows by one.
    Adopt,
    /// An item is given to it by itself.
    Dispatch {
        /// The item, used once.
        item: u64,
    },
    /// It takes on what it was given.
    Accept,
    /// It ends what it took on.
    Report,
    /// It writes something down.
    Note,
    /// It keeps a turn of its transcript.
    Record,
    /// It writes under the generation before the current one. Has to be refused.
    Late,
}

/// One step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Which seat of the crew.
    pub seat: usize,
    /// What it does.
    pub act: Act,
    /// The text of a note, a report, a record or a late write.
    pub body: Option<Vec<u8>>,
}

/// How far the work of a seat has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Work {
    Idle,
    Queued,
    Accepted,
}

/// A session as its crew knows it.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Its name.
    pub name: Name,
    /// Its number among all sessions of all crews, from 0.
    pub number: u64,
    /// Its current generation.
    pub generation: u64,
    /// The dispatch it works on, where the store gives numbers.
    pub dispatch: Option<DispatchNo>,
    work: Work,
}

/// The sessions that one thread acts for, and what they do next.
#[derive(Clone, Debug)]
pub struct Crew {
    /// The sessions.
    pub seats: Vec<Seat>,
    random: Random,
    bodies: Bodies,
    turn: usize,
    first_item: u64,
    items: u64,
}

/// Items of different crews never meet: each crew counts from its own number.
const ITEMS_PER_CREW: u64 = 1 << 32;

impl Crew {
    /// Crew number `number` of those that draw from `seed`, with `seats` sessions that are registered.
    ///
    /// # Panics
    /// When it has no seat.
    #[must_use]
    pub fn new(seed: u64, number: u64, seats: usize) -> Self {
        assert!(seats > 0, "a crew needs a seat");
        let seat = |n: usize| Seat {
            name: Name::parse(&format!("crew{number}/agent{n}")).expect("made of name characters"),
            number: number * seats as u64 + n as u64,
            generation: 1,
            dispatch: None,
            work: Work::Idle,
        };
        Self {
            seats: (0..seats).map(seat).collect(),
            random: Random::new(seed ^ (number + 1).wrapping_mul(0xD134_2543_DE82_EF95)),
            bodies: Bodies::Mixed,
            turn: 0,
            first_item: number * ITEMS_PER_CREW,
            items: 0,
        }
    }

    /// The same crew with texts of such lengths.
    #[must_use]
    pub fn with(mut self, bodies: Bodies) -> Self {
        self.bodies = bodies;
        self
    }

    /// The next step. Seats take turns, so that as many steps as there are seats can be on their way at once.
    pub fn next_step(&mut self) -> Step {
        let seat = self.turn % self.seats.len();
        self.turn += 1;
        let dice = self.random.draw();
        let luck = dice % 1000;
        let coin = dice >> 32 & 1 == 0;
        let who = &self.seats[seat];
        let late = ADOPTIONS_PER_THOUSAND + LATE_PER_THOUSAND;
        let act = if luck < ADOPTIONS_PER_THOUSAND {
            Act::Adopt
        } else if luck < late && who.generation > 1 {
            Act::Late
        } else if (late..late + RECORDS_PER_THOUSAND).contains(&luck) {
            Act::Record
        } else {
            match who.work {
                Work::Idle if coin => {
                    self.items += 1;
                    Act::Dispatch {
                        item: self.first_item + self.items,
                    }
                }
                Work::Queued => Act::Accept,
                Work::Accepted if coin => Act::Report,
                Work::Idle | Work::Accepted => Act::Note,
            }
        };
        let has_text = matches!(act, Act::Report | Act::Note | Act::Record | Act::Late);
        let body = has_text.then(|| {
            let bytes = self.bodies.bytes(act, self.random.draw());
            self.random.text(bytes)
        });
        Step { seat, act, body }
    }

    /// Takes in that a step was carried out, with the dispatch that came of it.
    pub fn done(&mut self, step: &Step, dispatch: Option<DispatchNo>) {
        let seat = &mut self.seats[step.seat];
        match step.act {
            Act::Adopt => seat.generation += 1,
            Act::Dispatch { .. } => {
                seat.work = Work::Queued;
                seat.dispatch = dispatch;
            }
            Act::Accept => seat.work = Work::Accepted,
            Act::Report => {
                seat.work = Work::Idle;
                seat.dispatch = None;
            }
            Act::Note | Act::Record | Act::Late => {}
        }
    }
}
