//! Logs whose bytes are sound and whose decisions are not: the audit names each, and nothing else.

use tenure_core::codec::v1;
use tenure_core::command::Request;
use tenure_core::decide::decide;
use tenure_core::generation::Generation;
use tenure_core::holder::{Proof, Verdict};
use tenure_core::id::{Position, SessionNo};
use tenure_core::refusal::Code;
use tenure_core::state::{DispatchState, EnvelopeState, State};
use tenure_log::frame::Depth;
use tenure_projection::audit::{Audit, Report, Rule};
use tenure_projection::entry;

use crate::scene::Scene;

pub fn audit(scene: &Scene) -> Report {
    Audit::of(&scene.store, None, |_| {}).expect("the log reads")
}

/// The input of the newest frame.
fn newest_request(scene: &Scene) -> Request {
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
fn decided_on(scene: &Scene, state: &State, request: &Request) {
    let decision = decide(state, request).expect("the guard is out of the way");
    let (fence, events) = (&decision.fence, &decision.events);
    assert!(!events.is_empty());
    let parts = v1::encode(fence, request, events, || [7; 16]).expect("it fits");
    scene.forge_parts(parts.facts, parts.texts, parts.bodies);
}

/// What is played first, the line that is refused and why, and what has to be otherwise for it to be done.
struct Case {
    played: &'static str,
    line: &'static str,
    code: Code,
    without_guard: fn(&Scene, &mut State),
}

const API: usize = 0;

fn generation(number: u64) -> Generation {
    Generation {
        incarnation: 1,
        number,
    }
}

/// The guards, each passed by a state in which what it looks at is otherwise.
fn cases() -> Vec<Case> {
    fn case(
        played: &'static str,
        line: &'static str,
        code: Code,
        without_guard: fn(&Scene, &mut State),
    ) -> Case {
        Case {
            played,
            line,
            code,
            without_guard,
        }
    }
    fn before(scene: &Scene, state: &mut State, position: u64) {
        *state = scene.store.state_at(Position(position)).expect("it reads");
    }
    let given = "register api \n register web \n dispatch one api";
    vec![
        case(
            "register api \n adopt api as=api@1",
            "note late as=api@1",
            Code::StaleGeneration,
            |_, s| {
                s.sessions[API].generation = generation(1);
            },
        ),
        case(
            "register api",
            "note early as=api@2",
            Code::NeverIssued,
            |_, s| {
                s.sessions[API].generation = generation(2);
            },
        ),
        case(
            "register api \n retire api@1",
            "note late as=api@1",
            Code::Retired,
            |_, s| {
                s.sessions[API].retired = false;
            },
        ),
        case(
            "register api",
            "register api",
            Code::AlreadyActive,
            |scene, s| before(scene, s, 0),
        ),
        case("register api", "adopt api", Code::Held, |_, s| {
            s.sessions[API].holder = None
        }),
        case(
            given,
            "dispatch one web",
            Code::DuplicateItem,
            |scene, s| before(scene, s, 2),
        ),
        case(given, "report d1 done as=api@1", Code::NoBinding, |_, s| {
            s.dispatches.get_mut(1).expect("d1").state = DispatchState::Accepted;
        }),
        case(
            given,
            "accept d1 as=web@1",
            Code::NotYourEnvelope,
            |_, s| {
                s.dispatches.get_mut(1).expect("d1").session = SessionNo(1);
            },
        ),
        case(
            "register api \n dispatch one api \n decline d1 as=api@1",
            "accept d1 as=api@1",
            Code::AlreadyTerminal,
            |scene, s| before(scene, s, 2),
        ),
        case(
            "register api \n register web \n send web hello",
            "ack e1 as=api@1",
            Code::NotYourEnvelope,
            |_, s| {
                s.envelopes.get_mut(1).expect("e1").session = SessionNo(0);
            },
        ),
        case(
            "register api \n dispatch one api \n cancel d1",
            "deliver e1 as=api@1",
            Code::NotPending,
            |_, s| {
                s.envelopes.get_mut(1).expect("e1").state = EnvelopeState::Pending;
            },
        ),
        case(given, "retire api@1 idle", Code::OpenObligations, |_, s| {
            s.sessions[API].open.clear();
            s.sessions[API].inbox.clear();
        }),
    ]
}

/// A build with one guard missing writes what the guard was there to stop: the audit names the frame and the
/// guard (AUD-1).
#[test]
fn what_a_missing_guard_let_through_is_named() {
    for case in cases() {
        let scene = Scene::new();
        scene.play(case.played);
        assert!(audit(&scene).is_clean());
        assert_eq!(scene.refusal(case.line).code, case.code, "{}", case.line);
        assert!(audit(&scene).is_clean(), "a recorded refusal is no finding");
        let mut state = scene.state();
        (case.without_guard)(&scene, &mut state);
        decided_on(&scene, &state, &newest_request(&scene));
        let report = audit(&scene);
        let forged = Position(scene.frames());
        let first = report
            .findings
            .first()
            .unwrap_or_else(|| panic!("{} is not named", case.line));
        assert_eq!(
            (first.position, first.rule),
            (forged, Rule::Refused(case.code)),
            "{first:?}"
        );
        assert!(
            report.findings.iter().all(|f| f.position == forged),
            "{report:?}"
        );
        assert_eq!(report.judged, scene.frames());
    }
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
