//! The store over HTTP: who is let in, and that nobody else changes anything.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Server;
use crate::terminal::Terminal;

/// A sealed store over HTTP, with the word of its askers, and `api@1` in the file `api`.
struct Web {
    user: Terminal,
    _server: Server,
    host: String,
    word: String,
}

impl Web {
    fn start(more: &[&str]) -> Self {
        let user = Terminal::new();
        user.play("init --sealed\nregister api --pid none --token-file api");
        let mut child = user
            .command(&[&["serve", "--http", "127.0.0.1:0"], more].concat())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut lines = [String::new(), String::new()];
        for line in &mut lines {
            out.read_line(line).expect("it reads");
        }
        let server = Server(child);
        let host = lines[1].split("http://").nth(1).expect("an address");
        let host = host.split(['/', ',']).next().expect("a part").to_owned();
        let word = std::fs::read_to_string(user.store().join("serve/http-token"));
        Self {
            user,
            _server: server,
            host,
            word: word.expect("it is there").trim().to_owned(),
        }
    }

    fn token(&self) -> String {
        let token = std::fs::read_to_string(self.user.file("api")).expect("it is there");
        token.trim().to_owned()
    }

    /// A request that is let in.
    fn request(&self, body: &str) -> Head {
        [
            ("", "POST /v1 HTTP/1.1".to_owned()),
            ("Host", self.host.clone()),
            ("Authorization", format!("Bearer {}", self.word)),
            ("Content-Type", "application/json".to_owned()),
            ("Content-Length", body.len().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.host).expect("it listens")
    }

    /// Sends a head and a body; the status and the object that come back.
    fn sends(&self, head: &Head, body: &str) -> (u16, Value) {
        let mut text = String::new();
        for (name, value) in head {
            match name.as_str() {
                "" => text.push_str(&format!("{value}\r\n")),
                name => text.push_str(&format!("{name}: {value}\r\n")),
            }
        }
        let mut stream = self.connect();
        // Who is refused by its head need not be read to its end.
        let _ = stream.write_all(format!("{text}\r\n{body}").as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let status = answer.split(' ').nth(1).and_then(|s| s.parse().ok());
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        let body = serde_json::from_str(body).unwrap_or(Value::Null);
        (status.unwrap_or(0), body)
    }

    fn note(&self) -> String {
        let args = ["--json", "note", "hello"];
        json!({"v": 1, "args": args, "token": self.token()}).to_string()
    }
}

type Head = Vec<(String, String)>;

/// The head of a request with one field changed, taken out, or there twice; the request line has no name.
fn set(head: &Head, name: &str, value: &str) -> Head {
    let mut head = without(head, name);
    let at = usize::from(!name.is_empty());
    head.insert(at, (name.to_owned(), value.to_owned()));
    head
}

fn without(head: &Head, name: &str) -> Head {
    let others = head.iter().filter(|(known, _)| known != name);
    others.cloned().collect()
}

fn twice(head: &Head, name: &str) -> Head {
    let known = head.iter().find(|(known, _)| known == name);
    let known = known.expect("it is there").clone();
    [&head[..], &[known]].concat()
}

/// The rows of the table, each as requests that are right but for one thing, with the status of the row.
fn refused(web: &Web, right: &Head) -> Vec<(u16, Head)> {
    let port = web.host.split(':').nth(1).expect("a port");
    let hosts = [
        "evil.example",
        &format!("evil.example:{port}"),
        &format!("127.0.0.1.evil.example:{port}"),
        "localhost",
    ]
    .map(|host| (421, set(right, "Host", host)));
    let own = format!("http://{}", web.host);
    let origins = [
        "http://evil.example",
        "null",
        &own,
        "http://here.example.evil.example",
    ];
    let origins = origins.map(|origin| (403, set(right, "Origin", origin)));
    let line = |line: &str| set(right, "", line);
    let paths = ["/", "/v1/", "/v2"].map(|path| (404, line(&format!("POST {path} HTTP/1.1"))));
    let methods = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"];
    let methods = methods.map(|method| (405, line(&format!("{method} /v1 HTTP/1.1"))));
    let words = [
        "Bearer ".to_owned(),
        web.word.clone(),
        format!("Basic {}", web.word),
        format!("Bearer {}0", web.word),
        format!("Bearer {}", &web.word[1..]),
        format!("Bearer {}", web.token()),
        "Bearer 00112233445566778899aabbccddeeff".to_owned(),
    ]
    .map(|word| (401, set(right, "Authorization", &word)));
    let kinds = [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
    ]
    .map(|kind| (415, set(right, "Content-Type", kind)));
    let others = [
        (421, without(right, "Host")),
        (421, twice(right, "Host")),
        (
            421,
            line(&format!("POST http://evil.example:{port}/v1 HTTP/1.1")),
        ),
        (401, without(right, "Authorization")),
        (401, twice(right, "Authorization")),
        (415, without(right, "Content-Type")),
        (413, set(right, "Content-Length", "9000000")),
        // The first row that is met decides.
        (
            405,
            set(&line("GET /v1 HTTP/1.1"), "Authorization", "Bearer x"),
        ),
        (
            421,
            set(&set(right, "Origin", "null"), "Host", "evil.example"),
        ),
    ];
    [
        &hosts[..],
        &origins,
        &paths,
        &methods,
        &words,
        &kinds,
        &others,
    ]
    .concat()
}

/// The table of `docs/served.md`, row by row: each request is right but for one thing, is refused with the status of its
/// row, and changes nothing. The right one is carried out.
#[test]
fn each_row_of_the_table_refuses_alone() {
    let web = Web::start(&["--allow-origin", "http://here.example"]);
    let note = web.note();
    let right = web.request(&note);
    let before = web.user.list("log").len();
    for (status, head) in refused(&web, &right) {
        let (told, answer) = web.sends(&head, &note);
        assert_eq!(told, status, "{head:?}: {answer}");
        let head_only = head[0].1.starts_with("HEAD");
        assert!(
            head_only || answer["unserved"].is_string(),
            "{head:?}: {answer}"
        );
    }
    assert_eq!(web.user.list("log").len(), before);
    let port = web.host.split(':').nth(1).expect("a port");
    for head in [
        right.clone(),
        set(&right, "Host", &format!("localhost:{port}")),
        set(&right, "Origin", "http://here.example"),
        set(&right, "Content-Type", "Application/JSON; charset=utf-8"),
    ] {
        let (told, answer) = web.sends(&head, &note);
        assert_eq!(
            (told, &answer["exit"]),
            (200, &json!(0)),
            "{head:?}: {answer}"
        );
        let said = answer["stdout"].as_str().expect("text");
        let said: Value = serde_json::from_str(said).expect("JSON");
        assert_eq!(said["schema"], "tenure.done.v1");
    }
    assert_eq!(web.user.list("log").len(), before + 4);
}

/// What is asked is judged as everywhere: a refusal is one, with its code; files of the server are neither read nor written;
/// and a grant can be asked for, used and given back over HTTP alone.
#[test]
fn requests_are_judged_as_everywhere() {
    let web = Web::start(&[]);
    let asks = |request: Value| {
        let body = request.to_string();
        web.sends(&web.request(&body), &body)
    };
    let (status, answer) = asks(json!({"v": 1, "args": ["--json", "note", "x"], "token": "api@1"}));
    assert_eq!((status, &answer["exit"]), (409, &json!(10)));
    assert!(
        answer["stdout"]
            .as_str()
            .expect("text")
            .contains("never-issued")
    );
    let before = web.user.list("log").len();
    for request in [
        json!({"v": 1, "args": ["note", "@api"], "token": web.token()}),
        json!({"v": 1, "args": ["note", "x", "--as", "@api"]}),
        json!({"v": 1, "args": ["note", "x", "--as=@/etc/passwd"]}),
        json!({"v": 1, "args": ["note", "x"], "token_file": "api"}),
        json!({"v": 1, "args": ["note", "x"], "token": web.token(), "cwd": "/tmp"}),
        json!({"v": 1, "args": ["register", "x", "--token-file", "stolen"]}),
        json!({"v": 1, "args": ["register", "x", "--token-file=stolen"]}),
        json!({"v": 1, "args": ["register", "x", "--pid", "1"]}),
        json!({"v": 1, "args": ["check", "--write", "/etc/passwd"], "token": web.token()}),
        json!({"v": 1, "args": ["who", "/etc"]}),
        json!({"v": 1, "args": ["status", "--here"]}),
        json!({"v": 1, "args": ["shared", "--path", "/etc"]}),
        json!({"v": 1, "args": ["hook"], "stdin": "{}"}),
        json!({"v": 1, "args": ["sessions"], "state": "/root"}),
        json!({"v": 1, "args": ["serve"]}),
        json!({"v": 1, "args": ["exec", "--session", "x", "--", "true"]}),
        json!({"v": 1, "args": "note"}),
        json!([]),
    ] {
        let (status, answer) = asks(request.clone());
        assert_eq!(status, 400, "{request}: {answer}");
        assert!(answer["unserved"].is_string(), "{request}: {answer}");
    }
    assert_eq!(web.user.list("log").len(), before);
    let (status, answer) = asks(json!({"v": 1, "args": ["-q", "register", "web"]}));
    assert_eq!(status, 200, "{answer}");
    let token = answer["stdout"].as_str().expect("text").trim().to_owned();
    assert!(token.starts_with("web@1~"), "{token}");
    let (status, answer) =
        asks(json!({"v": 1, "args": ["note", "-"], "token": token, "stdin": "@said"}));
    assert_eq!((status, &answer["exit"]), (200, &json!(0)), "{answer}");
    assert_eq!(
        asks(json!({"v": 1, "args": ["retire"], "token": token})).0,
        200
    );
    assert_eq!(
        asks(json!({"v": 1, "args": ["retire", "nobody", "--force", "--reason", "x"]})).0,
        404
    );
    assert_eq!(web.user.list("log --kind noted")[0]["body"], "@said");
    web.user.run("audit").ended(0);
}

/// Many who never come to the end of a request hold up nobody, and a body without a length is cut off where it is too long.
#[test]
fn slow_and_endless_requests_hold_up_nobody() {
    let web = Web::start(&[]);
    let note = web.note();
    let stalled: Vec<TcpStream> = (0..60)
        .map(|n| {
            let mut stream = web.connect();
            let head = format!("POST /v1 HTTP/1.1\r\nHost: {}\r\n", web.host);
            let whole = format!(
                "{head}Authorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{{",
                web.word
            );
            let sent = if n % 2 == 0 { &head } else { &whole };
            stream.write_all(sent.as_bytes()).expect("it is read");
            stream
        })
        .collect();
    assert_eq!(web.sends(&web.request(&note), &note).0, 200);
    let mut head = web.request("");
    head.retain(|(name, _)| name != "Content-Length");
    head.push(("Transfer-Encoding".to_owned(), "chunked".to_owned()));
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    let (status, _) = web.sends(&head, &chunk.repeat(10));
    // The answer may be lost where the rest of the request is not read.
    assert!([413, 0].contains(&status), "{status}");
    assert_eq!(web.sends(&web.request(&note), &note).0, 200);
    assert_eq!(web.user.list("log --kind noted").len(), 2);
    drop(stalled);
}

/// Nothing listens on a port unless it is asked to, at any other address than one of loopback, or for a store that is not
/// sealed.
#[test]
fn nothing_listens_unless_asked() {
    let user = Terminal::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        assert_eq!(
            user.run(&format!("serve --http {address}")).code,
            64,
            "{address}"
        );
    }
    assert_eq!(user.run("serve --http 127.0.0.1:0").code, 64);
    assert_eq!(user.run("serve --allow-origin http://a.example").code, 64);
    let server = Server::start(&user);
    let sockets = Command::new("sh")
        .args([
            "-c",
            &format!(
                "ls -l /proc/{}/fd | grep -o 'socket:\\[[0-9]*\\]' | tr -dc '0-9\\n'",
                server.0.id()
            ),
        ])
        .output()
        .expect("it lists");
    let inodes = String::from_utf8(sockets.stdout).expect("text");
    assert!(!inodes.trim().is_empty(), "the Unix socket is one");
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let open = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        for inode in inodes.lines() {
            let word = format!(" {inode} ");
            assert!(!open.contains(&word), "{table} {inode}");
        }
    }
}

/// Each request has a standard input of its own, whichever thread carries it out.
#[test]
fn every_request_has_an_input_of_its_own() {
    let web = Web::start(&[]);
    for text in ["one", "two", "three"] {
        let asked =
            json!({"v": 1, "args": ["--json", "note", "-"], "token": web.token(), "stdin": text});
        let body = asked.to_string();
        let (status, answer) = web.sends(&web.request(&body), &body);
        assert_eq!((status, &answer["exit"]), (200, &json!(0)), "{answer}");
    }
    let notes = web.user.list("log --kind noted");
    let bodies: Vec<&Value> = notes.iter().map(|note| &note["body"]).collect();
    assert_eq!(bodies, ["one", "two", "three"]);
}
