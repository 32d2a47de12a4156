//! `hook`: what an agent host calls at each of its events. A payload comes in, the ledger is asked, and the host's own
//! answer goes out; exit 0, whatever it is. `docs/agents.md` has the tables.

use std::io::{Read, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::served::{self, Hooked};

mod act;
mod claude;
mod codex;
mod gemini;
mod hold;
mod payload;
mod process;
mod said;
mod step;

pub use act::{PARTED, parting};
pub use hold::{labels, take_for, who_may_live};
pub use payload::Host;
pub use process::PROXY;
pub use said::{refusal as refusal_text, warning};
use step::is_idle;
pub use step::{Row, row};

use act::Act;
use payload::{Answer, Kind, Payload};

/// How long a host waits for the ledger at most.
const BOUND: Duration = Duration::from_secs(2);
/// The same at the end of a session, for which a host gives little time.
const END_BOUND: Duration = Duration::from_secs(1);
/// The longest payload that is read, in bytes (64 MiB): a tool's input with a file in it.
const PAYLOAD_BYTES_MAX: u64 = 64 << 20;

/// What follows when nothing can be asked (GIT-3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum OnError {
    /// The tool runs, and it is said.
    #[default]
    Allow,
    /// The tool does not run.
    Deny,
}

impl OnError {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// Arguments of `hook`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which host calls [default: found out from what it sends]
    #[arg(long, value_name = "HOST", value_enum)]
    host: Option<Host>,
    /// What follows when the ledger cannot be asked: the tool runs, or it does not
    #[arg(long, value_name = "WHAT", value_enum, default_value = "allow")]
    on_error: OnError,
}

/// Whether an answer was printed: there is one, whoever comes first.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Who is answered, and how where nothing could be asked.
#[derive(Clone, Debug)]
struct Listener {
    host: Host,
    kind: Kind,
    /// The event, as the host calls it.
    word: String,
    on_error: OnError,
}

impl Listener {
    /// Who is answered where the payload was not read.
    fn unread(args: &Args) -> Self {
        let host = args.host.unwrap_or(Host::Claude);
        Self {
            host,
            kind: Kind::Before,
            word: host.before().to_owned(),
            on_error: args.on_error,
        }
    }

    fn of(payload: &Payload, args: &Args) -> Self {
        Self {
            host: payload.host,
            kind: payload.event.kind(),
            word: payload.word.clone(),
            on_error: args.on_error,
        }
    }

    /// What is printed of an answer.
    fn text(&self, answer: &Answer) -> String {
        let value = self.host.answer(self.kind, &self.word, answer);
        value.map(|value| format!("{value}\n")).unwrap_or_default()
    }

    /// What is printed where nothing was asked, and why.
    fn blind(&self, why: &str) -> String {
        self.text(&said::blind(self.kind, self.on_error, why))
    }

    /// Asks the ledger, and gives what is printed.
    fn ask(&self, ctx: &Context, payload: &Payload) -> String {
        match Act::new(ctx, payload).answer() {
            Ok(answer) => self.text(&answer),
            Err(stop) => self.blind(&said::why(&stop)),
        }
    }

    /// How long its host waits for the ledger at most.
    fn bound(&self) -> Duration {
        match self.kind {
            Kind::End => END_BOUND,
            _ => BOUND,
        }
    }
}

/// Prints the answer, unless one was printed.
fn print(text: &str) {
    if !ANSWERED.swap(true, Ordering::SeqCst) {
        let mut out = std::io::stdout().lock();
        // A host that does not read gets no answer, and decides by itself.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

impl Args {
    /// Reads a payload and answers it.
    ///
    /// # Errors
    /// When a server that answers it for another process cannot keep the answer; else none: what fails is answered too.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let unread = Listener::unread(&self);
        let asked_for = served::is_for_another();
        if !asked_for {
            answer_panics(unread.clone());
        }
        let mut bytes = Vec::new();
        let input = served::input().unwrap_or_else(|| Box::new(std::io::empty()));
        let read = input.take(PAYLOAD_BYTES_MAX).read_to_end(&mut bytes);
        let payload = match read {
            Ok(_) => Payload::read(&bytes, self.host),
            Err(error) => Err(format!("the payload cannot be read: {error}")),
        };
        let text = match &payload {
            // An event that means nothing here.
            Ok(None) => String::new(),
            Err(why) => unread.blind(why),
            Ok(Some(payload)) => {
                let listener = Listener::of(payload, &self);
                if asked_for {
                    listener.ask(ctx, payload)
                } else {
                    answer_panics(listener.clone());
                    answer_late(listener.clone());
                    let relayed = relayed(ctx, payload, &bytes, listener.bound());
                    relayed.unwrap_or_else(|| listener.ask(ctx, payload))
                }
            }
        };
        if asked_for {
            ctx.out.raw(text.as_bytes())?;
            return Ok(Exit::DONE);
        }
        print(&text);
        // A state is as large as everything that is open, and the host waits: it is not given back piece by piece.
        std::process::exit(Exit::DONE.number().into());
    }
}

/// What a server says, where one is there and there is something to ask.
fn relayed(ctx: &Context, payload: &Payload, bytes: &[u8], bound: Duration) -> Option<String> {
    if is_idle(&payload.event) {
        return None;
    }
    let hooked = Hooked {
        payload: bytes,
        host: payload.host.as_str(),
        bound,
    };
    served::relay(ctx, hooked, || act::hosting(ctx, payload.host).ok())
}

/// A fault of ours is answered by the policy too, and ends as every answer does.
fn answer_panics(listener: Listener) {
    std::panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        print(&listener.blind(&format!("this program is wrong: {panic}")));
        std::process::exit(0);
    }));
}

/// A file system that hangs, or a lock that is held, must not hold an agent up.
fn answer_late(listener: Listener) {
    let bound = listener.bound();
    std::thread::spawn(move || {
        std::thread::sleep(bound);
        print(&listener.blind(&format!("no answer within {} s", bound.as_secs())));
        std::process::exit(0);
    });
}
