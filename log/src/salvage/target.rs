//! The new store: segments written under names that are none, and named when all of them are durable.

use std::path::Path;
use std::sync::Arc;

use super::source::Line;
use super::{Kept, MANIFEST_NAME};
use crate::error::Error;
use crate::format::{
    FORMAT_VERSION, Predecessor, RulesVersion, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentName,
    writer_version,
};
use crate::frame::{Draft, Place, encode_into};
use crate::journal::refused;
use crate::lock::{LOCKS_FOLDER, Locks};
use crate::position::{Chain, Head, Incarnation, Position, Salt};
use crate::recovery::QUARANTINE_FOLDER;
use crate::scan::{ReadAt, Span, read_full};
use crate::segment::{SEGMENTS_FOLDER, file_name, sync_and_probe};
use crate::storage::{self, Access, Directory, Onto, Storage, StoredFile};

/// How long a segment grows, in bytes.
const SEGMENT_BYTES: u64 = 64 << 20;

/// How many bytes of frames are gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// A new store that is being written.
pub(super) struct Target {
    dir: Arc<dyn Directory>,
    header: SegmentHeader,
    file: Arc<dyn StoredFile>,
    head: Head,
    /// The offset in the file at which the buffer begins.
    offset: u64,
    buffer: Vec<u8>,
    /// Segments that have no name yet, in order.
    made: Vec<SegmentName>,
}

fn scratch(name: SegmentName) -> String {
    format!("{SEGMENTS_FOLDER}/{name}.new")
}

impl Target {
    /// Makes the folders and the first segment.
    pub(super) fn begin(
        storage: &dyn Storage,
        path: &Path,
        line: &Line,
        salt: Salt,
    ) -> Result<Target, Error> {
        let dir = super::empty_directory(storage, path)?;
        for folder in [SEGMENTS_FOLDER, LOCKS_FOLDER] {
            dir.make_directory(folder)
                .map_err(|error| storage::failed("make", dir.path_of(folder), error))?;
        }
        let oldest = line.volumes.first().map(|volume| volume.header);
        let header = SegmentHeader {
            format: FORMAT_VERSION,
            writer: writer_version(),
            rules: oldest.map_or(RulesVersion(1), |header| header.rules),
            store: line.store,
            salt,
            incarnation: Incarnation(1),
            epoch: line.epoch,
            first: Position(1),
            chain: Chain::born(line.store, salt),
            predecessor: None,
        };
        let file = make(&*dir, &header)?;
        Ok(Target {
            dir,
            header,
            file,
            head: header.start(),
            offset: SEGMENT_HEADER_BYTES as u64,
            buffer: Vec::new(),
            made: vec![header.name()],
        })
    }

    fn failed(&self, op: &'static str, error: std::io::Error) -> Error {
        storage::failed(op, self.dir.path_of(&scratch(self.header.name())), error)
    }

    fn is_empty(&self) -> bool {
        self.head.position < self.header.first
    }

    /// Appends a frame of a life and of rules. A segment has one of each.
    pub(super) fn put(
        &mut self,
        incarnation: Incarnation,
        rules: RulesVersion,
        draft: &Draft,
    ) -> Result<(), Error> {
        let end = self.offset + self.buffer.len() as u64 + draft.frame_bytes() as u64;
        let other = incarnation > self.header.incarnation || rules > self.header.rules;
        if (other || end > SEGMENT_BYTES) && !self.is_empty() {
            self.rotate(incarnation, rules, self.header.salt)?;
        } else if other {
            self.header.incarnation = self.header.incarnation.max(incarnation);
            self.header.rules = self.header.rules.max(rules);
        }
        self.encode(incarnation, draft)
    }

    /// Appends a frame by the rules of those before it.
    pub(super) fn put_among(
        &mut self,
        incarnation: Incarnation,
        draft: &Draft,
    ) -> Result<(), Error> {
        self.put(incarnation, self.header.rules, draft)
    }

    fn encode(&mut self, incarnation: Incarnation, draft: &Draft) -> Result<(), Error> {
        let place = Place::in_segment(self.header.salt, self.header.first, self.header.epoch);
        let at = place.at(self.offset + self.buffer.len() as u64);
        // Nothing of this store is used before all of it is durable.
        let durable = self.head.position;
        let head = encode_into(
            &mut self.buffer,
            &at,
            self.head,
            durable,
            incarnation,
            draft,
        );
        self.head = head.map_err(refused)?;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        storage::write_full(&*self.file, &self.buffer, self.offset)
            .map_err(|error| self.failed("write", error))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the segment: its header, which may have changed while it was empty, and everything in it is durable.
    fn close(&mut self) -> Result<(), Error> {
        self.flush()?;
        storage::write_full(&*self.file, &self.header.encode(), 0)
            .and_then(|()| sync_and_probe(&*self.file, 0))
            .map_err(|error| self.failed("write", error))
    }

    fn rotate(
        &mut self,
        incarnation: Incarnation,
        rules: RulesVersion,
        salt: Salt,
    ) -> Result<(), Error> {
        self.close()?;
        self.header = SegmentHeader {
            salt,
            incarnation,
            rules: rules.max(self.header.rules),
            first: self.head.position.next(),
            chain: self.head.chain,
            predecessor: Some(Predecessor {
                name: self.header.name(),
                end_offset: self.offset,
                end: self.head,
            }),
            ..self.header
        };
        self.file = make(&*self.dir, &self.header)?;
        self.offset = SEGMENT_HEADER_BYTES as u64;
        self.made.push(self.header.name());
        Ok(())
    }

    /// Copies bytes of the source into the quarantine.
    pub(super) fn quarantine(
        &self,
        name: &str,
        source: &dyn ReadAt,
        span: Span,
    ) -> Result<(), Error> {
        let path = format!("{QUARANTINE_FOLDER}/{name}");
        let copied = (|| {
            self.dir.make_directory(QUARANTINE_FOLDER)?;
            let file = self.dir.open(&path, Access::CreateNew)?;
            let mut piece = vec![0; 64 << 10];
            let mut done = 0;
            while done < span.bytes {
                let want = (span.bytes - done).min(piece.len() as u64) as usize;
                let read = read_full(source, &mut piece[..want], span.offset + done)?;
                if read == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                storage::write_full(&*file, &piece[..read], done)?;
                done += read as u64;
            }
            file.sync()?;
            self.dir.sync(QUARANTINE_FOLDER)
        })();
        copied.map_err(|error| storage::failed("write", self.dir.path_of(&path), error))
    }

    /// Writes down what is in the quarantine: a line for each file, fields parted by tabs.
    pub(super) fn manifest(&self, quarantine: &[Kept]) -> Result<(), Error> {
        if quarantine.is_empty() {
            return Ok(());
        }
        let mut text = String::from("tenure salvage manifest 1\n");
        for kept in quarantine {
            let (kind, what) = (kept.kind.as_str(), kept.kind);
            let frame = kept.header.map_or("-".to_owned(), |header| {
                format!(
                    "position {} facts {} texts {} bodies {}",
                    header.position, header.facts_len, header.texts_len, header.bodies_len
                )
            });
            let (file, from, offset, bytes) = (&kept.file, &kept.from, kept.offset, kept.bytes);
            text += &format!("{file}\t{from}\t{offset}\t{bytes}\t{kind}\t{what}\t{frame}\n");
        }
        let path = format!("{QUARANTINE_FOLDER}/{MANIFEST_NAME}");
        self.dir
            .open(&path, Access::CreateNew)
            .and_then(|file| {
                storage::write_full(&*file, text.as_bytes(), 0)?;
                file.sync()?;
                self.dir.sync(QUARANTINE_FOLDER)
            })
            .map_err(|error| storage::failed("write", self.dir.path_of(&path), error))
    }

    /// Writes the first frame of the new life in a segment of its own, and names the segments. The newest gets its name
    /// first: until the last one has its own, a segment is missing, and nobody takes this for a store.
    pub(super) fn finish(
        mut self,
        incarnation: Incarnation,
        salt: Salt,
        draft: &Draft,
    ) -> Result<(), Error> {
        if self.is_empty() {
            (self.header.incarnation, self.header.salt) = (incarnation, salt);
            self.header.chain = Chain::born(self.header.store, salt);
            self.head = self.header.start();
        } else {
            self.rotate(incarnation, self.header.rules, salt)?;
        }
        self.encode(incarnation, draft)?;
        self.close()?;
        Locks::new(self.dir.clone()).create(self.header.epoch)?;
        for name in self.made.iter().rev() {
            let (from, to) = (scratch(*name), file_name(*name));
            self.dir
                .rename(&from, &to, Onto::Nothing)
                .and_then(|()| self.dir.sync(SEGMENTS_FOLDER))
                .map_err(|error| storage::failed("name", self.dir.path_of(&to), error))?;
        }
        self.dir
            .sync("")
            .map_err(|error| storage::failed("sync", self.dir.path(), error))
    }
}

fn make(dir: &dyn Directory, header: &SegmentHeader) -> Result<Arc<dyn StoredFile>, Error> {
    let name = scratch(header.name());
    let failed = |error| storage::failed("make", dir.path_of(&name), error);
    let file = dir.open(&name, Access::CreateNew).map_err(failed)?;
    storage::write_full(&*file, &header.encode(), 0).map_err(failed)?;
    Ok(file)
}
