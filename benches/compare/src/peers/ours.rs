//! This store, through the door that embedders use.

use std::path::{Path, PathBuf};

use tenure_benches::ours;
use tenure_benches::workload::{Crew, Step};
use tenure_core::event::FenceKind;
use tenure_core::id::Position;
use tenure_log::frame::{Depth, FrameRef};
use tenure_projection::entry;
use tenure_projection::reader::Reader;
use tenure_projection::store::Store;

use super::{Hand, Peer, Place};

/// One `Store` in a directory, shared by every thread.
pub struct Ours;

impl Peer for Ours {
    fn name(&self) -> &'static str {
        super::OURS
    }

    fn sync_call(&self) -> &'static str {
        "fdatasync and one byte read back, per group"
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
        let submit = |step| {
            let call = ours::call(crew, step);
            self.0.submit(call).expect("the call is well-formed")
        };
        let tickets: Vec<_> = steps.iter().map(submit).collect();
        for (step, ticket) in steps.iter().zip(tickets) {
            ours::settle(crew, step, ticket.wait());
        }
    }
}
