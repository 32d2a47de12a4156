//! Frames that stand where they should not, and frames of other stores and lives.

use tenure_log::position::{Incarnation, Salt, StoreId};
use tenure_log::salvage::Aside;

use super::{content_of, judge};
use crate::store::{Builder, Files};

/// The positions whose bytes are not where they were.
fn touched(builder: &Builder, files: &Files) -> Vec<u64> {
    let (before, after) = (&builder.files.0, &files.0);
    let places = (1_u64..).zip(&builder.frames);
    let changed = places.filter(|(_, (name, offset, len))| {
        let (name, end) = (name.to_string(), offset + len);
        let was = before[&name].get(*offset..end);
        was.is_none() || after[&name].get(*offset..end) != was
    });
    changed.map(|(position, _)| position).collect()
}

/// F36: every frame dropped, by zeros or by moving up what is behind it; doubled, over the next one or before it; and every
/// two frames exchanged: what stands where it stood is kept, whatever else was done.
#[test]
fn every_frame_that_stands_where_it_stood_is_kept() {
    let builder = Builder::small();
    let whole = content_of(&builder.files);
    let mut tried = 0;
    let mut check = |files: Files, context: &str| {
        judge(&whole, &files, &touched(&builder, &files), context);
        tried += 1;
    };
    for (one, (name, offset, len)) in builder.frames.iter().enumerate() {
        let name = name.to_string();
        let frame = builder.files.0[&name][*offset..offset + len].to_vec();
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut files = builder.files.clone();
            change(files.0.get_mut(&name).expect("there"));
            files
        };
        let end = offset + len;
        check(with(&|bytes| bytes[*offset..end].fill(0)), "zeroed");
        check(with(&|bytes| drop(bytes.drain(*offset..end))), "dropped");
        let doubled = with(&|bytes| drop(bytes.splice(end..end, frame.clone())));
        check(doubled, "doubled");
        let over = with(&|bytes| {
            let room = bytes.len().saturating_sub(end).min(frame.len());
            bytes[end..end + room].copy_from_slice(&frame[..room]);
        });
        check(over, "written over the next one");
        for (other_name, at, other_len) in &builder.frames[one + 1..] {
            let other_name = other_name.to_string();
            let other = builder.files.0[&other_name][*at..at + other_len].to_vec();
            let mut files = builder.files.clone();
            let file = files.0.get_mut(&other_name).expect("there");
            file.splice(*at..at + other_len, frame.clone());
            let file = files.0.get_mut(&name).expect("there");
            file.splice(*offset..end, other);
            check(files, "exchanged");
        }
    }
    assert!(tried > 70, "{tried}");
}

/// A store like the small one, of another id, or of another life of the same one.
fn other(change: impl Fn(&mut Builder)) -> Builder {
    let mut builder = Builder::born();
    builder.files = Files::default();
    change(&mut builder);
    builder.header.chain =
        tenure_log::position::Chain::born(builder.header.store, builder.header.salt);
    builder.head = builder.header.start();
    builder.files.0.insert(
        builder.header.name().to_string(),
        builder.header.encode().to_vec(),
    );
    builder.append_many(5);
    builder
}

fn another_store(builder: &mut Builder) {
    (builder.header.store, builder.header.salt) = (StoreId([0x77; 16]), Salt([0x78; 16]));
}

/// Frames of another store, and of an older life under another salt, are never taken in, wherever they stand and though
/// their positions would fit: they go to quarantine.
#[test]
fn foreign_frames_go_to_quarantine() {
    let foreign = [
        other(another_store),
        other(|b| b.header.salt = Salt([0x55; 16])),
        other(|b| {
            b.header.salt = Salt([0x56; 16]);
            b.header.incarnation = Incarnation(9);
        }),
    ];
    for (number, foreign) in foreign.iter().enumerate() {
        let mut ours = Builder::born();
        ours.append_many(3);
        let whole = content_of(&ours.files);
        let theirs = foreign.files.0.values().next().expect("a segment");
        // At the offsets where they stood in their own store, behind what is ours.
        let end = ours.newest().len();
        ours.newest().extend_from_slice(&theirs[end..]);
        let found = judge(&whole, &ours.files, &[4], &format!("foreign {number}"));
        assert_eq!(found.report.frames, 3);
        let kinds: Vec<Aside> = found.report.quarantine.iter().map(|k| k.kind).collect();
        assert!(matches!(kinds[..], [Aside::Bad(_)]), "{kinds:?}");
        let bytes: u64 = found.report.quarantine.iter().map(|k| k.bytes).sum();
        assert_eq!(bytes, (theirs.len() - end) as u64);
    }
}

/// A whole segment file of another store is passed over, and named.
#[test]
fn a_foreign_segment_is_passed_over() {
    let ours = Builder::small();
    let whole = content_of(&ours.files);
    let foreign = other(another_store);
    let mut files = ours.files.clone();
    let theirs = foreign.files.0.values().next().expect("a segment").clone();
    files
        .0
        .insert("00000000000000000900-1.seg".to_owned(), theirs);
    let found = judge(&whole, &files, &[], "foreign");
    let [(name, why)] = &found.report.skipped[..] else {
        panic!("{:?}", found.report.skipped);
    };
    assert_eq!(name, "00000000000000000900-1.seg");
    assert!(why.contains("belongs to store"), "{why}");
    // A copy of one of ours under another name costs nothing either.
    let (name, bytes) = ours.files.0.iter().next().expect("a segment");
    let mut files = ours.files.clone();
    files.0.insert("copy".to_owned(), bytes.clone());
    let found = judge(&whole, &files, &[], "copied");
    assert_eq!(
        found.report.skipped,
        [("copy".to_owned(), format!("{name} is the same segment"))]
    );
}
