//! Trees in the words of the program: `register --parent`, `adopt`, `adopt --tree`, `release`, `tree`, `who tree:`.

mod branches;

use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tenure_projection::core::command::Settlement;
use tenure_projection::host::System;
use tenure_projection::store::{OpenOptions, settle};

use crate::histories::{rounds, waiting};
use crate::terminal::{Ran, Terminal};

/// A process that does nothing, until it is dropped.
struct Idle(Child);

impl Idle {
    fn new() -> Self {
        let child = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .spawn();
        Self(child.expect("it starts"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Ends it, and takes it off the list of processes.
    fn ends(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it is ours");
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        // It may have been ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Root `main`, child `one`, grandchild `two`, held by a process that lives as long as what is returned.
fn family(user: &Terminal) -> Idle {
    let holder = Idle::new();
    user.play(&format!(
        "register main --engine codex --pid {0}
         register one --parent main@1 --pid {0}
         register two --parent one@1 --pid {0}",
        holder.pid()
    ));
    holder
}

/// The writable sessions of a tree, with its standing.
fn tree(user: &Terminal, name: &str) -> (String, Vec<String>) {
    let tree = user.json(&format!("tree {name}"));
    let sessions = tree["sessions"].as_array().expect("a list");
    let writable = sessions.iter().filter(|s| s["writable"] == true);
    let tokens = writable.map(|s| s["token"].as_str().expect("a text").to_owned());
    let standing = tree["standing"].as_str().expect("a text").to_owned();
    (standing, tokens.collect())
}

/// The story of a foreign tree that refuses every session in it and is then taken over (TRE-2, TRE-5, TRE-7, TRE-13, TRE-21,
/// A01, A04, A06, C01, E08).
#[test]
fn a_foreign_tree_refuses_every_session_in_it_and_is_then_taken_over() {
    let user = Terminal::new();
    let mut holder = family(&user);
    let me = Idle::new();
    user.play("dispatch fix --to two --as main@1 --write src \n accept d1 --as two@1");
    is_foreign_to_everybody(&user, holder.pid(), me.pid());
    // Its holder dies; asked again, the same question has another answer.
    holder.ends();
    let grant = user.json(&format!("adopt two --pid {}", me.pid()));
    assert_eq!(grant["token"], "two@2");
    assert_eq!(tree(&user, "main"), ("owned".into(), vec!["two@2".into()]));
    has_lapsed_for_its_former_holder(&user, me.pid());
    // The work is carried; the others follow one by one, under the new token.
    user.play("report d1 --as two@2 --outcome done");
    user.play(&format!("adopt main --as two@2 --pid {}", me.pid()));
    assert_eq!(
        tree(&user, "one"),
        ("owned".into(), vec!["main@2".into(), "two@2".into()])
    );
    let who = user.json("who tree:one");
    assert_eq!(
        (&who["session"], &who["holder"]["pid"]),
        (&json!("main"), &json!(me.pid()))
    );
    let then = user.json("who tree:one --at 3");
    assert_eq!(
        (&then["since"]["event"], &then["until"]["event"]),
        (&json!("registered"), &json!("claimed"))
    );
    assert_eq!(
        user.run("--json who one").ended(1).object()["holder"],
        Value::Null
    );
    user.run("verify").ended(0);
    user.run("audit").ended(0);
}

/// Each session of the tree is refused to whoever comes from elsewhere, who is told who has it, since when and what may be
/// done, and changes nothing.
fn is_foreign_to_everybody(user: &Terminal, holder: u32, me: u32) {
    let before = user.json("tree two");
    for name in ["main", "one", "two"] {
        let refused = user
            .run(&format!("--json adopt {name} --pid {}", me))
            .ended(12);
        let refusal = refused.object();
        assert_eq!(refusal["code"], "held");
        assert_eq!(refusal["subject"], name);
        assert_eq!(refusal["relation"], "foreign");
        assert_eq!(refusal["holder"]["pid"], holder);
        assert_eq!(refusal["holder"]["engine"], "codex");
        assert_eq!(refusal["holder"]["verdict"], "alive");
        assert_eq!(refusal["since"]["position"], 1);
        let ways = refusal["next"].to_string();
        assert!(
            ways.contains("--force --reason") && ways.contains("tenure branch"),
            "{ways}"
        );
        assert_eq!(
            user.json(&format!("show {name}"))["generation"],
            1,
            "looking stays legal"
        );
    }
    let people = user.run("adopt one").ended(12).err;
    assert!(people.contains("will not expire by itself"), "{people}");
    assert_eq!(user.json("tree two")["epoch"], before["epoch"]);
}

/// Whoever was held off before is the holder now, and every older token of the tree has lapsed.
fn has_lapsed_for_its_former_holder(user: &Terminal, me: u32) {
    for token in ["main@1", "one@1", "two@1"] {
        let refused = user
            .run(&format!("--json note late --as {token}"))
            .ended(10)
            .object();
        assert_eq!(refused["code"], "stale-generation");
        assert_eq!(refused["holder"]["pid"], me, "{token}");
        let lost = refused["lost"].as_array().expect("a list");
        assert_eq!(
            lost[0]["event"],
            if token == "two@1" {
                "adopted"
            } else {
                "claimed"
            }
        );
        user.run(&format!("check {token}")).ended(10);
    }
}

/// TRE-12, REG-11: a release gives the whole tree back, once; what its sessions were is still there.
#[test]
fn a_release_gives_the_whole_tree_back() {
    let user = Terminal::new();
    let holder = family(&user);
    user.run("release").ended(64);
    user.run("release --as two@2").ended(10);
    let first = user.json("release --as two@1 --reason finished");
    assert_eq!(first["session"], "two");
    let again = user.json("release --as two@1");
    assert_eq!(
        (&again["position"], &again["repeated"]),
        (&first["position"], &json!(true))
    );
    assert_eq!(tree(&user, "main"), ("unowned".into(), vec![]));
    user.run("note late --as main@1").ended(10);
    user.run("who tree:main").ended(1);
    let session = user.json("show one");
    assert_eq!(
        (&session["state"], &session["holder"]),
        (&json!("active"), &Value::Null)
    );
    assert_eq!(
        (&session["tree"], &session["parent"]),
        (&json!("main"), &json!("main"))
    );
    // Nobody has to be forced, and the old process may come back.
    user.play(&format!("adopt one --pid {}", holder.pid()));
    assert_eq!(tree(&user, "main"), ("owned".into(), vec!["one@2".into()]));
}

/// `adopt --tree` raises the epoch for whoever may claim, also for who presents a token.
#[test]
fn adopt_tree_claims_in_any_case() {
    let user = Terminal::new();
    let _holder = family(&user);
    user.run("adopt main --tree").ended(12);
    user.play("adopt main --tree --as one@1");
    assert_eq!(tree(&user, "main"), ("owned".into(), vec!["main@2".into()]));
    user.play("adopt two --tree --force --reason moving");
    assert_eq!(tree(&user, "main"), ("owned".into(), vec!["two@2".into()]));
    user.run("adopt --all --tree --reason why").ended(64);
}

/// E19: after an incarnation was raised `adopt --all` claims each tree once and adopts every session in it.
#[test]
fn adopt_all_claims_each_tree_once() {
    let user = Terminal::new();
    let _holder = family(&user);
    user.play("register lone \n register gone \n retire gone@1");
    let host = std::sync::Arc::new(System::of_this_user());
    let options = OpenOptions::new(user.store());
    settle(
        &options,
        host,
        None,
        Settlement::Restored,
        "put back".into(),
    )
    .expect("it is settled");
    assert_eq!(tree(&user, "two"), ("unowned".into(), vec![]));
    user.run("adopt --all").ended(64);
    let grants = user.list("adopt --all --reason restored");
    assert_eq!(grants.len(), 4);
    let (standing, writable) = tree(&user, "two");
    assert_eq!(
        (standing.as_str(), writable.len()),
        ("owned", 3),
        "{writable:?}"
    );
    assert_eq!(user.list("adopt --all --reason again").len(), 0);
    let claims = user.list("log --kind claimed");
    assert_eq!(claims.len(), 1, "{claims:?}");
    for grant in grants {
        user.play(&format!(
            "note fine --as {}",
            grant["token"].as_str().expect("a text")
        ));
    }
}

/// DIS-16: sessions, show and tree say parent and tree, to people and to programs.
#[test]
fn what_is_shown_of_a_tree() {
    let user = Terminal::new();
    let _holder = family(&user);
    let sessions = user.list("sessions");
    let parents: Vec<&Value> = sessions.iter().map(|s| &s["parent"]).collect();
    assert_eq!(parents, [&Value::Null, &json!("main"), &json!("one")]);
    assert!(sessions.iter().all(|s| s["tree"] == "main"));
    let shown = user.run("tree two").ended(0).out;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "main  owned  epoch 1");
    assert_eq!(
        &lines[3..],
        [
            "  main@1  writable",
            "    one@1  writable",
            "      two@1  writable"
        ]
    );
    assert!(
        user.run("show two")
            .ended(0)
            .out
            .contains("main, delegated by one")
    );
    assert_eq!(user.run("-q tree one").ended(0).out, "main\none\ntwo\n");
    user.run("tree nobody").ended(66);
    user.run("register three --parent one").ended(64);
    user.run("register three --parent one@7").ended(10);
    user.run("register one --parent main@1").ended(12);
}

/// ADO-7, TRE-17, LIV-14, A15, C20: of 16 processes that adopt one tree through its sessions, exactly one wins; the others
/// are held, each under the name it asked for, and write nothing.
#[test]
fn of_sixteen_processes_that_adopt_one_tree_one_wins() {
    const NAMES: [&str; 3] = ["main", "one", "two"];
    let user = Terminal::new();
    let mut holder = family(&user);
    let mut generations = [1_u64; 3];
    for round in 0..rounds() {
        holder.ends();
        let next = Idle::new();
        let mut racers: Vec<(usize, Child)> = (0..16)
            .map(|n| {
                let line = format!("--json adopt {} --pid {}", NAMES[n % 3], next.pid());
                (n % 3, waiting(&user, &line))
            })
            .collect();
        for (_, racer) in &mut racers {
            let mut gate = racer.stdin.take().expect("it is piped");
            gate.write_all(b"go\n").expect("it waits");
        }
        let mut won = Vec::new();
        for (name, racer) in racers {
            let output = racer.wait_with_output().expect("it ends");
            let ran = Ran {
                code: output.status.code().unwrap_or(-1),
                out: String::from_utf8_lossy(&output.stdout).into_owned(),
                err: String::from_utf8_lossy(&output.stderr).into_owned(),
            };
            let code = ran.code;
            let object = ran.object();
            match code {
                0 => won.push((name, object)),
                12 => {
                    assert_eq!(object["code"], "held", "round {round}");
                    assert_eq!(object["subject"], NAMES[name]);
                    assert_eq!(object["holder"]["pid"], next.pid(), "the winner is named");
                }
                other => panic!("round {round}: {other}: {object}"),
            }
        }
        assert_eq!(won.len(), 1, "round {round}: {won:?}");
        let (name, grant) = won.remove(0);
        generations[name] += 1;
        assert_eq!(grant["generation"], generations[name]);
        let token = format!("{}@{}", NAMES[name], generations[name]);
        assert_eq!(tree(&user, "main"), ("owned".into(), vec![token.clone()]));
        user.play(&format!("note fine --as {token}"));
        holder = next;
    }
    let claims = user.list("log --kind claimed");
    assert_eq!(claims.len(), rounds());
    user.run("verify").ended(0);
}
