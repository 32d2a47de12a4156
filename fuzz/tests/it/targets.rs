//! The fuzz targets on made-up bytes, and on every golden file with bytes changed, under a ceiling on single
//! allocations.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tenure_fuzz::allocator::{Counting, largest};
use tenure_fuzz::rig::fuzz::{CEILING, corpus};
use tenure_fuzz::targets;

#[global_allocator]
static COUNTING: Counting = Counting;

fn bounded() {
    let largest = largest();
    assert!(
        largest <= CEILING,
        "somebody asked for {largest} bytes at once"
    );
}

fn segments(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("the golden files are there") {
        let path = entry.expect("a directory reads").path();
        if path.is_dir() {
            segments(&path, into);
        } else if path.extension().is_some_and(|e| e == "seg") {
            into.push(path);
        }
    }
}

/// C6, F07, F27, F33: every golden segment, whole, cut short, and with single bytes changed.
#[test]
fn golden_segments_with_changed_bytes_are_walked_to_their_end() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../log/tests/golden");
    let mut paths = Vec::new();
    segments(Path::new(golden), &mut paths);
    assert!(paths.len() > 5, "the golden files are found");
    for path in paths {
        let mut bytes = std::fs::read(&path).expect("a golden file reads");
        // Behind the frames there are only zeros; the first few blocks hold everything there is.
        bytes.truncate(24 << 10);
        targets::segment(&bytes);
        for at in 0..bytes.len() {
            let was = bytes[at];
            for bit in [0, 3, 7] {
                bytes[at] = was ^ (1 << bit);
                targets::segment(&bytes);
            }
            bytes[at] = was;
            if at % 64 == 0 {
                targets::segment(&bytes[..at]);
            }
        }
    }
    bounded();
}

/// C6, F2: every file of every corpus, as it is; `fuzz/corpus` is what the rig changes by chance.
#[test]
fn every_file_of_the_corpus_is_read_or_refused() {
    for (name, target) in targets::TARGETS {
        let corpus = corpus(name).expect("there is a corpus");
        for bytes in corpus {
            target(&bytes);
            bounded();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_facts_decode_or_are_refused(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        targets::facts(&data);
        bounded();
    }

    #[test]
    fn facts_that_begin_well_decode_or_are_refused(
        session in any::<u32>(),
        flags in 0_u8..8,
        rest in proptest::collection::vec(any::<u8>(), 16..300),
    ) {
        let mut data = vec![200, 1, flags, 1, 0];
        data.extend_from_slice(&session.to_le_bytes());
        data.extend_from_slice(&rest);
        targets::facts(&data);
        bounded();
    }

    #[test]
    fn arbitrary_snapshots_decode_or_are_refused(data in proptest::collection::vec(any::<u8>(), 0..600)) {
        targets::snapshot(&data);
        bounded();
    }

    #[test]
    fn what_parses_prints_as_it_was_typed(text in "[a-z@.:/~0-9-]{0,40}|[0-9a-f]{32}:[0-9]{1,4}:[0-9a-f]{32}") {
        targets::typed(text.as_bytes());
    }
}
