//! The forger: plays each case without its guard, and leaves the log.

use tenure_core::codec::v1;
use tenure_core::command::Request;
use tenure_core::decide::{decide, forge};
use tenure_core::state::State;
use tenure_log::format::{Predecessor, RulesVersion, SegmentHeader, WriterVersion};
use tenure_log::frame::{Draft, Place, encode_into};
use tenure_log::position::{Chain, Epoch, Incarnation, Position as At, Salt, StoreId};
use tenure_projection::error::Failure;
use tenure_projection::store::RULES;

use super::*;
use crate::audit::newest_request;
use crate::scene::line::{Words, call};

/// Leaves the logs that are missing, and says what every guard's absence came to.
#[test]
fn logs_are_forged() {
    let guards = Guards::read();
    std::fs::create_dir_all(folder()).expect("it is made");
    for case in table().0 {
        let whole = case.scene();
        let refusal = whole.refusal(&case.line);
        assert_eq!(refusal.code, case.code, "{}", case.name);
        let guard = forge::last().expect("a guard refused");
        let (file, line) = &guards.places[&case.guard];
        assert!(
            guard.file.ends_with(&**file) && guard.line == *line,
            "{} was refused at {}:{}",
            case.name,
            guard.file,
            guard.line
        );
        let scene = case.scene();
        let frames = scene.frames();
        let asked = call(&Words::parse(&case.line));
        let outcome = forge::without(guard, || scene.store.execute(asked));
        match outcome {
            Ok(_) => assert_eq!(case.other, None, "{}", case.name),
            Err(Failure::Refused(refusal)) => {
                assert_eq!(Some(refusal.code), case.other, "{}", case.name);
            }
            // The second fence stopped it before it was written: a store that has neither writes this.
            Err(Failure::Failed(_)) => {
                let (state, request) = (scene.state(), newest_request(&whole));
                let decided = forge::without(guard, || forged(&state, &request));
                scene.forge_parts(decided.facts, decided.texts, decided.bodies);
            }
            Err(other) => panic!("{}: {other}", case.name),
        }
        assert_eq!(scene.frames(), frames + 1, "{} left no frame", case.name);
        if !case.file().exists() {
            std::fs::write(case.file(), segment(&scene)).expect("it is written");
        }
    }
}

fn forged(state: &State, request: &Request) -> v1::Parts {
    let decision = decide(state, request).expect("its guard is left out");
    v1::encode(&decision.fence, request, &decision.events, || [0; 16]).expect("it fits")
}

/// The scene's log as the one segment of a store.
fn segment(scene: &Scene) -> Vec<u8> {
    let (store, salt) = (StoreId([0xf0; 16]), Salt([0x6e; 16]));
    let header = SegmentHeader {
        format: 1,
        writer: WriterVersion(1_000),
        rules: RulesVersion(RULES.0),
        store,
        salt,
        incarnation: Incarnation(1),
        epoch: Epoch(1),
        first: At(1),
        chain: Chain::born(store, salt),
        predecessor: None::<Predecessor>,
    };
    let mut bytes = header.encode().to_vec();
    let mut head = header.start();
    for frame in scene.all() {
        let place = Place::in_segment(salt, header.first, header.epoch).at(bytes.len() as u64);
        let draft = Draft {
            time: frame.header.time,
            parts: frame.parts.clone(),
        };
        let durable = head.position;
        let written = encode_into(
            &mut bytes,
            &place,
            head,
            durable,
            header.incarnation,
            &draft,
        );
        head = written.expect("it fits");
    }
    bytes
}
