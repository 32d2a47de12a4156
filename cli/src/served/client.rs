//! Asking: the socket where there is one, and the files where there is none.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tenure_projection::call::ProcessChoice;
use tenure_projection::core::codec;
use tenure_projection::core::holder::Bearing;
use tenure_projection::core::limits::BODY_BYTES_MAX;
use tenure_projection::host::state_directory;

use crate::app::Command;
use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop, quoted};

use super::wire::{self, Answer, Greeting, Request};
use super::{Door, Service, caller, is_own};

/// The longest answer, in bytes: far more than any of these commands prints.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The longest greeting, or word that nobody is let in, in bytes.
const GREETING_BYTES_MAX: usize = 1024;
/// How long a server may take to say that it reads a request. One that is stopped says nothing.
const GREETING_TIME: Duration = Duration::from_millis(500);
/// How much longer an answer may take than the command itself waits for others.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Has a server carry a command out; `None` where none is there, or none that may or can, or where a question was not
/// answered: then nothing happened.
///
/// # Errors
/// `outcome-unknown` when the server was asked for a change and gave no answer.
pub fn ask(ctx: &mut Context, command: &Command) -> Result<Option<Exit>, Stop> {
    let service = match Service::of(command) {
        Some(service @ (Service::Change | Service::Look | Service::LookHere)) => service,
        Some(Service::LookLong) | None => return Ok(None),
    };
    // It reads its input before it asks.
    if matches!(command, Command::Hook(_)) {
        return Ok(None);
    }
    let (Ok(deadline), Some(mut server)) = (ctx.deadline(), Connection::of(ctx)) else {
        return Ok(None);
    };
    let bearing = chosen(command).map(|choice| ctx.host().bearing(choice));
    let Ok(bearing) = bearing.transpose() else {
        return Ok(None);
    };
    let Some(mut request) = request(ctx, bearing) else {
        return Ok(None);
    };
    if request
        .args
        .iter()
        .any(|arg| arg == "-" || arg.ends_with("=-"))
    {
        request.stdin_hex = Some(stdin()?);
    }
    let waited = deadline.remaining(Instant::now()).unwrap_or(Duration::MAX);
    match server.answered(&request, waited.saturating_add(ANSWER_TIME)) {
        Ok(Some((exit, stdout, stderr))) => {
            ctx.out.raw(stdout.as_bytes())?;
            ctx.out.flush()?;
            ctx.out.beside(&stderr);
            Ok(Some(exit))
        }
        Err(error) if service == Service::Change => Err(unknown(&request, &error)),
        Ok(None) | Err(_) => Ok(None),
    }
}

/// What a hook asks with.
#[derive(Clone, Copy, Debug)]
pub struct Hooked<'a> {
    /// What the agent host sent.
    pub payload: &'a [u8],
    /// The host, as an argument of this program.
    pub host: &'a str,
    /// How long its host waits. Half of that is the server's, and half is left for the files.
    pub bound: Duration,
}

/// Has a server answer a hook: what is printed. `None` where no server did. The host's process is looked for only where a
/// server is.
#[must_use]
pub fn relay(
    ctx: &Context,
    hooked: Hooked<'_>,
    bearing: impl FnOnce() -> Option<Bearing>,
) -> Option<String> {
    let mut server = Connection::of(ctx)?;
    let mut request = request(ctx, Some(bearing()?))?;
    if !request.args.iter().any(|arg| arg.starts_with("--host")) {
        request
            .args
            .extend(["--host".to_owned(), hooked.host.to_owned()]);
    }
    request.stdin_hex = Some(wire::hexadecimal(hooked.payload));
    let session = std::env::var_os("TENURE_SESSION").map(OsString::into_string);
    request.session = session.transpose().ok()?;
    let (exit, stdout, _) = server.answered(&request, hooked.bound / 2).ok()??;
    (exit == Exit::DONE).then_some(stdout)
}

/// A server that reads a request.
struct Connection {
    stream: UnixStream,
    /// The address may lead through it.
    _door: Door,
}

impl Connection {
    /// `None` where no server is, or none that says so in time: nothing was asked then.
    fn of(ctx: &Context) -> Option<Self> {
        let door = Door::of(&ctx.dir().ok()?, false).ok()??;
        let mut stream = connected(&door).ok()?;
        let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
        if !is_own(&peer) {
            return None;
        }
        let end = Instant::now() + GREETING_TIME;
        let line = wire::read_line(&mut stream, GREETING_BYTES_MAX, Some(end)).ok()?;
        let greeting: Greeting = serde_json::from_slice(&line).ok()?;
        (greeting.v == wire::VERSION).then_some(Self {
            stream,
            _door: door,
        })
    }

    /// Asks; `None` where the server does not carry it out.
    ///
    /// # Errors
    /// When the request was sent and no answer came.
    fn answered(
        &mut self,
        request: &Request,
        bound: Duration,
    ) -> io::Result<Option<(Exit, String, String)>> {
        if wire::write_line(&mut self.stream, request).is_err() {
            // Without its end the line is no request.
            return Ok(None);
        }
        let end = Instant::now().checked_add(bound);
        let line = wire::read_line(&mut self.stream, ANSWER_BYTES_MAX, end)?;
        Ok(match serde_json::from_slice(&line)? {
            Answer::Unserved { .. } => None,
            Answer::Ran {
                exit,
                stdout,
                stderr,
            } => Some((Exit::of_command(exit), stdout, stderr)),
        })
    }
}

/// Connects without waiting: where too many wait to be let in, a server that is stopped would let nobody in for long.
fn connected(door: &Door) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(door.address())?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The request for this process's own command line; `None` where it cannot be said in one.
fn request(ctx: &Context, bearing: Option<Bearing>) -> Option<Request> {
    let args = std::env::args_os().skip(1).map(OsString::into_string);
    let args = args.collect::<Result<_, _>>().ok()?;
    let cwd = std::env::current_dir().ok()?.into_os_string();
    let variable = |name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(OsString::into_string).transpose().ok()
    };
    let bearing = bearing.map(|bearing| codec::encode(&bearing)).transpose();
    let state = state_directory().map(|state| state.into_os_string().into_string());
    Some(Request {
        v: wire::VERSION,
        args,
        store: Some(ctx.dir().ok()?.into_os_string().into_string().ok()?),
        cwd: Some(cwd.into_string().ok()?),
        actor: ctx.actor(),
        token: variable("TENURE_TOKEN")?,
        token_file: variable("TENURE_TOKEN_FILE")?,
        bearing: bearing.ok()?.as_deref().map(wire::hexadecimal),
        state: state.transpose().ok()?,
        color: ctx.out.colors(),
        ..Request::default()
    })
}

/// The process that a command wants its grant made to.
fn chosen(command: &Command) -> Option<ProcessChoice> {
    match command {
        Command::Register(args) => args.process().ok(),
        Command::Adopt(args) => args.process().ok(),
        Command::Branch(args) => args.process().ok(),
        _ => None,
    }
}

/// The standard input, which is kept for the case that the command is carried out here after all.
fn stdin() -> Result<String, Stop> {
    let mut bytes = Vec::new();
    // One more than is allowed: whoever carries the command out says how much too long it is.
    let read = io::stdin()
        .lock()
        .take(BODY_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes);
    read.map_err(|error| Fault::new(Cause::Io, format!("standard input cannot be read: {error}")))?;
    let text = wire::hexadecimal(&bytes);
    caller::keep_input(bytes);
    Ok(text)
}

fn unknown(request: &Request, error: &io::Error) -> Stop {
    let message = format!("the server gave no answer ({error}): it may have happened and may not");
    let fault = Fault::new(Cause::OutcomeUnknown, message);
    let mut args = request.args.iter();
    let key = args.find_map(|arg| match arg.strip_prefix("--idempotency-key") {
        Some("") => Some(None),
        Some(given) => Some(given.strip_prefix('=')),
        None => None,
    });
    let key = key.and_then(|given| given.or_else(|| args.next().map(String::as_str)));
    Stop::Failed(match key {
        Some(key) => fault.then(
            format!("tenure outcome {}", quoted(key)),
            "says whether it is in the log",
        ),
        None => fault.then("tenure log -n 5", "shows the newest events of the log"),
    })
}
