//! What is said to agents and people. Texts of others are data: quoted, on one line, cut.

use tenure_projection::core::refusal::Next;
use tenure_projection::views::{
    CheckView, EnvelopeView, HolderView, LossView, RefusalView, SharedView,
};

use crate::fault::Stop;
use crate::output::escape;
use crate::output::human::{self, Line};

use super::OnError;
use super::payload::{Answer, Kind};

/// The longest text of an answer, in bytes. Claude Code cuts at 10,000 characters.
const TEXT_BYTES_MAX: usize = 8000;
/// The longest text of somebody else in it, in characters.
const QUOTE_CHARS_MAX: usize = 200;

/// Lines as one text, each on a line of its own.
#[must_use]
pub fn text(lines: impl IntoIterator<Item = String>) -> String {
    let mut text = String::from("tenure: ");
    for (at, line) in lines.into_iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        text.push_str(&escape::line(&line));
    }
    cut(&mut text, TEXT_BYTES_MAX);
    text
}

fn cut(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let mut end = bytes_max - 3;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str("...");
    }
}

/// A text of somebody else.
fn quote(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTE_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("\"{}\"", escape::line(&shown))
}

fn plain(lines: Vec<Line>) -> impl Iterator<Item = String> {
    lines.into_iter().map(|(_, line)| line)
}

/// What was lost, with the words of whoever took it quoted.
fn losses(lost: &[LossView]) -> Vec<LossView> {
    let quoted = |loss: &LossView| LossView {
        reason: loss.reason.as_deref().map(quote),
        ..loss.clone()
    };
    lost.iter().map(quoted).collect()
}

/// The ways on, for whoever reads them outside of this process: with the store, and with the host's process as the one
/// that gets the grant.
fn ways(next: &[Next], store: Option<&str>, pid: u32) -> Vec<Next> {
    let way = |next: &Next| {
        let mut command = next.command.clone();
        let granting = ["tenure adopt ", "tenure register "];
        if granting.iter().any(|begin| command.starts_with(begin)) {
            command.push_str(&format!(" --pid {pid}"));
        }
        if let (Some(store), Some(rest)) = (store, command.strip_prefix("tenure ")) {
            command = format!("tenure --store {store} {rest}");
        }
        Next {
            command,
            effect: next.effect,
        }
    };
    next.iter().map(way).collect()
}

/// Why a session may not do something, or may not be taken.
#[must_use]
pub fn refusal(view: &RefusalView, store: Option<&str>, pid: u32) -> String {
    let view = RefusalView {
        lost: losses(&view.lost),
        next: ways(&view.next, store, pid),
        ..view.clone()
    };
    text(plain(human::refusal(&view)))
}

/// That a policy wants this to be heard first.
#[must_use]
pub fn warning(shared: &[SharedView], instruction: Option<&str>) -> String {
    let first = "the policy here is `warn-once`: this was not done; the same again is".to_owned();
    text(std::iter::once(first).chain(meeting(shared, instruction)))
}

/// What was lost behind the agent's back.
#[must_use]
pub fn lost(view: &CheckView, store: Option<&str>, pid: u32) -> String {
    let relation = view.relation().map_or("", |r| r.as_str());
    let current = format!("{}@{}", view.session, view.generation);
    let first = match view.lapsed {
        true => format!("{} is not current: its tree changed hands", view.token),
        false if view.token == current => format!("{} is not current ({relation})", view.token),
        false => format!("{} is not current ({relation}): {current} is", view.token),
    };
    let holder = view
        .holder
        .as_ref()
        .map(|h| format!("held by {}", human::holder(h)));
    let back = Next {
        command: format!("tenure adopt {} --force --reason TEXT", view.session),
        effect: "hands it back to this agent, and fences whoever holds it now: for a person to decide",
    };
    let lines = std::iter::once(first)
        .chain(holder)
        .chain(plain(human::lost(&losses(&view.lost))))
        .chain(plain(human::next(&ways(&[back], store, pid))));
    text(lines)
}

/// Who else works there.
pub fn meeting(shared: &[SharedView], instruction: Option<&str>) -> Vec<String> {
    let quoted = |view: &SharedView| SharedView {
        status: quote(&view.status),
        titles: view
            .titles
            .iter()
            .map(|t| t.as_deref().map(quote))
            .collect(),
        ..view.clone()
    };
    let list: Vec<SharedView> = shared.iter().map(quoted).collect();
    plain(human::shared(&list, instruction)).collect()
}

/// Whose claim is there, and nobody behind it (GIT-2).
pub fn gone(shared: &[SharedView]) -> Vec<String> {
    let one = |view: &SharedView| {
        let why = match &view.holder {
            Some(holder) => format!("{} is gone", HolderView::label(holder)),
            None => "nobody holds it".to_owned(),
        };
        let (name, places) = (&view.session, view.writes.join(", "));
        format!("{name} has a claim on {places}, and {why}: it is in nobody's way")
    };
    shared.iter().map(one).collect()
}

/// An envelope that was waiting.
pub fn envelope(view: &EnvelopeView) -> Vec<String> {
    let (_, head) = human::envelope(view);
    let body = view.body.as_deref().map(String::from_utf8_lossy);
    let body = body.filter(|body| !body.trim().is_empty());
    std::iter::once(head)
        .chain(body.map(|body| format!("  {}", quote(&body))))
        .collect()
}

/// Why something could not be asked, in one line.
#[must_use]
pub fn why(stop: &Stop) -> String {
    match stop {
        Stop::Failed(fault) => format!("{}: {}", fault.cause.as_str(), fault.message),
        Stop::Refused(refusal) => format!("{}: {}", refusal.word(), refusal.message),
        Stop::OutputClosed => "nobody reads".to_owned(),
    }
}

/// The table of GIT-3: nothing could be asked.
#[must_use]
pub fn blind(kind: Kind, on_error: OnError, why: &str) -> Answer {
    let line = match (kind, on_error) {
        (Kind::Before, OnError::Deny) => {
            let said =
                format!("nothing could be checked: {why}; the tool does not run (on-error deny)");
            return Answer::Deny(text([said]));
        }
        (Kind::Before, OnError::Allow) => {
            format!("nothing was checked: {why}; the tool runs (on-error allow)")
        }
        _ => format!("nothing was checked: {why}"),
    };
    Answer::Say(text([line]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever others write, it stays one quoted line, and the whole within the host's bound.
    #[test]
    fn texts_of_others_are_quoted_and_cut() {
        let quoted = quote(&"é\n\x1b[31m".repeat(500));
        assert!(
            quoted.starts_with('"') && quoted.ends_with("...\""),
            "{quoted}"
        );
        assert!(!quoted.contains('\n') && !quoted.contains('\x1b'));
        let long = text(std::iter::repeat_n("é".repeat(301), 100));
        assert!(
            long.len() <= TEXT_BYTES_MAX && long.ends_with("..."),
            "{}",
            long.len()
        );
    }

    /// GIT-3: both policies, before a tool and elsewhere.
    #[test]
    fn what_cannot_be_asked_is_answered_by_the_policy() {
        let said = |kind, policy| blind(kind, policy, "io: gone");
        assert_eq!(
            said(Kind::Before, OnError::Allow),
            Answer::Say(
                "tenure: nothing was checked: io: gone; the tool runs (on-error allow)".into()
            )
        );
        assert_eq!(
            said(Kind::Before, OnError::Deny),
            Answer::Deny(
                "tenure: nothing could be checked: io: gone; the tool does not run (on-error deny)"
                    .into()
            )
        );
        for policy in [OnError::Allow, OnError::Deny] {
            for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Before) {
                let said = said(kind, policy);
                assert_eq!(
                    said,
                    Answer::Say("tenure: nothing was checked: io: gone".into()),
                    "{kind:?}"
                );
            }
        }
    }
}
