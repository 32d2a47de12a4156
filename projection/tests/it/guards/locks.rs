//! Lock files that git left, with real processes at them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_log::storage::Trust;
use tenure_projection::guards::{
    Doubt, GitRepository, GuardError, Kept, LockFile, LockVerdict, Locks, judge_lock, locks,
    owners, unlock,
};
use tenure_projection::host::{Hold, Opener, Openers, System};

use crate::actors::{self, Running};
use crate::git::{commit, git};

fn system() -> (tempfile::TempDir, System) {
    let dir = tempfile::tempdir().expect("a directory");
    let system = System::new(dir.path());
    (dir, system)
}

/// A repository `r` with a commit and a linked worktree `w`.
struct Ground {
    dir: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let ground = Self { dir };
        fs::create_dir(ground.at("r")).expect("made");
        git(&ground.at("r"), &["init", "-q"]);
        commit(&ground.at("r"));
        git(&ground.at("r"), &["worktree", "add", "-q", "../w"]);
        ground
    }

    fn at(&self, path: &str) -> PathBuf {
        let root = self.dir.path().canonicalize().expect("it is there");
        root.join(path)
    }

    fn repository(&self) -> GitRepository {
        GitRepository::at(&self.at("r")).expect("a repository")
    }

    fn locks(&self) -> Locks {
        locks(&system().1, &self.repository()).expect("they are listed")
    }

    /// The only lock there is.
    fn lock(&self) -> LockFile {
        let locks = self.locks();
        assert_eq!(locks.found.len(), 1, "{locks:?}");
        locks.found.into_iter().next().expect("one")
    }

    fn leave(&self, path: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(&path, "").expect("written");
        path
    }
}

/// Whether every process of the machine is seen from here; says so if not.
fn sees_all(test: &str, lock: &LockFile) -> bool {
    let inner = lock.verdict == LockVerdict::Unsure(Doubt::InnerNamespace);
    if inner {
        actors::skip(test, "this is a pid namespace inside another");
    }
    !inner
}

fn opener(hold: Hold) -> Opener {
    Opener {
        pid: 7,
        name: "git".into(),
        hold,
    }
}

/// GIT-4, GIT-5: every combination of what can be seen of a lock gives the row that the table names, and a lock is
/// left only where nobody is at it and there is no doubt at all.
#[test]
fn every_combination_of_a_lock_is_judged_as_the_table_says() {
    let trusts = [
        None,
        Some(Trust::Durable),
        Some(Trust::Memory),
        Some(Trust::Doubtful),
    ];
    let holders = [
        Vec::new(),
        vec![opener(Hold::Open)],
        vec![opener(Hold::AtWork)],
    ];
    let mut left = 0;
    for found in &holders {
        for ours in [true, false] {
            for unseen in [0, 1, 9] {
                for inner in [true, false] {
                    for trust in trusts {
                        let seen = Openers {
                            found: found.clone(),
                            unseen,
                            inner,
                        };
                        let local = matches!(trust, Some(Trust::Durable | Trust::Memory));
                        let doubts = [
                            (!ours).then_some(Doubt::ForeignUser),
                            (unseen > 0).then_some(Doubt::Unseen(unseen)),
                            inner.then_some(Doubt::InnerNamespace),
                            (!local).then_some(Doubt::SharedFileSystem),
                        ];
                        let expected = match doubts.into_iter().flatten().next() {
                            _ if !found.is_empty() => LockVerdict::Held(found.clone()),
                            Some(doubt) => LockVerdict::Unsure(doubt),
                            None => LockVerdict::Left,
                        };
                        left += usize::from(expected == LockVerdict::Left);
                        assert_eq!(judge_lock(ours, seen, trust), expected);
                    }
                }
            }
        }
    }
    assert_eq!(left, 2, "on two kinds of file system");
}

/// GIT-4, GIT-6, D08: locks of both worktrees, of refs loose and packed, of reflogs; with path, length, age and owner.
#[test]
fn locks_of_every_worktree_and_of_refs_are_found() {
    let ground = Ground::new();
    assert_eq!(ground.locks(), Locks::default());
    let all = [
        "r/.git/HEAD.lock",
        "r/.git/config.lock",
        "r/.git/index.lock",
        "r/.git/logs/refs/heads/main.lock",
        "r/.git/packed-refs.lock",
        "r/.git/refs/heads/deep/down/topic.lock",
        "r/.git/refs/stash.lock",
        "r/.git/worktrees/w/HEAD.lock",
        "r/.git/worktrees/w/index.lock",
    ];
    let paths: Vec<PathBuf> = all.iter().map(|path| ground.leave(path)).collect();
    fs::write(&paths[2], "1234567").expect("written");
    let listed = ground.locks();
    let found: Vec<&PathBuf> = listed.found.iter().map(|lock| &lock.path).collect();
    assert_eq!(found, paths.iter().collect::<Vec<_>>());
    assert!(!listed.cut);
    let index = &listed.found[2];
    assert_eq!(index.bytes, 7);
    assert_eq!(index.uid, rustix::process::geteuid().as_raw());
    assert!(
        (0..60_000_000).contains(&index.age_micros),
        "{}",
        index.age_micros
    );
    // From the other worktree it is the same repository.
    let other = GitRepository::at(&ground.at("w")).expect("a repository");
    assert_eq!(other.top, ground.at("w"));
    assert_eq!(other.worktrees, ground.repository().worktrees);
    assert_eq!(
        locks(&system().1, &other).expect("listed").found.len(),
        all.len()
    );
}

/// GIT-4: a lock that lies in the future has a negative age, and is judged as any other (LIV-11).
#[test]
fn a_lock_from_the_future_is_no_younger_in_law() {
    let ground = Ground::new();
    let path = ground.leave("r/.git/index.lock");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(7200);
    File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_modified(later))
        .expect("set");
    let lock = ground.lock();
    assert!(lock.age_micros < -7_000_000_000, "{}", lock.age_micros);
    if sees_all("a_lock_from_the_future_is_no_younger_in_law", &lock) {
        assert_eq!(lock.verdict, LockVerdict::Left);
    }
}

/// GIT-4, GIT-5, D08: whoever has it open holds it, with pid and name; once he is gone it was left, and can be removed.
#[test]
fn a_lock_is_held_while_a_process_has_it_open() {
    const TEST: &str = "guards::locks::a_lock_is_held_while_a_process_has_it_open";
    let ground = Ground::new();
    let path = ground.leave("r/.git/index.lock");
    let holder = Running::command(
        Command::new("sh")
            .args(["-c", "exec 9< \"$0\"; exec sleep 600"])
            .arg(&path),
    );
    let holds = |lock: &LockFile| match &lock.verdict {
        LockVerdict::Held(by) => by.clone(),
        other => panic!("not held: {other:?}"),
    };
    // It has to get so far.
    while !matches!(&ground.lock().verdict, LockVerdict::Held(by) if by[0].name == "sleep") {
        std::thread::yield_now();
    }
    let by = holds(&ground.lock());
    assert_eq!(
        (by.len(), by[0].pid, by[0].hold),
        (1, holder.pid(), Hold::Open)
    );
    let (_dir, host) = system();
    let kept = unlock(&host, &ground.repository(), &path).expect("asked");
    assert!(matches!(kept, Err(Kept::Judged(_))), "{kept:?}");
    assert!(path.exists());
    // Stopped is not gone.
    holder.stop();
    assert_eq!(holds(&ground.lock())[0].pid, holder.pid());
    holder.end();
    let lock = ground.lock();
    if !sees_all(TEST, &lock) {
        return;
    }
    assert_eq!(lock.verdict, LockVerdict::Left);
    let removed = unlock(&host, &ground.repository(), &path).expect("asked");
    assert_eq!(removed.expect("it was left").0.path, path);
    assert!(!path.exists());
    git(&ground.at("r"), &["add", "f"]);
    let again = unlock(&host, &ground.repository(), &path).expect("asked");
    assert_eq!(again, Err(Kept::NoLock));
    // Nothing but the file of its own lock is left behind.
    let names = |at: &Path| -> Vec<String> {
        let entries = fs::read_dir(at).expect("listed");
        let names = entries.map(|e| {
            e.expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        });
        names.filter(|name| name.starts_with("tenure-")).collect()
    };
    assert_eq!(names(&ground.at("r/.git")), ["tenure-unlock"]);
}

/// GIT-5: while git waits for an editor or a hook it has closed its lock, and holds it all the same.
#[test]
fn a_lock_is_held_while_git_waits_for_a_hook() {
    let ground = Ground::new();
    let hook = ground.at("r/.git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().expect("hooks")).expect("made");
    let waiting = ground.at("waiting");
    // It outlives a git that is killed, so it ends with the directory.
    let waits = waiting.display();
    let script = format!("#!/bin/sh\n: > {waits}\nwhile [ -e {waits} ]; do sleep 0.1; done\n");
    fs::write(&hook, script).expect("written");
    actors::open_to_all(&hook);
    fs::write(ground.at("r/f"), "2").expect("written");
    let mut command = Command::new("git");
    command
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "commit",
            "-qam",
            "second",
        ])
        .current_dir(ground.at("r"));
    let committing = Running::command(&mut command);
    while !waiting.exists() {
        std::thread::yield_now();
    }
    let lock = ground.lock();
    assert_eq!(lock.path, ground.at("r/.git/index.lock"));
    let LockVerdict::Held(by) = &lock.verdict else {
        panic!("{lock:?}")
    };
    assert!(
        by.iter()
            .any(|o| o.pid == committing.pid() && o.hold == Hold::AtWork),
        "{by:?}"
    );
    let (_dir, host) = system();
    let kept = unlock(&host, &ground.repository(), &lock.path).expect("asked");
    assert!(matches!(kept, Err(Kept::Judged(_))), "{kept:?}");
    assert!(lock.path.exists());
}

/// GIT-5: only lock files of the repository are removed, whatever is named; a link is not followed.
#[test]
fn nothing_but_a_lock_of_this_repository_is_removed() {
    let ground = Ground::new();
    let (_dir, host) = system();
    let stranger = ground.leave("elsewhere/index.lock");
    let plain = ground.leave("r/notes.lock");
    for path in [
        &stranger,
        &plain,
        &ground.at("r/.git/HEAD"),
        &ground.at("r/f"),
    ] {
        let kept = unlock(&host, &ground.repository(), path).expect("asked");
        assert_eq!(kept, Err(Kept::NoLock), "{path:?}");
        assert!(path.exists());
    }
    let link = ground.at("r/.git/config.lock");
    std::os::unix::fs::symlink(ground.at("r/f"), &link).expect("linked");
    if sees_all(
        "nothing_but_a_lock_of_this_repository_is_removed",
        &ground.lock(),
    ) {
        let removed = unlock(&host, &ground.repository(), &link).expect("asked");
        assert!(removed.is_ok());
        assert!(ground.at("r/f").exists() && link.symlink_metadata().is_err());
    }
}

/// GIT-5: of many that would remove one lock, one does; none takes a lock that git made since.
#[test]
fn of_many_who_remove_one_lock_one_does() {
    let ground = Ground::new();
    let path = ground.leave("r/.git/index.lock");
    if !sees_all("of_many_who_remove_one_lock_one_does", &ground.lock()) {
        return;
    }
    let done: usize = std::thread::scope(|scope| {
        let one = || {
            let (_dir, host) = system();
            unlock(&host, &ground.repository(), &path).is_ok_and(|answer| answer.is_ok())
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
        threads
            .into_iter()
            .map(|t| usize::from(t.join().expect("it ends")))
            .sum()
    });
    assert_eq!(done, 1);
}

/// GIT-4: more than one user in one repository is said, each with something that is theirs; another user's lock is
/// judged by root and by nobody else.
#[test]
fn more_than_one_user_in_a_repository_is_said() {
    const TEST: &str = "guards::locks::more_than_one_user_in_a_repository_is_said";
    if let Some(path) = actors::part() {
        let repository = GitRepository::at(Path::new(&path)).expect("a repository");
        let (_dir, host) = system();
        let found = locks(&host, &repository).expect("listed").found;
        return actors::answer(&format!("{:?}", found[0].verdict));
    }
    let ground = Ground::new();
    let us = rustix::process::geteuid().as_raw();
    let alone = owners(&ground.repository(), &ground.locks()).expect("asked");
    assert_eq!(alone.keys().collect::<Vec<_>>(), [&us]);
    if !actors::is_root() {
        return actors::skip(TEST, "needs root, to make another user's file");
    }
    let path = ground.leave("r/.git/index.lock");
    std::os::unix::fs::chown(&path, Some(1234), Some(1234)).expect("given away");
    let both = owners(&ground.repository(), &ground.locks()).expect("asked");
    assert_eq!(both.keys().collect::<Vec<_>>(), [&0, &1234]);
    assert_eq!(both[&1234], path);
    assert_eq!(ground.lock().uid, 1234);
    actors::open_to_all(ground.dir.path());
    let seen = actors::play_as_nobody(&[], TEST, &ground.at("r").to_string_lossy());
    assert_eq!(seen, "Unsure(ForeignUser)");
}

/// GIT-5: from inside a container the processes outside are not seen, so nothing is ever left.
#[test]
fn inside_a_pid_namespace_nothing_is_known_to_be_left() {
    const TEST: &str = "guards::locks::inside_a_pid_namespace_nothing_is_known_to_be_left";
    const WRAP: [&str; 4] = ["unshare", "-p", "-f", "--mount-proc"];
    if let Some(path) = actors::part() {
        let repository = GitRepository::at(Path::new(&path)).expect("a repository");
        let (_dir, host) = system();
        let found = locks(&host, &repository).expect("listed").found;
        return actors::answer(&format!("{:?}", found[0].verdict));
    }
    if !(actors::is_root() && actors::can(&["unshare", "-p", "-f", "--mount-proc", "true"])) {
        return actors::skip(TEST, "needs root and unshare");
    }
    let ground = Ground::new();
    ground.leave("r/.git/index.lock");
    let seen = actors::play(&WRAP, TEST, &ground.at("r").to_string_lossy());
    assert_eq!(seen, "Unsure(InnerNamespace)");
}

/// GIT-14, D09: looking changes nothing: not the index, not its time, no file anywhere; and what is no repository is said.
#[test]
fn looking_for_locks_changes_nothing() {
    let ground = Ground::new();
    // Git would refresh the index now.
    fs::write(ground.at("r/f"), "1").expect("written");
    let index = ground.at("r/.git/index");
    let look = || {
        let meta = index.metadata().expect("there");
        let names = git(&ground.at("r"), &["rev-parse", "--git-dir"]);
        (
            fs::read(&index).expect("read"),
            meta.modified().expect("told"),
            names,
        )
    };
    let before = look();
    assert_eq!(ground.locks(), Locks::default());
    owners(&ground.repository(), &Locks::default()).expect("asked");
    assert_eq!(look(), before);
    let nowhere = GitRepository::at(ground.dir.path());
    assert!(
        matches!(nowhere, Err(GuardError::NoCheckout { .. })),
        "{nowhere:?}"
    );
}
