//! Roles: take, release, check, clear, and what every write may require.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::command::{CheckRole, ClearRole, LapseRole, ReleaseRole, TakeRole};
use crate::event::{Event, RoleCleared, RoleLapsed, RoleReleased, RoleTaken};
use crate::generation::{Generation, Standing};
use crate::holder::{Proof, Verdict};
use crate::id::{Moment, RoleNo};
use crate::refusal::{Code, Refusal, Relation};
use crate::role::{
    Acting, Held, ProcessEvidence, Requirement, RoleScope, Taking, act, take as taking,
};
use crate::state::{Holding, Role};
use crate::text::TextId;

use super::Decision;
use super::adopt::evidence_about;
use super::guard::{Ask, Author};

/// A role as somebody names it.
#[derive(Clone, Copy)]
struct Named<'a> {
    ask: Ask<'a>,
    role: TextId,
    scope: &'a RoleScope<TextId>,
}

impl<'a> Named<'a> {
    fn new(ask: Ask<'a>, role: TextId, scope: &'a RoleScope<TextId>) -> Self {
        Self { ask, role, scope }
    }

    fn find(self) -> Option<(RoleNo, &'a Role)> {
        let (ask, state) = (self.ask, self.ask.state);
        let scope = self.scope.map(|t| ask.text(*t));
        let number = state.find_role(ask.text(self.role), &scope)?;
        Some((number, state.role(number)?))
    }

    fn holding(self) -> Option<&'a Holding> {
        self.find().and_then(|(_, role)| role.holding.as_ref())
    }

    fn subject(self) -> String {
        format!(
            "{}@{}",
            self.ask.string(self.role),
            self.ask.string(self.scope.text)
        )
    }

    /// `role VERB ROLE --scope S`, ready to type.
    fn command(self, verb: &str) -> String {
        let role = self.ask.string(self.role);
        let scope = self.ask.string(self.scope.text);
        let plain = |c: char| c.is_ascii_alphanumeric() || "._:+/-@=,~%".contains(c);
        let scope = match scope.chars().all(plain) {
            true => scope,
            false => format!("'{}'", scope.replace('\'', r"'\''")),
        };
        format!("tenure role {verb} {role} --scope {scope}")
    }

    /// Whether `author` may act in the role; the refusal where not.
    fn checked(self, author: Author, asked: Option<Generation>) -> Result<Option<Moment>, Refusal> {
        let role = self.find().map(|(_, role)| role);
        let holding = role.and_then(|role| role.holding.as_ref());
        let held = held(holding, author);
        let before = role.is_some_and(|role| role.past.contains(&author.session));
        let current = role.map(|role| role.generation);
        match act(held, current, asked, before) {
            Acting::Allowed => {}
            Acting::Stale => self.ask.refuse(self.stale(author, role, asked))?,
            Acting::Refused => self.ask.refuse(self.held(holding, None))?,
        }
        Ok(holding.map(|h| h.since))
    }

    /// The role's generation after this one.
    fn next(self, after: Generation, holding: Option<&Holding>) -> Result<Generation, Refusal> {
        self.ask.found(after.next(self.ask.state.incarnation), || {
            self.held(holding, None)
                .say(format!("{} has used up its generations", self.subject()))
        })
    }

    fn held(self, holding: Option<&Holding>, evidence: Option<(Verdict, Vec<Proof>)>) -> Refusal {
        let (ask, subject) = (self.ask, self.subject());
        let session = holding.map(|h| h.session);
        let mut refusal = ask
            .refusal(Code::RoleHeld, session, &subject)
            .holder(ask.state)
            .relation(Relation::Foreign);
        refusal.since = holding.map(|h| h.since);
        let current = refusal.current.clone().unwrap_or_default();
        if let Some((verdict, proofs)) = evidence {
            refusal = refusal.evidence(verdict, proofs);
        }
        refusal
            .say(format!(
                "{subject} is held by {current}; that will not expire by itself"
            ))
            .next(
                format!("{} --wait 5m", self.command("take")),
                "waits until it is free, and takes it",
            )
            .next(
                format!("{} --reason TEXT", self.command("clear")),
                "takes it away as operator, on the record; its holder's later acts in it are stale",
            )
    }

    fn stale(self, author: Author, role: Option<&Role>, asked: Option<Generation>) -> Refusal {
        let (ask, subject) = (self.ask, self.subject());
        let holding = role.and_then(|role| role.holding.as_ref());
        let holder = holding.map(|h| h.session);
        let mut refusal = ask
            .refusal(Code::RoleStale, holder.or(Some(author.session)), &subject)
            .relation(Relation::Superseded);
        refusal.current = None;
        if holder.is_some() {
            refusal = refusal.holder(ask.state);
            refusal.current = refusal.session.and_then(|s| super::describe(ask.state, s));
        }
        // What happened to the asker's session is no answer here: its token is current.
        refusal.session = None;
        refusal.since = holding.map(|h| h.since);
        let by = match &refusal.current {
            Some(current) => format!("{current} holds it"),
            None => "nobody holds it".into(),
        };
        let message = match (asked, role.map(|role| role.generation)) {
            (Some(asked), Some(current)) if asked != current => {
                format!("{subject} is at role generation {current}, not {asked}; {by}")
            }
            (Some(asked), None) => format!("{subject} never had role generation {asked}; {by}"),
            _ => format!("{subject} is not yours; {by}"),
        };
        refusal
            .say(message)
            .next(self.command("take"), "takes it where nobody holds it")
    }
}

fn held(holding: Option<&Holding>, author: Author) -> Held {
    match holding {
        None => Held::ByNobody,
        Some(holding) if holding.session == author.session => Held::ByAsker,
        Some(_) => Held::ByAnother,
    }
}

/// What a command requires of whoever gives it: checked behind the token and before anything else (ROL-2).
pub(super) fn required(ask: Ask<'_>, wanted: &Requirement<TextId>) -> Result<(), Refusal> {
    let author = ask.author()?;
    let named = Named::new(ask, wanted.role, &wanted.scope);
    named.checked(author, None).map(|_| ())
}

/// Takes a role: from nobody, or from a holder that is provably dead (ROL-1, ROL-5).
pub(super) fn take(ask: Ask<'_>, c: &TakeRole) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let named = Named::new(ask, c.role, &c.scope);
    let found = named.find();
    let holding = found.and_then(|(_, role)| role.holding.as_ref());
    let looked = Looked::at(ask, found, c.found.as_ref());
    let judged = looked.judged();
    match taking(held(holding, author), looked.has_holder, judged) {
        Taking::Own => return Ok(Decision::nothing()),
        Taking::Refused => ask.refuse(named.held(holding, Some(looked.about_session())))?,
        Taking::Taken => {}
    }
    let next = |after: Option<Generation>| match after {
        None => Ok(Generation::first(ask.state.incarnation)),
        Some(after) => named.next(after, holding),
    };
    let mut events: Vec<Event> = Vec::new();
    let mut generation = found.map(|(_, role)| role.generation);
    let number = found.map_or_else(|| ask.state.next_role(), |(number, _)| number);
    if let Some(holding) = holding {
        let lapsed = next(generation)?;
        generation = Some(lapsed);
        events.push(looked.lapsed(ask, number, holding, lapsed).into());
    }
    events.push(
        RoleTaken {
            role: number,
            name: c.role,
            scope: c.scope.clone(),
            generation: next(generation)?,
            session: author.session,
            under: author.generation,
            process: c.process,
        }
        .into(),
    );
    Ok(author.writes(events))
}

/// What the probe found about whoever holds a role, as far as it is about that holding.
struct Looked<'a> {
    /// Whether anybody writes as its session.
    has_holder: bool,
    verdict: Verdict,
    proofs: Vec<Proof>,
    process: Option<&'a ProcessEvidence>,
}

impl<'a> Looked<'a> {
    fn at(
        ask: Ask<'a>,
        found: Option<(RoleNo, &'a Role)>,
        process: Option<&'a ProcessEvidence>,
    ) -> Self {
        let holding = found.and_then(|(_, role)| role.holding.as_ref());
        let standing = holding.and_then(|h| ask.state.standing(h.session));
        let (verdict, proofs) = match holding {
            Some(holding) => evidence_about(ask, holding.session),
            None => (Verdict::Unknowable, Vec::new()),
        };
        let of_this =
            |e: &&ProcessEvidence| found.is_some_and(|(_, r)| r.generation == e.generation);
        Self {
            has_holder: standing == Some(Standing::Granted),
            verdict,
            proofs,
            process: holding.and(process).filter(of_this),
        }
    }

    /// The verdict of both: either's end ends the holding.
    fn judged(&self) -> Verdict {
        let ended = self
            .process
            .is_some_and(|process| process.verdict == Verdict::Dead);
        if ended { Verdict::Dead } else { self.verdict }
    }

    fn about_session(&self) -> (Verdict, Vec<Proof>) {
        (self.verdict, self.proofs.clone())
    }

    fn lapsed(
        &self,
        ask: Ask<'_>,
        role: RoleNo,
        holding: &Holding,
        generation: Generation,
    ) -> RoleLapsed {
        let session = ask.state.session(holding.session);
        let about = |e: &&crate::holder::Evidence| {
            session.and_then(|s| ask.state.holding(s.root)) == Some((e.session, e.generation))
        };
        RoleLapsed {
            role,
            generation,
            session: holding.session,
            evidence: ask.request.input.evidence.as_ref().filter(about).cloned(),
            process: self.process.cloned(),
            notice: ask.state.next_envelope(),
        }
    }
}

/// Takes a role off a holder that is provably dead, or whose session nobody holds, for nobody: the clean-up. Whoever
/// took it meanwhile is not touched, since the evidence is about another holding (LIV-13, LIV-14).
pub(super) fn lapse(ask: Ask<'_>, c: &LapseRole) -> Result<Decision, Refusal> {
    let named = Named::new(ask, c.role, &c.scope);
    let found = named.find();
    let Some((number, role)) = found else {
        return Ok(Decision::nothing());
    };
    let Some(holding) = &role.holding else {
        return Ok(Decision::nothing());
    };
    let looked = Looked::at(ask, found, c.found.as_ref());
    if looked.has_holder && looked.judged() != Verdict::Dead {
        ask.refuse(named.held(Some(holding), Some(looked.about_session())))?;
    }
    let generation = named.next(role.generation, Some(holding))?;
    let lapsed = looked.lapsed(ask, number, holding, generation);
    Ok(Decision::plain(vec![lapsed.into()]))
}

/// Gives a role back: its holder only; what the asker gave back already is the same answer.
pub(super) fn release(ask: Ask<'_>, c: &ReleaseRole) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let named = Named::new(ask, c.role, &c.scope);
    let found = named.find();
    let before = found.is_some_and(|(_, role)| role.past.contains(&author.session));
    if before && named.holding().is_none() {
        return Ok(Decision::nothing());
    }
    named.checked(author, None)?;
    let Some((role, _)) = found else {
        return Ok(Decision::nothing());
    };
    let session = author.session;
    Ok(author.writes(vec![RoleReleased { role, session }.into()]))
}

/// Whether the asker holds it; a refusal is recorded (ROL-2, ROL-3).
pub(super) fn check(ask: Ask<'_>, c: &CheckRole) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let named = Named::new(ask, c.role, &c.scope);
    named.checked(author, c.generation)?;
    Ok(Decision::nothing())
}

/// Takes a role away as operator, with a reason (ROL-4). A token that is presented must be current, whatever
/// else is said.
pub(super) fn clear(ask: Ask<'_>, c: &ClearRole) -> Result<Decision, Refusal> {
    ask.author_or_operator()?;
    let named = Named::new(ask, c.role, &c.scope);
    let Some((number, role)) = named.find() else {
        return Ok(Decision::nothing());
    };
    let Some(holding) = &role.holding else {
        return Ok(Decision::nothing());
    };
    let generation = named.next(role.generation, Some(holding))?;
    let cleared = RoleCleared {
        role: number,
        generation,
        session: holding.session,
        reason: c.reason,
        notice: ask.state.next_envelope(),
    };
    Ok(Decision::plain(vec![cleared.into()]))
}
