//! Sealed stores: a token counts with its secret (`docs/sealed.md`).

use tenure_core::apply::apply;
use tenure_core::event::Event;
use tenure_core::id::Name;
use tenure_core::refusal::{Code, Relation};
use tenure_core::state::State;
use tenure_projection::audit::Audit;
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::error::{Error, Failure};
use tenure_projection::store::Answer;

use crate::scene::Scene;

const A: &str = "00112233445566778899aabbccddeeff";
const B: &str = "ffeeddccbbaa99887766554433221100";

/// `api@1` is granted with secret A and has accepted d1.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.play(&format!(
        "seal \n register api secret={A} pid=500
         dispatch one api \n dispatch two api \n send api hello \n accept d1 as=api@1~{A}"
    ));
    scene
}

/// Every write under a token needs its secret: without one, or with another, the token was never granted. Nothing but the
/// record of refusals changes.
#[test]
fn a_token_counts_with_its_secret_alone() {
    for line in [
        "accept d2",
        "decline d2",
        "report d1 done body=B",
        "note hello",
        "observe busy",
        "send api more",
        "deliver e3",
        "ack e3",
        "record a",
        "retire",
        "rename api other",
        "release api",
        "adopt api",
        "register two parent",
        "role take command here",
        "handoff d1 api",
    ] {
        for secret in ["", &format!("~{B}")] {
            let scene = scene();
            let line = match line {
                "retire" => format!("retire api@1{secret}"),
                "register two parent" => format!("register two parent=api@1{secret}"),
                line => format!("{line} as=api@1{secret}"),
            };
            let before = scene.session("api");
            let refusal = scene.refusal(&line);
            assert_eq!(refusal.code, Code::NeverIssued, "{line}");
            assert_eq!(refusal.relation, Some(Relation::NeverIssued), "{line}");
            assert!(!format!("{refusal:?}").contains(B), "{line}");
            let mut after = scene.session("api");
            after.last_seen = before.last_seen;
            assert_eq!(after, before, "{line}");
        }
    }
}

/// Stale and retired are told before the secret is asked for: whoever had the session learns what happened to it, and
/// nobody learns whether an old secret was right.
#[test]
fn a_stale_token_is_stale_whatever_its_secret() {
    let scene = scene();
    scene.play(&format!("adopt api as=api@1~{A} secret={B}"));
    for secret in ["".to_owned(), format!("~{A}"), format!("~{B}")] {
        scene.check(&format!(
            "note late as=api@1{secret} => stale-generation: .."
        ));
    }
    scene.check(&format!(
        "note early as=api@3~{B} => never-issued: ..
         note mine as=api@2~{B} => done
         note old as=api@2~{A} => never-issued: api@2 was never granted with that secret
         retire api@2~{B} => done
         retire api@2~{B} => done again
         retire api@2 => retired: ..
         note late as=api@2~{B} => retired: .."
    ));
}

/// Every grant has a secret of its own: a takeover, a register after a retire, a child, a branch. Where none is chosen one
/// is drawn, and no two are alike.
#[test]
fn every_grant_is_made_with_a_new_secret() {
    let scene = Scene::new();
    scene.play("seal");
    let mut secrets = Vec::new();
    let mut granted = |line: &str| {
        let done = scene.done(line);
        let (Answer::Granted(grant) | Answer::Branched { grant, .. }) = done.answer else {
            panic!("{line} granted nothing");
        };
        let token = grant.token.reveal();
        secrets.push(grant.token.secret.expect("it has a secret").reveal());
        token
    };
    let first = granted("register api pid=500");
    let child = granted(&format!("register one parent={first}"));
    granted(&format!("adopt one as={child}"));
    granted("register web pid=501");
    granted("adopt web force=because pid=502");
    scene.play(&format!("record a as={first}"));
    let branch = granted("branch api copy pid=503");
    scene.play(&format!("retire {branch}"));
    let again = granted("register copy pid=504");
    scene.play(&format!("note mine as={again}"));
    let all = secrets.len();
    secrets.sort();
    secrets.dedup();
    assert_eq!((secrets.len(), all), (7, 7));
    let seals = |e: &Event| matches!(e, Event::GrantSealed(_));
    let entries = scene.entries();
    assert_eq!(
        entries
            .iter()
            .flat_map(|e| &e.events)
            .filter(|e| seals(e))
            .count(),
        7
    );
}

/// A repeat under a key carries the secret that its caller chose, and gets the first grant again; with another secret it
/// is another call.
#[test]
fn a_repeated_grant_carries_its_secret() {
    let scene = Scene::new();
    scene.play("seal");
    let line = format!("register api pid=500 secret={A} key=k");
    let first = scene.done(&line);
    let again = scene.done(&line);
    assert!(again.repeated && !first.repeated);
    assert_eq!(again.answer, first.answer);
    let Answer::Granted(grant) = again.answer else {
        panic!("it is a grant");
    };
    assert_eq!(grant.token.reveal(), format!("api@1~{A}"));
    let other = scene.refusal(&format!("register api pid=500 secret={B} key=k"));
    assert_eq!(other.code, Code::KeyReused);
}

/// A store is sealed by its first event or never; a store that is not sealed has no secrets, and no token with one counts
/// there.
#[test]
fn a_store_is_sealed_by_its_first_event_or_never() {
    let scene = Scene::new();
    scene.check("seal => done \n seal => done again");
    assert!(scene.state().sealed);
    let scene = Scene::new();
    scene.check(&format!(
        "register api pid=500 => api@1
         seal => position-moved: ..
         note hello as=api@1~{A} => never-issued: api@1 was never granted with a secret: this store is not sealed
         note hello as=api@1 => done"
    ));
    assert!(!scene.state().sealed);
    let verb = Verb::Register {
        name: Name::parse("web").expect("a name"),
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
    };
    let call = Call::new(verb).sealed_with(A.parse().expect("a secret"));
    let failed = scene.store.execute(call);
    assert!(
        matches!(failed, Err(Failure::Failed(Error::NotSealed))),
        "{failed:?}"
    );
}

/// An epoch is a number that anybody can read: in a sealed store it gives no right.
#[test]
fn an_epoch_gives_no_right_in_a_sealed_store() {
    let scene = scene();
    scene.play(&format!("register one parent=api@1~{A} secret={B}"));
    scene.check(&format!(
        "claim api force=stuck pid=600 => missing-token: ..
         release api epoch=1 => missing-token: ..
         recover one text epoch=1 => missing-token: ..
         adopt one epoch=1 => missing-token: ..
         rollback api epoch=1 => missing-token: ..
         adopt one tree force=stuck pid=600 secret={A} => one@2 former@1
         note mine as=one@2~{A} => done"
    ));
}

/// What the log has is judged again by an audit, with what was known of each secret; the state is the same after a
/// replay, and no frame has a secret in it.
#[test]
fn the_log_has_digests_and_nothing_else() {
    let scene = scene();
    scene.refusal(&format!("note hello as=api@1~{B}"));
    scene.play(&format!("adopt api force=because secret={B} pid=501"));
    let report = Audit::of(&scene.store, None, |_| {}).expect("it reads");
    assert!(report.is_clean(), "{report:?}");
    let mut state = State::new();
    for entry in scene.entries() {
        apply(&mut state, &entry);
    }
    assert!(state == scene.state() && state.sealed);
    let raw = |text: &str| -> Vec<u8> {
        let pairs = text.as_bytes().chunks(2);
        let digit = |c: u8| (c as char).to_digit(16).expect("hexadecimal") as u8;
        pairs.map(|p| digit(p[0]) << 4 | digit(p[1])).collect()
    };
    for frame in scene.all() {
        let parts = [&frame.parts.facts, &frame.parts.texts, &frame.parts.bodies].map(|p| &p[..]);
        let bytes = parts.concat();
        for secret in [A, B] {
            for needle in [secret.as_bytes().to_vec(), raw(secret)] {
                let found = bytes.windows(needle.len()).any(|w| w == needle);
                assert!(
                    !found,
                    "a secret stands in position {}",
                    frame.header.position
                );
            }
        }
    }
}

/// F2: a grant without its seal in a sealed store is honoured by nobody, and neither is a seal in any other store.
#[test]
fn a_grant_in_a_sealed_store_that_is_not_sealed_does_not_stand() {
    let scene = scene();
    let mut unsealed = scene.entries();
    for entry in &mut unsealed {
        entry.events.retain(|e| !matches!(e, Event::GrantSealed(_)));
    }
    let mut state = State::new();
    for entry in &unsealed {
        apply(&mut state, entry);
    }
    assert!(state.find(b"api").is_none() && !state.dishonoured.is_empty());
    let moved = scene.entries();
    let grant = moved.iter().find(|e| e.events.len() > 1).expect("a grant");
    let mut state = State::new();
    let mut early = grant.clone();
    early.at.position.0 = 1;
    apply(&mut state, &early);
    assert!(
        state.find(b"api").is_none(),
        "a seal in a store that is not sealed"
    );
}

/// TRE-9: a branch that claims the tree it stands in is a grant like another: with its seal it stands, and its token counts.
#[test]
fn a_branch_that_claims_its_tree_stands_with_its_seal() {
    let scene = Scene::new();
    scene.play(&format!(
        "seal \n register main secret={A} pid=500
         register one parent=main@1~{A} secret={A}
         release main as=main@1~{A}
         branch one near in-tree pid=600 secret={B}
         note text as=near@1~{B}"
    ));
    let state = scene.state();
    assert!(state.findings.is_empty(), "{:?}", state.findings);
    assert!(!scene.session("near").retired);
}
