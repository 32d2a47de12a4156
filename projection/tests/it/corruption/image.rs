//! The files of a store in memory, to be changed and judged.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use tenure_log::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use tenure_log::frame::{Draft, FRAME_HEADER_BYTES, Frame, Place as At, encode_into};
use tenure_log::inspect::{Entry, inspect_all};
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Deadline, Journal, RulesVersion};
use tenure_log::look::Copied;
use tenure_log::position::{Chain, Head, Position, Receipt, Salt, StoreId};
use tenure_log::scan::{Checks, Step};
use tenure_log::storage::disk::Disk;
use tenure_log::writer::site::Tuning;
use tenure_projection::entry;

use crate::rules::replay::Dice;
use crate::scene::Scene;

/// Where a frame stands: the number of its segment, offset and length.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    segment: usize,
    pub offset: usize,
    pub bytes: usize,
}

/// What is done with two frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Each in the other's place.
    Swap,
    /// Neither is there.
    Drop,
    /// The first stands behind the second once more.
    Double,
}

/// A store's files.
#[derive(Clone)]
pub struct Image {
    pub files: Copied,
    pub frames: Vec<Place>,
    /// The receipt of the newest frame.
    pub receipt: Receipt,
    /// How many kinds of events the frames hold.
    pub kinds: usize,
}

impl Deref for Image {
    type Target = Copied;

    fn deref(&self) -> &Copied {
        &self.files
    }
}

impl DerefMut for Image {
    fn deref_mut(&mut self) -> &mut Copied {
        &mut self.files
    }
}

/// A little of everything.
const EVERY_KIND: &str = "
register api pid=500 checkout=/w engine=claude \n register web \n register gone \n rename gone went as=gone@1
retire went@1 \n register went \n dispatch one api writes=/w \n dispatch two web writes=/w \n accept d1 as=api@1
accept d2 as=web@1 \n note fine as=api@1 \n observe busy as=api@1 wrote=/w/a \n send api hello as=web@1
deliver e1 as=api@1 \n ack e1 as=api@1 \n report d1 blocked as=api@1 body=why \n attend d1 \n handoff d2 api as=web@1
dispatch tre web \n decline d3 as=web@1 \n dispatch four web \n cancel d4 \n dispatch five web \n fail d5
policy warn-once /v \n dispatch six api writes=/v \n accept d6 as=api@1 \n check /v as=web@1 \n check /w as=web@1
record a as=web@1 opens=run:1 \n record b as=web@1 closes=run:1 \n branch web copy \n import there as=copy@1
revert 0 as=web@1 \n role take lead w as=api@1 \n role release lead w as=api@1 \n role take lead w as=web@1
role clear lead w \n register main pid=501 \n register kid parent=main@1 \n release main as=main@1 \n claim main pid=502
rollback main epoch=3 \n claim main pid=502 \n recover kid text epoch=5 \n adopt kid epoch=5 \n reserve new pid=503
publish new as=new@1 \n adopt api as=api@1 \n bypass pre-commit at=/w \n unlocked /w/.git/index.lock \n note late as=api@1";

/// A little of everything and a random stream of commands, and the frames they left.
fn played(frames: usize) -> Vec<Frame> {
    let (scene, mut dice) = (Scene::new(), Dice::new(11));
    for line in EVERY_KIND.lines().map(str::trim).filter(|l| !l.is_empty()) {
        scene.run(line);
    }
    while scene.frames() < frames as u64 {
        let line = dice.line(&scene);
        scene.run(&line);
    }
    let mut all = scene.all();
    all.truncate(frames);
    all
}

impl Image {
    /// A store that a writer left at rest, with that many frames.
    pub fn of_a_store(frames: usize) -> Self {
        let room = tempfile::tempdir().expect("a directory");
        let dir = room.path().join("store");
        let played = played(frames);
        let options = Options {
            create: true,
            rules: RulesVersion(1),
            tuning: Tuning {
                segment_bytes: vec![SEGMENT_HEADER_BYTES as u64 + frames as u64 * 64],
                fill_bytes: 1024,
                ..Tuning::default()
            },
            ..Options::default()
        };
        let log = SegmentLog::open(Arc::new(Disk), &dir, options).expect("it is made");
        for frame in &played {
            let draft = Draft {
                time: frame.header.time,
                parts: frame.parts.clone(),
            };
            let head = Journal::head(&log).expect("it reads");
            let appended = log.transact(head, Deadline::NEVER, &mut |_| vec![draft.clone()]);
            let position = appended.expect("it is appended").head.position;
            log.wait_durable(position, Deadline::NEVER).expect("synced");
        }
        log.tend().expect("it is sealed");
        let (head, store) = (Journal::head(&log).expect("it reads"), log.identity().store);
        drop(log);
        let mut image = Self::read(&dir);
        image.receipt = Receipt {
            store,
            position: head.position,
            chain: head.chain,
        };
        let decoded = |frame: &Frame| entry::decode(&entry::lend(frame)).expect("it decodes");
        let events = played.iter().flat_map(|frame| decoded(frame).events);
        let kinds: BTreeSet<u16> = events.map(|event| event.kind()).collect();
        image.kinds = kinds.len();
        image
    }

    fn read(dir: &Path) -> Self {
        let mut image = Self {
            files: Copied::of(dir).expect("it reads"),
            frames: Vec::new(),
            receipt: Receipt {
                store: StoreId([0; 16]),
                position: Position::ZERO,
                chain: Chain([0; 16]),
            },
            kinds: 0,
        };
        image.frames = image.places();
        image
    }

    /// Where the frames stand that are part of the log.
    fn places(&self) -> Vec<Place> {
        let (mut places, mut segments) = (Vec::new(), 0);
        inspect_all(&self.files, Checks::ALL, &mut |entry| match entry {
            Entry::Segment { .. } => segments += 1,
            Entry::Step {
                span,
                step: Step::Frame(..),
            } => places.push(Place {
                segment: segments - 1,
                offset: span.offset as usize,
                bytes: span.bytes as usize,
            }),
            _ => {}
        })
        .expect("listed");
        places
    }

    /// The same in bytes of its own, so that a thread can change them in place.
    pub fn deep(&self) -> Self {
        let mut own = self.clone();
        for bytes in own.segments.values_mut() {
            *bytes = Arc::new(bytes.to_vec());
        }
        own
    }

    pub fn name_of(&self, frame: Place) -> &str {
        self.segments.keys().nth(frame.segment).expect("listed")
    }

    fn header(&self, name: &str) -> SegmentHeader {
        SegmentHeader::decode(&self.segments[name]).expect("it is good")
    }

    /// Where the frames of a segment end.
    fn end_of(&self, name: &str) -> usize {
        let mut own = self.frames.iter().filter(|f| self.name_of(**f) == name);
        own.next_back()
            .map_or(SEGMENT_HEADER_BYTES, |f| f.offset + f.bytes)
    }

    /// The range of the page that a change of a segment from `at` on lies in.
    pub fn dont_care(&self, name: &str, at: usize, is_cut: bool) -> Option<&'static str> {
        let newest = self.segments.keys().next_back().is_some_and(|n| n == name);
        match at >= self.end_of(name) {
            true if !newest => Some("late"),
            true if is_cut => Some("prepared"),
            _ => None,
        }
    }

    /// Changes a segment in place.
    pub fn edit(&mut self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let bytes = self.segments.get_mut(name).expect("it is there");
        change(Arc::get_mut(bytes).expect("nobody reads it"));
    }

    pub fn replace(&mut self, name: &str, bytes: Vec<u8>) {
        self.segments.insert(name.to_owned(), Arc::new(bytes));
    }

    /// Where it first differs from `whole`; a place that is looked at before one that is not.
    pub fn first_change(&self, whole: &Self) -> (String, usize) {
        let mut unseen = None;
        for (name, bytes) in &self.segments {
            let old = &whole.segments[name];
            let alike = bytes.iter().zip(old.iter()).take_while(|(a, b)| a == b);
            let at = alike.count();
            if at < bytes.len().max(old.len()) {
                let place = (name.clone(), at);
                if whole.dont_care(name, at, false).is_none() {
                    return place;
                }
                unseen = Some(place);
            }
        }
        unseen.expect("something was changed")
    }

    /// Makes every segment again what it is in `from`.
    pub fn restore(&mut self, from: &Self) {
        self.segments.clone_from(&from.segments);
    }

    fn bytes_of(&self, frame: Place) -> &[u8] {
        &self.segments[self.name_of(frame)][frame.offset..frame.offset + frame.bytes]
    }

    /// Writes every segment anew of these frames, given by segment, each at the place that comes.
    fn rewrite(&mut self, frames: &[Vec<Vec<u8>>], sealed: bool) {
        let names: Vec<String> = self.segments.keys().cloned().collect();
        for (name, frames) in names.iter().zip(frames) {
            let (old, header) = (self.segments[name].clone(), self.header(name));
            let mut bytes = old[..SEGMENT_HEADER_BYTES].to_vec();
            for frame in frames {
                let at = bytes.len();
                bytes.extend_from_slice(frame);
                if sealed {
                    seal(&mut bytes, at, &header);
                }
            }
            bytes.resize(bytes.len().max(old.len()), 0);
            self.replace(name, bytes);
        }
    }

    fn by_segment(&self) -> Vec<Vec<Vec<u8>>> {
        let mut all = vec![Vec::new(); self.segments.len()];
        for frame in &self.frames {
            all[frame.segment].push(self.bytes_of(*frame).to_vec());
        }
        all
    }

    /// Number of a frame's segment, and its number there.
    fn within(&self, number: usize) -> (usize, usize) {
        let segment = self.frames[number].segment;
        let before = self.frames.iter().take_while(|f| f.segment < segment);
        (segment, number - before.count())
    }

    /// Does it; `sealed` with header CRCs that are right where the frames stand afterwards.
    pub fn change(&mut self, change: Change, a: usize, b: usize, sealed: bool) {
        let mut frames = self.by_segment();
        let ((sa, na), (sb, nb)) = (self.within(a), self.within(b));
        match change {
            Change::Swap => {
                let first = frames[sa][na].clone();
                frames[sa][na] = std::mem::replace(&mut frames[sb][nb], first);
            }
            Change::Drop => {
                frames[sb].remove(nb);
                frames[sa].remove(na);
            }
            Change::Double => {
                let again = frames[sa][na].clone();
                frames[sb].insert(nb + 1, again);
            }
        }
        self.rewrite(&frames, sealed);
    }

    /// The frame of another store at that place.
    pub fn splice(&mut self, other: &Self, number: usize, sealed: bool) {
        let place = self.frames[number];
        let (name, header) = (
            self.name_of(place).to_owned(),
            self.header(self.name_of(place)),
        );
        let frame = other.bytes_of(place).to_vec();
        let mut bytes = self.segments[&name].to_vec();
        bytes[place.offset..place.offset + place.bytes].copy_from_slice(&frame);
        if sealed {
            seal(&mut bytes, place.offset, &header);
        }
        self.replace(&name, bytes);
    }

    /// A store with the same decisions, born elsewhere.
    pub fn of_another_store(&self) -> Self {
        self.born_again(StoreId([0x5a; 16]), Salt([0x5a; 16]))
    }

    /// The life of the same store that had the same decisions.
    pub fn of_an_older_life(&self) -> Self {
        self.born_again(self.receipt.store, Salt([0x0d; 16]))
    }

    /// The same frames at the same places, in a store of that id and salt.
    fn born_again(&self, store: StoreId, salt: Salt) -> Self {
        let mut again = self.deep();
        let mut head = Head {
            position: Position::ZERO,
            chain: Chain::born(store, salt),
        };
        for (number, name) in self.segments.keys().enumerate() {
            let mut header = self.header(name);
            (header.store, header.salt, header.chain) = (store, salt, head.chain);
            if let Some(before) = &mut header.predecessor {
                before.end = head;
            }
            let mut bytes = header.encode().to_vec();
            for frame in self.frames.iter().filter(|f| f.segment == number) {
                let place = At::in_segment(self.header(name).salt, header.first, header.epoch);
                let own = self.bytes_of(*frame);
                let place = place.at(frame.offset as u64);
                let depth = tenure_log::frame::Depth::Whole;
                let (decoded, _) = tenure_log::frame::decode(&place, own, depth).expect("good");
                let (durable, life) = (decoded.header.durable, decoded.header.incarnation);
                let decoded = decoded.to_owned();
                let draft = Draft {
                    time: decoded.header.time,
                    parts: decoded.parts,
                };
                let place = At::in_segment(salt, header.first, header.epoch);
                let place = place.at(frame.offset as u64);
                let written = encode_into(&mut bytes, &place, head, durable, life, &draft);
                head = written.expect("it fits");
            }
            bytes.resize(self.segments[name].len(), 0);
            again.replace(name, bytes);
        }
        again
    }

    /// The store as it was when it had that many frames, without what was beside it.
    pub fn rolled_back(&self, frames: usize) -> Self {
        let mut earlier = self.deep();
        (earlier.control, earlier.seals) = (None, BTreeMap::new());
        let names: Vec<String> = self.segments.keys().cloned().collect();
        for name in &names {
            if self.header(name).first.0 > frames as u64 + 1 {
                earlier.segments.remove(name);
            }
        }
        if let Some(next) = self.frames.get(frames) {
            let name = self.name_of(*next).to_owned();
            earlier.edit(&name, |bytes| bytes[next.offset..].fill(0));
        }
        earlier
    }
}

/// Makes the header CRC of the frame at `at` right for its place, as `docs/format.md` says it is made.
fn seal(bytes: &mut [u8], at: usize, header: &SegmentHeader) {
    let mut seeded = header.salt.0.to_vec();
    for number in [header.first.0, header.epoch.0, at as u64] {
        seeded.extend_from_slice(&number.to_le_bytes());
    }
    let stated = FRAME_HEADER_BYTES - 4;
    seeded.extend_from_slice(&bytes[at..at + stated]);
    let crc = crc32(&seeded).to_le_bytes();
    bytes[at + stated..at + FRAME_HEADER_BYTES].copy_from_slice(&crc);
}

/// CRC-32 as in zlib.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}
