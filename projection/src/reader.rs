//! The reading half of a store: a type that cannot write, takes no lock and changes no byte.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::apply::apply;
use tenure_core::codec::{self, v1};
use tenure_core::disclosure::{Shared, instruction, shared_at};
use tenure_core::event::Entry;
use tenure_core::holder::{Evidence, judge};
use tenure_core::id::{Moment, Position, SessionNo, Time};
use tenure_core::path::Scope;
use tenure_core::redaction::Classes;
use tenure_core::role::RoleScope;
use tenure_core::state::{Located, State};
use tenure_core::text::Pool;
use tenure_log::format::RulesVersion;
use tenure_log::frame::{Depth, FrameRef};
use tenure_log::journal::Deadline;
use tenure_log::position::{self, Head, Receipt, StoreId};
use tenure_log::storage::disk::Disk;

use crate::authority::{About, Held, Interval, Over, Resolved, When, kept};
use crate::call::{self, RoleAt};
use crate::checkouts::locate;
use crate::entry;
use crate::error::{Error, Trace};
use crate::host::Host;
use crate::source::{Looking, Source};
use crate::store::answer::retain_living;
use crate::store::keys::{self, KeyDigest};
use crate::store::live::{Live, Purpose};
use crate::store::marks;
use crate::store::scratch;
use crate::store::snapshot;
use crate::sync::RwLock;

mod entries;

pub use entries::Entries;

/// A store that is only read.
pub struct Reader {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) live: RwLock<Live>,
    /// What was asked for of the past.
    pub(crate) past: kept::Remembered,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let live = self.live.read();
        write!(f, "Reader(at position {})", live.head.position)
    }
}

/// What is known about a command whose answer was lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Known {
    /// It is in the log.
    Done {
        /// Where.
        receipt: Receipt,
        /// When.
        at: Moment,
    },
    /// It is not in the log up to this position, and whatever is not there now was not acknowledged.
    Absent {
        /// How far was looked.
        searched: Position,
    },
}

impl Reader {
    /// Opens the store in a directory for reading. Replays what no snapshot covers.
    ///
    /// # Errors
    /// When there is no store or it cannot be read.
    pub fn open(dir: &Path, host: Arc<dyn Host>) -> Result<Self, Error> {
        let source = Looking::open(Arc::new(Disk), dir)?;
        Self::over(Arc::new(source), host, Purpose::Reading)
    }

    pub(crate) fn over(
        source: Arc<dyn Source>,
        host: Arc<dyn Host>,
        purpose: Purpose,
    ) -> Result<Self, Error> {
        let live = Live::open(&source, purpose)?;
        Ok(Self {
            source,
            host,
            live: RwLock::new(live),
            past: kept::Remembered::default(),
        })
    }

    /// The store's own id.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn id(&self) -> Result<StoreId, Error> {
        Ok(self.source.identity()?.store)
    }

    /// From which position on which version of the rules decided, as the segments say: one entry for each change,
    /// oldest first.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn rules(&self) -> Result<Vec<(Position, RulesVersion)>, Error> {
        let rules = self.source.rules()?.into_iter();
        Ok(rules
            .map(|(first, version)| (Position(first.0), version))
            .collect())
    }

    /// What was taken out of its frames: nothing, unless the store was made from a bundle.
    #[must_use]
    pub fn redacted(&self) -> Classes {
        self.source.redacted()
    }

    /// The clock and process probe it uses.
    #[must_use]
    pub fn host(&self) -> &dyn Host {
        &*self.host
    }

    /// Looks at the newest state that can be shown; what is shown is durable.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn view<R>(&self, look: impl FnOnce(&State) -> R) -> Result<R, Error> {
        self.catch_up()?;
        let live = self.live.read();
        let (head, result) = (live.head, look(&live.state));
        let sound = live.sound();
        drop(live);
        if let Err(error) = sound {
            self.live.write().tainted = true;
            return Err(error);
        }
        self.source.settle(head.position)?;
        Ok(result)
    }

    /// The newest head, after catching up.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn head(&self) -> Result<Head, Error> {
        self.catch_up()?;
        Ok(self.live.read().head)
    }

    /// Waits until there is something behind `position` or the deadline has passed.
    ///
    /// # Errors
    /// [`Error::BeyondHead`] at once when the log does not reach `position`; when the log cannot be read.
    pub fn wait_beyond(&self, position: Position, deadline: Deadline) -> Result<(), Error> {
        Ok(self
            .source
            .wait_beyond(position::Position(position.0), deadline)?)
    }

    /// Reads what others appended.
    pub(crate) fn catch_up(&self) -> Result<(), Error> {
        let newest = self.source.newest()?;
        let live = self.live.read();
        if !live.tainted && live.head.position >= newest {
            return Ok(());
        }
        drop(live);
        self.live.write().catch_up(&self.source)
    }

    /// Every frame from `from` to `to`, both included, as it was written: also what does not stand.
    /// `each` returns whether to go on.
    ///
    /// # Errors
    /// When the log cannot be read, and whatever `each` returns.
    pub fn frames(
        &self,
        from: Position,
        to: Position,
        depth: Depth,
        mut each: impl FnMut(&FrameRef<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let before = position::Position(from.0.saturating_sub(1));
        let mut frames = marks::read_from(&*self.source, before, depth)?;
        while let Some(frame) = frames.next() {
            let frame = frame?;
            if frame.header.position.0 > to.0 || !each(&frame)? {
                break;
            }
        }
        Ok(())
    }

    /// The state after the entry at `position`, by replay from the start.
    ///
    /// # Errors
    /// [`Error::BeyondHead`], or when the log cannot be read.
    pub fn state_at(&self, position: Position) -> Result<State, Error> {
        let head = Position(self.source.newest()?.0);
        if head < position {
            return Err(Error::BeyondHead {
                head,
                asked: position,
            });
        }
        let mut state = State::new();
        scratch::put_away(&mut state, &self.source);
        self.each_entry(Position(1), position, |entry| {
            apply(&mut state, entry);
        })?;
        Ok(state)
    }

    /// The state that the newest snapshot holds, if there is one that fits this log: what opening begins from, to
    /// be compared with a replay.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn snapshot(&self) -> Result<Option<State>, Error> {
        let Some(found) = snapshot::load(&self.source)? else {
            return Ok(None);
        };
        // Whatever is not as it was written shows once everything was looked at.
        let state = found.state;
        drop(codec::encode(&state));
        Ok(found.shelf.is_whole().then_some(state))
    }

    /// The entry at a position of the log.
    pub(crate) fn entry(&self, position: Position) -> Result<Entry, Error> {
        let found = self.entries(position)?.next().transpose()?;
        found.ok_or(Error::BeyondHead {
            head: Position(self.source.newest()?.0),
            asked: position,
        })
    }

    /// A body by where it stands; `None` when it was redacted or never there.
    ///
    /// # Errors
    /// When the frame cannot be read.
    pub fn body(&self, at: Located) -> Result<Option<Vec<u8>>, Error> {
        let mut found = None;
        self.frames(at.position, at.position, Depth::Whole, |frame| {
            let body = v1::decode_body(frame.facts, frame.texts, frame.bodies, at.body.0 as usize);
            let fault = |fault| Error::Facts {
                position: at.position,
                fault,
            };
            found = body.map_err(fault)?.map(<[u8]>::to_vec);
            Ok(false)
        })?;
        Ok(found)
    }

    /// What a host's probe says about who holds a session, which is who holds its tree. `None` where nobody does.
    #[must_use]
    pub fn evidence(&self, state: &State, session: SessionNo) -> Option<Evidence> {
        let root = state.session(session)?.root;
        let (holder, _) = state.tree_holder(root)?;
        let (verdict, proofs) = judge(&holder.bearing, &self.host.sight(&holder.bearing));
        let (session, generation) = state.holding(root)?;
        Some(Evidence {
            session,
            generation,
            verdict,
            proofs,
        })
    }

    /// Locates a path relative to the working directory.
    ///
    /// # Errors
    /// [`Error::Scope`]; [`Error::Redacted`] in a copy without paths, where nothing is found by one.
    pub fn locate(&self, path: &Path) -> Result<Scope<Vec<u8>>, Error> {
        if self.redacted().paths {
            return Err(Error::Redacted { what: "paths" });
        }
        let scope = |source| Error::Scope {
            path: path.to_owned(),
            source: Arc::new(source),
        };
        // Where there is no working directory any more, a relative path names nothing, and is told so.
        let base = std::env::current_dir().unwrap_or_default();
        locate(&*self.host, &base, path).map_err(scope)
    }

    /// Locates the scope of a role, where that is a path.
    ///
    /// # Errors
    /// [`Error::Scope`].
    pub fn locate_role(&self, at: &RoleAt) -> Result<RoleScope<Vec<u8>>, Error> {
        Ok(match &at.scope {
            call::RoleScope::Name(name) => RoleScope {
                text: name.as_str().as_bytes().to_vec(),
                place: None,
            },
            call::RoleScope::Path(path) => {
                let place = self.locate(path)?;
                RoleScope {
                    text: place.path.clone(),
                    place: Some(place),
                }
            }
        })
    }

    /// Who is at work where `paths` are, as `asker` would be told (DSC-10).
    ///
    /// # Errors
    /// When a path cannot be located or the log cannot be read.
    pub fn shared_at(
        &self,
        asker: Option<SessionNo>,
        paths: &[PathBuf],
    ) -> Result<(Vec<Shared>, Option<&'static str>), Error> {
        let located: Vec<_> = paths
            .iter()
            .map(|p| self.locate(p))
            .collect::<Result<_, _>>()?;
        self.view(|state| {
            let scopes: Vec<_> = located.iter().map(|s| s.map(|p| p.as_slice())).collect();
            let mut list = shared_at(state, asker, &scopes);
            retain_living(&*self.host, &mut list);
            let said = instruction(&list);
            (list, said)
        })
    }

    /// Whether the command with that key, or at that receipt, is in the log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn outcome(&self, trace: &Trace) -> Result<Known, Error> {
        self.catch_up()?;
        let (head, prior) = match trace {
            // In one hold of the state: whatever is read anew in between would know of no key.
            Trace::Key(key) => self.live.write().prior(&*self.source, keys::digest(key))?,
            Trace::Receipt(_) => (self.live.read().head, None),
        };
        self.source.settle(head.position)?;
        let absent = Known::Absent {
            searched: Position(head.position.0),
        };
        let position = match trace {
            Trace::Key(_) => prior.map(|prior| prior.position),
            Trace::Receipt(receipt) => {
                let here = receipt.store == self.id()?
                    && receipt.position <= head.position
                    && receipt.position.0 > 0;
                here.then_some(Position(receipt.position.0))
            }
        };
        let Some(position) = position else {
            return Ok(absent);
        };
        let (at, found) = self.frame_head(position)?;
        Ok(match trace {
            Trace::Receipt(receipt) if found.chain != receipt.chain => absent,
            _ => Known::Done {
                receipt: self.receipt(found)?,
                at,
            },
        })
    }

    /// Catches up, and looks these keys up.
    pub(crate) fn ready(&self, keys: &[KeyDigest]) -> Result<Head, Error> {
        self.catch_up()?;
        if keys.is_empty() {
            return Ok(self.live.read().head);
        }
        let mut live = self.live.write();
        for key in keys {
            live.look_up(&*self.source, *key)?;
        }
        Ok(live.head)
    }

    /// When a frame was written, and its head.
    pub(crate) fn frame_head(&self, position: Position) -> Result<(Moment, Head), Error> {
        let mut found = None;
        self.frames(position, position, Depth::Facts, |frame| {
            found = Some((entry::moment(&frame.header), frame.header.head()));
            Ok(false)
        })?;
        let head = Position(self.live.read().head.position.0);
        found.ok_or(Error::BeyondHead {
            head,
            asked: position,
        })
    }

    /// Every stretch in which a subject was held. Costs the frames behind the newest snapshot and a few pages beside
    /// it, however long the log is; where those are missing, the log is read.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn held(&self, about: &About) -> Result<Held, Error> {
        Held::read(self, about)
    }

    /// The stretch that covers a place in the log, with the texts of its holder; `None` where nobody held it.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn held_at(&self, about: &About, when: When) -> Result<Option<(Interval, Pool)>, Error> {
        Held::read_at(self, about, when)
    }

    /// Who had declared work over a path at a position: every active binding whose dispatch has a write scope that
    /// meets it there. Costs what [`Reader::held`] does, and a look at the frame that gave each binding's dispatch.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn held_over(&self, path: &Scope<Vec<u8>>, at: Position) -> Result<Over, Error> {
        Over::read(self, path, at)
    }

    /// Where in the log a time is.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn resolve(&self, time: Time) -> Result<Resolved, Error> {
        kept::resolve(&self.source, time)
    }

    /// When the frame at a position was written; zero for position 0, before the first.
    ///
    /// # Errors
    /// [`Error::BeyondHead`], or when the log cannot be read.
    pub fn written_at(&self, position: Position) -> Result<Time, Error> {
        if position.0 == 0 {
            return Ok(Time::default());
        }
        Ok(self.frame_head(position)?.0.time)
    }

    /// The receipt of a position.
    ///
    /// # Errors
    /// [`Error::BeyondHead`], or when the log cannot be read.
    pub fn receipt_at(&self, position: Position) -> Result<Receipt, Error> {
        self.receipt(self.frame_head(position)?.1)
    }

    /// The receipt of a head.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn receipt(&self, head: Head) -> Result<Receipt, Error> {
        Ok(Receipt {
            store: self.id()?,
            position: head.position,
            chain: head.chain,
        })
    }
}
