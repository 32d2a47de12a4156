//! Notices (NOT).

use tenure_core::command::Ref;
use tenure_core::event::Event;
use tenure_core::id::DispatchNo;

use crate::scene::Scene;

/// NOT-1, DIS-8: a failed assignment gives one notice that names the dispatch and why; nothing is claimed.
#[test]
fn a_failed_assignment_gives_one_notice() {
    let scene = Scene::new();
    scene.play("register boss \n register api \n dispatch item api as=boss@1 title=Parser");
    scene.check(
        "fail d1 as=boss@1 reason=no-seat => done
         work       => d1 failed api@1
         inbox api  => e1 work cancelled@1 dispatch-ended; e2 notice pending@1 assignment-failed
         session api => active@1 open=0 inbox=1
         fail d1 as=boss@1 => already-terminal: ..
         dispatch item api => d2 e3",
    );
    let notice = scene.state().envelopes.get(2).expect("issued");
    assert_eq!(notice.dispatch, Some(DispatchNo(1)));
    let entry = &scene.entries()[notice.position.0 as usize - 1];
    let Some(Event::AssignmentFailed(failed)) = entry.events.first() else {
        panic!("the notice names the frame that says why");
    };
    assert_eq!(entry.texts.get(failed.reason), b"no-seat");
    let bound = scene.entries().into_iter().flat_map(|e| e.events);
    assert_eq!(bound.filter(|e| e.word() == "accepted").count(), 0);
}

/// NOT-2: a notice asks for acknowledgement, makes no binding, and takes no report.
#[test]
fn a_notice_takes_no_report() {
    let scene = Scene::new();
    scene.check(
        "register api            => api@1
         dispatch item api       => d1 e1
         fail d1                 => done
         deliver e2 as=api@1     => done
         report d1 done as=api@1 => already-terminal: d1 is failed since position 3; it ends once
         accept d1 as=api@1      => already-terminal: ..
         ack e2 as=api@1         => done
         inbox api               => e1 work cancelled@1 dispatch-ended; e2 notice acknowledged@1 assignment-failed
         send api thanks re=e2   => e3",
    );
    assert_eq!(
        scene.state().envelopes.get(3).expect("issued").re,
        Some(Ref::Envelope(tenure_core::id::EnvelopeNo(2)))
    );
    assert!(scene.state().live.is_empty());
}

/// NOT-3, NOT-4, E24: a notice holds nothing open, and is cancelled when its session is given back, read or not.
#[test]
fn notices_hold_nothing_open_and_end_with_the_session() {
    let scene = Scene::new();
    scene.check(
        "register api        => api@1
         dispatch one api    => d1 e1
         dispatch two api    => d2 e2
         fail d1             => done
         fail d2             => done
         deliver e4 as=api@1 => done
         send api hello      => e5
         ack e5 as=api@1     => done
         send api answer re=d1 => e6
         deliver e6 as=api@1 => done
         retire api@1 idle   => done
         inbox api           => e1 work cancelled@1 dispatch-ended; e2 work cancelled@1 dispatch-ended; e3 notice cancelled@1 session-retired assignment-failed; e4 notice cancelled@1 session-retired assignment-failed; e5 message acknowledged@1; e6 message delivered@1 re=d1
         ack e3 as=api@1     => retired: ..",
    );
}

/// NOT-5: a notice goes along with an adopt, and a later register has nothing of it.
#[test]
fn notices_are_carried_and_fenced_like_other_mail() {
    let scene = Scene::new();
    scene.check(
        "register api        => api@1
         dispatch one api    => d1 e1
         fail d1             => done
         deliver e2 as=api@1 => done
         adopt api as=api@1  => api@2
         inbox api           => e1 work cancelled@1 dispatch-ended; e2 notice pending@2 assignment-failed
         ack e2 as=api@1     => stale-generation: ..
         retire api@2        => done
         register api        => api@3
         ack e2 as=api@3     => not-pending: e2 is cancelled: session-retired
         session api         => active@3 open=0 inbox=0",
    );
}

/// NOT-6: each session that is there already is told of a newcomer, once per acceptance, under numbers that go on
/// from the last; whoever only shares the name of a path is not.
#[test]
fn incumbents_are_told_of_a_newcomer() {
    let scene = Scene::new();
    scene.play(
        "register a \n register b \n register c \n register away \n register new
         dispatch one a writes=/w/src \n accept d1 as=a@1
         observe editing as=b@1 wrote=/w/src/parser.rs
         dispatch far away writes=/w-site \n accept d2 as=away@1
         dispatch two c writes=/w/src \n send new hello
         dispatch tre new writes=/w",
    );
    scene.check(
        "accept d4 as=new@1 => with a(tree,declared) b(tree,observed)
         inbox a    => e1 work pending@1; e2 notice pending@1 newcomer; e7 notice pending@1 newcomer
         inbox b    => e8 notice pending@1 newcomer
         inbox c    => e4 work pending@1
         inbox away => e3 work pending@1
         accept d3 as=c@1   => with a(tree,declared) b(tree,observed) new(tree,declared)
         send a next        => e12
         inbox new  => e5 message pending@1; e6 work pending@1; e11 notice pending@1 newcomer",
    );
    let state = scene.state();
    for (number, newcomer, dispatch) in [
        (2, "b", None),
        (7, "new", Some(4)),
        (8, "new", Some(4)),
        (9, "c", Some(3)),
        (10, "c", Some(3)),
        (11, "c", Some(3)),
    ] {
        let row = state.envelopes.get(number).expect("issued");
        assert_eq!(row.from, Some(scene.number(newcomer)), "e{number}");
        assert_eq!(row.dispatch, dispatch.map(DispatchNo), "e{number}");
    }
    // Asking again tells nobody twice.
    scene.check(
        "accept d4 as=new@1 => with a(tree,declared) b(tree,observed) c(tree,declared) again",
    );
    assert_eq!(scene.state().envelopes.len(), 13);
}
