//! init, register, adopt, retire, check: grants, tokens and who holds them.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::terminal::Terminal;

/// REG-1: the first thing printed is the token.
#[test]
fn register_prints_the_token_and_the_process_it_recorded() {
    let user = Terminal::new();
    let ran = user.run("register api --engine claude").ended(0);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "api@1");
    let parent = format!("pid {}", std::process::id());
    assert!(
        lines[2].starts_with("process: ") && lines[2].contains(&parent),
        "{}",
        ran.out
    );
    assert!(
        lines[3].contains("position 1") && lines[3].contains("receipt"),
        "{}",
        ran.out
    );
    assert_eq!(user.run("-q register web").ended(0).out, "web@1\n");
}

/// LIV-17, REG-16: the process is the parent by default, whoever is named with --pid, or none.
#[test]
fn the_process_is_the_one_that_was_chosen() {
    let user = Terminal::new();
    let holder = |line: &str| user.json(line)["holder"].clone();
    let me = std::process::id();
    let by_default = holder("register a");
    assert_eq!(
        (&by_default["pid"], &by_default["chosen"]),
        (&json!(me), &json!("default"))
    );
    assert_eq!(by_default["verdict"], "alive");
    let named = holder(&format!("register b --pid {me}"));
    assert_eq!(
        (&named["pid"], &named["chosen"]),
        (&json!(me), &json!("declared"))
    );
    let none = holder("register c --pid none");
    assert_eq!(
        (&none["pid"], &none["verdict"]),
        (&Value::Null, &json!("unknowable"))
    );
    user.run("register d --pid self").ended(64);
    user.run("register d --pid 0").ended(64);
}

/// The token's file is for one user alone, and is replaced as a whole.
#[test]
fn the_token_file_is_private_and_replaced() {
    let user = Terminal::new();
    let file = user.file("api.token");
    user.play("register api --token-file api.token");
    let read = || std::fs::read_to_string(&file).expect("it is there");
    assert_eq!(read(), "api@1\n");
    let mode = std::fs::metadata(&file)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    user.play("adopt api --as @api.token --token-file api.token");
    assert_eq!(read(), "api@2\n");
    user.run("adopt api --token-file api.token").ended(12);
    assert_eq!(read(), "api@2\n", "a refused adopt leaves the file");
    let left: Vec<_> = std::fs::read_dir(user.path())
        .expect("it lists")
        .filter_map(|e| e.expect("it lists").file_name().into_string().ok())
        .filter(|name| name.ends_with(".new"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    user.run("register web --token-file no/such/dir/t")
        .ended(73);
    user.run("show web").ended(66);
}

/// A token comes from --as, else TENURE_TOKEN_FILE, else TENURE_TOKEN; also for check and retire without one.
#[test]
fn tokens_come_from_the_argument_then_the_file_then_the_environment() {
    let user = Terminal::new();
    user.play("register api --token-file api.token\nregister web\nregister ops");
    let run = |line: &str, file: Option<&str>, token: Option<&str>| {
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = user.command(&words);
        file.map(|f| command.env("TENURE_TOKEN_FILE", user.file(f)));
        token.map(|t| command.env("TENURE_TOKEN", t));
        Terminal::finish(&mut command)
    };
    let said = |line, file, token| run(line, file, token).ended(0).out;
    assert!(said("check", None, Some("web@1")).starts_with("web@1"));
    assert!(said("check", Some("api.token"), Some("web@1")).starts_with("api@1"));
    assert!(said("check ops@1", Some("api.token"), Some("web@1")).starts_with("ops@1"));
    assert!(said("check @api.token", None, None).starts_with("api@1"));
    run("note x", Some("api.token"), None).ended(0);
    run("note x", Some("no.token"), None).ended(74);
    run("note x", None, Some("nonsense")).ended(64);
    run("check", None, None).ended(64);
    assert!(said("retire", None, Some("web@1")).contains("web is retired"));
}

/// A secret in an argument is refused, and not repeated in the answer.
#[test]
fn a_secret_may_not_stand_in_an_argument() {
    let user = Terminal::new();
    user.play("register api");
    for line in [
        "check api@1~hushhush",
        "note x --as api@1~hushhush",
        "retire api@1~hushhush",
    ] {
        let ran = user.run(line).ended(64);
        assert!(
            !ran.err.contains("hushhush") && ran.err.contains("@FILE"),
            "{}",
            ran.err
        );
    }
    std::fs::write(user.file("t"), "api@x~hushhush").expect("it writes");
    let ran = user.run("check @t").ended(64);
    assert!(!ran.err.contains("hushhush"), "{}", ran.err);
}

/// A01, D1: the refusal names the holder, since when, and the ways out; reading stays possible.
#[test]
fn whoever_comes_second_is_told_who_holds_and_what_to_do() {
    let user = Terminal::new();
    user.play("register api --engine claude");
    let refusal = user.run("--json register api").ended(12).object();
    assert_eq!(
        (&refusal["code"], &refusal["current"]),
        (&json!("already-active"), &json!("api@1"))
    );
    assert_eq!(refusal["holder"]["engine"], "claude");
    assert!(refusal["since"]["position"] == 1 && refusal["relation"] == "taken");
    let next: Vec<&str> = refusal["next"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|n| n["command"].as_str())
        .collect();
    assert!(
        next.contains(&"tenure adopt api --force --reason TEXT"),
        "{next:?}"
    );
    let held = user.run("adopt api").ended(12);
    assert!(
        held.err.contains("held by claude") && held.err.contains("you may:"),
        "{}",
        held.err
    );
    assert_eq!(held.out, "");
    user.play("show api");
}

/// ADO-12, REG-9: a forced adopt needs a reason; the old token is refused afterwards, and check says why.
#[test]
fn a_forced_adopt_fences_and_is_told_to_the_one_who_lost() {
    let user = Terminal::new();
    user.play("register api");
    user.run("adopt api --force").ended(64);
    user.run("adopt api --reason why").ended(64);
    let grant = user.json("adopt api --force --reason hangs --label team=core");
    assert_eq!(
        (&grant["token"], &grant["generation"]),
        (&json!("api@2"), &json!(2))
    );
    assert_eq!(grant["former"][0]["generation"], 1);
    assert_eq!(grant["labels"]["team"], "core");
    let check = user.run("--json check api@1").ended(10).object();
    assert_eq!(
        (&check["current"], &check["generation"]),
        (&json!(false), &json!(2))
    );
    assert_eq!(check["relation"], "superseded");
    let lost = &check["lost"][0];
    assert_eq!(
        (&lost["event"], &lost["reason"], &lost["forced"]),
        (&json!("adopted"), &json!("hangs"), &json!(true))
    );
    let people = user.run("check api@1").ended(10);
    assert!(
        people.out.contains("api@2 is") && people.out.contains("hangs"),
        "{}",
        people.out
    );
    user.run("check api@2").ended(0);
}

/// ADO-11: whoever presents the current token may hand over without force.
#[test]
fn the_current_token_adopts_without_force() {
    let user = Terminal::new();
    user.play("register api");
    assert_eq!(user.json("adopt api --as api@1")["token"], "api@2");
    user.run("adopt api --as api@1").ended(10);
}

/// REG-20, REG-2: retiring is idempotent; a retired session is registered, not adopted.
#[test]
fn retire_is_idempotent_and_a_retired_name_can_be_registered() {
    let user = Terminal::new();
    user.play("register api\nretire api@1 --reason over\nretire api@1");
    user.run("adopt api").ended(10);
    assert_eq!(user.json("register api")["token"], "api@2");
    user.run("retire api@1").ended(10);
    user.run("retire api --force").ended(64);
    user.play("retire api --force --reason lost");
    let session = user.json("show api");
    assert_eq!(
        (&session["state"], &session["holder"]),
        (&json!("retired"), &Value::Null)
    );
}

/// REG-3, DIS-17: the same key is the same answer.
#[test]
fn the_same_key_gives_the_first_answer_again() {
    let user = Terminal::new();
    let first = user.json("register api --pid none --idempotency-key k");
    let again = user.json("register api --pid none --idempotency-key k");
    assert_eq!(
        (&first["repeated"], &again["repeated"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(
        (&first["receipt"], &first["token"]),
        (&again["receipt"], &again["token"])
    );
    assert_eq!(user.json("outcome k")["position"], 1);
    let absent = user.run("--json outcome other").ended(1).object();
    assert_eq!(
        (&absent["outcome"], &absent["searched"]),
        (&json!("absent"), &json!(1))
    );
}

/// The store is made by init, register or exec; nothing else makes one. A second init changes nothing.
#[test]
fn a_store_is_made_once_and_only_on_purpose() {
    let user = Terminal::new();
    for line in [
        "status",
        "sessions",
        "note x --as api@1",
        "dispatch a --to b",
        "retire api@1",
    ] {
        user.run(line).ended(66);
    }
    assert!(!user.store().exists());
    let first = user.json("init other");
    assert_eq!(
        (&first["created"], &first["position"]),
        (&json!(true), &json!(0))
    );
    let again = user.json("init other");
    assert_eq!(
        (&again["created"], &again["store"]),
        (&json!(false), &first["store"])
    );
    assert!(!user.store().exists());
    let mode = std::fs::metadata(user.file("other"))
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let ran = user.run("status").ended(66);
    assert!(ran.err.contains("tenure init"), "{}", ran.err);
}

/// Without --store and TENURE_STORE the store is in the state directory, never in the working tree (LIV-19).
#[test]
fn the_default_store_is_in_the_state_directory() {
    let user = Terminal::new();
    let mut command = user.command(&["register", "api"]);
    Terminal::finish(command.env_remove("TENURE_STORE")).ended(0);
    assert!(user.file(".local/state/tenure/segments").is_dir());
    let mut command = user.command(&["register", "api"]);
    Terminal::finish(
        command
            .env_remove("TENURE_STORE")
            .env("XDG_STATE_HOME", user.file("state")),
    )
    .ended(0);
    assert!(user.file("state/tenure/segments").is_dir());
    let mut command = user.command(&["status"]);
    Terminal::finish(command.env_remove("TENURE_STORE").env_remove("HOME")).ended(78);
}
