//! Damage in the middle: named, never passed over, never repaired by guessing, and each kind told apart.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tenure_core::id::Position;
use tenure_log::error::{Error as LogError, Next};
use tenure_log::fault::Fault;
use tenure_log::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use tenure_log::frame::{Depth, Draft, Place, decode_header, encode_into};
use tenure_log::inspect::{Entry, inspect_all};
use tenure_log::look::PlainDirectory;
use tenure_log::position::Head;
use tenure_log::recovery::Row;
use tenure_log::scan::{Checks, Step};
use tenure_log::verify::{Kind, Outcome, Report};
use tenure_projection::error::Error;

use super::tail::is_damage;
use super::{
    Ground, Stored, adopt, bytes_at, cut, flip, head, note, notes, numbered, poke, session,
    write_private,
};

/// What a walk through the log shows before it ends, and whether it ends with an error.
fn walk(ground: &Ground, from: u64) -> (Vec<u64>, Result<(), Error>) {
    let mut seen = Vec::new();
    // The reader's own replay would end at the damage: it begins behind it where a snapshot says so.
    let reader = match ground.try_read() {
        Ok(reader) => reader,
        Err(error) => return (seen, Err(error)),
    };
    let to = Position(u64::MAX >> 16);
    let walked = reader.frames(Position(from), to, Depth::Whole, |frame| {
        seen.push(frame.header.position.0);
        Ok(true)
    });
    (seen, walked)
}

/// F23, B27, F11: one byte in the middle stops the writer, names the place, and removes, moves or changes nothing: every
/// segment behind it is still there, byte for byte, and every good frame in it can still be looked at.
#[test]
fn damage_in_the_middle_removes_nothing_behind_it() {
    let ground = Ground::filled(70);
    let segments = ground.segments();
    assert!(segments.len() >= 9, "{}", segments.len());
    let frames = ground.frames();
    let hurt = frames
        .iter()
        .find(|f| f.path == segments[1])
        .expect("a frame");
    flip(&hurt.path, hurt.offset + hurt.bytes / 2);
    let damaged = ground.truth();
    for _ in 0..3 {
        assert!(is_damage(ground.try_open().map(drop)), "nobody appends");
        assert!(
            is_damage(ground.try_read().map(drop)),
            "nobody is shown a part as the whole"
        );
        let report = ground.verify();
        assert_eq!(report.outcome, Outcome::Damaged);
        let [finding] = &report.findings[..] else {
            panic!("{:?}", report.findings)
        };
        assert_eq!((finding.offset, finding.next), (hurt.offset, Next::Salvage));
        assert_eq!(finding.positions.expect("known").first.0, hurt.position);
        assert_eq!(report.coverage.horizon.0, hurt.position - 1);
        assert!(
            finding.to_string().contains(&finding.next.to_string()),
            "{finding}"
        );
    }
    assert_eq!(ground.truth(), damaged);
    let readable: Vec<Stored> = frames.iter().filter(|f| *f != hurt).cloned().collect();
    assert_eq!(
        ground.frames(),
        readable,
        "all but the one can be looked at"
    );
}

/// F29: no walk through a damaged log ends as if it were whole; `inspect` shows every byte, and how many frames it missed.
#[test]
fn a_walk_through_damage_ends_with_an_error() {
    let ground = Ground::filled(12);
    let whole = ground.tree();
    let (all, walked) = walk(&ground, 1);
    walked.expect("a good log is walked to its end");
    assert_eq!(all.len(), 13);
    for hurt in ground.frames() {
        ground.restore(&whole);
        flip(&hurt.path, hurt.offset + hurt.bytes - 20);
        let (seen, walked) = walk(&ground, 1);
        assert!(is_damage(walked), "position {}", hurt.position);
        assert!(seen.len() < all.len());
        let (mut bad, mut good, mut covered, mut sizes) = (0, 0, 0, 0);
        let look = PlainDirectory::new(&ground.dir);
        inspect_all(&look, Checks::ALL, &mut |entry| match entry {
            Entry::Segment { bytes, .. } => sizes += bytes - SEGMENT_HEADER_BYTES as u64,
            Entry::Step { span, step } => {
                covered += span.bytes;
                good += u64::from(matches!(step, Step::Frame(..)));
                bad += u64::from(matches!(step, Step::Bad(..)));
            }
            Entry::Unreadable { name, error } => panic!("{name}: {error}"),
        })
        .expect("listed");
        assert_eq!((good, bad, covered), (all.len() as u64 - 1, 1, sizes));
    }
}

/// F29: a log that is damaged behind what a reader has seen is an error at the next look, not an end.
#[test]
fn a_reader_that_meets_damage_later_is_told() {
    let ground = Ground::filled(3);
    let reader = ground.read();
    assert_eq!(notes(&reader), numbered(3));
    let store = ground.open();
    note(&adopt(&store, "api"), "more").expect("noted");
    let last = ground.frames().pop().expect("a frame");
    flip(&last.path, last.offset + last.bytes - 20);
    assert!(is_damage(reader.head().map(drop)));
    let report = ground.verify_live();
    assert_eq!(
        report.outcome,
        Outcome::Damaged,
        "it was durable, live or not"
    );
}

type Breakage = (&'static str, fn(&Ground));

/// B03, F38: page and snapshots may be good, missing, all zeros, empty or of another time: a good log gives the same state
/// in every combination, and a damaged one never an empty store.
#[test]
fn what_is_derived_may_be_lost_in_any_way_and_the_log_decides() {
    let ways: [Breakage; 4] = [
        ("good", |_| {}),
        ("missing", |ground| ground.forget_control()),
        ("zeros", |ground| {
            let path = ground.dir.join("control");
            let bytes = fs::metadata(&path).expect("there").len();
            write_private(&path, &vec![0; usize::try_from(bytes).expect("small")]);
        }),
        ("empty", |ground| {
            write_private(&ground.dir.join("control"), &[])
        }),
    ];
    let snapshots: [&[u8]; 3] = [b"", &[0; 500], b"tnrsnp01 and nothing that fits"];
    let ground = Ground::filled(20);
    let whole = ground.tree();
    let state = ground.read().view(Clone::clone).expect("the log reads");
    for (page, lose) in ways {
        for snapshot in snapshots {
            ground.restore(&whole);
            lose(&ground);
            write_private(&ground.dir.join("snapshots/state"), snapshot);
            let lost = ground.tree();
            let seen = ground.read().view(Clone::clone).expect("the log reads");
            assert_eq!(seen, state, "page {page}");
            assert_eq!(ground.tree(), lost, "page {page}");
            let store = ground.open();
            assert_eq!(
                store.view(Clone::clone).expect("the log reads"),
                state,
                "page {page}"
            );
            drop(store);

            ground.restore(&whole);
            lose(&ground);
            write_private(&ground.dir.join("snapshots/state"), snapshot);
            let first = &ground.segments()[0];
            flip(first, 4096 + 100);
            assert!(is_damage(ground.try_read().map(drop)), "page {page}");
            assert!(is_damage(ground.try_open().map(drop)), "page {page}");
            assert_eq!(ground.verify().outcome, Outcome::Damaged, "page {page}");
        }
    }
}

/// B03: a directory without its segments, or whose segments are zeros, is not a new store.
#[test]
fn a_store_that_lost_its_segments_is_never_taken_for_a_new_one() {
    let ground = Ground::filled(5);
    let whole = ground.tree();
    for segment in ground.segments() {
        let bytes = fs::metadata(&segment).expect("there").len();
        write_private(&segment, &vec![0; usize::try_from(bytes).expect("small")]);
    }
    let zeros = ground.truth();
    assert!(is_damage(ground.try_read().map(drop)));
    assert!(is_damage(ground.try_open().map(drop)));
    assert_eq!(ground.verify().outcome, Outcome::Damaged);
    assert_eq!(ground.truth(), zeros);
    ground.restore(&whole);
    assert_eq!(notes(&ground.read()), numbered(5));
}

/// F41: a hole is reported wherever a reader begins: right before it, far before it; behind it there is none.
#[test]
fn a_hole_is_reported_from_wherever_the_walk_begins() {
    let ground = Ground::filled(20);
    let (frames, segments) = (ground.frames(), ground.segments());
    let first_of = |n: usize| {
        let of_segment = frames.iter().filter(|f| f.path == segments[n]);
        of_segment.map(|f| f.position).min().expect("frames")
    };
    let (first, next) = (first_of(2), first_of(3));
    let reader = ground.read();
    let last = head(&reader);
    fs::remove_file(&ground.segments()[2]).expect("removed");
    for from in 1..=last + 3 {
        let fresh = ground.try_read();
        assert!(is_damage(fresh.map(drop)), "whoever replays meets it");
        let report = ground.verify();
        assert_eq!(
            (report.outcome, report.row),
            (Outcome::Damaged, Row::Structure)
        );
        assert_eq!(
            report.coverage.horizon.0,
            first - 1,
            "what is before the hole is not doubted"
        );
        let mut seen = Vec::new();
        let walked = reader.frames(Position(from), Position(last), Depth::Whole, |frame| {
            seen.push(frame.header.position.0);
            Ok(true)
        });
        if from < next {
            // The open handle may still reach what only lost its name; nothing in between is left out.
            let whole: Vec<u64> = (from..=last).collect();
            assert!(walked.is_err() || seen == whole, "from {from}: {seen:?}");
        } else {
            walked.expect("behind the hole all is there");
            assert_eq!(seen, (from..=last).collect::<Vec<_>>(), "from {from}");
        }
    }
    assert!(is_damage(ground.try_open().map(drop)));
}

/// The header of a segment file and its last frame.
fn end_of(path: &Path, last: &Stored) -> (SegmentHeader, Head, Place) {
    let header = SegmentHeader::decode(&fs::read(path).expect("read")[..SEGMENT_HEADER_BYTES]);
    let header = header.expect("a header");
    let place = Place::in_segment(header.salt, header.first, header.epoch);
    let bytes = bytes_at(path, last.offset, last.bytes);
    let frame = decode_header(&place.at(last.offset), &bytes).expect("a frame");
    (header, frame.head(), place)
}

/// F34, F36: a number that stands there twice is called that, whoever opens; it is no conflict to be tried again for ever,
/// and neither of the two frames is taken out.
#[test]
fn a_doubled_position_is_damage_and_no_conflict() {
    let ground = Ground::filled(4);
    let frames = ground.frames();
    let (last, before) = (&frames[frames.len() - 1], &frames[frames.len() - 2]);
    assert_eq!(last.path, before.path);
    let (header, _, place) = end_of(&last.path, last);
    let (_, earlier, _) = end_of(&last.path, before);
    let draft = Draft {
        time: tenure_log::position::TimeMicros(0),
        parts: Default::default(),
    };
    let mut twin = Vec::new();
    let at = place.at(last.end());
    encode_into(
        &mut twin,
        &at,
        earlier,
        earlier.position,
        header.incarnation,
        &draft,
    )
    .expect("fits");
    poke(&last.path, last.end(), &twin);
    ground.forget_control();
    let doubled = ground.truth();
    let report = ground.verify();
    assert_eq!(
        (report.outcome, report.row),
        (Outcome::Damaged, Row::Structure)
    );
    let fault = Fault::Position {
        expected: earlier.position.next().next(),
        found: earlier.position.next(),
    };
    assert_eq!(report.findings[0].kind, Kind::Damage(fault));
    for _ in 0..2 {
        assert!(is_damage(ground.try_open().map(drop)));
    }
    assert_eq!(ground.truth(), doubled);
}

/// F40: a file cut by somebody else under a reader is an error to it, in a closed segment as in the newest.
#[test]
fn a_file_that_shrinks_under_a_reader_is_an_error() {
    for ground in [Ground::new(), Ground::on_disk()] {
        ground.fill(20);
        let reader = ground.read();
        let last = head(&reader);
        let segments = ground.segments();
        for (at, bytes) in [(1, 0), (0, 4096), (segments.len() - 1, 4100)] {
            cut(&segments[at], bytes);
            let walked = reader.frames(Position(1), Position(last), Depth::Whole, |_| Ok(true));
            assert!(is_damage(walked), "segment {at} cut to {bytes}");
        }
    }
}

/// F40: the repair of a torn tail shortens no file that somebody reads.
#[test]
fn a_reader_survives_the_repair_of_the_tail_it_looks_at() {
    let ground = Ground::filled(4);
    let reader = ground.read();
    let last = ground.frames().pop().expect("a frame");
    poke(&last.path, last.end(), b"half of a frame");
    let bytes = fs::metadata(&last.path).expect("there").len();
    let store = ground.open();
    let api = adopt(&store, "api");
    assert!(fs::metadata(&last.path).expect("there").len() >= bytes);
    note(&api, "after").expect("noted");
    assert_eq!(notes(&reader).last().map(String::as_str), Some("after"));
    assert_eq!(ground.quarantined().len(), 1);
}

/// LOG-9: a file under another name, times of long ago or of the future, and files that are none of the log's: the bytes
/// decide.
#[test]
fn names_and_times_of_files_decide_nothing() {
    let ground = Ground::filled(20);
    let whole = ground.tree();
    let state = ground.read().view(Clone::clone).expect("the log reads");
    let segments = ground.segments();
    for (n, segment) in segments.iter().enumerate() {
        let day = std::time::Duration::from_secs(86_400);
        let now = std::time::SystemTime::now();
        let time = if n % 2 == 0 {
            now + day
        } else {
            now - 400 * day
        };
        let file = fs::File::open(segment).expect("opened");
        file.set_modified(time).expect("set");
    }
    let folder = ground.dir.join("segments");
    for stray in [
        "99999999999999999999-1.seg.bak",
        "notes.txt",
        "00000000000000000001-1.seg~",
    ] {
        write_private(&folder.join(stray), b"none of the log's");
    }
    let store = ground.open();
    assert_eq!(store.view(Clone::clone).expect("the log reads"), state);
    drop(store);
    assert_eq!(ground.verify().outcome, Outcome::Clean);
    // A closed segment under the name of a newer one.
    for (name, row) in [
        ("00000000000000000500-1.seg", Row::Structure),
        ("00000000000000000500-9.seg", Row::Structure),
    ] {
        ground.restore(&whole);
        let copied = fs::read(&segments[1]).expect("read");
        write_private(&folder.join(name), &copied);
        let report = ground.verify();
        assert_eq!(
            (report.outcome, report.row),
            (Outcome::Damaged, row),
            "{name}"
        );
        assert!(is_damage(ground.try_open().map(drop)), "{name}");
    }
}

/// One store for each class of answer, and how it is said.
fn classes() -> Vec<(&'static str, Report)> {
    let mut told = Vec::new();
    let ground = Ground::filled(12);
    let whole = ground.tree();
    let segments = ground.segments();
    let last = ground.frames().pop().expect("a frame");
    let mut case = |class, hurt: &dyn Fn(), live: bool| {
        ground.restore(&whole);
        hurt();
        let report = if live {
            ground.verify_live()
        } else {
            ground.verify()
        };
        told.push((class, report));
    };
    case("clean", &|| (), false);
    case("unclean close", &|| ground.forget_control(), false);
    let stub = || poke(&last.path, last.end(), b"stub");
    case("torn tail", &stub, false);
    case("in flight", &stub, true);
    case("corrupt", &|| flip(&segments[0], 4096 + 200), false);
    case(
        "missing segment",
        &|| fs::remove_file(&segments[1]).expect("removed"),
        false,
    );
    case("cut", &|| cut(&segments[1], 4096 + 8), false);
    case(
        "newer format",
        &|| newer(&segments[segments.len() - 1]),
        false,
    );
    case(
        "foreign",
        &|| write_private(&segments[0], &foreign()),
        false,
    );
    let not_a_file = || {
        fs::remove_file(&segments[1]).expect("removed");
        std::os::unix::fs::symlink("elsewhere", &segments[1]).expect("linked");
    };
    case("io", &not_a_file, false);
    told
}

fn newer(path: &Path) {
    let mut bytes = fs::read(path).expect("read");
    bytes[8] = 200;
    let crc = crc32(&bytes[..SEGMENT_HEADER_BYTES - 4]);
    bytes[SEGMENT_HEADER_BYTES - 4..SEGMENT_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    write_private(path, &bytes);
}

/// CRC-32 as in zlib, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

fn foreign() -> Vec<u8> {
    let other = Ground::filled(1);
    fs::read(&other.segments()[0]).expect("read")
}

/// F31: what was closed uncleanly, torn, changed, missing, made by a newer program, foreign, unreadable and being written
/// are told apart, by machine and in words.
#[test]
fn no_two_classes_of_findings_share_an_answer() {
    let told = classes();
    let mut texts = BTreeSet::new();
    for (class, report) in &told {
        let expected = match *class {
            "clean" | "unclean close" | "in flight" => Outcome::Clean,
            "torn tail" => Outcome::TornTail,
            "corrupt" | "missing segment" | "cut" => Outcome::Damaged,
            _ => Outcome::Incomplete,
        };
        assert_eq!(report.outcome, expected, "{class}: {:?}", report.findings);
        if matches!(*class, "clean" | "unclean close") {
            assert_eq!(report.findings, [], "{class}");
            continue;
        }
        let first = report.findings.first().expect("a finding");
        let text = format!("{} {}", first.kind.code(), first.meaning);
        let words: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        assert!(texts.insert(words), "{class}: {first}");
        assert!(first.next != Next::Nothing, "{class} says what to do");
    }
    assert_eq!(texts.len(), told.len() - 2);
}

/// F31: the answers of opening are as distinct, and each says what to do.
#[test]
fn no_two_errors_of_opening_share_a_text() {
    let ground = Ground::filled(12);
    let whole = ground.tree();
    let segments = ground.segments();
    let mut texts = BTreeSet::new();
    let mut open = |class: &str, hurt: &dyn Fn(), is: &dyn Fn(&LogError) -> bool| {
        ground.restore(&whole);
        hurt();
        let Err(Error::Log(error)) = ground.try_open() else {
            panic!("{class}: opened")
        };
        assert!(is(&error), "{class}: {error:?}");
        assert!(texts.insert(error.to_string()), "{class}: {error}");
    };
    open("corrupt", &|| flip(&segments[0], 4096 + 200), &|e| {
        matches!(e, LogError::Damaged(_))
    });
    open("newer", &|| newer(&segments[segments.len() - 1]), &|e| {
        matches!(e, LogError::NewerFormat { .. })
    });
    let open_to_all = || {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(&segments[segments.len() - 1], mode).expect("set");
    };
    open("open to others", &open_to_all, &|e| {
        matches!(e, LogError::ForeignOwner { .. })
    });
    let private = || {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&segments[segments.len() - 1], mode).expect("set");
    };
    private();
    open(
        "elsewhere",
        &|| write_private(&ground.dir.join("home"), b"?"),
        &|e| matches!(e, LogError::HomeChanged { .. }),
    );
    let nothing = Ground::new();
    let options = nothing.options().create(false);
    let missing = tenure_projection::store::Store::open(&options, nothing.host.clone());
    let Err(Error::Log(error)) = missing else {
        panic!("opened")
    };
    assert!(matches!(*error, LogError::NotAStore { .. }));
    assert!(texts.insert(error.to_string()));
}

/// F29: a walk that its caller ends early is no damage.
#[test]
fn ending_a_walk_early_is_no_error() {
    let ground = Ground::new();
    drop(session(&ground.open(), "api"));
    let reader = ground.read();
    let walked = reader.frames(Position(1), Position(1), Depth::Whole, |_| Ok(false));
    walked.expect("no error");
}
