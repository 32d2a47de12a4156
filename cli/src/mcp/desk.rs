//! Where the calls of tools are carried out, one after the other, in the order in which they came.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use serde_json::Value;
use tenure_projection::core::id::Token;
use tenure_projection::store::Store;
use tokio::sync::oneshot;

use crate::app::{Command, carry_out};
use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::output::Output;
use crate::served::{Caller, on_behalf, parsed};

use super::tools::{Asked, Tool};
use super::{unbound, unsealed};

/// The way to whoever carries calls out.
pub struct Desk {
    calls: mpsc::Sender<Call>,
    waiting: Arc<AtomicUsize>,
}

/// A call, and where its answer goes.
struct Call {
    tool: &'static Tool,
    asked: Asked,
    is_cancelled: Box<dyn Fn() -> bool + Send>,
    answer: oneshot::Sender<Answered>,
}

/// What a command came to.
#[derive(Debug)]
pub struct Answered {
    /// Every object that it printed.
    pub objects: Vec<Value>,
    exit: Exit,
}

impl Answered {
    /// Whether it was not carried out. A negative answer is an answer: nobody holds it, or a token is not current.
    pub fn is_refused(&self) -> bool {
        self.exit != Exit::DONE
            && (self.tells("tenure.refusal.v1") || self.tells("tenure.error.v1"))
    }

    fn tells(&self, schema: &str) -> bool {
        let told = self.objects.last().and_then(|object| object.get("schema"));
        told.is_some_and(|told| told == schema)
    }
}

impl Desk {
    /// Opens it for a session, on a thread of its own.
    ///
    /// # Errors
    /// When there is no current directory, or no thread.
    pub fn open(ctx: &Context, token: Option<Token>) -> Result<Self, Stop> {
        let cwd = std::env::current_dir();
        let cwd = cwd.map_err(|error| Fault::file("find", Path::new("."), error))?;
        let (calls, called) = mpsc::channel::<Call>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let mut hand = Hand {
            ctx: ctx.again(None, Output::captured(true, false, [false; 2]).0),
            token,
            cwd,
            kept: None,
        };
        let left = Arc::clone(&waiting);
        let work = move || {
            for call in called {
                // One that nobody waits for any more has not begun, and does not.
                if !(call.is_cancelled)() {
                    let answered = hand.carry_out(call.tool, call.asked);
                    let _ = call.answer.send(answered);
                }
                left.fetch_sub(1, Ordering::SeqCst);
            }
        };
        let started = std::thread::Builder::new().spawn(work);
        started.map_err(|error| Fault::new(Cause::Io, format!("no thread is left: {error}")))?;
        Ok(Self { calls, waiting })
    }

    /// How many calls have no answer yet.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Has a call carried out; `None` where it was not begun.
    pub async fn asks(
        &self,
        tool: &'static Tool,
        asked: Asked,
        is_cancelled: impl Fn() -> bool + Send + 'static,
    ) -> Option<Answered> {
        let (answer, answered) = oneshot::channel();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let call = Call {
            tool,
            asked,
            is_cancelled: Box::new(is_cancelled),
            answer,
        };
        self.calls.send(call).ok()?;
        answered.await.ok()
    }
}

/// Who carries calls out.
struct Hand {
    /// Of the command line that the server was started with.
    ctx: Context,
    token: Option<Token>,
    cwd: PathBuf,
    kept: Option<Kept>,
}

/// A store that is kept open from one call to the next.
struct Kept {
    store: Store,
    /// Its directory: device and inode.
    place: (u64, u64),
}

impl Hand {
    fn carry_out(&mut self, tool: &Tool, asked: Asked) -> Answered {
        let (mut out, captured) = Output::captured(true, false, [false; 2]);
        let (store, command) = match self.prepared(tool, &asked) {
            Ok(prepared) => prepared,
            Err(stop) => {
                out.stopped(&stop);
                drop(out);
                return Answered::of(captured.taken(), stop.exit());
            }
        };
        let caller = Caller {
            cwd: self.cwd.clone(),
            token: self.token.as_ref().map(Token::reveal),
            token_file: None,
            stdin: asked.stdin,
            pid: std::process::id(),
            bearing: None,
            session: None,
        };
        let mut ctx = self.ctx.again(store, out);
        let exit = on_behalf(caller, || carry_out(command, &mut ctx));
        drop(ctx);
        let answered = Answered::of(captured.taken(), exit);
        if answered.tells("tenure.error.v1") {
            // Whatever went wrong, the next call begins with what is there then.
            self.kept = None;
        }
        answered
    }

    /// What a call needs to begin: a session to act for, its command, and the store where it writes.
    fn prepared(&mut self, tool: &Tool, asked: &Asked) -> Result<(Option<Store>, Command), Stop> {
        if self.token.is_none() && asked.bound {
            return Err(unbound());
        }
        let args = asked.args(tool.command(), self.token.as_ref());
        let app = parsed(&args).map_err(|error| Fault::usage(error.to_string()))?;
        let command = app.command;
        let command = command.ok_or_else(|| Fault::new(Cause::Fault, "a tool has no command"))?;
        let store = tool.writes.then(|| self.store()).transpose()?;
        Ok((store, command))
    }

    /// The store, as it was left open, unless it is no longer what is there: moved aside, or exchanged for another.
    fn store(&mut self) -> Result<Store, Stop> {
        let dir = self.ctx.dir()?;
        let place = fs::metadata(&dir).ok().map(|meta| (meta.dev(), meta.ino()));
        if let Some(kept) = &self.kept
            && Some(kept.place) == place
        {
            return Ok(kept.store.clone());
        }
        self.kept = None;
        let store = self.ctx.kept_store()?;
        if !self.ctx.look(&store, |lens| Ok(lens.state.sealed))? {
            return Err(unsealed());
        }
        self.kept = place.map(|place| Kept {
            store: store.clone(),
            place,
        });
        Ok(store)
    }
}

impl Answered {
    fn of([stdout, _]: [String; 2], exit: Exit) -> Self {
        let parse = |line| serde_json::from_str(line).ok();
        Self {
            objects: stdout.lines().filter_map(parse).collect(),
            exit,
        }
    }
}
