//! `doctor`: who is still there, and what dead holders, git and older schemes left. With `--fix` it releases exactly
//! what is provable, through the store.

use std::path::PathBuf;

use serde_json::Value;
use tenure_projection::call::Verb;
use tenure_projection::core::refusal::Code;
use tenure_projection::doctor::{ClaimView, Death, Held, Leftover, leftovers};
use tenure_projection::guards::{GitRepository, LockVerdict, Locks, locks};
use tenure_projection::store::Store;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed};
use crate::output::human::{self, Line};
use crate::output::{BAD, DIM, HEAD, Object, PLAIN, WARN, json};

use super::guard::status::{lock_lines, lock_object};

mod hooked;

use hooked::Hooked;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Release what provably dead holders hold
    #[arg(long)]
    fix: bool,
}

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It was left alone.
    Left,
    /// It was released.
    Released,
    /// It is another claim by now, or nobody's.
    Changed,
}

impl Args {
    /// Looks, and releases where it is asked to.
    ///
    /// # Errors
    /// When the store cannot be read, or with `--fix` not be written.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let reader = ctx.reading()?;
        let (claims, checkouts) =
            ctx.look(&reader, |lens| Ok((lens.claims(), lens.checkouts())))?;
        let places = places(ctx, checkouts)?;
        let host = ctx.host();
        let left = leftovers(&*host, &places);
        let locks = git_locks(ctx, &places);
        let hooks = hooked::hooked(ctx, &reader)?;
        let mut fates = vec![Fate::Left; claims.len()];
        if self.fix && claims.iter().any(|c| c.death.is_some()) {
            let store = ctx.store()?;
            for (claim, fate) in claims.iter().zip(&mut fates) {
                if claim.death.is_some() && claim.stands_alone() {
                    *fate = release(ctx, &store, claim)?;
                }
            }
        }
        let found = Found {
            claims,
            fates,
            locks,
            left,
            hooks,
        };
        if ctx.out.is_json() {
            ctx.out.object(&found.object())?;
        } else {
            ctx.out.lines(found.lines())?;
        }
        Ok(if found.is_clean() {
            Exit::DONE
        } else {
            Exit::NEGATIVE
        })
    }
}

/// Where to look for what is no part of the store: its own directory, where this runs, and where sessions work.
fn places(ctx: &Context, checkouts: Vec<PathBuf>) -> Result<Vec<PathBuf>, Stop> {
    let mut places = checkouts;
    places.push(ctx.dir()?);
    let here = std::env::current_dir().ok();
    places.extend(here.map(|here| GitRepository::at(&here).map_or(here, |found| found.top)));
    let mut places: Vec<PathBuf> = places
        .into_iter()
        .filter_map(|place| place.canonicalize().ok())
        .collect();
    places.sort();
    places.dedup();
    Ok(places)
}

/// The lock files of every repository in these places, each repository once. One that cannot be looked at is no reason
/// to say nothing of the others.
fn git_locks(ctx: &Context, places: &[PathBuf]) -> Locks {
    let mut repositories: Vec<GitRepository> = places
        .iter()
        .filter_map(|place| GitRepository::at(place).ok())
        .collect();
    repositories.sort_by(|a, b| a.common.cmp(&b.common));
    repositories.dedup_by(|a, b| a.common == b.common);
    let host = ctx.host();
    let mut all = Locks::default();
    for found in repositories.iter().filter_map(|r| locks(&*host, r).ok()) {
        all.found.extend(found.found);
        all.cut |= found.cut;
    }
    all
}

/// Releases one claim. The store looks again and decides under its lock: a claim made meanwhile is another, and stays
/// (LIV-14).
fn release(ctx: &Context, store: &Store, claim: &ClaimView) -> Result<Fate, Stop> {
    let verb = match &claim.held {
        Held::Role(_) => Verb::LapseRole {
            at: input::role_at(&claim.name)?,
        },
        _ => Verb::ReleaseDead {
            name: input::name(&claim.name)?,
        },
    };
    match ctx.execute(store, Mutation::new(verb, &Keyed::default())) {
        Ok(done) if done.repeated => Ok(Fate::Changed),
        Ok(_) => Ok(Fate::Released),
        Err(Stop::Refused(refusal)) if matches!(refusal.code, Ok(Code::Held | Code::RoleHeld)) => {
            Ok(Fate::Changed)
        }
        Err(stop) => Err(stop),
    }
}

/// Everything that was found.
struct Found {
    claims: Vec<ClaimView>,
    fates: Vec<Fate>,
    locks: Locks,
    left: Vec<Leftover>,
    hooks: Vec<Hooked>,
}

impl Found {
    /// Claims that are stale by themselves, with what became of each.
    fn stale(&self) -> impl Iterator<Item = (&ClaimView, Fate)> {
        let all = self.claims.iter().zip(self.fates.iter().copied());
        all.filter(|(claim, _)| claim.death.is_some() && claim.stands_alone())
    }

    fn count(&self, death: Death) -> usize {
        self.stale()
            .filter(|(claim, _)| claim.death == Some(death))
            .count()
    }

    fn became(&self, fate: Fate) -> usize {
        self.stale().filter(|(_, became)| *became == fate).count()
    }

    fn is_clean(&self) -> bool {
        let git = self
            .locks
            .found
            .iter()
            .any(|lock| lock.verdict == LockVerdict::Left);
        let loose = self.hooks.iter().any(Hooked::is_loose);
        self.stale().next().is_none() && self.left.is_empty() && !git && !loose
    }

    /// `8 = 3 of an earlier boot + 5 without process`.
    fn sum(&self) -> String {
        let all = self.stale().count();
        let parts: Vec<String> = Death::ALL
            .into_iter()
            .map(|death| (self.count(death), death.counted()))
            .filter(|(count, _)| *count > 0)
            .map(|(count, counted)| format!("{count} {counted}"))
            .collect();
        format!("{all} = {}", parts.join(" + "))
    }

    fn object(&self) -> Object {
        let claims: Vec<Value> = self
            .claims
            .iter()
            .zip(&self.fates)
            .map(|(claim, fate)| {
                let through = match &claim.held {
                    Held::Member(name) | Held::Role(name) => Some(name.as_str()),
                    Held::Session | Held::Tree => None,
                };
                serde_json::json!({
                    "kind": claim.held.as_str(),
                    "name": claim.name,
                    "through": through,
                    "holder": json::holder(&claim.holder),
                    "verdict": claim.holder.verdict.as_str(),
                    "dead_by": claim.death.map(Death::as_str),
                    "released": *fate == Fate::Released,
                })
            })
            .collect();
        let left: Vec<Value> = self
            .left
            .iter()
            .map(|left| {
                let proofs: Vec<&str> = left.proofs.iter().map(|p| p.as_str()).collect();
                serde_json::json!({
                    "path": left.path.to_string_lossy(),
                    "pid": left.pid,
                    "verdict": left.verdict.as_str(),
                    "evidence": proofs,
                })
            })
            .collect();
        let counts = serde_json::json!({
            "stale": self.stale().count(),
            "earlier_boot": self.count(Death::EarlierBoot),
            "no_process": self.count(Death::NoProcess),
            "recycled": self.count(Death::Recycled),
            "released": self.became(Fate::Released),
            "changed": self.became(Fate::Changed),
        });
        Object::new("doctor")
            .with("claims", claims)
            .with("counts", counts)
            .with(
                "locks",
                self.locks.found.iter().map(lock_object).collect::<Vec<_>>(),
            )
            .with("leftovers", left)
            .with(
                "hooks",
                self.hooks.iter().map(Hooked::object).collect::<Vec<_>>(),
            )
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for (claim, fate) in self.claims.iter().zip(&self.fates) {
            let through = match &claim.held {
                Held::Member(root) => format!(", held with the tree of {root}"),
                Held::Role(session) => format!(", held by {session}"),
                Held::Session | Held::Tree => String::new(),
            };
            let fate = match fate {
                Fate::Left => "",
                Fate::Released => "; released",
                Fate::Changed => "; it is another claim by now, and stays",
            };
            let style = if claim.death.is_some() { BAD } else { PLAIN };
            let (kind, holder) = (claim.held.as_str(), human::holder(&claim.holder));
            lines.push((
                style,
                format!("{kind:<8} {}{through}: {holder}{fate}", claim.name),
            ));
        }
        lines.extend(self.hooks.iter().flat_map(Hooked::lines));
        lines.extend(lock_lines(&self.locks));
        for left in &self.left {
            let proofs: Vec<&str> = left.proofs.iter().map(|p| p.as_str()).collect();
            let pid = left
                .pid
                .map_or_else(|| "nobody".to_owned(), |pid| format!("pid {pid}"));
            lines.push((
                WARN,
                format!(
                    "{}: of an older scheme, never consulted; names {pid}: {} ({})",
                    left.path.display(),
                    left.verdict.as_str(),
                    proofs.join("; ")
                ),
            ));
        }
        let stale = self.stale().count();
        if stale > 0 {
            lines.push((HEAD, format!("stale: {}", self.sum())));
            let (released, changed) = (self.became(Fate::Released), self.became(Fate::Changed));
            let then = match (released, changed) {
                (0, 0) => "tenure doctor --fix  releases them; their tokens are stale from then on"
                    .to_owned(),
                (released, 0) => format!("released: {released}"),
                (released, changed) => format!("released: {released}; {changed} changed meanwhile"),
            };
            lines.push((PLAIN, then));
        } else {
            lines.push((DIM, "no claim is provably stale".to_owned()));
        }
        lines
    }
}
