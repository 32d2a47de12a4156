//! role, handoff, policy, `check --write`, and blocked work under "needs a person".

use std::process::Stdio;

use serde_json::json;

use crate::terminal::Terminal;

fn two() -> Terminal {
    let user = Terminal::new();
    user.play("register api\nregister web");
    user
}

/// ROL-1, ROL-2, ROL-4: take, be refused, require, clear, be stale; with what the page of JSON promises.
#[test]
fn a_role_is_taken_required_and_cleared() {
    let user = two();
    let role = user.json("role take command --scope ./src --as api@1");
    assert_eq!(role["schema"], "tenure.role.v1");
    assert_eq!(
        (
            &role["role"],
            &role["session"],
            &role["generation"],
            &role["role_generation"]
        ),
        (&json!("command"), &json!("api"), &json!(1), &json!(1))
    );
    let scope = role["scope"].as_str().expect("a path");
    assert!(scope.starts_with('/') && scope.ends_with("/src"), "{scope}");
    assert!(role["receipt"].is_string() && role["holder"]["verdict"] == "alive");
    let held = user
        .run("--json role take command --scope src/../src --as web@1")
        .ended(12);
    let held = held.object();
    assert_eq!(
        (&held["code"], &held["holder"]["actor"]),
        (&json!("role-held"), &json!("tester"))
    );
    assert_eq!(
        user.json("role take command --scope ./src --as api@1")["repeated"],
        true
    );
    user.run("note x --as web@1 --require command@./src")
        .ended(12);
    user.run("note x --as api@1 --require command@./src")
        .ended(0);
    user.run("note x --as api@1 --require command").ended(64);
    user.run("role check command --scope ./src --as api@1 --role-generation 2")
        .ended(10);
    user.run("role clear command --scope ./src").ended(64);
    user.run("role clear command --scope ./src --reason stuck")
        .ended(0);
    let stale = user
        .run("--json note x --as api@1 --require command@./src")
        .ended(10);
    assert_eq!(stale.object()["code"], "role-stale");
    let inbox = user.list("inbox api");
    assert!(
        inbox[0]["body"]
            .as_str()
            .is_some_and(|b| b.contains("stuck") && b.contains("tester"))
    );
    assert_eq!(
        user.run("who role:command@./src")
            .ended(1)
            .out
            .lines()
            .count(),
        1
    );
    let then = user.json("who role:command@./src --at 3");
    assert_eq!(
        (&then["session"], &then["since"]["event"]),
        (&json!("api"), &json!("role-taken"))
    );
    assert_eq!(user.list("role list").len(), 1);
    user.run("role release command --scope ./src --as api@1")
        .ended(0);
}

/// ROL-9, A08: a wait is bounded, and whoever waits in vain has taken nothing.
#[test]
fn a_wait_in_vain_is_role_held() {
    let user = two();
    user.play("role take command --scope w --as api@1");
    let vain = user
        .run("--json role take command --scope w --as web@1 --wait 1s")
        .ended(12);
    assert_eq!(vain.object()["code"], "role-held");
    assert_eq!(user.list("role list")[0]["session"], "api");
    user.run("role take command --scope w --as web@1 --wait soon")
        .ended(64);
}

/// ROL-5: a command holds the role while it lives; its exit code comes back, the role is given back, and a
/// command that is killed leaves a role that the next one takes by proof.
#[test]
fn a_command_holds_a_role_while_it_lives() {
    let user = two();
    let run = |token: &str, script: &str| {
        let before = [
            "role", "run", "command", "--scope", "w", "--as", token, "--",
        ];
        user.args(&[&before[..], &["sh", "-c", script]].concat())
    };
    let ran = run(
        "api@1",
        "cat $TENURE_TOKEN_FILE; echo $TENURE_SESSION; exit 7",
    )
    .ended(7);
    assert_eq!(ran.out, "api@1\napi\n");
    let role = &user.list("role list")[0];
    assert_eq!(
        (&role["session"], &role["role_generation"]),
        (&json!(null), &json!(1))
    );
    // Killed with everything that could have given the role back.
    let mut child = user
        .command(&[
            "role", "run", "command", "--scope", "w", "--as", "api@1", "--", "sleep", "600",
        ])
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    let holder = loop {
        let role = user.list("role list").remove(0);
        if role["role_generation"] == 2 {
            break role["holder"]["pid"].as_u64().expect("a pid");
        }
    };
    run("web@1", "exit 0").ended(12);
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    let pid = i32::try_from(holder)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.expect("a pid"), rustix::process::Signal::KILL)
        .expect("it is killed");
    // Nobody waits for it any more but the first process: until that has, it may be a zombie, which is there.
    let begin = std::time::Instant::now();
    while user.run("role take command --scope w --as web@1").code != 0 {
        assert!(begin.elapsed().as_secs() < 60, "it does not end");
    }
    let lapsed = user.list("log --kind role-lapsed");
    assert_eq!(lapsed.len(), 1);
    assert!(
        lapsed[0]["process_evidence"]
            .as_str()
            .is_some_and(|e| e.starts_with("dead"))
    );
}

/// DIS-15: work goes over to another session, which finds it at its next look.
#[test]
fn handed_over_work_is_found_at_the_next_look() {
    let user = two();
    user.play("dispatch login --to api --body please\naccept d1 --as api@1");
    user.run("handoff d1 --as web@1 --to api").ended(11);
    user.run("handoff d1 --as api@1 --to we").ended(66);
    let done = user.json("handoff d1 --as api@1 --to web");
    assert_eq!(
        (&done["session"], &done["repeated"]),
        (&json!("web"), &json!(false))
    );
    assert_eq!(user.json("show d1")["session"], "web");
    let who = user.json("who item:login");
    assert_eq!(
        (&who["session"], &who["since"]["event"]),
        (&json!("web"), &json!("handed-over"))
    );
    assert_eq!(user.list("inbox web --pending")[0]["body"], "please");
    user.run("report d1 --as api@1 --outcome done").ended(11);
    user.run("report d1 --as web@1 --outcome done").ended(0);
}

/// DSC-11, DSC-10, DSC-12: the question that hooks ask, under each policy; what cannot be looked at stops nobody.
#[test]
fn check_write_answers_by_policy() {
    let user = two();
    user.play("dispatch style --to web --write src\naccept d1 --as web@1");
    let ask = "check api@1 --write src/a";
    let answer = user.json(ask);
    assert_eq!(
        (&answer["schema"], &answer["current"]),
        (&json!("tenure.check.v1"), &json!(true))
    );
    assert_eq!(answer["shared_checkout"][0]["session"], "web");
    assert!(answer["instruction"].is_string());
    let shown = &user.json("show api")["shown"][0];
    assert_eq!(
        (&shown["session"], &shown["at"]["position"]),
        (&json!("web"), &json!(5))
    );
    assert_eq!(user.list("log --kind shown").len(), 1);
    assert_eq!(
        user.json("check api@1 --write docs")["shared_checkout"],
        json!([])
    );
    user.play("policy set warn-once --scope .\nregister more --pid none");
    let warned = user.run("--json check more@1 --write src/a").ended(12);
    assert_eq!(warned.object()["code"], "held");
    user.run("check more@1 --write src/a").ended(0);
    user.play("policy set refuse --scope src");
    let refused = user
        .run("--json check api@1 --write src/a")
        .ended(12)
        .object();
    assert_eq!(refused["code"], "held");
    assert!(refused["id"].is_string(), "it is recorded: {refused}");
    let rules: Vec<_> = user
        .list("policy list")
        .iter()
        .map(|p| p["rule"].clone())
        .collect();
    assert_eq!(rules, [json!("warn-once"), json!("refuse")]);
    user.run("policy set never --scope src").ended(64);
    // A stale token is answered as ever.
    let stale = user.run("--json check api@9 --write src/a").ended(10);
    assert_eq!(stale.object()["current"], false);
}

/// Blocked work stands under "needs a person" with the command to type, until somebody types it or gives the item
/// again.
#[test]
fn blocked_work_needs_a_person() {
    let user = two();
    user.play(
        "dispatch login --to api\naccept d1 --as api@1
         report d1 --as api@1 --outcome blocked --body no-key",
    );
    let need = &user.json("status")["needs"][0];
    assert!(
        need["what"]
            .as_str()
            .is_some_and(|w| w.contains("d1 (login) of api is blocked: no-key"))
    );
    assert_eq!(need["command"], "tenure ack d1 --reason TEXT");
    let people = user.run("status").ended(0).out;
    assert!(
        people.contains("needs a person") && people.contains("tenure ack d1"),
        "{people}"
    );
    user.run("ack d1 --reason sent-the-key").ended(0);
    assert_eq!(user.json("status")["needs"], json!([]));
    assert_eq!(
        user.list("log --kind attended")[0]["reason"],
        "sent-the-key"
    );
    user.run("ack e1 --reason x --as api@1").ended(64);
    user.play(
        "dispatch login --to api\naccept d2 --as api@1\nreport d2 --as api@1 --outcome blocked",
    );
    assert_eq!(
        user.json("status")["needs"].as_array().map(Vec::len),
        Some(1)
    );
    user.play("dispatch login --to web");
    assert_eq!(user.json("status")["needs"], json!([]));
}
