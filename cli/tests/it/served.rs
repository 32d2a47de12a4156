//! A served store: the same answers over the socket as on the files, who may ask, and beginning and end.

mod http;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::console::plain;
use crate::terminal::{Ran, Terminal};

/// A server of the user's store, ended with its test.
pub struct Server(Child);

impl Server {
    /// Starts it, and waits until it serves.
    pub fn start(user: &Terminal) -> Self {
        let mut child = user
            .command(&["serve"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("it reads");
        assert!(line.starts_with("serving "), "{line}");
        Self(child)
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.0.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
    }

    fn ends(&mut self) -> Option<i32> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("it can be asked") {
                return status.code();
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn asks(user: &Terminal, request: &str) -> Value {
    let mut stream = UnixStream::connect(user.store().join("serve/socket")).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (greeting, answer) = answer.split_once('\n').expect("a greeting");
    assert_eq!(greeting, r#"{"v":1}"#);
    serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Lines of a script, each with what an argument `-` reads.
const SCRIPT: &[(&str, &str)] = &[
    (
        "register api --engine claude --label a=b --token-file api",
        "",
    ),
    ("register web --checkout . --pid none", ""),
    ("--json register two --parent @api --token-file two", ""),
    ("register api", ""),
    ("--json register api", ""),
    (
        "dispatch login --to api --write src --title T --body -",
        "do it\n",
    ),
    ("dispatch style --to web --write src/a", ""),
    ("--json accept d1 --as @api", ""),
    ("accept d2 --as web@1", ""),
    ("note - --as @api --on d1", "hello\u{1}\n"),
    ("--actor other note x --as @api", ""),
    ("observe busy --as @api --wrote src/b", ""),
    ("-q observe busy --as @api --wrote ../elsewhere", ""),
    ("send hello --to api --as web@1 --re d1", ""),
    ("deliver e3 --as @api", ""),
    ("--json ack e3 --as @api", ""),
    ("ack e3 --as web@1", ""),
    ("record - --as @api", "\u{fffd}body"),
    ("record b --as @api --expect 4", ""),
    ("branch api copy --token-file copy --label c=d", ""),
    ("revert --as @api --to 0", ""),
    ("rename web old --as web@1", ""),
    ("handoff d2 --as web@1 --to api", ""),
    ("report d1 --as @api --outcome blocked --body @body", ""),
    ("report d1 --as @missing --outcome done", ""),
    ("cancel d2 --reason no --force", ""),
    ("dispatch late --to api --idempotency-key k", ""),
    ("dispatch late --to api --idempotency-key k", ""),
    ("dispatch other --to api --idempotency-key k", ""),
    ("fail d3 --reason broke", ""),
    ("decline d4 --as @api --reason no", ""),
    ("adopt api --force --reason because --token-file api", ""),
    ("note late --as api@1", ""),
    ("--json note late --as api@1", ""),
    ("--color always note late --as api@9", ""),
    ("note x", ""),
    ("dispatch more --to api --write src", ""),
    ("accept d5 --as @api", ""),
    ("--json check @api --write src/a --write missing/b", ""),
    ("shared --path src/deep", ""),
    ("--json shared --as @api", ""),
    ("shared", ""),
    ("check @api", ""),
    ("check web@1 --write src/a", ""),
    ("retire @copy --if-idle", ""),
    ("release --as @api", ""),
    ("retire two --force --reason done", ""),
    ("log", ""),
    ("--json log", ""),
    ("--json sessions --all", ""),
    ("refusals", ""),
    ("--json refusals api", ""),
    ("-q refusals", ""),
    ("refusals nobody", ""),
    ("status", ""),
    ("--json status", ""),
    ("status --here", ""),
    ("check @api", ""),
    ("--json check web@1", ""),
    ("--color always check api@1", ""),
    ("check nobody@1", ""),
    ("check @missing", ""),
    ("work --all", ""),
    ("--json work", ""),
    ("show d1", ""),
    ("--json show e1", ""),
    ("show r1", ""),
    ("inbox api", ""),
    ("--json inbox web --pending", ""),
    ("tree api", ""),
    ("lineage copy", ""),
    ("who api", ""),
    ("who ./src", ""),
    ("--json who path:src", ""),
    ("-q who item:login", ""),
    ("who api --at 1", ""),
    ("--json who tree:api --at 3", ""),
    ("who api --at 4000", ""),
    ("why 3", ""),
    ("--json why 3", ""),
    ("outcome k", ""),
    ("--json outcome unheard-of", ""),
    ("outcome nothing", ""),
    ("--json receipt api", ""),
    ("--store elsewhere show api", ""),
];

fn played(user: &Terminal, args: &[&str], input: &str) -> Ran {
    let mut child = user
        .command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut into = child.stdin.take().expect("a pipe");
    // A command that does not read its input closes it.
    let _ = into.write_all(input.as_bytes());
    drop(into);
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints UTF-8");
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// What differs from one run to another is written out of a line: times, chains and places.
fn masked(line: &str, user: &Terminal) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else {
        return plain(line, user.path());
    };
    fn mask(value: &mut Value, of: &str) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(|value| mask(value, of)),
            Value::Object(all) => all.iter_mut().for_each(|(key, value)| mask(value, key)),
            Value::String(text) if is_time(text) => *value = json!("TIME"),
            Value::Null => {}
            value => {
                if ["receipt", "chain", "start", "hash", "prefix_hash", "store"].contains(&of) {
                    *value = json!("VARIES");
                }
            }
        }
    }
    mask(&mut value, "");
    value
        .to_string()
        .replace(&user.path().display().to_string(), "/you/project")
}

fn is_time(text: &str) -> bool {
    text.len() == 27 && text.starts_with("20") && text.ends_with('Z')
}

fn run(user: &Terminal) -> Vec<String> {
    fs::write(user.file("body"), "what was done").expect("it writes");
    let mut all = Vec::new();
    for (line, input) in SCRIPT {
        let args: Vec<&str> = line.split(' ').collect();
        let ran = played(user, &args, input);
        let text = [ran.out, ran.err].map(|text| {
            let lines = text.lines().map(|line| masked(line, user) + "\n");
            lines.collect::<String>()
        });
        all.push(format!("{line} -> {}\n{}{}", ran.code, text[0], text[1]));
    }
    all
}

/// One script on the files and over the socket: every answer, every error, every exit code and the whole log are the same,
/// byte by byte, but for times, processes and chains.
#[test]
fn the_socket_and_the_files_give_the_same_answers() {
    let files = Terminal::new();
    files.play("init");
    let on_files = run(&files);
    let served = Terminal::new();
    let mut server = Server::start(&served);
    let over_the_socket = run(&served);
    for (one, two) in on_files.iter().zip(&over_the_socket) {
        assert_eq!(one, two);
    }
    assert_eq!(on_files.len(), over_the_socket.len());
    server.signal("-TERM");
    assert_eq!(server.ends(), Some(0));
    assert!(!served.store().join("serve/socket").exists());
    served.run("audit").ended(0);
    served.run("verify").ended(0);
}

/// A change goes through the server where one is: it is recorded for the process that asked, and the server is killed
/// without a loss. Then the files are used, and a new server takes the place of the one that was killed.
#[test]
fn a_server_that_is_killed_loses_nothing() {
    let user = Terminal::new();
    let mut first = Server::start(&user);
    assert_eq!(user.run("serve").code, 75, "one server at a time");
    user.play("register api\nnote one --as api@1");
    first.0.kill().expect("it is killed");
    first.ends();
    assert!(user.store().join("serve/socket").exists());
    user.play("note two --as api@1");
    let second = Server::start(&user);
    user.play("note three --as api@1");
    let asked = json!({"v": 1, "args": ["--json", "note", "four"], "token": "api@1"});
    let answer = asks(&user, &format!("{asked}\n"));
    assert_eq!(
        (&answer["exit"], &answer["stderr"]),
        (&json!(0), &json!(""))
    );
    let said: Value = serde_json::from_str(answer["stdout"].as_str().expect("text")).expect("JSON");
    assert_eq!(said["schema"], "tenure.done.v1");
    let notes = user.list("log --kind noted");
    let bodies: Vec<&Value> = notes.iter().map(|note| &note["body"]).collect();
    assert_eq!(bodies, ["one", "two", "three", "four"]);
    drop(second);
    user.run("verify").ended(0);
}

/// What is no request, asks for something else, or comes too slowly, is told so, and nothing happens; meanwhile others are
/// answered.
#[test]
fn what_is_no_request_is_turned_away() {
    let user = Terminal::new();
    let _server = Server::start(&user);
    user.play("register api");
    let socket = user.store().join("serve/socket");
    let stalled: Vec<UnixStream> = (0..40)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).expect("it listens");
            stream.write_all(b"{\"v\":1,").expect("it is read");
            stream
        })
        .collect();
    let before = user.list("log").len();
    let request = |value: Value| format!("{value}\n");
    for line in [
        "\n".to_owned(),
        "no json\n".to_owned(),
        "[]\n".to_owned(),
        request(json!({"v": 2, "args": ["note", "x"], "token": "api@1"})),
        request(json!({"v": 1})),
        request(json!({"v": 1, "args": ["note"], "token": "api@1"})),
        request(json!({"v": 1, "args": ["verify"]})),
        request(json!({"v": 1, "args": ["exec", "--session", "x", "--", "true"]})),
        request(json!({"v": 1, "args": ["serve"]})),
        request(json!({"v": 1, "args": ["note", "x"], "token": "api@1", "cwd": "relative"})),
        request(json!({"v": 1, "args": ["note", "x"], "token": "api@1", "store": "/other"})),
        request(json!({"v": 1, "args": ["register", "x"], "bearing": "00"})),
        request(json!({"v": 1, "args": ["note", "-"], "token": "api@1", "stdin_hex": "0"})),
        "x".repeat(9 << 20),
    ] {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        // A request that is too long is not read to its end.
        let _ = stream.write_all(line.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        let told = answer.lines().nth(1).unwrap_or_default();
        assert!(
            told.starts_with("{\"unserved\":") || read.is_err(),
            "{}: {answer}",
            &line[..line.len().min(80)]
        );
    }
    let refused = json!({"v": 1, "args": ["--json", "note", "x", "--as", "api@1~00112233445566778899aabbccddeeff"]});
    assert_eq!(asks(&user, &request(refused))["exit"], 64);
    assert_eq!(user.list("log").len(), before);
    user.play("note hello --as api@1");
    let looked = asks(
        &user,
        &request(json!({"v": 1, "args": ["--json", "show", "api"]})),
    );
    assert!(
        looked["stdout"]
            .as_str()
            .expect("text")
            .contains("\"api@1\"")
    );
    drop(stalled);
}

/// Far more askers than are answered at a time, most of whom never ask: every command is carried out all the same.
#[test]
fn a_flood_keeps_nobody_from_the_store() {
    let user = Terminal::new();
    let _server = Server::start(&user);
    user.play("register api");
    let socket = user.store().join("serve/socket");
    let flood: Vec<UnixStream> = (0..300)
        .filter_map(|_| UnixStream::connect(&socket).ok())
        .collect();
    for _ in 0..5 {
        user.play("note hello --as api@1");
    }
    assert_eq!(user.list("log --kind noted").len(), 5);
    drop(flood);
}

/// A directory that others may look into is not used, and neither is a socket at which nobody answers, or somebody who
/// gives no answer at all: then it may have happened.
#[test]
fn a_door_that_is_not_ours_is_not_used() {
    let user = Terminal::new();
    user.play("register api");
    let serve = user.store().join("serve");
    fs::create_dir(&serve).expect("it is made");
    fs::set_permissions(&serve, Permissions::from_mode(0o755)).expect("it is open");
    let listener = UnixListener::bind(serve.join("socket")).expect("it listens");
    user.play("note one --as api@1");
    assert_eq!(user.run("serve").code, 77);
    fs::set_permissions(&serve, Permissions::from_mode(0o700)).expect("it is closed");
    let silent = std::thread::spawn(move || {
        let mut asked = String::new();
        for greeting in ["", "{\"v\":2}\n", "{\"v\":1}\n", "{\"v\":1}\n"] {
            let (mut stream, _) = listener.accept().expect("it comes");
            stream.write_all(greeting.as_bytes()).expect("it is read");
            // Until it asks, or goes without.
            let read = BufReader::new(stream).read_line(&mut asked);
            assert!(read.is_ok());
        }
        asked
    });
    // Nobody says anything, or something else: nothing was asked for.
    user.play("note two --as api@1");
    user.play("note three --as api@1");
    // A question is then answered from the files.
    user.play("show api");
    let unknown = user
        .run("--json note four --as api@1 --idempotency-key k")
        .ended(13);
    let said = unknown.object();
    assert_eq!(said["code"], "outcome-unknown");
    assert_eq!(said["next"][0]["command"], "tenure outcome k");
    let asked = silent.join().expect("it ends");
    let commands: Vec<Value> = asked
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .map(|request: Value| request["args"][0].clone())
        .collect();
    assert_eq!(commands, ["show", "--json"]);
    // Nobody listens any more.
    user.play("note five --as api@1");
    assert_eq!(user.list("log --kind noted").len(), 4);
}

/// A server that is stopped strands nobody: whoever comes meanwhile goes to the files, and nothing is done twice when it
/// goes on.
#[test]
fn a_server_that_is_stopped_strands_nobody() {
    let user = Terminal::new();
    let server = Server::start(&user);
    user.play("register api");
    server.signal("-STOP");
    user.play("note one --as api@1");
    user.run("check api@1").ended(0);
    user.play("adopt api --force --reason stopped");
    server.signal("-CONT");
    user.run("note two --as api@1").ended(10);
    user.play("note three --as api@2");
    let notes = user.list("log --kind noted");
    let bodies: Vec<&Value> = notes.iter().map(|note| &note["body"]).collect();
    assert_eq!(bodies, ["one", "three"]);
}

/// Tokens of sealed stores are kept below a directory of the user: an asker that has another one is not answered from the
/// server's.
#[test]
fn an_asker_with_state_of_its_own_goes_to_the_files() {
    let user = Terminal::new();
    let _server = Server::start(&user);
    let request = json!({"v": 1, "args": ["sessions"], "state": "/elsewhere"});
    let answer = asks(&user, &format!("{request}\n"));
    assert_eq!(
        answer["unserved"],
        "the state of this user is kept elsewhere"
    );
}
