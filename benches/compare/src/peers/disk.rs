//! The physical limit: one small write into zeros and one sync, with nothing around them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tenure_benches::workload::{Crew, Step};

use super::{Hand, Peer, Place};

/// Bytes of a write: header, facts and body of a small event.
const WRITE_BYTES: usize = 128;
/// Bytes of the file that is written to, filled with zeros before.
const FILE_BYTES: usize = 16 << 20;

/// The bare disk. Each thread has a file of its own and syncs it alone.
pub struct Disk;

impl Peer for Disk {
    fn name(&self) -> &'static str {
        super::DISK
    }

    fn sync_call(&self) -> &'static str {
        "fdatasync per write"
    }

    fn make(&self, dir: &Path, crews: &[Crew]) -> Box<dyn Place> {
        let file = |n: usize| {
            let path = dir.join(n.to_string());
            std::fs::write(&path, vec![0; FILE_BYTES]).expect("the disk has room");
            let file = File::options().write(true).open(path).expect("just made");
            file.sync_all().expect("synced");
            file
        };
        // More than four files would only measure how they wait for each other.
        let files = (0..crews.len().min(4)).map(file).collect();
        let next = std::sync::atomic::AtomicUsize::new(0);
        Box::new(Files { files, next })
    }
}

struct Files {
    files: Vec<File>,
    next: std::sync::atomic::AtomicUsize,
}

impl Place for Files {
    fn hand(&self) -> Box<dyn Hand + '_> {
        let n = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = &self.files[n % self.files.len()];
        Box::new(Writing { file, offset: 0 })
    }

    fn count(self: Box<Self>) -> Option<u64> {
        None
    }
}

struct Writing<'f> {
    file: &'f File,
    offset: usize,
}

impl Hand for Writing<'_> {
    fn perform(&mut self, crew: &mut Crew, steps: &[Step]) {
        let bytes = vec![1; WRITE_BYTES * steps.len()];
        let at = self.offset % (FILE_BYTES - bytes.len());
        self.file.write_all_at(&bytes, at as u64).expect("written");
        self.file.sync_data().expect("synced");
        self.offset += bytes.len();
        for step in steps {
            crew.done(step, None);
        }
    }
}
