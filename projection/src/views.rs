//! What a state and its log say, as owned values that can be printed: sessions, work, mail, refusals, events.
//!
//! A [`Lens`] looks: it joins the state with the texts and bodies that only the log has, and with what the host
//! can say about holders now. It changes nothing.

use tenure_core::command::Request;
use tenure_core::event::Entry;
use tenure_core::id::{Position, SessionNo};
use tenure_core::redaction;
use tenure_core::state::{Located, State};
use tenure_core::text::Symbol;
use tenure_log::frame::{Depth, Frame};
use tenure_log::journal::CounterTag;

use crate::entry;
use crate::error::Error;
use crate::host::Host;
use crate::reader::Reader;

mod event;
mod holder;
mod lineage;
mod mail;
mod refusal;
mod role;
mod session;
mod standing;
mod tree;
mod who;
mod work;

pub use event::{EventView, Field, events};
pub use holder::HolderView;
pub use lineage::{Kinship, LineageView};
pub use mail::EnvelopeView;
pub(crate) use refusal::code_word;
pub use refusal::{RefusalView, Stored};
pub use role::{PolicyView, RoleView, ToldView};
pub use session::{BranchView, FormerView, SessionView};
pub use standing::{CheckView, LossView};
pub use tree::TreeView;
pub use who::{PointView, WhoView};
pub use work::{DispatchView, SharedView};

/// Where single frames are fetched from, for what a state does not keep.
pub trait Shelf {
    /// The frame at a position; `None` when the log does not reach it.
    ///
    /// # Errors
    /// When it cannot be read.
    fn frame(&self, at: Position) -> Result<Option<Frame>, Error>;

    /// What was counted beside the log under a tag; statistics, zero where nothing is counted.
    ///
    /// # Errors
    /// When it cannot be read.
    fn counted(&self, tag: CounterTag) -> Result<u64, Error>;
}

impl Shelf for Reader {
    fn frame(&self, at: Position) -> Result<Option<Frame>, Error> {
        let mut found = None;
        self.frames(at, at, Depth::Whole, |frame| {
            found = Some(frame.to_owned());
            Ok(false)
        })?;
        Ok(found)
    }

    fn counted(&self, tag: CounterTag) -> Result<u64, Error> {
        Ok(self.source.counted(tag)?)
    }
}

/// A look at one state.
#[derive(Clone, Copy)]
pub struct Lens<'a> {
    /// The state.
    pub state: &'a State,
    /// Judges holders.
    pub host: &'a dyn Host,
    /// Fetches frames.
    pub shelf: &'a dyn Shelf,
}

impl Lens<'_> {
    /// A text of the state's pool; bytes that are not UTF-8 are written as `\xNN`.
    fn text(&self, symbol: Symbol) -> String {
        shown(self.state.pool.get(symbol))
    }

    fn name(&self, session: SessionNo) -> String {
        self.state.name(session)
    }

    fn body(&self, at: Option<Located>) -> Result<Option<Vec<u8>>, Error> {
        let Some(at) = at else { return Ok(None) };
        let Some((_, request)) = self.frame(at.position)? else {
            return Ok(None);
        };
        Ok(request.bodies.get(at.body).map(<[u8]>::to_vec))
    }

    /// A frame, decoded both ways.
    pub(crate) fn frame(&self, at: Position) -> Result<Option<(Entry, Request)>, Error> {
        let Some(frame) = self.shelf.frame(at)? else {
            return Ok(None);
        };
        let frame = frame.by_ref();
        Ok(Some((
            entry::decode(&frame)?,
            entry::decode_request(&frame)?,
        )))
    }
}

/// Bytes as a text: what is not UTF-8 is written as `\xNN`.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    if bytes
        .split(|byte| *byte == b'/')
        .any(|part| redaction::number_of(part).is_some())
    {
        let parts = bytes.split(|byte| *byte == b'/');
        let parts = parts.map(|part| redaction::told(part).unwrap_or_else(|| spelled(part)));
        return parts.collect::<Vec<_>>().join("/");
    }
    spelled(bytes)
}

fn spelled(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}
