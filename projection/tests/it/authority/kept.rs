//! The files that are kept of the past: the same bytes whoever makes them, and never truth.

use proptest::prelude::*;
use tenure_log::journal::Journal;

use super::kept_as_replayed;
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
