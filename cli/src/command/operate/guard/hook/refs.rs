//! The refs that are to move: which of them are guarded, who claims them, whose commits a branch loses, and under whom a
//! checkout changes its branch (GIT-7, GIT-11, D02, D04).

use std::io::{self, BufRead};
use std::path::Path;

use tenure_projection::call::Verb;
use tenure_projection::checkouts::locate;
use tenure_projection::core::disclosure::{Rule, Shared, rule_at};
use tenure_projection::core::holder::Verdict;
use tenure_projection::core::id::{Name, SessionNo, Token};
use tenure_projection::core::path::Level;
use tenure_projection::guards::{Claim, GitRepository, RefClaim, Switch, head, locate_staged};
use tenure_projection::reader::Reader;
use tenure_projection::views::{HolderView, shown};

use crate::fault::{Fault, Stop};
use crate::output::human;

use super::super::{ask::Row, git};
use super::{BYPASS, Finding, Question, blind, bypass, claims, in_short};

/// Sessions that are told of a switch; whoever is behind them finds it in the checkout.
const TOLD_MAX: usize = 16;

/// A guarded ref that is to move.
pub(super) struct Moving {
    /// As git spells it.
    pub name: Vec<u8>,
    /// Where to: an object, nothing but zeros, or `ref:` and another ref.
    pub new: Vec<u8>,
}

/// Reads what git says of the refs, to the end, and gives those that are guarded.
pub(super) fn guarded() -> Result<Vec<Moving>, Stop> {
    let mut guarded = Vec::new();
    for line in io::stdin().lock().split(b'\n') {
        let line = line.map_err(|error| blind(&format!("the refs cannot be read: {error}")))?;
        let mut words = line.splitn(3, |b| *b == b' ').skip(1);
        let (new, name) = (words.next(), words.next().unwrap_or_default());
        if is_guarded(name) {
            let new = new.unwrap_or_default().to_vec();
            let name = name.to_vec();
            guarded.push(Moving { name, new });
        }
    }
    Ok(guarded)
}

/// The table of refs: a fetch moves what is remote, and what git notes about an operation follows refs that are
/// guarded.
fn is_guarded(name: &[u8]) -> bool {
    let noted = |b: &u8| b.is_ascii_uppercase() || *b == b'_';
    match name {
        b"" => false,
        b"HEAD" => true,
        name if name.starts_with(b"refs/remotes/") => false,
        name => !name.iter().all(noted),
    }
}

/// What moving refs does to another session.
struct Met {
    lines: Vec<String>,
    /// The same for the record.
    short: String,
    rule: Rule,
}

impl Question {
    /// What follows from what others have in the refs that are to move.
    pub(super) fn moved(&self, reader: &Reader, token: Option<Token>) -> Result<Finding, Stop> {
        let top = std::env::current_dir().map_err(|e| Fault::file("find", Path::new("."), e))?;
        let asker = match &token {
            Some(token) => self.look(reader, |lens| {
                lens.state.find(token.name.as_str().as_bytes())
            })?,
            None => None,
        };
        let mut met = self.claimed(reader, asker, &top)?;
        // A place that cannot be located is nobody's place of work.
        let here = reader.shared_at(asker, std::slice::from_ref(&top));
        let here = here.map(|(list, _)| list).unwrap_or_default();
        // Where nobody else is, nobody's commits are lost and nobody's branch changes.
        let (mut switch, mut told) = (None, Vec::new());
        if !here.is_empty() {
            met.extend(self.dropped(reader, asker, &top)?);
            let refs = self.refs.iter().map(|r| (&r.name[..], &r.new[..]));
            switch = head(refs).and_then(|to| GitRepository::at(&top).ok()?.switch(to));
        }
        if let Some(switch) = &switch {
            let found = self.switched(reader, &here, switch)?;
            told = found.1;
            met.extend(found.0);
        }
        let mut lines: Vec<String> = met.iter().flat_map(|m| m.lines.clone()).collect();
        let mut row = match met.iter().map(|m| m.rule).max() {
            None => Row::Clean,
            Some(Rule::Refuse) => Row::Refused,
            Some(Rule::Disclose | Rule::WarnOnce) => Row::Disclosed,
        };
        if row == Row::Refused {
            lines.push("refused: the policy here is refuse".to_owned());
            lines.push(format!(
                "to do it on purpose: {BYPASS}=REASON git ..., which is recorded"
            ));
            if let Some(why) = bypass() {
                let found: Vec<&str> = met.iter().map(|m| &m.short[..]).collect();
                let by = ("reference-transaction", token.clone());
                row = self.pass(row, &found.join("; "), by, &top, why, &mut lines);
            }
        }
        if row.passes()
            && let (Some(switch), Some(token)) = (switch, token)
        {
            lines.extend(self.tell(&told, token, &top, &switch));
        }
        Ok(Finding { row, lines })
    }

    /// Claims of others on the refs (GIT-11).
    fn claimed(
        &self,
        reader: &Reader,
        asker: Option<SessionNo>,
        top: &Path,
    ) -> Result<Vec<Met>, Stop> {
        let found = self.look(reader, |lens| {
            let claims = self
                .refs
                .iter()
                .flat_map(|r| lens.claims_of(asker, &r.name));
            claims.collect::<Vec<RefClaim>>()
        })?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // Where the place cannot be located, what the hook carries is all there is.
        let place = locate(&*self.host, top, top).ok();
        let place = place
            .as_ref()
            .map(|p| p.by_ref().map(|path| path.as_slice()));
        let recorded = self.look(reader, |lens| {
            place.map_or(Rule::Disclose, |place| rule_at(lens.state, &place))
        })?;
        let rule = recorded.max(self.policy.rule());
        let met = |claim: &RefClaim| Met {
            lines: vec![claim_said(claim)],
            short: format!(
                "{} claimed by {} ({})",
                shown(&claim.reference),
                claim.name,
                claim.item
            ),
            rule,
        };
        Ok(found.iter().map(met).collect())
    }

    /// Commits that no branch has any more afterwards, where they changed what other sessions work on (D02).
    fn dropped(
        &self,
        reader: &Reader,
        asker: Option<SessionNo>,
        top: &Path,
    ) -> Result<Vec<Met>, Stop> {
        let branches = self.refs.iter().filter_map(|r| {
            let name = r.name.strip_prefix(b"refs/heads/")?;
            Some((name, &r.new[..]))
        });
        let branches: Vec<(&[u8], &[u8])> = branches.collect();
        if branches.is_empty() {
            return Ok(Vec::new());
        }
        let lost = git::dropped(top, &branches)?;
        if lost.is_empty() {
            return Ok(Vec::new());
        }
        let located =
            locate_staged(&*self.host, top, lost).map_err(|error| blind(&error.to_string()))?;
        let along = self.look(reader, |lens| {
            lens.along(asker, &located, self.policy.rule())
        })?;
        let foreign = along.iter().filter(|a| a.claim == Claim::Foreign);
        let met = foreign.map(|along| {
            let first = "commits that no branch would have any more change".to_owned();
            let lines = std::iter::once(first).chain(claims(along)).collect();
            Met {
                lines,
                short: format!("commits lost: {}", in_short(std::slice::from_ref(along))),
                rule: along.rule,
            }
        });
        Ok(met.collect())
    }

    /// Who else is at work in a checkout whose branch is to change (D04), and the names of those who are told. It is never
    /// refused: by now git has changed the files, and only `HEAD` would stay behind.
    fn switched(
        &self,
        reader: &Reader,
        here: &[Shared],
        switch: &Switch,
    ) -> Result<(Vec<Met>, Vec<String>), Stop> {
        self.look(reader, |lens| {
            let (mut met, mut names) = (Vec::new(), Vec::new());
            let here = here
                .iter()
                .filter(|s| s.level == Level::Tree && s.former.is_none());
            for view in here.map(|shared| lens.shared(shared)) {
                let living = |h: &&HolderView| h.verdict != Verdict::Dead;
                let Some(holder) = view.holder.as_ref().filter(living) else {
                    continue;
                };
                let (name, holder) = (&view.session, human::holder(holder));
                let (from, to) = (&switch.from, &switch.to);
                let works =
                    format!("{name} works in this checkout, which goes from {from} to {to}");
                met.push(Met {
                    lines: vec![format!("{works}: {holder}")],
                    short: format!("branch changed under {name}"),
                    rule: Rule::Disclose,
                });
                names.push(view.session);
            }
            (met, names)
        })
    }

    /// Sends to whoever works in the checkout that its branch changes: they find it at their next look at their mail.
    fn tell(&self, names: &[String], token: Token, top: &Path, switch: &Switch) -> Vec<String> {
        let (from, to) = (&switch.from, &switch.to);
        let top = shown(top.as_os_str().as_encoded_bytes());
        let body =
            format!("{token} switches the checkout {top}, in which you work, from {from} to {to}");
        let mut lines = Vec::new();
        for name in names.iter().take(TOLD_MAX) {
            let Ok(to) = Name::parse(name) else { continue };
            let verb = Verb::Send {
                to,
                body: body.clone().into_bytes(),
                re: None,
            };
            if let Err(failure) = self.write(verb, Some(token.clone())) {
                lines.push(format!("{name} could not be told of it: {failure}"));
            }
        }
        lines
    }
}

fn claim_said(claim: &RefClaim) -> String {
    let RefClaim {
        item,
        dispatch,
        name,
        holder,
        ..
    } = claim;
    let (reference, holder) = (shown(&claim.reference), human::holder(holder));
    format!("{reference} is claimed by {name}, which works on {item} ({dispatch}): {holder}")
}

#[cfg(test)]
mod tests {
    use super::is_guarded;

    /// GIT-7: a fetch is nobody's business; everything that changes what others build on is.
    #[test]
    fn refs_are_guarded_as_the_table_says() {
        for name in [
            "refs/remotes/origin/main",
            "FETCH_HEAD",
            "ORIG_HEAD",
            "AUTO_MERGE",
            "MERGE_HEAD",
            "",
        ] {
            assert!(!is_guarded(name.as_bytes()), "{name}");
        }
        for name in [
            "HEAD",
            "refs/heads/main",
            "refs/tags/v1",
            "refs/stash",
            "refs/notes/commits",
            "refs/bisect/bad",
        ] {
            assert!(is_guarded(name.as_bytes()), "{name}");
        }
    }
}
