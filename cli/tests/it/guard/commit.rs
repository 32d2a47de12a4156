//! What git is told, and what it may not do.

use std::fs;
use std::process::Command;

use super::Ground;

/// GIT-9, GIT-14, DSC-1: a sweeping add takes another session's path along: whose it is is said, with who that is, how to leave
/// it out, and that this is no lock. The commit goes on.
#[test]
fn whose_paths_a_commit_takes_along_is_said() {
    let ground = Ground::new();
    ground.tenure("guard install").ended(0);
    ground.write("shared/a", "2");
    ground.write("shared/new file", "2");
    ground.write("own/b", "2");
    ground.git("add -A");
    let said = ground.under("api@1", "commit -qm sweep").ended(0).err;
    for part in [
        "foreign 2 paths of web: codex, pid",
        "alive",
        "declared by d1",
        "  shared/a\n",
        "  shared/new file\n",
        "Stage by explicit path",
        "git reset -q -- shared/a 'shared/new file'",
        "git's own locks",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("own/b"), "{said}");
    // Its own session is told nothing, and whoever presents no token is told as anybody else.
    ground.write("shared/a", "3");
    assert_eq!(ground.under("web@1", "commit -qam own").ended(0).err, "");
    ground.write("shared/a", "4");
    assert!(
        ground
            .try_git("commit -qam person")
            .ended(0)
            .err
            .contains("of web")
    );
    ground.write("own/b", "5");
    assert_eq!(ground.under("api@1", "commit -qam alone").ended(0).err, "");
}

/// GIT-10: what counts is the checkout that is committed to, not where the caller is; a linked worktree is another.
#[test]
fn the_checkout_of_the_paths_counts_and_not_the_callers_directory() {
    let ground = Ground::new();
    ground.git("worktree add -q ../w");
    ground.tenure("guard install --policy refuse").ended(0);
    let outside = ground.user.path().to_owned();
    let commit = |dir: &str| {
        fs::write(ground.at(dir).join("shared/new"), "x").expect("written");
        let run = |line: &str| {
            let mut command = ground.command_in(&outside, line);
            crate::terminal::Terminal::finish(command.env("TENURE_TOKEN", "api@1"))
        };
        run(&format!("-C {dir} add shared/new"));
        run(&format!("-C {dir} commit -qm new"))
    };
    let refused = commit("r").ended(1);
    assert!(refused.err.contains("shared/new"), "{}", refused.err);
    assert_eq!(commit("w").ended(0).err, "");
}

/// The policy `refuse` keeps a commit from being made, and says the ways out; what was staged stays staged.
#[test]
fn a_policy_refuses() {
    let ground = Ground::new();
    ground.tenure("guard install --policy refuse").ended(0);
    ground.write("shared/a", "2");
    let head = ground.head();
    let refused = ground.under("api@1", "commit -qam sweep").ended(1);
    assert!(
        refused.err.contains("refused: the policy here is refuse"),
        "{}",
        refused.err
    );
    assert_eq!(ground.head(), head);
    // Taken out, the rest passes.
    ground.write("own/b", "2");
    ground.git("add -A");
    ground.git("reset -q -- shared/a");
    assert_eq!(ground.under("api@1", "commit -qm own").ended(0).err, "");
}

/// DSC-11: warn-once stops the first commit that takes another session's paths along, and its repeat goes on, once for each
/// holder and each session that it meets; that it was said is in the log. Without a token nobody is remembered.
#[test]
fn warn_once_stops_the_first_and_lets_the_repeat_go_on() {
    let ground = Ground::new();
    let us = std::process::id();
    ground.tenure("guard install --policy warn-once").ended(0);
    ground.write("shared/a", "2");
    let first = ground.under("api@1", "commit -qam again").ended(1).err;
    assert!(
        first.contains("refused this once") && first.contains("of web"),
        "{first}"
    );
    assert_eq!(
        ground.user.list("log --kind shown").len(),
        1,
        "that it was said is on record"
    );
    let repeat = ground.under("api@1", "commit -qam again").ended(0).err;
    assert!(repeat.contains("of web"), "{repeat}");
    ground.write("shared/a", "3");
    ground.under("api@1", "commit -qam later").ended(0);
    assert_eq!(ground.user.list("log --kind shown").len(), 1, "said once");
    // Another holder has not been told.
    ground
        .user
        .play(&format!("adopt api --force --reason test --pid {us}"));
    ground.write("shared/a", "4");
    ground.under("api@2", "commit -qam new").ended(1);
    ground.under("api@2", "commit -qam new").ended(0);
    ground.write("shared/a", "5");
    ground.try_git("commit -qam nobody").ended(0);
}

/// DSC-11: a policy of the ledger holds although the hook has none, by the longest scope; the stricter of both counts.
#[test]
fn the_policies_of_the_ledger_hold_at_a_commit() {
    let ground = Ground::new();
    ground.tenure("guard install").ended(0);
    ground.write("shared/a", "2");
    ground.user.play("policy set refuse --scope r/shared");
    let refused = ground.under("api@1", "commit -qam sweep").ended(1).err;
    assert!(refused.contains("the policy here is refuse"), "{refused}");
    assert_eq!(ground.user.list("refusals api").len(), 1, "it is recorded");
    ground.user.play("policy set disclose --scope r/shared/a");
    ground.under("api@1", "commit -qam sweep").ended(0);
    ground.tenure("guard install --policy refuse").ended(0);
    ground.write("shared/a", "3");
    ground.under("api@1", "commit -qam sweep").ended(1);
}

/// GIT-2: whoever is provably dead stops nobody, and is reported as stale.
#[test]
fn a_dead_holder_stops_nobody() {
    let ground = Ground::bare();
    let mut holder = Command::new("sleep").arg("600").spawn().expect("it runs");
    ground.user.play(&format!(
        "register gone --pid {}
         dispatch item --to gone --write r/shared
         accept d1 --as gone@1",
        holder.id()
    ));
    ground.tenure("guard install --policy refuse").ended(0);
    ground.write("shared/a", "2");
    ground.try_git("commit -qam living").ended(1);
    holder.kill().expect("killed");
    holder.wait().expect("reaped");
    let said = ground.try_git("commit -qam dead").ended(0).err;
    assert!(
        said.contains("stale 1 path of gone") && said.contains("provably dead"),
        "{said}"
    );
}

/// GIT-12: more deletions of others' paths than the threshold are refused under any policy; at the threshold they are said.
#[test]
fn mass_deletions_of_others_paths_have_to_be_confirmed() {
    let ground = Ground::new();
    for n in 0..8 {
        ground.write(&format!("shared/many/{n}"), "1");
        ground.write(&format!("own/many/{n}"), "1");
    }
    ground.git("add .");
    ground.git("commit -qm many");
    ground.tenure("guard install --deletions-max 3").ended(0);
    // One's own are nobody's business.
    ground.git("rm -rq own/many");
    assert_eq!(ground.under("api@1", "commit -qm own").ended(0).err, "");
    ground.git("rm -q shared/many/0 shared/many/1 shared/many/2");
    let said = ground.under("api@1", "commit -qm three").ended(0).err;
    assert!(
        said.contains("foreign 3 paths") && said.contains("(deleted)"),
        "{said}"
    );
    ground.git("rm -rq shared/many");
    ground.git("reset -q");
    ground.git("checkout -q .");
    ground.git("rm -q shared/many/3 shared/many/4 shared/many/5 shared/many/6");
    let head = ground.head();
    let refused = ground.under("api@1", "commit -qm four").ended(1).err;
    assert!(
        refused.contains("refused: 4 of their paths would be deleted, at most 3"),
        "{refused}"
    );
    assert_eq!(ground.head(), head);
    let mut confirmed = ground.command("commit -qm four");
    confirmed
        .env("TENURE_TOKEN", "api@1")
        .env("TENURE_GUARD_BYPASS", "agreed with web");
    crate::terminal::Terminal::finish(&mut confirmed).ended(0);
    assert_ne!(ground.head(), head);
}

/// GIT-13, AUD-3: a guard is passed by an explicit variable with a reason, and that is in the log with actor, token, checkout
/// and what had been said. An empty reason, or nothing to pass, is no bypass.
#[test]
fn a_bypass_is_explicit_and_recorded() {
    let ground = Ground::new();
    ground.tenure("guard install --policy refuse").ended(0);
    let commit = |reason: &str, token: &str| {
        let mut command = ground.command("commit -qam passed");
        command
            .env("TENURE_GUARD_BYPASS", reason)
            .env("TENURE_TOKEN", token);
        crate::terminal::Terminal::finish(&mut command)
    };
    ground.write("own/b", "2");
    commit("not needed", "api@1").ended(0);
    ground.write("shared/a", "2");
    commit(" ", "api@1").ended(1);
    assert!(ground.user.list("log --kind guard-bypassed").is_empty());
    let said = commit("web agreed", "api@1").ended(0).err;
    assert!(said.contains("recorded at position"), "{said}");
    let events = ground.user.list("log --kind guard-bypassed");
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!(event["reason"], "web agreed");
    assert_eq!(
        (&event["session"], &event["generation"]),
        (&"api".into(), &1.into())
    );
    assert_eq!(
        (&event["hook"], &event["actor"]),
        (&"pre-commit".into(), &"tester".into())
    );
    assert_eq!(event["said"], "foreign 1 of web");
    assert_eq!(event["checkout"], ground.at("r").to_string_lossy().as_ref());
    // Who is superseded passes nothing by saying so.
    let us = std::process::id();
    ground
        .user
        .play(&format!("adopt api --force --reason test --pid {us}"));
    ground.write("shared/a", "3");
    let stale = commit("still me", "api@1").ended(1).err;
    assert!(stale.contains("api@1 is not current"), "{stale}");
    assert_eq!(ground.user.list("log --kind guard-bypassed").len(), 1);
    // What cannot be recorded is not passed.
    let store = ground.user.store();
    fs::rename(&store, ground.at("gone")).expect("moved");
    commit("web agreed", "api@2").ended(1);
}

/// REG-9, E01: a stale generation moves no ref, by whatever command, with --no-verify or without; a current one does,
/// and a fetch is nobody's business.
#[test]
fn a_stale_generation_moves_no_ref() {
    let ground = Ground::new();
    ground.tenure("guard install").ended(0);
    ground.git("clone -q . ../origin");
    ground.git("remote add origin ../origin");
    let us = std::process::id();
    ground.write("own/b", "2");
    ground.under("api@1", "commit -qam mine").ended(0);
    ground.under("api@1", "branch current").ended(0);
    ground
        .user
        .play(&format!("adopt api --force --reason hangs --pid {us}"));
    let refs = ground.git("for-each-ref");
    ground.write("own/b", "3");
    for line in [
        "commit -qam late",
        "commit -qam late --no-verify",
        "branch late",
        "branch -D current",
        "tag late",
        "update-ref refs/heads/main HEAD~1",
        "stash",
        "checkout -q -b late",
        "reset -q --soft HEAD~1",
        "symbolic-ref HEAD refs/heads/current",
    ] {
        let late = ground.under("api@1", line);
        assert_ne!(late.code, 0, "{line}");
        assert!(
            late.err.contains("api@1 is not current (superseded)"),
            "{line}: {}",
            late.err
        );
        assert!(
            late.err.contains("by tester: hangs"),
            "{line}: {}",
            late.err
        );
    }
    assert_eq!(ground.git("for-each-ref"), refs);
    assert_eq!(ground.git("symbolic-ref HEAD"), "refs/heads/main\n");
    ground.under("api@1", "fetch -q origin").ended(0);
    ground.under("api@2", "branch fresh").ended(0);
    ground.try_git("branch nobody").ended(0);
    // Never issued and retired are not current either.
    assert!(
        ground
            .under("api@9", "branch never")
            .err
            .contains("(never-issued)")
    );
    ground.user.play("retire api@2");
    assert!(
        ground
            .under("api@2", "branch gone")
            .err
            .contains("(retired)")
    );
}

/// Git is never held up: without a store, on a damaged one, under a token of another store or an unreadable file, without the
/// program. That nothing was checked is said, and the policy decides.
#[test]
fn whoever_cannot_ask_lets_git_go_on_or_not_as_the_policy_says() {
    let ground = Ground::new();
    let store = ground.user.store();
    let aside = ground.at("aside");
    let tries = |policy: &str, what: &str, token: Option<&str>, code: i32| {
        let mut command = ground.command("commit -q --allow-empty -m blind");
        if let Some(token) = token {
            command.env("TENURE_TOKEN_FILE", token);
        }
        let ran = crate::terminal::Terminal::finish(&mut command).ended(code);
        assert!(
            ran.err.contains("nothing was checked"),
            "{what}: {}",
            ran.err
        );
        assert!(
            ran.err.contains(&format!("policy {policy}")),
            "{what}: {}",
            ran.err
        );
    };
    fs::write(ground.at("foreign"), "stranger@1\n").expect("written");
    let foreign = ground.at("foreign").to_string_lossy().into_owned();
    for (policy, code) in [("disclose", 0), ("refuse", 1)] {
        ground
            .tenure(&format!("guard install --policy {policy}"))
            .ended(0);
        ground.try_git("commit -q --allow-empty -m fine").ended(0);
        tries(policy, "a token of another store", Some(&foreign), code);
        tries(
            policy,
            "a token file that is not there",
            Some("/nowhere/token"),
            code,
        );
        fs::rename(&store, &aside).expect("moved");
        tries(policy, "no store", None, code);
        fs::create_dir_all(store.join("segments")).expect("made");
        fs::write(store.join("segments/00000000000000000001-1.seg"), "rubbish").expect("written");
        tries(policy, "a damaged store", None, code);
        fs::remove_dir_all(&store).expect("removed");
        fs::rename(&aside, &store).expect("moved back");
        let hook = ground.at("r/.git/hooks/pre-commit");
        let text = fs::read_to_string(&hook).expect("read");
        fs::write(
            &hook,
            text.replace(env!("CARGO_BIN_EXE_tenure"), "/nowhere/tenure"),
        )
        .expect("written");
        tries(policy, "no program", None, code);
    }
}

/// A store whose log is locked by a stopped writer is read all the same: a commit waits for nobody.
#[test]
fn a_busy_store_holds_no_commit_up() {
    let ground = Ground::new();
    ground.tenure("guard install --policy refuse").ended(0);
    let locks = ground.user.store().join("locks");
    let newest = fs::read_dir(&locks)
        .expect("listed")
        .map(|e| e.expect("one").path())
        .find(|path| {
            !path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .starts_with('s')
        })
        .expect("the lock for appending");
    let lock = fs::File::open(newest).expect("opened");
    lock.lock().expect("locked");
    ground.write("own/b", "2");
    assert_eq!(ground.under("api@1", "commit -qam own").ended(0).err, "");
    ground.write("shared/a", "2");
    ground.under("api@1", "commit -qam foreign").ended(1);
}

/// D09, GIT-14: looking changes nothing: after every command that looks at git, the index has the bytes and the time it had,
/// although git would refresh it now.
#[test]
fn looking_never_disturbs() {
    let ground = Ground::new();
    ground.tenure("guard install").ended(0);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(10);
    let touched = fs::File::options()
        .write(true)
        .open(ground.at("r/own/b"))
        .expect("opened");
    touched.set_modified(later).expect("set");
    let index = ground.at("r/.git/index");
    let look = || {
        let meta = index.metadata().expect("there");
        (
            fs::read(&index).expect("read"),
            meta.modified().expect("told"),
        )
    };
    let before = look();
    for line in [
        "guard status",
        "--json guard status",
        "guard test",
        "status --here",
        "shared --path .",
        "guard hook pre-commit --policy disclose",
    ] {
        ground.tenure(line).ended(0);
        assert_eq!(look(), before, "{line}");
    }
    // A negative control: without the care, git does refresh it.
    ground.git("status --porcelain");
    assert_ne!(look(), before);
}

/// GIT-7, GIT-8, D05, D07: a shell line is read for what changes others' files, and for what worktrees share; the advice says
/// what to leave alone. Looking, fetching and one's own paths meet nobody.
#[test]
fn shell_lines_are_read_for_what_changes_others() {
    let ground = Ground::new();
    ground.git("worktree add -q ../w");
    let ask = |line: &str, code: i32| {
        let mut command = ground
            .user
            .command(&["--json", "guard", "shell", line, "--as", "api@1"]);
        let ran = crate::terminal::Terminal::finish(command.current_dir(ground.at("r")));
        assert_eq!(ran.code, code, "{line}: {}{}", ran.out, ran.err);
        ran.objects()
    };
    for line in [
        "git reset --hard",
        "git checkout -- .",
        "cd .. && git -C r stash",
        "git clean -fd",
        "git restore shared/a",
        "git add -A && git commit -m x",
    ] {
        let found = ask(line, 1);
        assert_eq!(found[0]["others"][0]["session"], "web", "{line}");
        let advice = found[0]["instruction"].as_str().expect("advice");
        for part in [
            "no revert, stash, reset, clean or commit",
            "Stage by explicit path",
        ] {
            assert!(advice.contains(part), "{advice}");
        }
    }
    for line in [
        "git restore own/b",
        "git add own/b",
        "git status && git log",
        "git fetch; git push",
        "ls",
        "cd ../w && git reset --hard",
    ] {
        ask(line, 0);
    }
    // Another worktree shares refs and the stash.
    for line in [
        "cd ../w && git stash",
        "git -C ../w branch -D x",
        "git -C ../w gc",
    ] {
        let found = ask(line, 1);
        assert_eq!(found[0]["others"][0]["level"], "repository", "{line}");
    }
}
