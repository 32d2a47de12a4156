//! The life of a dispatch (DIS).

use tenure_core::refusal::{Code, Relation};
use tenure_core::state::DispatchState;

use crate::scene::Scene;

/// DIS-1
#[test]
fn acceptance_makes_a_binding_and_says_who_else_is_there() {
    let scene = Scene::new();
    scene
        .play("register web \n register api \n dispatch shell web writes=/w \n accept d1 as=web@1");
    scene.check(
        "dispatch item api writes=/w/src title=Parser => d2 e2
         work                    => d1 accepted web@1; d2 queued api@1
         accept d2 as=api@1      => with web(tree,declared)
         work                    => d1 accepted web@1; d2 accepted api@1
         log 6                   => accepted joined",
    );
    let state = scene.state();
    let row = state
        .dispatch(tenure_core::id::DispatchNo(2))
        .expect("issued");
    assert_eq!(row.session, scene.number("api"));
    assert_eq!(
        (row.generation.number, row.state),
        (1, DispatchState::Accepted)
    );
}

/// DIS-2, E07, BND-4: one item, one live dispatch, however long nothing is heard of it.
#[test]
fn an_item_has_one_live_dispatch() {
    let scene = Scene::new();
    scene.play("register api \n register web \n dispatch item api");
    let refusal = scene.refusal("dispatch item web");
    assert_eq!(refusal.code, Code::DuplicateItem);
    assert_eq!(refusal.current.as_deref(), Some("d1"));
    assert_eq!(refusal.relation, Some(Relation::Taken));
    assert!(
        refusal.message.contains("queued as d1 for api"),
        "{}",
        refusal.message
    );
    scene.play("accept d1 as=api@1");
    scene.stage.passes(30 * 24 * 3600);
    scene.check(
        "dispatch item api        => duplicate-item: item is accepted as d1 for api
         dispatch item web        => duplicate-item: item is accepted as d1 for api
         dispatch other web       => d2 e2
         report d1 blocked as=api@1 => done
         dispatch item web        => d3 e3
         retire web@1             => done
         dispatch item api        => d4 e4
         work => d1 blocked api@1; d2 cancelled web@1; d3 cancelled web@1; d4 queued api@1",
    );
}

/// DIS-3, DSC-6
#[test]
fn overlapping_scopes_refuse_nothing() {
    let scene = Scene::new();
    scene.check(
        "register api => api@1
         register web => web@1
         dispatch one api writes=/w/src => d1 e1
         dispatch two web writes=/w     => d2 e2
         dispatch tre api writes=/w/src/parser => d3 e3
         accept d1 as=api@1 => alone
         accept d2 as=web@1 => with api(tree,declared)
         accept d3 as=api@1 => with web(tree,declared)
         report d1 done as=api@1 => done
         report d2 done as=web@1 => done",
    );
}

/// DIS-4
#[test]
fn a_decline_ends_a_dispatch_and_frees_its_item() {
    let scene = Scene::new();
    scene.check(
        "register api       => api@1
         dispatch item api  => d1 e1
         decline d1 as=api@1 reason=busy => done
         work               => d1 declined api@1
         session api        => active@1 open=0 inbox=0
         report d1 done as=api@1 => already-terminal: d1 is declined since position 3; it ends once
         dispatch item api  => d2 e2
         accept d2 as=api@1 => alone
         decline d2 as=api@1 => not-pending: d2 is accepted, not queued",
    );
}

/// DIS-5
#[test]
fn acceptance_is_idempotent_for_its_session_and_nobody_else() {
    let scene = Scene::new();
    scene.check(
        "register api       => api@1
         register web       => web@1
         dispatch item api  => d1 e1
         accept d1 as=web@1 => not-your-envelope: d1 is for api@1
         accept d1 as=api@1 => alone
         accept d1 as=api@1 => alone again
         accept d1 as=web@1 => not-your-envelope: d1 is for api@1
         adopt api as=api@1 => api@2
         accept d1 as=api@2 => alone again
         accept d1 as=api@1 => stale-generation: ..",
    );
    let first = scene
        .entries()
        .iter()
        .position(|e| e.events[0].word() == "accepted");
    let done = scene.done("accept d1 as=api@2");
    assert_eq!(
        done.at.position.0,
        first.expect("it was accepted") as u64 + 1
    );
}

/// DIS-6, E27: each way in which a report has no binding is its own refusal.
#[test]
fn a_report_needs_an_active_binding_of_its_session_and_generation() {
    let scene = Scene::new();
    scene.check(
        "register api            => api@1
         register web            => web@1
         dispatch item api       => d1 e1
         report d1 done as=api@1 => no-binding: d1 is queued: nobody has accepted it
         accept d1 as=api@1      => alone
         report d1 done as=web@1 => not-your-envelope: d1 is for api@1
         adopt api as=api@1      => api@2
         report d1 done as=api@1 => stale-generation: api@1 was superseded; api@2 is current
         report d1 done as=api@3 => never-issued: api@3 was never granted; api@2 is the newest
         report d9 done as=api@2 => unknown-dispatch: no dispatch has the number d9
         report d0 done as=api@2 => unknown-dispatch: no dispatch has the number d0
         report d1 done as=api@2 key=k => done
         report d1 done as=api@2 key=k => done again
         report d1 failed as=api@2     => already-terminal: ..
         work                          => d1 done api@2",
    );
    let refusal = scene.refusal("report d1 failed as=api@2");
    let reported = scene
        .entries()
        .iter()
        .position(|e| e.events[0].word() == "reported");
    let reported = reported.expect("it was reported") as u64 + 1;
    assert_eq!(refusal.recorded_at.expect("where").0, reported);
    assert_eq!(refusal.current.as_deref(), Some("done"));
}

/// DIS-6, E14: the three ways to end, each once; what is over stays as it ended.
#[test]
fn a_dispatch_ends_once() {
    for (outcome, state) in [
        ("done", "done"),
        ("failed", "failed"),
        ("blocked", "blocked"),
    ] {
        let scene = Scene::new();
        scene.play("register api \n dispatch item api \n accept d1 as=api@1");
        scene.play(&format!("report d1 {outcome} as=api@1"));
        let over = format!("already-terminal: d1 is {state} since position 4; it ends once");
        for line in [
            "report d1 done as=api@1",
            "decline d1 as=api@1",
            "accept d1 as=api@1",
            "cancel d1",
            "cancel d1 force=ops",
            "fail d1",
        ] {
            assert_eq!(scene.run(line), over, "{line}");
        }
        assert_eq!(scene.run("work"), format!("d1 {state} api@1"));
        // An id that was issued is known for ever (DIS-13).
        scene.play("retire api@1 \n register api");
        assert_eq!(scene.run("accept d1 as=api@2"), over);
    }
}

/// DIS-7, DIS-14, E01, B18: the report of a superseded holder changes nothing of its successor's.
#[test]
fn a_late_report_leaves_the_successors_work_alone() {
    let scene = Scene::new();
    scene.play(
        "register api \n dispatch one api \n dispatch two api \n dispatch tre api
         accept d1 as=api@1 \n accept d2 as=api@1 \n accept d3 as=api@1
         report d1 done as=api@1 \n report d2 done as=api@1
         adopt api force=stuck",
    );
    let before = scene.state();
    scene.check("report d3 done as=api@1 body=late => stale-generation: ..");
    let after = scene.state();
    assert_eq!(before.dispatches, after.dispatches);
    assert_eq!(before.live, after.live);
    assert_eq!(before.envelopes, after.envelopes);
    scene.check(
        "work => d1 done api@1; d2 done api@1; d3 accepted api@2
         report d3 failed as=api@2 => done",
    );
}

/// DIS-9, DSC-7: with a session that is given back its work ends, its items are free, and nobody is shown it.
#[test]
fn a_session_given_back_leaves_no_work_behind() {
    let scene = Scene::new();
    scene.play(
        "register api \n register web
         dispatch one api writes=/w \n accept d1 as=api@1 \n dispatch two api writes=/w",
    );
    scene.check(
        "shared web /w      => api(tree,declared)
         retire api@1       => done
         work               => d1 cancelled api@1; d2 cancelled api@1
         inbox api          => e1 work cancelled@1 session-retired; e2 work cancelled@1 session-retired
         shared web /w      =>
         register api       => api@2
         shared web /w      =>
         report d1 done as=api@2 => already-terminal: ..
         dispatch one web writes=/w => d3 e3
         accept d3 as=web@1 => alone",
    );
}

/// DIS-14: neither reading, nor waiting, nor silence passes a dispatch on or takes it up.
#[test]
fn only_an_act_transfers_work() {
    let scene = Scene::new();
    scene.check(
        "register api         => api@1
         register web         => web@1
         dispatch item api    => d1 e1
         deliver e1 as=api@1  => done
         ack e1 as=api@1      => done
         work                 => d1 queued api@1
         accept d1 as=web@1   => not-your-envelope: ..
         ack e1 as=web@1      => not-your-envelope: ..
         observe waiting as=web@1 => done",
    );
    scene.stage.passes(365 * 24 * 3600);
    scene.check(
        "work                 => d1 queued api@1
         accept d1 as=api@1   => alone
         adopt api force=gone => api@2 former@1
         work                 => d1 accepted api@2",
    );
}

/// A dispatch is withdrawn by whoever gave it, or by an operator who says why (`held` by nobody else).
#[test]
fn work_is_withdrawn_by_its_giver_or_by_force() {
    for verb in ["cancel", "fail"] {
        let scene = Scene::new();
        scene.play("register boss \n register api \n register web");
        for item in ["a", "b", "c", "d"] {
            scene.play(&format!("dispatch {item} api as=boss@1"));
        }
        let foreign = "not-your-envelope: d1 was given by boss";
        for line in ["", " as=web@1", " as=api@1"] {
            assert_eq!(scene.run(&format!("{verb} d1{line}")), foreign, "{line}");
        }
        scene.play("adopt boss as=boss@1");
        let script = "
            VERB d1 as=boss@1           => stale-generation: ..
            VERB d1 as=web@9 force=ops  => never-issued: ..
            VERB d1 as=boss@2           => done
            VERB d2 force=ops           => done
            VERB d3 as=web@1 force=ops  => done
            dispatch e api              => d5 e..
            VERB d5                     => done
            dispatch f api              => d6 e..
            VERB d6 as=web@1            => done
            findings                    =>";
        scene.check(&script.replace("VERB", verb));
        let forced: Vec<bool> = scene
            .entries()
            .iter()
            .flat_map(|e| &e.events)
            .filter_map(|e| match e {
                tenure_core::event::Event::Cancelled(e) => Some(e.forced),
                tenure_core::event::Event::AssignmentFailed(e) => Some(e.forced),
                _ => None,
            })
            .collect();
        assert_eq!(forced, [false, true, true, false, false], "{verb}");
    }
}

/// A failed assignment was never claimed: what is accepted is cancelled instead (DIS-8).
#[test]
fn only_what_nobody_accepted_can_fail_to_be_assigned() {
    let scene = Scene::new();
    scene.check(
        "register api        => api@1
         dispatch item api   => d1 e1
         accept d1 as=api@1  => alone
         fail d1             => not-pending: d1 is accepted, not queued
         cancel d1           => done
         inbox api           => e1 work cancelled@1 dispatch-ended",
    );
}

/// A dispatch names the generation that it is meant for, or the current one.
#[test]
fn a_dispatch_is_addressed_to_a_generation() {
    let scene = Scene::new();
    scene.check(
        "register api         => api@1
         adopt api as=api@1   => api@2
         dispatch one api@1   => stale-generation: it was addressed to api@1, and api@2 is current
         dispatch one api@3   => never-issued: it was addressed to api@3, and api@2 is current
         dispatch one nobody  => unknown-session: no session is called nobody
         send nobody hello    => unknown-session: ..
         dispatch one api@2   => d1 e1
         retire api@2         => done
         dispatch two api     => retired: api is retired and takes nothing
         dispatch two api@2   => retired: api is retired and takes nothing
         send api hello       => retired: ..
         dispatch two api@9   => never-issued: ..",
    );
}
