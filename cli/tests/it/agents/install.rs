//! `install` as its users meet it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::checkout;

/// What is there stays byte for byte; a second run changes nothing; taking out restores it; `--dry-run` only shows.
#[test]
fn settings_get_the_hook_and_lose_it_again() {
    let (user, _) = checkout();
    let cases = [
        (
            "claude",
            ".claude/settings.json",
            "{\n    \"model\": \"x\",\n    \"n\": 1.50,\n    \"hooks\": {\n        \"Stop\": [\n            {\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}\n        ]\n    }\n}\n",
        ),
        (
            "codex",
            ".codex/hooks.json",
            "{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[]}]}}",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            "// mine\n{\n\t\"theme\": \"dark\" // nice\n}\n",
        ),
    ];
    for (host, file, text) in cases {
        let path = user.file(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(&path, text).expect("it writes");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
        let shown = user.run(&format!("install {host} --dry-run")).ended(0);
        assert!(
            shown.out.contains("would be installed") && shown.out.contains(" hook --host "),
            "{}",
            shown.out
        );
        assert_eq!(fs::read_to_string(&path).expect("there"), text);
        let ran = user.run(&format!("install {host}")).ended(0);
        let with = fs::read_to_string(&path).expect("there");
        let added = ran.out.lines().filter(|line| line.starts_with('+'));
        assert!(added.clone().count() > 0, "{}", ran.out);
        for line in added {
            assert!(with.contains(line[2..].replace("\\t", "").trim()), "{line}");
        }
        assert!(with.contains("hook --host") && with.contains(&user.store().display().to_string()));
        assert_eq!(
            fs::metadata(&path).expect("there").permissions().mode() & 0o777,
            0o640
        );
        let again = user.run(&format!("install {host}")).ended(0);
        assert!(again.out.contains("nothing to change"), "{}", again.out);
        let other = user.json(&format!("install {host} --on-error deny"));
        assert_eq!(other["changed"], true);
        user.run(&format!("install {host} --uninstall")).ended(0);
        assert_eq!(fs::read_to_string(&path).expect("there"), text, "{host}");
        user.run(&format!("install {host} --uninstall")).ended(0);
        fs::remove_file(&path).expect("removed");
        user.run(&format!("install {host}")).ended(0);
        let made: Value =
            serde_json::from_str(&fs::read_to_string(&path).expect("made")).expect("JSON");
        assert!(
            made["hooks"]
                .as_object()
                .is_some_and(|hooks| hooks.len() >= 5),
            "{made}"
        );
        user.run(&format!("install {host} --uninstall")).ended(0);
        assert!(!path.exists(), "{host}");
    }
}

#[test]
fn a_project_has_settings_of_its_own_and_codex_may_keep_hooks_in_toml() {
    let (user, top) = checkout();
    let mut command = user.command(&["--json", "install", "claude", "--project"]);
    let ran = crate::terminal::Terminal::finish(command.current_dir(&top)).ended(0);
    assert_eq!(ran.object()["file"], format!("{top}/.claude/settings.json"));

    let config = user.file(".codex/config.toml");
    fs::create_dir_all(config.parent().expect("a parent")).expect("made");
    let text = "# mine\nmodel = \"x\"\n\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"mine\" # kept\n";
    fs::write(&config, text).expect("it writes");
    let done = user.json("install codex");
    assert_eq!(done["file"], config.display().to_string());
    let with = fs::read_to_string(&config).expect("there");
    assert!(
        with.starts_with("# mine\nmodel = \"x\"\n") && with.contains("command = \"mine\" # kept"),
        "{with}"
    );
    assert!(with.contains("[[hooks.PreToolUse]]"), "{with}");
    assert_eq!(user.json("install codex")["changed"], false);
    user.run("install codex --uninstall").ended(0);
    assert_eq!(fs::read_to_string(&config).expect("there"), text);
}

/// A file that cannot be read is named, with the place, and left alone.
#[test]
fn a_broken_file_is_named_and_not_touched() {
    let (user, _) = checkout();
    let path = user.file("s.json");
    for (host, text) in [
        ("claude", "{\"a\": 1,}\n"),
        ("claude", "// no comments here\n{}"),
        ("gemini", "{"),
        ("codex", "[1]"),
    ] {
        fs::write(&path, text).expect("it writes");
        for more in ["", " --uninstall", " --dry-run"] {
            let ran = user
                .run(&format!("install {host} --settings s.json{more}"))
                .ended(78);
            assert!(
                ran.err.contains("s.json") && ran.err.contains("not touched"),
                "{}",
                ran.err
            );
        }
        assert_eq!(fs::read_to_string(&path).expect("there"), text);
    }
    fs::write(&path, b"{\"a\": \"\xff\"}").expect("it writes");
    user.run("install claude --settings s.json").ended(78);
    let toml = user.file("c.toml");
    fs::write(&toml, "a = [").expect("it writes");
    let ran = user.run("install codex --settings c.toml").ended(78);
    assert!(ran.err.contains("line 1"), "{}", ran.err);
    // A link is followed, and stays one.
    fs::write(&path, "{\"a\": 1}").expect("it writes");
    std::os::unix::fs::symlink("s.json", user.file("link.json")).expect("made");
    user.run("install claude --settings link.json").ended(0);
    assert!(user.file("link.json").is_symlink());
    assert!(
        fs::read_to_string(&path)
            .expect("there")
            .contains("hook --host claude")
    );
}
