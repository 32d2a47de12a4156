//! What is really enforced for the sessions that a host's hook holds, and what was changed without it being asked. The
//! tables are in `docs/agents.md`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::Value;
use tenure_projection::core::disclosure::Presence;
use tenure_projection::core::holder::Verdict;
use tenure_projection::core::id::Time;
use tenure_projection::guards::GitRepository;
use tenure_projection::reader::Reader;
use tenure_projection::views::SessionView;

use crate::context::Context;
use crate::fault::Stop;
use crate::hook::Host;
use crate::output::human::Line;
use crate::output::{BAD, DIM, PLAIN, WARN};

use super::super::guard::{changed, is_guarded};
use super::super::install::{self, Installed};

/// Paths listed of one checkout.
const PATHS_SHOWN: usize = 10;

/// A session that a hook holds.
pub struct Hooked {
    session: String,
    host: Host,
    /// Our hook in the settings of its host.
    installed: Option<Installed>,
    /// Whether the commit guard is in place in its checkout, where that is in a repository.
    guarded: Option<bool>,
    /// Files that were changed there, in nobody's scope.
    unaccounted: Vec<PathBuf>,
}

/// Every session that a hook holds and whose holder may live.
///
/// # Errors
/// When the store cannot be read.
pub fn hooked(ctx: &Context, reader: &Reader) -> Result<Vec<Hooked>, Stop> {
    let sessions: Vec<SessionView> = ctx.look(reader, |lens| {
        let living = |s: &SessionView| {
            let holder = s.holder.as_ref();
            s.active && holder.is_some_and(|h| h.verdict != Verdict::Dead)
        };
        Ok(lens.sessions().filter(living).collect())
    })?;
    let mut found = Vec::new();
    for session in sessions {
        let label = session.labels.iter().find(|(key, _)| key == "host");
        let Some(host) =
            label.and_then(|(_, value)| Host::ALL.into_iter().find(|h| h.as_str() == value))
        else {
            continue;
        };
        // What an agent below does is checked by the hook of the session above it.
        if session.parent.is_some() {
            continue;
        }
        let checkout = session.checkout.as_deref().map(PathBuf::from);
        let repository = checkout.and_then(|path| GitRepository::at(&path).ok());
        let top = repository.as_ref().map(|repository| repository.top.clone());
        let unaccounted = match &top {
            Some(top) => unaccounted(ctx, reader, top, session.registered_at.time)?,
            None => Vec::new(),
        };
        found.push(Hooked {
            session: session.name,
            host,
            installed: install::installed(host, top.as_deref()).filter(|i| i.program.is_file()),
            guarded: repository.map(|repository| is_guarded(ctx, &repository)),
            unaccounted,
        });
    }
    Ok(found)
}

/// What git sees changed since then in nobody's declared or observed scope. Where git cannot be asked, nothing is.
fn unaccounted(
    ctx: &Context,
    reader: &Reader,
    top: &Path,
    since: Time,
) -> Result<Vec<PathBuf>, Stop> {
    let mut found = Vec::new();
    for path in changed(top).unwrap_or_default() {
        let path = top.join(OsStr::from_bytes(&path));
        if !is_newer(&path, since) || reader.locate(&path).is_err() {
            continue;
        }
        let (list, _) = reader
            .shared_at(None, std::slice::from_ref(&path))
            .map_err(|error| ctx.fault(&error))?;
        if list.iter().all(|shared| shared.source == Presence::Present) {
            found.push(path);
        }
    }
    Ok(found)
}

fn is_newer(path: &Path, since: Time) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|meta| meta.modified());
    let modified = modified
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    modified.is_some_and(|at| i64::try_from(at.as_micros()).is_ok_and(|at| at >= since.0))
}

impl Hooked {
    /// Whether nothing stops that agent any more.
    pub fn is_loose(&self) -> bool {
        self.installed.is_none()
    }

    /// For programs.
    pub fn object(&self) -> Value {
        let hook = self.installed.as_ref().map(|hook| {
            serde_json::json!({
                "file": hook.file.to_string_lossy(),
                "program": hook.program.to_string_lossy(),
                "on_error": hook.on_error.as_str(),
            })
        });
        let paths: Vec<_> = self
            .unaccounted
            .iter()
            .map(|p| p.to_string_lossy())
            .collect();
        serde_json::json!({
            "session": self.session,
            "host": self.host.as_str(),
            "hook": hook,
            "guard": self.guarded,
            "unaccounted": paths,
        })
    }

    /// For people.
    pub fn lines(&self) -> Vec<Line> {
        let (name, host) = (&self.session, self.host.as_str());
        let mut lines = vec![match &self.installed {
            Some(hook) => {
                let (file, policy) = (hook.file.display(), hook.on_error.as_str());
                (
                    PLAIN,
                    format!(
                        "hook     {name}: {host} asks before its tools ({file}, on-error {policy})"
                    ),
                )
            }
            None => (
                BAD,
                format!(
                    "no-hook  {name}: {host} asks nobody; tenure install {host} puts the hook in"
                ),
            ),
        }];
        lines.extend(self.guarded.map(|guarded| match guarded {
            true => (
                DIM,
                "           git asks before a commit in its checkout".to_owned(),
            ),
            false => (
                DIM,
                "           git asks nobody in its checkout; tenure guard install".to_owned(),
            ),
        }));
        if !self.unaccounted.is_empty() {
            let count = self.unaccounted.len();
            let text = format!(
                "unaccounted  {count} changed in its checkout since it began, and nobody was seen to write there: \
                 by a person, a shell line, or past the hook"
            );
            lines.push((WARN, text));
            let shown = self.unaccounted.iter().take(PATHS_SHOWN);
            lines.extend(shown.map(|path| (PLAIN, format!("  {}", path.display()))));
            if count > PATHS_SHOWN {
                lines.push((PLAIN, format!("  and {} more", count - PATHS_SHOWN)));
            }
        }
        lines
    }
}
