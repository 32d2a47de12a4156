//! The machine itself: its clock, its identity, and what it keeps for a user.

use std::time::{SystemTime, UNIX_EPOCH};

use tenure_core::id::Time;
use tenure_projection::host::{Host, HostError, System, state_directory};

use super::system;
use crate::actors;

#[test]
fn the_clock_counts_microseconds_since_1970() {
    let (_dir, host) = system();
    let wall = || {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        Time(i64::try_from(since.as_micros()).expect("this millennium"))
    };
    let (before, now, after) = (wall(), host.now(), wall());
    assert!(
        before <= now && now <= after,
        "{before:?} {now:?} {after:?}"
    );
}

/// C07: the name is for people; the id comes from the machine.
#[test]
fn this_process_is_named_by_its_numbers() {
    let (_dir, host) = system();
    let this = host.this();
    assert_eq!(this.pid, std::process::id());
    assert_eq!(this.uid, rustix::process::geteuid().as_raw());
    assert!(!this.name.is_empty());
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("told");
    let digits: String = boot.trim().chars().filter(|c| *c != '-').collect();
    let told: String = this
        .boot
        .expect("told")
        .0
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(told, digits);
    let (_other, elsewhere) = system();
    assert_eq!(elsewhere.this(), this, "whatever the state directory");
}

/// C11: without a machine id the host gets one of its own, once, in its state directory; where that cannot be,
/// it is known for one boot.
#[test]
fn a_machine_without_a_machine_id_keeps_one_of_its_own() {
    const TEST: &str = "host::machine::a_machine_without_a_machine_id_keeps_one_of_its_own";
    let (dir, host) = system();
    let id_of = |host: &System| u128::from_be_bytes(host.this().id.0);
    if let Some(machine) = actors::part() {
        if machine == "bare" {
            let first = id_of(&host);
            assert_eq!(id_of(&System::new(dir.path())), first, "kept");
            let (_other, elsewhere) = system();
            assert_ne!(id_of(&elsewhere), first, "made at random");
            let file = dir.path().join("blocked");
            std::fs::write(&file, "").expect("written");
            let by_boot = id_of(&System::new(&file));
            assert_eq!(id_of(&System::new(&file)), by_boot);
            assert_ne!(by_boot, first);
        }
        return actors::answer(&id_of(&host).to_string());
    }
    let namespace = ["unshare", "-m", "true"];
    if !actors::is_root() || !actors::can(&namespace) {
        return actors::skip(TEST, "needs root and mount namespaces");
    }
    if !std::path::Path::new("/etc/machine-id").exists() {
        return actors::skip(TEST, "no /etc/machine-id to hide");
    }
    let hide = r#"mount --bind /dev/null /etc/machine-id && exec "$@""#;
    let bare = actors::play(&["unshare", "-m", "sh", "-c", hide, "sh"], TEST, "bare");
    assert_ne!(bare, id_of(&host).to_string());
    let whole = actors::play(&[], TEST, "whole");
    assert_eq!(whole, id_of(&host).to_string(), "the same in every process");
}

/// With a machine id, only remembering writes.
#[test]
fn asking_writes_nothing_and_remembering_writes_once() {
    let (dir, host) = system();
    let record = host
        .bearing(tenure_projection::host::ProcessChoice::Itself)
        .expect("recorded");
    host.sight(&record);
    let entries = || std::fs::read_dir(dir.path()).expect("there").count();
    if std::fs::metadata("/etc/machine-id").is_ok_and(|meta| meta.len() > 32) {
        assert_eq!(entries(), 0);
    }
    host.remember_boot().expect("kept");
    let list = dir.path().join("tenure-host/boots");
    let first = std::fs::read(&list).expect("kept");
    host.remember_boot().expect("kept");
    assert_eq!(std::fs::read(&list).expect("kept"), first);
    assert_eq!(first.len(), 33);
}

#[test]
fn a_state_directory_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("written");
    let refused = System::new(&file)
        .remember_boot()
        .expect_err("no directory");
    let HostError::State { path, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(*path, file.join("tenure-host"));
    assert!(refused.to_string().contains("tenure-host"), "{refused}");
}

#[test]
fn the_state_directory_is_the_users() {
    const TEST: &str = "host::machine::the_state_directory_is_the_users";
    if actors::part().is_some() {
        // Nothing is written by looking, so no directory has to be there.
        assert_eq!(System::of_this_user().this().pid, std::process::id());
        return actors::answer(&format!("{:?}", state_directory()));
    }
    let cases = [
        (Some("/state"), Some("/u"), "Some(\"/state\")"),
        (None, Some("/u"), "Some(\"/u/.local/state\")"),
        (Some("state"), Some("/u"), "Some(\"/u/.local/state\")"),
        (Some(""), Some("/u"), "Some(\"/u/.local/state\")"),
        (None, Some("u"), "None"),
        (None, None, "None"),
    ];
    for (xdg, home, expected) in cases {
        let value = |name: &str, value: Option<&str>| {
            value.map_or_else(|| format!("--unset={name}"), |v| format!("{name}={v}"))
        };
        let (xdg, home) = (value("XDG_STATE_HOME", xdg), value("HOME", home));
        // Options come before assignments.
        let mut words = [xdg.as_str(), home.as_str()];
        words.sort_by_key(|word| !word.starts_with("--"));
        let found = actors::play(&["env", words[0], words[1]], TEST, "ask");
        assert_eq!(found, expected, "{words:?}");
    }
}
