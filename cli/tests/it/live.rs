//! verify and log -f on a store that eight processes are writing: no false finding, nothing missed, nothing twice.
//!
//! `TENURE_SECONDS=60` writes as long as that; the ordinary run takes a few seconds.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::core::command::Outcome;
use tenure_projection::core::id::{Name, Token};
use tenure_projection::error::Failure;
use tenure_projection::host::System;
use tenure_projection::store::{Answer, OpenOptions, Store};

use crate::terminal::Terminal;

const WRITERS: usize = 8;
const STORE: &str = "LIVE_TEST_STORE";
const NAME: &str = "LIVE_TEST_NAME";

/// Not a test of its own: what a writing process does, until it is killed.
#[test]
#[ignore = "runs as a child of the test here"]
fn writer() {
    let (Ok(dir), Ok(name)) = (std::env::var(STORE), std::env::var(NAME)) else {
        return;
    };
    let dir = Path::new(&dir);
    let options = OpenOptions::new(dir).create(true);
    let host = Arc::new(System::new(&dir.with_file_name("host")));
    let store = Store::open(&options, host).expect("it opens");
    let name = Name::parse(&name).expect("a name");
    let token = granted(&store, &name);
    for round in 0_u64.. {
        let item = Name::parse(&format!("{name}-{}-{round}", std::process::id())).expect("a name");
        let dispatch = Verb::Dispatch {
            item,
            to: name.clone(),
            to_generation: None,
            title: None,
            writes: vec![format!("/w/{name}").into()],
            body: Some(vec![b'x'; (round % 900) as usize]),
        };
        let Answer::Dispatched { dispatch, .. } = run(&store, Call::new(dispatch).under(&token))
        else {
            panic!("a dispatch is answered as one");
        };
        run(&store, Call::new(Verb::Accept { dispatch }).under(&token));
        if round % 5 == 0 {
            // Refused, and told so: a generation that nobody was granted.
            let never: Token = format!("{name}@999999").parse().expect("a token");
            let note = Verb::Note {
                body: "late".into(),
                on: None,
            };
            let refused = store.execute(Call::new(note).by("test").under(&never));
            assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
        }
        let report = Verb::Report {
            dispatch,
            outcome: Outcome::Done,
            body: None,
        };
        run(&store, Call::new(report).under(&token));
    }
}

/// A grant: of a new name, or of one whose holder was killed.
fn granted(store: &Store, name: &Name) -> Token {
    let register = Verb::Register {
        name: name.clone(),
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
    };
    let adopt = Verb::Adopt {
        name: name.clone(),
        bearer: Bearer::itself(),
        labels: Vec::new(),
    };
    let done = store.execute(Call::new(register).by("test"));
    let done = done.or_else(|_| store.execute(Call::new(adopt).by("test").by_force("killed")));
    match done.expect("one of them is done").answer {
        Answer::Granted(grant) => grant.token,
        other => panic!("{other:?}"),
    }
}

fn run(store: &Store, call: Call) -> Answer {
    store.execute(call.by("test")).expect("it is done").answer
}

fn start(user: &Terminal, number: usize) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["live::writer", "--exact", "--ignored", "--test-threads=1"])
        .env(STORE, user.store())
        .env(NAME, format!("writer-{number}"))
        .stdout(Stdio::null())
        .spawn()
        .expect("a child")
}

fn stop(child: &mut Child) {
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

/// Where an event stands: its position, and its place in its frame.
fn place(event: &Value) -> (u64, u64) {
    let number = |key: &str| event[key].as_u64().expect("a number");
    (number("position"), number("index"))
}

/// LOG-8, AUD-1: while eight processes write, of which one is killed now and then, `verify` finds nothing that is not
/// there, and `log -f` tells every event once and in order.
#[test]
fn a_store_that_is_written_to_verifies_and_is_followed() {
    let seconds = std::env::var("TENURE_SECONDS").ok();
    let seconds = seconds.map_or(3, |s| s.parse().expect("a number"));
    let user = Terminal::new();
    user.play("register first");
    let mut writers: Vec<Child> = (0..WRITERS).map(|n| start(&user, n)).collect();
    let follow = user
        .command(&["--json", "log", "-f"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut follow = follow;
    let mut lines = BufReader::new(follow.stdout.take().expect("it is piped")).lines();
    // It reads on as long as it is told something new: until the last event that is appended below.
    let heard = std::thread::spawn(move || {
        let mut heard = Vec::new();
        loop {
            let line = lines.next().expect("there is more").expect("it reads");
            let event: Value = serde_json::from_str(&line).expect("JSON");
            heard.push(place(&event));
            if event["kind"] == "retired" {
                return heard;
            }
        }
    });
    let (began, mut looks, mut killed, mut newest) = (Instant::now(), 0_u64, 0_usize, 0);
    while began.elapsed() < Duration::from_secs(seconds) || looks < 3 {
        let report = user.run("--json verify").ended(0).object();
        let findings = report["findings"].as_array().expect("a list");
        assert!(findings.is_empty(), "{report}");
        assert_eq!(report["verdict"], "clean", "{report}");
        let horizon = report["coverage"]["horizon"].as_u64().expect("a number");
        assert!(horizon >= newest, "{horizon} after {newest}");
        (newest, looks) = (horizon, looks + 1);
        if looks % 4 == 0 {
            let victim = killed % WRITERS;
            stop(&mut writers[victim]);
            writers[victim] = start(&user, victim);
            killed += 1;
        }
    }
    writers.iter_mut().for_each(stop);
    // The only event of its kind, which the follower comes to at last.
    user.play("retire first@1");
    let heard = heard.join().expect("it listened");
    stop(&mut follow);
    let all: Vec<(u64, u64)> = user.list("log").iter().map(place).collect();
    assert_eq!(heard.len(), all.len());
    assert!(heard == all, "another order, or other events");
    user.run("audit").ended(0);
    assert_eq!(user.json("verify")["verdict"], "clean");
    println!(
        "{looks} looks, {killed} writers killed, {} events in {newest} frames followed",
        heard.len()
    );
}
