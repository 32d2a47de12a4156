//! Who holds, with the verdict of this host now.

use tenure_core::holder::{BootId, HostId, Process, Proof, Verdict, judge};
use tenure_core::id::Time;
use tenure_core::state::Holder;
use tenure_core::text::Pool;

use super::{Lens, shown};
use crate::host::Host;

/// A holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HolderView {
    /// Name of its host, for people.
    pub host: String,
    /// The host's identity.
    pub host_id: HostId,
    /// The boot it was recorded in.
    pub boot: Option<BootId>,
    /// Its process, where one was recorded.
    pub process: Option<Process>,
    /// Its user id.
    pub uid: u32,
    /// claude, codex, gemini, ...
    pub engine: Option<String>,
    /// On whose behalf.
    pub actor: String,
    /// When the record was made.
    pub recorded: Time,
    /// Whether it is still there.
    pub verdict: Verdict,
    /// Why.
    pub evidence: Vec<Proof>,
}

impl HolderView {
    /// The holder, judged by `host` now. `pool` has its texts.
    #[must_use]
    pub fn of(pool: &Pool, holder: &Holder, host: &dyn Host) -> Self {
        let (verdict, evidence) = judge(&holder.bearing, &host.sight(&holder.bearing));
        Self {
            host: shown(pool.get(holder.host_name)),
            host_id: holder.bearing.host,
            boot: holder.bearing.boot,
            process: holder.bearing.process,
            uid: holder.bearing.uid,
            engine: holder.engine.map(|e| shown(pool.get(e))),
            actor: shown(pool.get(holder.actor)),
            recorded: holder.bearing.recorded,
            verdict,
            evidence,
        }
    }

    /// Who it is, in a few words: `claude, pid 4242 on box`.
    #[must_use]
    pub fn label(&self) -> String {
        let who = self.engine.as_deref().unwrap_or(&self.actor);
        match self.process {
            Some(process) => format!("{who}, pid {} on {}", process.pid, self.host),
            None => format!("{who} on {}", self.host),
        }
    }
}

impl Lens<'_> {
    /// A holder of this state.
    #[must_use]
    pub fn holder(&self, holder: &Holder) -> HolderView {
        HolderView::of(&self.state.pool, holder, self.host)
    }
}
