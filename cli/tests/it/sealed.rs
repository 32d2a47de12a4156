//! Sealed stores: tokens with secrets, the files they stand in, and that no secret is anywhere else
//! (`docs/sealed.md`).

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::agents::Played;
use crate::served::Server;
use crate::terminal::{Ran, Terminal};

/// A sealed store in which `api` was granted, its token in the file `api`.
fn sealed() -> Terminal {
    let user = Terminal::new();
    user.play("init --sealed\nregister api --token-file api --pid none");
    user
}

/// What stands behind `~` in a token's file.
#[track_caller]
fn secret(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("the file is there");
    let (_, secret) = text.trim().split_once('~').expect("it has a secret");
    assert_eq!(secret.len(), 32, "{text}");
    secret.to_owned()
}

fn mode(path: &Path) -> u32 {
    let meta = fs::metadata(path).expect("it is there");
    meta.permissions().mode() & 0o777
}

/// A token's file holds the token with its secret, for this user alone, and the answer is without it. Where no file is
/// named, the answer of the grant is the one place that has the secret.
#[test]
fn the_secret_stands_in_the_file_or_in_the_one_answer() {
    let user = Terminal::new();
    let made = user.json("init --sealed");
    assert_eq!(
        (&made["created"], &made["sealed"]),
        (&json!(true), &json!(true))
    );
    let granted = user.json("register api --token-file api --pid none");
    assert_eq!(granted["token"], "api@1");
    let file = user.file("api");
    assert_eq!(mode(&file), 0o600);
    let first = secret(&file);
    user.run("note hello --as @api").ended(0);
    user.run("note hello --as api@1").ended(10);
    let told = user.run("-q register web --pid none").ended(0).out;
    let mut command = user.command(&["note", "hello"]);
    Terminal::finish(command.env("TENURE_TOKEN", told.trim())).ended(0);
    let json = user.json("register own --pid none")["token"].clone();
    assert!(
        json.as_str()
            .is_some_and(|t| t.starts_with("own@1~") && t.len() == 38)
    );
    // Whoever takes over gets another secret, and the file is replaced as a whole.
    user.play("adopt api --force --reason because --pid none --token-file api");
    assert_ne!(secret(&file), first);
    assert!(
        fs::read_to_string(&file)
            .expect("it reads")
            .starts_with("api@2~")
    );
    user.run("check @api").ended(0);
}

/// A store is sealed when it is created; one that has events is not sealed any more, and says so.
#[test]
fn a_store_is_sealed_when_it_is_created() {
    let user = Terminal::new();
    user.play("register api");
    let refused = user.run("--json init --sealed").ended(11).object();
    assert_eq!(refused["code"], "position-moved");
    assert_eq!(user.json("init")["sealed"], false);
    let user = sealed();
    user.play("init --sealed\ninit");
    assert_eq!(user.json("init")["sealed"], true);
}

/// A secret is refused in an argument: everybody on the machine can read those. What is wrong with a token that a file or
/// the environment holds is told without any of it.
#[test]
fn a_secret_in_an_argument_is_refused_and_never_repeated() {
    let user = sealed();
    let secret = secret(&user.file("api"));
    let token = format!("api@1~{secret}");
    for args in [
        &["note", "x", "--as", &token][..],
        &["check", &token],
        &["retire", &token],
        &["register", "two", "--parent", &token],
        &["adopt", "api", "--as", &token],
        &["wait", "--lost", &token],
        &["receipt", "--as", &token],
        &["release", "--as", &token],
        &["shared", "--as", &token],
        &["role", "take", "command", "--scope", "here", "--as", &token],
    ] {
        for first in [&[][..], &["--json"]] {
            let ran = user.args(&[first, args].concat());
            assert_eq!(ran.code, 64, "{args:?}");
            assert!(!(ran.out + &ran.err).contains(&secret), "{args:?}");
        }
    }
    for wrong in [
        format!("api@x~{secret}"),
        format!("api~{secret}"),
        format!("api@1~{secret}0"),
        format!("-@1~{secret}"),
        format!("@1~{secret}"),
        format!("api @1~{secret}"),
    ] {
        fs::write(user.file("wrong"), &wrong).expect("it writes");
        let by_file = user.run("note x --as @wrong");
        let mut command = user.command(&["--json", "note", "x"]);
        let by_name = Terminal::finish(command.env("TENURE_TOKEN", &wrong));
        for ran in [by_file, by_name] {
            assert_eq!(ran.code, 64, "{wrong}");
            assert!(!(ran.out + &ran.err).contains(&secret), "{wrong}");
        }
    }
}

/// Every file below a directory that has one of the secrets in it, but for those that hold tokens.
fn files_with(dir: &Path, secrets: &[String], own: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("it lists") {
        let path = entry.expect("it lists").path();
        if path.is_dir() {
            found.extend(files_with(&path, secrets, own));
            continue;
        }
        let bytes = fs::read(&path).expect("it reads");
        let has = |secret: &String| {
            let raw: Vec<u8> = (0..secret.len() / 2)
                .map(|n| u8::from_str_radix(&secret[2 * n..2 * n + 2], 16).expect("hexadecimal"))
                .collect();
            let within = |needle: &[u8]| bytes.windows(needle.len()).any(|w| w == needle);
            within(secret.as_bytes()) || within(&raw)
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if secrets.iter().any(has) && !own.contains(&&*name) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// S5: secrets stand in the files of tokens and nowhere else: in no answer of any command, no error, no log, no export, no
/// snapshot, and no file beside them.
#[test]
fn a_secret_is_printed_and_kept_nowhere_else() {
    let user = sealed();
    user.play(
        "register web --pid none --token-file web
         register two --parent @api --token-file two
         dispatch login --to api --write src --body text
         dispatch style --to web --write src/a
         accept d1 --as @api\naccept d2 --as @web
         note hello --as @api --on d1\nobserve busy --as @api --wrote src/b
         send hello --to api --as @web\nrecord a --as @api\nrecord b --as @api
         role take command --scope here --as @api
         policy set warn-once --scope src
         branch api copy --token-file copy --pid none
         register key --pid none --token-file key --idempotency-key k
         rename copy old --as @copy",
    );
    let old = secret(&user.file("api"));
    fs::copy(user.file("api"), user.file("stale")).expect("it copies");
    user.play("adopt api --force --reason because --pid none --token-file api");
    fs::write(user.file("forged"), format!("web@1~{}\n", "5".repeat(32))).expect("it writes");
    let names = ["api", "web", "two", "copy", "key", "stale", "forged"];
    let mut secrets: Vec<String> = names.map(|name| secret(&user.file(name))).to_vec();
    secrets.push(old);
    let lines = "status\nstatus --here\nsessions --all\nshow api\nshow d1\nshow e1\nshow r1\nwork --all\nshared --as @api
        check @api\ncheck @stale\ncheck @forged\nnote late --as @stale\nnote late --as @forged\ncheck --write src @api
        report d1 --as @stale --outcome done --body lost\nreport d2 --as @forged --outcome done\naccept d9 --as @api
        register api --token-file other\nregister two --parent @stale --token-file other\nadopt web --pid none
        adopt two --as @forged --token-file other\nretire @stale\nretire @forged --if-idle\nrelease --as @forged
        register key --pid none --token-file key --idempotency-key k\nregister yek --idempotency-key k2
        inbox api\nack e1 --as @forged\ndeliver e1 --as @stale\nhistory api\nlineage copy\nexport api\nexport --bundle out
        tree api\nrole list\nrole check command --scope here --as @stale\nrefusals\nrefusals api\nrefusals apply r1 --as @stale
        log\ntimeline\nwho api\nwho item:login\nwhy 1\nwhy 2\nwhy 9\nwhy 21\naudit\ndiff 1 9\nreplay --to 9\nimpact api@1\nreceipt --as @api
        outcome k\nverify\ninspect store --hex\ndoctor\nsalvage store copied\nwait --lost @stale\nrecord c --as @forged
        revert --to 0 --as @forged\nrename old x --as @stale\nhandoff d1 --as @stale --to web\nexec --session api -- true";
    for line in lines.split('\n').map(str::trim) {
        for line in [
            line.to_owned(),
            format!("--json {line}"),
            format!("-q {line}"),
        ] {
            let mut command = user.command(&line.split(' ').collect::<Vec<_>>());
            let Ran { out, err, .. } = Terminal::finish(
                command
                    .env("RUST_BACKTRACE", "full")
                    .env("RUST_LOG", "trace"),
            );
            let text = out + &err;
            for secret in &secrets {
                assert!(!text.contains(secret.as_str()), "{line}: {text}");
            }
        }
    }
    let own = [&names[..], &["key.secret", "other"]].concat();
    assert_eq!(
        files_with(user.path(), &secrets, &own),
        Vec::<String>::new()
    );
    let audited = user.run("audit").ended(0);
    assert_eq!(audited.err, "");
}

/// A call under a key keeps its secret beside the token's file, so that a repeat after a lost answer gets the same grant;
/// without a file to keep it beside, it is not made.
#[test]
fn a_grant_under_a_key_is_repeated_with_its_secret() {
    let user = sealed();
    user.run("register key --idempotency-key k").ended(64);
    let line = "register key --pid none --idempotency-key k --token-file key";
    user.play(line);
    let first = secret(&user.file("key"));
    assert_eq!(mode(&user.file("key.secret")), 0o600);
    // The answer was lost before the file was written.
    fs::remove_file(user.file("key")).expect("it is removed");
    assert_eq!(user.json(line)["repeated"], true);
    assert_eq!(secret(&user.file("key")), first);
    user.run("note hello --as @key").ended(0);
    // Another key is another grant.
    user.play("adopt key --as @key --pid none --idempotency-key k2 --token-file key");
    assert_ne!(secret(&user.file("key")), first);
    // A repeat that lost its secret is another call.
    fs::remove_file(user.file("key.secret")).expect("it is removed");
    let again = format!("--json {line}");
    assert_eq!(user.run(&again).ended(11).object()["code"], "key-reused");
}

/// A command that `exec` runs finds its token with the secret in a file of its own, and nothing of it in its arguments or
/// its environment, nor in those of `exec`.
#[test]
fn exec_hands_the_secret_over_in_a_file() {
    let user = sealed();
    let script = "echo ready; cat $TENURE_TOKEN_FILE; tr '\\0' '\\n' < /proc/$$/environ; \
        tr '\\0' '\\n' < /proc/$PPID/cmdline; tr '\\0' '\\n' < /proc/$PPID/environ; echo end; \
        tenure() { \"$PROGRAM\" \"$@\"; }; tenure note hello || exit 9; tenure check";
    let mut child = user
        .command(&["exec", "--session", "job", "--", "sh", "-c", script])
        .env("PROGRAM", env!("CARGO_BIN_EXE_tenure"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let lines: Vec<String> = lines.map(|line| line.expect("it reads")).collect();
    assert!(child.wait().expect("it ends").success(), "{lines:?}");
    let (_, secret) = lines[1].split_once('~').expect("a secret");
    let others = lines[2..].iter().filter(|line| line.contains(secret));
    assert_eq!(others.count(), 0, "{lines:?}");
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("job@1 is current")),
        "{lines:?}"
    );
}

/// The hooks of a host are processes that come and go: what one was granted, the next one can present, also after a person
/// handed the session back to the host.
#[test]
fn the_hooks_of_a_host_have_its_secret() {
    hooks_have_the_secret(&sealed());
    let user = sealed();
    let _server = Server::start(&user);
    hooks_have_the_secret(&user);
}

fn hooks_have_the_secret(user: &Terminal) {
    let top = user.path().to_str().expect("UTF-8").to_owned();
    let event = |name: &str| {
        json!({"hook_event_name": name, "session_id": "s-1", "cwd": top, "source": "startup",
        "tool_name": "Write", "tool_input": {"file_path": format!("{top}/a")}})
    };
    let mut host = Played::start(user, "claude", &[]);
    let mut other = Played::start(user, "claude", &[]);
    assert!(host.context(&event("SessionStart")).contains("s-1@1"));
    host.allows(&event("PreToolUse"));
    host.allows(&event("PostToolUse"));
    assert_eq!(user.list("log --kind observed").len(), 1);
    let adopt = |pid: u32| {
        let pid = pid.to_string();
        let args = [
            "adopt",
            "s-1",
            "--force",
            "--reason",
            "back",
            "--pid",
            &pid,
            "--token-file",
            "own",
        ];
        user.args(&args).ended(0);
    };
    adopt(other.pid());
    assert!(
        host.denies(&event("PreToolUse"))
            .contains("stale-generation")
    );
    adopt(host.pid());
    host.runs(&event("PreToolUse"));
    other.denies(&event("PreToolUse"));
    let kept = user.file(".local/state/tenure-tokens");
    assert_eq!(mode(&kept), 0o700);
    let files: Vec<_> = fs::read_dir(&kept).expect("it lists").collect();
    let modes = files
        .into_iter()
        .map(|f| mode(&f.expect("it lists").path()));
    assert_eq!(modes.collect::<Vec<_>>(), [0o600]);
    // What was kept is lost: the hook cannot present it, and the way out is a takeover.
    fs::remove_dir_all(&kept).expect("it is removed");
    user.play("policy set refuse --scope .\nregister web --pid none --checkout . --token-file web\nobserve busy --as @web --wrote a");
    assert!(
        host.denies(&event("PreToolUse"))
            .contains("this store is sealed")
    );
    adopt(host.pid());
    assert!(host.denies(&event("PreToolUse")).contains("web"));
}
