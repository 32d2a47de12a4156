//! What this memory, this page cache and this checksum allow: the ceilings of every replay.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Instant;

use memmap2::Mmap;
use tenure_benches::figures::Figures;

/// Bytes that are read in each measurement: many times what the processor's caches hold.
const BYTES: usize = 512 << 20;
const GIB: f64 = 1e9;

/// Billions of bytes a second.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Summing memory, one core.
    pub memory: Figures,
    /// Summing a mapped file that is in the page cache, one core, mapped anew each time.
    pub scan: Figures,
    /// CRC-32 of pieces of one frame's size, one core.
    pub checksum: Figures,
    /// That size in bytes.
    pub frame_bytes: usize,
}

/// Measures them.
pub fn measure(dir: &Path, rounds: usize, frame_bytes: usize) -> io::Result<Limits> {
    eprintln!("limits of memory and page cache");
    let scratch = tempfile::tempdir_in(dir)?;
    let path = scratch.path().join("scanned");
    let mut memory: Vec<u8> = Vec::with_capacity(BYTES);
    memory.extend((0..BYTES).map(|n| n as u8));
    let mut file = File::create(&path)?;
    file.write_all(&memory)?;
    file.sync_all()?;
    drop(file);
    let (mut summed, mut scanned, mut checked) = (Vec::new(), Vec::new(), Vec::new());
    // The first round touches everything for the first time, and counts for nobody.
    for round in 0..=rounds.max(3) {
        let figures = [
            per_second(|| sum(&memory)),
            scan(&path)?,
            per_second(|| checksums(&memory, frame_bytes)),
        ];
        if round > 0 {
            summed.push(figures[0]);
            scanned.push(figures[1]);
            checked.push(figures[2]);
        }
    }
    Ok(Limits {
        memory: Figures::new(summed),
        scan: Figures::new(scanned),
        checksum: Figures::new(checked),
        frame_bytes,
    })
}

fn per_second(work: impl FnOnce() -> u64) -> f64 {
    let began = Instant::now();
    std::hint::black_box(work());
    BYTES as f64 / GIB / began.elapsed().as_secs_f64()
}

fn scan(path: &Path) -> io::Result<f64> {
    let began = Instant::now();
    let file = File::open(path)?;
    // SAFETY: the file is in a directory that was made for this run, and nothing writes to it any more.
    let map = unsafe { Mmap::map(&file)? };
    std::hint::black_box(sum(&map));
    Ok(BYTES as f64 / GIB / began.elapsed().as_secs_f64())
}

fn sum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let add = |sum: u64, word: &[u8; 8]| sum.wrapping_add(u64::from_le_bytes(*word));
    words.iter().fold(0, add)
}

fn checksums(bytes: &[u8], frame_bytes: usize) -> u64 {
    let pieces = bytes.chunks_exact(frame_bytes);
    let check = |sum: u64, piece| sum.wrapping_add(crc32fast::hash(piece).into());
    pieces.fold(0, check)
}
