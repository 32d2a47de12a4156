//! Branches made by many processes at once, and while another process writes.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use super::history;
use crate::terminal::Terminal;

/// How many rounds a race of processes has: 20, or what `TENURE_ROUNDS` says.
pub fn rounds() -> usize {
    let said = std::env::var("TENURE_ROUNDS").ok();
    said.map_or(20, |n| n.parse().expect("TENURE_ROUNDS is a number"))
}

/// Starts a command that waits for its standard input to end before it does anything.
pub fn waiting(user: &Terminal, line: &str) -> Child {
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("read -r go; exec {tenure} {line}"))
        .current_dir(user.path())
        .env("TENURE_STORE", user.store())
        .env("TENURE_ACTOR", "tester")
        .env("HOME", user.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

/// BRN-3, A17: of 16 processes that branch to one name exactly one wins in every round, the others are told
/// `name-taken` and leave nothing.
#[test]
fn of_16_processes_that_branch_to_one_name_one_wins() {
    let user = Terminal::new();
    user.play("register api --pid none\nrecord a --as api@1");
    for round in 0..rounds() {
        let line = format!("--json branch api new{round} --pid none");
        let mut children: Vec<Child> = (0..16).map(|_| waiting(&user, &line)).collect();
        for child in &mut children {
            let mut gate = child.stdin.take().expect("it is piped");
            gate.write_all(b"go\n").expect("it waits");
        }
        let mut won = Vec::new();
        for child in children {
            let ended = child.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&ended.stdout).into_owned();
            match ended.status.code() {
                Some(0) => won.push(said),
                Some(11) => assert!(said.contains(r#""code":"name-taken""#), "{said}"),
                other => panic!("round {round}: {other:?}: {said}"),
            }
        }
        assert_eq!(won.len(), 1, "round {round}: {won:?}");
        assert_eq!(history(&user, &format!("new{round}")), "api:a@2");
    }
    let branches = user.list("log --kind branched").len();
    assert_eq!(
        branches,
        rounds(),
        "one branch a round, and nothing of the losers"
    );
    assert_eq!(user.list("sessions --all").len(), rounds() + 1);
    user.run("verify").ended(0);
}

/// BRN-7, A20: a branch of a session that another process is writing has a whole prefix: records in their order from the
/// first on, none torn, and no call without its end.
#[test]
fn a_branch_of_a_session_that_is_being_written_is_whole() {
    let user = Terminal::new();
    user.play("register api --pid none");
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let script = format!(
        "n=0; while [ ! -e stop ]; do n=$((n+1)); \
         {tenure} -q record $n --as api@1 --opens call:$n && {tenure} -q record e$n --as api@1 --closes call:$n || exit 1; done"
    );
    let mut writer = Command::new("sh");
    writer
        .args(["-c", &script])
        .current_dir(user.path())
        .env("TENURE_STORE", user.store())
        .env("HOME", user.path())
        .stdout(Stdio::null());
    let mut writer = writer.spawn().expect("it starts");
    let mut longest = 0;
    for round in 0..30 {
        user.json(&format!("branch api new{round} --pid none"));
        let bodies: Vec<String> = user
            .list(&format!("history new{round}"))
            .iter()
            .map(|o| o["body"].as_str().expect("a text").to_owned())
            .collect();
        let turns = bodies.len() / 2;
        let whole = (1..=turns).flat_map(|n| [n.to_string(), format!("e{n}")]);
        assert_eq!(bodies, whole.collect::<Vec<_>>(), "round {round}");
        longest = longest.max(turns);
    }
    std::fs::write(user.file("stop"), "").expect("it is written");
    let ended = writer.wait().expect("it ends");
    assert!(ended.success());
    assert!(longest > 2, "the source went on while it was branched");
    user.run("verify").ended(0);
}
