//! `inspect` and the walk below it: total over any bytes, and every byte accounted for once.

use proptest::prelude::*;
use tenure_log::format::SEGMENT_HEADER_BYTES;
use tenure_log::inspect::{Entry, inspect_all};
use tenure_log::scan::{Checks, ReadAt, Step, Walk, Window};

use crate::listing::line;
use crate::store::{Builder, Bytes};

/// Every stretch of a walk over memory, and over a file through a window, as text.
fn both_ways(builder: &Builder, file: &[u8]) -> (Vec<String>, Vec<String>) {
    let mut memory = Walk::new(file, &builder.header, Checks::ALL, None);
    let mut here = Vec::new();
    while let Some(step) = memory.next().expect("memory does not fail") {
        here.push(format!("{step:?}"));
    }
    let window = Window::new(Bytes(file.to_vec())).expect("it has a size");
    let mut walk = Walk::new(window, &builder.header, Checks::ALL, None);
    let mut there = Vec::new();
    while let Some(step) = walk.next().expect("it is read") {
        there.push(format!("{step:?}"));
    }
    (here, there)
}

fn assert_all_is_accounted_for(builder: &Builder, file: &[u8]) {
    let mut walk = Walk::new(file, &builder.header, Checks::ALL, None);
    let mut at = SEGMENT_HEADER_BYTES as u64;
    while let Some((span, _)) = walk.next().expect("memory does not fail") {
        assert_eq!(span.offset, at, "no gap and no overlap");
        assert!(span.bytes > 0, "each step moves on");
        at = span.end();
    }
    assert_eq!(
        at,
        (file.len() as u64).max(SEGMENT_HEADER_BYTES as u64),
        "up to the last byte"
    );
}

proptest! {
    #[test]
    fn any_bytes_behind_a_header_are_walked_to_the_last(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut builder = Builder::born();
        builder.newest().extend_from_slice(&bytes);
        let file = builder.newest().clone();
        assert_all_is_accounted_for(&builder, &file);
    }

    #[test]
    fn a_damaged_segment_is_walked_to_the_last_byte_the_same_way_through_memory_and_file(
        damages in prop::collection::vec((0..1000usize, any::<u8>(), 1..120usize), 0..6),
        cut in 0..1000usize,
    ) {
        let mut builder = Builder::born();
        builder.append_many(7).zeros(90);
        let mut file = builder.newest().clone();
        for (at, byte, len) in damages {
            let from = SEGMENT_HEADER_BYTES + at % (file.len() - SEGMENT_HEADER_BYTES);
            let to = (from + len).min(file.len());
            file[from..to].fill(byte);
        }
        file.truncate((SEGMENT_HEADER_BYTES + cut).min(file.len()));
        assert_all_is_accounted_for(&builder, &file);
        let (memory, window) = both_ways(&builder, &file);
        prop_assert_eq!(memory, window);
    }
}

/// Bytes that look like the beginning of a frame at every step cost one pass, and no memory.
#[test]
fn a_file_full_of_frame_beginnings_is_one_bad_stretch() {
    let mut builder = Builder::born();
    let magic = b"TNF1\xff\xff\xff\x7f".repeat(1 << 17);
    builder.newest().extend_from_slice(&magic);
    let file = builder.newest().clone();
    let mut walk = Walk::new(file.as_slice(), &builder.header, Checks::ALL, None);
    let (span, step) = walk
        .next()
        .expect("memory does not fail")
        .expect("there is something");
    assert_eq!(span.bytes, magic.len() as u64);
    assert!(matches!(step, Step::Bad(_, None)));
    assert!(walk.next().expect("memory does not fail").is_none());
}

/// A segment whose header is lost is read by what its name and its siblings say.
#[test]
fn a_lost_segment_header_is_borrowed_from_a_sibling() {
    let mut builder = Builder::small();
    let name = builder.header.name();
    builder.newest()[..SEGMENT_HEADER_BYTES].fill(0);
    let (mut text, mut borrowed_by) = (String::new(), Vec::new());
    inspect_all(&builder.files, Checks::ALL, &mut |entry| {
        if let Entry::Segment {
            name,
            borrowed: true,
            ..
        } = entry
        {
            borrowed_by.push(name.to_owned());
        }
        line(&mut text, &entry);
    })
    .expect("listed");
    assert_eq!(borrowed_by, [name.to_string()]);
    let behind = text
        .split(&format!("segment {name}"))
        .nth(1)
        .expect("it is listed");
    let positions: Vec<_> = behind
        .lines()
        .filter(|line| line.starts_with("frame"))
        .collect();
    assert_eq!(positions.len(), 4);
    assert!(
        positions[0].contains("detached position=6"),
        "{}",
        positions[0]
    );
    assert!(
        positions[1].contains("follows position=7"),
        "{}",
        positions[1]
    );
}

#[test]
fn every_file_is_shown_even_one_that_is_no_segment() {
    let mut builder = Builder::born();
    builder.append();
    builder
        .files
        .0
        .insert("notes.txt".to_owned(), b"hello".to_vec());
    builder
        .files
        .0
        .insert("00000000000000000009-9.seg".to_owned(), vec![7; 5000]);
    let mut text = String::new();
    inspect_all(&builder.files, Checks::ALL, &mut |entry| {
        line(&mut text, &entry)
    })
    .expect("listed");
    assert!(
        text.contains("segment notes.txt 5\nheader short\n"),
        "{text}"
    );
    assert!(text.contains("segment 00000000000000000009-9.seg 5000\nheader segment-magic\nbad 4096 904 segment-magic\n"));
}

/// A file that is shorter than its size says, cut while it is read: what is not there is not there, and nothing of that
/// size is allocated.
#[test]
fn a_file_that_lies_about_its_size_is_walked_to_its_real_end() {
    struct Lying(Bytes);
    impl ReadAt for Lying {
        fn read_at(&self, into: &mut [u8], offset: u64) -> std::io::Result<usize> {
            assert!(
                into.len() <= 1 << 20,
                "a chunk at most, no frame here is longer"
            );
            self.0.read_at(into, offset)
        }
        fn size(&self) -> std::io::Result<u64> {
            Ok(1 << 60)
        }
    }
    let mut builder = Builder::born();
    builder.append_many(3);
    for extra in [&[][..], &[0; 40], &[7; 40], &[7; 3]] {
        let mut file = builder.newest().clone();
        file.extend_from_slice(extra);
        let window = Window::new(Lying(Bytes(file))).expect("it has a size");
        let mut walk = Walk::new(window, &builder.header, Checks::ALL, None);
        let (mut frames, mut steps) = (0, 0);
        while let Some((_, step)) = walk.next().expect("it is read") {
            frames += usize::from(matches!(step, Step::Frame(..)));
            steps += 1;
        }
        assert_eq!(frames, 3);
        assert!(steps <= 5, "{steps}");
    }
}
