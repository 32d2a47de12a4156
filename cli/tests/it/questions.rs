//! Questions over history: timeline, why, audit, diff, replay, receipt.

use serde_json::{Value, json};

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
