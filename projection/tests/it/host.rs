//! What the probe finds of real processes, and what the core makes of it.

mod machine;
mod namespaces;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use rustix::process::Signal;
use tenure_core::holder::{Bearing, BootId, HostId, Process, Proof, Source, Verdict, judge};
use tenure_projection::host::{Host, HostError, ProcessChoice, System};

use crate::actors::{self, Running};

/// The machine, with a state directory of its own.
fn system() -> (tempfile::TempDir, System) {
    let dir = tempfile::tempdir().expect("a directory");
    let system = System::new(dir.path());
    (dir, system)
}

fn verdict(host: &dyn Host, record: &Bearing) -> (Verdict, Vec<Proof>) {
    judge(record, &host.sight(record))
}

fn record(host: &dyn Host, pid: u32) -> Bearing {
    host.bearing(ProcessChoice::Pid(pid)).expect("it exists")
}

/// The same record with its process changed.
fn with_process(record: &Bearing, change: impl FnOnce(&mut Process)) -> Bearing {
    let mut changed = *record;
    change(changed.process.as_mut().expect("a process"));
    changed
}

/// As a kernel before 6.9 would have recorded it.
fn without_inode(record: &Bearing) -> Bearing {
    with_process(record, |process| process.pidfs = None)
}

/// Asserts what is found both by inode and by start time.
fn assert_verdict(host: &dyn Host, record: &Bearing, expected: Verdict) {
    for record in [*record, without_inode(record)] {
        let (found, proofs) = verdict(host, &record);
        assert_eq!(found, expected, "{proofs:?} {record:?}");
    }
}

/// LIV-1, REG-16: host, boot, pid, start, namespaces, user and time stand in the record.
#[test]
fn a_record_says_which_process_it_was() {
    let (_dir, host) = system();
    let before = host.now();
    let sleeper = Running::sleeping();
    let record = record(&host, sleeper.pid());
    let this = host.this();
    assert_eq!((record.host, record.boot), (this.id, this.boot));
    assert!(record.boot.is_some());
    assert!(record.recorded >= before);
    assert_eq!(record.uid, this.uid);
    let process = record.process.expect("a process");
    assert_eq!(process.pid, sleeper.pid());
    assert_eq!(process.source, Source::Declared);
    assert!(!process.ancestor, "it is below, not above");
    let known = [process.start, process.pidns, process.timens];
    assert!(known.iter().all(Option::is_some), "{process:?}");
    assert_eq!(actors::from_line(&actors::to_line(&record)), record);
}

/// LIV-4: from Linux 6.9 on a process has an inode of its own, before that none is recorded.
#[test]
fn processes_are_told_apart_by_their_inode_where_they_have_one() {
    let (_dir, host) = system();
    let sleepers = [Running::sleeping(), Running::sleeping()];
    let inode = |sleeper: &Running| {
        record(&host, sleeper.pid())
            .process
            .expect("a process")
            .pidfs
    };
    let [first, second] = [inode(&sleepers[0]), inode(&sleepers[1])];
    let kernel = rustix::system::uname();
    let release = kernel.release().to_string_lossy().into_owned();
    let mut numbers = release
        .split(['.', '-'])
        .map(|n| n.parse::<u32>().unwrap_or(0));
    let has_pidfs = (numbers.next(), numbers.next()) >= (Some(6), Some(9));
    assert_eq!(
        (first.is_some(), second.is_some()),
        (has_pidfs, has_pidfs),
        "{release}"
    );
    assert!(!has_pidfs || first != second, "{first:?}");
    assert_eq!(inode(&sleepers[0]), first, "whenever it is asked");
}

/// LIV-5
#[test]
fn a_process_that_runs_is_alive() {
    let (_dir, host) = system();
    let sleeper = Running::sleeping();
    let record = record(&host, sleeper.pid());
    assert_verdict(&host, &record, Verdict::Alive);
    // It is another look, not a memory.
    assert_verdict(&System::new(_dir.path()), &record, Verdict::Alive);
}

/// LIV-12, LIV-11: stopped is alive, however long.
#[test]
fn a_process_that_is_stopped_is_alive() {
    let (_dir, host) = system();
    let sleeper = Running::sleeping();
    let record = record(&host, sleeper.pid());
    sleeper.stop();
    assert_verdict(&host, &record, Verdict::Alive);
    sleeper.signal(Signal::CONT);
    assert_verdict(&host, &record, Verdict::Alive);
}

/// LIV-5, LIV-17: a process whose parent ended goes to another parent, and is the one that was recorded all the same.
#[test]
fn a_process_that_got_another_parent_is_alive() {
    let (_dir, host) = system();
    // The shell tells the number and ends; what it started goes on.
    let output = Command::new("sh")
        .args(["-c", "sleep 600 >/dev/null 2>&1 & echo $!"])
        .output()
        .expect("it ran");
    let pid: u32 = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .expect("a pid");
    let orphan = record(&host, pid);
    assert_verdict(&host, &orphan, Verdict::Alive);
    assert!(!orphan.process.expect("a process").ancestor);
    let id = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    rustix::process::kill_process(id, Signal::KILL).expect("killed");
    // Whoever adopted it takes it off the list; a zombie has ended too.
    while verdict(&host, &orphan).0 == Verdict::Alive {
        std::thread::yield_now();
    }
    assert_verdict(&host, &orphan, Verdict::Dead);
}

/// LIV-3
#[test]
fn a_process_that_is_gone_is_dead() {
    let (_dir, host) = system();
    let sleeper = Running::sleeping();
    let pid = sleeper.pid();
    let record = record(&host, pid);
    sleeper.end();
    assert_verdict(&host, &record, Verdict::Dead);
    let refused = host.bearing(ProcessChoice::Pid(pid)).expect_err("gone");
    assert!(matches!(refused, HostError::NoSuchProcess { .. }));
    assert_eq!(refused.to_string(), format!("no process has the id {pid}"));
}

/// LIV-3: what has exited is gone, although its parent keeps the number.
#[test]
fn a_zombie_is_dead() {
    let (_dir, host) = system();
    let sleeper = Running::sleeping();
    let record = record(&host, sleeper.pid());
    sleeper.abandon();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", sleeper.pid())).expect("there");
    assert!(stat.contains(") Z "), "{stat}");
    assert_verdict(&host, &record, Verdict::Dead);
    let refused = host.bearing(ProcessChoice::Pid(sleeper.pid()));
    assert!(
        matches!(refused, Err(HostError::NoSuchProcess { .. })),
        "{refused:?}"
    );
}

/// LIV-5: state `Z` in `/proc` alone is no death: the first thread ended, another works on.
#[test]
fn a_process_whose_first_thread_ended_is_alive() {
    let (_dir, host) = system();
    if !actors::can(&["python3", "-c", "import ctypes"]) {
        return actors::skip("a_process_whose_first_thread_ended_is_alive", "no python3");
    }
    let script = "import ctypes, threading, time\n\
        threading.Thread(target=lambda: time.sleep(600)).start()\n\
        ctypes.CDLL(None).pthread_exit(None)\n";
    let python = Running::command(Command::new("python3").args(["-c", script]));
    let record = record(&host, python.pid());
    let stat = format!("/proc/{}/stat", python.pid());
    while !std::fs::read_to_string(&stat)
        .expect("there")
        .contains(") Z ")
    {
        std::thread::yield_now();
    }
    assert_verdict(&host, &record, Verdict::Alive);
    assert_verdict(&host, &self::record(&host, python.pid()), Verdict::Alive);
    python.end();
    assert_verdict(&host, &record, Verdict::Dead);
}

/// LIV-10
#[test]
fn a_process_may_have_any_name() {
    let (_dir, host) = system();
    let names: [&[u8]; 5] = [b"a b", b"a) S 1 (b", b"))) Z 1 1 1", b"\xff\xfe)", b"a\nb"];
    let sleep = std::env::split_paths(&std::env::var_os("PATH").expect("a path"))
        .map(|dir| dir.join("sleep"))
        .find(|path| path.exists())
        .expect("sleep");
    let dir = tempfile::tempdir().expect("a directory");
    for name in names {
        let path = dir.path().join(OsStr::from_bytes(name));
        std::os::unix::fs::symlink(&sleep, &path).expect("made");
        // One binary for many commands looks at its own name.
        let mut command = Command::new(&path);
        std::os::unix::process::CommandExt::arg0(&mut command, "sleep");
        let sleeper = Running::command(command.arg("600"));
        let stat = std::fs::read(format!("/proc/{}/stat", sleeper.pid())).expect("there");
        assert!(
            stat.windows(name.len()).any(|part| part == name),
            "{stat:?}"
        );
        let record = record(&host, sleeper.pid());
        assert!(record.process.expect("a process").start.is_some());
        assert_verdict(&host, &record, Verdict::Alive);
        sleeper.end();
        assert_verdict(&host, &record, Verdict::Dead);
    }
}

/// LIV-4, C03, C04: a number that belongs to another process now, be it number 1.
#[test]
fn a_pid_that_went_to_another_process_is_a_death() {
    let (_dir, host) = system();
    let (first, second) = (Running::sleeping(), Running::sleeping());
    let old = record(&host, first.pid());
    for pid in [second.pid(), 1] {
        let reused = with_process(&old, |process| process.pid = pid);
        let found = verdict(&host, &reused);
        if old.process.expect("a process").pidfs.is_some() {
            assert_eq!(found, (Verdict::Dead, vec![Proof::OtherInode]));
        }
    }
    let earlier = with_process(&without_inode(&old), |process| {
        process.start = process.start.map(|ticks| ticks - 1);
    });
    assert_eq!(
        verdict(&host, &earlier),
        (Verdict::Dead, vec![Proof::OtherStart])
    );
}

/// LIV-4: the number of a thread is no process any more.
#[test]
fn a_pid_that_went_to_a_thread_is_a_death() {
    let (_dir, host) = system();
    let sleeper = Running::sleeping();
    let record = record(&host, sleeper.pid());
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let thread = u32::try_from(thread).expect("a number");
    assert_ne!(
        thread,
        std::process::id(),
        "tests run in threads of their own"
    );
    let reused = with_process(&record, |process| {
        process.pid = thread;
        // Ours and the sleeper's may begin in one tick.
        process.start = Some(1);
    });
    assert_verdict(&host, &reused, Verdict::Dead);
    let refused = host
        .bearing(ProcessChoice::Pid(thread))
        .expect_err("a thread");
    assert!(matches!(refused, HostError::Thread { .. }), "{refused}");
}

/// LIV-17: the parent by default, and then it can prove life only.
#[test]
fn the_parent_is_recorded_by_default_and_never_found_dead() {
    const TEST: &str = "host::the_parent_is_recorded_by_default_and_never_found_dead";
    let (_dir, host) = system();
    if actors::part().is_some() {
        let record = host.bearing(ProcessChoice::Parent).expect("recorded");
        assert_eq!(verdict(&host, &record).0, Verdict::Alive);
        return actors::answer(&actors::to_line(&record));
    }
    // A shell that ends with the line. What follows keeps it from becoming the command.
    let line = actors::play(&["sh", "-c", r#""$@"; exit $?"#, "sh"], TEST, "record");
    let record = actors::from_line(&line);
    let process = record.process.expect("a process");
    assert_eq!(process.source, Source::Default);
    assert!(process.ancestor);
    assert_eq!(
        verdict(&host, &record),
        (
            Verdict::Unknowable,
            vec![Proof::NoSuchProcess, Proof::ByDefault]
        )
    );
    let declared = with_process(&record, |process| process.source = Source::Declared);
    assert_verdict(&host, &declared, Verdict::Dead);
}

/// LIV-17: whether the recorded process stands above the caller is written down, and no condition.
#[test]
fn ancestors_are_told_from_others() {
    const TEST: &str = "host::ancestors_are_told_from_others";
    let (_dir, host) = system();
    if let Some(grandparent) = actors::part() {
        let grandparent = record(&host, grandparent.parse().expect("a pid"));
        return actors::answer(&actors::to_line(&grandparent));
    }
    let us = std::process::id().to_string();
    let line = actors::play(&["sh", "-c", r#""$@"; exit $?"#, "sh"], TEST, &us);
    assert!(
        actors::from_line(&line)
            .process
            .expect("a process")
            .ancestor
    );
    let sleeper = Running::sleeping();
    let other = sleeper.pid().to_string();
    let line = actors::play(&["sh", "-c", r#""$@"; exit $?"#, "sh"], TEST, &other);
    assert!(
        !actors::from_line(&line)
            .process
            .expect("a process")
            .ancestor
    );
    let itself = host.bearing(ProcessChoice::Itself).expect("recorded");
    assert!(itself.process.expect("a process").ancestor);
}

#[test]
fn without_a_process_nothing_is_known() {
    let (_dir, host) = system();
    let record = host.bearing(ProcessChoice::None).expect("recorded");
    assert_eq!(record.process, None);
    assert_eq!(record.uid, host.this().uid);
    assert_eq!(
        verdict(&host, &record),
        (Verdict::Unknowable, vec![Proof::NoProcess])
    );
}

/// C11, LIV-7: another host's record is not tested here, whether our process of that number lives or not.
#[test]
fn a_record_of_another_host_says_nothing_here() {
    let (_dir, host) = system();
    let sleeper = Running::sleeping();
    let foreign = Bearing {
        host: HostId([7; 16]),
        ..record(&host, sleeper.pid())
    };
    let expected = (Verdict::Unknowable, vec![Proof::OtherHost]);
    assert_eq!(verdict(&host, &foreign), expected);
    sleeper.end();
    assert_eq!(verdict(&host, &foreign), expected);
}

/// LIV-2, C03: an earlier boot that this host remembers, and one that it does not.
#[test]
fn a_record_of_an_earlier_boot_is_dead_whatever_has_the_number_now() {
    let (dir, host) = system();
    let sleeper = Running::sleeping();
    let earlier = Bearing {
        boot: Some(BootId([7; 16])),
        ..record(&host, sleeper.pid())
    };
    let stranger = (Verdict::Unknowable, vec![Proof::ForeignBoot]);
    assert_eq!(verdict(&host, &earlier), stranger);
    host.remember_boot().expect("kept");
    assert_eq!(verdict(&host, &earlier), stranger);

    let list = dir.path().join("tenure-host/boots");
    let ours = std::fs::read_to_string(&list).expect("kept");
    let lines = |all: &[&str]| all.concat();
    let past = format!("{}\n", "07".repeat(16));
    std::fs::write(&list, lines(&[&past, &ours])).expect("written");
    assert_eq!(
        verdict(&host, &earlier),
        (Verdict::Dead, vec![Proof::OtherBoot])
    );
    // The other way round it is a machine that runs now and shares the list.
    std::fs::write(&list, lines(&[&ours, &past])).expect("written");
    assert_eq!(verdict(&host, &earlier), stranger);
}

/// LIV-8: what an older writer left out is never made up for by a guess.
#[test]
fn a_record_without_boot_or_start_is_never_dead_on_doubt() {
    let (_dir, host) = system();
    let sleeper = Running::sleeping();
    let whole = record(&host, sleeper.pid());
    let bare = with_process(&without_inode(&whole), |process| process.start = None);
    let bootless = Bearing {
        boot: None,
        ..whole
    };
    assert_eq!(
        verdict(&host, &bare),
        (Verdict::Unknowable, vec![Proof::NoStart])
    );
    assert_eq!(verdict(&host, &bootless).0, Verdict::Unknowable);
    sleeper.end();
    assert_eq!(
        verdict(&host, &bare),
        (Verdict::Dead, vec![Proof::NoSuchProcess])
    );
    assert_eq!(verdict(&host, &bootless).0, Verdict::Unknowable);
}

/// LIV-9: numbers that no process can have are held, not dead.
#[test]
fn a_malformed_record_is_not_dead() {
    let (_dir, host) = system();
    let whole = host.bearing(ProcessChoice::Itself).expect("recorded");
    for pid in [0, i32::MAX as u32 + 1, u32::MAX] {
        let malformed = with_process(&whole, |process| process.pid = pid);
        let found = verdict(&host, &malformed);
        assert_eq!(
            found,
            (Verdict::Unknowable, vec![Proof::ProbeFailed]),
            "{pid}"
        );
        let refused = host.bearing(ProcessChoice::Pid(pid)).expect_err("no pid");
        assert!(
            matches!(refused, HostError::NoProcessId { .. }),
            "{refused}"
        );
    }
}

/// LIV-16, C01: after a kill the lock is free and the holder dead at once, with nothing cleaned up; the file that
/// is left means nothing.
#[test]
fn a_kill_needs_no_clean_up() {
    const TEST: &str = "host::a_kill_needs_no_clean_up";
    if let Some(path) = actors::part() {
        let file = std::fs::File::create(path).expect("made");
        file.lock().expect("locked");
        actors::answer("locked");
        loop {
            std::thread::park();
        }
    }
    let (dir, host) = system();
    let lock = dir.path().join("lock");
    let mut holder = Running::command(&mut actors::actor(&[], TEST, lock.to_str().expect("text")));
    assert_eq!(holder.next_answer(), "locked");
    let record = record(&host, holder.pid());
    let file = std::fs::File::open(&lock).expect("there");
    assert!(file.try_lock().is_err());
    assert_verdict(&host, &record, Verdict::Alive);
    holder.end();
    assert_verdict(&host, &record, Verdict::Dead);
    assert!(file.try_lock().is_ok());
    assert!(lock.exists());
}
