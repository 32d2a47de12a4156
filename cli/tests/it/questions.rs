//! Questions over history: timeline, why, audit, diff, replay, receipt.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::core::holder::{Bearing, Sighting};
use tenure_projection::core::id::{Name, Time, Token};
use tenure_projection::host::{Host, HostError, ProcessChoice, System, This};
use tenure_projection::store::{OpenOptions, Store};

use crate::terminal::Terminal;

fn story() -> Terminal {
    let user = Terminal::new();
    user.play(
        "register web --engine codex
         register api --engine claude
         dispatch pages --to web --write src
         accept d1 --as web@1
         dispatch login --to api --write src
         accept d2 --as api@1
         observe busy --as api@1 --wrote src/login.rs
         adopt api --force --reason hangs --engine gemini",
    );
    let refused = user.run("report d2 --as api@1 --outcome done --body late");
    assert_eq!(refused.code, 10);
    user.play("report d2 --as api@2 --outcome done\n retire api@2");
    user
}

/// AUD-1: who held what, from where to where and by which events.
#[test]
fn a_timeline_has_every_stretch_once() {
    let user = story();
    let stretches: Vec<_> = user.list("timeline").iter().map(stretch).collect();
    let at = |event: &str, position: u64| json!([event, position]);
    assert_eq!(
        stretches,
        [
            (json!("web"), json!(1), at("registered", 1), Value::Null),
            (
                json!("api"),
                json!(1),
                at("registered", 2),
                at("adopted", 8)
            ),
            (json!("api"), json!(2), at("adopted", 8), at("retired", 11)),
        ]
    );
    let only = user.list("timeline api --since 8 --until 9");
    assert_eq!(only.len(), 1);
    assert_eq!(stretch(&only[0]).1, json!(2));
    let csv = user.run("timeline api --format csv");
    let rows: Vec<_> = csv.out.lines().collect();
    assert_eq!(rows.len(), 3);
    assert!(rows[1].starts_with("api,1,\"claude"), "{}", rows[1]);
    assert_eq!(user.run("timeline nobody").code, 66);
    assert_eq!(user.run("timeline --format yaml").code, 64);
}

fn stretch(who: &Value) -> (Value, Value, Value, Value) {
    let point = |point: &Value| match point {
        Value::Null => Value::Null,
        point => json!([point["event"], point["position"]]),
    };
    (
        who["session"].clone(),
        who["generation"].clone(),
        point(&who["since"]),
        point(&who["until"]),
    )
}

#[test]
fn why_says_what_it_was_judged_on_and_what_it_changed() {
    let user = story();
    let adopt = user.json("why 8");
    assert_eq!(adopt["command"], "adopt");
    assert_eq!(adopt["actor"], "tester");
    assert_eq!(adopt["forced"], "hangs");
    assert_eq!(adopt["judged_on"]["token"], "api@1");
    assert_eq!(adopt["judged_on"]["standing"], "held");
    assert_eq!(adopt["judged_on"]["since"]["position"], 2);
    assert_eq!(adopt["rule"], "api@1 was taken over by force: hangs");
    assert_eq!(adopt["findings"], json!([]));
    let changed = |what: &str, subject: &str| {
        let changes = adopt["changes"].as_array().expect("a list");
        let found = changes
            .iter()
            .find(|c| c["what"] == what && c["subject"] == subject);
        found.map(|c| (c["before"].clone(), c["after"].clone()))
    };
    assert_eq!(changed("generation", "api"), Some((json!("1"), json!("2"))));
    assert_eq!(changed("generation", "d2"), Some((json!("1"), json!("2"))));
    assert_eq!(changed("generation", "web"), None);

    let refused = user.json("why 9");
    assert_eq!(refused["command"], "report");
    assert_eq!(refused["presented"], "api@1");
    let rule = refused["rule"].as_str().expect("a text");
    assert!(
        rule.starts_with("refused as stale-generation: api@1"),
        "{rule}"
    );
    assert_eq!(
        user.json("why 10")["rule"],
        "api@2 was current, since position 8"
    );
    for beyond in ["0", "12"] {
        assert_eq!(user.run(&format!("why {beyond}")).code, 64, "{beyond}");
    }
    let people = user.run("why 8").ended(0);
    assert!(
        people
            .out
            .contains("because api@1 was taken over by force: hangs")
    );
}

/// A disclosure is provable: api was shown web at position 6, before its first write at 7.
#[test]
fn why_proves_that_a_disclosure_came_before_the_first_write() {
    let user = story();
    let write = user.json("why 7");
    assert_eq!(
        write["disclosed"],
        json!([{ "session": "web", "position": 6 }])
    );
    assert_eq!(write["first_write"], 7);
    let accept = user.json("why 6");
    assert_eq!(accept["disclosed"], write["disclosed"]);
    assert_eq!(
        accept["first_write"], 7,
        "found behind the position asked about"
    );
    let alone = user.json("why 4");
    assert_eq!(alone["disclosed"], json!([]));
}

#[test]
fn an_honest_log_is_clean() {
    let user = story();
    let report = user.json("audit");
    assert_eq!(report["verdict"], "clean");
    assert_eq!(
        (&report["judged"], &report["until"]),
        (&json!(11), &json!(11))
    );
    assert_eq!(user.json("audit --to 5")["judged"], 5);
    assert_eq!(user.run("audit --to 12").code, 64);
}

#[test]
fn diff_and_replay_show_the_past() {
    let user = story();
    let changes = user.json("diff 7 8")["changes"].clone();
    assert_eq!(changes, user.json("why 8")["changes"]);
    assert_eq!(user.json("diff 8 8")["changes"], json!([]));
    let retired = user.json("diff 10 11")["changes"].clone();
    let state =
        json!({ "subject": "api", "what": "state", "before": "active", "after": "retired" });
    assert!(
        retired.as_array().expect("a list").contains(&state),
        "{retired}"
    );

    let replayed = |to: &str| user.list(&format!("replay --to {to}"));
    let then = replayed("7");
    assert_eq!(then[1]["token"], "api@1");
    assert_eq!(then[2]["position"], 7);
    let digest = |list: &[Value]| list[list.len() - 1]["state_digest"].clone();
    assert_eq!(digest(&replayed("11")), digest(&user.list("replay")));
    assert_ne!(digest(&then), digest(&replayed("8")));
    let before_everything = replayed("1970-01-01T00:00:00Z");
    assert_eq!(before_everything.len(), 1, "no session was there");
    assert_eq!(user.run("replay --to 12").code, 64);
}

/// A receipt proves later that the grant was in the log.
#[test]
fn a_receipt_can_be_checked_later() {
    let user = story();
    let receipt = user.json("receipt --as api@2");
    let grant = receipt["receipt"].as_str().expect("a text");
    assert!(grant.contains(":8:"), "{grant}");
    for kept in [grant, receipt["head"].as_str().expect("a text")] {
        assert_eq!(user.run(&format!("verify --expected-head {kept}")).code, 0);
    }
    assert_eq!(user.run("receipt --as api@7").code, 10);
    assert_eq!(user.run("receipt --as nobody@1").code, 66);
}

/// NOT-7 and the rules of generations: what a refused write carried is kept, and the new holder can use it.
#[test]
fn what_was_refused_can_be_applied_once() {
    let user = story();
    user.play("register api --engine claude \n dispatch login --to api \n accept d3 --as api@3");
    for body in ["one", "two"] {
        let report = format!("report d3 --as api@1 --outcome done --body {body}");
        assert_eq!(user.run(&report).code, 10);
    }
    assert_eq!(
        user.run("refusals apply r2 --as api@3").code,
        64,
        "one of two"
    );
    let kept = user.json("show r2");
    assert_eq!(kept["count"], 2);
    let stale = user.run("refusals apply r2 --at 15 --as api@2");
    assert_eq!(stale.code, 10, "{}", stale.err);
    let applied = user.json("refusals apply r2 --at 15 --as api@3");
    assert_eq!(
        (&applied["refusal"], &applied["command"]),
        (&json!("r2"), &json!("report"))
    );
    let work = user.json("show d3");
    assert_eq!(
        (&work["state"], &work["report"]),
        (&json!("done"), &json!("one"))
    );
    let again = user.json("refusals apply r2 --at 15 --as api@3");
    assert_eq!(again["repeated"], true);
    assert_eq!(again["position"], applied["position"]);
    assert_eq!(user.run("refusals apply r9 --as api@3").code, 66);
    assert_eq!(user.run("refusals apply r2 --at 1 --as api@3").code, 64);
    assert_eq!(user.run("register api").code, 12);
    let newest = user.list("refusals").len();
    let grant = user.run(&format!("refusals apply r{newest} --as api@3"));
    assert_eq!(grant.code, 64, "a grant is not repeated");
}

/// What a generation brought about: its own acts, the work it gave and what became of it, and whom it granted.
#[test]
fn impact_follows_what_was_given_and_granted() {
    let user = Terminal::new();
    user.play(
        "register lead
         register api
         register web
         dispatch login --to api --as lead@1
         accept d1 --as api@1
         note busy --as api@1
         report d1 --as api@1 --outcome done
         send hello --to web --as lead@1
         ack e2 --as web@1
         send thanks --to lead --as web@1 --re e2
         send other --to lead --as web@1
         adopt lead --as lead@1
         note mine --as lead@2",
    );
    let positions: Vec<_> = user
        .list("impact lead@1")
        .iter()
        .map(|effect| effect["event"]["position"].as_u64().expect("a number"))
        .collect();
    let mut once = positions.clone();
    once.dedup();
    assert_eq!(once, [1, 4, 5, 7, 8, 9, 10, 12, 13], "{positions:?}");
    let because = |position: u64| {
        let list = user.list("impact lead@1");
        let found = list.iter().find(|e| e["event"]["position"] == position);
        found.expect("an effect")["because"].clone()
    };
    assert_eq!(because(1), "it grants lead@1");
    assert_eq!(because(7), "it is about d1");
    assert_eq!(because(10), "it answers e2");
    assert_eq!(because(12), "asked under lead@1");
    assert_eq!(because(13), "made under lead@2");
    assert!(user.list("impact lead@7").is_empty());
    assert_eq!(user.run("impact lead").code, 64);
    assert_eq!(user.run("impact nobody@1").code, 66);
}

#[test]
fn bisect_finds_where_the_state_turned() {
    let user = story();
    let find = |predicate: &str| user.args(&["--json", "bisect", "--", "sh", "-c", predicate]);
    let taken = find("! grep -q '\"token\":\"api@2\"'").ended(0);
    assert_eq!(taken.object()["position"], 8);
    let reported = find("! grep -q '\"state\":\"done\"'").ended(0);
    assert_eq!(reported.object()["position"], 10);
    let by_position = find("test $TENURE_POSITION -lt 7").ended(0);
    assert_eq!(by_position.object()["position"], 7);
    assert_eq!(find("true").code, 64, "it never turns");
    assert_eq!(find("false").code, 64, "it had turned before");
    assert_eq!(find("exit 127").code, 64);
}

/// What changed is told of roles, policies, blocked work and histories too, by `diff`, by `why`, and to what `bisect` runs.
#[test]
fn what_changed_is_told_of_rights_and_histories() {
    let user = Terminal::new();
    user.play(
        "register api --pid none
         role take command --scope ws --as api@1
         policy set refuse --scope /srv
         record one --as api@1
         role clear command --scope ws --reason gone
         dispatch pay --to api
         accept d1 --as api@1
         report d1 --as api@1 --outcome blocked",
    );
    let told = |changes: &Value| -> Vec<(String, String, Value, Value)> {
        let text = |v: &Value| v.as_str().expect("a text").to_owned();
        let list = changes.as_array().expect("a list");
        list.iter()
            .map(|c| {
                let (subject, what) = (text(&c["subject"]), text(&c["what"]));
                (subject, what, c["before"].clone(), c["after"].clone())
            })
            .collect()
    };
    let change = |subject: &str, what: &str, before: Value, after: Value| {
        (subject.to_owned(), what.to_owned(), before, after)
    };
    let why = user.json("why 5");
    assert!(
        told(&why["changes"]).contains(&change(
            "role:command@ws",
            "session",
            json!("api"),
            Value::Null
        )),
        "{why}"
    );
    let all = told(&user.json("diff 1 8")["changes"]);
    for expected in [
        change(
            "role:command@ws",
            "role_generation",
            Value::Null,
            json!("2"),
        ),
        change("policy:/srv", "rule", Value::Null, json!("refuse")),
        change(
            "api",
            "history",
            Value::Null,
            json!("1 records, the newest at 4"),
        ),
        change("d1", "needs", Value::Null, json!("a person")),
    ] {
        assert!(all.contains(&expected), "{expected:?}: {all:?}");
    }
    let people = user.run("diff 2 5").ended(0).out;
    assert!(
        people.contains("role:command@ws\n  role_generation: 1 -> 2\n  session: api -> none"),
        "{people}"
    );
    let predicate = "grep -q '\"role\":\"command\"' && exit 1 || exit 0";
    let found = user
        .args(&["--json", "bisect", "--", "sh", "-c", predicate])
        .ended(0);
    assert_eq!(found.object()["position"], 2);
}

/// This machine with a clock that a test sets.
#[derive(Debug)]
struct Wound {
    machine: System,
    clock: AtomicI64,
}

impl Host for Wound {
    fn now(&self) -> Time {
        Time(self.clock.load(Ordering::Relaxed))
    }

    fn this(&self) -> This {
        self.machine.this()
    }

    fn bearing(&self, choice: ProcessChoice) -> Result<Bearing, HostError> {
        self.machine.bearing(choice)
    }

    fn sight(&self, record: &Bearing) -> Sighting {
        self.machine.sight(record)
    }

    fn remember_boot(&self) -> Result<(), HostError> {
        self.machine.remember_boot()
    }
}

/// AUD-1: a time that the clock of the log passed more than once is at several positions: the answer is for the newest,
/// and the others are said.
#[test]
fn a_time_that_the_clock_passed_twice_is_at_several_positions() {
    /// 2027-01-15T08:00:00Z.
    const MORNING: i64 = 1_800_000_000_000_000;
    let user = Terminal::new();
    let host = Arc::new(Wound {
        machine: System::new(&user.file("host")),
        clock: AtomicI64::new(MORNING),
    });
    let options = OpenOptions::new(user.store()).create(true);
    let store = Store::open(&options, host.clone()).expect("it opens");
    let register = Verb::Register {
        name: Name::parse("api").expect("a name"),
        bearer: Bearer {
            process: ProcessChoice::None,
            ..Bearer::itself()
        },
        labels: Vec::new(),
        checkout: None,
    };
    let token: Token = "api@1".parse().expect("a token");
    let mut call = Call::new(register);
    for seconds in [10, 20, 15, 30] {
        host.clock
            .store(MORNING + seconds * 1_000_000, Ordering::Relaxed);
        store
            .submit(call)
            .and_then(|t| t.wait())
            .expect("it is done");
        let note = Verb::Note {
            body: b"on".to_vec(),
            on: None,
        };
        call = Call::new(note).under(&token);
    }
    drop(store);
    let at = |second: u32| format!("--at 2027-01-15T08:00:{second}Z");
    let asked = user.json(&format!("who api {}", at(17)));
    assert_eq!(
        (&asked["at"]["position"], &asked["also"]),
        (&json!(3), &json!([1])),
        "{asked}"
    );
    let people = user.run(&format!("who api {}", at(17))).ended(0).out;
    assert!(
        people.contains("passed that time more than once: position 3 is taken, 1 would do as well"),
        "{people}"
    );
    let once = user.json(&format!("who api {}", at(25)));
    assert_eq!(
        (&once["at"]["position"], &once["also"]),
        (&json!(3), &json!([])),
        "{once}"
    );
    let replayed = user.list("replay --to 2027-01-15T08:00:17Z");
    let also = replayed.iter().find_map(|o| o.get("also"));
    assert_eq!(also, Some(&json!([1])), "{replayed:?}");
}
