//! exec: a command that holds a session, with real processes.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::terminal::{Ran, Terminal};

fn shell(user: &Terminal, before: &[&str], script: &str) -> Ran {
    let mut args = vec!["exec", "--session", "job"];
    args.extend(before);
    args.extend(["--", "sh", "-c", script]);
    user.args(&args)
}

/// Starts one and waits for its first line.
fn start(user: &Terminal, before: &[&str], script: &str) -> (Child, BufReader<impl Read + use<>>) {
    let mut args = vec!["exec", "--session", "job"];
    args.extend(before);
    args.extend(["--", "sh", "-c", script]);
    let mut child = user
        .command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("it reads");
    assert_eq!(line, "ready\n");
    (child, out)
}

fn ends(child: &mut Child) -> i32 {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it can be asked") {
            return status.code().unwrap_or(-1);
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// LIV-17: the command finds who it is, its own pid is the holder, and its exit code comes back.
#[test]
fn the_command_holds_the_session_itself() {
    let user = Terminal::new();
    let script = "echo $$ $TENURE_SESSION $TENURE_GENERATION $TENURE_STORE; cat $TENURE_TOKEN_FILE; \
                  stat -c %a $TENURE_TOKEN_FILE; exit 7";
    let ran = shell(&user, &["--engine", "claude"], script).ended(7);
    let lines: Vec<&str> = ran.out.lines().collect();
    let store = user.store();
    let (pid, rest) = lines[0].split_once(' ').expect("a pid");
    assert_eq!(rest, format!("job 1 {}", store.display()));
    assert_eq!(lines[1..], ["job@1", "600"]);
    let event = user
        .list("log --kind registered")
        .pop()
        .expect("it is there");
    assert_eq!(
        (event["pid"].to_string().as_str(), &event["engine"]),
        (pid, &json!("claude"))
    );
    let session = user.json("show job");
    assert_eq!(
        (&session["state"], &session["holder"]["verdict"]),
        (&json!("active"), &json!("dead"))
    );
    assert_eq!(session["holder"]["chosen"], "declared");
    let left: Vec<_> = std::fs::read_dir(user.path())
        .expect("it lists")
        .filter_map(|e| e.expect("it lists").file_name().into_string().ok())
        .filter(|name| name.starts_with("tenure-exec"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The passport is written long before a slow gate reads it, and has to wait for it: one start in three failed.
#[test]
fn every_start_of_many_gets_its_passport() {
    let user = Terminal::new();
    for _ in 0..25 {
        shell(&user, &[], "exit 0").ended(0);
    }
}

/// A provably dead holder is followed at once; a living one is in the way, and a force passes it.
#[test]
fn exec_adopts_from_the_dead_and_is_held_by_the_living() {
    let user = Terminal::new();
    shell(&user, &[], "exit 0").ended(0);
    shell(&user, &[], "exit 0").ended(0);
    assert_eq!(user.json("show job")["generation"], 2);
    let (mut child, _out) = start(&user, &[], "echo ready; exec sleep 60");
    let held = shell(&user, &[], "echo never").ended(12);
    assert!(
        held.out.is_empty() && held.err.contains("held"),
        "{}",
        held.err
    );
    shell(&user, &["--force"], "exit 0").ended(64);
    assert_eq!(
        shell(&user, &["--force", "--reason", "why"], "echo taken")
            .ended(0)
            .out,
        "taken\n"
    );
    assert_eq!(user.json("show job")["generation"], 4);
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

#[test]
fn exec_retires_only_when_asked() {
    let user = Terminal::new();
    shell(&user, &["--retire"], "exit 3").ended(3);
    assert_eq!(user.json("show job")["state"], "retired");
    shell(&user, &[], "true").ended(0);
    assert_eq!(
        (
            &user.json("show job")["state"],
            &user.json("show job")["generation"]
        ),
        (&json!("active"), &json!(2))
    );
}

#[test]
fn a_command_that_cannot_run_is_127_or_126() {
    let user = Terminal::new();
    let ran = user
        .args(&["exec", "--session", "job", "--", "./no-such-command"])
        .ended(127);
    assert!(ran.err.contains("cannot be run"), "{}", ran.err);
    std::fs::write(user.file("plain"), "x").expect("it writes");
    user.args(&["exec", "--session", "job", "--", "./plain"])
        .ended(126);
    user.run("exec --session job").ended(64);
}

/// Signals go to the command; a command ended by one gives 128 + N.
#[test]
fn signals_are_handed_on() {
    let user = Terminal::new();
    let (mut child, mut out) = start(
        &user,
        &[],
        "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done",
    );
    signal(child.id(), "TERM");
    assert_eq!(ends(&mut child), 9);
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("it reads");
    assert_eq!(rest, "caught\n");
    let (mut child, _out) = start(&user, &[], "echo ready; exec sleep 60");
    signal(child.id(), "HUP");
    assert_eq!(ends(&mut child), 128 + 1);
}

fn signal(pid: u32, name: &str) {
    let status = std::process::Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(status.expect("kill runs").success());
}

/// E08, NOT-7: whoever is adopted away is told in one line once the command has ended, and until then by a terminal's bell
/// and title alone; with `term` it is ended.
#[test]
fn a_loss_is_told_when_the_command_has_ended() {
    let user = Terminal::new();
    let (mut child, _out) = start(&user, &["--on-lost", "term"], "echo ready; exec sleep 60");
    user.play("adopt job --force --reason hangs");
    assert_eq!(ends(&mut child), 128 + 15);
    let mut said = String::new();
    let mut err = child.stderr.take().expect("a pipe");
    err.read_to_string(&mut said).expect("it reads");
    assert_eq!(said, "tenure: job@1 is lost: job@2 is current\n");

    let (mut child, mut into) = waiting(&user, "other", Stdio::piped());
    user.play("adopt other --force --reason hangs");
    into.write_all(b"\n").expect("it listens");
    assert_eq!(ends(&mut child), 0);
    let mut said = String::new();
    let mut err = child.stderr.take().expect("a pipe");
    err.read_to_string(&mut said).expect("it reads");
    // What the command wrote stands whole, and the loss behind it.
    assert_eq!(said, "mine\ntenure: other@1 is lost: other@2 is current\n");

    let (mut terminal, screen) = terminal();
    let (mut child, mut into) = waiting(&user, "shown", screen.into());
    user.play("adopt shown --force --reason hangs");
    let bell = "\x07\x1b]2;tenure: shown@1 is lost\x07";
    let mut said = String::new();
    while !said.contains(bell) {
        let mut part = [0; 256];
        let read = terminal.read(&mut part).expect("it reads");
        said.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    assert_eq!(said, bell);
    into.write_all(b"\n").expect("it listens");
    assert_eq!(ends(&mut child), 0);
}

/// A command that waits for a line, and then writes one of its own.
fn waiting(user: &Terminal, session: &str, err: Stdio) -> (Child, impl Write + use<>) {
    let script = "echo ready; read line; echo mine >&2";
    let mut child = user
        .command(&["exec", "--session", session, "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(err)
        .spawn()
        .expect("it runs");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("it reads");
    let into = child.stdin.take().expect("a pipe");
    (child, into)
}

/// A terminal: the side that shows, and the side that programs write to.
fn terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let shows = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&shows).expect("granted");
    unlockpt(&shows).expect("unlocked");
    let name = ptsname(&shows, Vec::new()).expect("it has a name");
    let screen = File::options()
        .write(true)
        .open(name.to_str().expect("UTF-8"));
    (shows.into(), screen.expect("it opens"))
}

/// BRN-24: what is named at the start outranks what the session has, and stands in the event.
#[test]
fn options_of_a_later_start_outrank_those_of_the_session() {
    let user = Terminal::new();
    shell(
        &user,
        &[
            "--engine",
            "claude",
            "--label",
            "team=core",
            "--label",
            "x=1",
        ],
        "true",
    )
    .ended(0);
    shell(&user, &["--engine", "codex", "--label", "team=web"], "true").ended(0);
    let session = user.json("show job");
    assert_eq!(session["labels"], json!({"team": "web", "x": "1"}));
    assert_eq!(session["holder"]["engine"], "codex");
    let event = user.list("log --kind adopted").pop().expect("it is there");
    assert_eq!(
        (&event["engine"], &event["labels"]),
        (&json!("codex"), &json!({"team": "web"}))
    );
}
