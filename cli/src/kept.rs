//! Tokens of sealed stores that were granted to other processes, above all to agent hosts: their hooks are processes of
//! their own, and nothing but a file of this user tells those the secret.

use std::fs::DirBuilder;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use tenure_projection::core::generation::Generation;
use tenure_projection::core::id::{Name, Token};
use tenure_projection::host::state_directory;

use crate::context::Context;
use crate::fault::{Fault, Stop};
use crate::private_file::{self, PrivateFile};
use crate::served;

/// Keeps a token, if it has a secret, in place of an older one of its session.
///
/// # Errors
/// When its file cannot be written.
pub fn keep(ctx: &Context, token: &Token) -> Result<(), Stop> {
    let Some(path) = place(ctx, &token.name).filter(|_| token.secret.is_some()) else {
        return Ok(());
    };
    if let Some(dir) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|error| Fault::file("create", dir, error))?;
    }
    PrivateFile::prepare(&path)?.commit(&token.reveal())
}

/// The token that was kept of a session, if one was.
#[must_use]
pub fn token_of(ctx: &Context, name: &Name) -> Option<Token> {
    let token = private_file::read_token(&place(ctx, name)?).ok()?;
    (token.name == *name).then_some(token)
}

/// The token of a generation that was granted to another process: with its secret, where one was kept.
#[must_use]
pub fn token_at(ctx: &Context, name: &Name, generation: Generation) -> Token {
    let kept = token_of(ctx, name).filter(|kept| kept.generation == generation);
    kept.unwrap_or_else(|| Token {
        name: name.clone(),
        generation,
        secret: None,
    })
}

/// The file of a session, named by a digest of the store and the session, which may have a long name. Not in the store:
/// whoever copies or bundles that takes no secret along.
fn place(ctx: &Context, name: &Name) -> Option<PathBuf> {
    let store = std::path::absolute(served::place(&ctx.dir().ok()?)).ok()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(store.as_os_str().as_bytes());
    hasher.update(&[0]);
    hasher.update(name.as_str().as_bytes());
    let file = hasher.finalize().to_hex();
    Some(state_directory()?.join("tenure-tokens").join(&file[..32]))
}
