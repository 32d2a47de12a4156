//! Who held a tree, and what that ends of its sessions.

use tenure_core::event::{Event, Reconciliation};
use tenure_core::id::SessionNo;
use tenure_core::state::{Session, State};
use tenure_core::text::Texts;

use super::{Authority, Interval, Point, When, begin, end, find};

impl Authority {
    /// Every stretch in which the tree of that root was held, oldest first.
    #[must_use]
    pub fn of_tree(&self, root: SessionNo) -> &[Interval] {
        self.trees.get(&root).map_or(&[], Vec::as_slice)
    }

    /// Who held the tree then.
    #[must_use]
    pub fn tree_at(&self, root: SessionNo, when: When) -> Option<&Interval> {
        find(self.of_tree(root), when)
    }

    /// Every token of a tree lapses: nobody holds its sessions, and their bindings go on without a holder. Of a
    /// session that nobody was granted since the incarnation was raised, nothing lapses.
    fn lapse(&mut self, root: SessionNo, until: Point, state: &State) {
        end(&mut self.trees, root, until);
        let granted = |s: &Session| s.holder.is_some();
        for (number, session) in state.sessions_of_tree(root).filter(|(_, s)| granted(s)) {
            self.close(number, until);
            self.restamp(number, session.generation, until);
            self.roles_follow(number, session.generation, until);
        }
    }

    fn end_roles(&mut self, session: SessionNo, point: Point) {
        for role in self.roles_of(session) {
            self.role_ended(role, point);
        }
    }

    /// Who holds a tree: whoever claims it, or is granted its root.
    pub(super) fn tree(
        &mut self,
        event: &Event,
        point: Point,
        texts: &Texts,
        state: &State,
        delegated: bool,
    ) {
        let root = |number: SessionNo| state.session(number).map_or(number, |s| s.root);
        match event {
            Event::Registered(e) if !delegated => {
                let holder = self.holder(&e.bearer, texts);
                begin(&mut self.trees, e.session, e.generation, holder, point);
            }
            Event::Adopted(e) if root(e.session) == e.session => {
                let holder = self.holder(&e.bearer, texts);
                begin(&mut self.trees, e.session, e.generation, holder, point);
            }
            Event::Claimed(e) => {
                self.lapse(e.root, point, state);
                if let Some(session) = state.session(e.root) {
                    let holder = self.holder(&e.bearer, texts);
                    begin(&mut self.trees, e.root, session.generation, holder, point);
                }
            }
            Event::RolledBack(e) => self.lapse(e.root, point, state),
            Event::Released(e) => {
                for (number, _) in state.sessions_of_tree(e.root) {
                    self.end_roles(number, point);
                }
                self.lapse(e.root, point, state);
            }
            Event::Unreserved(e) => {
                end(&mut self.trees, e.root, point);
                for (number, _) in state.sessions_of_tree(e.root) {
                    self.close(number, point);
                    self.end_roles(number, point);
                    for dispatch in self.bindings_of(number) {
                        self.unbind(dispatch, point);
                    }
                }
            }
            Event::Reconciled(e) if e.how == Reconciliation::ParentCancelled => {
                for dispatch in self.bindings_of(e.session) {
                    self.unbind(dispatch, point);
                }
            }
            Event::Retired(e) => end(&mut self.trees, e.session, point),
            Event::IncarnationRaised(e) if e.incarnation > state.incarnation => {
                let roots: Vec<SessionNo> = self.trees.keys().copied().collect();
                for root in roots {
                    end(&mut self.trees, root, point);
                }
            }
            _ => {}
        }
    }
}
