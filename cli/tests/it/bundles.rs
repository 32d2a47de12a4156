//! export --redact and import --into: a store without what is not to leave it, and the read-only copy made of it.

use serde_json::{Value, json};

use crate::terminal::Terminal;

fn story() -> Terminal {
    let user = Terminal::new();
    std::fs::create_dir_all(user.file("secret-place/src")).expect("it is made");
    user.play(
        "register api --label team=secret-team
         register web
         dispatch login --to api --title secret-title --write secret-place/src --body secret-body
         accept d1 --as api@1
         observe secret-status --as api@1 --wrote secret-place/src/a
         record secret-record --as api@1
         send secret-message --to web --as api@1
         adopt api --force --reason secret-reason --pid none
         report d1 --as api@2 --outcome done --body secret-report",
    );
    user.run("report d1 --as api@1 --outcome done --body secret-late")
        .ended(10);
    user
}

const CLASSES: &str = "bodies,paths,labels";

/// AUD-1: every command that only looks works on the copy, prints what was taken out as redacted, and says what it
/// says of the store.
#[test]
fn a_copy_is_looked_at_with_every_command() {
    let user = story();
    let made = user.json(&format!("export --redact {CLASSES} --output b.tnb"));
    assert_eq!(made["schema"], "tenure.bundle.v1");
    assert_eq!(made["redacted"], json!(["bodies", "paths", "labels"]));
    assert!(
        made["bodies_redacted"].as_u64().is_some_and(|n| n >= 5),
        "{made}"
    );
    let copied = user.json("import b.tnb --into copy");
    assert_eq!(copied["receipt"], made["receipt"]);
    let receipt = made["receipt"].as_str().expect("a receipt");
    for store in ["store", "copy"] {
        user.run(&format!("verify {store} --expected-head {receipt}"))
            .ended(0);
    }
    let looks = [
        "audit",
        "log",
        "timeline",
        "sessions --all",
        "show api",
        "show d1",
        "show e1",
        "show r1",
        "work --all",
        "inbox web",
        "history api",
        "lineage api",
        "tree api",
        "role list",
        "policy list",
        "refusals",
        "who api",
        "who api --at 3",
        "who item:login --at 5",
        "who tree:api",
        "why 4",
        "why 8",
        "diff 3 9",
        "replay --to 6",
        "impact api@1",
        "receipt api",
    ];
    let mut redacted = 0;
    for look in looks {
        let line = |at: &str, json: &str| user.run(&format!("{json}--store {at} {look}"));
        let (full, copy) = (line("store", "--json "), line("copy", "--json "));
        assert_eq!(full.code, copy.code, "{look}: {}{}", copy.out, copy.err);
        assert!(!copy.out.contains("secret"), "{look}: {}", copy.out);
        assert_eq!(full.out.lines().count(), copy.out.lines().count(), "{look}");
        let people = line("copy", "");
        assert_eq!(people.code, full.code, "{look}");
        assert!(!people.out.contains("secret"), "{look}: {}", people.out);
        redacted += usize::from(people.out.contains("[redacted"));
        redacted += usize::from(copy.out.contains("[redacted"));
    }
    assert!(redacted > 12, "{redacted}");
    let audit = user.json("--store copy audit");
    assert_eq!(audit["verdict"], "clean");
    assert_eq!(audit["bodies_redacted"], made["bodies_redacted"]);
    let note = user.list("--store copy log --kind recorded").remove(0);
    assert_eq!(
        (&note["body"], &note["body_redacted"]),
        (&json!("[redacted]"), &json!(true))
    );
    let stretches = user.run("inspect copy").ended(0).out;
    assert!(!stretches.contains("secret") && stretches.contains("[redacted"));
    assert!(
        !user
            .run("inspect copy --hex")
            .ended(0)
            .out
            .contains("secret")
    );
}

/// Every write says that it is a read-only copy, with exit 77, and changes no byte; what is asked by a path says why
/// it cannot be told.
#[test]
fn a_copy_is_not_written_to() {
    let user = story();
    user.play(&format!(
        "export --redact {CLASSES} --output b.tnb
         import b.tnb --into copy"
    ));
    let files = || {
        let mut all: Vec<_> = walk(&user.file("copy"));
        all.sort();
        all
    };
    let before = files();
    let writes = [
        "register new",
        "note x --as api@2",
        "adopt api --force --reason x",
        "dispatch item --to api",
        "retire api@2",
        "refusals apply r1 --as api@2",
        "store accept copied --reason x",
        "role take lead --scope hall --as api@2",
        "record x --as api@2",
        "branch api other",
    ];
    for line in writes {
        let error = user
            .run(&format!("--json --store copy {line}"))
            .ended(77)
            .object();
        assert_eq!(error["code"], "read-only-copy", "{line}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("read-only copy"), "{line}: {message}");
        assert!(error["next"][0]["command"].is_string(), "{line}");
    }
    for line in [
        "who path:secret-place",
        "who ./secret-place --at 3",
        "shared --path .",
    ] {
        let error = user
            .run(&format!("--json --store copy {line}"))
            .ended(64)
            .object();
        assert_eq!(error["code"], "unsupported", "{line}");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|m| m.contains("paths"))
        );
    }
    user.run("--store copy export api").ended(64);
    assert_eq!(files(), before);
}

fn walk(dir: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).expect("it lists") {
        let path = entry.expect("it lists").path();
        if path.is_dir() {
            all.extend(walk(&path));
        } else {
            all.push((path.clone(), std::fs::read(&path).expect("it reads")));
        }
    }
    all
}

/// Up to a position; what is left in stays as it was.
#[test]
fn a_bundle_may_end_anywhere() {
    let user = story();
    let made = user.json("export --redact labels --to 4 --output b.tnb");
    assert_eq!(
        (
            &made["position"],
            &made["bodies_redacted"],
            &made["texts_redacted"]
        ),
        (&json!(4), &json!(0), &json!(2))
    );
    user.play("import b.tnb --into copy");
    let events = user.list("--store copy log");
    assert_eq!(events.last().expect("one")["position"], 4);
    let at = |path: &str| -> Vec<Value> {
        let ran = user.run(&format!("--json --store copy who {path}"));
        ran.objects().iter().map(|w| w["session"].clone()).collect()
    };
    assert_eq!(at("./secret-place"), ["api"]);
    assert_eq!(at("./elsewhere"), [Value::Null]);
    assert_eq!(user.json("--store copy show d1")["title"], "secret-title");
    user.run("export --redact labels --to 99 --output c.tnb")
        .ended(64);
    assert!(!user.file("c.tnb").exists());
}

/// What is not meant is told apart: two kinds of export, two kinds of import, and nothing is written over.
#[test]
fn histories_and_bundles_are_not_mistaken_for_each_other() {
    let user = story();
    for line in [
        "export",
        "export api --redact bodies --output b.tnb",
        "export --redact bodies",
        "export --redact everything --output b.tnb",
        "export api --output b.tnb",
        "export api --to 3",
        "import x --into copy --name api",
    ] {
        user.run(line).ended(64);
    }
    user.play("export --redact bodies --output b.tnb");
    user.run("export --redact bodies --output b.tnb").ended(73);
    let error = user.run("--json import b.tnb").ended(64).object();
    assert_eq!(error["next"][0]["command"], "tenure import FILE --into DIR");
    let history = user.run("export api").ended(0).out;
    std::fs::write(user.file("api.jsonl"), history).expect("it is written");
    user.run("import api.jsonl --into copy").ended(64);
    assert!(!user.file("copy").exists());
    user.play("import b.tnb --into copy");
    user.run("import b.tnb --into copy").ended(73);
    let mut bytes = std::fs::read(user.file("b.tnb")).expect("it reads");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(user.file("bad.tnb"), bytes).expect("it is written");
    let error = user
        .run("--json import bad.tnb --into other")
        .ended(65)
        .object();
    assert_eq!(error["code"], "damaged");
    assert!(!user.file("other").exists());
}
