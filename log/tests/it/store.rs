//! A small store built byte by byte, to be damaged.

use std::collections::BTreeMap;
use std::io;

use tenure_log::format::{
    Predecessor, RulesVersion, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentName, WriterVersion,
};
use tenure_log::frame::{Draft, Parts, Place, encode_into};
use tenure_log::look::Look;
use tenure_log::position::{Chain, Epoch, Head, Incarnation, Position, Salt, StoreId, TimeMicros};
use tenure_log::scan::ReadAt;

pub const STORE: StoreId = StoreId([0xa1; 16]);
pub const SALT: Salt = Salt([0xb2; 16]);

/// The segments directory of a store and its control page, in memory.
#[derive(Clone, Debug, Default)]
pub struct Files(pub BTreeMap<String, Vec<u8>>, pub Option<Vec<u8>>);

impl Look for Files {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ReadAt>> {
        let bytes = self.0.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Bytes(bytes.clone())))
    }

    fn control(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.1.clone())
    }

    fn seal(&self, _segment: SegmentName) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

pub struct Bytes(pub Vec<u8>);

impl ReadAt for Bytes {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.0.get(offset as usize..).unwrap_or(&[]);
        // Few bytes at a time, as a system may give them.
        let n = left.len().min(into.len()).min(5000);
        into[..n].copy_from_slice(&left[..n]);
        Ok(n)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// Writes segments the way a writer would, without one.
#[derive(Clone, Debug)]
pub struct Builder {
    pub files: Files,
    pub header: SegmentHeader,
    pub head: Head,
    /// What the next frames state as durable: this far behind themselves.
    pub durable_behind: u64,
    /// Where each frame begins: segment, offset, length.
    pub frames: Vec<(SegmentName, usize, usize)>,
}

impl Builder {
    pub fn born() -> Builder {
        let header = SegmentHeader {
            format: 1,
            writer: WriterVersion(1_002_003),
            rules: RulesVersion(1),
            store: STORE,
            salt: SALT,
            incarnation: Incarnation(1),
            epoch: Epoch(1),
            first: Position(1),
            chain: Chain::born(STORE, SALT),
            predecessor: None,
        };
        let mut builder = Builder {
            files: Files::default(),
            header,
            head: header.start(),
            durable_behind: 1,
            frames: Vec::new(),
        };
        builder.begin();
        builder
    }

    fn begin(&mut self) {
        self.files.0.insert(
            self.header.name().to_string(),
            self.header.encode().to_vec(),
        );
    }

    pub fn newest(&mut self) -> &mut Vec<u8> {
        self.files
            .0
            .get_mut(&self.header.name().to_string())
            .expect("begun")
    }

    pub fn file(&mut self, name: SegmentName) -> &mut Vec<u8> {
        self.files.0.get_mut(&name.to_string()).expect("begun")
    }

    /// Appends one frame whose content follows from its position.
    pub fn append(&mut self) -> &mut Builder {
        let n = self.head.position.0 + 1;
        let parts = Parts {
            facts: vec![n as u8; 5 + n as usize % 7],
            texts: format!("text {n}").into_bytes(),
            bodies: format!("body of {n}").into_bytes(),
        };
        self.append_draft(&Draft {
            time: TimeMicros(1_000 * n as i64),
            parts,
        })
    }

    pub fn append_draft(&mut self, draft: &Draft) -> &mut Builder {
        let header = self.header;
        let n = self.head.position.0 + 1;
        let durable = Position(n.saturating_sub(1 + self.durable_behind));
        let place = Place::in_segment(header.salt, header.first, header.epoch);
        let (head, offset) = (self.head, self.newest().len());
        let file = self.newest();
        let head = encode_into(
            file,
            &place.at(offset as u64),
            head,
            durable,
            header.incarnation,
            draft,
        )
        .expect("fits");
        let len = file.len() - offset;
        self.frames.push((header.name(), offset, len));
        self.head = head;
        self
    }

    pub fn append_many(&mut self, count: usize) -> &mut Builder {
        for _ in 0..count {
            self.append();
        }
        self
    }

    /// Fills the newest segment up with prepared space.
    pub fn zeros(&mut self, bytes: usize) -> &mut Builder {
        let file = self.newest();
        file.resize(file.len() + bytes, 0);
        self
    }

    /// Closes the newest segment behind its last frame and begins the next.
    pub fn rotate(&mut self) -> &mut Builder {
        let epoch = self.header.epoch;
        self.take_over(epoch)
    }

    pub fn take_over(&mut self, epoch: Epoch) -> &mut Builder {
        let name = self.header.name();
        let own = self
            .frames
            .iter()
            .rev()
            .find(|(segment, ..)| *segment == name);
        let end_offset = own.map_or(SEGMENT_HEADER_BYTES, |(_, offset, len)| offset + len) as u64;
        let predecessor = Predecessor {
            name,
            end_offset,
            end: self.head,
        };
        self.header = SegmentHeader {
            epoch,
            first: self.head.position.next(),
            chain: self.head.chain,
            predecessor: Some(predecessor),
            ..self.header
        };
        self.begin();
        self
    }

    /// Three segments: three frames, two behind a take-over, four behind a rotation, each with prepared space behind.
    pub fn small() -> Builder {
        let mut builder = Builder::born();
        builder
            .append_many(3)
            .zeros(200)
            .take_over(Epoch(2))
            .append_many(2)
            .zeros(96)
            .rotate()
            .append_many(4)
            .zeros(300);
        builder
    }
}

/// Written out from `docs/format.md`, not from the code.
pub fn seeded_crc(salt: Salt, first: Position, epoch: Epoch, offset: u64, header: &[u8]) -> u32 {
    let mut bytes = salt.0.to_vec();
    for number in [first.0, epoch.0, offset] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(header);
    crc32fast::hash(&bytes)
}

/// Makes the header CRC of the frame at `offset` right again, as somebody would who edits a store.
pub fn reseal(file: &mut [u8], name: SegmentName, offset: usize) {
    let crc = seeded_crc(
        SALT,
        name.first,
        name.epoch,
        offset as u64,
        &file[offset..offset + 80],
    );
    file[offset + 80..offset + 84].copy_from_slice(&crc.to_le_bytes());
}
