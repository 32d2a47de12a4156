//! Where bytes come from: memory, or a file through a window of bounded size.

use std::io;

use crate::format::SEGMENT_HEADER_BYTES;
use crate::frame::FRAME_BYTES_MAX;

/// Bytes by offset, with a known length.
pub trait Source {
    /// How many bytes there are.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes from `offset`: at least `want` of them, or all up to the end.
    ///
    /// # Errors
    /// The system's answer, where bytes have to be read.
    fn at(&mut self, offset: u64, want: usize) -> io::Result<&[u8]>;
}

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn at(&mut self, offset: u64, _want: usize) -> io::Result<&[u8]> {
        Ok(usize::try_from(offset)
            .ok()
            .and_then(|offset| self.get(offset..))
            .unwrap_or(&[]))
    }
}

/// A file that can be read at an offset. The whole of what scanning asks of a file system.
pub trait ReadAt {
    /// Reads at `offset`; fewer bytes than asked for only at the end of the file, or when the system gave fewer.
    ///
    /// # Errors
    /// The system's answer.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The size in bytes.
    ///
    /// # Errors
    /// The system's answer.
    fn size(&self) -> io::Result<u64>;
}

/// Reads until `into` is full or the file ends; returns how much was read.
///
/// # Errors
/// The system's answer; an interrupted call is made again.
pub fn read_full(file: &dyn ReadAt, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < into.len() {
        match file.read_at(&mut into[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

impl ReadAt for std::fs::File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, into, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl<R: ReadAt + ?Sized> ReadAt for &R {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(into, offset)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }
}

impl<R: ReadAt + ?Sized> ReadAt for Box<R> {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(into, offset)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }
}

/// A file, read in chunks. Its memory is the longest frame met, at most [`FRAME_BYTES_MAX`], and never the length a
/// damaged byte pretends.
#[derive(Debug)]
pub struct Window<R> {
    file: R,
    len: u64,
    start: u64,
    bytes: Vec<u8>,
    /// Read in one go the next time.
    chunk: usize,
}

/// Read in one go at most: enough for thousands of frames, little beside the kernel's read-ahead.
const CHUNK_BYTES: usize = 1 << 20;
/// Read in one go at first, and twice as much each time: who looks for one frame does not pay for thousands.
const FIRST_CHUNK_BYTES: usize = 16 << 10;

impl<R: ReadAt> Window<R> {
    /// Over the whole file, as long as it is now.
    ///
    /// # Errors
    /// The system's answer.
    pub fn new(file: R) -> io::Result<Window<R>> {
        let len = file.size()?;
        Ok(Window {
            file,
            len,
            start: 0,
            bytes: Vec::new(),
            chunk: FIRST_CHUNK_BYTES,
        })
    }

    /// The file.
    pub(crate) fn file(&self) -> &R {
        &self.file
    }

    /// Forgets what was read and takes the file's size again: somebody writes to it.
    ///
    /// # Errors
    /// The system's answer.
    pub fn read_anew(&mut self) -> io::Result<()> {
        self.len = self.file.size()?;
        self.bytes.clear();
        Ok(())
    }

    fn fill(&mut self, offset: u64, want: usize) -> io::Result<()> {
        let left = usize::try_from(self.len - offset).unwrap_or(usize::MAX);
        let want = want
            .max(self.chunk)
            .min(FRAME_BYTES_MAX.max(SEGMENT_HEADER_BYTES))
            .min(left);
        self.chunk = CHUNK_BYTES.min(2 * self.chunk);
        self.start = offset;
        self.bytes.resize(want, 0);
        let read = match read_full(&self.file, &mut self.bytes, offset) {
            Ok(read) => read,
            Err(error) => {
                self.bytes.clear();
                return Err(error);
            }
        };
        if read < want {
            // Shorter than its size said: cut meanwhile. What is not there is not there.
            self.len = offset + read as u64;
        }
        self.bytes.truncate(read);
        Ok(())
    }
}

impl<S: Source + ?Sized> Source for &mut S {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn at(&mut self, offset: u64, want: usize) -> io::Result<&[u8]> {
        (**self).at(offset, want)
    }
}

impl<R: ReadAt> Source for Window<R> {
    fn len(&self) -> u64 {
        self.len
    }

    fn at(&mut self, offset: u64, want: usize) -> io::Result<&[u8]> {
        if offset >= self.len {
            return Ok(&[]);
        }
        let held = self.start + self.bytes.len() as u64;
        let enough = offset.saturating_add(want as u64).min(self.len);
        if offset < self.start || enough > held {
            self.fill(offset, want)?;
        }
        Ok(self
            .bytes
            .get((offset - self.start) as usize..)
            .unwrap_or(&[]))
    }
}
