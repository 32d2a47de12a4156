//! Mail: pending, delivered, acknowledged, cancelled (OUT).

use std::sync::Arc;

use tenure_core::event::{Event, Fence, FenceKind, Sent};
use tenure_core::generation::Generation;
use tenure_core::id::{EnvelopeNo, SessionNo};
use tenure_core::state::{EnvelopeState, Located, State};
use tenure_core::text::BodyId;
use tenure_log::journal::{Deadline, Journal};

use crate::balky::{Balky, Trouble};
use crate::scene::Scene;

fn rows_below_current(state: &State) -> usize {
    let stale = state.envelopes.iter().skip(1).filter(|row| {
        let session = state.session(row.session).expect("it is somebody's");
        row.is_open() && row.generation < session.generation
    });
    stale.count()
}

/// OUT-1, OUT-12: an adapter handles envelopes of its own session and generation, and nothing is sent otherwise.
#[test]
fn an_envelope_is_handled_by_its_own_session_and_generation() {
    let scene = Scene::new();
    scene.play("register api \n register web \n send api hello \n send web hello");
    let before = scene.state().envelopes;
    scene.check(
        "deliver e1 as=web@1 => not-your-envelope: e1 is for api@1
         ack e1 as=web@1     => not-your-envelope: e1 is for api@1
         deliver e2 as=api@1 => not-your-envelope: e2 is for web@1
         deliver e1 as=api@2 => never-issued: ..
         deliver e9 as=api@1 => unknown-envelope: no envelope has the number e9
         deliver e0 as=api@1 => unknown-envelope: ..",
    );
    assert_eq!(scene.state().envelopes, before);
    scene.check("deliver e1 as=api@1 => done \n inbox api => e1 message delivered@1");
    scene.check("inbox web => e2 message pending@1");
}

/// OUT-2, OUT-3, OUT-4, OUT-5, OUT-6, E21: what is fenced is cancelled in the frame that fences; at the next start
/// nothing is left to cancel, and what was not concerned is as it was.
#[test]
fn a_register_cancels_what_is_older_in_the_same_frame() {
    let scene = Scene::new();
    scene.play(
        "register api \n register web
         send api one \n send api two \n send api tre \n send web four
         deliver e2 as=api@1 \n ack e3 as=api@1 \n retire api@1",
    );
    scene.check(
        "inbox api => e1 message pending@1; e2 message delivered@1; e3 message acknowledged@1
         session api => retired@1 open=0 inbox=2
         register api => api@2
         log 10     => registered fenced
         inbox api  => e1 message cancelled@1 fenced-generation; e2 message cancelled@1 fenced-generation; e3 message acknowledged@1
         inbox web  => e4 message pending@1
         session api => active@2 open=0 inbox=0
         send api five => e5
         retire api@2 idle => open-obligations: api has 0 open dispatches and 1 pending envelopes
         ack e5 as=api@2 => done
         retire api@2 idle => done",
    );
    let before = scene.state();
    assert_eq!(rows_below_current(&before), 0);
    // Starting anew cancels nothing more, and writes nothing.
    let frames = scene.frames();
    let again = scene.another();
    let state = again.view(Clone::clone).expect("it reads");
    assert_eq!(
        (&state, again.head().expect("it reads").position.0),
        (&before, frames)
    );
    scene.check_on(&again, "deliver e3 as=api@2 => retired: ..");
}

/// OUT-7, E22: each reply that nobody read becomes one review of the new generation, again and again until it is
/// read.
#[test]
fn unread_replies_get_a_fresh_review() {
    let scene = Scene::new();
    scene.play(
        "register api \n register web \n dispatch item web as=api@1
         send api plain as=web@1 \n send api first as=web@1 re=d1 \n send api second as=web@1 re=e1
         send api read as=web@1 re=d1 \n deliver e4 as=api@1 \n ack e5 as=api@1 \n retire api@1",
    );
    scene.check(
        "register api => api@2
         inbox api => e2 message cancelled@1 fenced-generation; e3 message cancelled@1 fenced-generation re=d1; e4 message cancelled@1 fenced-generation re=e1; e5 message acknowledged@1 re=d1; e6 review pending@2 re=e3; e7 review pending@2 re=e4
         deliver e6 as=api@2 => done
         ack e7 as=api@2 => done
         retire api@2    => done
         register api    => api@3
         retire api@3    => done
         register api    => api@4
         session api     => active@4 open=0 inbox=1
         ack e9 as=api@4 => done
         retire api@4    => done
         register api    => api@5
         session api     => active@5 open=0 inbox=0",
    );
    let last = scene
        .state()
        .envelopes
        .iter()
        .last()
        .expect("there are some");
    assert_eq!(last.re.expect("it names the reply").to_string(), "e3");
    assert_eq!(last.state, EnvelopeState::Acknowledged);
    assert_eq!(scene.state().envelopes.len(), 10, "one review each time");
}

/// OUT-8, E06: receipts of an older grant, of something cancelled, and twice.
#[test]
fn receipts_of_an_older_attempt_change_nothing() {
    let scene = Scene::new();
    scene.check(
        "register api        => api@1
         send api hello      => e1
         deliver e1 as=api@1 => done
         deliver e1 as=api@1 => done again
         adopt api as=api@1  => api@2
         inbox api           => e1 message pending@2
         deliver e1 as=api@1 => stale-generation: ..
         ack e1 as=api@1     => stale-generation: ..
         inbox api           => e1 message pending@2
         deliver e1 as=api@2 => done
         ack e1 as=api@1     => stale-generation: ..
         ack e1 as=api@2     => done
         ack e1 as=api@2     => done again
         deliver e1 as=api@2 => done again
         inbox api           => e1 message acknowledged@2
         dispatch item api   => d1 e2
         cancel d1           => done
         deliver e2 as=api@2 => not-pending: e2 is cancelled: dispatch-ended
         ack e2 as=api@2     => not-pending: e2 is cancelled: dispatch-ended
         send api late       => e3
         retire api@2        => done
         register api        => api@3
         ack e3 as=api@3     => not-pending: e3 is cancelled: fenced-generation",
    );
}

/// OUT-9: an envelope of a generation that was never granted is no honest program's, and is found.
#[test]
fn an_envelope_of_a_higher_generation_is_a_finding() {
    let scene = Scene::new();
    scene.play("register api");
    let sent = Sent {
        envelope: EnvelopeNo(1),
        session: SessionNo(0),
        generation: Generation {
            incarnation: 1,
            number: 2,
        },
        from: None,
        re: None,
        body: BodyId(0),
    };
    scene.forge(&Fence::NONE, &[], &[sent.clone().into()]);
    scene.check(
        "findings    => 2
         session api => active@1 open=0 inbox=0
         send api hello => failed: the frame at position 2 did not stand..
         finding 2   => done
         finding 2   => done again
         send api hello => e1",
    );
    let current = Sent {
        envelope: EnvelopeNo(2),
        generation: Generation::first(1),
        ..sent
    };
    let fence = Fence {
        kind: FenceKind::None,
        ..Fence::NONE
    };
    scene.forge(&fence, &[], &[Event::from(current)]);
    scene.check("findings => \n session api => active@1 open=0 inbox=2");
}

/// OUT-10, B08: the same message under the same key is stored once, however far apart and through any handle.
#[test]
fn a_message_sent_twice_is_stored_once() {
    let scene = Scene::new();
    scene.play("register api \n send api hello key=m1");
    for n in 0..300 {
        scene.play(&format!("note n{n} as=api@1"));
    }
    scene.check("send api hello key=m1 => e1 again \n send api hello key=m2 => e2");
    scene.check_on(&scene.another(), "send api hello key=m1 => e1 again");

    let balky = Arc::new(Balky::new(&scene.log));
    let store = scene.upon(balky.clone());
    balky.meets(Trouble::FrameLost, 1);
    scene.check_on(
        &store,
        "send api again key=m3 => unknown: ..
         send api again key=m3 => e3
         send api again key=m3 => e3 again",
    );
    balky.meets(Trouble::AnswerLost, 1);
    scene.check_on(
        &store,
        "send api more key=m4 => unknown: ..
         send api more key=m4 => e4 again
         session api          => active@1 open=0 inbox=4",
    );
}

/// OUT-11: concurrent sends all survive, in one order; one that is lost is an error to its sender.
#[test]
fn concurrent_sends_all_survive() {
    let scene = Scene::new();
    scene.play("register api");
    let balky = Arc::new(Balky::new(&scene.log));
    let store = scene.upon(balky.clone());
    let answers: Vec<String> = std::thread::scope(|threads| {
        let sender = |n: usize| {
            let (scene, store) = (&scene, &store);
            threads.spawn(move || {
                let own = scene.another();
                let send = |m| {
                    let through = if n.is_multiple_of(2) { store } else { &own };
                    scene.run_on(through, &format!("send api t{n}m{m}"))
                };
                (0..50).map(send).collect::<Vec<_>>()
            })
        };
        let senders: Vec<_> = (0..8).map(sender).collect();
        senders
            .into_iter()
            .flat_map(|s| s.join().expect("it ran"))
            .collect()
    });
    let mut numbers: Vec<_> = answers
        .iter()
        .map(|a| EnvelopeNo::parse(a).expect(a))
        .collect();
    numbers.sort();
    assert!(numbers.into_iter().eq((1..=400).map(EnvelopeNo)));
    let state = scene.state();
    let mut bodies: Vec<_> = state
        .envelopes
        .iter()
        .skip(1)
        .map(|row| {
            let body = scene
                .store
                .body(row.located().expect("it has one"))
                .expect("it reads");
            String::from_utf8(body.expect("it is there")).expect("text")
        })
        .collect();
    let sent_in_order = |n: usize| {
        let mine: Vec<_> = bodies
            .iter()
            .filter(|b| b.starts_with(&format!("t{n}m")))
            .collect();
        (0..50)
            .map(|m| format!("t{n}m{m}"))
            .eq(mine.into_iter().cloned())
    };
    assert!(
        (0..8).all(sent_in_order),
        "each sender's in the order it sent them"
    );
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 400);
    balky.meets(Trouble::NoSpace, 1);
    scene.check_on(
        &store,
        "send api lost => failed: no space left.. \n send api kept => e401",
    );
}

/// OUT-12: a body is read where its envelope says, and is what was sent, whatever is in it (B10).
#[test]
fn a_body_is_what_was_sent() {
    let scene = Scene::new();
    scene.play("register api");
    let awkward = [
        &b""[..],
        b"\0",
        b"\xff\xfe not UTF-8",
        "a\u{2028}b\u{2029}c\u{85}d\u{feff}".as_bytes(),
        b"\x1b[2J\r\n\x0b\x0c\x7f",
    ];
    for body in awkward {
        let mut call = crate::scene::line::call(&crate::scene::line::Words::parse("send api x"));
        let tenure_projection::call::Verb::Send { body: sent, .. } = &mut call.verb else {
            panic!("it sends");
        };
        *sent = body.to_vec();
        scene.store.execute(call).expect("it is sent");
    }
    let read = scene.another();
    for (row, body) in scene.state().envelopes.iter().skip(1).zip(awkward) {
        let at = row.located().expect("it has one");
        assert_eq!(read.body(at).expect("it reads").as_deref(), Some(body));
        let beyond = Located {
            body: BodyId(1),
            ..at
        };
        assert_eq!(read.body(beyond).expect("it reads"), None);
    }
}

/// OUT-16: delivered, read, accepted and reported are separate facts; a crash between delivery and receipt leads
/// to delivery again under the same id.
#[test]
fn delivery_reading_acceptance_and_report_are_separate() {
    let scene = Scene::new();
    scene.check(
        "register api            => api@1
         dispatch item api       => d1 e1
         deliver e1 as=api@1     => done
         work                    => d1 queued api@1
         accept d1 as=api@1      => alone
         inbox api               => e1 work delivered@1
         adopt api force=crashed => api@2 former@1
         inbox api               => e1 work pending@2
         work                    => d1 accepted api@2
         deliver e1 as=api@2     => done
         ack e1 as=api@2         => done
         work                    => d1 accepted api@2
         report d1 done as=api@2 => done",
    );
    // A receipt that was lost is asked for again: the answer is the same, and the log has it once.
    let scene = Scene::new();
    scene.play("register api \n send api hello");
    let balky = Arc::new(Balky::new(&scene.log));
    let store = scene.upon(balky.clone());
    balky.meets(Trouble::AnswerLost, 1);
    scene.check_on(
        &store,
        "deliver e1 as=api@1 => unknown: ..
         deliver e1 as=api@1 => done again",
    );
    let head = Journal::head(&scene.log).expect("it reads");
    Journal::wait_durable(&scene.log, head.position, Deadline::NEVER).expect("it is");
    let delivered = scene.entries().into_iter().flat_map(|e| e.events);
    assert_eq!(delivered.filter(|e| e.word() == "delivered").count(), 1);
}
