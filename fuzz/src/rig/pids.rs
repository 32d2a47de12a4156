//! Process numbers that are given out again, and processes that are seen from elsewhere: a holder that is gone is never
//! taken for alive because its number is in use, and one of which nothing can be known is never taken for dead.
//!
//! In a pid namespace of its own, where the next number can be chosen; that needs root and `unshare`.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{Figures, Order, Outcome};

/// Words before a command that runs in a namespace of its own.
const APART: [&str; 4] = ["unshare", "-p", "-f", "--mount-proc"];

/// Registers sessions for processes, ends each, gives its number to another process, and asks to take the session over;
/// and the same of sessions whose holders live. A line for each: what was done, and the exit code.
const STORY: &str = r#"
n=0
while [ "$n" -lt "$ROUNDS" ]; do
    n=$((n + 1))
    sleep 1000 &
    pid=$!
    "$TENURE" register "gone$n" --pid "$pid" >/dev/null 2>&1 || { echo "register $?"; exit 1; }
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid
    sleep 1000 &
    again=$!
    "$TENURE" adopt "gone$n" >/dev/null 2>&1
    code=$?
    if [ "$again" = "$pid" ]; then echo "reused $code"; else echo "missed $code"; fi
    "$TENURE" register "here$n" --pid "$again" >/dev/null 2>&1 || { echo "register $?"; exit 1; }
    "$TENURE" adopt "here$n" >/dev/null 2>&1
    echo "alive $?"
done
echo end
"#;

/// Exit code of what is refused because its holder may live.
const HELD: &str = "12";

/// Runs the rig.
///
/// # Errors
/// When a process cannot be started.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let possible = Command::new(APART[0])
        .args(&APART[1..])
        .args(["sh", "-c", "echo 100 > /proc/sys/kernel/ns_last_pid"])
        .stderr(Stdio::null())
        .status();
    if !possible.is_ok_and(|status| status.success()) {
        let why = "choosing process numbers needs root and unshare";
        return Ok(Outcome::Skipped(why.into()));
    }
    let rounds = order.tier.of(5, 60, 2_000);
    let room = tempfile::tempdir()?;
    let mut figures = Figures::default();
    let mut words: Vec<&str> = APART.to_vec();
    words.extend(["sh", "-c", STORY]);
    let rounds_text = rounds.to_string();
    let told = ask(order, room.path(), &words, &rounds_text)?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let mut has_ended = false;
    for line in told.lines() {
        let (what, code) = line.split_once(' ').unwrap_or((line, ""));
        let must = match what {
            "end" => {
                has_ended = true;
                continue;
            }
            // The number went to something else meanwhile: gone is gone all the same.
            "reused" | "missed" => "0",
            "alive" => HELD,
            _ => "",
        };
        let counted = match what {
            "reused" => "numbers given out again",
            "missed" => "holders gone",
            _ => "holders alive",
        };
        figures.count(counted, 1);
        if code != must {
            let line = format!("a holder that is {what}: exit {code}, and must be {must}");
            figures.violations.push(line);
        }
    }
    if !has_ended {
        figures.violations.push(format!("it ended early: {told}"));
    }
    // All of that namespace is gone, and nothing of it can be known from here.
    for number in 1..=rounds.min(20) {
        let name = format!("here{number}");
        let words = [&*order.program.to_string_lossy(), "adopt", &name].map(str::to_owned);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ended = ask(order, room.path(), &words, "0")?;
        figures.count("holders elsewhere", 1);
        if ended.status.code().map(|code| code.to_string()).as_deref() != Some(HELD) {
            let line = format!("{name} is held in another namespace: {}", ended.status);
            figures.violations.push(line);
        }
    }
    Ok(Outcome::Ran(figures))
}

fn ask(order: &Order, room: &Path, words: &[&str], rounds: &str) -> std::io::Result<Output> {
    Command::new(words[0])
        .args(&words[1..])
        .env("TENURE", &order.program)
        .env("TENURE_STORE", room.join("store"))
        .env("XDG_STATE_HOME", room.join("state"))
        .env("ROUNDS", rounds)
        .env_remove("TENURE_TOKEN")
        .env_remove("TENURE_SESSION")
        .current_dir(room)
        .stdin(Stdio::null())
        .output()
}
