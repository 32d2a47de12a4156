//! Copies what can be read of a damaged store into a new one, and says what may be missing (`docs/recovery.md`).
//!
//! The source is read twice: first to know what is lost and what later frames still say of it, then to write. Nothing
//! of it is changed. The new store is written under another name beside its place, and gets its own name once it is
//! whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::id::{Position, SessionNo};
use tenure_log::look::PlainDirectory;
use tenure_log::salvage::{self, Report as Bytes};
use tenure_log::storage::Storage;
use tenure_log::storage::disk::Disk;
use tenure_log::verify::{Options, Outcome, verify};

use crate::error::Error;
use crate::host::Host;

mod chronicle;
mod loss;
mod place;
mod rights;

pub use loss::{ItemLoss, KeyLoss, LostKey, RoleLoss, SessionLoss, TreeLoss};

use chronicle::Chronicle;
use place::{Building, Guard};

/// Where the new store goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Nowhere: only the report is made.
    DryRun,
    /// Into a directory that is not there, or is empty.
    Directory(PathBuf),
    /// To the source's own place. The damaged store is kept beside it, under its name with `.damaged-N`.
    InPlace,
}

/// What is to be salvaged, for whom, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// The damaged store.
    pub source: PathBuf,
    /// Where the new one goes.
    pub target: Target,
    /// On whose behalf; by default the user.
    pub actor: Option<String>,
    /// Why; kept in the frame that begins the new life.
    pub reason: String,
}

/// What a salvage did, or would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// What became of the bytes.
    pub bytes: Bytes,
    /// Sessions that may be affected, by number.
    pub sessions: Vec<SessionLoss>,
    /// Work that may be affected, by number.
    pub items: Vec<ItemLoss>,
    /// Roles that may be affected, by number.
    pub roles: Vec<RoleLoss>,
    /// Trees of several sessions that may be affected, by the number of the root.
    pub trees: Vec<TreeLoss>,
    /// What is known of idempotency keys.
    pub keys: KeyLoss,
    /// How many envelopes were issued in lost frames, as far as later numbers tell.
    pub envelopes: u64,
    /// Where the new store is; none for a dry run.
    pub store: Option<PathBuf>,
    /// Where the damaged one is now, if it was moved.
    pub damaged: Option<PathBuf>,
}

impl Report {
    /// How many positions are lost.
    #[must_use]
    pub fn positions_lost(&self) -> u64 {
        let ranges = self.bytes.lost.iter();
        ranges
            .map(|lost| {
                let first = lost.positions.first;
                lost.positions.last.unwrap_or(first).0 - first.0 + 1
            })
            .sum()
    }

    /// Bytes of texts and bodies in frames that are lost, as far as their headers can be read.
    #[must_use]
    pub fn body_bytes_lost(&self) -> u64 {
        let headers = self.bytes.quarantine.iter().filter_map(|kept| kept.header);
        headers
            .map(|header| u64::from(header.texts_len) + u64::from(header.bodies_len))
            .sum()
    }
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Bytes of the source gone through, in both passes together.
    pub done_bytes: u64,
    /// Bytes there are to go through, in both passes together.
    pub all_bytes: u64,
}

/// Copies what can be read of a store into a new one. The new store keeps the old one's name, has another salt, and
/// begins a new incarnation behind everything that was kept: no token that was ever granted before is current in it.
///
/// Disk: as much as the source has frames. Memory: one state, the report, and a few megabytes.
///
/// # Errors
/// When there is no store to be read, the target is taken, somebody writes to the source meanwhile, or the system
/// refuses. Nothing is then left at the target, and the source is as it was.
pub fn run(
    order: &Order,
    host: &dyn Host,
    watch: &mut dyn FnMut(Progress),
) -> Result<Report, Error> {
    let look = PlainDirectory::new(&order.source);
    let storage: Arc<dyn Storage> = Arc::new(Disk);
    let guard = Guard::over(&order.source)?;
    let building = match &order.target {
        Target::DryRun => None,
        Target::Directory(path) => Some(Building::begin(path, false)?),
        Target::InPlace => {
            guard.nobody_has_it_open()?;
            Some(Building::begin(&order.source, true)?)
        }
    };
    let passes = 1 + u64::from(building.is_some());
    let mut progress = Progress {
        done_bytes: 0,
        all_bytes: guard.bytes() * passes,
    };
    let mut count = |bytes: u64| {
        progress.done_bytes += bytes;
        watch(progress);
    };
    let mut survey = Chronicle::new(order, host, &mut count)?;
    let bytes = salvage::salvage(&look, &storage, None, &mut survey)?;
    let (mut report, names) = survey.report(bytes)?;
    let Some(building) = building else {
        return Ok(report);
    };
    let mut writing = Chronicle::new(order, host, &mut count)?.with_names(names);
    let bytes = salvage::salvage(&look, &storage, Some(building.path()), &mut writing)?;
    (report, _) = writing.report(bytes)?;
    is_whole(building.path())?;
    let (store, damaged) = match order.target {
        Target::InPlace => building.exchange(&order.source, &guard)?,
        _ => {
            guard.is_unchanged()?;
            (building.name()?, None)
        }
    };
    (report.store, report.damaged) = (Some(store), damaged);
    Ok(report)
}

/// Reads the new store once more before it gets its name.
fn is_whole(path: &Path) -> Result<(), Error> {
    let report = verify(&PlainDirectory::new(path), &Options::default());
    if report.outcome == Outcome::Clean {
        return Ok(());
    }
    let found = report.findings.first().map(|f| &f.kind);
    Err(Error::Described(format!(
        "what was written to {} does not read back: {found:?}; the disk may be failing",
        path.display()
    )))
}

/// What a session is called whose name the log does not have any more.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The frame names that are put back: the session introduced at a lost position, and its name.
type Names = std::collections::BTreeMap<Position, (SessionNo, Vec<u8>)>;
