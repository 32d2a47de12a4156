//! A served store: what comes over its socket and over HTTP, changed by chance.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::Value;

use super::{Stage, rest};
use crate::hammer::Dice;
use crate::mutate::change;
use crate::rig::{Figures, Order};

/// Longest that an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the answer to a request is waited for that may not be whole: the server waits for the rest of it.
const GLANCE: Duration = Duration::from_millis(200);
/// Requests of one server over each way.
const REQUESTS: u64 = 150;

/// A server, ended with its run.
struct Server {
    child: Child,
    lines: Vec<String>,
}

impl Server {
    /// One that says so many lines when it listens.
    fn start(stage: &Stage, words: &[&str], lines: usize) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(&stage.program);
        stage.surround(&mut command);
        let errors = std::fs::File::create(stage.room.path().join("errors"))?;
        let mut child = command.args(words).stderr(errors).spawn()?;
        let out = child.stdout.take().ok_or("it is piped")?;
        let said = BufReader::new(out).lines().take(lines);
        let lines = said.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { child, lines })
    }

    /// Where it listens for HTTP.
    fn address(&self) -> Option<String> {
        let rest = self.lines.last()?.split("http://").nth(1)?;
        rest.split(['/', ',']).next().map(str::to_owned)
    }

    /// What does not hold of one that was asked all that.
    fn broken(&mut self, stage: &Stage) -> Result<Option<String>, Box<dyn Error>> {
        let errors = std::fs::read_to_string(stage.room.path().join("errors"))?;
        Ok(match self.child.try_wait()? {
            Some(status) => Some(format!("the server ended with {status}: {errors}")),
            None if errors.contains("panicked") => Some(format!("the server panics: {errors}")),
            None => None,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Requests over the socket.
///
/// # Errors
/// When no server begins.
pub fn socket(stage: &Stage, seed: u64, figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    let mut server = Server::start(stage, &["serve"], 1)?;
    let mut dice = Dice::new(seed);
    let right = request("--json", "note", "web@2");
    let known: Vec<Vec<u8>> = [
        right.clone(),
        request("sessions", "--all", "web@2"),
        request("log", "--json", "web@1"),
        request("verify", "-q", ""),
        request("register", "new", ""),
    ]
    .map(String::into_bytes)
    .to_vec();
    let asked = |bytes: &[u8]| -> Result<Vec<u8>, Box<dyn Error>> {
        let mut stream = UnixStream::connect(stage.store().join("serve/socket"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // Whoever is refused by the beginning need not be read to the end.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        // A server that lets somebody in says so first.
        let answer = rest(&mut stream);
        let behind = answer.strip_prefix(b"{\"v\":1}\n").map(<[u8]>::to_vec);
        Ok(behind.unwrap_or(answer))
    };
    for number in 0..REQUESTS {
        let mut bytes = known[dice.roll(known.len() as u64) as usize].clone();
        change(&mut bytes, &known, &mut dice);
        let answer = asked(&bytes)?;
        figures.count("requests over the socket", 1);
        let is_answer = answer.is_empty() || serde_json::from_slice::<Value>(&answer).is_ok();
        if !is_answer {
            let (asked, said) = (
                String::from_utf8_lossy(&bytes),
                String::from_utf8_lossy(&answer),
            );
            let line = format!("seed {seed}, request {number} {asked:?}: answered {said:?}");
            figures.violations.push(line);
        }
    }
    let last = asked(right.as_bytes())?;
    if serde_json::from_slice::<Value>(&last).map_or(true, |answer| answer["exit"].is_null()) {
        let said = String::from_utf8_lossy(&last);
        let line = format!("seed {seed}: a right request is answered {said:?} at last");
        figures.violations.push(line);
    }
    let broken = server
        .broken(stage)?
        .map(|line| format!("seed {seed}: {line}"));
    figures.violations.extend(broken);
    Ok(())
}

/// A line that asks for a command.
fn request(first: &str, second: &str, token: &str) -> String {
    let token = match token {
        "" => "null".to_owned(),
        token => format!("\"{token}\""),
    };
    format!(
        "{{\"v\":1,\"args\":[\"{first}\",\"{second}\",\"x\"],\"token\":{token},\"stdin\":\"hello\",\"color\":[false,false]}}\n"
    )
}

/// Requests over HTTP, of a sealed store: who has not the word changes nothing, whatever else is as it must be.
///
/// # Errors
/// When no server begins.
pub fn web(order: &Order, seed: u64, figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    let stage = Stage::empty(order)?;
    for words in [
        &["init", "--sealed"][..],
        &["register", "api", "--pid", "none", "--token-file", "api"],
    ] {
        let out = stage.ask(words, b"")?;
        if !out.status.success() {
            return Err(String::from_utf8_lossy(&out.stderr).into_owned().into());
        }
    }
    let mut server = Server::start(&stage, &["serve", "--http", "127.0.0.1:0"], 2)?;
    let host = server.address().ok_or("no address")?;
    let word = std::fs::read_to_string(stage.store().join("serve/http-token"))?;
    let token = std::fs::read_to_string(stage.room.path().join("checkout/api"))?;
    let body = format!(
        "{{\"v\":1,\"args\":[\"--json\",\"note\",\"x\"],\"token\":\"{}\"}}",
        token.trim()
    );
    let whole = |word: &str| {
        let head = format!(
            "POST /v1 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {word}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        format!("{head}{body}").into_bytes()
    };
    let asked = |bytes: &[u8], patience: Duration| -> Result<Vec<u8>, Box<dyn Error>> {
        let mut stream = TcpStream::connect(&host)?;
        stream.set_read_timeout(Some(patience))?;
        let _ = stream.write_all(bytes);
        Ok(rest(&mut stream))
    };
    // Without the word: nothing that chance makes of it is let in.
    let wrong = whole(&"0".repeat(word.trim().len()));
    let others = [
        wrong.clone(),
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nOrigin: null\r\n".to_vec(),
    ];
    let mut dice = Dice::new(seed);
    for number in 0..REQUESTS {
        let mut bytes = wrong.clone();
        change(&mut bytes, &others, &mut dice);
        let answer = asked(&bytes, GLANCE)?;
        figures.count("requests over HTTP", 1);
        let said = String::from_utf8_lossy(&answer);
        let status = said.split(' ').nth(1).unwrap_or_default();
        if !(answer.is_empty() || status.starts_with('4') || status.starts_with('5')) {
            let asked = String::from_utf8_lossy(&bytes);
            let line = format!("seed {seed}, request {number} {asked:?}: answered {said:?}");
            figures.violations.push(line);
        }
    }
    let last = asked(&whole(word.trim()), PATIENCE)?;
    let said = String::from_utf8_lossy(&last);
    if !said.starts_with("HTTP/1.1 200") || !said.contains("\"exit\":0") {
        let line = format!("seed {seed}: a right request is answered {said:?} at last");
        figures.violations.push(line);
    }
    let broken = server
        .broken(&stage)?
        .map(|line| format!("seed {seed}: {line}"));
    figures.violations.extend(broken);
    Ok(())
}
