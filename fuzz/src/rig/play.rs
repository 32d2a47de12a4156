//! Random commands over a few sessions, items and processes, and what a store answers them.

use tenure_projection::call::{Bearer, Call, ProcessChoice, Verb};
use tenure_projection::core::command::{Outcome, Ref};
use tenure_projection::core::id::{DispatchNo, EnvelopeNo, Name, Token};
use tenure_projection::error::Failure;
use tenure_projection::store::{Answer, Store};

use crate::hammer::Dice;

/// Sessions that commands name.
pub const NAMES: [&str; 5] = ["api", "web", "ops", "lab", "doc"];
/// Items that are given.
const ITEMS: [&str; 4] = ["one", "two", "three", "four"];

/// A name and a generation, as a token has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tok {
    /// The session.
    pub name: &'static str,
    /// The generation.
    pub generation: u64,
}

/// A command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Makes a name active, for a process.
    Register(&'static str, u32),
    /// Takes a session over for a process: by force, or under a token, or with neither.
    Adopt(&'static str, u32, bool, Option<Tok>),
    /// Gives a session back; only if idle.
    Retire(Tok, bool),
    /// Gives an item to a session, under a token or as operator.
    Dispatch(&'static str, &'static str, Option<Tok>),
    /// Takes a dispatch on.
    Accept(Tok, u64),
    /// Turns it down.
    Decline(Tok, u64),
    /// Says that it is done.
    Report(Tok, u64),
    /// Withdraws it, under a token or as operator; by force.
    Cancel(Option<Tok>, u64, bool),
    /// Sends a message, perhaps as the answer to an envelope.
    Send(Tok, &'static str, Option<u64>),
    /// Says that an envelope arrived.
    Deliver(Tok, u64),
    /// Says that it was read.
    Acknowledge(Tok, u64),
    /// Writes something down.
    Note(Tok),
    /// Begins a session as another one was, for a process.
    Branch(&'static str, &'static str, u32),
}

/// What came of a command: the number that it was given, if any, or the code of its refusal.
pub type Came = Result<Option<u64>, &'static str>;

/// What a command is drawn from.
pub trait Known {
    /// The current generation of a session; zero when there is none.
    fn generation(&self, name: &str) -> u64;
    /// How many dispatches there are.
    fn dispatches(&self) -> u64;
    /// How many envelopes there are.
    fn envelopes(&self) -> u64;
}

fn one_of<T: Copy>(dice: &mut Dice, all: &[T]) -> T {
    all[dice.roll(all.len() as u64) as usize]
}

/// A number that is given, mostly a late one, and now and then the next.
fn number(dice: &mut Dice, given: u64) -> u64 {
    let back = dice.roll(5).min(dice.roll(given + 2));
    (given + 1).saturating_sub(back).max(1)
}

/// The next command; its process is one of `pids`.
pub fn draw(dice: &mut Dice, known: &impl Known, pids: &[u32]) -> Ask {
    let token = |dice: &mut Dice| {
        let name = one_of(dice, &NAMES);
        let current = known.generation(name);
        let generation = match dice.roll(8) {
            0 => current.saturating_sub(1 + dice.roll(2)),
            1 => current + 1,
            _ => current,
        };
        let generation = generation.max(1);
        Tok { name, generation }
    };
    let tok = token(dice);
    let (name, other) = (one_of(dice, &NAMES), one_of(dice, &NAMES));
    let pid = one_of(dice, pids);
    let (dispatch, envelope) = (
        number(dice, known.dispatches()),
        number(dice, known.envelopes()),
    );
    let coin = dice.roll(2) == 0;
    match dice.roll(32) {
        0..3 => Ask::Register(name, pid),
        3 => Ask::Adopt(name, pid, true, None),
        4..6 => Ask::Adopt(name, pid, false, None),
        6 => Ask::Adopt(tok.name, pid, false, Some(tok)),
        7 => Ask::Retire(tok, coin),
        8..12 => Ask::Dispatch(one_of(dice, &ITEMS), name, coin.then_some(tok)),
        12..15 => Ask::Accept(tok, dispatch),
        15 => Ask::Decline(tok, dispatch),
        16..19 => Ask::Report(tok, dispatch),
        19 => Ask::Cancel(coin.then_some(tok), dispatch, dice.roll(3) == 0),
        20..23 => Ask::Send(tok, name, coin.then_some(envelope)),
        23..26 => Ask::Deliver(tok, envelope),
        26..29 => Ask::Acknowledge(tok, envelope),
        29..31 => Ask::Note(tok),
        _ => Ask::Branch(name, other, pid),
    }
}

fn parsed(name: &str) -> Name {
    Name::parse(name).expect("names here are short and plain")
}

fn held_by(pid: u32) -> Bearer {
    Bearer {
        process: ProcessChoice::Pid(pid),
        engine: None,
    }
}

impl Ask {
    fn token(self) -> Option<Tok> {
        match self {
            Self::Adopt(_, _, _, tok) | Self::Dispatch(_, _, tok) | Self::Cancel(tok, ..) => tok,
            Self::Retire(tok, _)
            | Self::Accept(tok, _)
            | Self::Decline(tok, _)
            | Self::Report(tok, _)
            | Self::Send(tok, ..)
            | Self::Deliver(tok, _)
            | Self::Acknowledge(tok, _)
            | Self::Note(tok) => Some(tok),
            Self::Register(..) | Self::Branch(..) => None,
        }
    }

    fn verb(self) -> Verb {
        let envelope = EnvelopeNo;
        match self {
            Self::Register(name, pid) => Verb::Register {
                name: parsed(name),
                bearer: held_by(pid),
                labels: Vec::new(),
                checkout: None,
            },
            Self::Adopt(name, pid, ..) => Verb::Adopt {
                name: parsed(name),
                bearer: held_by(pid),
                labels: Vec::new(),
            },
            Self::Retire(tok, if_idle) => Verb::Retire {
                name: parsed(tok.name),
                if_idle,
                reason: None,
            },
            Self::Dispatch(item, to, _) => Verb::Dispatch {
                item: parsed(item),
                to: parsed(to),
                to_generation: None,
                title: None,
                writes: Vec::new(),
                body: None,
            },
            Self::Accept(_, dispatch) => Verb::Accept {
                dispatch: DispatchNo(dispatch),
            },
            Self::Decline(_, dispatch) => Verb::Decline {
                dispatch: DispatchNo(dispatch),
                reason: "no".into(),
            },
            Self::Report(_, dispatch) => Verb::Report {
                dispatch: DispatchNo(dispatch),
                outcome: Outcome::Done,
                body: None,
            },
            Self::Cancel(_, dispatch, _) => Verb::Cancel {
                dispatch: DispatchNo(dispatch),
                reason: "changed".into(),
            },
            Self::Send(_, to, re) => Verb::Send {
                to: parsed(to),
                body: b"text".to_vec(),
                re: re.map(|number| Ref::Envelope(envelope(number))),
            },
            Self::Deliver(_, number) => Verb::Deliver {
                envelope: envelope(number),
            },
            Self::Acknowledge(_, number) => Verb::Acknowledge {
                envelope: envelope(number),
            },
            Self::Note(_) => Verb::Note {
                body: b"text".to_vec(),
                on: None,
            },
            Self::Branch(source, name, pid) => Verb::Branch {
                source: parsed(source),
                name: parsed(name),
                at: None,
                bearer: held_by(pid),
                labels: Vec::new(),
                checkout: None,
                in_tree: false,
            },
        }
    }

    /// The command as a call.
    #[must_use]
    pub fn call(self) -> Call {
        let mut call = Call::new(self.verb()).by("player");
        if let Some(tok) = self.token() {
            let token: Result<Token, _> = format!("{}@{}", tok.name, tok.generation).parse();
            call = call.under(&token.expect("a name and a number are a token"));
        }
        match self {
            Self::Adopt(_, _, true, _) | Self::Cancel(_, _, true) => call.by_force("it must be"),
            _ => call,
        }
    }

    /// Asks a store.
    ///
    /// # Errors
    /// What the store says that is neither an answer nor a refusal.
    pub fn of(self, store: &Store) -> Result<Came, Failure> {
        match store.execute(self.call()) {
            Ok(done) => Ok(Ok(match done.answer {
                Answer::Granted(grant) | Answer::Branched { grant, .. } => {
                    Some(grant.token.generation.number)
                }
                Answer::Dispatched { dispatch, .. } => Some(dispatch.0),
                Answer::Sent { envelope } => Some(envelope.0),
                _ => None,
            })),
            Err(Failure::Refused(refusal)) => Ok(Err(refusal.code.as_str())),
            Err(other) => Err(other),
        }
    }
}
