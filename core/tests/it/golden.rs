//! The bytes of a frame's facts are a contract: one golden line for every kind of command and event. An old line is
//! never edited. `WRITE_GOLDEN=1` adds lines for kinds that have none.

use std::collections::BTreeMap;
use std::fmt::Write;

use tenure_core::codec::v1;
use tenure_core::command::{
    Accept, AcceptFinding, Acknowledge, Adopt, Bearer, Cancel, Command, Count, Decline, Deliver,
    Dispatch, Fail, Input, Key, Note, Observe, Origin, Outcome, Presented, Ref, Register, Report,
    Request, Retire, Send, Settle, Settlement,
};
use tenure_core::event::{
    Accepted, Acknowledged, Adopted, AssignmentFailed, Cancelled, Carried, Declined, Delivered,
    Dispatched, Event, Fence, FenceKind, Fenced, FindingAccepted, HomeAccepted, IncarnationRaised,
    Joined, Noted, Observed, RefusalsCounted, Refused, Registered, Reported, Retired, Sent,
};
use tenure_core::generation::Generation;
use tenure_core::holder::{Bearing, BootId, Evidence, HostId, Process, Proof, Source, Verdict};
use tenure_core::id::{DispatchNo, EnvelopeNo, Moment, Position, RefusalNo, SessionNo, Time};
use tenure_core::path::{Anchor, Inode, Repository, Scope};
use tenure_core::seal::Seal;
use tenure_core::text::{Bodies, BodyId, TextId, Texts};

mod checkouts;
mod history;
mod rights;
mod tree;

const GENERATION: Generation = Generation {
    incarnation: 1,
    number: 300,
};

fn text(number: u32) -> TextId {
    TextId(number)
}

fn bearer() -> Bearer {
    Bearer {
        bearing: Bearing {
            host: HostId([0xaa; 16]),
            boot: Some(BootId([0xbb; 16])),
            process: Some(Process {
                pid: 4321,
                start: Some(123_456),
                pidns: Some(4_026_531_836),
                timens: None,
                pidfs: Some(99),
                ancestor: true,
                source: Source::Declared,
            }),
            uid: 1000,
            recorded: Time(1_800_000_000_000_000),
        },
        actor: text(1),
        host_name: text(2),
        engine: Some(text(3)),
    }
}

fn scope() -> Scope<TextId> {
    let inode = Inode {
        device: 2049,
        inode: 131_072,
        birth: Some(1_700_000_000_000_000_000),
    };
    Scope {
        path: text(4),
        host: HostId([0xaa; 16]),
        boot: None,
        anchors: vec![Anchor { inode, depth: 3 }],
        repository: Some(Repository {
            common: text(5),
            inode: Some(inode),
            top: text(6),
        }),
    }
}

fn commands() -> Vec<Command> {
    [
        commands_1(),
        commands_2(),
        history::commands(),
        rights::commands(),
        tree::commands(),
        checkouts::commands(),
    ]
    .concat()
}

fn commands_1() -> Vec<Command> {
    let dispatch = DispatchNo(7);
    vec![
        Register {
            name: text(0),
            bearer: bearer(),
            labels: vec![(text(7), text(8))],
            checkout: Some(scope()),
        }
        .into(),
        Adopt {
            name: text(0),
            bearer: bearer(),
            labels: vec![],
        }
        .into(),
        Retire {
            name: text(0),
            if_idle: true,
            reason: Some(text(9)),
        }
        .into(),
        Dispatch {
            item: text(0),
            to: text(1),
            to_generation: Some(GENERATION),
            title: None,
            writes: vec![scope()],
            body: Some(BodyId(0)),
        }
        .into(),
        Accept { dispatch }.into(),
        Decline {
            dispatch,
            reason: text(9),
        }
        .into(),
        Report {
            dispatch,
            outcome: Outcome::Blocked,
            body: None,
        }
        .into(),
        Cancel {
            dispatch,
            reason: text(9),
        }
        .into(),
    ]
}

fn commands_2() -> Vec<Command> {
    let dispatch = DispatchNo(7);
    let envelope = EnvelopeNo(300);
    vec![
        Fail {
            dispatch,
            reason: text(9),
        }
        .into(),
        Note {
            body: BodyId(0),
            on: Some(Ref::Dispatch(dispatch)),
        }
        .into(),
        Observe {
            status: text(9),
            wrote: vec![scope()],
        }
        .into(),
        Send {
            to: text(0),
            body: BodyId(0),
            re: Some(Ref::Envelope(envelope)),
        }
        .into(),
        Deliver { envelope }.into(),
        Acknowledge { envelope }.into(),
        Count {
            refusal: RefusalNo(2),
            count: 1000,
        }
        .into(),
        Settle {
            how: Settlement::Restored,
            incarnation: 70_000,
            reason: text(9),
        }
        .into(),
        AcceptFinding {
            position: Position(12),
            reason: text(9),
        }
        .into(),
    ]
}

fn events() -> Vec<Event> {
    [
        events_1(),
        events_2(),
        events_3(),
        history::events(),
        rights::events(),
        tree::events(),
        checkouts::events(),
    ]
    .concat()
}

fn events_1() -> Vec<Event> {
    let session = SessionNo(3);
    let generation = GENERATION;
    let dispatch = DispatchNo(7);
    let envelope = EnvelopeNo(300);
    vec![
        Registered {
            session,
            name: text(0),
            generation,
            bearer: bearer(),
            labels: vec![(text(7), text(8))],
            checkout: Some(scope()),
        }
        .into(),
        Adopted {
            session,
            generation,
            bearer: bearer(),
            labels: vec![],
            forced: Some(text(9)),
            former: true,
        }
        .into(),
        Carried {
            session,
            generation,
        }
        .into(),
        Fenced {
            session,
            below: generation,
            first_review: envelope,
        }
        .into(),
        Retired {
            session,
            generation,
            reason: None,
            forced: true,
        }
        .into(),
        Dispatched {
            dispatch,
            session,
            generation,
            from: Some(SessionNo(1)),
            item: text(0),
            title: Some(text(1)),
            writes: vec![scope()],
            envelope,
            body: Some(BodyId(0)),
        }
        .into(),
        Accepted {
            dispatch,
            session,
            generation,
        }
        .into(),
    ]
}

fn events_2() -> Vec<Event> {
    let session = SessionNo(3);
    let dispatch = DispatchNo(7);
    let envelope = EnvelopeNo(300);
    vec![
        Joined {
            dispatch,
            first_notice: envelope,
        }
        .into(),
        Declined {
            dispatch,
            reason: text(9),
        }
        .into(),
        Reported {
            dispatch,
            outcome: Outcome::Done,
            body: Some(BodyId(0)),
        }
        .into(),
        Cancelled {
            dispatch,
            reason: text(9),
            forced: false,
        }
        .into(),
        AssignmentFailed {
            dispatch,
            reason: text(9),
            notice: envelope,
            forced: true,
        }
        .into(),
        Noted {
            session,
            body: BodyId(0),
            on: None,
        }
        .into(),
        Observed {
            session,
            status: text(9),
            wrote: vec![scope()],
        }
        .into(),
    ]
}

fn events_3() -> Vec<Event> {
    let session = SessionNo(3);
    let generation = GENERATION;
    let dispatch = DispatchNo(7);
    let envelope = EnvelopeNo(300);
    vec![
        Sent {
            envelope,
            session,
            generation,
            from: None,
            re: Some(Ref::Dispatch(dispatch)),
            body: BodyId(0),
        }
        .into(),
        Delivered { envelope }.into(),
        Acknowledged { envelope }.into(),
        Refused {
            refusal: RefusalNo(2),
            code: 1,
            session: Some(session),
            presented: Some(generation),
            command: 7,
            current: None,
            subject: text(9),
            body: Some([0xcc; 16]),
            body_bytes: 300,
        }
        .into(),
        RefusalsCounted {
            refusal: RefusalNo(2),
            count: 1000,
        }
        .into(),
        IncarnationRaised {
            incarnation: 70_000,
            how: Settlement::Copied,
            reason: text(9),
        }
        .into(),
        HomeAccepted { reason: text(9) }.into(),
        FindingAccepted {
            position: Position(12),
            reason: text(9),
        }
        .into(),
    ]
}

/// A request that carries `command`, with one text and one body.
fn request(command: Command) -> Request {
    let (mut texts, mut bodies) = (Texts::default(), Bodies::default());
    texts.add(b"api");
    bodies.add(b"body".to_vec());
    Request {
        input: Input {
            command,
            origin: Origin {
                actor: text(0),
                uid: 1000,
                pid: 77,
                host: HostId([0xaa; 16]),
            },
            presented: Some(Presented {
                name: text(0),
                generation: GENERATION,
                secret_matched: None,
            }),
            force: None,
            evidence: Some(Evidence {
                session: SessionNo(3),
                generation: GENERATION,
                verdict: Verdict::Dead,
                proofs: vec![Proof::NoSuchProcess],
            }),
            key: Some(Key {
                digest: [0xdd; 16],
                payload: [0xee; 16],
                taken: None,
            }),
            require: None,
            seal: None,
        },
        texts,
        bodies,
        time: Time(1_800_000_000_000_000),
    }
}

const FENCE: Fence = Fence {
    kind: FenceKind::Write,
    session: Some(SessionNo(3)),
    named: Some(GENERATION),
    granted: None,
    tree: None,
};

fn encoded(command: Command, events: &[Event]) -> v1::Parts {
    fenced(&FENCE, command, events)
}

fn fenced(fence: &Fence, command: Command, events: &[Event]) -> v1::Parts {
    v1::encode(fence, &request(command), events, || [0x11; 16]).expect("it encodes")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string grows");
        text
    })
}

/// Every line there should be: name and facts.
fn lines() -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for command in commands() {
        let name = format!("command-{:05}-{}", command.kind(), command.word());
        lines.insert(name, hex(&encoded(command, &[]).facts));
    }
    let mut required = request(
        Accept {
            dispatch: DispatchNo(7),
        }
        .into(),
    );
    required.input.require = Some(rights::requirement());
    let parts = v1::encode(&FENCE, &required, &[], || [0x11; 16]).expect("it encodes");
    lines.insert("input-00002-required".to_owned(), hex(&parts.facts));
    let asked = v1::decode_request(&parts.facts, &parts.texts, &parts.bodies, required.time);
    assert_eq!(asked, Ok(required.clone()), "a requirement comes back");
    assert_eq!(v1::decode_key(&parts.facts), Ok(required.input.key));
    let sealed = Seal([0xcc; 16]);
    for (name, require) in [
        ("input-00003-sealed", None),
        ("input-00003-sealed-required", Some(rights::requirement())),
    ] {
        let mut asked = request(commands().remove(0));
        (asked.input.require, asked.input.seal) = (require, Some(sealed));
        let parts = v1::encode(&FENCE, &asked, &[], || [0x11; 16]).expect("it encodes");
        lines.insert(name.to_owned(), hex(&parts.facts));
        let read = v1::decode_request(&parts.facts, &parts.texts, &parts.bodies, asked.time);
        assert_eq!(read, Ok(asked.clone()), "a seal comes back");
        assert_eq!(v1::decode_key(&parts.facts), Ok(asked.input.key));
    }
    for event in events() {
        let name = format!("event-{:05}-{}", event.kind(), event.word());
        let command = Deliver {
            envelope: EnvelopeNo(1),
        }
        .into();
        lines.insert(name, hex(&encoded(command, &[event]).facts));
    }
    for (name, fence) in tree::fences() {
        let command = commands().remove(0);
        lines.insert(name.to_owned(), hex(&fenced(&fence, command, &[]).facts));
    }
    lines
}

#[test]
fn every_kind_of_command_and_event_has_its_golden_bytes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/facts-v1.txt");
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    let mut known: BTreeMap<String, String> = golden
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, bytes)| (name.to_owned(), bytes.to_owned()))
        .collect();
    let lines = lines();
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        for (name, bytes) in &lines {
            known.entry(name.clone()).or_insert_with(|| bytes.clone());
        }
        let text: String = known
            .iter()
            .map(|(name, bytes)| format!("{name} {bytes}\n"))
            .collect();
        std::fs::write(path, text).expect("the golden file is written");
    }
    assert_eq!(known, lines);
    assert_eq!(
        commands().len(),
        Command::KINDS.len(),
        "every command kind has a sample"
    );
    assert_eq!(
        events().len(),
        Event::KINDS.len(),
        "every event kind has a sample"
    );
}

#[test]
fn what_was_encoded_decodes_to_the_same() {
    let at = Moment {
        position: Position(9),
        time: Time(1_800_000_000_000_000),
    };
    for command in commands() {
        let parts = encoded(command.clone(), &events());
        let entry = v1::decode_entry(&parts.facts, &parts.texts, at, 1).expect("it decodes");
        assert_eq!((entry.fence, entry.unknown), (FENCE, None));
        assert_eq!(entry.events, events());
        let asked = v1::decode_request(&parts.facts, &parts.texts, &parts.bodies, at.time);
        assert_eq!(asked.expect("it decodes"), request(command));
    }
}

/// A redacted or exchanged text or body does not pass for the one that the facts name.
#[test]
fn a_text_or_body_that_the_facts_do_not_name_is_found() {
    let parts = encoded(
        Deliver {
            envelope: EnvelopeNo(1),
        }
        .into(),
        &[],
    );
    for at in 0..parts.texts.len() {
        let mut texts = parts.texts.clone();
        texts[at] ^= 1;
        let asked = v1::decode_request(&parts.facts, &texts, &parts.bodies, Time(0));
        assert_eq!(asked, Err(v1::Fault::Digest("texts", 0)));
    }
    for at in 0..parts.bodies.len() {
        let mut bodies = parts.bodies.clone();
        bodies[at] ^= 1;
        let asked = v1::decode_request(&parts.facts, &parts.texts, &bodies, Time(0));
        assert_eq!(asked, Err(v1::Fault::Digest("bodies", 0)));
    }
}

/// Every prefix and every changed byte of facts decodes to something or is refused; nothing panics.
#[test]
fn damaged_facts_are_refused_or_decode_to_something() {
    let parts = encoded(commands().remove(0), &events());
    let at = Moment {
        position: Position(9),
        time: Time(0),
    };
    for cut in 0..parts.facts.len() {
        let decoded = v1::decode_entry(&parts.facts[..cut], &parts.texts, at, 1);
        assert!(
            decoded.is_err(),
            "a prefix of {cut} bytes passes for the whole"
        );
    }
    for byte in 0..parts.facts.len() {
        for bit in 0..8 {
            let mut facts = parts.facts.clone();
            facts[byte] ^= 1 << bit;
            let _ = v1::decode_entry(&facts, &parts.texts, at, 1);
            let _ = v1::decode_request(&facts, &parts.texts, &parts.bodies, at.time);
            let _ = v1::decode_key(&facts);
        }
    }
}

/// `docs/facts.md` lists every kind under its number.
#[test]
fn the_page_of_facts_lists_every_kind() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/facts.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    for (number, word) in Command::KINDS {
        assert!(
            page.contains(&format!("\n| {number} | {word} |")),
            "command {number} {word}"
        );
    }
    for (number, word) in Event::KINDS {
        assert!(
            page.contains(&format!("| {number} | {word} |\n")),
            "event {number} {word}"
        );
    }
}
