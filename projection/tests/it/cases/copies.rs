//! Copies and older copies of a store, messages sent twice, and where a store leaves its files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tenure_core::command::Settlement;
use tenure_core::id::{EnvelopeNo, Token};
use tenure_core::refusal::Code;
use tenure_core::state::EnvelopeState;
use tenure_log::error::Error as LogError;
use tenure_log::verify::{Options, Outcome, ReceiptState};
use tenure_projection::call::{Call, Verb};
use tenure_projection::error::{Error, Failure};
use tenure_projection::session::Session;
use tenure_projection::store::{Answer, Done, Store, settle};

use super::tail::is_damage;
use super::{Ground, adopt, head, name, note, notes, session, tree};
use crate::actors;

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(status.expect("cp runs").success());
}

fn code(outcome: Result<Done, Failure>) -> Code {
    match outcome {
        Err(Failure::Refused(refusal)) => refusal.code,
        other => panic!("not refused: {other:?}"),
    }
}

fn has_moved(outcome: Result<Store, Error>) -> bool {
    let Err(Error::Log(error)) = outcome else {
        return false;
    };
    matches!(*error, LogError::HomeChanged { .. })
}

/// A store at `api@3` with a copy of it, gone on to `api@7`.
fn copied_at_three() -> (Ground, std::path::PathBuf, Vec<Session>) {
    let ground = Ground::new();
    let store = ground.open();
    let mut held = vec![session(&store, "api")];
    for _ in 0..2 {
        held.push(adopt(&store, "api"));
    }
    drop(store);
    let copied = ground.dir.with_file_name("copy");
    copy(&ground.dir, &copied);
    let store = ground.open();
    for _ in 0..4 {
        held.push(adopt(&store, "api"));
    }
    let newest = held.last().expect("held");
    assert_eq!(newest.token().to_string(), "api@7");
    note(newest, "lost by the restore").expect("noted");
    (ground, copied, held)
}

/// E19, REG-12, C27: an older copy put in a store's place is not appended to until somebody says so; then a new life begins,
/// in which no number of the old one is current, not even one that is given again.
#[test]
fn a_restored_copy_gives_no_old_number_its_authority_back() {
    let (ground, copied, held) = copied_at_three();
    fs::rename(&ground.dir, ground.dir.with_file_name("lost")).expect("moved away");
    fs::rename(&copied, &ground.dir).expect("put in its place");
    let before = ground.truth();
    assert!(has_moved(ground.try_open()));
    assert_eq!(ground.truth(), before);
    let how = Settlement::Restored;
    settle(
        &ground.options(),
        ground.host.clone(),
        None,
        how,
        "from a backup".into(),
    )
    .expect("settled");
    let store = ground.open();
    for old in &held {
        let old = Session::of(&store, old.token().clone());
        let refused = code(note(&old, "late"));
        assert!(
            matches!(refused, Code::StaleGeneration | Code::NeverIssued),
            "{}",
            old.token()
        );
    }
    let mut given = BTreeSet::new();
    for _ in 0..6 {
        let next = adopt(&store, "api");
        assert!(next.token().generation.incarnation > 1);
        assert!(given.insert(next.token().to_string()));
        for old in &held {
            let old = Session::of(&store, old.token().clone());
            assert!(
                note(&old, "late").is_err(),
                "{} beside {}",
                old.token(),
                next.token()
            );
        }
        note(&next, "in the new life").expect("noted");
    }
    drop(store);
    ground.assert_clean();
}

/// E19, C27: two copies that are settled apart are two lives: a token of one is worth nothing in the other.
#[test]
fn two_copies_are_two_lives() {
    let (ground, copied, held) = copied_at_three();
    let other = Ground::new();
    fs::rename(&copied, &other.dir)
        .or_else(|_| {
            copy(&copied, &other.dir);
            fs::remove_dir_all(&copied)
        })
        .expect("moved");
    assert!(has_moved(other.try_open()));
    settle(
        &other.options(),
        other.host.clone(),
        None,
        Settlement::Copied,
        "to try".into(),
    )
    .expect("settled");
    let (original, copy) = (ground.open(), other.open());
    assert_eq!(
        original.id().expect("read"),
        copy.id().expect("read"),
        "one birth"
    );
    let ours = adopt(&copy, "api");
    let theirs = held.last().expect("held");
    note(theirs, "the original goes on").expect("noted");
    assert_ne!(ours.token(), theirs.token());
    assert!(note(&Session::of(&original, ours.token().clone()), "x").is_err());
    assert!(note(&Session::of(&copy, theirs.token().clone()), "x").is_err());
}

/// E19: a store that only moved goes on in its life: who held something holds it, and the log says that it moved.
#[test]
fn a_store_that_moved_keeps_its_life() {
    let ground = Ground::new();
    let token = session(&ground.open(), "api").token().clone();
    let other = Ground::new();
    copy(&ground.dir, &other.dir);
    fs::remove_dir_all(&ground.dir).expect("moved away");
    assert!(has_moved(other.try_open()));
    let (options, host) = (other.options(), other.host.clone());
    let how = Settlement::Moved;
    let settled = settle(&options, host, None, how, "to another disk".into());
    assert_eq!(settled.expect("settled").at.position.0, 2);
    let store = other.open();
    assert_eq!(store.view(|state| state.incarnation).expect("read"), 1);
    note(&Session::of(&store, token), "goes on").expect("noted");
    drop(store);
    other.assert_clean();
}

/// A copy of a store in which nothing has happened yet begins a life of its own too: its first frame says so.
#[test]
fn a_copied_store_without_a_frame_is_settled() {
    let ground = Ground::new();
    drop(ground.open());
    let other = Ground::new();
    copy(&ground.dir, &other.dir);
    assert!(has_moved(other.try_open()));
    let host = other.host.clone();
    let settled = settle(
        &other.options(),
        host,
        None,
        Settlement::Copied,
        "to try".into(),
    );
    assert_eq!(settled.expect("settled").at.position.0, 1);
    let (original, copied) = (ground.open(), other.open());
    note(&session(&original, "api"), "here").expect("noted");
    note(&session(&copied, "api"), "there").expect("noted");
    let lives = [&original, &copied].map(|store| store.view(|state| state.incarnation));
    let [one, two] = lives.map(|life| life.expect("it reads"));
    assert!(one < two, "{one} and {two}");
    ground.assert_clean();
    other.assert_clean();
}

/// E19, REG-12: files put back over a store that stays where it is: the page that knew better says so, and a client's number
/// from the future is refused. Where the page was put back too, only a receipt that was kept outside can tell.
#[test]
fn a_restore_in_place_is_found_by_the_page_or_by_a_receipt() {
    let ground = Ground::new();
    let store = ground.open();
    drop(session(&store, "api"));
    adopt(&store, "api");
    drop(store);
    let old = ground.tree();
    let store = ground.open();
    let late = adopt(&store, "api");
    let receipt = note(&late, "acknowledged").expect("noted").receipt;
    let token: Token = late.token().clone();
    drop((late, store));
    let page = fs::read(ground.dir.join("control")).expect("read");

    ground.restore(&old);
    super::write_private(&ground.dir.join("control"), &page);
    assert_eq!(ground.verify().outcome, Outcome::Damaged);
    let store = ground.try_open();
    let appended = store.and_then(|store| {
        let outcome = Session::adopt(&store, &name("api"), Some("next"));
        match outcome {
            Err(Failure::Failed(error)) => Err(error),
            other => panic!("a log that lost what was durable was appended to: {other:?}"),
        }
    });
    assert!(is_damage(appended), "the page knew of more");

    ground.restore(&old);
    assert_eq!(
        ground.verify().outcome,
        Outcome::Clean,
        "it is whole in itself"
    );
    let shown = ground.verify_with(&Options {
        receipts: vec![receipt],
        ..Options::default()
    });
    assert_eq!(shown.outcome, Outcome::Damaged);
    assert!(matches!(shown.receipts[0].1, ReceiptState::Ahead { .. }));
    let store = ground.open();
    let from_the_future = Session::of(&store, token);
    assert_eq!(code(note(&from_the_future, "late")), Code::NeverIssued);
}

/// C27: two stores are told apart by their ids; a segment of one is never read as the other's.
#[test]
fn a_segment_of_another_store_is_named_and_not_read() {
    let (one, two) = (Ground::filled(12), Ground::filled(12));
    let ids = [&one, &two].map(|ground| ground.read().id().expect("read"));
    assert_ne!(ids[0], ids[1]);
    let foreign = fs::read(&two.segments()[1]).expect("read");
    super::write_private(&one.segments()[1], &foreign);
    let report = one.verify();
    assert_eq!(report.outcome, Outcome::Incomplete);
    let text = report.findings[0].to_string();
    assert!(
        text.contains(&ids[0].to_string()) && text.contains(&ids[1].to_string()),
        "{text}"
    );
    assert!(one.try_open().is_err());
}

fn send(store: &Store, key: &str) -> Done {
    let verb = Verb::Send {
        to: name("api"),
        body: b"the same message".to_vec(),
        re: None,
    };
    store.execute(Call::new(verb).keyed(key)).expect("sent")
}

/// OUT-10: a message sent again under its key is stored once, with thousands of others, restarts and crashes in between.
#[test]
fn a_message_sent_twice_is_stored_once_however_far_apart() {
    let ground = Ground::new();
    let store = ground.open();
    let api = session(&store, "api");
    let first = send(&store, "the key");
    for batch in 0..12 {
        let tickets: Vec<_> = (0..200)
            .map(|n| {
                let verb = Verb::Send {
                    to: name("api"),
                    body: format!("{batch}.{n}").into(),
                    re: None,
                };
                store
                    .submit(Call::new(verb).keyed(format!("{batch}.{n}")))
                    .expect("submitted")
            })
            .collect();
        for ticket in tickets {
            ticket.wait().expect("sent");
        }
    }
    drop((api, store));
    assert!(ground.dir.join("snapshots/state").exists());
    for way in 0..3 {
        let store = ground.open();
        let before = head(&store);
        let again = send(&store, "the key");
        assert!(again.repeated);
        assert_eq!(
            (again.receipt, again.answer),
            (first.receipt, first.answer.clone())
        );
        assert_eq!(head(&store), before);
        if way == 1 {
            std::mem::forget(store);
            ground.forget_control();
        }
    }
    let envelopes = ground.read().view(|state| state.envelopes.len());
    assert_eq!(envelopes.expect("the log reads"), 1 + 1 + 2_400);
}

/// E21: what was acknowledged is in the log, so that no cursor has to be believed: after a restart, and whatever a client's
/// cursor says, it is not pending again; what is pending is delivered once, and what was fenced never.
#[test]
fn what_was_acknowledged_is_never_delivered_again() {
    let ground = Ground::new();
    let store = ground.open();
    let api = session(&store, "api");
    let envelopes: Vec<EnvelopeNo> = (1..=6)
        .map(|n| match send(&store, &format!("e{n}")).answer {
            Answer::Sent { envelope } => envelope,
            other => panic!("{other:?}"),
        })
        .collect();
    for envelope in &envelopes[..5] {
        let envelope = *envelope;
        api.call(Verb::Acknowledge { envelope })
            .expect("acknowledged");
    }
    std::mem::forget(store);
    let pending = |ground: &Ground| {
        let look = |state: &tenure_core::state::State| {
            let session = state.find(b"api").and_then(|n| state.session(n));
            session.expect("there").inbox.clone()
        };
        ground.read().view(look).expect("the log reads")
    };
    assert_eq!(pending(&ground), [envelopes[5]]);
    let store = ground.open();
    let api = Session::of(&store, api.token().clone());
    for envelope in &envelopes {
        let envelope = *envelope;
        let before = head(&store);
        api.call(Verb::Deliver { envelope }).expect("its own");
        assert_eq!(head(&store) - before, u64::from(envelope == envelopes[5]));
        let again = api.call(Verb::Deliver { envelope }).expect("its own");
        assert!(again.repeated, "{envelope}");
    }
    let states = store.view(|state| {
        let of = |n: &EnvelopeNo| state.envelope(*n).expect("there").state;
        envelopes.iter().map(of).collect::<Vec<_>>()
    });
    let mut expected = vec![EnvelopeState::Acknowledged; 5];
    expected.push(EnvelopeState::Delivered);
    assert_eq!(states.expect("the log reads"), expected);
    // What a generation leaves when it is given back is cancelled, and stays so.
    api.clone().retire().expect("retired");
    let next = session(&store, "api");
    let envelope = envelopes[5];
    assert!(pending(&ground).is_empty());
    assert_eq!(
        code(next.call(Verb::Deliver { envelope })),
        Code::NotPending
    );
}

/// LIV-19: work that names a checkout leaves nothing in it: no lock, no record, no change of git's index; all is in the store's
/// own directory.
#[test]
fn a_store_leaves_nothing_in_the_working_tree() {
    const TEST: &str = "a_store_leaves_nothing_in_the_working_tree";
    let git = |at: &Path, words: &[&str]| {
        Command::new("git")
            .args(["-c", "user.name=n", "-c", "user.email=e@example", "-C"])
            .arg(at)
            .args(words)
            .stdin(Stdio::null())
            .output()
    };
    if !actors::can(&["git", "--version"]) {
        return actors::skip(TEST, "there is no git");
    }
    let tree_dir = tempfile::tempdir().expect("a directory");
    let checkout = tree_dir.path();
    git(checkout, &["init", "-q"]).expect("git runs");
    fs::write(checkout.join("file"), b"text").expect("written");
    git(checkout, &["add", "file"]).expect("git runs");
    git(checkout, &["commit", "-qm", "first"]).expect("git runs");
    let before = tree(checkout);
    let ground = Ground::new();
    let store = ground.open();
    let register = Verb::Register {
        name: name("api"),
        bearer: tenure_projection::call::Bearer::itself(),
        labels: Vec::new(),
        checkout: Some(checkout.to_owned()),
    };
    let Answer::Granted(grant) = store
        .execute(Call::new(register))
        .expect("registered")
        .answer
    else {
        panic!("no grant")
    };
    let api = Session::of(&store, grant.token);
    let dispatch = Verb::Dispatch {
        item: name("item"),
        to: name("api"),
        to_generation: None,
        title: None,
        writes: vec![checkout.join("file")],
        body: None,
    };
    store.execute(Call::new(dispatch)).expect("dispatched");
    let accept = Verb::Accept {
        dispatch: tenure_core::id::DispatchNo(1),
    };
    api.call(accept).expect("accepted");
    let observe = Verb::Observe {
        status: "busy".into(),
        wrote: vec![checkout.join("file")],
    };
    api.call(observe).expect("observed");
    let shared = store
        .shared_at(None, &[checkout.to_owned()])
        .expect("asked");
    assert_eq!(shared.0.len(), 1);
    drop((api, store));
    assert_eq!(tree(checkout), before);
    let status = git(checkout, &["status", "--porcelain", "--ignored"]).expect("git runs");
    assert!(status.status.success() && status.stdout.is_empty());
    assert!(notes(&ground.read()).is_empty());
}
