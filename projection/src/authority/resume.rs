//! A projection of authority written down and taken up again: what has ended apart from what lasts.

use tenure_core::id::{DispatchNo, SessionNo};
use tenure_core::state::{Holder, State};
use tenure_core::text::Pool;

use super::row::{self, About, Lasting};
use super::{Authority, Interval, put};

impl Authority {
    /// Every stretch of every subject.
    fn all(&self) -> impl Iterator<Item = (About, &Interval)> {
        let number = |n: usize| SessionNo(n as u64);
        let sessions = self.sessions.iter().enumerate();
        let sessions = sessions.map(move |(n, all)| (About::Session(number(n)), all));
        let trees = self.trees.iter().enumerate();
        let trees = trees.map(move |(n, all)| (About::Tree(number(n)), all));
        let items = self.items.iter();
        let items = items.map(|(item, all)| (About::Item(self.pool.get(*item).to_vec()), all));
        let roles = self
            .roles
            .iter()
            .map(|(role, all)| (About::Role(*role), all));
        let subjects = sessions.chain(trees).chain(items).chain(roles);
        subjects.flat_map(|(about, all)| all.iter().map(move |i| (about.clone(), i)))
    }

    /// The stretches that have ended.
    pub(super) fn ended(&self) -> impl Iterator<Item = (About, Interval)> {
        let ended = self.all().filter(|(_, interval)| interval.until.is_some());
        ended.map(|(about, interval)| (about, *interval))
    }

    /// Learns from the state that it goes on from which of the bindings that last declare write scopes.
    pub(super) fn learn_scopes(&mut self, state: &State) {
        let declares = |d: &&DispatchNo| state.live.get(d).is_some_and(|l| !l.writes.is_empty());
        self.scoped = self.bound.keys().filter(declares).copied().collect();
    }

    /// The stretches that last, with a pool of their texts alone.
    pub(super) fn lasting(&self) -> (Pool, Vec<Lasting>) {
        let mut pool = Pool::default();
        let mut again = |holder| self.own_texts(holder, &mut pool);
        let lasting = self.all().filter(|(_, interval)| interval.until.is_none());
        let lasting = lasting
            .map(|(about, interval)| row::write(about, interval, interval.holder.map(&mut again)))
            .collect();
        (pool, lasting)
    }

    fn own_texts(&self, holder: Holder, pool: &mut Pool) -> Holder {
        Holder {
            actor: pool.intern(self.pool.get(holder.actor)),
            host_name: pool.intern(self.pool.get(holder.host_name)),
            engine: holder.engine.map(|e| pool.intern(self.pool.get(e))),
            ..holder
        }
    }

    /// Gives the holders of some intervals the texts of a pool of their own.
    pub(super) fn with_own_texts(&self, intervals: &mut [Interval]) -> Pool {
        let mut pool = Pool::default();
        for interval in intervals {
            interval.holder = interval.holder.map(|h| self.own_texts(h, &mut pool));
        }
        pool
    }

    /// A projection that goes on where [`Authority::lasting`] was taken. It has nothing of what had ended by then.
    /// `None` where something is none of a program like this one.
    pub(super) fn resumed(pool: Pool, lasting: Vec<Lasting>) -> Option<Self> {
        let mut resumed = Self {
            pool,
            ..Self::default()
        };
        for last in lasting {
            let (about, interval) = row::read(last)?;
            match about {
                About::Session(number) => put(&mut resumed.sessions, number, interval),
                About::Tree(root) => put(&mut resumed.trees, root, interval),
                About::Item(item) => {
                    let item = resumed.pool.intern(&item);
                    resumed.bind(interval.dispatch?, item, interval);
                }
                About::Role(role) => resumed.roles.entry(role).or_default().push(interval),
            }
        }
        Some(resumed)
    }
}
