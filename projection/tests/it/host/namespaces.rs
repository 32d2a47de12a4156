//! Askers that see another part of the machine: other namespaces, other users, another `/proc`. They need root.

use tenure_core::holder::{Proof, Verdict};
use tenure_projection::host::{Host, Pinned, ProcessChoice};

use super::{record, system, verdict, with_process, without_inode};
use crate::actors::{self, Running};

const PID_NAMESPACE: [&str; 4] = ["unshare", "-p", "-f", "--mount-proc"];

/// Says what this process makes of the record in `line`, by inode and by start time.
fn judge_line(line: &str) -> String {
    let (_dir, host) = system();
    let record = actors::from_line(line);
    let found = [record, without_inode(&record)].map(|record| {
        let (verdict, proofs) = verdict(&host, &record);
        format!("{} {proofs:?}", verdict.as_str())
    });
    found.join(" / ")
}

/// Whether `wrap` works here; says so if not.
fn possible(test: &str, wrap: &[&str]) -> bool {
    let command: Vec<&str> = wrap.iter().copied().chain(["true"]).collect();
    let possible = actors::is_root() && actors::can(&command);
    if !possible {
        actors::skip(test, &format!("needs root and {:?}", wrap[0]));
    }
    possible
}

fn both(verdict: Verdict, proof: Proof) -> String {
    let one = format!("{} [{proof:?}]", verdict.as_str());
    format!("{one} / {one}")
}

/// C08, LIV-6: from another pid namespace nothing is known, of a process that lives as of one that is gone.
#[test]
fn a_record_of_another_pid_namespace_is_unknowable() {
    const TEST: &str = "host::namespaces::a_record_of_another_pid_namespace_is_unknowable";
    if let Some(line) = actors::part() {
        return actors::answer(&judge_line(&line));
    }
    if !possible(TEST, &PID_NAMESPACE) {
        return;
    }
    let (_dir, host) = system();
    let sleeper = Running::sleeping();
    let line = actors::to_line(&record(&host, sleeper.pid()));
    let expected = both(Verdict::Unknowable, Proof::OtherPidns);
    assert_eq!(actors::play(&PID_NAMESPACE, TEST, &line), expected);
    // A number that exists on the inside too: everybody there has a process 1.
    let first = with_process(&actors::from_line(&line), |process| process.pid = 1);
    assert_eq!(
        actors::play(&PID_NAMESPACE, TEST, &actors::to_line(&first)),
        expected
    );
    sleeper.end();
    assert_eq!(actors::play(&PID_NAMESPACE, TEST, &line), expected);
}

/// C06: the same small number in the next container, be it our own, is not the holder.
#[test]
fn process_1_of_one_container_is_not_process_1_of_the_next() {
    const TEST: &str = "host::namespaces::process_1_of_one_container_is_not_process_1_of_the_next";
    if let Some(part) = actors::part() {
        let (_dir, host) = system();
        let itself = host.bearing(ProcessChoice::Itself).expect("recorded");
        assert_eq!(itself.process.expect("a process").pid, 1);
        assert_eq!(verdict(&host, &itself).0, Verdict::Alive);
        // Whoever started the container is not seen from inside.
        let parent = host.bearing(ProcessChoice::Parent).expect("recorded");
        assert_eq!(parent.process, None);
        let said = match part.as_str() {
            "record" => actors::to_line(&itself),
            line => judge_line(line),
        };
        return actors::answer(&said);
    }
    if !possible(TEST, &PID_NAMESPACE) {
        return;
    }
    let line = actors::play(&PID_NAMESPACE, TEST, "record");
    let found = actors::play(&PID_NAMESPACE, TEST, &line);
    // The kernel may give the next namespace the inode of the last one: then the process decides.
    assert!(!found.contains("alive"), "{found}");
    let (_dir, host) = system();
    let outside = verdict(&host, &actors::from_line(&line));
    assert_eq!(outside, (Verdict::Unknowable, vec![Proof::OtherPidns]));
}

/// C08: a `/proc` that was left from outside shows strangers under our numbers, and is not read.
#[test]
fn a_proc_of_another_namespace_is_not_believed() {
    const TEST: &str = "host::namespaces::a_proc_of_another_namespace_is_not_believed";
    const OUTER_PROC: [&str; 3] = ["unshare", "-p", "-f"];
    if actors::part().is_some() {
        let (_dir, host) = system();
        let itself = host.bearing(ProcessChoice::Itself).expect("recorded");
        let process = itself.process.expect("a process");
        assert_eq!((process.pid, process.start), (1, None));
        assert!(process.pidns.is_some());
        return actors::answer(&judge_line(&actors::to_line(&itself)));
    }
    if !possible(TEST, &OUTER_PROC) {
        return;
    }
    let found = actors::play(&OUTER_PROC, TEST, "judge");
    let (_dir, host) = system();
    let by_inode = host.bearing(ProcessChoice::Itself).expect("recorded");
    let first = match by_inode.process.expect("a process").pidfs {
        Some(_) => "alive [SameInode]",
        None => "unknowable [NoStart]",
    };
    assert_eq!(found, format!("{first} / unknowable [NoStart]"));
}

/// A process of an inner namespace keeps the number by which the recorder knows it.
#[test]
fn a_record_keeps_the_number_and_the_namespace_of_the_recorder() {
    const TEST: &str =
        "host::namespaces::a_record_keeps_the_number_and_the_namespace_of_the_recorder";
    if let Some(part) = actors::part() {
        let (_dir, host) = system();
        if part == "wait" {
            let itself = host.bearing(ProcessChoice::Itself).expect("recorded");
            actors::answer(&actors::to_line(&itself));
            loop {
                std::thread::park();
            }
        }
        return actors::answer(&judge_line(&part));
    }
    if !possible(TEST, &PID_NAMESPACE) {
        return;
    }
    let (_dir, host) = system();
    let kill_child = ["unshare", "-p", "-f", "--mount-proc", "--kill-child"];
    let mut container = Running::command(&mut actors::actor(&kill_child, TEST, "wait"));
    let inner = actors::from_line(&container.next_answer());
    let children = format!("/proc/{0}/task/{0}/children", container.pid());
    let child = std::fs::read_to_string(children).expect("told");
    let outer = record(&host, child.trim().parse().expect("one child"));
    let (a, b) = (
        inner.process.expect("inside"),
        outer.process.expect("outside"),
    );
    assert_ne!((a.pid, a.pidns), (b.pid, b.pidns));
    assert_eq!((a.start, a.pidfs), (b.start, b.pidfs), "one process");
    assert_eq!(verdict(&host, &outer).0, Verdict::Alive);
    assert_eq!(
        verdict(&host, &inner),
        (Verdict::Unknowable, vec![Proof::OtherPidns])
    );
    container.end();
    // Without its first process a namespace ends; the kernel is not done with that when `kill` returns.
    while verdict(&host, &outer).0 == Verdict::Alive {
        std::thread::yield_now();
    }
    assert_eq!(
        verdict(&host, &outer),
        (Verdict::Dead, vec![Proof::NoSuchProcess])
    );
}

/// LIV-4, C03: a number that is given out again at once, as `ns_last_pid` can force.
#[test]
fn a_number_that_is_given_out_again_is_told_apart() {
    const TEST: &str = "host::namespaces::a_number_that_is_given_out_again_is_told_apart";
    if actors::part().is_some() {
        let (_dir, host) = system();
        let mut reused = 0;
        for _ in 0..20 {
            let first = Running::sleeping();
            let old = record(&host, first.pid());
            let pid = first.pid();
            first.end();
            std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).expect("set");
            let second = Running::sleeping();
            if second.pid() != pid {
                continue;
            }
            reused += 1;
            let new = record(&host, pid);
            assert_eq!(verdict(&host, &new).0, Verdict::Alive);
            let (found, proofs) = verdict(&host, &old);
            if old.process.expect("a process").pidfs.is_some() {
                assert_eq!(found, Verdict::Dead, "{proofs:?}");
                assert_ne!(new.process.map(|p| p.pidfs), old.process.map(|p| p.pidfs));
            }
        }
        return actors::answer(&reused.to_string());
    }
    if !possible(TEST, &PID_NAMESPACE) {
        return;
    }
    let reused: u32 = actors::play(&PID_NAMESPACE, TEST, "reuse")
        .parse()
        .expect("a count");
    assert!(reused > 0, "no number was given out again");
}

/// LIV-18: a signal goes to the process that was started and, once its number is another's, to nobody.
#[test]
fn a_signal_never_reaches_another_process_of_the_same_number() {
    const TEST: &str =
        "host::namespaces::a_signal_never_reaches_another_process_of_the_same_number";
    if actors::part().is_some() {
        let (_dir, host) = system();
        let mut reused = 0;
        for _ in 0..20 {
            let mut first = std::process::Command::new("sleep")
                .arg("600")
                .spawn()
                .expect("started");
            let pinned = Pinned::of(&first).expect("held");
            let pid = first.id();
            pinned
                .signal(rustix::process::Signal::KILL.as_raw())
                .expect("it reaches it");
            first.wait().expect("reaped");
            std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).expect("set");
            let second = Running::sleeping();
            let late = pinned.signal(rustix::process::Signal::KILL.as_raw());
            let error = late.expect_err("nobody is there");
            assert_eq!(
                error.raw_os_error(),
                Some(rustix::io::Errno::SRCH.raw_os_error())
            );
            let record = record(&host, second.pid());
            assert_eq!(verdict(&host, &record).0, Verdict::Alive);
            reused += u32::from(second.pid() == pid);
        }
        return actors::answer(&reused.to_string());
    }
    if !possible(TEST, &PID_NAMESPACE) {
        return;
    }
    let reused: u32 = actors::play(&PID_NAMESPACE, TEST, "reuse")
        .parse()
        .expect("a count");
    assert!(reused > 0, "no number was given out again");
}

/// LIV-11: start times read in different time namespaces differ, and prove nothing.
#[test]
fn a_start_time_from_another_time_namespace_is_not_compared() {
    const TEST: &str = "host::namespaces::a_start_time_from_another_time_namespace_is_not_compared";
    const SHIFTED: [&str; 4] = ["unshare", "-T", "-f", "--boottime=86400"];
    let (_dir, host) = system();
    if let Some(part) = actors::part() {
        let said = match part.strip_prefix("record ") {
            Some(pid) => actors::to_line(&record(&host, pid.parse().expect("a pid"))),
            None => judge_line(&part),
        };
        return actors::answer(&said);
    }
    if !possible(TEST, &SHIFTED) {
        return;
    }
    let sleeper = Running::sleeping();
    let ours = record(&host, sleeper.pid());
    let found = actors::play(&SHIFTED, TEST, &actors::to_line(&ours));
    assert!(found.ends_with("/ unknowable [NoStart]"), "{found}");
    assert!(!found.contains("dead"), "{found}");

    // And the other way round: recorded from there, of a process that is here.
    let line = actors::play(&SHIFTED, TEST, &format!("record {}", sleeper.pid()));
    let theirs = actors::from_line(&line);
    let start = |record: &tenure_core::holder::Bearing| record.process.and_then(|p| p.start);
    assert_ne!(start(&theirs), start(&ours), "the namespace shifts it");
    let found = verdict(&host, &without_inode(&theirs));
    assert_eq!(found, (Verdict::Unknowable, vec![Proof::NoStart]));
}

/// C14, LIV-6: another user may not signal it, and sees that it is there all the same.
#[test]
fn a_process_of_another_user_is_alive_while_it_lives() {
    const TEST: &str = "host::namespaces::a_process_of_another_user_is_alive_while_it_lives";
    if let Some(line) = actors::part() {
        return actors::answer(&judge_line(&line));
    }
    if !possible(TEST, &["setpriv", "--reuid=65534"]) {
        return;
    }
    let (_dir, host) = system();
    let sleeper = Running::sleeping();
    let line = actors::to_line(&record(&host, sleeper.pid()));
    let found = actors::play_as_nobody(&[], TEST, &line);
    assert!(
        found.starts_with("alive") && found.ends_with("/ alive [SameStart]"),
        "{found}"
    );
    sleeper.end();
    let found = actors::play_as_nobody(&[], TEST, &line);
    assert_eq!(found, both(Verdict::Dead, Proof::NoSuchProcess));
}

/// C15, LIV-6: a `/proc` that hides other users' processes hides the start time, and that is not a death.
#[test]
fn a_proc_that_hides_processes_proves_nothing() {
    const TEST: &str = "host::namespaces::a_proc_that_hides_processes_proves_nothing";
    if let Some(line) = actors::part() {
        return actors::answer(&judge_line(&line));
    }
    let hide = r#"mount -t proc -o hidepid=2 proc /proc && exec "$@""#;
    let wrap = ["unshare", "-m", "sh", "-c", hide, "sh"];
    if !possible(TEST, &wrap) || !possible(TEST, &["setpriv", "--reuid=65534"]) {
        return;
    }
    let (_dir, host) = system();
    let sleeper = Running::sleeping();
    let line = actors::to_line(&record(&host, sleeper.pid()));
    let found = actors::play_as_nobody(&wrap, TEST, &line);
    assert!(found.ends_with("/ unknowable [NoStart]"), "{found}");
    assert!(!found.contains("dead"), "{found}");
    sleeper.end();
    let found = actors::play_as_nobody(&wrap, TEST, &line);
    assert_eq!(
        found,
        both(Verdict::Dead, Proof::NoSuchProcess),
        "the kernel was asked, not /proc"
    );
}

/// C15, LIV-6: without `/proc` nobody knows in which namespace he is.
#[test]
fn without_proc_nothing_is_known() {
    const TEST: &str = "host::namespaces::without_proc_nothing_is_known";
    if let Some(line) = actors::part() {
        return actors::answer(&judge_line(&line));
    }
    let cover = r#"mount -t tmpfs none /proc && exec "$@""#;
    let wrap = ["unshare", "-m", "sh", "-c", cover, "sh"];
    if !possible(TEST, &wrap) {
        return;
    }
    let (_dir, host) = system();
    let sleeper = Running::sleeping();
    let line = actors::to_line(&record(&host, sleeper.pid()));
    let found = actors::play(&wrap, TEST, &line);
    assert!(
        found.starts_with("unknowable") && !found.contains("dead"),
        "{found}"
    );
    sleeper.end();
    let found = actors::play(&wrap, TEST, &line);
    assert!(
        found.starts_with("unknowable") && !found.contains("dead"),
        "{found}"
    );
}
