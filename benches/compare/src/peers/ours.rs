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
        "tenure"
    }

    fn sync_call(&self) -> &'static str {
        "fdatasync and one byte read back, per group"
    }

    fn make(&self, dir: &Path, crews: &[Crew]) -> Box<dyn Place> {
        let store = ours::open(dir);
        for crew in crews {
            ours::register(&store, crew);
        }
        let registered = crews.iter().map(|crew| crew.seats.len() as u64).sum();
        Box::new(Directory {
            dir: dir.to_owned(),
            store,
            registered,
        })
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
    fn perform(&mut self, crew: &mut Crew, step: &Step) {
        let answer = self.0.execute(ours::call(crew, step));
        ours::settle(crew, step, answer);
    }
}
