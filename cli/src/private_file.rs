//! Files for one user alone, replaced as a whole: tokens, cursors.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tenure_projection::core::id::Token;

use crate::exit::Cause;
use crate::fault::{Fault, Stop};
use crate::served;

/// A token with a long name, an incarnation and a secret is far below this.
const TOKEN_FILE_BYTES_MAX: u64 = 4096;

/// How many files this process has made ready.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A file made ready before there is anything to write: a grant is not lost because its token's file cannot be
/// created.
#[derive(Debug)]
pub struct PrivateFile {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<File>,
}

impl PrivateFile {
    /// Makes the file that will become `path`, mode 0600.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn prepare(path: &Path) -> Result<Self, Stop> {
        let mut name = path
            .file_name()
            .map(ToOwned::to_owned)
            .ok_or_else(|| Fault::usage(format!("{} names no file", path.display())))?;
        // A server makes several at a time.
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        name.push(format!(".{}.{number}.new", std::process::id()));
        let temporary = path.with_file_name(name);
        let failed = |source| Fault::file("create", &temporary, source);
        let open = || {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(served::place(&temporary))
        };
        let file = match open() {
            // Left by a process of the same number that did not come to its end.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(served::place(&temporary)).and_then(|()| open())
            }
            other => other,
        };
        let file = file.map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            temporary,
            file: Some(file),
        })
    }

    /// Writes one line and puts the file in its place, all of it or nothing.
    ///
    /// # Errors
    /// When it cannot be written; what stood there stands there still.
    pub fn commit(mut self, line: &str) -> Result<(), Stop> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Stop::from(Fault::file("replace", &path, source))
        };
        if let Some(mut file) = self.file.take() {
            let written = writeln!(file, "{line}").and_then(|()| file.sync_all());
            written.map_err(failed(&self.temporary))?;
        }
        let (temporary, path) = (served::place(&self.temporary), served::place(&self.path));
        fs::rename(&temporary, &path).map_err(failed(&self.path))?;
        let parent = self.path.parent().filter(|p| !p.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        File::open(served::place(parent))
            .and_then(|dir| dir.sync_all())
            .map_err(failed(parent))
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // After a commit the name is gone already; before one, nobody asks for the file.
        let _ = fs::remove_file(served::place(&self.temporary));
    }
}

/// Reads what [`PrivateFile::commit`] wrote, without the end of line.
///
/// # Errors
/// When the file cannot be read, or is too long to be one.
pub fn read_line(path: &Path) -> Result<String, Stop> {
    let failed = |source| Stop::from(Fault::file("read", path, source));
    let mut text = String::new();
    let file = File::open(served::place(path)).map_err(failed)?;
    file.take(TOKEN_FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > TOKEN_FILE_BYTES_MAX {
        let message = format!(
            "{} is no token file: it has more than {TOKEN_FILE_BYTES_MAX} bytes",
            path.display()
        );
        return Err(Fault::new(Cause::Usage, message).into());
    }
    Ok(text.trim().to_owned())
}

/// Reads a token from a file.
///
/// # Errors
/// When the file cannot be read, or holds no token.
pub fn read_token(path: &Path) -> Result<Token, Stop> {
    read_line(path)?.parse().map_err(|fault| {
        // The text itself may hold a secret and is not repeated.
        Fault::usage(format!(
            "{} holds no token: {}",
            path.display(),
            without_content(&fault)
        ))
        .into()
    })
}

/// What is wrong with a token, without repeating any of it.
#[must_use]
pub fn without_content(fault: &tenure_projection::core::id::TokenFault) -> String {
    use tenure_projection::core::id::TokenFault;
    match fault {
        TokenFault::Generation(_) => "what stands behind '@' is no generation".to_owned(),
        other => other.to_string(),
    }
}
