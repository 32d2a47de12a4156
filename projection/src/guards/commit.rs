//! Whose paths a commit takes along (GIT-9, GIT-10, GIT-12).
//!
//! | row | whose scope a staged path lies in | counted as |
//! |---|---|---|
//! | own | only the committer's own, or nobody's | nothing |
//! | stale | a session that nobody holds, or whose holder is provably dead | stale |
//! | former | a former holder that was never proven dead | former |
//! | present | a session that only said that it works in this checkout | present |
//! | foreign | a live session, by a working dispatch or by what it was seen to write | foreign |
//!
//! What counts is the checkout that is committed to, whatever directory the caller is in.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tenure_core::disclosure::{Presence, Rule, shared_under};
use tenure_core::generation::Generation;
use tenure_core::holder::Verdict;
use tenure_core::id::{DispatchNo, SessionNo};
use tenure_core::path::{Level, Scope, overlap};
use tenure_core::state::Holder;
use tenure_core::text::Symbol;

use crate::checkouts::{CheckoutError, locate};
use crate::host::Host;
use crate::views::{HolderView, Lens};

/// A path that a commit would change.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Staged {
    /// From the top of the checkout, as git spells it.
    pub path: Vec<u8>,
    /// Whether the commit removes it.
    pub deleted: bool,
}

/// How another session's claim on a staged path counts: the rows of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Claim {
    /// Row foreign.
    Foreign,
    /// Row former.
    Former,
    /// Row present.
    Present,
    /// Row stale.
    Stale,
}

impl Claim {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Former => "former",
            Self::Present => "present",
            Self::Stale => "stale",
        }
    }
}

/// Another session's paths in a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Along {
    /// Which session.
    pub session: SessionNo,
    /// Its name.
    pub name: String,
    /// For a former holder: the generation it held.
    pub former: Option<Generation>,
    /// How its claim counts.
    pub claim: Claim,
    /// Who holds it, with the verdict on that.
    pub holder: Option<HolderView>,
    /// How it is known that it works there.
    pub source: Presence,
    /// Its dispatches whose scopes the paths lie in.
    pub dispatches: Vec<DispatchNo>,
    /// What the policies say of the places where it meets the commit, for a foreign claim.
    pub rule: Rule,
    /// Whether the asker's holder has been shown it before.
    pub known: bool,
    /// Which staged paths; for a session that is only present, all of them.
    pub paths: Vec<Staged>,
}

impl Along {
    /// How many of its paths the commit removes.
    #[must_use]
    pub fn deleted(&self) -> usize {
        self.paths.iter().filter(|staged| staged.deleted).count()
    }
}

/// Staged paths with the scopes that they are.
#[derive(Clone, Debug)]
pub struct Located {
    staged: Vec<(Staged, Scope<Vec<u8>>)>,
    top: Scope<Vec<u8>>,
}

/// Locates the staged paths of the checkout whose top is `top`. Each directory is looked at once.
///
/// # Errors
/// [`CheckoutError`] when a directory cannot be located.
pub fn locate_staged(
    host: &dyn Host,
    top: &Path,
    staged: Vec<Staged>,
) -> Result<Located, CheckoutError> {
    let mut directories: BTreeMap<Vec<u8>, Scope<Vec<u8>>> = BTreeMap::new();
    let mut located = Vec::with_capacity(staged.len());
    for staged in staged {
        let (directory, name) = match staged.path.iter().rposition(|b| *b == b'/') {
            Some(slash) => (&staged.path[..slash], &staged.path[slash + 1..]),
            None => (&[][..], &staged.path[..]),
        };
        let mut scope = match directories.get(directory) {
            Some(known) => known.clone(),
            None => {
                let path = top.join(OsStr::from_bytes(directory));
                let scope = locate(host, top, &path)?;
                directories.insert(directory.to_vec(), scope.clone());
                scope
            }
        };
        scope.path.push(b'/');
        scope.path.extend_from_slice(name);
        located.push((staged, scope));
    }
    Ok(Located {
        staged: located,
        top: locate(host, top, top)?,
    })
}

/// A scope with its path as bytes, to be compared often.
type Bytes<'a> = Scope<&'a [u8]>;

fn bytes(scope: &Scope<Vec<u8>>) -> Bytes<'_> {
    scope.by_ref().map(|path| path.as_slice())
}

/// Whether a staged path lies in a scope, or holds it.
fn meets(mine: &Bytes<'_>, theirs: &Bytes<'_>) -> bool {
    overlap(mine, theirs, |path| path) == Some(Level::Tree)
}

/// Staged paths, ready to be compared.
struct Compared<'a> {
    staged: Vec<(&'a Staged, Bytes<'a>)>,
    top: Bytes<'a>,
}

impl Lens<'_> {
    /// Whose paths a commit takes along, as `asker` would be told; foreign ones first, then by session. `least` is the
    /// rule that applies where no stricter one was recorded.
    #[must_use]
    pub fn along(&self, asker: Option<SessionNo>, located: &Located, least: Rule) -> Vec<Along> {
        let located = &Compared {
            staged: located
                .staged
                .iter()
                .map(|(s, at)| (s, bytes(at)))
                .collect(),
            top: bytes(&located.top),
        };
        let mut found = Vec::new();
        for (number, session) in self.state.sessions.iter().enumerate() {
            let number = SessionNo(number as u64);
            for former in &session.formers {
                let places = former.places.iter();
                let places = places.map(|p| (p.source, p.dispatch, &p.scope));
                let by = (number, Some((former.generation, former.holder)));
                found.extend(self.claimed_there(asker, by, places, located));
            }
            if Some(number) != asker && !session.retired {
                let places = self.state.presence(number);
                found.extend(self.claimed_there(asker, (number, None), places, located));
            }
        }
        found.sort_by_key(|along| (along.claim, along.session));
        self.rule(asker, located, least, &mut found);
        found
    }

    /// Adds to foreign claims what the policies say of them.
    fn rule(
        &self,
        asker: Option<SessionNo>,
        located: &Compared<'_>,
        least: Rule,
        found: &mut [Along],
    ) {
        let foreign: BTreeSet<&Staged> = found
            .iter()
            .filter(|along| along.claim == Claim::Foreign)
            .flat_map(|along| &along.paths)
            .collect();
        let staged = located.staged.iter();
        let scopes: Vec<Bytes<'_>> = staged
            .filter(|(staged, _)| foreign.contains(staged))
            .map(|(_, scope)| scope.clone())
            .collect();
        let met = shared_under(self.state, asker, &scopes, least);
        for along in found
            .iter_mut()
            .filter(|along| along.claim == Claim::Foreign)
        {
            let there = met
                .iter()
                .find(|m| m.session == along.session && m.former.is_none());
            along.rule = there.map_or(Rule::Disclose, |there| there.rule);
        }
    }

    fn claimed_there<'s>(
        &self,
        asker: Option<SessionNo>,
        (session, former): (SessionNo, Option<(Generation, Holder)>),
        places: impl Iterator<Item = (Presence, Option<DispatchNo>, &'s Scope<Symbol>)>,
        located: &Compared<'_>,
    ) -> Option<Along> {
        let mut source: Option<Presence> = None;
        let mut dispatches: Vec<DispatchNo> = Vec::new();
        let mut paths: BTreeMap<usize, &Staged> = BTreeMap::new();
        for (presence, dispatch, scope) in places {
            let theirs = scope.map(|symbol| self.state.pool.get(*symbol));
            // Most sessions work elsewhere, and one look tells.
            if !meets(&located.top, &theirs) {
                continue;
            }
            let mut matched = false;
            for (at, (staged, mine)) in located.staged.iter().enumerate() {
                if meets(mine, &theirs) {
                    matched = true;
                    paths.insert(at, staged);
                }
            }
            if !matched {
                continue;
            }
            // The strongest source speaks, and a checkout that somebody is merely in adds nothing to it.
            if source.is_none_or(|known| presence < known) {
                source = Some(presence);
            }
            if let Some(dispatch) = dispatch.filter(|d| !dispatches.contains(d)) {
                dispatches.push(dispatch);
            }
        }
        let source = source?;
        let record = self.state.session(session)?;
        let held = match former {
            Some((_, holder)) => Some(holder),
            // A session of a tree is held with it.
            None => self
                .state
                .tree_holder(record.root)
                .map(|(holder, _)| holder),
        };
        let holder = held.map(|holder| self.holder(&holder));
        let dead = holder.as_ref().is_none_or(|h| h.verdict == Verdict::Dead);
        if former.is_some() && dead {
            return None;
        }
        let claim = match source {
            _ if former.is_some() => Claim::Former,
            _ if dead => Claim::Stale,
            Presence::Present => Claim::Present,
            Presence::Declared | Presence::Observed => Claim::Foreign,
        };
        Some(Along {
            session,
            name: self.state.name(session),
            former: former.map(|(generation, _)| generation),
            claim,
            holder,
            source,
            dispatches,
            rule: Rule::Disclose,
            known: self.knows(asker, session, former.map(|(generation, _)| generation)),
            paths: paths.into_values().cloned().collect(),
        })
    }

    /// Whether the asker's holder has been shown that grant.
    fn knows(
        &self,
        asker: Option<SessionNo>,
        session: SessionNo,
        former: Option<Generation>,
    ) -> bool {
        let asker = asker.and_then(|asker| self.state.session(asker));
        let current = self.state.session(session).map(|s| s.generation);
        let generation = former.or(current);
        asker
            .zip(generation)
            .is_some_and(|(a, g)| a.knows(session, g))
    }
}
