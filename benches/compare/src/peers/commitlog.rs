//! commitlog: appends to a file; generations stand in memory beside it. Its `flush` calls `File::flush`, which
//! does nothing: each commit here syncs the segment through a second descriptor.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

use commitlog::message::{MessageBuf, MessageSet};
use commitlog::{CommitLog, LogOptions, ReadLimit};

use super::ledger::{Ledger, Write, parse};

/// A log, its newest segment, and the generation of each session.
pub struct Commitlog(Mutex<Inside>);

struct Inside {
    log: CommitLog,
    segments: Segments,
    sessions: Vec<u64>,
}

/// The file that is written to, found anew when the log has begun another.
struct Segments {
    dir: std::path::PathBuf,
    newest: Option<(std::ffi::OsString, File)>,
    bytes: u64,
}

/// A segment's size; positions in its index have 32 bits.
const SEGMENT_BYTES: usize = 1 << 30;
/// The largest batch in bytes.
const BATCH_BYTES: usize = 64 << 20;

fn log(dir: &Path) -> CommitLog {
    let mut options = LogOptions::new(dir.join("log"));
    options
        .segment_max_bytes(SEGMENT_BYTES)
        .message_max_bytes(BATCH_BYTES);
    CommitLog::new(options).expect("the log opens")
}

impl Segments {
    fn sync(&mut self, appended: u64) {
        self.bytes += appended;
        if self.newest.is_none() || self.bytes + BATCH_BYTES as u64 > SEGMENT_BYTES as u64 {
            let names = std::fs::read_dir(&self.dir).expect("the log is there");
            let names = names.map(|entry| entry.expect("it is listed").file_name());
            let newest = names
                .filter(|name| name.to_string_lossy().ends_with(".log"))
                .max()
                .expect("the log has a segment");
            if self.newest.as_ref().is_none_or(|(name, _)| *name != newest) {
                let file = File::options().append(true).open(self.dir.join(&newest));
                self.newest = Some((newest, file.expect("the segment opens")));
                self.bytes = appended;
            }
        }
        let (_, file) = self.newest.as_ref().expect("just found");
        file.sync_data().expect("synced");
    }
}

impl Ledger for Commitlog {
    fn open(dir: &Path, sessions: u64) -> Self {
        Self(Mutex::new(Inside {
            log: log(dir),
            segments: Segments {
                dir: dir.join("log"),
                newest: None,
                bytes: 0,
            },
            sessions: vec![1; sessions as usize],
        }))
    }

    fn commit(&self, writes: &[Write]) -> Vec<bool> {
        let mut inside = self.0.lock().expect("nobody panicked");
        let Inside {
            log,
            segments,
            sessions,
        } = &mut *inside;
        let mut messages = MessageBuf::default();
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            let generation = &mut sessions[write.session as usize];
            let current = *generation == write.presented;
            answers.push(current);
            if current {
                *generation = write.granted;
                messages.push(write.row()).expect("it fits");
            }
        }
        if !messages.is_empty() {
            let bytes = messages.bytes().len() as u64;
            log.append(&mut messages).expect("appended");
            segments.sync(bytes);
        }
        answers
    }

    fn read(dir: &Path, mut each: impl FnMut(u64, u64)) {
        let log = log(dir);
        let (mut next, end) = (0, log.next_offset());
        while next < end {
            let messages = log.read(next, ReadLimit::max_bytes(1 << 20));
            let messages = messages.expect("read");
            for message in messages.iter() {
                let (session, generation) = parse(std::hint::black_box(message.payload()));
                each(session, generation);
            }
            assert!(!messages.is_empty(), "nothing is read at {next} of {end}");
            next += messages.len() as u64;
        }
    }
}
