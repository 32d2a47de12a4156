//! Bundles: what leaves a store, what stays behind, and that every judge says the same of both.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;
use tenure_core::decide::Decision;
use tenure_core::id::{Position, RoleNo, SessionNo};
use tenure_core::redaction::Classes;
use tenure_core::state::State;
use tenure_core::text::Pool;
use tenure_log::bundle::{Refused, unpack};
use tenure_log::error::Error as LogError;
use tenure_log::frame::{Depth, Draft, Frame};
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Deadline, Journal};
use tenure_log::storage::disk::Disk;
use tenure_log::verify::{self, Outcome, verify};
use tenure_projection::audit::{Audit, Rule};
use tenure_projection::authority::{About, Interval};
use tenure_projection::bundle;
use tenure_projection::entry;
use tenure_projection::error::Error;
use tenure_projection::host::System;
use tenure_projection::reader::Reader;
use tenure_projection::store::{OpenOptions, RULES, Store};
use tenure_projection::views::{Field, Lens, events};

use crate::authority;
use crate::scene::Scene;

/// A mark in everything that somebody could want to take out.
const CANARY: &str = "canary";

/// A line with marked texts: paths, labels, and what somebody wrote.
fn marked() -> impl Strategy<Value = String> {
    let session = || prop::sample::select(&["api", "web", "ops"][..]);
    let token = move || session().prop_map(|s| format!("{s}@current"));
    let path = || {
        prop::sample::select(
            &[
                "/w/canary-tree/one",
                "/w/canary-tree",
                "/w/canary-tree/one/deep/er",
                "/v/canary-x/two",
                "/canary-root",
            ][..],
        )
    };
    let number = || 1_u64..8;
    prop_oneof![
        3 => (session(), path()).prop_map(|(s, p)| format!("register {s} checkout={p} label=canary-key:canary-value")),
        3 => (session(), path(), 0..3).prop_map(|(s, p, n)| format!(
            "dispatch item{n} {s} writes={p},/w/other title=canary-title body=canary-body"
        )),
        3 => (number(), token()).prop_map(|(n, t)| format!("accept d{n} as={t}")),
        2 => (number(), token()).prop_map(|(n, t)| format!("report d{n} blocked as={t} body=canary-report")),
        1 => (number(), token()).prop_map(|(n, t)| format!("decline d{n} as={t} reason=canary-reason")),
        1 => number().prop_map(|n| format!("cancel d{n} force=canary-force")),
        2 => (token(), path()).prop_map(|(t, p)| format!("observe canary-status as={t} wrote={p}")),
        1 => (session(), token(), number()).prop_map(|(s, t, n)| format!("send {s} canary-message as={t} re=d{n}")),
        1 => token().prop_map(|t| format!("note canary-note as={t}")),
        1 => token().prop_map(|t| format!("record canary-record as={t}")),
        1 => (session(), session()).prop_map(|(a, b)| format!("branch {a} {b} label=canary-key:canary-other")),
        2 => (token(), path(), number()).prop_map(|(t, p, n)| format!("role take lead {p} as={t} pid={}", n + 70)),
        1 => (token(), path()).prop_map(|(t, p)| format!("role release lead {p} as={t}")),
        1 => (token(), path()).prop_map(|(t, p)| format!("role check lead {p} as={t}")),
        1 => (token(), path()).prop_map(|(t, p)| format!("note canary-need as={t} require=lead@{p}")),
        1 => path().prop_map(|p| format!("role clear lead {p} reason=canary-clear")),
        2 => (path(), 0..3_usize).prop_map(|(p, n)| format!(
            "policy {} {p}", ["disclose", "warn-once", "refuse"][n]
        )),
        3 => (token(), path()).prop_map(|(t, p)| format!("check {p} as={t}")),
        1 => path().prop_map(|p| format!("bypass pre-commit at={p} said=canary-said reason=canary-why")),
        1 => path().prop_map(|p| format!("unlocked {p}/index.lock reason=canary-lock")),
        1 => session().prop_map(|s| format!("adopt {s} force=canary-reason")),
        6 => authority::step().prop_filter("a log on disk is not raised here", |l| l != "raise"),
    ]
}

/// A directory with the frames of a scene's log in small segments.
struct Shop {
    dir: TempDir,
}

impl Shop {
    fn of(scene: &Scene) -> Self {
        Self::over(scene.all())
    }

    fn over(frames: Vec<Frame>) -> Self {
        let shop = Self {
            dir: TempDir::new().expect("a directory"),
        };
        let mut options = Options {
            create: true,
            rules: RULES,
            ..Options::default()
        };
        options.tuning.segment_bytes = vec![16 << 10];
        options.tuning.fill_bytes = 8 << 10;
        let log = SegmentLog::open(Arc::new(Disk), &shop.full(), options).expect("it opens");
        for frame in frames {
            let draft = Draft {
                time: frame.header.time,
                parts: frame.parts,
            };
            let head = log.head().expect("it reads");
            log.transact(head, Deadline::NEVER, &mut |_| vec![draft.clone()])
                .expect("it is appended");
        }
        let head = log.head().expect("it reads").position;
        log.wait_durable(head, Deadline::NEVER)
            .expect("it is durable");
        shop
    }

    fn full(&self) -> PathBuf {
        self.dir.path().join("full")
    }

    fn copy(&self) -> PathBuf {
        self.dir.path().join("copy")
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("bundle.tnb")
    }

    fn reader(&self, dir: &Path) -> Reader {
        Reader::open(dir, Arc::new(System::new(&self.dir.path().join("host")))).expect("it opens")
    }

    /// Writes the bundle and makes a store of it.
    fn travel(&self, until: Position, classes: Classes) -> bundle::Written {
        let mut out = Vec::new();
        let written = bundle::write(&self.full(), until, classes, &mut out, |_| Ok(()));
        let written = written.expect("it is written");
        fs::write(self.file(), &out).expect("it is written");
        let made = unpack(&mut &out[..], &self.copy()).expect("a store is made");
        assert_eq!(made, written.heading);
        written
    }
}

fn every_file(dir: &Path, each: &mut dyn FnMut(&Path, &[u8])) {
    for entry in fs::read_dir(dir).expect("it lists") {
        let path = entry.expect("it lists").path();
        if path.is_dir() {
            every_file(&path, each);
        } else {
            each(&path, &fs::read(&path).expect("it reads"));
        }
    }
}

fn has(bytes: &[u8], mark: &[u8]) -> bool {
    bytes.windows(mark.len()).any(|window| window == mark)
}

/// What each class takes away, by a mark that stands nowhere else.
const MARKS: [(&str, &[&str]); 3] = [
    (
        "bodies",
        &[
            "canary-body",
            "canary-report",
            "canary-message",
            "canary-note",
            "canary-record",
            "canary-title",
            "canary-reason",
            "canary-status",
            "canary-force",
            "canary-clear",
            "canary-why",
            "canary-lock",
            "canary-need",
        ],
    ),
    (
        "paths",
        &["canary-tree", "canary-x", "canary-root", "index.lock"],
    ),
    ("labels", &["canary-key", "canary-value", "canary-other"]),
];

/// Nothing of what was taken out is in any file, and what was not is.
fn nothing_leaks(shop: &Shop, classes: Classes) {
    let mut all = Vec::new();
    every_file(&shop.copy(), &mut |_, bytes| all.extend_from_slice(bytes));
    let file = fs::read(shop.file()).expect("it reads");
    let mut full = Vec::new();
    every_file(&shop.full().join("segments"), &mut |_, bytes| {
        full.extend_from_slice(bytes);
    });
    for (word, marks) in MARKS {
        let taken = classes.words().any(|class| class == word);
        for mark in marks {
            let there = has(&full, mark.as_bytes());
            for bytes in [&all, &file] {
                assert_eq!(has(bytes, mark.as_bytes()), there && !taken, "{mark}");
            }
        }
    }
    let said = has(&full, b"canary-said") && !classes.bodies && !classes.paths;
    assert_eq!(has(&file, b"canary-said"), said);
}

fn told(stretches: &[Interval], pool: &Pool) -> Vec<String> {
    let told = |i: &Interval| {
        let holder = i.holder.map(|h| (h.bearing, pool.string(h.actor)));
        format!("{:?} {holder:?}", Interval { holder: None, ..*i })
    };
    stretches.iter().map(told).collect()
}

/// Every judge and every question says the same of both.
fn the_same_is_said(shop: &Shop, until: Position, classes: Classes) {
    let (full, copy) = (shop.reader(&shop.full()), shop.reader(&shop.copy()));
    assert_eq!(copy.redacted(), classes);
    let before = Audit::of(&full, Some(until), |_| {}).expect("it reads");
    let mut after = Audit::of(&copy, None, |_| {}).expect("it reads");
    after.redacted = (0, 0);
    assert_eq!(before, after);
    let state = full.state_at(until).expect("it reads");
    let mut subjects: Vec<About> = Vec::new();
    for number in (0..state.sessions.len()).map(|n| SessionNo(n as u64)) {
        subjects.extend([About::Session(number), About::Tree(number)]);
    }
    let items = ["item0", "item1", "item2", "login", "style", "docs"];
    subjects.extend(items.map(|item| About::Item(item.as_bytes().to_vec())));
    subjects.extend((0..state.roles.len()).map(|n| About::Role(RoleNo(n as u64))));
    for about in &subjects {
        let (left, right) = (full.held(about), copy.held(about));
        let (mut left, right) = (left.expect("it reads"), right.expect("it reads"));
        // The copy ends where it was made.
        left.stretches.retain(|i| i.since.at.position <= until);
        for stretch in &mut left.stretches {
            stretch.until = stretch.until.filter(|u| u.at.position <= until);
        }
        assert_eq!(
            told(&left.stretches, &left.pool),
            told(&right.stretches, &right.pool),
            "{about:?}"
        );
    }
    for position in (1..=until.0).map(Position) {
        let receipt = full.receipt_at(position).expect("it reads");
        assert_eq!(copy.receipt_at(position).expect("it reads"), receipt);
    }
    compare_words(&full, &copy, &state, until, classes);
}

/// Where a text was taken out, it is said to be; everything else is spelled as it was.
fn compare_words(full: &Reader, copy: &Reader, state: &State, until: Position, classes: Classes) {
    let spelled = |reader: &Reader, state: &State| {
        let mut all = Vec::new();
        let read = reader.frames(Position(1), until, Depth::Whole, |frame| {
            all.extend(events(frame, state));
            Ok(true)
        });
        read.expect("it reads");
        all
    };
    let here = copy.view(Clone::clone).expect("it reads");
    let (left, right) = (spelled(full, state), spelled(copy, &here));
    assert_eq!(left.len(), right.len());
    for (a, b) in left.iter().zip(&right) {
        assert_eq!(
            (a.at, &a.kind, &a.session, &a.actor),
            (b.at, &b.kind, &b.session, &b.actor)
        );
        for ((name, one), (_, other)) in a.payload.iter().zip(&b.payload) {
            let marked = format!("{one:?}").contains(CANARY);
            match (one, other) {
                (Field::Body(_), Field::Body(bytes)) if classes.bodies => {
                    assert!(tenure_core::redaction::told(bytes).is_some());
                }
                _ if marked && one != other => {
                    assert!(
                        format!("{other:?}").contains("[redacted"),
                        "{name}: {other:?}"
                    );
                }
                (Field::List(_) | Field::Pairs(_) | Field::Text(_), _) if one != other => {
                    assert!(
                        format!("{other:?}").contains("[redacted"),
                        "{name}: {other:?}"
                    );
                }
                _ => assert_eq!(one, other, "{name} at {}", a.at.position),
            }
        }
    }
    let lens = Lens {
        state: &here,
        host: copy.host(),
        shelf: copy,
    };
    for number in (0..here.sessions.len()).map(|n| SessionNo(n as u64)) {
        let view = lens.session(number).expect("a session");
        let labels = format!("{:?}", view.labels);
        assert!(!classes.labels || !labels.contains(CANARY), "{labels}");
    }
}

fn is_clean(dir: &Path) {
    let report = verify(
        &tenure_log::look::PlainDirectory::new(dir),
        &verify::Options::default(),
    );
    assert_eq!(report.findings, []);
    assert!(matches!(
        report.outcome,
        Outcome::Clean | Outcome::Incomplete
    ));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Chain, generations, legality and every question about authority come out the same of a bundle, whatever was
    /// taken out, up to any position; and nothing that was taken out is in any of its files.
    #[test]
    fn a_bundle_verifies_as_the_store_does_and_holds_nothing_that_was_taken_out(
        lines in prop::collection::vec(marked(), 1..60),
        bits in 1_u8..8,
        cut in 0_u64..4,
    ) {
        let scene = Scene::new();
        scene.run("register api label=canary-key:canary-value");
        for line in &lines {
            authority::play(&scene, line);
        }
        let shop = Shop::of(&scene);
        let until = Position((scene.frames() - cut.min(scene.frames() - 1)).max(1));
        let classes = Classes::from_bits(bits);
        shop.travel(until, classes);
        if cut == 0 {
            nothing_leaks(&shop, classes);
        }
        is_clean(&shop.copy());
        the_same_is_said(&shop, until, classes);
    }
}

fn story() -> Scene {
    let scene = Scene::new();
    scene.play(
        "register api label=canary-key:canary-value checkout=/w/canary-tree
         register web
         dispatch login api writes=/w/canary-tree/one title=canary-title body=canary-body
         accept d1 as=api@1
         dispatch style web writes=/w/canary-tree
         accept d2 as=web@1
         role take lead /w/canary-tree as=api@1",
    );
    scene.run("role take lead /w/canary-tree as=web@1");
    scene.run("report d2 done as=web@9 body=canary-report");
    scene
}

const ALL: Classes = Classes {
    bodies: true,
    paths: true,
    labels: true,
};

/// A copy is never written to, and not a byte of it changes when somebody tries; what is asked by a path is refused
/// where paths were taken out.
#[test]
fn a_copy_is_read_only() {
    let scene = story();
    let shop = Shop::of(&scene);
    let written = shop.travel(Position(scene.frames()), ALL);
    assert!(written.texts > 5 && written.bodies == 2, "{written:?}");
    let files = || {
        let mut all = Vec::new();
        every_file(&shop.copy(), &mut |path, bytes| {
            all.push((path.to_owned(), bytes.to_vec()))
        });
        all.sort();
        all
    };
    let before = files();
    let host = Arc::new(System::new(&shop.dir.path().join("host")));
    let opened = Store::open(&OpenOptions::new(shop.copy()).create(true), host);
    let Err(Error::Log(error)) = opened else {
        panic!("it is not opened for writing");
    };
    assert!(matches!(*error, LogError::ReadOnlyCopy { .. }), "{error}");
    assert_eq!(files(), before);
    let copy = shop.reader(&shop.copy());
    let located = copy.locate(Path::new("/w/canary-tree"));
    assert!(matches!(located, Err(Error::Redacted { what: "paths" })));
    assert!(matches!(
        unpack(
            &mut &fs::read(shop.file()).expect("it reads")[..],
            &shop.copy()
        ),
        Err(Refused::Taken { .. })
    ));
}

/// A bundle of a copy lacks what either lacks, and is the same when the same is taken out again.
#[test]
fn a_copy_of_a_copy_lacks_what_either_lacks() {
    let scene = story();
    let shop = Shop::of(&scene);
    let until = Position(scene.frames());
    shop.travel(until, Classes::from_bits(2));
    let mut out = Vec::new();
    bundle::write(&shop.copy(), until, Classes::from_bits(5), &mut out, |_| {
        Ok(())
    })
    .expect("it is written");
    let again = shop.dir.path().join("again");
    unpack(&mut &out[..], &again).expect("a store is made");
    assert_eq!(shop.reader(&again).redacted(), ALL);
    for mark in MARKS.iter().flat_map(|(_, marks)| *marks) {
        assert!(!has(&out, mark.as_bytes()), "{mark}");
    }
    let report = Audit::of(&shop.reader(&again), None, |_| {}).expect("it reads");
    assert!(report.is_clean(), "{report:?}");
}

/// A bundle that was cut or changed anywhere makes no store, and leaves nothing.
#[test]
fn a_damaged_bundle_makes_no_store() {
    let scene = story();
    let shop = Shop::of(&scene);
    let mut whole = Vec::new();
    let until = Position(scene.frames());
    bundle::write(&shop.full(), until, ALL, &mut whole, |_| Ok(())).expect("it is written");
    let refused = |bytes: &[u8]| {
        let made = unpack(&mut BufReader::with_capacity(64, bytes), &shop.copy());
        assert!(made.is_err());
        let left = fs::read_dir(shop.dir.path()).expect("it lists").count();
        assert_eq!(left, 1, "only the full store is there");
    };
    for cut in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        refused(&whole[..cut]);
    }
    for at in (0..whole.len()).step_by(61) {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        refused(&bytes);
    }
    let more = [&whole[..], b"\n"].concat();
    refused(&more);
    refused(b"");
    unpack(&mut &whole[..], &shop.copy()).expect("the whole one makes a store");
}

/// Contents that are missing from a store that says of nothing that it was taken out are a finding.
#[test]
fn an_unmarked_redaction_is_found() {
    let scene = story();
    let shop = Shop::of(&scene);
    shop.travel(Position(scene.frames()), ALL);
    fs::remove_file(shop.copy().join("bundle")).expect("it is there");
    let report = Audit::of(&shop.reader(&shop.copy()), None, |_| {}).expect("it reads");
    assert!(report.findings.iter().any(|f| f.rule == Rule::Redacted));
}

/// A frame keeps equal texts once, so a path that is also a name in it cannot go while the name stays: then nothing
/// is written but an error that says where.
#[test]
fn what_is_name_and_path_at_once_is_not_taken_apart() {
    let scene = Scene::new();
    scene.play("register api\nbypass /w at=/w said=no reason=why");
    let shop = Shop::of(&scene);
    let mut out = Vec::new();
    let refused = bundle::write(&shop.full(), Position(2), ALL, &mut out, |_| Ok(()));
    let Err(bundle::Error::Cannot { position, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(position, Position(2));
    let bodies = Classes::from_bits(1);
    bundle::write(&shop.full(), Position(2), bodies, &mut out, |_| Ok(())).expect("it is written");
    let beyond = bundle::write(&shop.full(), Position(3), bodies, &mut out, |_| Ok(()));
    assert!(matches!(beyond, Err(bundle::Error::Store(_))), "{beyond:?}");
}

/// A scene whose last frame counts ten refusals that are alike, each with a reason of its own.
fn counted() -> Scene {
    let scene = story();
    for n in 1..=10 {
        scene.run(&format!("decline d1 as=web@9 reason=canary-reason-{n}."));
    }
    scene
}

/// A count of refusals names who asked, and the frame holds nothing else of the last command that was refused: what
/// stands in it without being anything there would leave with any class.
#[test]
fn a_count_of_refusals_holds_no_text_of_the_commands() {
    let scene = counted();
    let frames = scene.all();
    let count = entry::lend(frames.last().expect("there are frames"));
    let entry = entry::decode(&count).expect("it decodes");
    let words: Vec<_> = entry.events.iter().map(|event| event.word()).collect();
    assert_eq!(words, ["refusals-counted"]);
    assert_eq!(entry.texts.iter().collect::<Vec<_>>(), [b"tester"]);
    assert_eq!(count.bodies, b"");
    for bits in 1..8 {
        let (shop, classes) = (Shop::of(&scene), Classes::from_bits(bits));
        shop.travel(Position(scene.frames()), classes);
        nothing_leaks(&shop, classes);
    }
}

/// A text that no field of its frame names, as counts of refusals of earlier programs have them, has no class that is
/// known: it goes with any, and what is named stays as it does elsewhere.
#[test]
fn a_text_that_nothing_names_goes_with_any_class() {
    let mut frames = counted().all();
    let count = frames.last_mut().expect("there are frames");
    let entry = entry::decode(&entry::lend(count)).expect("it decodes");
    let mut request = entry::decode_request(&entry::lend(count)).expect("it decodes");
    request.texts.add(b"canary-nowhere");
    let decision = Decision {
        fence: entry.fence,
        events: entry.events,
    };
    count.parts = entry::draft(&request, &decision).expect("it fits").parts;
    let until = Position(frames.len() as u64);
    for bits in 1..8 {
        let (shop, classes) = (Shop::over(frames.clone()), Classes::from_bits(bits));
        let mut full = Vec::new();
        every_file(&shop.full(), &mut |_, bytes| full.extend_from_slice(bytes));
        assert!(has(&full, b"canary-nowhere"), "the store has it");
        shop.travel(until, classes);
        let file = fs::read(shop.file()).expect("it reads");
        assert!(!has(&file, b"canary-nowhere"), "{classes}");
        assert!(has(&file, b"tester"), "{classes}");
        nothing_leaks(&shop, classes);
        is_clean(&shop.copy());
        the_same_is_said(&shop, until, classes);
    }
}

/// A path goes also where its text is a label, or was written by somebody, in the same frame; what else is there stays.
#[test]
fn a_path_goes_as_whatever_else_it_stands_there() {
    let scene = Scene::new();
    scene.play(
        "register api checkout=/w/canary-tree label=dir:/w/canary-tree
         observe /w/canary-x as=api@1 wrote=/w/canary-x
         observe canary-status as=api@1 wrote=/w/canary-x",
    );
    let (shop, until) = (Shop::of(&scene), Position(scene.frames()));
    let paths = Classes::from_bits(2);
    shop.travel(until, paths);
    nothing_leaks(&shop, paths);
    let file = fs::read(shop.file()).expect("it reads");
    assert!(has(&file, b"dir"), "the key of the label is no path");
    is_clean(&shop.copy());
    the_same_is_said(&shop, until, paths);
}
