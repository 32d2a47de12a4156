//! The recovery table over every input it tells apart, against an oracle written from `docs/recovery.md` alone; and the
//! repair of a torn tail.

use std::path::Path;
use std::sync::Arc;

use tenure_log::error::{Damage, Next};
use tenure_log::fault::Fault;
use tenure_log::format::SegmentName;
use tenure_log::look::PlainDirectory;
use tenure_log::position::{Chain, Epoch, Head, Position, Positions};
use tenure_log::recovery::{
    ClosedRun, Found, Judgement, Late, Obstacle, QUARANTINE_FOLDER, Row, Writer, keep_torn, plan,
    torn_tails, zero_torn,
};
use tenure_log::scan::{After, Run, Stop};
use tenure_log::storage::disk::Disk;
use tenure_log::storage::sim::{Chaos, Sim, SimProcess};
use tenure_log::storage::{Access, Opening, Storage};
use tenure_log::verify::{Options, verify};

use crate::store::{Builder, Files};

/// What a scan can find in one segment, in the words of the page.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Content {
    Whole,
    OtherEnd,
    Bad { impossible: bool, good_behind: bool },
    Zeros,
}

/// One input of the table. The closed segment holds positions 1 to 3, the newest 4 to 6 before its break.
#[derive(Clone, Copy, Debug)]
struct Case {
    obstacle: bool,
    structure: bool,
    slot: u64,
    /// The highest durable position stated by the newest segment's frames.
    stated: u64,
    closed: Option<(Content, u64)>,
    newest: Option<Content>,
    late: bool,
    live: bool,
}

const CLOSED_END: u64 = 3;
const NEWEST_END: u64 = 6;

/// The page's table, row by row: the first that is true decides.
fn oracle(case: &Case) -> Row {
    let durable = if case.newest.is_some() {
        case.slot.max(case.stated)
    } else {
        case.slot
    };
    let closed_bad = match case.closed {
        Some((Content::Bad { .. } | Content::Zeros, good)) => Some(good + 1),
        _ => None,
    };
    let newest_ends = if case.newest.is_some() {
        Some(NEWEST_END)
    } else {
        None
    };
    let newest_bad = matches!(case.newest, Some(Content::Bad { .. }));
    let good_behind = matches!(
        case.newest,
        Some(Content::Bad {
            good_behind: true,
            ..
        })
    );
    let impossible = |content: Option<Content>| {
        matches!(
            content,
            Some(Content::Bad {
                impossible: true,
                ..
            })
        )
    };
    let rows: [(Row, bool); 9] = [
        (Row::Obstacle, case.obstacle),
        (
            Row::Structure,
            case.structure
                || impossible(case.closed.map(|(content, _)| content))
                || impossible(case.newest)
                || matches!(case.closed, Some((Content::OtherEnd, _))),
        ),
        (
            Row::DurableBad,
            closed_bad.is_some_and(|bad| bad <= durable)
                || match newest_ends {
                    // Zeros and the end of the file are bad too, where something durable should stand.
                    Some(end) => end < durable,
                    None => durable > 0,
                },
        ),
        (Row::ClosedBad, closed_bad.is_some()),
        (Row::Late, case.late && !newest_bad),
        (Row::TornTail, newest_bad && !good_behind && !case.live),
        (
            Row::TornTailGoodBehind,
            newest_bad && good_behind && !case.live,
        ),
        (Row::Clean, !newest_bad),
        (Row::InFlight, case.live),
    ];
    rows.into_iter()
        .find(|(_, holds)| *holds)
        .expect("the table is complete")
        .0
}

fn head(position: u64) -> Head {
    Head {
        position: Position(position),
        chain: Chain([position as u8; 16]),
    }
}

fn run(first: u64, end: u64, content: Content, stated: u64) -> Run {
    let stop = match content {
        Content::Whole | Content::OtherEnd => Stop::End,
        Content::Zeros => Stop::Zeros,
        Content::Bad {
            impossible: true, ..
        } => Stop::Bad(
            Fault::Chain {
                stored: Chain([1; 16]),
                computed: Chain([2; 16]),
            },
            None,
        ),
        Content::Bad {
            impossible: false, ..
        } => Stop::Bad(
            Fault::FactsCrc {
                stored: 1,
                computed: 2,
            },
            None,
        ),
    };
    let behind = matches!(
        content,
        Content::Bad {
            good_behind: true,
            ..
        }
    );
    Run {
        segment: SegmentName {
            first: Position(first),
            epoch: Epoch(1),
        },
        start: head(first - 1),
        end: head(end),
        end_offset: 4096 + 88 * (end + 1 - first),
        stop,
        after: behind.then_some(After {
            offset: 9000,
            first: Position(end + 2),
            last: Position(end + 2),
            frames: 1,
        }),
        durable: Position(stated),
        dirty_end: 9088,
    }
}

fn found(case: &Case) -> Found {
    let name = SegmentName {
        first: Position(1),
        epoch: Epoch(1),
    };
    let damage = Damage {
        segment: name,
        offset: 0,
        positions: Positions::from(Position(1)),
        fault: Fault::SegmentMissing { named_by: name },
        next: Next::RestoreFile,
    };
    let closed = case.closed.map(|(content, good)| {
        let stated = if content == Content::OtherEnd {
            head(77)
        } else {
            head(CLOSED_END)
        };
        ClosedRun {
            stated,
            run: run(1, good, content, 0),
        }
    });
    Found {
        obstacles: case
            .obstacle
            .then_some(Obstacle::NewerFormat {
                segment: name,
                found: 2,
                known: 1,
            })
            .into_iter()
            .collect(),
        structure: case.structure.then_some(damage).into_iter().collect(),
        slot: Position(case.slot),
        closed: closed.into_iter().collect(),
        newest: case
            .newest
            .map(|content| run(4, NEWEST_END, content, case.stated)),
        late: case
            .late
            .then_some(Late {
                segment: name,
                offset: 0,
                bytes: 1,
                frames: 0,
            })
            .into_iter()
            .collect(),
        writer: if case.live {
            Writer::Live
        } else {
            Writer::Gone
        },
    }
}

fn every_case(each: &mut dyn FnMut(Case)) {
    const BOTH: [bool; 2] = [false, true];
    let mut bad = Vec::new();
    for impossible in BOTH {
        for good_behind in BOTH {
            bad.push(Content::Bad {
                impossible,
                good_behind,
            });
        }
    }
    let mut closed = vec![
        None,
        Some((Content::Whole, CLOSED_END)),
        Some((Content::OtherEnd, CLOSED_END)),
    ];
    for good in 0..CLOSED_END {
        closed.extend(
            bad.iter()
                .chain(&[Content::Zeros])
                .map(|content| Some((*content, good))),
        );
    }
    let mut newest = vec![None, Some(Content::Whole), Some(Content::Zeros)];
    newest.extend(bad.iter().map(|content| Some(*content)));
    for obstacle in BOTH {
        for structure in BOTH {
            for late in BOTH {
                for live in BOTH {
                    for closed in &closed {
                        for newest in &newest {
                            for slot in 0..=9 {
                                for stated in [0, 2, 5, 6, 7, 9] {
                                    let (closed, newest) = (*closed, *newest);
                                    each(Case {
                                        obstacle,
                                        structure,
                                        slot,
                                        stated,
                                        closed,
                                        newest,
                                        late,
                                        live,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// F12, LOG-2: every combination that the table tells apart, some hundred thousand, each row among them.
#[test]
fn the_table_in_code_is_the_table_on_the_page() {
    let mut counts = [0u32; 10];
    every_case(&mut |case| {
        let verdict = plan(&found(&case));
        assert_eq!(verdict.row, oracle(&case), "{case:?}");
        counts[verdict.row.number() as usize] += 1;
        let consistent = match &verdict.judgement {
            Judgement::Obstructed(obstacles) => {
                verdict.row == Row::Obstacle && !obstacles.is_empty()
            }
            Judgement::Damaged(damages) => {
                (Row::Structure..=Row::ClosedBad).contains(&verdict.row) && !damages.is_empty()
            }
            Judgement::Torn(repair) => {
                repair.end.head == head(NEWEST_END)
                    && repair.after.is_some() == (verdict.row == Row::TornTailGoodBehind)
            }
            Judgement::Clean(end) => {
                [Row::Late, Row::Clean].contains(&verdict.row)
                    && end.is_some() == case.newest.is_some()
            }
            Judgement::InFlight(end) => {
                verdict.row == Row::InFlight && end.head == head(NEWEST_END)
            }
        };
        assert!(consistent, "{case:?}: {verdict:?}");
        assert_eq!(
            verdict.late.len(),
            usize::from(case.late),
            "late bytes are shown whatever the row"
        );
    });
    assert!(
        counts[1..].iter().all(|count| *count > 0),
        "a row was never reached: {counts:?}"
    );
}

/// The fence against misjudging, by itself: nothing that was durable is ever repaired away.
#[test]
fn no_repair_reaches_a_durable_position() {
    every_case(&mut |case| {
        if let Judgement::Torn(repair) = plan(&found(&case)).judgement {
            let durable = Position(case.slot.max(case.stated));
            assert!(repair.end.head.position >= durable, "{case:?}");
        }
    });
}

fn write_store(dir: &Path, files: &Files) {
    for dir in [dir, &dir.join("segments"), &dir.join("quarantine")] {
        let mut private = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700)
            .create(dir)
            .expect("fresh");
    }
    for (name, bytes) in &files.0 {
        write_private(&dir.join("segments").join(name), bytes);
    }
}

fn write_private(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .expect("writable");
    file.write_all(bytes).expect("space");
}

/// Rows 6 and 7 carried out: the bytes are kept, the tail is zero, and the store is clean.
#[test]
fn a_torn_tail_is_kept_in_quarantine_and_zeroed() {
    let mut builder = Builder::small();
    let (name, offset, len) = builder.frames[7];
    builder.file(name)[offset + len / 2] ^= 1;
    let torn = builder.newest().clone();
    let scratch = tempfile::tempdir().expect("a directory");
    let home = scratch.path().join("store");
    write_store(&home, &builder.files);
    let dir = Disk
        .directory(&home, Opening::Existing)
        .expect("it is there");
    let before = verify(&PlainDirectory::new(&home), &Options::default());
    assert_eq!(before.row, Row::TornTailGoodBehind);

    // What a crash in the middle leaves is repaired the same way: a scratch file, and zeros down to some offset.
    let dirty_end = offset
        + builder.frames[7..]
            .iter()
            .map(|(.., len)| len)
            .sum::<usize>();
    for zeroed_from in (offset..=dirty_end).rev().step_by(7) {
        let mut cut_short = torn.clone();
        cut_short[zeroed_from..dirty_end].fill(0);
        write_private(&home.join("segments").join(name.to_string()), &cut_short);
        write_private(&home.join("quarantine/torn.tmp"), b"half a copy");
        let report = verify(&PlainDirectory::new(&home), &Options::default());
        if cut_short[offset..].iter().all(|byte| *byte == 0) {
            assert_eq!(report.row, Row::Clean);
            continue;
        }
        let found = found_in(&cut_short, &builder);
        let Judgement::Torn(repair) = plan(&found).judgement else {
            panic!("{report:?}")
        };
        assert_eq!(repair.end.offset, offset as u64);
        let copy = keep_torn(&*dir, &repair, zeroed_from as u64).expect("kept");
        zero_torn(&*dir, &repair).expect("zeroed");
        let kept = std::fs::read(home.join("quarantine").join(&copy.quarantine)).expect("kept");
        assert_eq!(kept, cut_short[offset..repair.dirty_end as usize]);
        assert_eq!(
            (copy.offset, copy.bytes),
            (offset as u64, kept.len() as u64)
        );
        assert!(torn_tails(&*dir).expect("listed").contains(&copy));
        let files = dir.list(QUARANTINE_FOLDER).expect("listed");
        assert!(
            files.iter().all(|name| name.ends_with(".torn")),
            "{files:?}"
        );
        let after = verify(&dir, &Options::default());
        assert_eq!(
            (after.row, after.end.map(|end| end.head.position)),
            (Row::Clean, Some(Position(7)))
        );
        let repaired = std::fs::read(home.join("segments").join(name.to_string())).expect("there");
        assert_eq!(repaired.len(), torn.len());
        assert_eq!(repaired[..offset], torn[..offset]);
    }
}

/// A holder of the append lock that was stopped in the middle of a repair and gone past wakes up beside the
/// one who went past it: whatever gets its name in the quarantine is whole, and one of them has kept it.
#[test]
fn two_who_put_the_same_bytes_away_leave_whole_copies_only() {
    let mut builder = Builder::small();
    let (name, offset, len) = builder.frames[7];
    builder.file(name)[offset + len / 2] ^= 1;
    let torn = builder.newest().clone();
    let Judgement::Torn(repair) = plan(&found_in(&torn, &builder)).judgement else {
        panic!("it is torn")
    };
    let (mut both, mut one) = (0, 0);
    for seed in 0..300 {
        let sim = Sim::new(seed);
        let written = sim.run_one(|process| {
            let dir = process.directory(Path::new("/store"), Opening::Create)?;
            dir.make_directory("segments")?;
            let file = dir.open(&format!("segments/{name}"), Access::CreateNew)?;
            tenure_log::storage::write_full(&*file, &torn, 0)
        });
        written.expect("not killed").expect("written");
        let keep = |unique: u64| -> Box<dyn FnOnce(Arc<SimProcess>) -> bool + Send + '_> {
            let repair = &repair;
            Box::new(move |process| {
                let dir = process.directory(Path::new("/store"), Opening::Existing);
                keep_torn(&*dir.expect("there"), repair, unique).is_ok()
            })
        };
        let kept = sim.run(Chaos::default(), vec![keep(1), keep(2)]);
        let keepers = kept.iter().filter(|kept| **kept == Some(true)).count();
        match keepers {
            0 => panic!("seed {seed}: nobody kept it"),
            1 => one += 1,
            _ => both += 1,
        }
        let copies = sim.run_one(|process| {
            let dir = process.directory(Path::new("/store"), Opening::Existing);
            torn_tails(&*dir.expect("there")).expect("listed")
        });
        let copies = copies.expect("not killed");
        // Whoever kept it kept it for itself: nothing in the quarantine is replaced.
        assert!(copies.len() >= keepers, "seed {seed}: {copies:?}");
        for copy in copies {
            let bytes = sim.bytes_of(&format!("{QUARANTINE_FOLDER}/{}", copy.quarantine));
            let bytes = bytes.expect("listed");
            assert_eq!(
                bytes,
                torn[offset..repair.dirty_end as usize],
                "seed {seed}"
            );
        }
    }
    assert!(
        both > 10 && one > 10,
        "{both} runs kept two copies, {one} one"
    );
}

/// What a scan of the newest segment finds, for [`plan`].
fn found_in(newest: &[u8], builder: &Builder) -> Found {
    use tenure_log::scan::{Checks, Walk, survey};
    let mut walk = Walk::new(newest, &builder.header, Checks::ALL, None);
    let run = survey(&builder.header, &mut walk, &mut |_, _| {}).expect("memory does not fail");
    Found {
        obstacles: Vec::new(),
        structure: Vec::new(),
        slot: Position::ZERO,
        closed: Vec::new(),
        newest: Some(run),
        late: Vec::new(),
        writer: Writer::Gone,
    }
}
