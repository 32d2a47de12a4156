//! `log`: the events of the log, and those to come.

use std::path::PathBuf;
use std::time::Duration;

use tenure_projection::core::event::Event;
use tenure_projection::core::generation::Generation;
use tenure_projection::core::id::Position;
use tenure_projection::log::frame::Depth;
use tenure_projection::log::journal::Deadline;
use tenure_projection::log::position::{Head, Receipt};
use tenure_projection::reader::Reader;
use tenure_projection::views::{EventView, Field, events};

use crate::clock::When;
use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input;
use crate::output::{human, json};

use super::super::find;

mod cursor;

use cursor::Cursor;

/// How long to sleep at most where nothing tells that the log went on.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The shortest beginning of a boot's id that is taken for it.
const BOOT_DIGITS_MIN: usize = 6;

/// Arguments of `log`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only events about this session: its name, or the beginning of it (at least 6 characters)
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Only events of this kind: registered, adopted, reported, refused, ...
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only events under this generation
    #[arg(long, value_name = "G")]
    generation: Option<String>,
    /// Only grants to holders on this host, by its name
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only grants to holders in this boot of a host: its id, or the beginning of it (at least 6 characters)
    #[arg(long, value_name = "BOOT")]
    boot: Option<String>,
    /// From a position, time or age on
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Up to a position, time or age
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Only what stands behind this position or receipt; a receipt of another past is an error
    #[arg(long, value_name = "CURSOR", conflicts_with = "cursor_file")]
    after_cursor: Option<String>,
    /// Begin behind the receipt in this file, if it is there, and leave the newest one in it
    #[arg(long, value_name = "FILE")]
    cursor_file: Option<PathBuf>,
    /// Wait for what is still to come
    #[arg(short, long, conflicts_with = "until")]
    follow: bool,
    /// Only the last N
    #[arg(short = 'n', value_name = "N")]
    last: Option<usize>,
}

/// Which events are meant.
struct Filter {
    session: Option<String>,
    kinds: Vec<String>,
    generation: Option<Generation>,
    host: Option<String>,
    /// How the id of the boot begins.
    boot: Option<String>,
    since: Option<When>,
    until: Option<When>,
}

impl Args {
    /// Prints the events.
    ///
    /// # Errors
    /// When a place or cursor is not in the log, or the log cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let filter = self.filter()?;
        let reader = ctx.reading()?;
        let filter = filter.named(ctx, &reader)?;
        let cursor = Cursor::open(self.after_cursor.as_deref(), self.cursor_file.as_deref())?;
        let mut seen = cursor.begin(ctx, &reader)?;
        let head = reader.head().map_err(|error| ctx.fault(&error))?;
        let from = match (filter.since, self.last) {
            (Some(When::At(since)), _) => Position(since.0.max(seen.position.0 + 1)),
            (None, Some(last)) if filter.is_open() => {
                // Every frame has an event: more frames than that are not needed.
                let skipped = head.position.0.saturating_sub(last as u64);
                Position(skipped.max(seen.position.0) + 1)
            }
            _ => Position(seen.position.0 + 1),
        };
        seen = self.tail(ctx, &reader, &filter, from, seen)?;
        cursor.leave(ctx, &reader, seen)?;
        if self.follow {
            return Err(go_on(ctx, &reader, &filter, &cursor, seen));
        }
        Ok(Exit::DONE)
    }

    fn filter(&self) -> Result<Filter, Stop> {
        let generation = self.generation.as_deref().map(|text| {
            Generation::parse(text).ok_or_else(|| {
                Stop::from(Fault::usage(format!(
                    "{text:?} is no generation, a whole number from 1"
                )))
            })
        });
        if let Some(kind) = self.kind.iter().find(|kind| !is_kind(kind)) {
            let message = format!("{kind:?} is no kind of event; docs/facts.md lists them");
            return Err(Fault::usage(message).into());
        }
        Ok(Filter {
            session: self.session.clone(),
            kinds: self.kind.clone(),
            generation: generation.transpose()?,
            host: self.host.clone(),
            boot: self.boot.as_deref().map(boot).transpose()?,
            since: self.since.as_deref().map(input::when).transpose()?,
            until: self.until.as_deref().map(input::when).transpose()?,
        })
    }

    /// What is there already: all of it, or the last N that match.
    fn tail(
        &self,
        ctx: &mut Context,
        reader: &Reader,
        filter: &Filter,
        from: Position,
        seen: Head,
    ) -> Result<Head, Stop> {
        let Some(last) = self.last else {
            return print(ctx, reader, filter, from, seen);
        };
        let mut kept = std::collections::VecDeque::new();
        let head = walk(ctx, reader, filter, from, seen, &mut |_, event| {
            kept.push_back(event);
            if kept.len() > last {
                kept.pop_front();
            }
            Ok(())
        })?;
        kept.iter().try_for_each(|event| show(ctx, event))?;
        Ok(head)
    }
}

/// Prints what comes, until something stops it.
fn go_on(
    ctx: &mut Context,
    reader: &Reader,
    filter: &Filter,
    cursor: &Cursor,
    mut seen: Head,
) -> Stop {
    loop {
        match await_more(ctx, reader, filter, cursor, seen) {
            Ok(head) => seen = head,
            Err(stop) => return stop,
        }
    }
}

fn await_more(
    ctx: &mut Context,
    reader: &Reader,
    filter: &Filter,
    cursor: &Cursor,
    seen: Head,
) -> Result<Head, Stop> {
    ctx.out.flush()?;
    let position = Position(seen.position.0);
    let wait = reader.wait_beyond(position, Deadline::after(LOOK_AGAIN));
    wait.map_err(|error| ctx.fault(&error))?;
    let head = print(ctx, reader, filter, Position(position.0 + 1), seen)?;
    if head != seen {
        cursor.leave(ctx, reader, head)?;
    }
    Ok(head)
}

fn print(
    ctx: &mut Context,
    reader: &Reader,
    filter: &Filter,
    from: Position,
    seen: Head,
) -> Result<Head, Stop> {
    walk(ctx, reader, filter, from, seen, &mut |ctx, event| {
        show(ctx, &event)
    })
}

fn show(ctx: &mut Context, event: &EventView) -> Result<(), Stop> {
    if ctx.out.is_json() {
        return ctx.out.object(&json::event(event));
    }
    ctx.out.say(human::event(event))?;
    for (_, field) in &event.payload {
        if let Field::Body(body) = field {
            ctx.out.body(&String::from_utf8_lossy(body))?;
        }
    }
    Ok(())
}

type Each<'e> = &'e mut dyn FnMut(&mut Context, EventView) -> Result<(), Stop>;

/// Every event that is meant, from `from` to the newest that can be shown. Gives the newest head looked at.
fn walk(
    ctx: &mut Context,
    reader: &Reader,
    filter: &Filter,
    from: Position,
    seen: Head,
    each: Each<'_>,
) -> Result<Head, Stop> {
    let head = reader.head().map_err(|error| ctx.fault(&error))?;
    let to = match filter.until {
        Some(When::At(until)) => Position(head.position.0.min(until.0)),
        _ => Position(head.position.0),
    };
    // What is asked to begin behind the end has been looked at already.
    let passed = if filter.until.is_none() { head } else { seen };
    if from > to {
        return Ok(passed);
    }
    let (mut stopped, mut newest) = (None, seen);
    // Names of sessions and owners of work do not change: the newest state knows them all.
    let walked = reader.view(|state| {
        reader.frames(from, to, Depth::Whole, |frame| {
            newest = frame.header.head();
            for event in events(frame, state) {
                if filter.takes(&event)
                    && let Err(stop) = each(ctx, event)
                {
                    stopped = Some(stop);
                    return Ok(false);
                }
            }
            Ok(true)
        })
    });
    if let Some(stop) = stopped {
        return Err(stop);
    }
    walked
        .and_then(|inner| inner)
        .map_err(|error| ctx.fault(&error))?;
    Ok(newest)
}

impl Filter {
    /// Whether every event is meant, wherever it stands.
    fn is_open(&self) -> bool {
        self.session.is_none()
            && self.kinds.is_empty()
            && self.generation.is_none()
            && self.host.is_none()
            && self.boot.is_none()
            && self.since.is_none()
            && self.until.is_none()
    }

    /// The same filter with the session's whole name.
    fn named(mut self, ctx: &Context, reader: &Reader) -> Result<Self, Stop> {
        if let Some(name) = &self.session {
            let whole = ctx.look(reader, |lens| {
                Ok(find(lens.state, name).map(|number| lens.state.name(number)))
            })??;
            self.session = Some(whole);
        }
        Ok(self)
    }

    fn takes(&self, event: &EventView) -> bool {
        let says = |wanted: &str, fits: &dyn Fn(&str) -> bool| {
            event.payload.iter().any(|(name, field)| match field {
                Field::Text(text) => *name == wanted && fits(text),
                _ => false,
            })
        };
        let host = |host: &String| says("host", &|text| text == host);
        let boot = |boot: &String| says("boot", &|text| text.starts_with(boot.as_str()));
        let behind = match self.since {
            Some(When::At(position)) => event.at.position >= position,
            Some(When::Time(time)) => event.at.time >= time,
            None => true,
        };
        let before = match self.until {
            Some(When::At(position)) => event.at.position <= position,
            Some(When::Time(time)) => event.at.time <= time,
            None => true,
        };
        behind
            && before
            && self
                .session
                .as_ref()
                .is_none_or(|s| event.session.as_ref() == Some(s))
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.generation.is_none_or(|g| event.generation == Some(g))
            && self.host.as_ref().is_none_or(host)
            && self.boot.as_ref().is_none_or(boot)
    }
}

/// Whether events of that kind can stand in a log: also of kinds that a newer program writes.
fn is_kind(word: &str) -> bool {
    let newer = word.strip_prefix("unknown-");
    Event::KINDS.iter().any(|(_, known)| *known == word)
        || word == "undecodable"
        || newer.is_some_and(|number| number.parse::<u16>().is_ok())
}

/// The beginning of the id of a boot, as the kernel spells it or without the dashes.
fn boot(text: &str) -> Result<String, Stop> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let hex = digits.chars().all(|c| c.is_ascii_hexdigit());
    if hex && (BOOT_DIGITS_MIN..=32).contains(&digits.len()) {
        return Ok(digits.to_ascii_lowercase());
    }
    let message = format!("{text:?} is no boot: 6 to 32 hexadecimal digits");
    Err(Fault::usage(message).into())
}

/// What was read up to a head, for a later `--after-cursor`.
fn receipt(ctx: &Context, reader: &Reader, head: Head) -> Result<Receipt, Stop> {
    reader.receipt(head).map_err(|error| ctx.fault(&error))
}

/// A cursor that is not in this log: what was read is not its past, or it has lost its end.
fn foreign(text: &str) -> Stop {
    Fault::new(
        Cause::BadPosition,
        format!("cursor {text} is not in this log"),
    )
    .then("tenure verify", "says whether the log is whole")
    .then("tenure log", "reads it again from the start")
    .into()
}
