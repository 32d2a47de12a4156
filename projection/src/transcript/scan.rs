//! Cuts a transcript into stretches as its bytes come: every byte is part of a record, of what separates records, or
//! of damage. Nothing is held besides the state of one record, however long lines and files are.

use tenure_log::scan::Span;

use super::json::{Fields, Machine, Step, Texts};
use super::shape;

/// The first bytes of BLAKE3 of a record.
pub type Digest = [u8; 16];

/// What a stretch of the file is.
#[derive(Clone, Debug)]
pub enum What {
    /// A record, from `{` to `}`.
    Record(Box<Found>),
    /// Line ends, blanks, a byte order mark at the start.
    Separator,
    /// Bytes that belong to no record.
    Damage(Damage),
}

/// A record as it was found.
#[derive(Clone, Debug)]
pub struct Found {
    pub fields: Fields,
    pub texts: Texts,
    pub digest: Digest,
    /// It begins on a line on which something else stands before it.
    pub glued: bool,
}

/// How bytes came to belong to no record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// A record that was not written to its end.
    Torn,
    /// The same at the end of the file.
    Unfinished,
    /// Zeros.
    Nul,
    /// No record at all.
    NotJson,
    /// A byte order mark inside the file.
    StrayBom,
}

/// A stretch of the file.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// Which bytes.
    pub span: Span,
    /// On which line it begins, from 1.
    pub line: u64,
    /// What it is.
    pub what: What,
}

/// What separates records is counted on the way.
#[derive(Clone, Copy, Default, Debug)]
pub struct Separators {
    pub bom: bool,
    pub crlf: u64,
    pub blank: u64,
    /// Whether the last line holds something and has no end.
    pub open: bool,
}

#[derive(Debug)]
enum Mode {
    Between,
    Bom(u8),
    Record(Box<Reading>),
    Nul,
    Junk,
}

#[derive(Debug)]
struct Reading {
    machine: Machine,
    hasher: blake3::Hasher,
    /// Bytes of the record that are not hashed yet; at least the last two stay here.
    tail: Vec<u8>,
    glued: bool,
}

/// How many bytes are hashed at a time.
const HASHED_BYTES: usize = 4096;

impl Reading {
    fn new(glued: bool) -> Self {
        Self {
            machine: Machine::default(),
            hasher: blake3::Hasher::new(),
            tail: Vec::new(),
            glued,
        }
    }

    fn step(&mut self, byte: u8) -> Step {
        if self.tail.len() >= HASHED_BYTES {
            let kept = self.tail.split_off(self.tail.len() - 2);
            self.hasher.update(&self.tail);
            self.tail = kept;
        }
        let step = self.machine.step(byte);
        if step != Step::Broken {
            self.tail.push(byte);
        }
        step
    }

    fn found(mut self) -> Found {
        self.hasher.update(&self.tail);
        let mut digest = [0; 16];
        digest.copy_from_slice(&self.hasher.finalize().as_bytes()[..16]);
        Found {
            fields: self.machine.fields,
            texts: self.machine.texts,
            digest,
            glued: self.glued,
        }
    }
}

/// Cuts a transcript into stretches.
#[derive(Debug)]
pub struct Scanner {
    at: u64,
    from: u64,
    line: u64,
    mode: Mode,
    /// Whether anything but separators stands on this line.
    used: bool,
    previous: u8,
    pub separators: Separators,
}

impl Default for Scanner {
    fn default() -> Self {
        Self {
            at: 0,
            from: 0,
            line: 1,
            mode: Mode::Between,
            used: false,
            previous: 0,
            separators: Separators::default(),
        }
    }
}

impl Scanner {
    /// Takes the next bytes, and gives every stretch that ends in them.
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl FnMut(Stretch)) {
        for byte in bytes {
            self.take(*byte, sink);
            self.at += 1;
            self.previous = *byte;
        }
    }

    /// The file ends here: gives the last stretch.
    pub fn finish(&mut self, sink: &mut impl FnMut(Stretch)) {
        match std::mem::replace(&mut self.mode, Mode::Between) {
            Mode::Between => self.end(What::Separator, sink),
            Mode::Record(_) => self.end(What::Damage(Damage::Unfinished), sink),
            Mode::Nul => self.end(What::Damage(Damage::Nul), sink),
            Mode::Bom(_) | Mode::Junk => self.end(What::Damage(Damage::NotJson), sink),
        }
        self.separators.open = self.used;
    }

    fn take(&mut self, byte: u8, sink: &mut impl FnMut(Stretch)) {
        match &mut self.mode {
            Mode::Between => self.between(byte, sink),
            Mode::Bom(seen) => match (*seen, byte) {
                (1, 0xbb) => *seen = 2,
                (2, 0xbf) => {
                    let first = self.from == 0;
                    self.separators.bom |= first;
                    let what = match first {
                        true => What::Separator,
                        false => What::Damage(Damage::StrayBom),
                    };
                    self.at += 1;
                    self.end(what, sink);
                    self.at -= 1;
                    self.mode = Mode::Between;
                }
                _ => {
                    self.mode = Mode::Junk;
                    self.used = true;
                    self.take(byte, sink);
                }
            },
            Mode::Nul if byte == 0 => {}
            Mode::Nul => self.ends(Damage::Nul, byte, sink),
            Mode::Junk if matches!(byte, b'\n' | 0) => self.ends(Damage::NotJson, byte, sink),
            Mode::Junk => {}
            Mode::Record(reading) => match reading.step(byte) {
                Step::More => {}
                Step::Done => self.done(sink),
                Step::Broken => self.broken(byte, sink),
            },
        }
    }

    fn between(&mut self, byte: u8, sink: &mut impl FnMut(Stretch)) {
        match byte {
            b'\n' => {
                self.separators.crlf += u64::from(self.previous == b'\r');
                self.separators.blank += u64::from(!self.used);
                self.used = false;
                self.at += 1;
                self.end(What::Separator, sink);
                self.at -= 1;
                self.line += 1;
                return;
            }
            b' ' | b'\t' | b'\r' => return,
            _ => self.end(What::Separator, sink),
        }
        self.mode = match byte {
            0xef if !self.used => {
                self.mode = Mode::Bom(1);
                return;
            }
            0 => Mode::Nul,
            b'{' => {
                let mut reading = Reading::new(self.used);
                reading.step(byte);
                Mode::Record(Box::new(reading))
            }
            _ => Mode::Junk,
        };
        self.used = true;
    }

    /// Damage ends before this byte.
    fn ends(&mut self, damage: Damage, byte: u8, sink: &mut impl FnMut(Stretch)) {
        self.end(What::Damage(damage), sink);
        self.mode = Mode::Between;
        self.between(byte, sink);
    }

    fn done(&mut self, sink: &mut impl FnMut(Stretch)) {
        let Mode::Record(reading) = std::mem::replace(&mut self.mode, Mode::Between) else {
            return;
        };
        let found = reading.found();
        // What is only found because something before it broke has to look like a record; it might be a part of one.
        let what = match found.glued && shape::host(&found.fields).is_none() {
            true => What::Damage(Damage::NotJson),
            false => What::Record(Box::new(found)),
        };
        self.at += 1;
        self.end(what, sink);
        self.at -= 1;
    }

    /// No object goes on with this byte. Where another one begins at it, or began with the text that it is part of,
    /// two records stand on one line.
    fn broken(&mut self, byte: u8, sink: &mut impl FnMut(Stretch)) {
        let tail = match &self.mode {
            Mode::Record(reading) => &reading.tail[..],
            _ => &[],
        };
        let opened = tail.ends_with(b"{\"") && self.at - self.from > 2;
        match byte {
            b'\n' | 0 => self.ends(Damage::Torn, byte, sink),
            b'{' => self.ends(Damage::Torn, byte, sink),
            _ if opened => {
                self.at -= 2;
                self.ends(Damage::Torn, b'{', sink);
                self.at += 1;
                self.take(b'"', sink);
                self.at += 1;
                self.take(byte, sink);
            }
            _ => self.mode = Mode::Junk,
        }
    }

    /// Gives what stands between the last stretch and here.
    fn end(&mut self, what: What, sink: &mut impl FnMut(Stretch)) {
        let bytes = self.at - self.from;
        if bytes > 0 {
            sink(Stretch {
                span: Span {
                    offset: self.from,
                    bytes,
                },
                line: self.line,
                what,
            });
        }
        self.from = self.at;
    }
}
