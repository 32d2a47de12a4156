//! The story, act by act.

use serde_json::{Value, json};
use tenure_projection::authority::{Authority, When};
use tenure_projection::call::{Call, Verb};
use tenure_projection::core::codec;
use tenure_projection::core::id::{Name, Position};
use tenure_projection::core::state::{EnvelopeKind, EnvelopeState, State};
use tenure_projection::error::Failure;
use tenure_projection::host::System;
use tenure_projection::log::look::PlainDirectory;
use tenure_projection::log::recovery::Writer;
use tenure_projection::log::verify::{self, verify};
use tenure_projection::projector::Projector;
use tenure_projection::reader::Reader;
use tenure_projection::store::{Answer, Done};

use super::stage::{Player, Stage, edit};
use super::{Broken, Teller};

/// The actors.
struct Cast {
    ada: Player,
    bob: Player,
    cleo: Player,
}

/// Tells it from beginning to end.
pub fn tell(stage: &mut Stage, teller: &mut Teller<'_>) -> Result<(), Broken> {
    teller.act("Three processes open the store before anything happens")?;
    let mut cast = Cast {
        ada: stage.actor("ada")?,
        bob: stage.actor("bob")?,
        cleo: stage.actor("cleo")?,
    };
    for player in [&cast.ada, &cast.bob, &cast.cleo] {
        teller.line(player.name, format_args!("is process {}", player.pid()))?;
    }
    share(stage, teller, &mut cast)?;
    let taken = take_over(stage, teller, &mut cast)?;
    wake(stage, teller, &mut cast)?;
    hand_back(stage, teller, &mut cast)?;
    look_back(stage, teller, taken)
}

/// Whether an answer is "done".
fn done(answer: &Value) -> bool {
    answer.get("done").is_some()
}

fn refused_with(answer: &Value, code: &str) -> bool {
    answer.get("refused").and_then(Value::as_str) == Some(code)
}

fn said(answer: &Value, key: &str) -> String {
    match answer.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// The operator gives an item away.
fn dispatch(stage: &Stage, item: &str, to: &str, write: &str) -> Result<String, Broken> {
    let name = |text| Name::parse(text).expect("the demo's names are names");
    let verb = Verb::Dispatch {
        item: name(item),
        to: name(to),
        to_generation: None,
        title: Some(item.replace('-', " ")),
        writes: vec![stage.checkout.join(write)],
        body: None,
    };
    match executed(stage, verb)?.answer {
        Answer::Dispatched { dispatch, .. } => Ok(dispatch.to_string()),
        _ => Err(Broken::Step(format!("the operator dispatches {item}"))),
    }
}

fn executed(stage: &Stage, verb: Verb) -> Result<Done, Broken> {
    stage
        .store
        .execute(Call::new(verb).by("operator"))
        .map_err(|failure| match failure {
            Failure::Failed(error) => Broken::Store(error),
            other => Broken::Step(format!("the operator is not refused ({other})")),
        })
}

/// How many envelopes of a session are of that kind and in that state.
fn count(state: &State, session: &str, kind: EnvelopeKind, stands: EnvelopeState) -> usize {
    let session = state.find(session.as_bytes());
    let alike = |row: &tenure_projection::core::state::EnvelopeRow| {
        Some(row.session) == session && row.kind == kind && row.state == stands
    };
    state.envelopes.iter().filter(alike).count()
}

/// Two agents work in one checkout; both are told.
fn share(stage: &Stage, teller: &mut Teller<'_>, cast: &mut Cast) -> Result<(), Broken> {
    teller.act("Two agents work in one checkout, and both are told")?;
    let checkout = stage.checkout.display().to_string();
    let register = |name, engine| json!({ "do": "register", "name": name, "engine": engine, "checkout": checkout });
    let ada = cast.ada.told(&register("api", "claude"))?;
    let bob = cast.bob.told(&register("web", "codex"))?;
    teller.line(
        "ada",
        format_args!("registers api -> {}", said(&ada, "token")),
    )?;
    teller.line(
        "bob",
        format_args!("registers web -> {}", said(&bob, "token")),
    )?;
    let login = dispatch(stage, "login-form", "api", "src")?;
    let style = dispatch(stage, "login-style", "web", "src/login.css")?;
    teller.line(
        "you",
        format_args!("dispatch login-form to api as {login}, writing src/"),
    )?;
    teller.line(
        "you",
        format_args!("dispatch login-style to web as {style}, writing src/login.css"),
    )?;
    let ada = cast
        .ada
        .told(&json!({ "do": "accept", "dispatch": login }))?;
    teller.line(
        "ada",
        format_args!("accepts {login}; also there: {}", said(&ada, "shared")),
    )?;
    let bob = cast
        .bob
        .told(&json!({ "do": "accept", "dispatch": style }))?;
    teller.line(
        "bob",
        format_args!("accepts {style}; also there: {}", said(&bob, "shared")),
    )?;
    teller.line(
        "bob",
        format_args!("is told: {}", said(&bob, "instruction")),
    )?;
    teller.check(
        said(&bob, "shared") == r#"["api"]"#,
        "bob was shown api before his first write",
    )?;
    let notices = stage
        .store
        .view(|s| count(s, "api", EnvelopeKind::Notice, EnvelopeState::Pending))?;
    teller.check(notices == 1, "ada got a notice that web joined")?;
    edit(&stage.checkout, "src/login.html", "<!-- half of a form -->")?;
    edit(&stage.checkout, "src/login.css", "form { color: teal }")?;
    let question = json!({ "do": "send", "to": "api", "body": "which colours?" });
    teller.check(done(&cast.bob.told(&question)?), "bob sends api a question")
}

/// One is stopped in mid-task and taken over.
fn take_over(stage: &Stage, teller: &mut Teller<'_>, cast: &mut Cast) -> Result<Position, Broken> {
    teller.act("One is stopped in mid-task, and taken over")?;
    cast.ada.stop()?;
    teller.line(
        "ada",
        format_args!("is stopped (SIGSTOP), half-way through d1"),
    )?;
    let adopt = json!({ "do": "adopt", "name": "api", "engine": "gemini" });
    let held = cast.cleo.told(&adopt)?;
    teller.line(
        "cleo",
        format_args!(
            "adopts api -> {}: {}",
            said(&held, "refused"),
            said(&held, "message")
        ),
    )?;
    teller.check(
        refused_with(&held, "held"),
        "a stopped holder is alive, and is not robbed by mistake",
    )?;
    let mut forced = adopt;
    forced["force"] = json!("ada does not answer");
    let taken = cast.cleo.told(&forced)?;
    teller.line(
        "cleo",
        format_args!(
            "adopts api by force, with a reason -> {}",
            said(&taken, "token")
        ),
    )?;
    teller.check(
        said(&taken, "token") == "api@2",
        "the generation grew from 1 to 2; nobody was killed",
    )?;
    teller.check(
        said(&taken, "former") == "1",
        "cleo is told that ada may still be writing files",
    )?;
    let (work, mail) = stage.store.view(|state| {
        let api = state.find(b"api").expect("api is registered");
        let second = |n| state.session(api).is_some_and(|s| s.generation.number == n);
        let work = state.live_of(api).count() == 1 && second(2);
        (
            work,
            count(state, "api", EnvelopeKind::Message, EnvelopeState::Pending),
        )
    })?;
    teller.check(work, "the work followed: d1 is api@2's now")?;
    teller.check(
        mail == 1,
        "the mail followed: bob's question waits for api@2",
    )?;
    let position = taken
        .get("done")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    Ok(Position(position))
}

/// It wakes and tries to report.
fn wake(stage: &Stage, teller: &mut Teller<'_>, cast: &mut Cast) -> Result<(), Broken> {
    teller.act("It wakes up and reports")?;
    let report = |body| json!({ "do": "report", "dispatch": "d1", "body": body });
    let before = encoded(stage)?;
    cast.ada
        .order(&report("login form written, see src/login.html"))?;
    cast.ada.wake()?;
    let refused = cast.ada.answer()?;
    teller.line("ada", "wakes (SIGCONT) and reports d1 done")?;
    teller.line(
        "",
        format_args!(
            "-> {}: {}",
            said(&refused, "refused"),
            said(&refused, "message")
        ),
    )?;
    teller.check(
        refused_with(&refused, "stale-generation"),
        "the stale report is refused",
    )?;
    teller.line(
        "",
        format_args!(
            "   held by process {} since position {}",
            said(&refused, "holder"),
            said(&refused, "since")
        ),
    )?;
    let names_holder = said(&refused, "holder") == cast.cleo.pid().to_string();
    teller.check(
        names_holder,
        "it names who holds api (cleo's process) and since when",
    )?;
    let kept = stage
        .store
        .view(|s| s.refusals.get(1).map_or(0, |r| r.bodies.len()))?;
    let reports = stage.store.view(|s| {
        s.refusals
            .iter()
            .skip(1)
            .filter(|r| r.command == 7)
            .map(|r| r.bodies.len())
            .sum::<usize>()
    })?;
    teller.check(
        reports == 1 && kept <= 1,
        "what ada wrote is kept with the refusal",
    )?;
    let after = encoded(stage)?;
    teller.check(before == after, "nothing of cleo's changed")?;
    edit(&stage.checkout, "src/login.html", "<!-- the other half -->")?;
    let reported = cast.cleo.told(&report("login form finished"))?;
    teller.line("cleo", "reports d1 done")?;
    teller.check(done(&reported), "the current holder's report is in the log")
}

/// What the rules know of sessions, work and mail, without the record of refusals.
fn encoded(stage: &Stage) -> Result<Vec<u8>, Broken> {
    let parts = stage.store.view(|s| {
        let mut sessions: Vec<_> = s.sessions.iter().cloned().collect();
        // A refused contact is a contact.
        sessions
            .iter_mut()
            .for_each(|session| session.last_seen = session.registered_at);
        format!(
            "{sessions:?} {:?} {:?} {:?}",
            s.dispatches, s.live, s.envelopes
        )
        .into_bytes()
    })?;
    Ok(parts)
}

/// The session retires and is registered again.
fn hand_back(stage: &Stage, teller: &mut Teller<'_>, cast: &mut Cast) -> Result<(), Broken> {
    teller.act("The session retires and is registered again")?;
    let reply = json!({ "do": "send", "to": "api", "body": "teal it is", "dispatch": "d1" });
    teller.check(done(&cast.bob.told(&reply)?), "bob replies to api about d1")?;
    teller.check(
        done(&cast.cleo.told(&json!({ "do": "retire", "name": "api" }))?),
        "cleo retires api@2",
    )?;
    let again = json!({ "do": "register", "name": "api", "engine": "claude" });
    let again = cast.ada.told(&again)?;
    teller.line(
        "ada",
        format_args!("registers api -> {}", said(&again, "token")),
    )?;
    teller.check(
        said(&again, "token") == "api@3",
        "the number never goes back",
    )?;
    let (cancelled, reviews) = stage.store.view(|s| {
        let message = EnvelopeKind::Message;
        let cancelled = count(s, "api", message, EnvelopeState::Cancelled);
        (
            cancelled,
            count(s, "api", EnvelopeKind::Review, EnvelopeState::Pending),
        )
    })?;
    teller.check(
        cancelled == 2,
        "old mail is cancelled: it was for another conversation",
    )?;
    teller.check(
        reviews == 1,
        "the unread reply is not lost: api@3 has a review of it",
    )
}

/// The log alone answers who held authority at each moment, and replays to the same state.
fn look_back(stage: &Stage, teller: &mut Teller<'_>, taken: Position) -> Result<(), Broken> {
    teller.act("The log alone answers who held authority when")?;
    let host = std::sync::Arc::new(System::of_this_user());
    let reader = Reader::open(&stage.store_dir, host)?;
    let mut authority = Authority::new();
    let mut projector = Projector::new();
    projector.read(&reader, None, &mut [&mut authority])?;
    for interval in authority.of_session(b"api") {
        let until = interval
            .until
            .as_ref()
            .map_or_else(|| "now".into(), |u| u.at.position.to_string());
        let process = interval
            .holder
            .and_then(|h| h.bearing.process)
            .map_or(0, |p| p.pid);
        let since = interval.since.at.position;
        teller.line(
            "",
            format_args!(
                "api@{} process {process}, positions {since} to {until}",
                interval.generation
            ),
        )?;
    }
    let generation_at = |position: u64| {
        let when = When::At(Position(position));
        authority
            .session_at(b"api", when)
            .map(|i| i.generation.number)
    };
    let before = generation_at(taken.0 - 1) == Some(1);
    teller.check(
        before && generation_at(taken.0) == Some(2),
        "api was ada's up to the take-over, and cleo's from it on",
    )?;
    let item = authority.item_at(b"login-form", When::At(taken));
    teller.check(
        item.is_some_and(|i| i.generation.number == 2),
        "the work was bound to api@2 from the same position on",
    )?;
    let replayed = codec::encode(projector.state()).ok();
    let live = stage.store.view(|s| codec::encode(s).ok())?;
    teller.check(
        replayed.is_some() && replayed == live,
        "replaying the log gives the same state, byte for byte",
    )?;
    teller.check(
        projector.findings().is_empty(),
        "no event in the log names a stale generation",
    )?;
    let options = verify::Options {
        writer: Writer::Live,
        ..verify::Options::default()
    };
    let report = verify(&PlainDirectory::new(&stage.store_dir), &options);
    let clean = report.outcome == verify::Outcome::Clean;
    teller.check(
        clean,
        format_args!("all {} frames of the log verify", report.coverage.frames),
    )
}
