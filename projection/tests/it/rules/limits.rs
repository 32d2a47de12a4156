//! Every maximum, at the limit and one past it.

use std::path::PathBuf;

use tenure_core::command::Outcome;
use tenure_core::id::{DispatchNo, Name};
use tenure_core::limits::{
    ANCHORS_MAX, BODY_BYTES_MAX, FORMER_PLACES_MAX, FORMERS_MAX, KEY_BYTES_MAX, LABEL_BYTES_MAX,
    LABELS_MAX, NAME_BYTES_MAX, OBSERVED_SCOPES_MAX, PATH_BYTES_MAX, REASON_BYTES_MAX, SCOPES_MAX,
    STATUS_BYTES_MAX, TEXTS_MAX, TITLE_BYTES_MAX,
};
use tenure_projection::call::{Bearer, Call, Label, Verb};
use tenure_projection::error::{Error, Failure};

use crate::scene::Scene;

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn label(n: usize, bytes: usize) -> Label {
    let key = format!("{n:03}");
    let value = text(bytes);
    Label { key, value }
}

fn register(session: &str, labels: Vec<Label>) -> Verb {
    Verb::Register {
        name: name(session),
        bearer: Bearer::itself(),
        labels,
        checkout: None,
    }
}

/// A scene with `api@1`, which has accepted `d1` and was given `d2`.
fn ready() -> Scene {
    let scene = Scene::new();
    scene.play("register api \n dispatch one api \n accept d1 as=api@1 \n dispatch two api");
    scene
}

fn under_token(verb: Verb) -> Call {
    Call::new(verb).under(&"api@1".parse().expect("a token"))
}

/// Makes the call with a text of `max` bytes, and one more: the first is done, the second is not.
fn at_and_beyond(what: &str, max: usize, call: impl Fn(usize) -> Call) {
    let scene = ready();
    let frames = scene.frames();
    let beyond = scene.store.execute(call(max + 1));
    let Err(Failure::Failed(Error::Limit {
        what: said,
        offered,
        max: allowed,
    })) = beyond
    else {
        panic!("{what} beyond the limit: {beyond:?}");
    };
    assert_eq!((said, offered, allowed), (what, max + 1, max));
    assert_eq!(scene.frames(), frames, "nothing is appended");
    let done = scene.store.execute(call(max));
    assert!(done.is_ok(), "{what} at the limit: {done:?}");
    // What was accepted is read back by whoever comes later.
    assert!(scene.another().view(Clone::clone).expect("it reads") == scene.state());
}

/// B11, B30: texts and bodies; the answer names the limit and what was offered.
#[test]
fn texts_are_limited() {
    at_and_beyond("the title", TITLE_BYTES_MAX, |n| {
        Call::new(Verb::Dispatch {
            item: name("item"),
            to: name("api"),
            to_generation: None,
            title: Some(text(n)),
            writes: Vec::new(),
            body: None,
        })
    });
    at_and_beyond("the reason", REASON_BYTES_MAX, |n| {
        let (dispatch, reason) = (DispatchNo(2), text(n));
        under_token(Verb::Decline { dispatch, reason })
    });
    at_and_beyond("the reason", REASON_BYTES_MAX, |n| {
        let (dispatch, reason) = (DispatchNo(2), text(n));
        Call::new(Verb::Cancel { dispatch, reason })
    });
    at_and_beyond("the reason", REASON_BYTES_MAX, |n| {
        let (dispatch, reason) = (DispatchNo(2), text(n));
        Call::new(Verb::Fail { dispatch, reason })
    });
    at_and_beyond("the reason", REASON_BYTES_MAX, |n| {
        let verb = Verb::Retire {
            name: name("api"),
            if_idle: false,
            reason: None,
        };
        Call::new(verb).by_force(text(n))
    });
    at_and_beyond("the status", STATUS_BYTES_MAX, |n| {
        under_token(Verb::Observe {
            status: text(n),
            wrote: Vec::new(),
        })
    });
    at_and_beyond("the text", BODY_BYTES_MAX, |n| {
        under_token(Verb::Note {
            body: vec![0; n],
            on: None,
        })
    });
    at_and_beyond("the text", BODY_BYTES_MAX, |n| {
        let (dispatch, outcome) = (DispatchNo(1), Outcome::Done);
        under_token(Verb::Report {
            dispatch,
            outcome,
            body: Some(vec![0; n]),
        })
    });
    at_and_beyond("the text", BODY_BYTES_MAX, |n| {
        Call::new(Verb::Send {
            to: name("api"),
            body: vec![0; n],
            re: None,
        })
    });
    at_and_beyond("the idempotency key", KEY_BYTES_MAX, |n| {
        under_token(Verb::Note {
            body: Vec::new(),
            on: None,
        })
        .keyed(text(n))
    });
    at_and_beyond("the actor", LABEL_BYTES_MAX, |n| {
        under_token(Verb::Note {
            body: Vec::new(),
            on: None,
        })
        .by(text(n))
    });
    at_and_beyond("the engine", LABEL_BYTES_MAX, |n| {
        let mut verb = register("web", Vec::new());
        if let Verb::Register { bearer, .. } = &mut verb {
            bearer.engine = Some(text(n));
        }
        Call::new(verb)
    });
    at_and_beyond("a label's value", LABEL_BYTES_MAX, |n| {
        Call::new(register("web", vec![label(1, n)]))
    });
    at_and_beyond("a label's key", LABEL_BYTES_MAX, |n| {
        let label = Label {
            key: text(n),
            value: String::new(),
        };
        Call::new(register("web", vec![label]))
    });
    let name_of = |n| Name::parse(&text(n));
    assert!(name_of(NAME_BYTES_MAX).is_ok() && name_of(NAME_BYTES_MAX + 1).is_err());
}

/// What needs at least one character.
#[test]
fn what_must_be_said_cannot_be_empty() {
    for empty in ["", " \t\n"] {
        let calls = [
            under_token(Verb::Decline {
                dispatch: DispatchNo(2),
                reason: empty.into(),
            }),
            Call::new(Verb::Retire {
                name: name("api"),
                if_idle: false,
                reason: None,
            })
            .by_force(empty),
            under_token(Verb::Note {
                body: Vec::new(),
                on: None,
            })
            .by(empty),
        ];
        for call in calls {
            let answer = ready().store.execute(call);
            assert!(
                matches!(answer, Err(Failure::Failed(Error::Empty(_)))),
                "{answer:?}"
            );
        }
    }
    let answer = ready().store.execute(
        under_token(Verb::Note {
            body: Vec::new(),
            on: None,
        })
        .keyed(""),
    );
    assert!(
        matches!(answer, Err(Failure::Failed(Error::Empty(_)))),
        "{answer:?}"
    );
}

/// Lists: labels, over adoptions too, and scopes.
#[test]
fn lists_are_limited() {
    let labels = |n: usize| (0..n).map(|n| label(n, 3)).collect::<Vec<_>>();
    at_and_beyond("the list of labels", LABELS_MAX, |n| {
        Call::new(register("web", labels(n)))
    });
    at_and_beyond("the list of labels", LABELS_MAX, |n| {
        let (name, bearer) = (name("api"), Bearer::itself());
        under_token(Verb::Adopt {
            name,
            bearer,
            labels: labels(n),
        })
    });
    let scopes = |n: usize| (0..n).map(|n| PathBuf::from(format!("/w/{n}"))).collect();
    at_and_beyond("the list of write scopes", SCOPES_MAX, |n| {
        Call::new(Verb::Dispatch {
            item: name("item"),
            to: name("api"),
            to_generation: None,
            title: None,
            writes: scopes(n),
            body: None,
        })
    });
    at_and_beyond("the list of write scopes", SCOPES_MAX, |n| {
        under_token(Verb::Observe {
            status: "busy".into(),
            wrote: scopes(n),
        })
    });

    let scene = Scene::new();
    scene
        .store
        .execute(Call::new(register("api", labels(LABELS_MAX))))
        .expect("at the limit");
    let adopt = |labels| {
        let verb = Verb::Adopt {
            name: name("api"),
            bearer: Bearer::itself(),
            labels,
        };
        scene.store.execute(under_token(verb))
    };
    let more = adopt(vec![Label {
        key: "more".into(),
        value: String::new(),
    }]);
    let Err(Failure::Failed(Error::Limit { offered, .. })) = more else {
        panic!("labels add up: {more:?}");
    };
    assert_eq!(offered, LABELS_MAX + 1);
    adopt(labels(3)).expect("those that it has may change");
}

/// A path of the greatest length, with as many directories identified as are kept, in every scope of a dispatch.
#[test]
fn paths_are_limited() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut deep = dir.path().canonicalize().expect("there");
    for _ in 0..ANCHORS_MAX + 4 {
        deep.push("d");
    }
    std::fs::create_dir_all(&deep).expect("made");
    let long = |bytes: usize| {
        let mut path = deep.to_str().expect("text").to_owned();
        while path.len() < bytes {
            let part = (bytes - path.len() - 1).min(200);
            path.push('/');
            path.push_str(&text(part.max(1)));
        }
        PathBuf::from(path)
    };
    let dispatch = |path: PathBuf, count: usize| {
        let mut writes = vec![path];
        // Differ in a directory, not in length.
        for n in 1..count {
            let tail = format!("{n:03}");
            let first = writes[0].to_str().expect("text");
            writes.push(PathBuf::from(format!(
                "{}{tail}",
                &first[..first.len() - 3]
            )));
        }
        Call::new(Verb::Dispatch {
            item: name("item"),
            to: name("api"),
            to_generation: None,
            title: None,
            writes,
            body: None,
        })
    };
    let scene = ready();
    let beyond = scene.store.execute(dispatch(long(PATH_BYTES_MAX + 1), 1));
    assert!(
        matches!(beyond, Err(Failure::Failed(Error::Scope { .. }))),
        "{beyond:?}"
    );
    let path = long(PATH_BYTES_MAX);
    assert_eq!(path.as_os_str().len(), PATH_BYTES_MAX);
    scene
        .store
        .execute(dispatch(path, SCOPES_MAX))
        .expect("at the limit");
    let state = scene.another().view(Clone::clone).expect("it reads");
    assert!(state == scene.state());
    let (_, live) = state.live.iter().last().expect("it is live");
    assert_eq!(live.writes.len(), SCOPES_MAX);
    assert!(live.writes.iter().all(|w| w.anchors.len() == ANCHORS_MAX));
    let frame = scene.all().pop().expect("there");
    let request = tenure_projection::entry::decode_request(&frame.by_ref()).expect("it decodes");
    assert!(request.texts.iter().len() <= TEXTS_MAX);
}

/// Observed scopes and former holders: the oldest give way; a former holder's places are limited.
#[test]
fn what_is_remembered_is_limited() {
    let scene = Scene::new();
    scene.play("register api");
    for n in 0..=OBSERVED_SCOPES_MAX {
        scene.play(&format!("observe busy as=api@1 wrote=/w/{n}"));
        let expected = (n + 1).min(OBSERVED_SCOPES_MAX);
        assert_eq!(scene.session("api").observed.len(), expected);
    }
    scene.play("observe busy as=api@1 wrote=/w/1");
    let state = scene.state();
    let observed = scene.session("api").observed;
    let paths: Vec<_> = observed.iter().map(|s| state.pool.string(s.path)).collect();
    assert_eq!(
        paths.len(),
        OBSERVED_SCOPES_MAX,
        "one that is known is not kept twice"
    );
    let (first, last) = (paths.first().expect("there"), paths.last().expect("there"));
    assert_eq!((first.as_str(), last.as_str()), ("/w/2", "/w/1"));

    for n in 1..=FORMERS_MAX + 1 {
        scene.play(&format!("adopt api force=again pid={}", 500 + n));
        assert_eq!(scene.session("api").formers.len(), n.min(FORMERS_MAX));
    }
    assert_eq!(scene.session("api").formers[0].generation.number, 2);

    let scene = Scene::new();
    scene.play("register api");
    let scopes = |d: usize| {
        let paths: Vec<_> = (0..SCOPES_MAX).map(|n| format!("/w/{d}/{n}")).collect();
        paths.join(",")
    };
    for d in 1..=2 {
        scene.play(&format!(
            "dispatch i{d} api writes={} \n accept d{d} as=api@1",
            scopes(d)
        ));
    }
    let places = |scene: &Scene| {
        scene
            .session("api")
            .formers
            .last()
            .expect("there")
            .places
            .len()
    };
    scene.play("adopt api force=one");
    assert_eq!(places(&scene), FORMER_PLACES_MAX);
    scene.play("observe busy as=api@2 wrote=/v \n adopt api force=two");
    assert_eq!(places(&scene), FORMER_PLACES_MAX);
}
