//! Views of a state as text.

use std::fmt::Write;

use tenure_core::generation::Standing;
use tenure_core::id::Position;
use tenure_core::state::State;
use tenure_projection::history::{Passage, Span};
use tenure_projection::store::Store;

/// A list of shared sessions as text.
pub fn listed(state: &State, shared: &[tenure_core::disclosure::Shared]) -> String {
    let mut text = String::new();
    for s in shared {
        let name = state.name(s.session);
        let former = s.former.map(|(g, _)| format!("@{g}")).unwrap_or_default();
        let (level, source) = (s.level.as_str(), s.source.as_str());
        write!(text, " {name}{former}({level},{source})").expect("a string grows");
    }
    text
}

/// `active@G open=N inbox=N`, or `retired@..`, or `absent`.
pub fn session(state: &State, name: &str) -> String {
    let Some(record) = state.find(name.as_bytes()).and_then(|n| state.session(n)) else {
        return "absent".into();
    };
    let active = if record.retired { "retired" } else { "active" };
    format!(
        "{active}@{} open={} inbox={}",
        record.generation,
        record.open.len(),
        record.inbox.len()
    )
}

/// `STANDING eN NAME@G ...`: the root first; a session that is not writable in brackets, a retired one with a dash.
pub fn tree(state: &State, name: &str) -> String {
    let Some(root) = state
        .find(name.as_bytes())
        .and_then(|n| state.session(n))
        .map(|s| s.root)
    else {
        return "absent".into();
    };
    let tree = state.tree(root).expect("a root has a tree");
    let mut text = format!("{} e{}", tree.standing.as_str(), tree.epoch);
    for (number, session) in state.sessions_of_tree(root) {
        let token = format!("{}@{}", state.name(number), session.generation);
        match state.standing(number) {
            Some(Standing::Granted) => write!(text, " {token}"),
            Some(Standing::Retired) => write!(text, " -{token}"),
            _ => write!(text, " [{token}]"),
        }
        .expect("a string grows");
    }
    text
}

/// Every envelope a session ever had.
pub fn inbox(state: &State, name: &str) -> String {
    let session = state.find(name.as_bytes()).expect("the session exists");
    let mut text = String::new();
    for (n, row) in state
        .envelopes
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, r)| r.session == session)
    {
        let (kind, stands) = (row.kind.as_str(), row.state.as_str());
        write!(text, "e{n} {kind} {stands}@{}", row.generation).expect("a string grows");
        for word in [row.reason.as_str(), row.notice.as_str()]
            .iter()
            .filter(|w| !w.is_empty())
        {
            write!(text, " {word}").expect("a string grows");
        }
        if let Some(re) = row.re {
            write!(text, " re={re}").expect("a string grows");
        }
        text.push('\n');
    }
    text
}

/// Every dispatch that ever was.
pub fn work(state: &State) -> String {
    let mut text = String::new();
    for (n, row) in state.dispatches.iter().enumerate().skip(1) {
        let name = state.name(row.session);
        writeln!(
            text,
            "d{n} {} {name}@{}",
            row.state.as_str(),
            row.generation
        )
        .expect("a string grows");
    }
    text
}

/// Every refusal record.
pub fn refusals(state: &State) -> String {
    let mut text = String::new();
    for (n, r) in state.refusals.iter().enumerate().skip(1) {
        let code = tenure_core::refusal::Code::from_number(r.code).map_or("?", |c| c.as_str());
        let subject = state.pool.string(r.subject);
        writeln!(
            text,
            "r{n} {code} {subject} x{} bodies={}",
            r.count,
            r.bodies.len()
        )
        .expect("a string grows");
    }
    text
}

/// Positions that are not honoured.
pub fn findings(state: &State) -> String {
    let positions: Vec<_> = state.findings.iter().map(ToString::to_string).collect();
    positions.join(" ")
}

/// `ROLE@SCOPE`.
pub fn role(state: &State, number: tenure_core::id::RoleNo) -> String {
    let role = state.role(number).expect("the role exists");
    let text = |symbol| state.pool.string(symbol);
    format!("{}@{}", text(role.name), text(role.scope.text))
}

/// Every role that was ever taken: `ROLE@SCOPE GENERATION HOLDER`.
pub fn roles(state: &State) -> String {
    let mut text = String::new();
    for (n, record) in state.roles.iter().enumerate() {
        let holder = record.holding.as_ref().map(|h| state.name(h.session));
        let named = role(state, tenure_core::id::RoleNo(n as u64));
        let holder = holder.unwrap_or_else(|| "-".into());
        writeln!(text, "{named} {} {holder}", record.generation).expect("a string grows");
    }
    text
}

/// Work that was reported blocked, and that nobody has seen to.
pub fn blocked(state: &State) -> String {
    let numbers: Vec<_> = state.blocked.keys().map(ToString::to_string).collect();
    numbers.join(" ")
}

/// Whom the current holder of a session was shown: `NAME@GENERATION at POSITION`.
pub fn told(state: &State, name: &str) -> String {
    let session = state.find(name.as_bytes()).and_then(|n| state.session(n));
    let mut text = String::new();
    for told in &session.expect("the session exists").told {
        let (peer, at) = (state.name(told.peer), told.at.position);
        writeln!(text, "{peer}@{} at {at}", told.generation).expect("a string grows");
    }
    text
}

/// The records of a history as `BODY@POSITION`, those of an ancestor with its name before it; with `all` what is
/// hidden in brackets, and reverts.
pub fn history(store: &Store, name: &str, at: Option<Position>, all: bool) -> String {
    let state = store.view(Clone::clone).expect("the log reads");
    let session = state.find(name.as_bytes()).expect("the session exists");
    let span = Span {
        session,
        until: at.unwrap_or(state.at.position),
        hidden: all,
    };
    let (mut words, mut next) = (Vec::new(), 1);
    let each = |passage| {
        words.push(match passage {
            Passage::Record(r) => {
                let body = String::from_utf8_lossy(r.body.as_deref().expect("it is there"));
                let by = match r.origin == session {
                    true => String::new(),
                    false => format!("{}:", state.name(r.origin)),
                };
                let word = format!("{by}{body}@{}", r.at.position);
                if r.hidden {
                    format!("[{word}]")
                } else {
                    assert_eq!(r.index, next, "{word} of {name}");
                    next += 1;
                    word
                }
            }
            Passage::Revert { to, at, .. } => format!("revert@{}:{to}", at.position),
        });
        Ok(true)
    };
    store.history(&state, span, each).expect("the log reads");
    words.join(" ")
}
