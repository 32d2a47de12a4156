//! What is asked of whole trees.

use tenure_core::command::{
    AdoptClaimed, AdoptTree, Claim, Command, Publish, Recover, RegisterChild, Release, ReleaseDead,
    Reserve, Rollback,
};
use tenure_core::text::TextId;

use crate::call::Verb;
use crate::error::Error;

use super::Writing;

impl Writing<'_> {
    /// Roots, children and trees as a whole; `None` for any other verb.
    pub(super) fn about_a_tree(
        &mut self,
        verb: &mut Verb,
        actor: TextId,
    ) -> Result<Option<Command>, Error> {
        Ok(Some(match verb {
            Verb::RegisterChild {
                name,
                bearer,
                labels,
                checkout,
            } => RegisterChild {
                name: self.name(name),
                bearer: self.bearer(bearer, actor)?,
                labels: self.labels(labels)?,
                checkout: checkout.as_ref().map(|c| self.scope(c)).transpose()?,
            }
            .into(),
            Verb::Reserve {
                name,
                bearer,
                labels,
                checkout,
            } => Reserve {
                name: self.name(name),
                bearer: self.bearer(bearer, actor)?,
                labels: self.labels(labels)?,
                checkout: checkout.as_ref().map(|c| self.scope(c)).transpose()?,
            }
            .into(),
            Verb::Claim { name, bearer } => Claim {
                name: self.name(name),
                bearer: self.bearer(bearer, actor)?,
            }
            .into(),
            Verb::AdoptTree {
                name,
                bearer,
                labels,
            } => AdoptTree {
                name: self.name(name),
                bearer: self.bearer(bearer, actor)?,
                labels: self.labels(labels)?,
            }
            .into(),
            Verb::AdoptClaimed {
                name,
                bearer,
                labels,
                epoch,
            } => AdoptClaimed {
                name: self.name(name),
                bearer: self.bearer(bearer, actor)?,
                labels: self.labels(labels)?,
                epoch: *epoch,
            }
            .into(),
            other => return self.about_an_epoch(other),
        }))
    }

    /// What ends a claim, a reservation or a holding, or stands on one.
    fn about_an_epoch(&mut self, verb: &mut Verb) -> Result<Option<Command>, Error> {
        Ok(Some(match verb {
            Verb::Publish { name, epoch } => Publish {
                name: self.name(name),
                epoch: *epoch,
            }
            .into(),
            Verb::Rollback { name, epoch } => Rollback {
                name: self.name(name),
                epoch: *epoch,
            }
            .into(),
            Verb::Recover { name, epoch, body } => Recover {
                name: self.name(name),
                epoch: *epoch,
                body: self.body(std::mem::take(body))?,
            }
            .into(),
            Verb::Release {
                name,
                epoch,
                reason,
            } => Release {
                name: self.name(name),
                epoch: *epoch,
                reason: reason.as_deref().map(|r| self.reason(r)).transpose()?,
            }
            .into(),
            Verb::ReleaseDead { name } => ReleaseDead {
                name: self.name(name),
            }
            .into(),
            _ => return Ok(None),
        }))
    }
}
