//! Waiting for a role, and taking it: bounded, with one winner, and nobody holds anything by having waited
//! (ROL-9, A08).

use std::time::{Duration, Instant};

use tenure_core::generation::Standing;
use tenure_core::holder::{Bearing, Verdict, judge};
use tenure_core::id::{Position, Token};
use tenure_core::refusal::Code;
use tenure_core::role::RoleScope;
use tenure_core::state::State;
use tenure_log::journal::Deadline;

use crate::call::{Call, RoleAt, Verb};
use crate::error::{Error, Failure};

use super::Store;
use super::answer::Done;

/// How long to sleep at most: the death of a holder stands in no log.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

impl Store {
    /// Executes a call that takes a role as soon as the role can be had, and at `end` in any case: then the answer
    /// is whatever stands. A call of another kind is executed at once.
    ///
    /// Between its attempts it looks and writes nothing. Of many who wait, the order of the log decides.
    ///
    /// # Errors
    /// See [`Store::execute`]; `role-held` when the wait was in vain.
    pub fn execute_when_free(&self, call: Call, end: Deadline) -> Result<Done, Failure> {
        let Verb::TakeRole { at, .. } = &call.verb else {
            return self.execute(call);
        };
        let (at, token) = (at.clone(), call.token.clone());
        let scope = self.locate_role(&at)?;
        loop {
            let (seen, free) = self.looks_free(&at, &scope, token.as_ref())?;
            let now = Instant::now();
            let over = end.passed(now);
            if free || over {
                match self.execute(call.clone()) {
                    // Somebody else was faster.
                    Err(Failure::Refused(refusal)) if refusal.code == Code::RoleHeld && !over => {}
                    answered => return answered,
                }
            }
            let pause = Deadline::after(end.bound(LOOK_AGAIN, now));
            self.wait_beyond(seen, pause)?;
        }
    }

    /// Whether an attempt would not be answered `role-held`, as far as can be seen, and from where that was seen.
    fn looks_free(
        &self,
        at: &RoleAt,
        scope: &RoleScope<Vec<u8>>,
        token: Option<&Token>,
    ) -> Result<(Position, bool), Error> {
        let dead =
            |bearing: &Bearing| judge(bearing, &self.host().sight(bearing)).0 == Verdict::Dead;
        self.view(|state| (state.at.position, free(state, at, scope, token, dead)))
    }
}

fn free(
    state: &State,
    at: &RoleAt,
    scope: &RoleScope<Vec<u8>>,
    token: Option<&Token>,
    dead: impl Fn(&Bearing) -> bool,
) -> bool {
    let asker = token.and_then(|t| Some((state.find(t.name.as_str().as_bytes())?, t.generation)));
    let Some((asker, generation)) = asker else {
        return true;
    };
    if state.check(asker, generation).is_err() {
        return true;
    }
    let scope = scope.map(|text| text.as_slice());
    let number = state.find_role(at.role.as_str().as_bytes(), &scope);
    let Some(holding) = number
        .and_then(|n| state.role(n))
        .and_then(|r| r.holding.as_ref())
    else {
        return true;
    };
    let held = state.standing(holding.session) == Some(Standing::Granted);
    let root = state
        .session(holding.session)
        .filter(|_| held)
        .map(|s| s.root);
    let holder = root.and_then(|root| state.tree_holder(root));
    let holder = holder.map(|(holder, _)| holder.bearing);
    holding.session == asker
        || holder.is_none_or(|bearing| dead(&bearing))
        || holding.process.is_some_and(|bearing| dead(&bearing))
}
