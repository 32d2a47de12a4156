//! The files that are kept of the past: the same bytes whoever makes them, and never truth.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tenure_log::frame::Depth;
use tenure_log::journal::Journal;

use super::{kept_as_replayed, play, step};
use crate::balky::Balky;
use crate::scene::Scene;

/// Bytes of a page of rows with and without its checksum, and of a row.
const PAGE_BYTES: usize = 4096;
const ROOM: usize = PAGE_BYTES - 4;
const ROW_BYTES: usize = 96;

/// The file of what lasts, and the rows of what has ended, whichever files they stand in.
fn kept_files(scene: &Scene) -> (Option<Vec<u8>>, Vec<Vec<u8>>) {
    let blobs = scene.log.snapshots();
    let read = |name: &str| blobs.read(name).expect("memory can be read");
    let mut rows = Vec::new();
    let files = blobs.list().expect("memory can be listed");
    for name in files.iter().filter(|name| name.starts_with("held-")) {
        let file = read(name).expect("it is listed");
        let count = u64::from_le_bytes(*file[64..].first_chunk().expect("in the first page"));
        let pages = file[PAGE_BYTES..].chunks(PAGE_BYTES);
        let all = pages.flat_map(|page| page[..ROOM].chunks_exact(ROW_BYTES));
        rows.extend(all.take(count as usize).map(<[u8]>::to_vec));
    }
    rows.sort_unstable();
    (read("held"), rows)
}

/// A store that has followed who held what writes the bytes that are read from the log where none are kept.
pub fn followed_as_read(scene: &Scene) -> Result<(), TestCaseError> {
    scene.store.snapshot().expect("it is kept");
    kept_as_read(scene)
}

/// What is kept is what is read from the log where nothing is.
fn kept_as_read(scene: &Scene) -> Result<(), TestCaseError> {
    let followed = kept_files(scene);
    let blobs = scene.log.snapshots();
    for name in blobs.list().expect("memory can be listed") {
        if name.starts_with("held") {
            blobs.remove(&name).expect("memory forgets");
        }
    }
    scene.another().snapshot().expect("it is kept");
    prop_assert_eq!(kept_files(scene), followed);
    Ok(())
}

/// A handle that folds what many others append does not follow who held what: the one that writes a snapshot reads it. Once
/// it appends nearly everything itself it follows again, and reads nothing. What is kept is the same bytes throughout.
#[test]
fn one_among_many_does_not_follow_and_one_alone_does() {
    let scene = Scene::new();
    let journal = Arc::new(Balky::new(&scene.log));
    let one = scene.upon(journal.clone());
    let mut runner = TestRunner::deterministic();
    let mut others = |frames: u64| {
        let end = scene.frames() + frames;
        while scene.frames() < end {
            let line = step().new_tree(&mut runner).expect("a step").current();
            // A new life would end the grant of the one.
            if line != "raise" {
                play(&scene, &line);
            }
        }
    };
    let own = |line: &str| {
        let said = scene.run_on(&one, line);
        assert!(!said.contains(": "), "{line} -> {said}");
    };
    let mut covered = 0;
    // What the snapshot reads of the frames since the last one.
    let mut snapshot = || {
        one.view(|_| ()).expect("the log reads");
        journal.reads();
        one.snapshot().expect("it is kept");
        let reads = journal.reads_of_depth().into_iter();
        let reads = reads.filter(|(after, _)| after.0 == covered);
        let reads: Vec<_> = reads.map(|(_, depth)| depth).collect();
        covered = scene.frames();
        kept_as_read(&scene).expect("the same bytes");
        reads
    };
    own("register mine pid=5");
    own("note alone as=mine@1");
    assert_eq!(snapshot(), [], "everything is noted");
    others(40);
    own("note beside others as=mine@1");
    assert_eq!(snapshot(), [Depth::Facts], "authority is followed");
    for _ in 0..10 {
        others(40);
        own("note among many as=mine@1");
    }
    assert_eq!(snapshot(), [Depth::Whole], "nothing is");
    for n in 0..500 {
        own(&format!("note alone-again-{n} as=mine@1"));
    }
    assert_eq!(snapshot(), [Depth::Whole], "it was not before");
    own("adopt mine force=why pid=6");
    own("dispatch late mine writes=/w/late");
    others(3);
    own("note once-more as=mine@2");
    assert_eq!(snapshot(), [Depth::Facts], "authority is followed again");
    own("retire mine@2");
    assert_eq!(snapshot(), [], "everything is noted again");
}

/// What lasts is read page by page, and a page that is not what was written, wherever it is, changes no answer: neither
/// one that is read nor one that the next snapshot takes over.
#[test]
fn a_damaged_page_of_what_lasts_changes_no_answer() {
    let scene = Scene::new();
    for n in 0..40 {
        scene.play(&format!(
            "register s{n} pid={n}
             dispatch item{n} s{n} writes=/w/{n}
             accept d{} as=s{n}@1",
            n + 1
        ));
    }
    scene.store.snapshot().expect("it is kept");
    let blobs = scene.log.snapshots();
    let good = blobs.read("held").expect("memory can be read");
    let good = good.expect("it is kept");
    scene.play(
        "adopt s3 force=gone pid=77
         report d20 done as=s19@1
         retire s30@1
         register s30 pid=78",
    );
    let step = good.len() / 20;
    for at in (0..good.len()).step_by(step) {
        let mut flipped = good.clone();
        flipped[at] ^= 0x10;
        blobs
            .write_atomic("held", &flipped)
            .expect("memory takes it");
        kept_as_replayed(&scene).expect("the answers are those of a replay");
    }
    for at in (0..good.len()).step_by(4 * step) {
        let mut flipped = good.clone();
        flipped[at] ^= 0x10;
        blobs
            .write_atomic("held", &flipped)
            .expect("memory takes it");
        let follower = scene.another();
        scene.play("observe busy as=s1@1");
        follower.snapshot().expect("it is kept");
        kept_as_replayed(&scene).expect("the answers are those of a replay");
        let written = blobs.read("held").expect("memory can be read");
        assert_ne!(written.expect("it is kept"), flipped);
    }
}
