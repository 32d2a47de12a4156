//! `inspect`: shows the frames of a store or a file as they stand. Opens no store and changes nothing.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_projection::core::codec::v1;
use tenure_projection::core::event::Event;
use tenure_projection::core::state::State;
use tenure_projection::entry;
use tenure_projection::log::format::SegmentHeader;
use tenure_projection::log::frame::FrameRef;
use tenure_projection::log::inspect::{Entry, inspect_all, inspect_file};
use tenure_projection::log::look::{Look, PlainDirectory, open_plain, read_header};
use tenure_projection::log::scan::{Checks, Link, ReadAt, Span, Step, read_full};
use tenure_projection::views::{EventView, Field, events};

use crate::clock::rfc3339;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::{Fault, Stop};
use crate::output::{BAD, DIM, HEAD, Object, PLAIN, Progress, human, json};

/// The most bytes of one stretch that `--hex` shows.
const HEX_BYTES_MAX: u64 = 64 << 10;
const HEX_ROW_BYTES: usize = 16;

/// Arguments of `inspect`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A store's directory, or one segment file
    #[arg(value_name = "DIR|FILE")]
    place: PathBuf,
    /// Begin at this offset of each file
    #[arg(long, value_name = "OFFSET", default_value_t = 0)]
    from: u64,
    /// Show the bytes too
    #[arg(long)]
    hex: bool,
}

impl Args {
    /// Shows every stretch of every file.
    ///
    /// # Errors
    /// When the directory or file cannot be opened.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let progress = Progress::new(&ctx.out, size(&self.place));
        let mut shower = Shower {
            args: &self,
            ctx,
            file: None,
            name: String::new(),
            progress,
            passed: 0,
            size: 0,
            stopped: None,
        };
        if self.place.is_dir() {
            super::verify::exists(&self.place)?;
            let look = PlainDirectory::new(&self.place);
            let opening = PlainDirectory::new(&self.place);
            let listed = inspect_all(&look, Checks::ALL, &mut |entry| {
                shower.show(entry, &|name| opening.open(name).ok());
            });
            listed.map_err(|error| Fault::file("list", &self.place, error))?;
        } else {
            let file = open_plain(&self.place);
            let file = file.map_err(|error| Fault::file("read", &self.place, error))?;
            let name = self.place.file_name().unwrap_or_default().to_string_lossy();
            let opening = |_: &str| -> Option<Box<dyn ReadAt>> {
                open_plain(&self.place)
                    .ok()
                    .map(|f| Box::new(f) as Box<dyn ReadAt>)
            };
            inspect_file(
                &name,
                &file,
                &siblings(&self.place),
                Checks::ALL,
                &mut |entry| {
                    shower.show(entry, &opening);
                },
            );
        }
        if let Some(stop) = shower.stopped {
            return Err(stop);
        }
        shower.progress.wipe(&mut shower.ctx.out)?;
        Ok(Exit::DONE)
    }
}

/// How many bytes there are to go through, as far as it can be told.
pub(super) fn size(place: &Path) -> u64 {
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    match std::fs::read_dir(place.join("segments")) {
        Ok(entries) => entries.flatten().map(|entry| bytes(&entry.path())).sum(),
        Err(_) => bytes(place),
    }
}

/// The headers of the files beside one, for when its own is lost.
fn siblings(file: &Path) -> Vec<SegmentHeader> {
    let Some(entries) = file.parent().and_then(|dir| std::fs::read_dir(dir).ok()) else {
        return Vec::new();
    };
    let mut headers: Vec<SegmentHeader> = Vec::new();
    for entry in entries.flatten() {
        let header = open_plain(&entry.path()).and_then(|f| read_header(&f));
        if let Ok((_, Ok(header))) = header
            && !headers.iter().any(|known| known.salt == header.salt)
        {
            headers.push(header);
        }
    }
    headers
}

type Opening<'o> = &'o dyn Fn(&str) -> Option<Box<dyn ReadAt>>;

struct Shower<'a> {
    args: &'a Args,
    ctx: &'a mut Context,
    file: Option<Box<dyn ReadAt>>,
    name: String,
    progress: Progress,
    /// Bytes of the files before this one, and of this one.
    passed: u64,
    size: u64,
    stopped: Option<Stop>,
}

impl Shower<'_> {
    fn show(&mut self, entry: Entry<'_>, open: Opening<'_>) {
        if self.stopped.is_some() {
            return;
        }
        let done = match &entry {
            Entry::Segment { bytes, .. } => {
                self.passed += self.size;
                self.size = *bytes;
                0
            }
            Entry::Step { span, .. } => span.offset,
            Entry::Unreadable { .. } => self.size,
        };
        let wiped = self.progress.wipe(&mut self.ctx.out);
        let shown = wiped.and_then(|()| self.print(entry, open));
        let out = &mut self.ctx.out;
        let drawn = shown.and_then(|()| self.progress.at(out, self.passed + done));
        self.stopped = drawn.err();
    }

    fn print(&mut self, entry: Entry<'_>, open: Opening<'_>) -> Result<(), Stop> {
        match entry {
            Entry::Segment {
                name,
                bytes,
                header,
                borrowed,
            } => {
                self.name = name.to_owned();
                self.file = if self.args.hex { open(name) } else { None };
                self.segment(bytes, header, borrowed)
            }
            Entry::Step { span, step } if span.end() > self.args.from => self.step(span, &step),
            Entry::Step { .. } => Ok(()),
            Entry::Unreadable { name, error } => self.unreadable(name, &error),
        }
    }

    fn segment(
        &mut self,
        bytes: u64,
        header: Result<SegmentHeader, tenure_projection::log::fault::Fault>,
        borrowed: bool,
    ) -> Result<(), Stop> {
        let name = self.name.clone();
        if self.ctx.out.is_json() {
            let object = Object::new("stretch")
                .with("segment", name)
                .with("offset", 0)
                .with("bytes", bytes);
            let object = match header {
                Ok(h) => object
                    .with("what", "segment")
                    .with("store", h.store.to_string())
                    .with("incarnation", h.incarnation.0)
                    .with("epoch", h.epoch.0)
                    .with("first", h.first.0)
                    .with("chain", h.chain.to_string())
                    .with("predecessor", h.predecessor.map(|p| p.name.to_string())),
                Err(fault) => object
                    .with("what", "bad-segment")
                    .with("fault", fault.to_string())
                    .with("borrowed", borrowed),
            };
            return self.ctx.out.object(&object);
        }
        self.ctx
            .out
            .styled(HEAD, format_args!("segment {name}, {bytes} bytes"))?;
        match header {
            Ok(h) => self.ctx.out.say(format_args!(
                "  store {}, incarnation {}, epoch {}, from position {}",
                h.store, h.incarnation, h.epoch, h.first
            )),
            Err(fault) => {
                let how = if borrowed {
                    "; read by the header of another segment"
                } else {
                    ""
                };
                self.ctx
                    .out
                    .styled(BAD, format_args!("  header: {fault}{how}"))
            }
        }
    }

    fn step(&mut self, span: Span, step: &Step<'_>) -> Result<(), Stop> {
        if self.ctx.out.is_json() {
            let object = Object::new("stretch")
                .with("segment", self.name.as_str())
                .with("offset", span.offset)
                .with("bytes", span.bytes);
            let mut object = described(object, step);
            if let Some(bytes) = self.bytes(span, step) {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                object = object
                    .with("hex", hex)
                    .with("hex_omitted", span.bytes - bytes.len() as u64);
            }
            self.ctx.out.object(&object)?;
        } else {
            let (style, text) = match step {
                Step::Frame(frame, link) => (PLAIN, frame_line(frame, *link)),
                Step::Bad(fault, None) => (BAD, format!("bad: {fault}")),
                Step::Bad(fault, Some(h)) => (
                    BAD,
                    format!("bad frame at position {}: {fault}", h.position),
                ),
                Step::Zeros => (DIM, "zeros".to_owned()),
            };
            self.ctx.out.styled(
                style,
                format_args!("  {:>10} +{:<8} {text}", span.offset, span.bytes),
            )?;
            if let Step::Frame(frame, _) = step {
                for event in facts(frame) {
                    let text = format_args!("{:23}{}", "", human::facts(&event)).to_string();
                    self.ctx.out.styled(DIM, text)?;
                }
            }
            if let Some(bytes) = self.bytes(span, step) {
                self.hex(span, &bytes)?;
            }
        }
        Ok(())
    }

    /// The bytes of a stretch, where they are asked for; of a long one only its beginning.
    fn bytes(&self, span: Span, step: &Step<'_>) -> Option<Vec<u8>> {
        let file = self.file.as_ref()?;
        if matches!(step, Step::Zeros) {
            return None;
        }
        let want = span.bytes.min(HEX_BYTES_MAX);
        let mut bytes = vec![0; usize::try_from(want).unwrap_or_default()];
        let read = read_full(&**file, &mut bytes, span.offset).ok()?;
        bytes.truncate(read);
        Some(bytes)
    }

    fn hex(&mut self, span: Span, bytes: &[u8]) -> Result<(), Stop> {
        for (row, chunk) in bytes.chunks(HEX_ROW_BYTES).enumerate() {
            let at = span.offset + (row * HEX_ROW_BYTES) as u64;
            let hex: Vec<String> = chunk.iter().map(|b| format!("{b:02x}")).collect();
            let plain: String = chunk
                .iter()
                .map(|b| {
                    if (0x20..0x7f).contains(b) {
                        *b as char
                    } else {
                        '.'
                    }
                })
                .collect();
            self.ctx.out.styled(
                DIM,
                format_args!("    {at:>10}  {:<47}  {plain}", hex.join(" ")),
            )?;
        }
        let omitted = span.bytes - bytes.len() as u64;
        if omitted > 0 {
            let text = format_args!("    {omitted} more bytes").to_string();
            self.ctx.out.styled(DIM, text)?;
        }
        Ok(())
    }

    fn unreadable(&mut self, name: &str, error: &std::io::Error) -> Result<(), Stop> {
        if self.ctx.out.is_json() {
            let object = Object::new("stretch")
                .with("segment", name)
                .with("what", "unreadable")
                .with("fault", error.to_string());
            return self.ctx.out.object(&object);
        }
        self.ctx.out.styled(
            BAD,
            format_args!("{name} cannot be read from here on: {error}"),
        )
    }
}

/// The words of the frame's events; `unknown-N` for those of kinds that this program does not know.
fn words(frame: &FrameRef<'_>) -> Vec<String> {
    let kinds = entry::decode(frame)
        .map_err(|error| error.to_string())
        .and_then(|_| v1::decode_kinds(frame.facts).map_err(|fault| fault.to_string()));
    let word = |kind: u16| {
        let known = Event::KINDS.iter().find(|(number, _)| *number == kind);
        known.map_or_else(|| format!("unknown-{kind}"), |(_, word)| (*word).to_owned())
    };
    match kinds {
        Ok(kinds) => kinds.into_iter().map(word).collect(),
        Err(fault) => vec![format!("undecodable: {fault}")],
    }
}

/// What the frame decided, without the state that knows names: sessions are numbers but where the frame names them.
/// Bodies are left out.
fn facts(frame: &FrameRef<'_>) -> Vec<EventView> {
    let mut events = events(frame, &State::new());
    for event in &mut events {
        event
            .payload
            .retain(|(_, field)| !matches!(field, Field::Body(_)));
    }
    events
}

fn frame_line(frame: &FrameRef<'_>, link: Link) -> String {
    let header = &frame.header;
    let time = rfc3339(entry::moment(header).time);
    let detached = if link == Link::Detached {
        "  (its chain cannot be held against anything)"
    } else {
        ""
    };
    let words = words(frame).join(" ");
    format!(
        "frame {}  {time}  epoch {}  {words}{detached}",
        header.position, header.epoch
    )
}

fn described(object: Object, step: &Step<'_>) -> Object {
    match step {
        Step::Frame(frame, link) => {
            let header = &frame.header;
            object
                .with("what", "frame")
                .with("position", header.position.0)
                .with("time", rfc3339(entry::moment(header).time))
                .with("incarnation", header.incarnation.0)
                .with("epoch", header.epoch.0)
                .with("durable", header.durable.0)
                .with("chain", header.chain.to_string())
                .with("attached", *link == Link::Follows)
                .with(
                    "parts",
                    json!([header.facts_len, header.texts_len, header.bodies_len]),
                )
                .with(
                    "events",
                    words(frame).into_iter().map(Value::from).collect::<Value>(),
                )
                .with(
                    "facts",
                    facts(frame)
                        .iter()
                        .map(|event| Value::from(json::event(event)))
                        .collect::<Value>(),
                )
        }
        Step::Bad(fault, header) => object
            .with("what", "bad")
            .with("position", header.map(|h| h.position.0))
            .with("kind", fault.code())
            .with("fault", fault.to_string()),
        Step::Zeros => object.with("what", "zeros"),
    }
}
