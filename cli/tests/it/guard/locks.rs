//! Lock files that git left, as people meet them.

use std::fs::{self, File};
use std::process::Command;

use serde_json::json;

use super::Ground;

/// GIT-4, GIT-5, GIT-6, D08: `guard status` lists every lock with path, age, owner and who has it; nothing is removed by looking.
#[test]
fn locks_are_listed_with_who_has_them() {
    let ground = Ground::new();
    ground.git("worktree add -q ../w");
    let (index, packed) = ("r/.git/worktrees/w/index.lock", "r/.git/packed-refs.lock");
    fs::write(ground.at(index), "12345").expect("written");
    fs::write(ground.at(packed), "").expect("written");
    let mut holder = Command::new("sleep")
        .arg("600")
        .stdin(File::open(ground.at(packed)).expect("opened"))
        .spawn()
        .expect("it runs");
    let status = ground.tenure("--json guard status").ended(1).object();
    let locks = status["locks"].as_array().expect("a list");
    let paths: Vec<&str> = locks
        .iter()
        .map(|l| l["path"].as_str().expect("a path"))
        .collect();
    assert_eq!(
        paths,
        [ground.at(packed), ground.at(index)].map(|p| p.to_string_lossy().into_owned())
    );
    assert_eq!(locks[0]["verdict"], "held");
    assert_eq!(locks[0]["held_by"][0]["pid"], holder.id());
    assert_eq!(locks[0]["held_by"][0]["open"], true);
    assert_eq!(
        (&locks[1]["bytes"], &locks[1]["uid"]),
        (&json!(5), &json!(uid()))
    );
    assert!(
        locks[1]["age_seconds"]
            .as_i64()
            .is_some_and(|age| (0..60).contains(&age))
    );
    let people = ground.tenure("guard status").out;
    assert!(
        people.contains(&format!("pid {} (sleep) has it open", holder.id())),
        "{people}"
    );
    let held = ground.tenure(&format!(
        "guard unlock {} --reason x",
        ground.at(packed).display()
    ));
    assert!(held.ended(75).err.contains("is held"));
    holder.kill().expect("killed");
    holder.wait().expect("reaped");
    assert!(ground.at(packed).exists() && ground.at(index).exists());
}

/// D08: with a lock goes who shares the index of which worktree, whether or not git can be asked who made it.
#[test]
fn whoever_shares_the_index_is_named_with_its_lock() {
    let ground = Ground::new();
    ground.git("worktree add -q ../w");
    let sharing = || ground.tenure("--json guard status").object()["sharing"].clone();
    let web = &sharing()[0];
    assert_eq!(web["session"], "web");
    assert_eq!(web["worktree"], ground.at("r").to_string_lossy().as_ref());
    assert_eq!(
        sharing().as_array().map(Vec::len),
        Some(1),
        "api works nowhere"
    );
    let line = "web shares the index of ";
    assert!(!ground.tenure("guard status").out.contains(line));
    fs::write(ground.at("r/.git/index.lock"), "").expect("written");
    ground.write("own/b", "2");
    for _ in 0..4 {
        ground.try_git("add own/b").ended(128);
    }
    let people = ground.tenure("guard status").out;
    assert!(
        people.contains(line) && people.contains("index.lock: "),
        "{people}"
    );
    assert!(ground.at("r/.git/index.lock").exists());
    ground.user.play("retire web@1");
    assert_eq!(sharing(), json!([]));
}

fn uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").expect("there").uid()
}

/// GIT-5, AUD-3: what was left is removed on request, with a reason, and that is in the log.
#[test]
fn a_lock_that_was_left_is_removed_on_request_and_recorded() {
    let ground = Ground::new();
    let lock = ground.at("r/.git/index.lock");
    fs::write(&lock, "abc").expect("written");
    ground.write("own/b", "2");
    ground.try_git("add own/b").ended(128);
    let path = lock.display();
    ground.tenure(&format!("guard unlock {path}")).ended(64);
    if ground.tenure("--json guard status").object()["locks"][0]["verdict"] == "unsure" {
        eprintln!("SKIPPED: this is a pid namespace inside another");
        return;
    }
    ground
        .tenure(&format!("guard unlock {path} --reason crashed"))
        .ended(0);
    assert!(!lock.exists());
    ground.git("add own/b");
    let events = ground.user.list("log --kind lock-removed");
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!(
        (
            &event["reason"],
            &event["bytes"],
            &event["uid"],
            &event["actor"]
        ),
        (
            &json!("crashed"),
            &json!(3),
            &json!(uid()),
            &json!("tester")
        )
    );
    assert_eq!(event["path"], lock.to_string_lossy().as_ref());
    ground
        .tenure(&format!("guard unlock {path} --reason again"))
        .ended(64);
    ground.tenure("guard unlock own/b --reason no").ended(64);
    assert!(ground.at("r/own/b").exists());
}
