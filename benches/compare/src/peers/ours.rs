//! This store, through the door that embedders use.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use tenure_benches::ours;
use tenure_benches::workload::{Crew, Step};
use tenure_core::event::FenceKind;
use tenure_core::id::Position;
use tenure_log::frame::{Depth, FrameRef};
use tenure_projection::entry;
use tenure_projection::error::Failure;
use tenure_projection::reader::Reader;
use tenure_projection::store::{Done, Store, Ticket};

use super::{Ahead, Answers, Hand, Peer, Place};

/// One `Store` in a directory, shared by every thread.
pub struct Ours;

impl Peer for Ours {
    fn name(&self) -> &'static str {
        super::OURS
    }

    fn sync_call(&self) -> &'static str {
        "fdatasync and one byte read back, per group"
    }

    fn goes_ahead(&self) -> bool {
        true
    }

    fn make(&self, dir: &Path, crews: &[Crew]) -> Box<dyn Place> {
        let store = ours::open(dir);
        for crew in crews {
            ours::register(&store, crew);
        }
        let registered = super::sessions(crews);
        Box::new(Directory {
            dir: dir.to_owned(),
            store,
            registered,
        })
    }

    fn join(&self, dir: &Path) -> Option<Box<dyn Place>> {
        Some(Box::new(Directory {
            dir: dir.to_owned(),
            store: ours::open(dir),
            registered: 0,
        }))
    }
}

struct Directory {
    dir: PathBuf,
    store: Store,
    registered: u64,
}

impl Place for Directory {
    fn hand(&self) -> Box<dyn Hand + '_> {
        Box::new(Through(&self.store))
    }

    fn hand_ahead(&self) -> Option<Box<dyn Ahead + '_>> {
        Some(Box::new(Waited::new(&self.store)))
    }

    fn count(self: Box<Self>) -> Option<u64> {
        let Self {
            dir,
            store,
            registered,
        } = *self;
        drop(store);
        let reader = Reader::open(&dir.join("store"), ours::host(&dir)).expect("it is readable");
        let mut fenced = 0;
        let each = |frame: &FrameRef<'_>| {
            // A recorded refusal has no fence: it is the store's own.
            fenced += u64::from(entry::decode(frame)?.fence.kind != FenceKind::None);
            Ok(true)
        };
        let to = Position(u64::MAX);
        reader
            .frames(Position(1), to, Depth::Whole, each)
            .expect("it is readable");
        Some(fenced - registered)
    }
}

struct Through<'s>(&'s Store);

impl Hand for Through<'_> {
    fn perform(&mut self, crew: &mut Crew, steps: &[Step]) {
        if let [step] = steps {
            let answer = self.0.execute(ours::call(crew, step));
            return ours::settle(crew, step, answer);
        }
        let tickets = submit(self.0, crew, steps);
        for (step, ticket) in steps.iter().zip(tickets) {
            ours::settle(crew, step, ticket.wait());
        }
    }
}

fn submit(store: &Store, crew: &Crew, steps: &[Step]) -> Vec<Ticket> {
    let submit = |step| {
        let call = ours::call(crew, step);
        store.submit(call).expect("the call is well-formed")
    };
    steps.iter().map(submit).collect()
}

type Waiting = (Vec<Ticket>, SyncSender<Vec<Result<Done, Failure>>>);

/// Two threads that wait for tickets: while one waits for a sync, the other one has the next batch decided.
struct Waited<'s> {
    store: &'s Store,
    waiters: Vec<(Sender<Waiting>, JoinHandle<()>)>,
    turn: usize,
}

impl<'s> Waited<'s> {
    fn new(store: &'s Store) -> Self {
        let waiter = |_| {
            let (sender, batches) = channel::<Waiting>();
            let wait = move || {
                for (tickets, answer) in batches {
                    let answers = tickets.into_iter().map(Ticket::wait).collect();
                    // Whoever asked waits for this.
                    answer.send(answers).expect("the asker waits");
                }
            };
            (sender, std::thread::spawn(wait))
        };
        Self {
            store,
            waiters: (0..2).map(waiter).collect(),
            turn: 0,
        }
    }
}

impl Ahead for Waited<'_> {
    fn begin(&mut self, crew: &Crew, steps: &[Step]) -> Answers {
        let tickets = submit(self.store, crew, steps);
        let (answer, answers) = sync_channel(1);
        self.turn += 1;
        let (waiter, _) = &self.waiters[self.turn % self.waiters.len()];
        waiter.send((tickets, answer)).expect("the waiter lives");
        Box::new(move |crew, steps| {
            let answers = answers.recv().expect("the waiter answers");
            for (step, answer) in steps.iter().zip(answers) {
                ours::settle(crew, step, answer);
            }
        })
    }
}

impl Drop for Waited<'_> {
    fn drop(&mut self) {
        for (sender, waiter) in self.waiters.drain(..) {
            drop(sender);
            waiter.join().expect("a waiter ends with its batches");
        }
    }
}
