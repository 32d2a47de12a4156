//! What a hook of an agent host asks: which grant its process has, and whom a write would meet. `docs/agents.md` has the
//! tables.

use std::path::PathBuf;

use tenure_core::disclosure::{Rule, Shared, instruction, shared_at};
use tenure_core::generation::{Generation, Standing};
use tenure_core::holder::{Bearing, Verdict, judge};
use tenure_core::id::{Name, SessionNo};
use tenure_core::state::{Granted, State};

use crate::authority::About;
use crate::error::Error;
use crate::reader::Reader;

/// How a session stands for one process: the rows of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Footing {
    /// The newest grant made to the process is current.
    Ours(Generation),
    /// The process gave the session back by itself, and nobody took it since.
    Parted(Generation),
    /// A grant was made to the process, and is current no more.
    Lost(Generation),
    /// No grant was made to it, and nobody who may live is in the way.
    Free,
    /// No grant was made to it, and somebody who may live is in the way.
    Held,
}

/// What an asker would meet at the paths it is about to change.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Meeting {
    /// Who may live, and works there.
    pub living: Vec<Shared>,
    /// Sessions that nobody holds, and those whose holder is provably dead.
    pub stale: Vec<Shared>,
    /// Whether there is somebody living whom the asker was not shown yet.
    pub news: bool,
    /// What to mind; `None` when nobody living is there.
    pub instruction: Option<&'static str>,
}

impl Meeting {
    /// What the policies say of those who may live.
    #[must_use]
    pub fn rule(&self) -> Rule {
        strictest(&self.living)
    }

    /// What they would say of the others, if those lived.
    #[must_use]
    pub fn stale_rule(&self) -> Rule {
        strictest(&self.stale)
    }
}

fn strictest(list: &[Shared]) -> Rule {
    list.iter().map(|s| s.rule).max().unwrap_or(Rule::Disclose)
}

impl Reader {
    /// How the session of that name stands for the process that `to` records. `presented` is a generation that the
    /// process can show a token of; the newest grant of both counts. `parted` is the reason that the process gives
    /// where it gives a session back by itself.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn footing(
        &self,
        name: &Name,
        to: &Bearing,
        presented: Option<Generation>,
        parted: &str,
    ) -> Result<Footing, Error> {
        let seen = self.view(|state| {
            let number = state.find(name.as_str().as_bytes())?;
            let session = state.session(number)?;
            let ours = session
                .holder
                .is_some_and(|h| h.bearing.is_same_process(to))
                && state.standing(number) != Some(Standing::Ungranted);
            Some((number, session.generation, ours))
        })?;
        let Some((number, current, ours)) = seen else {
            return Ok(Footing::Free);
        };
        let granted = match ours {
            true => Some(current),
            // A number that was never issued is no grant.
            false => self
                .granted_before(number, to)?
                .max(presented.filter(|g| *g <= current)),
        };
        self.view(|state| match granted {
            Some(ours) if state.check(number, ours).is_ok() => Footing::Ours(ours),
            Some(ours) if ours == current && has_parted(state, number, parted) => {
                Footing::Parted(ours)
            }
            Some(ours) => Footing::Lost(ours),
            None if self.may_be_taken(state, number) => Footing::Free,
            None => Footing::Held,
        })
    }

    /// The newest grant of a session that was made to the process, as the log has it.
    fn granted_before(&self, number: SessionNo, to: &Bearing) -> Result<Option<Generation>, Error> {
        let held = self.held(&About::Session(number))?;
        let ours = held.stretches.iter().rev().find(|stretch| {
            let holder = stretch.holder.as_ref();
            holder.is_some_and(|h| h.bearing.is_same_process(to))
        });
        Ok(ours.map(|stretch| stretch.generation))
    }

    fn may_be_taken(&self, state: &State, number: SessionNo) -> bool {
        let proven = || {
            self.evidence(state, number)
                .is_none_or(|found| found.verdict == Verdict::Dead)
        };
        !state.is_active(number) || proven()
    }

    /// Whom a session would meet where it is about to change `paths`, in the words of `check --write`, which is asked
    /// where [`Meeting::news`] or [`Meeting::rule`] says that there is something to decide or to record.
    ///
    /// # Errors
    /// When a path cannot be located or the log cannot be read.
    pub fn meeting(&self, asker: &Name, paths: &[PathBuf]) -> Result<Meeting, Error> {
        let located: Vec<_> = paths
            .iter()
            .map(|path| self.locate(path))
            .collect::<Result<_, _>>()?;
        self.view(|state| {
            let scopes: Vec<_> = located.iter().map(|s| s.map(|p| p.as_slice())).collect();
            let asker = state.find(asker.as_str().as_bytes());
            let list = shared_at(state, asker, &scopes);
            let (living, stale): (Vec<Shared>, Vec<Shared>) = list
                .into_iter()
                .partition(|shared| self.may_live(state, shared));
            let session = asker.and_then(|asker| state.session(asker));
            let known = |shared: &Shared| {
                let former = shared.former.as_ref().map(|(generation, _)| *generation);
                let current = state.session(shared.session).map(|s| s.generation);
                let generation = former.or(current);
                session.is_some_and(|s| generation.is_some_and(|g| s.knows(shared.session, g)))
            };
            Meeting {
                news: !living.iter().all(known),
                instruction: instruction(&living),
                living,
                stale,
            }
        })
    }

    fn may_live(&self, state: &State, shared: &Shared) -> bool {
        let former = shared.former.as_ref().map(|(_, holder)| *holder);
        let holder = former.or_else(|| state.holder(shared.session));
        let dead = |bearing: &Bearing| judge(bearing, &self.host.sight(bearing)).0 == Verdict::Dead;
        holder.is_some_and(|holder| !dead(&holder.bearing))
    }
}

/// Whether the newest that happened to a session is that its own process gave it back.
fn has_parted(state: &State, number: SessionNo, reason: &str) -> bool {
    let Some(session) = state.session(number) else {
        return false;
    };
    let (how, why) = match (session.grants.last(), state.tree_note_of(number)) {
        (_, Some(note)) => (note.how, note.reason),
        (Some(note), None) => (note.how, note.reason),
        (None, None) => return false,
    };
    matches!(how, Granted::Released | Granted::Retired)
        && why.is_some_and(|why| state.pool.get(why) == reason.as_bytes())
}
