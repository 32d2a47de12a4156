//! Calls about histories.

use tenure_core::command::{Branch, BranchInTree, Command, Import, Record, Rename, Revert};
use tenure_core::history;
use tenure_core::limits;
use tenure_core::text::TextId;

use super::{Writing, within};
use crate::call::{Activity, Verb};
use crate::error::Error;

impl Writing<'_> {
    /// What a call about a history asks; `None` for any other call.
    pub(super) fn about_a_history(
        &mut self,
        verb: &mut Verb,
        actor: TextId,
    ) -> Result<Option<Command>, Error> {
        Ok(Some(match verb {
            Verb::Record {
                kind,
                body,
                expect,
                opens,
                closes,
            } => Record {
                kind: self.record_kind(kind)?,
                body: {
                    within("the record", body.len(), limits::RECORD_BYTES_MAX)?;
                    self.bodies.add(std::mem::take(body))
                },
                expect: *expect,
                opens: opens.as_ref().map(|a| self.activity(a)),
                closes: closes.as_ref().map(|a| self.activity(a)),
            }
            .into(),
            Verb::Revert { to } => Revert {
                to: *to,
                found: self.store.record_at(*to)?,
            }
            .into(),
            &mut Verb::Branch { in_tree, .. } => {
                let branch = self.branch(verb, actor)?;
                if in_tree {
                    within_the_tree(branch).into()
                } else {
                    branch.into()
                }
            }
            Verb::Import { from, parent, hash } => Import {
                from: self.text("the name there", from, limits::LABEL_BYTES_MAX)?,
                parent: parent
                    .as_deref()
                    .map(|p| self.text("the parent's name", p, limits::LABEL_BYTES_MAX))
                    .transpose()?,
                hash: *hash,
            }
            .into(),
            Verb::Rename { name, to } => Rename {
                name: self.name(name),
                to: self.name(to),
            }
            .into(),
            _ => return Ok(None),
        }))
    }

    fn branch(&mut self, verb: &Verb, actor: TextId) -> Result<Branch, Error> {
        let Verb::Branch {
            source,
            name,
            at,
            bearer,
            labels,
            checkout,
            ..
        } = verb
        else {
            unreachable!("asked for branches alone");
        };
        Ok(Branch {
            source: self.name(source),
            name: self.name(name),
            at: *at,
            found: match at {
                Some(at) => self.store.record_at(*at)?,
                None => None,
            },
            bearer: self.bearer(bearer, actor)?,
            labels: self.labels(labels)?,
            checkout: checkout.as_ref().map(|c| self.scope(c)).transpose()?,
        })
    }

    fn record_kind(&mut self, kind: &str) -> Result<TextId, Error> {
        if kind.is_empty() {
            return Err(Error::Empty("the kind of a record"));
        }
        self.text("the kind of a record", kind, limits::LABEL_BYTES_MAX)
    }

    fn activity(&mut self, activity: &Activity) -> history::Activity {
        history::Activity {
            kind: activity.kind,
            id: self.name(&activity.id),
        }
    }
}

fn within_the_tree(branch: Branch) -> BranchInTree {
    let Branch {
        source,
        name,
        at,
        found,
        bearer,
        labels,
        checkout,
    } = branch;
    BranchInTree {
        source,
        name,
        at,
        found,
        bearer,
        labels,
        checkout,
    }
}
