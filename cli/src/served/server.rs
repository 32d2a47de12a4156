//! Serving: one store kept open, a thread for each process that asks, and an end at which nothing is lost.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::builder::Resettable;
use clap::{CommandFactory, FromArgMatches};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tenure_projection::core::codec;
use tenure_projection::host::{Host, System, state_directory};
use tenure_projection::store::Store;

use crate::app::{App, Command, carry_out};
use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::output::Output;

use super::caller::{Behalf, Caller, on_behalf};
use super::http::{self, Web};
use super::wire::{self, Answer, Greeting, LINE_TIME, REQUEST_BYTES_MAX, Request};
use super::{Door, Service, is_own};

/// How many are answered at a time. Whoever comes beyond that is told at once, and goes to the files.
const CALLERS_MAX: usize = 256;
/// How long the end waits for answers that are on their way.
const END_TIME: Duration = Duration::from_secs(10);

/// What the threads of a server share.
pub struct Server {
    dir: PathBuf,
    store: Store,
    host: Arc<dyn Host>,
    callers: AtomicUsize,
    /// Whether nobody is let in any more.
    pub stopping: AtomicBool,
}

/// Serves the store until a signal ends it: nobody new is let in, and who is in gets an answer.
///
/// # Errors
/// When the store cannot be opened, another server is there, or the socket cannot be made.
pub fn serve(ctx: &mut Context, web: Web) -> Result<Exit, Stop> {
    let dir = ctx.dir()?;
    let host: Arc<dyn Host> = Arc::new(Behalf(System::of_this_user()));
    let store = ctx.lasting_store(Arc::clone(&host))?;
    let absolute = fs::canonicalize(&dir).map_err(|error| Fault::file("find", &dir, error))?;
    let door = Door::of(&absolute, true)?;
    let door = door.ok_or_else(|| Fault::new(Cause::Io, "the socket's directory is gone"))?;
    let _lock = locked(&door)?;
    let listener = listening(&door)?;
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Fault::new(Cause::Io, format!("signals cannot be awaited: {error}")))?;
    let server = Arc::new(Server {
        dir: absolute,
        store,
        host,
        callers: AtomicUsize::new(0),
        stopping: AtomicBool::new(false),
    });
    let web = web.listen(ctx, &server, &door)?;
    let (waiting, address) = (Arc::clone(&server), door.address());
    let web_address = web.as_ref().map(|web| web.address);
    std::thread::spawn(move || {
        let _ = signals.forever().next();
        waiting.stopping.store(true, Ordering::SeqCst);
        // Whoever accepts is woken, and looks.
        let _ = UnixStream::connect(address);
        let _ = web_address.map(TcpStream::connect);
    });
    ctx.out.say(format_args!("serving {}", dir.display()))?;
    if let Some(web) = web {
        let key = web.key.display().to_string();
        ctx.out.say(format_args!(
            "at http://{}/v1, to whoever presents the word in {key}",
            web.address
        ))?;
        http::start(Arc::clone(&server), web)?;
    }
    ctx.out.flush()?;
    for stream in listener.incoming() {
        if server.stopping.load(Ordering::SeqCst) {
            break;
        }
        match stream {
            Ok(stream) => admit(&server, stream),
            // Out of descriptors, say: those who are in give theirs back.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    drop(listener);
    // What cannot be removed answers nobody, and whoever meets it goes to the files.
    let _ = fs::remove_file(door.socket());
    let end = Instant::now() + END_TIME;
    while server.callers.load(Ordering::SeqCst) > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    ctx.out.say("stopped")?;
    Ok(Exit::DONE)
}

/// At most one server of a store: the lock ends with its process, however that ends.
fn locked(door: &Door) -> Result<File, Stop> {
    let path = door.dir.join("lock");
    let mut options = File::options();
    let opened = options.write(true).create(true).truncate(false).mode(0o600);
    let file = opened
        .open(&path)
        .map_err(|error| Fault::file("create", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = format!("{} is served already", door.dir.display());
            Err(Fault::new(Cause::Busy, message).into())
        }
        Err(TryLockError::Error(error)) => Err(Fault::file("lock", &path, error).into()),
    }
}

fn listening(door: &Door) -> Result<UnixListener, Stop> {
    let socket = door.socket();
    let failed = |error| Stop::from(Fault::file("create", &socket, error));
    match fs::remove_file(&socket) {
        // Left by a server that was killed: with the lock in hand there is no other.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let listener = UnixListener::bind(door.address()).map_err(failed)?;
    fs::set_permissions(&socket, Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

/// One of the callers that are counted, as long as it is answered.
pub struct Admitted(Arc<Server>);

impl Admitted {
    /// Lets one more in, unless there are too many.
    pub fn of(server: &Arc<Server>) -> Option<Self> {
        let admitted = Self(Arc::clone(server));
        (server.callers.fetch_add(1, Ordering::SeqCst) < CALLERS_MAX).then_some(admitted)
    }

    /// Who lets it in.
    pub fn server(&self) -> Arc<Server> {
        Arc::clone(&self.0)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.callers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Answers a caller on a thread of its own, unless there are too many.
fn admit(server: &Arc<Server>, mut stream: UnixStream) {
    let Some(admitted) = Admitted::of(server) else {
        // One that does not read is not waited for.
        let _ = stream.set_nonblocking(true);
        let _ = stream.write_all(b"{\"unserved\":\"too many ask at a time\"}\n");
        return;
    };
    let attend = move || {
        let answer = admitted.0.answer(&mut stream);
        // A caller that is gone hears nothing; what it asked for is in the log all the same.
        let _ = wire::write_line(&mut stream, &answer);
    };
    // Without a thread the caller is let go, and goes to the files.
    let _ = std::thread::Builder::new().spawn(attend);
}

impl Server {
    fn answer(&self, stream: &mut UnixStream) -> Answer {
        let peer = match rustix::net::sockopt::socket_peercred(&*stream) {
            Ok(peer) if is_own(&peer) => peer,
            _ => return Answer::unserved("only the user of the store is served"),
        };
        let pid = peer.pid.as_raw_nonzero().get().cast_unsigned();
        let greeting = Greeting { v: wire::VERSION };
        if let Err(error) = wire::write_line(stream, &greeting) {
            return Answer::unserved(format!("nobody listens: {error}"));
        }
        let deadline = Instant::now() + LINE_TIME;
        let line = match wire::read_line(stream, REQUEST_BYTES_MAX, Some(deadline)) {
            Ok(line) => line,
            Err(error) => return Answer::unserved(format!("no request came: {error}")),
        };
        match request(&line) {
            Ok(_) if !sees_the_same(pid) => {
                Answer::unserved("files and processes are others where the asker is")
            }
            Ok(request) => self.carry_out(request, pid, |_| true),
            Err(answer) => answer,
        }
    }

    /// Carries a request out that came over HTTP. Whoever sent it may see no file of this user, and none is read or
    /// written for it; and which process it is, nobody knows.
    pub fn answer_remote(&self, line: &[u8]) -> Answer {
        match request(line) {
            Ok(request) if names_files(&request) => Answer::unserved(
                "over HTTP no file is named and no process: texts go as they are, or in stdin",
            ),
            Ok(request) => self.carry_out(request, std::process::id(), |service| {
                service != Service::LookHere
            }),
            Err(answer) => answer,
        }
    }

    /// Whether the store is sealed.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn is_sealed(&self, ctx: &Context) -> Result<bool, Stop> {
        ctx.look(&self.store, |lens| Ok(lens.state.sealed))
    }

    fn carry_out(&self, request: Request, pid: u32, may: impl Fn(Service) -> bool) -> Answer {
        let cwd = PathBuf::from(request.cwd.as_deref().unwrap_or("/"));
        if !cwd.is_absolute() {
            return Answer::unserved("cwd is no absolute path");
        }
        let store = request.store.as_ref().map(|store| cwd.join(store));
        let other = |store: &PathBuf| fs::canonicalize(store).ok().as_ref() != Some(&self.dir);
        if store.as_ref().is_some_and(other) {
            return Answer::unserved("another store is served here");
        }
        let state = request.state.as_ref().map(PathBuf::from);
        if state.is_some() && state != state_directory() {
            return Answer::unserved("the state of this user is kept elsewhere");
        }
        let app = match parsed(&request.args) {
            Ok(app) => app,
            Err(error) => return Answer::unserved(error.to_string()),
        };
        let answered = |command: &Command| Service::of(command).is_some_and(&may);
        let Some(command) = app.command.filter(answered) else {
            return Answer::unserved("that command is not served");
        };
        if request.args.iter().any(|arg| arg.starts_with("--require")) {
            return Answer::unserved("a scope may be a path");
        }
        let bearing = match request.bearing.as_deref().map(wire::from_hexadecimal) {
            None => None,
            Some(bytes) => match bytes.and_then(|bytes| codec::decode(&bytes).ok()) {
                Some(bearing) => Some(bearing),
                None => return Answer::unserved("the bearing does not decode"),
            },
        };
        let stdin = match (request.stdin, request.stdin_hex) {
            (Some(text), _) => text.into_bytes(),
            (None, None) => Vec::new(),
            (None, Some(text)) => match wire::from_hexadecimal(&text) {
                Some(bytes) => bytes,
                None => return Answer::unserved("stdin_hex has no hexadecimal digits"),
            },
        };
        let caller = Caller {
            cwd,
            token: request.token,
            token_file: request.token_file,
            stdin,
            pid,
            bearing,
            session: request.session,
        };
        let mut global = app.global;
        global.store = Some(
            request
                .store
                .map_or_else(|| self.dir.clone(), PathBuf::from),
        );
        global.actor = global.actor.or(request.actor);
        let (out, captured) = Output::captured(global.json, global.quiet, request.color);
        let mut ctx = Context::serving(global, self.store.clone(), Arc::clone(&self.host), out);
        let exit = on_behalf(caller, || carry_out(command, &mut ctx));
        drop(ctx);
        let [stdout, stderr] = captured.taken();
        Answer::Ran {
            exit: exit.number(),
            stdout,
            stderr,
        }
    }
}

/// A request of the version that is spoken here; else the answer that says what is wrong with it.
fn request(line: &[u8]) -> Result<Request, Answer> {
    match serde_json::from_slice::<Request>(line) {
        Ok(request) if request.v == wire::VERSION => Ok(request),
        Ok(request) => {
            let why = format!("version {} is not spoken here", request.v);
            Err(Answer::unserved(why))
        }
        Err(error) => Err(Answer::unserved(format!("it is no request: {error}"))),
    }
}

/// Whether a request has anything in it that names a file or a process of this machine.
fn names_files(request: &Request) -> bool {
    let named = |arg: &String| {
        arg.starts_with('@')
            || arg.contains("=@")
            || ["--token-file", "--pid"]
                .iter()
                .any(|option| arg.starts_with(option))
    };
    request.token_file.is_some()
        || request.bearing.is_some()
        || request.state.is_some()
        || request.cwd.is_some()
        || request.store.is_some()
        || request.args.iter().any(named)
}

/// What the arguments say, without this process's environment.
///
/// # Errors
/// What is wrong with them.
pub fn parsed(args: &[String]) -> Result<App, clap::Error> {
    let mut command = App::command();
    for name in ["store", "actor"] {
        command = command.mut_arg(name, |arg| arg.env(Resettable::Reset));
    }
    let line = std::iter::once("tenure").chain(args.iter().map(String::as_str));
    let matches = command.try_get_matches_from_mut(line)?;
    App::from_arg_matches(&matches)
}

/// Whether a process sees the files and the processes that this one sees.
fn sees_the_same(pid: u32) -> bool {
    ["mnt", "pid"].iter().all(|kind| {
        let of = |who: &str| fs::read_link(Path::new("/proc").join(who).join("ns").join(kind)).ok();
        let own = of("self");
        own.is_some() && own == of(&pid.to_string())
    })
}
