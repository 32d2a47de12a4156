//! What every other store is asked for: a check of the generation and an event, one by one or in batches.

use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use tenure_benches::workload::{Act, Crew, Step};

use super::{Ahead, Answers, Hand, Peer, Place, sessions};

/// What a step asks of a store that knows sessions, generations and events.
#[derive(Clone, Debug)]
pub struct Write {
    /// Whose.
    pub session: u64,
    /// The generation it is done under.
    pub presented: u64,
    /// The generation of the session behind it.
    pub granted: u64,
    /// What kind of event it is.
    pub kind: u16,
    /// The text, where the step has one.
    pub body: Option<Vec<u8>>,
}

/// Session, generation and kind.
const ROW_BYTES: usize = 18;

impl Write {
    /// Of a step.
    pub fn of(crew: &Crew, step: &Step) -> Self {
        let seat = &crew.seats[step.seat];
        let (kind, late, grown) = match step.act {
            Act::Adopt => (2, 0, 1),
            Act::Dispatch { .. } => (6, 0, 0),
            Act::Accept => (7, 0, 0),
            Act::Report => (10, 0, 0),
            Act::Note => (12, 0, 0),
            Act::Record => (30, 0, 0),
            Act::Late => (12, 1, 0),
        };
        let presented = seat.generation - late;
        Self {
            session: seat.number,
            presented,
            granted: presented + grown,
            kind,
            body: step.body.clone(),
        }
    }

    /// The event, for stores that keep bytes.
    pub fn row(&self) -> Vec<u8> {
        let body = self.body.as_deref().unwrap_or_default();
        let mut row = Vec::with_capacity(ROW_BYTES + body.len());
        row.extend(self.session.to_le_bytes());
        row.extend(self.granted.to_le_bytes());
        row.extend(self.kind.to_le_bytes());
        row.extend(body);
        row
    }
}

/// Session and generation of an event's bytes.
pub fn parse(row: &[u8]) -> (u64, u64) {
    let number = |at: usize| {
        let bytes = row[at..at + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes)
    };
    (number(0), number(8))
}

/// A store that checks a generation and appends an event.
pub trait Ledger: Send + Sync + Sized + 'static {
    /// Opens it in a directory, with so many sessions of generation 1 where it is new.
    fn open(dir: &Path, sessions: u64) -> Self;
    /// Carries out writes with one sync, in order; says of each whether its generation was current.
    fn commit(&self, writes: &[Write]) -> Vec<bool>;
    /// Closes it and reads every event of the directory in order, with each its session and generation.
    fn read(dir: &Path, each: impl FnMut(u64, u64));

    /// How many events there are.
    fn count(dir: &Path) -> u64 {
        let mut count = 0;
        Self::read(dir, |_, _| count += 1);
        count
    }
}

/// How threads share a ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// Each calls it with its own write.
    Direct,
    /// One thread has it, and commits every write that waits at once.
    Batching,
}

/// A ledger in the table.
pub struct Shared<L> {
    name: &'static str,
    sync_call: &'static str,
    sharing: Sharing,
    ledger: std::marker::PhantomData<fn() -> L>,
}

impl<L: Ledger> Shared<L> {
    /// With its name and the call that makes a commit durable.
    pub fn boxed(name: &'static str, sync_call: &'static str, sharing: Sharing) -> Box<dyn Peer> {
        Box::new(Self {
            name,
            sync_call,
            sharing,
            ledger: std::marker::PhantomData,
        })
    }
}

impl<L: Ledger> Peer for Shared<L> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sync_call(&self) -> &'static str {
        self.sync_call
    }

    fn goes_ahead(&self) -> bool {
        self.sharing == Sharing::Batching
    }

    fn make(&self, dir: &Path, crews: &[Crew]) -> Box<dyn Place> {
        let ledger = L::open(dir, sessions(crews));
        let dir = dir.to_owned();
        match self.sharing {
            Sharing::Direct => Box::new(Direct { ledger, dir }),
            Sharing::Batching => Box::new(Batching::start(ledger, dir)),
        }
    }
}

struct Direct<L> {
    ledger: L,
    dir: std::path::PathBuf,
}

impl<L: Ledger> Place for Direct<L> {
    fn hand(&self) -> Box<dyn Hand + '_> {
        Box::new(&self.ledger)
    }

    fn count(self: Box<Self>) -> Option<u64> {
        drop(self.ledger);
        Some(L::count(&self.dir))
    }
}

impl<L: Ledger> Hand for &L {
    fn perform(&mut self, crew: &mut Crew, steps: &[Step]) {
        let writes: Vec<Write> = steps.iter().map(|step| Write::of(crew, step)).collect();
        let current = self.commit(&writes);
        settle(crew, steps, &current);
    }
}

/// Holds the answers against what has to come of the steps, and tells the crew.
pub fn settle(crew: &mut Crew, steps: &[Step], current: &[bool]) {
    for (step, current) in steps.iter().zip(current) {
        assert_eq!(*current, step.act != Act::Late, "{:?}", step.act);
        crew.done(step, None);
    }
}

type Order = (Vec<Write>, SyncSender<Vec<bool>>);

struct Batching<L> {
    dir: std::path::PathBuf,
    orders: Mutex<Sender<Order>>,
    writer: JoinHandle<()>,
    ledger: std::marker::PhantomData<fn() -> L>,
}

/// The most orders of one commit, as many as this store's own groups have at most.
const BATCH_MAX: usize = 256;

impl<L: Ledger> Batching<L> {
    fn start(ledger: L, dir: std::path::PathBuf) -> Self {
        let (sender, orders) = channel();
        Self {
            dir,
            orders: Mutex::new(sender),
            writer: std::thread::spawn(move || write_batches(&ledger, &orders)),
            ledger: std::marker::PhantomData,
        }
    }
}

fn write_batches<L: Ledger>(ledger: &L, orders: &Receiver<Order>) {
    while let Ok(first) = orders.recv() {
        let more = std::iter::from_fn(|| orders.try_recv().ok());
        let mut writes = Vec::new();
        let mut askers = Vec::new();
        for (asked, answer) in std::iter::once(first).chain(more.take(BATCH_MAX - 1)) {
            askers.push((asked.len(), answer));
            writes.extend(asked);
        }
        let current = ledger.commit(&writes);
        let mut rest = current.as_slice();
        for (count, answer) in askers {
            let (own, others) = rest.split_at(count);
            rest = others;
            // Whoever asked waits for this.
            answer.send(own.to_vec()).expect("the asker waits");
        }
    }
}

impl<L: Ledger> Place for Batching<L> {
    fn hand(&self) -> Box<dyn Hand + '_> {
        Box::new(self.orders.lock().expect("nobody panicked").clone())
    }

    fn hand_ahead(&self) -> Option<Box<dyn Ahead + '_>> {
        Some(Box::new(
            self.orders.lock().expect("nobody panicked").clone(),
        ))
    }

    fn count(self: Box<Self>) -> Option<u64> {
        drop(self.orders);
        self.writer.join().expect("the writer ends with its orders");
        Some(L::count(&self.dir))
    }
}

impl Hand for Sender<Order> {
    fn perform(&mut self, crew: &mut Crew, steps: &[Step]) {
        self.begin(crew, steps)(crew, steps);
    }
}

impl Ahead for Sender<Order> {
    fn begin(&mut self, crew: &Crew, steps: &[Step]) -> Answers {
        let writes = steps.iter().map(|step| Write::of(crew, step)).collect();
        let (answer, current) = sync_channel(1);
        self.send((writes, answer)).expect("the writer lives");
        Box::new(move |crew, steps| {
            let current = current.recv().expect("the writer answers");
            settle(crew, steps, &current);
        })
    }
}
