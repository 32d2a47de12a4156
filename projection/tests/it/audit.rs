//! Logs whose bytes are sound and whose decisions are not: the audit names each, and nothing else. What builds with a
//! guard missing write stands in `forgery`.

use std::path::Path;
use std::sync::Arc;

use tenure_core::codec::v1;
use tenure_core::command::Request;
use tenure_core::decide::decide;
use tenure_core::holder::{Proof, Verdict};
use tenure_core::id::{Position, SessionNo};
use tenure_core::refusal::Code;
use tenure_core::state::State;
use tenure_log::format::{RulesVersion, SegmentHeader};
use tenure_log::frame::Depth;
use tenure_log::writer::site::Tuning;
use tenure_projection::audit::{Audit, NotJudged, Report, Rule, Unjudged};
use tenure_projection::entry;
use tenure_projection::error::Failure;
use tenure_projection::reader::Reader;
use tenure_projection::store::{OpenOptions, Store};

use crate::rules::replay::Dice;
use crate::scene::line::{Words, call};
use crate::scene::{Scene, Stage};

pub fn audit(scene: &Scene) -> Report {
    Audit::of(&scene.store, None, |_| {}).expect("the log reads")
}

/// The input of the newest frame.
pub fn newest_request(scene: &Scene) -> Request {
    let mut found = None;
    let newest = Position(scene.frames());
    let each = |frame: &tenure_log::frame::FrameRef<'_>| {
        found = Some(entry::decode_request(frame)?);
        Ok(false)
    };
    let read = scene.store.frames(newest, newest, Depth::Whole, each);
    read.expect("it reads");
    found.expect("there is one")
}

/// Appends what a store would have decided that sees `state` instead of the log's.
pub fn decided_on(scene: &Scene, state: &State, request: &Request) {
    let decision = decide(state, request).expect("the guard is out of the way");
    let (fence, events) = (&decision.fence, &decision.events);
    assert!(!events.is_empty());
    let parts = v1::encode(fence, request, events, || [7; 16]).expect("it fits");
    scene.forge_parts(parts.facts, parts.texts, parts.bodies);
}

/// What the second judge sees by itself, in frames whose input does not even pretend.
#[test]
fn the_second_judge_needs_no_decision_code() {
    let rules = |scene: &Scene| -> Vec<Rule> {
        let found = audit(scene).findings;
        found.iter().map(|f| f.rule).collect()
    };
    let again = |line: &str, played: &str, upto: u64| {
        let scene = Scene::new();
        scene.play(played);
        scene.refusal(line);
        let state = scene.store.state_at(Position(upto)).expect("it reads");
        decided_on(&scene, &state, &newest_request(&scene));
        rules(&scene)
    };
    assert_eq!(
        again("register api", "register api", 0),
        [Rule::Refused(Code::AlreadyActive), Rule::TokenIssuedTwice]
    );
    let twice = "register api \n retire api@1 \n register api";
    assert_eq!(
        again("register api", twice, 0),
        [Rule::Refused(Code::AlreadyActive), Rule::GenerationWentBack]
    );
}

/// A recorded refusal that a correct store would not give, and one that it gives otherwise.
#[test]
fn a_refusal_without_reason_is_named() {
    let (scene, other) = (Scene::new(), Scene::new());
    scene.play("register api");
    other.play("register api \n adopt api as=api@1");
    other.refusal("note fine as=api@1");
    let frame = other.all().pop().expect("the refusal");
    let parts = frame.parts;
    scene.forge_parts(parts.facts, parts.texts, parts.bodies);
    let report = audit(&scene);
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].rule, Rule::RefusedWithoutReason);
    assert_eq!(report.findings[0].command, Some("note"));

    let (retired, fenced) = (Scene::new(), Scene::new());
    for scene in [&retired, &fenced] {
        scene.play("register api \n retire api@1");
    }
    fenced.play("register api");
    fenced.refusal("note fine as=api@1");
    let parts = fenced.all().pop().expect("the refusal").parts;
    retired.forge_parts(parts.facts, parts.texts, parts.bodies);
    let report = audit(&retired);
    assert_eq!(
        report.findings[0].rule,
        Rule::RefusedOtherwise(Code::Retired)
    );
}

/// An adopt over a holder taken for dead for reasons that prove nothing.
#[test]
fn a_verdict_that_does_not_follow_is_named() {
    let scene = Scene::new();
    scene.play("register api");
    scene.refusal("adopt api");
    let mut request = newest_request(&scene);
    let evidence = request.input.evidence.as_mut().expect("somebody looked");
    (evidence.verdict, evidence.proofs) = (Verdict::Dead, vec![Proof::SameInode]);
    decided_on(&scene, &scene.state(), &request);
    let report = audit(&scene);
    assert_eq!(report.findings.len(), 1, "{report:?}");
    assert_eq!(report.findings[0].rule, Rule::UnprovenVerdict);
}

/// Other events or another fence than the input comes to.
#[test]
fn what_its_input_does_not_come_to_is_named() {
    let scene = Scene::new();
    scene.play("register api \n register web \n note fine as=api@1");
    let request = newest_request(&scene);
    let decision = decide(&scene.state(), &request).expect("it stands");
    let mut fence = decision.fence;
    fence.session = Some(SessionNo(1));
    let parts = v1::encode(&fence, &request, &decision.events, || [7; 16]).expect("it fits");
    scene.forge_parts(parts.facts, parts.texts, parts.bodies);
    let parts = v1::encode(&decision.fence, &request, &[], || [7; 16]).expect("it fits");
    scene.forge_parts(parts.facts, parts.texts, parts.bodies);
    let rules: Vec<_> = audit(&scene).findings.iter().map(|f| f.rule).collect();
    assert_eq!(rules, [Rule::OtherFence, Rule::OtherEvents]);
}

/// AUD-1: a log of random commands that a whole store did has no finding. `TENURE_COMMANDS` makes it longer.
#[test]
fn a_clean_log_of_random_commands_has_no_finding() {
    let commands = std::env::var("TENURE_COMMANDS").ok();
    let commands = commands.and_then(|n| n.parse().ok()).unwrap_or(2000);
    let (scene, mut dice) = (Scene::new(), Dice::new(77));
    let (mut done, mut refused) = (0, 0);
    while done < commands {
        match scene.store.execute(line(&dice.line(&scene))) {
            Ok(_) => done += 1,
            Err(Failure::Refused(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    let report = audit(&scene);
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.judged, scene.frames());
    println!(
        "{done} commands done and {refused} refused: {} frames judged",
        report.judged
    );
}

/// A store on a disk of several small segments, and the first position of each.
fn segmented(dir: &Path) -> Vec<u64> {
    let tuning = Tuning {
        segment_bytes: vec![4096 + 2048],
        fill_bytes: 2048,
        ..Tuning::default()
    };
    let options = OpenOptions::new(dir).create(true).tuning(tuning);
    let store = Store::open(&options, Arc::new(Stage::of_machine(1))).expect("it is made");
    store.execute(line("register api")).expect("it is done");
    for n in 0..40 {
        let note = format!("note text{n} as=api@1");
        store.execute(line(&note)).expect("it is done");
    }
    let names = std::fs::read_dir(dir.join("segments")).expect("listed");
    let first = |name: String| name.split('-').next()?.parse().ok();
    let mut firsts: Vec<u64> = names
        .filter_map(|entry| first(entry.expect("listed").file_name().into_string().ok()?))
        .collect();
    firsts.sort_unstable();
    firsts
}

fn line(text: &str) -> tenure_projection::call::Call {
    call(&Words::parse(text))
}

/// LOG-4: each frame is judged by the rules of its own segment; what other rules decided is not judged, is named with
/// its positions, and is folded all the same.
#[test]
fn what_other_rules_decided_is_not_judged_and_said_so() {
    let room = tempfile::tempdir().expect("a directory");
    let dir = room.path().join("store");
    let firsts = segmented(&dir);
    assert!(firsts.len() > 3, "{firsts:?}");
    let reports = |doctored: &[(usize, u32)]| {
        for (number, rules) in doctored {
            let file = dir.join(format!("segments/{:020}-1.seg", firsts[*number]));
            let mut bytes = std::fs::read(&file).expect("it reads");
            let mut header = SegmentHeader::decode(&bytes).expect("it is good");
            header.rules = RulesVersion(*rules);
            let header = header.encode();
            bytes[..header.len()].copy_from_slice(&header);
            std::fs::write(&file, bytes).expect("it is written");
        }
        let reader = Reader::open(&dir, Arc::new(Stage::of_machine(1))).expect("it opens");
        Audit::of(&reader, None, |_| {}).expect("the log reads")
    };
    assert!(reports(&[]).is_clean());
    let stretch = |from: usize, to: usize, rules| Unjudged {
        first: Position(firsts[from]),
        last: Position(firsts.get(to).map_or(41, |next| next - 1)),
        why: NotJudged::OtherRules(rules),
    };
    // An old segment, two with a change between them, and the newest.
    let report = reports(&[(0, 7)]);
    assert_eq!(report.not_judged, [stretch(0, 1, 7)]);
    assert_eq!(report.judged + report.unjudged(), 41);
    assert_eq!((report.until, report.findings.len()), (Position(41), 0));
    let newest = firsts.len() - 1;
    let report = reports(&[(0, 1), (1, 2), (2, 3), (newest, 9)]);
    assert_eq!(
        report.not_judged,
        [
            stretch(1, 2, 2),
            stretch(2, 3, 3),
            stretch(newest, newest + 1, 9)
        ]
    );
    assert_eq!(report.judged + report.unjudged(), 41);
    assert!(!report.is_clean());
}
