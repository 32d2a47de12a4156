//! What lasts of authority, in pages: read subject by subject, and written down without what nobody touched.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_core::generation::Generation;
use tenure_core::id::{DispatchNo, Moment, Position, RoleNo, SessionNo, Time};
use tenure_core::state::Paged;
use tenure_core::state::paged::{Item, Note};

use super::{Interval, Point, row};

/// Stretches that last, as they were when something was last written down. Holders are not among it: they are found by
/// where they were granted.
#[derive(Clone, Default, Debug)]
pub(super) struct Lasts {
    /// By number of the session.
    pub sessions: Paged<Note>,
    /// By number of the root.
    pub trees: Paged<Note>,
    /// In the order of their numbers.
    roles: Paged<Note>,
    /// Those of items that a file holds, in the order of their dispatches.
    bindings: Paged<Note>,
    /// Those that began since; `None`: over since.
    own: Arc<BTreeMap<DispatchNo, Option<Note>>>,
}

/// How many lists it is written in.
pub(super) const LISTS: usize = 4;

/// A stretch as it is written: of which number, and what. Zeros are none.
fn note(number: u64, interval: &Interval, text: &[u8]) -> Note {
    Note {
        words: [
            number + 1,
            interval.session.0,
            interval.generation.incarnation,
            interval.generation.number,
            interval.granted.map_or(0, |at| at.0),
            interval.since.at.position.0,
            interval.since.at.time.0.cast_unsigned(),
            u64::from(row::kind(interval.since.event)),
        ],
        text: text.into(),
    }
}

/// The number and the stretch that were written.
fn read(note: &Note) -> Option<(u64, Interval)> {
    let [
        number,
        session,
        incarnation,
        generation,
        granted,
        position,
        time,
        kind,
    ] = note.words;
    let interval = Interval {
        session: SessionNo(session),
        generation: Generation {
            incarnation,
            number: generation,
        },
        holder: None,
        granted: (granted > 0).then_some(Position(granted)),
        dispatch: None,
        since: Point {
            at: Moment {
                position: Position(position),
                time: Time(time.cast_signed()),
            },
            event: row::word((kind & 0xffff) as u16),
        },
        until: None,
    };
    Some((number.checked_sub(1)?, interval))
}

impl Lasts {
    /// Of what [`Lasts::lists`] gave.
    pub fn of([sessions, trees, roles, bindings]: [Paged<Note>; LISTS]) -> Self {
        Self {
            sessions,
            trees,
            roles,
            bindings,
            own: Arc::default(),
        }
    }

    /// What is written down.
    pub fn lists(&self) -> [Paged<Note>; LISTS] {
        let bindings = match self.own.is_empty() {
            true => self.bindings.clone(),
            false => self.all_bindings(),
        };
        [
            self.sessions.clone(),
            self.trees.clone(),
            self.roles.clone(),
            bindings,
        ]
    }

    /// As [`Paged::share`].
    pub fn share(&mut self) {
        self.sessions.share();
        self.trees.share();
        self.roles.share();
        self.bindings.share();
    }

    /// Whether there is nothing to be taken from it.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.trees.is_empty() && self.own.is_empty()
    }

    /// The bindings, in the order of their dispatches.
    fn all_bindings(&self) -> Paged<Note> {
        let mut own = self.own.iter().peekable();
        let mut all = Paged::default();
        for kept in &self.bindings {
            let before =
                |(dispatch, _): &(&DispatchNo, &Option<Note>)| dispatch.0 + 1 < kept.words[0];
            while let Some((_, since)) = own.next_if(before) {
                since.iter().for_each(|note| all.push(note.clone()));
            }
            match own.next_if(|(dispatch, _)| dispatch.0 + 1 == kept.words[0]) {
                Some((_, since)) => since.iter().for_each(|note| all.push(note.clone())),
                None => all.push(kept.clone()),
            }
        }
        let since = own.filter_map(|(_, since)| since.clone());
        since.for_each(|note| all.push(note));
        all
    }

    /// The stretch of a session or of a tree.
    pub fn one(list: &Paged<Note>, number: SessionNo) -> Option<Interval> {
        let (_, interval) = read(list.get(number.index())?)?;
        Some(interval)
    }

    /// Notes what lasts now of a session or of a tree.
    pub fn set(list: &mut Paged<Note>, number: SessionNo, last: Option<&Interval>) {
        while list.len() <= number.index() {
            list.push(Note::blank());
        }
        if let Some(slot) = list.get_mut(number.index()) {
            *slot = last.map_or_else(Note::blank, |last| note(number.0, last, &[]));
        }
    }

    /// Gives both lists of sessions one length.
    pub fn even(&mut self) {
        while self.trees.len() < self.sessions.len() {
            self.trees.push(Note::blank());
        }
    }

    /// The roles that are held.
    pub fn roles(&self) -> BTreeMap<RoleNo, Vec<Interval>> {
        let all = self.roles.iter().filter_map(read);
        all.map(|(role, held)| (RoleNo(role), vec![held])).collect()
    }

    /// Notes the roles that are held now.
    pub fn set_roles<'i>(&mut self, roles: impl Iterator<Item = (RoleNo, &'i Interval)>) {
        self.roles = roles.map(|(role, held)| note(role.0, held, &[])).collect();
    }

    /// The binding of a dispatch, and its item.
    pub fn binding(&self, dispatch: DispatchNo) -> Option<(Interval, &[u8])> {
        let note = match self.own.get(&dispatch) {
            Some(since) => since.as_ref()?,
            None => self.kept_binding(dispatch)?,
        };
        bound(note).map(|(_, interval)| (interval, &*note.text))
    }

    fn kept_binding(&self, dispatch: DispatchNo) -> Option<&Note> {
        let (mut low, mut high) = (0, self.bindings.len());
        while low < high {
            let middle = low.midpoint(high);
            let note = self.bindings.get(middle)?;
            match note.words[0].cmp(&(dispatch.0 + 1)) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(note),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The dispatches of all bindings.
    pub fn dispatches(&self) -> Vec<DispatchNo> {
        let all = self.all_bindings();
        let numbers = all.iter().filter_map(bound);
        numbers.map(|(dispatch, _)| dispatch).collect()
    }

    /// Notes what lasts now of a binding.
    pub fn set_binding(&mut self, dispatch: DispatchNo, last: Option<(&Interval, &[u8])>) {
        let kept = self.kept_binding(dispatch).is_some();
        let own = Arc::make_mut(&mut self.own);
        match last {
            Some((last, item)) => drop(own.insert(dispatch, Some(note(dispatch.0, last, item)))),
            None if kept => drop(own.insert(dispatch, None)),
            None => drop(own.remove(&dispatch)),
        }
    }
}

fn bound(note: &Note) -> Option<(DispatchNo, Interval)> {
    let (dispatch, interval) = read(note)?;
    let dispatch = DispatchNo(dispatch);
    let interval = Interval {
        dispatch: Some(dispatch),
        ..interval
    };
    Some((dispatch, interval))
}
