//! Logs forged by builds of the store with one guard left out: each is named by the audit (AUD-1).
//!
//! `forgery/cases.txt` has a line for every guard of the decision code: what is played, and what is asked then. A
//! build under `--cfg tenure_forge` plays it without that guard and leaves the log in `tests/golden/forged`; this
//! build reads it there. A guard without a line, or a line without a log, fails.
//!
//! ```sh
//! RUSTFLAGS='--cfg tenure_forge' cargo test -p tenure-projection --test it -- forgery::forging
//! ```
//!
//! writes the logs that are missing. A log is a segment file like any other, and never edited.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::id::Position;
use tenure_core::refusal::Code;
use tenure_projection::audit::{Audit, Report, Rule};
use tenure_projection::reader::Reader;

use crate::scene::{Scene, Stage};

#[cfg(tenure_forge)]
mod forging;
mod guards;
mod named;

use guards::Guards;

/// One line of the table.
struct Case {
    /// The guard, and a word where it has several.
    name: String,
    guard: String,
    /// The code that a whole store gives.
    code: Code,
    /// The code under which a store without the guard refuses all the same.
    other: Option<Code>,
    played: Vec<String>,
    line: String,
}

/// The table: cases, and guards that leave nothing behind, with why.
fn table() -> (Vec<Case>, BTreeMap<String, String>) {
    let (mut cases, mut traceless) = (Vec::new(), BTreeMap::new());
    let lines = include_str!("forgery/cases.txt").lines();
    for line in lines.filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, code, rest @ ..] = &columns[..] else {
            panic!("{line}");
        };
        if *code == "never" {
            traceless.insert((*name).to_owned(), rest.join("|"));
            continue;
        }
        let [played, line] = rest else {
            panic!("{line}");
        };
        let word = |word: &str| {
            let code = Code::ALL.iter().find(|c| c.as_str() == word);
            *code.unwrap_or_else(|| panic!("no code is called {word}"))
        };
        let (code, other) = match code.split_once('>') {
            Some((code, other)) => (word(code), Some(word(other))),
            None => (word(code), None),
        };
        cases.push(Case {
            name: (*name).to_owned(),
            guard: name.split('~').next().expect("a part").to_owned(),
            code,
            other,
            played: played.split(';').flat_map(repeated).collect(),
            line: (*line).to_owned(),
        });
    }
    (cases, traceless)
}

/// A line, or `COUNT times LINE`, with the number in place of `{}`.
fn repeated(line: &str) -> Vec<String> {
    match line.trim().split_once(" times ") {
        None => vec![line.trim().to_owned()],
        Some((count, line)) => {
            let count: usize = count.parse().expect("a number");
            (0..count)
                .map(|n| line.replace("{}", &n.to_string()))
                .collect()
        }
    }
}

impl Case {
    fn scene(&self) -> Scene {
        let scene = Scene::new();
        for line in &self.played {
            match line.strip_prefix("dead ") {
                Some(pid) => scene.stage.sees(
                    pid.parse().expect("a pid"),
                    tenure_core::holder::Answer::NoSuchProcess,
                ),
                None => drop(scene.play(line)),
            }
        }
        scene
    }

    fn file(&self) -> PathBuf {
        let name = self.name.replace("::", ".").replace(['#', '~'], "-");
        folder().join(format!("{name}.seg"))
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/forged")
}

/// The segment's name in every one of these stores.
const SEGMENT: &str = "00000000000000000001-1.seg";

/// A store of that one segment, opened by whoever only looks.
fn opened(room: &Path, file: &Path) -> Reader {
    let segments = room.join("segments");
    std::fs::create_dir_all(&segments).expect("it is made");
    let bytes = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let segment = segments.join(SEGMENT);
    std::fs::write(&segment, bytes).expect("it is written");
    for (path, mode) in [(room, 0o700), (&*segments, 0o700), (&*segment, 0o600)] {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("it is ours");
    }
    Reader::open(room, Arc::new(Stage::of_machine(1))).expect("the store opens")
}

fn audited(reader: &Reader) -> Report {
    Audit::of(reader, None, |_| {}).expect("the log reads")
}

/// AUD-1: every guard of the decision code has a log that was written without it, or a reason why there can be none;
/// and every refusal is made by a guard.
#[test]
fn every_guard_has_a_log_that_was_written_without_it() {
    let guards = Guards::read();
    assert_eq!(
        guards.strays,
        Vec::<String>::new(),
        "a refusal without a guard"
    );
    let (cases, traceless) = table();
    let lines: BTreeSet<&str> = cases
        .iter()
        .map(|case| &*case.guard)
        .chain(traceless.keys().map(String::as_str))
        .collect();
    let found: BTreeSet<&str> = guards.places.keys().map(String::as_str).collect();
    let how = "give it a line in forgery/cases.txt and make its log (see the head of forgery.rs)";
    assert_eq!(
        lines, found,
        "a guard without a line, or a line without a guard: {how}"
    );
    assert!(
        cases
            .iter()
            .all(|case| !traceless.contains_key(&case.guard))
    );
    let logs: BTreeSet<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("listed").path())
        .collect();
    let wanted: BTreeSet<PathBuf> = cases.iter().map(Case::file).collect();
    assert_eq!(logs, wanted, "{how}");
}

/// AUD-1: the audit names the frame that a missing guard let through, its position and the rule, and nothing else.
#[test]
fn what_a_missing_guard_let_through_is_named() {
    for case in table().0 {
        let room = tempfile::tempdir().expect("a directory");
        let reader = opened(room.path(), &case.file());
        let forged = Position(reader.head().expect("it reads").position.0);
        let report = audited(&reader);
        let rule = match case.other {
            None => Rule::Refused(case.code),
            Some(_) => Rule::RefusedOtherwise(case.code),
        };
        let first = report.findings.first();
        let first = first.unwrap_or_else(|| panic!("{} is not named", case.name));
        assert_eq!(
            (first.position, first.rule),
            (forged, rule),
            "{}",
            case.name
        );
        assert!(
            report.findings.iter().all(|f| f.position == forged),
            "{report:?}"
        );
        assert_eq!((report.judged, report.not_judged.len()), (forged.0, 0));
        let before = Audit::of(&reader, Some(Position(forged.0 - 1)), |_| {});
        assert!(before.expect("the log reads").is_clean(), "{}", case.name);
    }
}

/// The same lines on this build: each is refused as the table says, and the refusal is no finding.
#[test]
fn the_same_lines_are_refused_by_a_whole_store() {
    for case in table().0 {
        let scene = case.scene();
        assert_eq!(scene.refusal(&case.line).code, case.code, "{}", case.name);
        let report = Audit::of(&scene.store, None, |_| {}).expect("the log reads");
        assert!(report.is_clean(), "{}: {report:?}", case.name);
    }
}
