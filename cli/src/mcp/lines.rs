//! Lines of JSON-RPC over standard input and output. The kit passes over lines that it cannot read; here each of them is
//! answered with what is wrong with it, and the next is heard.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::error::Category;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::{Mutex, mpsc};

use crate::output::escape::is_obeyed;

use super::desk::Desk;

/// The longest line, in bytes: a body of the greatest length, each byte written as `\u0000`, with room for the rest.
const LINE_BYTES_MAX: usize = 8 << 20;
/// How many lines wait on either way.
const WAITING_MAX: usize = 64;
/// How many calls wait for their turn before no more is read.
const CALLS_MAX: usize = 64;
/// How long a look at something that nobody tells of is put off.
const PAUSE: Duration = Duration::from_millis(2);

/// What a client says, and what it is told.
#[derive(Clone)]
pub struct Lines {
    /// `None` is the end.
    said: Arc<Mutex<mpsc::Receiver<Option<Message>>>>,
    open: Arc<AtomicBool>,
    /// Whether nothing more comes in than what was read already.
    over: Arc<AtomicBool>,
    /// An empty line is the end.
    told: mpsc::Sender<Vec<u8>>,
    written: Arc<AtomicBool>,
    desk: Arc<Desk>,
}

type Message = RxJsonRpcMessage<RoleServer>;

impl Lines {
    /// Reads and writes on threads of their own, and ends at a signal as at the end of the input.
    ///
    /// # Errors
    /// When the system has no thread, or signals cannot be awaited.
    pub fn open(desk: Arc<Desk>) -> io::Result<Self> {
        let (say, said) = mpsc::channel(WAITING_MAX);
        let (told, mut tell) = mpsc::channel::<Vec<u8>>(WAITING_MAX);
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        let over = Arc::new(AtomicBool::new(false));
        let (answers, ended) = (told.clone(), say.clone());
        let (heard, stopped) = (Arc::clone(&over), Arc::clone(&over));
        let thread = std::thread::Builder::new;
        thread().spawn(move || {
            hear(&mut io::stdin().lock(), &say, &answers);
            heard.store(true, Ordering::SeqCst);
            // Who is no longer listened to has ended already.
            let _ = say.blocking_send(None);
        })?;
        thread().spawn(move || {
            let _ = signals.forever().next();
            stopped.store(true, Ordering::SeqCst);
            let _ = ended.blocking_send(None);
        })?;
        let written = Arc::new(AtomicBool::new(false));
        let all = Arc::clone(&written);
        // Not behind the lock of standard output: whoever ends the process takes that.
        let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        thread().spawn(move || {
            while let Some(line) = tell.blocking_recv().filter(|line| !line.is_empty()) {
                if out.write_all(&line).is_err() {
                    // The client is gone.
                    break;
                }
            }
            all.store(true, Ordering::SeqCst);
        })?;
        Ok(Self {
            said: Arc::new(Mutex::new(said)),
            open: Arc::new(AtomicBool::new(true)),
            over,
            told,
            written,
            desk,
        })
    }

    /// Whether more may be said.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    /// Waits until everything was written, `at_most` so long: a client may read no more.
    pub fn end(&self, at_most: Duration) {
        let end = Instant::now() + at_most;
        let mut asked = false;
        while !self.written.load(Ordering::SeqCst) && Instant::now() < end {
            asked = asked || self.told.try_send(Vec::new()).is_ok();
            std::thread::sleep(PAUSE);
        }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let told = self.told.clone();
        async move {
            let line = line(&serde_json::to_string(&item)?);
            let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
            told.send(line).await.map_err(gone)
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        // Who asks and asks and takes no answers is not listened to meanwhile.
        let is_full = || self.desk.waiting() >= CALLS_MAX || self.told.capacity() == 0;
        while is_full() && !self.told.is_closed() && !self.over.load(Ordering::SeqCst) {
            tokio::time::sleep(PAUSE).await;
        }
        let message = match self.told.is_closed() {
            true => None,
            false => self.said.lock().await.recv().await.flatten(),
        };
        if message.is_none() {
            self.open.store(false, Ordering::SeqCst);
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A text as a line. What a terminal would obey is written as `\uNNNN`: a client may show what it is told, and beyond
/// ASCII it can only stand in a text.
fn line(json: &str) -> Vec<u8> {
    let mut line = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if is_obeyed(c) {
            line.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    line.into_bytes()
}

/// Reads lines to the end of the input, and tells what is wrong with those that are no message.
fn hear(
    from: &mut impl BufRead,
    say: &mpsc::Sender<Option<Message>>,
    answers: &mpsc::Sender<Vec<u8>>,
) {
    while let Some(heard) = next(from) {
        let message = match heard {
            Ok(bytes) if bytes.trim_ascii().is_empty() => continue,
            Ok(bytes) => message(&bytes),
            Err(TooLong) => Err(Some(wrong(
                -32600,
                &format!("a message has at most {LINE_BYTES_MAX} bytes"),
                None,
            ))),
        };
        let taken = match message {
            Ok(message) => say.blocking_send(Some(message)).is_ok(),
            Err(Some(answer)) => answers.blocking_send(answer).is_ok(),
            Err(None) => true,
        };
        if !taken {
            return;
        }
    }
}

/// A line that is longer than any message may be.
struct TooLong;

/// The next line, without its end; the rest of one that is too long is passed over. `None` at the end of the input, and
/// where it cannot be read.
fn next(from: &mut impl BufRead) -> Option<Result<Vec<u8>, TooLong>> {
    let (mut line, mut began, mut too_long) = (Vec::new(), false, false);
    loop {
        let read = match from.fill_buf() {
            Ok([]) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return None,
        };
        began = true;
        let end = read.iter().position(|byte| *byte == b'\n');
        let piece = &read[..end.unwrap_or(read.len())];
        too_long = too_long || line.len() + piece.len() > LINE_BYTES_MAX;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(piece);
        }
        let used = end.map_or(read.len(), |end| end + 1);
        from.consume(used);
        if end.is_some() {
            break;
        }
    }
    match (began, too_long) {
        (false, _) => None,
        (true, true) => Some(Err(TooLong)),
        (true, false) => Some(Ok(line)),
    }
}

/// The message that a line is, or what its sender is told: nothing where nobody waits for an answer.
fn message(bytes: &[u8]) -> Result<Message, Option<Vec<u8>>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let error = match serde_json::from_slice::<Message>(bytes) {
        Ok(message) => return Ok(message),
        Err(error) => error,
    };
    let value = serde_json::from_slice::<Value>(bytes);
    let (Category::Data, Ok(value)) = (error.classify(), value) else {
        return Err(Some(wrong(
            -32700,
            &format!("it is no JSON: {error}"),
            None,
        )));
    };
    let id = value.get("id");
    if id.is_none() && value.get("method").is_some_and(Value::is_string) {
        return Err(None);
    }
    let id = id.filter(|id| id.is_string() || id.is_u64() || id.is_i64());
    let why = "it is no message of JSON-RPC 2.0, or one of a batch";
    Err(Some(wrong(-32600, why, id)))
}

/// An error of JSON-RPC. Where it is not known what it answers it has no id, as the protocol has it.
fn wrong(code: i32, message: &str, id: Option<&Value>) -> Vec<u8> {
    let mut answer = json!({"jsonrpc": "2.0"});
    if let Some(id) = id {
        answer["id"] = id.clone();
    }
    answer["error"] = json!({"code": code, "message": message});
    line(&answer.to_string())
}
