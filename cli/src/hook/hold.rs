//! Sessions that a program above or below this one holds: taken for its process, and told whom it meets.

use std::path::PathBuf;

use tenure_projection::call::{Bearer, Label, Verb};
use tenure_projection::core::holder::Verdict;
use tenure_projection::core::id::{Name, Token};
use tenure_projection::store::Store;
use tenure_projection::views::SharedView;

use crate::command::sessions::exec::take;
use crate::command::sessions::grant::granted;
use crate::context::Context;
use crate::fault::Stop;
use crate::kept;

/// By what a session is held that this program takes for another process: the label `host`.
pub fn labels(host: &str) -> Vec<Label> {
    vec![Label {
        key: "host".to_owned(),
        value: host.to_owned(),
    }]
}

/// Registers or adopts a session for another process, without force. A secret is kept where the hooks of that process
/// find it.
///
/// # Errors
/// The refusal, or why nothing could be asked.
pub fn take_for(
    ctx: &Context,
    store: &Store,
    name: &Name,
    bearer: &Bearer,
    host: &str,
    cwd: Option<PathBuf>,
) -> Result<Token, Stop> {
    let checkout = cwd.filter(|cwd| cwd.is_absolute());
    let done = take(ctx, store, name, None, &|adopt| {
        let (name, bearer, labels) = (name.clone(), bearer.clone(), labels(host));
        match adopt {
            true => Verb::Adopt {
                name,
                bearer,
                labels,
            },
            false => Verb::Register {
                name,
                bearer,
                labels,
                checkout: checkout.clone(),
            },
        }
    })?;
    let token = granted(&done)?.token.clone();
    kept::keep(ctx, &token)?;
    Ok(token)
}

/// Of whom an answer named, those who may live.
#[must_use]
pub fn who_may_live(mut views: Vec<SharedView>) -> Vec<SharedView> {
    let may_live = |view: &SharedView| {
        view.holder
            .as_ref()
            .is_some_and(|holder| holder.verdict != Verdict::Dead)
    };
    views.retain(may_live);
    views
}
