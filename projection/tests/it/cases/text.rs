//! What is written: any bytes, any order of calls, any size within the limits, and what was accepted live is good at the
//! next opening.

use proptest::prelude::*;
use tenure_core::command::{Outcome, Ref};
use tenure_core::generation::Generation;
use tenure_core::id::{DispatchNo, EnvelopeNo, Name, Position, Token};
use tenure_core::limits;
use tenure_core::refusal::{Code, Refusal};
use tenure_log::frame::Depth;
use tenure_log::journal::Deadline;
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::entry;
use tenure_projection::error::{Error, Failure};
use tenure_projection::projector::Projector;
use tenure_projection::session::Session;
use tenure_projection::store::{Answer, Store};

use super::{Ground, adopt, head, name, note, session};

fn refusal(outcome: Result<tenure_projection::store::Done, Failure>) -> Refusal {
    match outcome {
        Err(Failure::Refused(refusal)) => *refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn dispatch(item: &str, to: &str) -> Call {
    Call::new(Verb::Dispatch {
        item: name(item),
        to: name(to),
        to_generation: None,
        title: None,
        writes: Vec::new(),
        body: Some(b"do it".to_vec()),
    })
}

fn report(dispatch: u64) -> Verb {
    Verb::Report {
        dispatch: DispatchNo(dispatch),
        outcome: Outcome::Done,
        body: None,
    }
}

/// The bodies of the frames behind `after`.
fn bodies(store: &Store, after: u64) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let (from, to) = (Position(after + 1), Position(head(store)));
    let walked = store.frames(from, to, Depth::Whole, |frame| {
        let request = entry::decode_request(frame)?;
        found.extend(request.bodies.iter().map(<[u8]>::to_vec));
        Ok(true)
    });
    walked.expect("the log reads");
    found
}

/// B10, B30: separators, controls, bytes that are no text, frames and whole segments as content: what comes back is what was
/// given, and nothing in it ends a record.
#[test]
fn any_bytes_come_back_as_they_were() {
    let ground = Ground::filled(1);
    let segment = std::fs::read(&ground.segments()[0]).expect("read");
    let all: Vec<u8> = (0..=255).collect();
    let texts: Vec<Vec<u8>> = vec![
        "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\0g\u{1b}h\ri\nj\r\n".into(),
        vec![0],
        Vec::new(),
        b"TNF1TNF1TNF1".to_vec(),
        all,
        vec![0; 5_000],
        segment,
        "\u{feff}{\"t\":\"\u{1f600}\"}\n".into(),
        b"\xf0\x9f\x98 half of an emoji".to_vec(),
    ];
    let store = ground.open();
    let api = adopt(&store, "api");
    let before = head(&store);
    for text in &texts {
        let verb = Verb::Note {
            body: text.clone(),
            on: None,
        };
        api.call(verb).expect("noted");
    }
    assert_eq!(bodies(&store, before), texts);
    drop((api, store));
    ground.assert_clean();
    assert_eq!(bodies(&ground.open(), before), texts);
    let after_reboot = ground.verify();
    assert_eq!(after_reboot.coverage.frames, before + texts.len() as u64);
}

/// B13: a text that is too long is refused whole, at every byte of every character; nothing is shortened, so nothing is cut
/// in two.
#[test]
fn nothing_is_shortened_in_the_middle_of_a_character() {
    let ground = Ground::new();
    let store = ground.open();
    let api = session(&store, "api");
    let observe = |status: String| Verb::Observe {
        status,
        wrote: Vec::new(),
    };
    for lead in 0..8 {
        for emoji in [60, 61, 62, 63, 64, 65] {
            let status = "x".repeat(lead) + &"\u{1f600}".repeat(emoji);
            let fits = status.len() <= limits::STATUS_BYTES_MAX;
            let before = head(&store);
            let outcome = api.call(observe(status.clone()));
            assert_eq!(outcome.is_ok(), fits, "{} bytes", status.len());
            if !fits {
                let limit = outcome.expect_err("refused").to_string();
                assert!(limit.contains(&status.len().to_string()), "{limit}");
                assert_eq!(head(&store), before);
            }
        }
    }
}

/// B11: size and age are no verdict: several starts and ends of a store, thousands of events and megabytes of text are
/// clean; what is too large says how large it may be, and leaves the log as it was.
#[test]
fn a_long_log_of_many_openings_is_clean() {
    let ground = Ground::new();
    let large = vec![b'x'; limits::BODY_BYTES_MAX];
    drop(session(&ground.open(), "api"));
    for span in 0..12 {
        let store = ground.open();
        let api = adopt(&store, "api");
        let tickets: Vec<_> = (0..200)
            .map(|n| {
                let body = if n == 0 {
                    large.clone()
                } else {
                    format!("{span}.{n}").into()
                };
                api.submit(Verb::Note { body, on: None })
                    .expect("submitted")
            })
            .collect();
        for ticket in tickets {
            ticket.wait().expect("noted");
        }
    }
    let report = ground.verify();
    assert_eq!(report.findings, []);
    assert_eq!(report.coverage.frames, 1 + 12 * 201);
    assert!(report.coverage.bytes > 12 << 20);
    let store = ground.open();
    let api = adopt(&store, "api");
    let before = head(&store);
    let offered = 1_700_000;
    let verb = Verb::Note {
        body: vec![b'x'; offered],
        on: None,
    };
    match api.call(verb) {
        Err(Failure::Failed(Error::Limit {
            offered: o, max, ..
        })) => {
            assert_eq!((o, max), (offered, limits::BODY_BYTES_MAX));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(head(&store), before);
    note(&api, "goes on").expect("noted");
}

/// B18: what was begun and not ended is an ordinary state: shown as open, carried to whoever takes over, closed by them, and
/// refused to the former holder.
#[test]
fn three_were_accepted_and_two_reported() {
    let ground = Ground::new();
    let store = ground.open();
    let first = session(&store, "api");
    for item in ["one", "two", "three"] {
        store.execute(dispatch(item, "api")).expect("dispatched");
    }
    for number in 1..=3 {
        let dispatch = DispatchNo(number);
        first.call(Verb::Accept { dispatch }).expect("accepted");
    }
    first.call(report(1)).expect("reported");
    first.call(report(2)).expect("reported");
    // Killed.
    std::mem::forget(store);
    let store = ground.open();
    let second = adopt(&store, "api");
    let open = |store: &Store| {
        let look = |state: &tenure_core::state::State| state.live.keys().collect::<Vec<_>>();
        store.view(look).expect("the log reads")
    };
    assert_eq!(open(&store), [DispatchNo(3)]);
    let stale = Session::of(&store, first.token().clone());
    assert_eq!(refusal(stale.call(report(3))).code, Code::StaleGeneration);
    assert_eq!(open(&store), [DispatchNo(3)]);
    let interrupted = Verb::Report {
        dispatch: DispatchNo(3),
        outcome: Outcome::Failed,
        body: Some(b"interrupted".to_vec()),
    };
    second.call(interrupted).expect("closed");
    assert_eq!(open(&store), []);
    drop(store);
    assert_eq!(open(&ground.open()), []);
}

/// B20: an item given out twice is refused to who asks, and the log stays good; forced into the log by hand, the second one
/// is passed over and the replay goes on.
#[test]
fn a_reused_id_is_refused_and_a_forced_one_does_not_stop_the_replay() {
    let ground = Ground::new();
    let store = ground.open();
    let api = session(&store, "api");
    store.execute(dispatch("item", "api")).expect("dispatched");
    let refused = refusal(store.execute(dispatch("item", "api")));
    assert_eq!(refused.code, Code::DuplicateItem);
    note(&api, "still usable").expect("noted");
    // The bytes of both grants once more, behind everything: by hand, past every rule.
    let known = store.head().expect("the log reads");
    let mut again = Vec::new();
    store
        .frames(Position(1), Position(2), Depth::Whole, |frame| {
            again.push(tenure_log::frame::Draft {
                time: frame.header.time,
                parts: frame.to_owned().parts,
            });
            Ok(true)
        })
        .expect("the log reads");
    let forced = again.len() as u64;
    let mut drafts = Some(again);
    let appended = store.journal().transact(known, Deadline::NEVER, &mut |_| {
        drafts.take().unwrap_or_default()
    });
    let appended = appended.expect("the log knows no rules");
    let durable = store
        .journal()
        .wait_durable(appended.head.position, Deadline::NEVER);
    durable.expect("synced");
    drop((api, store));
    let reader = ground.read();
    let mut replay = Projector::new();
    replay
        .read(&reader, None, &mut [])
        .expect("replayed to the end");
    assert_eq!(replay.position().0, known.position.0 + forced);
    let state = replay.state();
    assert_eq!(state.sessions.len(), 1, "no second session of that name");
    let generation = state
        .session(state.find(b"api").expect("there"))
        .expect("there")
        .generation;
    assert_eq!(generation, Generation::first(1), "no second grant");
    assert_eq!(state.live.len(), 1, "no second live dispatch of the item");
}

/// B22: numbers of dispatches, envelopes and positions are of different types; what was never given is refused, whichever
/// way it is referred to.
#[test]
fn a_reference_to_what_never_was_is_refused() {
    let ground = Ground::new();
    let store = ground.open();
    let api = session(&store, "api");
    store.execute(dispatch("item", "api")).expect("dispatched");
    let on = |on: Ref| Verb::Note {
        body: b"about".to_vec(),
        on: Some(on),
    };
    // The dispatch and the envelope that carried it are both the first of their kind.
    api.call(on(Ref::Dispatch(DispatchNo(1)))).expect("noted");
    api.call(on(Ref::Envelope(EnvelopeNo(1)))).expect("noted");
    for unknown in [
        Ref::Dispatch(DispatchNo(0)),
        Ref::Dispatch(DispatchNo(2)),
        Ref::Envelope(EnvelopeNo(2)),
        Ref::Envelope(EnvelopeNo(u64::MAX)),
    ] {
        let refused = refusal(api.call(on(unknown)));
        let expected = match unknown {
            Ref::Envelope(_) => Code::UnknownEnvelope,
            _ => Code::UnknownDispatch,
        };
        assert_eq!(refused.code, expected, "{unknown:?}");
    }
    let beyond = store.state_at(Position(head(&store) + 1));
    assert!(matches!(beyond, Err(Error::BeyondHead { .. })));
}

/// OUT-12: nobody delivers, acknowledges or lists what is addressed to another, and the refusal names whose it is.
#[test]
fn an_envelope_is_never_handled_as_another_sessions() {
    let ground = Ground::new();
    let store = ground.open();
    let (x, y) = (session(&store, "x"), session(&store, "y"));
    let to_x = Verb::Send {
        to: name("x"),
        body: b"for x".to_vec(),
        re: None,
    };
    let sent = y.call(to_x).expect("sent");
    let Answer::Sent { envelope } = sent.answer else {
        panic!("{sent:?}")
    };
    for verb in [Verb::Deliver { envelope }, Verb::Acknowledge { envelope }] {
        let refused = refusal(y.call(verb));
        assert_eq!(refused.code, Code::NotYourEnvelope);
        assert!(refused.message.contains("x@1"), "{}", refused.message);
    }
    let inboxes = store.view(|state| {
        let inbox = |of: &str| {
            let session = state.find(of.as_bytes()).and_then(|n| state.session(n));
            session.expect("there").inbox.clone()
        };
        (inbox("x"), inbox("y"))
    });
    assert_eq!(
        inboxes.expect("the log reads"),
        (vec![envelope], Vec::new())
    );
    x.call(Verb::Acknowledge { envelope }).expect("its own");
}

/// A call of any kind about few things, so that they meet.
fn any_call() -> impl Strategy<Value = Call> {
    let names = prop_oneof![Just("a"), Just("b"), Just("c/d@e"), Just("x.y-z_1")];
    let texts = prop_oneof![
        Just(Vec::new()),
        Just(vec![0]),
        Just(vec![0xff, 0xfe]),
        proptest::collection::vec(any::<u8>(), 0..40),
        Just(vec![b'x'; 70_000]),
    ];
    let keys = proptest::option::weighted(0.3, prop_oneof![Just("k1"), Just("k2"), Just("")]);
    let tokens = proptest::option::weighted(0.8, (names.clone(), 0_u64..4));
    let force = proptest::option::weighted(0.2, prop_oneof![Just("because"), Just("")]);
    let verb = (0_u8..14, names, texts, 0_u64..4);
    (verb, tokens, keys, force).prop_map(|((kind, of, body, n), token, key, force)| {
        let Ok(of) = Name::parse(of) else {
            // Refused before there is a call; another one stands in for it.
            return Call::new(any_verb(kind, name("a"), body, n));
        };
        let mut call = Call::new(any_verb(kind, of, body, n));
        if let Some((of, generation)) = token
            && let Ok(token) = format!("{of}@{generation}").parse::<Token>()
        {
            call = call.under(&token);
        }
        if let Some(key) = key {
            call = call.keyed(key);
        }
        match force {
            Some(reason) => call.by_force(reason),
            None => call,
        }
    })
}

fn any_verb(kind: u8, of: Name, body: Vec<u8>, n: u64) -> Verb {
    let dispatch = DispatchNo(n);
    let envelope = EnvelopeNo(n);
    let text = || String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    match kind {
        0 | 1 => Verb::Register {
            name: of,
            bearer: Bearer::itself(),
            labels: Vec::new(),
            checkout: None,
        },
        2 => Verb::Adopt {
            name: of,
            bearer: Bearer::itself(),
            labels: Vec::new(),
        },
        3 => Verb::Retire {
            name: of,
            if_idle: n.is_multiple_of(2),
            reason: None,
        },
        4 => Verb::Dispatch {
            item: of.clone(),
            to: of,
            to_generation: None,
            title: Some(text()),
            writes: Vec::new(),
            body: Some(body),
        },
        5 => Verb::Accept { dispatch },
        6 => Verb::Decline {
            dispatch,
            reason: text(),
        },
        7 => report(n),
        8 => Verb::Cancel {
            dispatch,
            reason: text(),
        },
        9 => Verb::Note { body, on: None },
        10 => Verb::Observe {
            status: text(),
            wrote: Vec::new(),
        },
        11 => Verb::Send {
            to: of,
            body,
            re: Some(Ref::Envelope(envelope)),
        },
        12 => Verb::Deliver { envelope },
        _ => Verb::Acknowledge { envelope },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// B30: whatever is answered live, with what outcome whatever: the store opens again, and is the same.
    #[test]
    fn what_was_accepted_live_is_good_at_the_next_opening(calls in proptest::collection::vec(any_call(), 1..40)) {
        let ground = Ground::new();
        let store = ground.open();
        for call in calls {
            // Refused and failed calls are part of the history too.
            let _ = store.execute(call);
        }
        let live = store.view(Clone::clone).expect("the log reads");
        drop(store);
        prop_assert_eq!(ground.verify().findings, []);
        let again = ground.open();
        prop_assert!(again.view(Clone::clone).expect("the log reads") == live);
        let mut replay = Projector::new();
        replay.read(&again, None, &mut []).expect("replayed");
        prop_assert_eq!(replay.findings(), []);
        prop_assert!(*replay.state() == live);
    }
}

/// B30: what no store would take back is not taken: names are held against the rules where they enter.
#[test]
fn names_that_would_not_come_back_are_refused_where_they_enter() {
    for text in ["", " ", "a\nb", "a\0b", "-x", ".", ".."] {
        assert!(Name::parse(text).is_err(), "{text:?}");
    }
    assert!(Name::parse(&"x".repeat(limits::NAME_BYTES_MAX)).is_ok());
    assert!(Name::parse(&"x".repeat(limits::NAME_BYTES_MAX + 1)).is_err());
    assert!(Name::parse(&"x".repeat(64 << 10)).is_err());
}
