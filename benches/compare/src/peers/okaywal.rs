//! okaywal: a write-ahead log that groups syncs by itself; generations stand in memory beside it.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};

use okaywal::{Configuration, Entry, EntryId, LogManager, SegmentReader, WriteAheadLog};

use super::ledger::{Ledger, Write, parse};

/// A log, with the generation of each session.
pub struct OkayWal {
    log: WriteAheadLog,
    sessions: Vec<Mutex<u64>>,
}

/// One segment, filled with zeros before, and never recycled: a run is to be counted afterwards.
fn configuration(dir: &Path) -> Configuration {
    Configuration::default_for(dir)
        .preallocate_bytes(128 << 20)
        .checkpoint_after_bytes(u64::MAX)
}

/// Reads nothing when the log is opened.
#[derive(Debug)]
struct Passing;

impl LogManager for Passing {
    fn recover(&mut self, entry: &mut Entry<'_>) -> io::Result<()> {
        while let okaywal::ReadChunkResult::Chunk(chunk) = entry.read_chunk()? {
            chunk.skip_remaining_bytes()?;
        }
        Ok(())
    }

    fn checkpoint_to(
        &mut self,
        _last: EntryId,
        _entries: &mut SegmentReader,
        _log: &WriteAheadLog,
    ) -> io::Result<()> {
        Ok(())
    }
}

/// Events that are handed over at once.
const PIECE: usize = 1_024;

/// Hands every entry on when the log is opened: session and generation, in pieces, because the log owns it.
#[derive(Debug)]
struct Reading {
    pieces: SyncSender<Vec<(u64, u64)>>,
    piece: Vec<(u64, u64)>,
}

impl Reading {
    fn hand_over(&mut self) {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        // Whoever reads waits for every piece.
        self.pieces.send(piece).expect("the reader waits");
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.hand_over();
    }
}

impl LogManager for Reading {
    fn recover(&mut self, entry: &mut Entry<'_>) -> io::Result<()> {
        for row in entry.read_all_chunks()?.into_iter().flatten() {
            self.piece.push(parse(std::hint::black_box(&row)));
            if self.piece.len() == PIECE {
                self.hand_over();
            }
        }
        Ok(())
    }

    fn checkpoint_to(
        &mut self,
        _last: EntryId,
        _entries: &mut SegmentReader,
        _log: &WriteAheadLog,
    ) -> io::Result<()> {
        Ok(())
    }
}

impl Ledger for OkayWal {
    fn open(dir: &Path, sessions: u64) -> Self {
        Self {
            log: configuration(dir).open(Passing).expect("the log opens"),
            sessions: (0..sessions).map(|_| Mutex::new(1)).collect(),
        }
    }

    fn commit(&self, writes: &[Write]) -> Vec<bool> {
        let mut held = std::collections::BTreeMap::new();
        for write in writes {
            held.entry(write.session).or_insert_with(|| {
                let session = &self.sessions[write.session as usize];
                session.lock().expect("nobody panicked")
            });
        }
        let mut answers = Vec::with_capacity(writes.len());
        let mut rows = Vec::with_capacity(writes.len());
        for write in writes {
            let generation = held.get_mut(&write.session).expect("just locked");
            let current = **generation == write.presented;
            answers.push(current);
            if current {
                **generation = write.granted;
                rows.push(write.row());
            }
        }
        if rows.is_empty() {
            return answers;
        }
        let mut entry = self.log.begin_entry().expect("it begins");
        for row in &rows {
            entry.write_chunk(row).expect("written");
        }
        entry.commit().expect("committed");
        answers
    }

    fn read(dir: &Path, mut each: impl FnMut(u64, u64)) {
        let (pieces, handed) = sync_channel(64);
        let dir = dir.to_owned();
        let opening = std::thread::spawn(move || {
            let piece = Vec::with_capacity(PIECE);
            let log = configuration(&dir).open(Reading { pieces, piece });
            drop(log.expect("the log opens"));
        });
        for (session, generation) in handed.into_iter().flatten() {
            each(session, generation);
        }
        opening.join().expect("the log was read");
    }
}
