//! A replay of authority that reads fences and nothing else (`docs/trees.md`, On the disk).

use tenure_core::event::{Fence, FenceKind};
use tenure_core::generation::{Epoch, Generation, Standing};
use tenure_core::id::SessionNo;
use tenure_core::state::State;

#[derive(Clone, Copy)]
struct Known {
    generation: Generation,
    root: usize,
    epoch: Epoch,
}

/// What fences alone say: which generation is current, and under which epoch of which tree.
#[derive(Default)]
pub struct Fences {
    incarnation: u64,
    sessions: Vec<Known>,
    epochs: Vec<Epoch>,
}

fn next(epoch: Epoch) -> Epoch {
    epoch.next().expect("epochs are left")
}

impl Fences {
    /// Takes in the fence of one frame.
    pub fn note(&mut self, fence: &Fence, incarnation: u64) {
        if incarnation > self.incarnation {
            if self.incarnation > 0 {
                self.epochs.iter_mut().for_each(|e| *e = next(*e));
            }
            self.incarnation = incarnation;
        }
        if let Some(tree) = fence.tree {
            self.epochs[tree.root.index()] = tree.epoch;
        }
        let (FenceKind::Grant, Some(session), Some(granted)) =
            (fence.kind, fence.session, fence.granted)
        else {
            return;
        };
        let number = session.index();
        if number == self.sessions.len() {
            self.epochs.push(Epoch::FIRST);
            self.sessions.push(Known {
                generation: granted,
                root: number,
                epoch: Epoch::FIRST,
            });
        } else if fence.tree.is_none() {
            self.epochs[number] = next(self.epochs[number]);
        }
        let root = fence.tree.map_or(number, |tree| tree.root.index());
        self.sessions[number] = Known {
            generation: granted,
            root,
            epoch: self.epochs[root],
        };
    }

    /// Every session that the state has granted or lapsed stands so by its fences too, in the same tree.
    pub fn agree(&self, state: &State) {
        assert_eq!(self.sessions.len(), state.sessions.len());
        for (number, known) in self.sessions.iter().enumerate() {
            let session = SessionNo(number as u64);
            let record = state.session(session).expect("it is there");
            let at = state.at.position;
            let tree = state.tree(session).expect("it is in a tree");
            assert_eq!(known.root, record.root.index(), "{session} at {at}");
            assert_eq!(self.epochs[known.root], tree.epoch, "{session} at {at}");
            let standing = state.standing(session).expect("it is there");
            if matches!(standing, Standing::Granted | Standing::Lapsed) {
                assert_eq!(known.generation, record.generation, "{session} at {at}");
                let current = known.epoch == self.epochs[known.root];
                assert_eq!(current, standing == Standing::Granted, "{session} at {at}");
            }
        }
    }
}
