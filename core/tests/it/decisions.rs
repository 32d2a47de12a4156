//! What the rules decided, they decide again: logs of the rules' scenes, each frame judged and folded once more.
//!
//! A decision of version 1 of the rules is a contract: whoever replays a log with a later program gets the same events,
//! the same refusals and the same state. The file `decisions-v1.bin` holds the frames with what came of them.
//! `TENURE_SCENES=DIR cargo test -p tenure-projection` leaves logs in DIR, and `WRITE_GOLDEN=1 TENURE_SCENES=DIR cargo
//! test -p tenure-core` writes the file from them; without DIR it writes only what came of the frames anew, for a
//! change of the state's encoding.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tenure_core::apply::apply;
use tenure_core::codec::{self, v1};
use tenure_core::decide::{decide, refused};
use tenure_core::id::{Moment, Position, Time};
use tenure_core::state::State;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/decisions-v1.bin")
}

/// A frame's parts with what its header said.
#[derive(Clone, PartialEq)]
pub struct Framed {
    pub parts: [Vec<u8>; 3],
    pub incarnation: u64,
    pub at: Moment,
}

/// A log, and for each frame what came of it: a digest of the decision and one of the state.
pub struct Log {
    pub name: String,
    pub frames: Vec<Framed>,
    came: Vec<[u64; 2]>,
}

/// Reads numbers and bytes off the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn short(&mut self) -> usize {
        let bytes = self.take(4).try_into().expect("four bytes");
        u32::from_le_bytes(bytes) as usize
    }

    fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().expect("eight bytes"))
    }

    fn frame(&mut self) -> Framed {
        let lengths = [self.short(), self.short(), self.short()];
        let (incarnation, position, time) = (self.long(), self.long(), self.long());
        Framed {
            parts: lengths.map(|length| self.take(length).to_vec()),
            incarnation,
            at: Moment {
                position: Position(position),
                time: Time(time.cast_signed()),
            },
        }
    }
}

fn put(frame: &Framed, into: &mut Vec<u8>) {
    for part in &frame.parts {
        let length = u32::try_from(part.len()).expect("a part is short");
        into.extend_from_slice(&length.to_le_bytes());
    }
    into.extend_from_slice(&frame.incarnation.to_le_bytes());
    into.extend_from_slice(&frame.at.position.0.to_le_bytes());
    into.extend_from_slice(&frame.at.time.0.to_le_bytes());
    frame
        .parts
        .iter()
        .for_each(|part| into.extend_from_slice(part));
}

pub fn short(bytes: &[u8]) -> u64 {
    let hash = blake3::hash(bytes);
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
}

/// Judges a frame's input on the state before it, folds its events, and gives the digests of both.
fn judge(state: &mut State, frame: &Framed) -> [u64; 2] {
    let [facts, texts, bodies] = &frame.parts;
    let entry = v1::decode_entry(facts, texts, frame.at, frame.incarnation).expect("it decodes");
    let mut said = String::new();
    // A forged frame may have an input that is none.
    if let Ok(mut request) = v1::decode_request(facts, texts, bodies, frame.at.time) {
        let decided = decide(state, &request);
        write!(said, "{decided:?}").expect("a string grows");
        if let Err(refusal) = decided {
            write!(said, "{:?}", refused(state, &mut request, &refusal)).expect("a string grows");
        }
    }
    write!(said, "{:?}", apply(state, &entry)).expect("a string grows");
    let state = codec::encode(state).expect("a state encodes");
    [short(said.as_bytes()), short(&state)]
}

pub fn read() -> Vec<Log> {
    let bytes = std::fs::read(golden()).expect("the golden file is there");
    let (mut bytes, mut logs) = (Bytes(&bytes), Vec::new());
    while !bytes.0.is_empty() {
        let name = bytes.short();
        let name = String::from_utf8(bytes.take(name).to_vec()).expect("a name");
        // What it has in common with the one before is written once.
        let shared = bytes.short();
        let (mut frames, mut came) = logs.last().map_or_else(Default::default, |last: &Log| {
            (last.frames[..shared].to_vec(), last.came[..shared].to_vec())
        });
        for _ in 0..bytes.short() {
            frames.push(bytes.frame());
            came.push([bytes.long(), bytes.long()]);
        }
        logs.push(Log { name, frames, came });
    }
    logs
}

fn scenes(dir: &Path) -> Vec<Log> {
    let files = std::fs::read_dir(dir).expect("the directory is there");
    let mut files: Vec<_> = files.map(|file| file.expect("listed").path()).collect();
    files.sort();
    let mut logs: Vec<Log> = Vec::new();
    for file in files {
        let bytes = std::fs::read(&file).expect("readable");
        let (mut bytes, mut frames) = (Bytes(&bytes), Vec::new());
        while !bytes.0.is_empty() {
            frames.push(bytes.frame());
        }
        let name = file.file_name().expect("a name").to_string_lossy();
        let (name, _) = name.rsplit_once('-').expect("NAME-NUMBER");
        logs.push(Log {
            name: name.to_owned(),
            frames,
            came: Vec::new(),
        });
    }
    logs
}

fn write(logs: &[Log]) {
    let mut bytes = Vec::new();
    let length = |n: usize| u32::try_from(n).expect("short").to_le_bytes();
    let mut before: &[Framed] = &[];
    for log in logs {
        let alike = before.iter().zip(&log.frames).take_while(|(a, b)| a == b);
        let shared = alike.count();
        before = &log.frames;
        bytes.extend_from_slice(&length(log.name.len()));
        bytes.extend_from_slice(log.name.as_bytes());
        bytes.extend_from_slice(&length(shared));
        bytes.extend_from_slice(&length(log.frames.len() - shared));
        let mut state = State::new();
        for (number, frame) in log.frames.iter().enumerate() {
            let came = judge(&mut state, frame);
            if number >= shared {
                put(frame, &mut bytes);
                came.iter()
                    .for_each(|digest| bytes.extend_from_slice(&digest.to_le_bytes()));
            }
        }
    }
    std::fs::write(golden(), bytes).expect("the golden file is written");
}

/// LOG-4: every recorded input is decided as it was, refused as it was, and gives the state that it gave.
#[test]
fn what_was_decided_is_decided_again() {
    if std::env::var_os("WRITE_GOLDEN").is_some_and(|v| v == "1") {
        let from = std::env::var_os("TENURE_SCENES").map(PathBuf::from);
        write(&from.map_or_else(read, |dir| scenes(&dir)));
    }
    let logs = read();
    let mut frames = 0;
    for log in &logs {
        let mut state = State::new();
        for (frame, came) in log.frames.iter().zip(&log.came) {
            let [decision, folded] = judge(&mut state, frame);
            let place = format!("{} at {}", log.name, frame.at.position);
            assert_eq!(decision, came[0], "another decision: {place}");
            assert_eq!(folded, came[1], "another state: {place}");
            frames += 1;
        }
    }
    assert!(frames > 1000, "{frames} frames of {} logs", logs.len());
}
