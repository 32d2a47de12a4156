//! Real git, without anybody's settings.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs git without anybody's settings.
pub fn try_git(dir: &Path, args: &[&str]) -> Output {
    let settings = [
        "user.name=t",
        "user.email=t@example.org",
        "protocol.file.allow=always",
    ];
    let settings = settings.iter().flat_map(|setting| ["-c", setting]);
    Command::new("git")
        .args(settings)
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").expect("a path"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs")
}

/// As [`try_git`], and it has to end well; gives what it printed.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = try_git(dir, args);
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        told(&output.stderr)
    );
    told(&output.stdout)
}

/// Makes a first commit of a file `f`.
pub fn commit(dir: &Path) {
    fs::write(dir.join("f"), "1").expect("written");
    git(dir, &["add", "f"]);
    git(dir, &["commit", "-qm", "first"]);
}
