//! What differs between two states of one log: subject by subject, in words.

use tenure_core::id::{DispatchNo, EnvelopeNo, RefusalNo, RoleNo, SessionNo};
use tenure_core::state::{Holder, Role, Session, State, TreeStanding};

use crate::views::{code_word, shown};

/// Something that one state says otherwise than the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// What it is about: a session's name, `d1`, `e1`, `r1`, `role:R@S`, `policy:P`, or `store`.
    pub subject: String,
    /// Which of its properties.
    pub what: &'static str,
    /// What the earlier state says; `None`: nothing.
    pub before: Option<String>,
    /// What the later one says; `None`: nothing.
    pub after: Option<String>,
}

/// Properties in words, always in the same order.
type Facts = Vec<(&'static str, String)>;

/// Everything that `after` says otherwise than `before`: the store, then sessions, dispatches, envelopes,
/// refusals, roles and policies, each by number.
///
/// Both have to be states of one log. Where the newest frame stands, and when a session was last heard of, is no
/// difference.
#[must_use]
pub fn diff(before: &State, after: &State) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(
        "store",
        Some(&store(before)),
        Some(&store(after)),
        &mut changes,
    );
    let count = before.sessions.len().max(after.sessions.len());
    for number in (0..count).map(|n| SessionNo(n as u64)) {
        // Equal records of one log have equal texts.
        if before.session(number) != after.session(number) {
            let name = if after.session(number).is_some() {
                after.name(number)
            } else {
                before.name(number)
            };
            let (then, now) = (session(before, number), session(after, number));
            compare(&name, then.as_ref(), now.as_ref(), &mut changes);
        }
    }
    let count = before.dispatches.len().max(after.dispatches.len());
    for number in (1..count).map(|n| DispatchNo(n as u64)) {
        if before.dispatch(number) != after.dispatch(number) {
            let (then, now) = (dispatch(before, number), dispatch(after, number));
            compare(
                &number.to_string(),
                then.as_ref(),
                now.as_ref(),
                &mut changes,
            );
        }
    }
    let count = before.envelopes.len().max(after.envelopes.len());
    for number in (1..count).map(|n| EnvelopeNo(n as u64)) {
        if before.envelope(number) != after.envelope(number) {
            let (then, now) = (envelope(before, number), envelope(after, number));
            compare(
                &number.to_string(),
                then.as_ref(),
                now.as_ref(),
                &mut changes,
            );
        }
    }
    let count = before.refusals.len().max(after.refusals.len());
    for number in (1..count).map(|n| RefusalNo(n as u64)) {
        if before.refusal(number) != after.refusal(number) {
            let (then, now) = (refusal(before, number), refusal(after, number));
            compare(
                &number.to_string(),
                then.as_ref(),
                now.as_ref(),
                &mut changes,
            );
        }
    }
    roles_and_policies(before, after, &mut changes);
    changes
}

fn roles_and_policies(before: &State, after: &State, changes: &mut Vec<Change>) {
    let next = before.next_role().max(after.next_role());
    for number in (0..next.0).map(RoleNo) {
        if before.role(number) != after.role(number) {
            let (then, now) = (role(before, number), role(after, number));
            let named = if now.is_some() { after } else { before };
            let subject = role_name(named, number);
            compare(&subject, then.as_ref(), now.as_ref(), changes);
        }
    }
    let count = before.policies.len().max(after.policies.len());
    for number in 0..count {
        if before.policies.get(number) != after.policies.get(number) {
            let (then, now) = (policy(before, number), policy(after, number));
            let named = if now.is_some() { after } else { before };
            let place = named.policies[number].scope.path;
            let subject = format!("policy:{}", shown(named.pool.get(place)));
            compare(&subject, then.as_ref(), now.as_ref(), changes);
        }
    }
}

fn compare(subject: &str, before: Option<&Facts>, after: Option<&Facts>, into: &mut Vec<Change>) {
    let of = |facts: Option<&Facts>, what: &str| {
        let found = facts.and_then(|facts| facts.iter().find(|(w, _)| *w == what));
        found.map(|(_, value)| value.clone())
    };
    let mut named: Vec<&'static str> = Vec::new();
    for (what, _) in before.into_iter().chain(after).flatten() {
        if !named.contains(what) {
            named.push(what);
        }
    }
    for what in named {
        let (before, after) = (of(before, what), of(after, what));
        if before != after {
            into.push(Change {
                subject: subject.to_owned(),
                what,
                before,
                after,
            });
        }
    }
}

fn store(state: &State) -> Facts {
    let findings: Vec<_> = state.findings.iter().map(ToString::to_string).collect();
    let mut facts = vec![("incarnation", state.incarnation.to_string())];
    if !findings.is_empty() {
        facts.push(("findings", findings.join(", ")));
    }
    if let Some(since) = state.unproven.last().filter(|u| u.until.is_none()) {
        facts.push(("unproven", format!("since {}", since.since)));
    }
    facts
}

/// A holder in one line: engine, process and host.
fn holder(state: &State, holder: &Holder) -> String {
    let text = |symbol| shown(state.pool.get(symbol));
    let engine = holder.engine.map(|e| format!("{} ", text(e)));
    let process = holder.bearing.process;
    let process = process.map_or("no process".to_owned(), |p| format!("pid {}", p.pid));
    format!(
        "{}{process} on {}",
        engine.unwrap_or_default(),
        text(holder.host_name)
    )
}

/// What a session says of the tree that it is in, and a root of its own.
fn tree(state: &State, number: SessionNo, record: &Session) -> Facts {
    if record.root != number {
        let mut facts = vec![("tree", shown(state.name(record.root).as_bytes()))];
        facts.extend(
            record
                .parent
                .map(|p| ("parent", shown(state.name(p).as_bytes()))),
        );
        return facts;
    }
    let dropped = record.tree.standing == TreeStanding::Unowned && !record.retired;
    let reserved = record.tree.standing == TreeStanding::PendingPublish;
    if !(record.tree.grown || dropped || reserved) {
        // The tree of a root alone says nothing that its own grant does not say.
        return Facts::new();
    }
    let mut facts = vec![
        ("epoch", record.tree.epoch.to_string()),
        ("tree_standing", record.tree.standing.as_str().to_owned()),
    ];
    let claimer = record.tree.claimer.as_ref();
    facts.extend(claimer.map(|c| ("claimed_by", holder(state, &c.holder))));
    facts
}

fn session(state: &State, number: SessionNo) -> Option<Facts> {
    let record = state.session(number)?;
    let text = |symbol| shown(state.pool.get(symbol));
    let mut facts: Facts = vec![
        ("name", text(record.name)),
        (
            "state",
            if record.retired { "retired" } else { "active" }.to_owned(),
        ),
        ("generation", record.generation.to_string()),
    ];
    if record.history.count() > 0 {
        let (count, tip) = (record.history.count(), record.history.tip_position());
        facts.push(("history", format!("{count} records, the newest at {tip}")));
    }
    facts.extend(record.holder.map(|h| ("holder", holder(state, &h))));
    facts.extend(tree(state, number, record));
    let labels = record
        .labels
        .iter()
        .map(|(k, v)| format!("{}={}", text(*k), text(*v)));
    let mut list = |what, values: Vec<String>| {
        if !values.is_empty() {
            facts.push((what, values.join(", ")));
        }
    };
    list("labels", labels.collect());
    list(
        "status",
        record.status.iter().map(|s| shown(s.as_bytes())).collect(),
    );
    list(
        "checkout",
        record.checkout.iter().map(|c| text(c.path)).collect(),
    );
    list(
        "observed",
        record.observed.iter().map(|o| text(o.path)).collect(),
    );
    let formers = record.formers.iter();
    list(
        "former",
        formers
            .map(|f| format!("generation {}: {}", f.generation, holder(state, &f.holder)))
            .collect(),
    );
    Some(facts)
}

fn dispatch(state: &State, number: DispatchNo) -> Option<Facts> {
    let row = state.dispatch(number)?;
    let mut facts = vec![
        ("session", state.name(row.session)),
        ("generation", row.generation.to_string()),
        ("state", row.state.as_str().to_owned()),
    ];
    if let Some(live) = state.live.get(&number) {
        facts.push(("item", shown(live.item.as_bytes())));
        let writes = live.writes.iter().map(|w| shown(state.pool.get(w.path)));
        let writes: Vec<_> = writes.collect();
        if !writes.is_empty() {
            facts.push(("writes", writes.join(", ")));
        }
    }
    if state.blocked.contains_key(&number) {
        facts.push(("needs", "a person".to_owned()));
    }
    Some(facts)
}

fn envelope(state: &State, number: EnvelopeNo) -> Option<Facts> {
    let row = state.envelope(number)?;
    let mut facts = vec![
        ("kind", row.kind.as_str().to_owned()),
        ("session", state.name(row.session)),
        ("generation", row.generation.to_string()),
        ("state", row.state.as_str().to_owned()),
    ];
    if !row.reason.as_str().is_empty() {
        facts.push(("reason", row.reason.as_str().to_owned()));
    }
    Some(facts)
}

fn refusal(state: &State, number: RefusalNo) -> Option<Facts> {
    let record = state.refusal(number)?;
    Some(vec![
        ("code", code_word(record.code)),
        ("subject", shown(state.pool.get(record.subject))),
        ("count", record.count.to_string()),
        ("bodies", record.bodies.len().to_string()),
    ])
}

fn role_name(state: &State, number: RoleNo) -> String {
    let name = |role: &Role| {
        let text = |symbol| shown(state.pool.get(symbol));
        format!("role:{}@{}", text(role.name), text(role.scope.text))
    };
    state.role(number).map(name).unwrap_or_default()
}

fn role(state: &State, number: RoleNo) -> Option<Facts> {
    let record = state.role(number)?;
    let mut facts = vec![("role_generation", record.generation.to_string())];
    let holding = record.holding.as_ref();
    facts.extend(holding.map(|h| ("session", shown(state.name(h.session).as_bytes()))));
    Some(facts)
}

fn policy(state: &State, number: usize) -> Option<Facts> {
    let policy = state.policies.get(number)?;
    let mut facts = vec![("rule", policy.rule.as_str().to_owned())];
    if policy.shared {
        facts.push(("shared", "by every host".to_owned()));
    }
    Some(facts)
}
