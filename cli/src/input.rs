//! What arguments mean: names, tokens, texts, processes, places in the log. Read once, at the edge.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use tenure_projection::call::{
    Activity, Bearer, IdempotencyKey, Label, ProcessChoice, RoleAt, RoleFault,
};
use tenure_projection::core::command::Ref;
use tenure_projection::core::generation::Generation;
use tenure_projection::core::history::ActivityKind;
use tenure_projection::core::id::{DispatchNo, EnvelopeNo, Name, Position, RefusalNo, Token};
use tenure_projection::core::limits::BODY_BYTES_MAX;

use crate::clock::{self, When};
use crate::exit::Cause;
use crate::fault::{Fault, Stop};
use crate::private_file;
use crate::served;

/// The token under which a command is given.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Under {
    /// The token, or @FILE that holds it [default: $TENURE_TOKEN_FILE, else $TENURE_TOKEN]
    #[arg(long = "as", value_name = "TOKEN")]
    token: Option<OsString>,
}

impl Under {
    /// The token named, or that of the environment, if there is any.
    ///
    /// # Errors
    /// When what is named is no token.
    pub fn token(&self) -> Result<Option<Token>, Stop> {
        token(self.token.as_deref())
    }
}

/// The idempotency key of a change, and the role that it asks for.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Keyed {
    /// Only if the token's session holds this role; a scope is a name or a path
    #[arg(long, value_name = "ROLE@SCOPE")]
    require: Option<String>,
    /// The same key with the same command is answered once and repeated ever after
    #[arg(long, value_name = "K")]
    idempotency_key: Option<String>,
}

impl Keyed {
    /// The key.
    #[must_use]
    pub fn key(&self) -> Option<IdempotencyKey> {
        self.idempotency_key.clone().map(IdempotencyKey)
    }

    /// The role required, as given.
    #[must_use]
    pub fn required_role(&self) -> Option<String> {
        self.require.clone()
    }
}

/// Who will hold a grant.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Holding {
    /// claude, codex, gemini, ...
    #[arg(long, value_name = "E")]
    pub engine: Option<String>,
    /// A label of the session
    #[arg(long, value_name = "K=V")]
    pub label: Vec<String>,
}

impl Holding {
    /// Who will hold it, with the process chosen.
    #[must_use]
    pub fn bearer(&self, process: ProcessChoice) -> Bearer {
        Bearer {
            process,
            engine: self.engine.clone(),
        }
    }

    /// The labels.
    ///
    /// # Errors
    /// When one has no `=`, or nothing before it.
    pub fn labels(&self) -> Result<Vec<Label>, Stop> {
        let label = |text: &String| match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok(Label {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err(Fault::usage(format!("{text:?} is no label: a label is KEY=VALUE")).into()),
        };
        self.label.iter().map(label).collect()
    }
}

/// The process that holds.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Chosen {
    /// The session's process, or `none` [default: the parent of this command, which can prove life, never death]
    #[arg(long, value_name = "PID")]
    pid: Option<String>,
}

impl Chosen {
    /// Which process.
    ///
    /// # Errors
    /// When it is neither a number nor `none`.
    pub fn process(&self) -> Result<ProcessChoice, Stop> {
        match self.pid.as_deref() {
            None => Ok(ProcessChoice::Parent),
            Some("none") => Ok(ProcessChoice::None),
            Some(text) => match text.parse() {
                Ok(pid) if pid > 0 => Ok(ProcessChoice::Pid(pid)),
                _ => Err(Fault::usage(format!(
                    "--pid {text:?} is neither a process id nor `none`"
                ))
                .into()),
            },
        }
    }
}

/// A name.
///
/// # Errors
/// With the rule that is broken.
pub fn name(text: &str) -> Result<Name, Stop> {
    Name::parse(text).map_err(|fault| {
        Fault::new(Cause::InvalidName, format!("{text:?} is no name: {fault}")).into()
    })
}

/// A session that is addressed, `NAME` or `NAME@GENERATION`.
///
/// # Errors
/// As [`name`], or when what stands behind `@` is no generation.
pub fn address(text: &str) -> Result<(Name, Option<Generation>), Stop> {
    let Some((before, behind)) = text.split_once('@') else {
        return Ok((name(text)?, None));
    };
    let generation = Generation::parse(behind).ok_or_else(|| {
        Fault::usage(format!(
            "{text:?}: {behind:?} is no generation, a whole number from 1"
        ))
    })?;
    Ok((name(before)?, Some(generation)))
}

/// A token as given, else that of the environment, if there is any.
///
/// # Errors
/// When what is named is no token.
pub fn token(given: Option<&OsStr>) -> Result<Option<Token>, Stop> {
    if let Some(given) = given {
        return parse_token(given).map(Some);
    }
    if let Some(path) = served::variable("TENURE_TOKEN_FILE").filter(|p| !p.is_empty()) {
        return private_file::read_token(Path::new(&path)).map(Some);
    }
    let Some(text) = served::variable("TENURE_TOKEN").filter(|t| !t.is_empty()) else {
        return Ok(None);
    };
    text.to_string_lossy().parse().map(Some).map_err(|fault| {
        Fault::usage(format!(
            "TENURE_TOKEN holds no token: {}",
            private_file::without_content(&fault)
        ))
        .into()
    })
}

fn parse_token(given: &OsStr) -> Result<Token, Stop> {
    if let Some(path) = given.as_bytes().strip_prefix(b"@") {
        return private_file::read_token(Path::new(OsStr::from_bytes(path)));
    }
    let text = given.to_string_lossy();
    if text.contains('~') {
        // Everybody on the machine can read the arguments of a process.
        let message = "a secret may not stand in an argument; name a file that holds the token";
        return Err(Fault::usage(message)
            .then("tenure ... --as @FILE", "reads the token from a file")
            .into());
    }
    text.parse()
        .map_err(|fault| Fault::usage(format!("{text:?} is no token: {fault}")).into())
}

/// A text: as it stands, `-` for standard input, `@FILE`, and `@@...` for one that begins with `@`.
///
/// # Errors
/// When the file cannot be read, or is longer than any body may be.
pub fn text(given: &OsStr) -> Result<Vec<u8>, Stop> {
    text_up_to(given, BODY_BYTES_MAX)
}

/// As [`text`], where a text may have up to `bytes_max` bytes.
///
/// # Errors
/// As [`text`].
pub fn text_up_to(given: &OsStr, bytes_max: usize) -> Result<Vec<u8>, Stop> {
    let bytes = given.as_bytes();
    if bytes == b"-" {
        let stdin =
            served::input().ok_or_else(|| Fault::usage("standard input (`-`) was named twice"))?;
        return bounded(stdin, Path::new("standard input"), bytes_max);
    }
    match bytes.strip_prefix(b"@") {
        Some(literal) if literal.starts_with(b"@") => Ok(literal.to_vec()),
        Some(path) => {
            let path = Path::new(OsStr::from_bytes(path));
            let file = File::open(served::place(path))
                .map_err(|source| Fault::file("read", path, source))?;
            bounded(file, path, bytes_max)
        }
        None => Ok(bytes.to_vec()),
    }
}

/// One byte more than is allowed is read, so that the store can say how much too long it is.
fn bounded(source: impl Read, path: &Path, bytes_max: usize) -> Result<Vec<u8>, Stop> {
    let mut bytes = Vec::new();
    let read = source.take(bytes_max as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|source| Fault::file("read", path, source))?;
    Ok(bytes)
}

/// As [`text`], for what has to be one readable line: a reason, a title, a status. The end of line of a file is not
/// part of it.
///
/// # Errors
/// As [`text`], and when it is not UTF-8.
pub fn line(what: &str, given: &OsStr) -> Result<String, Stop> {
    let mut bytes = text(given)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|_| Fault::usage(format!("{what} is not UTF-8")).into())
}

/// As [`line()`], where one is given.
///
/// # Errors
/// As [`line()`].
pub fn maybe_line(what: &str, given: Option<&OsStr>) -> Result<Option<String>, Stop> {
    given.map(|given| line(what, given)).transpose()
}

/// As [`text`], where one is given.
///
/// # Errors
/// As [`text`].
pub fn maybe_text(given: Option<&OsStr>) -> Result<Option<Vec<u8>>, Stop> {
    given.map(text).transpose()
}

/// A role, `ROLE@SCOPE`.
///
/// # Errors
/// When a part is missing or breaks the rules.
pub fn role_at(text: &str) -> Result<RoleAt, Stop> {
    text.parse().map_err(|fault| {
        let cause = match fault {
            RoleFault::NoScope => Cause::Usage,
            _ => Cause::InvalidName,
        };
        Fault::new(cause, format!("{text:?}: {fault}")).into()
    })
}

/// A length of time.
///
/// # Errors
/// When it is none.
pub fn duration(option: &str, text: &str) -> Result<Duration, Stop> {
    let micros = clock::micros(text).and_then(|m| u64::try_from(m).ok());
    micros.map(Duration::from_micros).ok_or_else(|| {
        let message = format!("{option} {text:?} is no length of time, as 30s or 10m are");
        Fault::usage(message).into()
    })
}

/// A dispatch.
///
/// # Errors
/// When it is not written `d1`.
pub fn dispatch(text: &str) -> Result<DispatchNo, Stop> {
    let number = DispatchNo::parse(text);
    number.ok_or_else(|| {
        Fault::usage(format!("{text:?} is no dispatch: they are d1, d2, ...")).into()
    })
}

/// A recorded refusal.
///
/// # Errors
/// When it is not written `r1`.
pub fn refusal(text: &str) -> Result<RefusalNo, Stop> {
    let number = RefusalNo::parse(text);
    number.ok_or_else(|| {
        Fault::usage(format!(
            "{text:?} is no recorded refusal: they are r1, r2, ..."
        ))
        .into()
    })
}

/// An envelope.
///
/// # Errors
/// When it is not written `e1`.
pub fn envelope(text: &str) -> Result<EnvelopeNo, Stop> {
    let number = EnvelopeNo::parse(text);
    number.ok_or_else(|| {
        Fault::usage(format!("{text:?} is no envelope: they are e1, e2, ...")).into()
    })
}

/// A dispatch or an envelope.
///
/// # Errors
/// When it is neither.
pub fn reference(text: &str) -> Result<Ref, Stop> {
    let dispatch = DispatchNo::parse(text).map(Ref::Dispatch);
    let found = dispatch.or_else(|| EnvelopeNo::parse(text).map(Ref::Envelope));
    found.ok_or_else(|| {
        Fault::usage(format!(
            "{text:?} is neither a dispatch (d1) nor an envelope (e1)"
        ))
        .into()
    })
}

/// A position of the log.
///
/// # Errors
/// When it is none.
pub fn position(text: &str) -> Result<Position, Stop> {
    match When::parse(text, clock::now()) {
        Some(When::At(position)) => Ok(position),
        _ => {
            let message =
                format!("{text:?} is no position, a whole number as `tenure log` shows it");
            Err(Fault::new(Cause::BadPosition, message).into())
        }
    }
}

/// What a record opens or closes.
///
/// # Errors
/// When it is not written `run:ID`, `call:ID` or `approval:ID`.
pub fn activity(text: &str) -> Result<Activity, Stop> {
    let named = text
        .split_once(':')
        .and_then(|(kind, id)| Some((ActivityKind::from_word(kind)?, id)));
    let Some((kind, id)) = named else {
        let message = format!("{text:?} is none of run:ID, call:ID and approval:ID");
        return Err(Fault::usage(message).into());
    };
    Ok(Activity {
        kind,
        id: name(id)?,
    })
}

/// A place in the log.
///
/// # Errors
/// When it is neither a position, a time nor an age.
pub fn when(text: &str) -> Result<When, Stop> {
    When::parse(text, clock::now()).ok_or_else(|| {
        let message = format!("{text:?} is no position (120), time (RFC 3339) or age (10m, 2h)");
        Fault::new(Cause::BadPosition, message).into()
    })
}

/// A force needs a reason, and a reason given with it is the force's.
///
/// # Errors
/// When `--force` comes without `--reason`.
pub fn force(force: bool, reason: Option<&OsStr>) -> Result<Option<String>, Stop> {
    match (force, reason) {
        (false, _) => Ok(None),
        (true, Some(reason)) => line("the reason", reason).map(Some),
        (true, None) => {
            Err(Fault::usage("--force needs --reason TEXT: it is kept in the log").into())
        }
    }
}

/// A token that has to be there.
///
/// # Errors
/// `missing-token` when there is none.
pub fn required(token: Option<Token>) -> Result<Token, Stop> {
    token.ok_or_else(|| {
        let code = tenure_projection::core::refusal::Code::MissingToken;
        let message = "this needs a token and none was given".to_owned();
        crate::command::unknown(code, "", message)
    })
}
