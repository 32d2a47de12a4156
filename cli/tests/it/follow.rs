//! Following the log: what was there, then what comes, at the reader's own pace.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::terminal::Terminal;

/// OUT-15, F41: a follower that begins with what is there goes on with what comes without a gap and without a duplicate,
/// however slowly it reads; stopped anywhere, it goes on behind the last position that it left in its cursor.
#[test]
fn a_slow_follower_misses_nothing_and_is_told_nothing_twice() {
    let user = Terminal::new();
    user.play("register api");
    let note = |n: usize| user.play(&format!("note n{n} --as api@1"));
    (0..10).for_each(note);
    let mut command = user.command(&["--json", "log", "-f", "--cursor-file", "c"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut position = || {
        let line = lines.next().expect("there is more").expect("it reads");
        let event: Value = serde_json::from_str(&line).expect("it is JSON");
        event["position"].as_u64().expect("a position")
    };
    let mut seen = Vec::new();
    for n in 0..40 {
        seen.push(position());
        if n < 30 {
            note(10 + n);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(seen, (1..=40).collect::<Vec<u64>>());
    child.kill().expect("it is stopped");
    child.wait().expect("it ends");
    (40..45).for_each(note);
    let cursor = std::fs::read_to_string(user.file("c")).expect("it left one");
    let left: u64 = cursor
        .split(':')
        .nth(1)
        .and_then(|p| p.parse().ok())
        .expect("a position");
    let again: Vec<u64> = user
        .list("log --cursor-file c")
        .iter()
        .map(|e| e["position"].as_u64().expect("a position"))
        .collect();
    assert_eq!(again, (left + 1..=46).collect::<Vec<u64>>());
}
