//! Text in, text out: a store in memory, a scripted host, and one line per command.
//!
//! ```text
//! register NAME [checkout=P] [key=K] [pid=N|none|default] [engine=E]
//! adopt NAME [force=R] [as=T] [key=K] [pid=N]         retire T [idle] | retire NAME force=R
//! dispatch ITEM NAME[@G] [as=T] [writes=P,P] [title=..] [body=..] [key=K]
//! accept dN as=T      decline dN as=T      report dN done|failed|blocked as=T [body=..] [key=K]
//! cancel dN [as=T] [force=R]               fail dN [as=T] [force=R]
//! note TEXT as=T [on=R]                    observe STATUS as=T [wrote=P,P]
//! send NAME TEXT [as=T] [re=R] [key=K]     deliver eN as=T      ack eN as=T
//! ```
//!
//! Views: `session NAME`, `inbox NAME`, `work`, `refusals`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use tenure_core::command::{Outcome, Ref};
use tenure_core::holder::{Answer as Seen, Bearing, BootId, HostId, Process, Sighting, Source};
use tenure_core::id::{DispatchNo, EnvelopeNo, Name, Time, Token};
use tenure_core::refusal::Refusal;
use tenure_core::state::State;
use tenure_log::journal::RulesVersion;
use tenure_log::journal::memory::MemoryLog;
use tenure_projection::call::{Bearer, Call, Label, ProcessChoice, Verb};
use tenure_projection::error::Failure;
use tenure_projection::host::{Host, HostError, This};
use tenure_projection::store::{Answer, Done, Store};

/// A host whose clock ticks by one second a look and whose processes are what the scene says.
#[derive(Debug, Default)]
pub struct Stage {
    clock: AtomicI64,
    seen: Mutex<BTreeMap<u32, Seen>>,
}

const START: u64 = 1000;

impl Stage {
    /// From now on the kernel answers so for that pid.
    pub fn sees(&self, pid: u32, answer: Seen) {
        self.seen.lock().insert(pid, answer);
    }
}

impl Host for Stage {
    fn now(&self) -> Time {
        Time(1_800_000_000_000_000 + self.clock.fetch_add(1_000_000, Ordering::Relaxed))
    }

    fn this(&self) -> This {
        This {
            id: HostId([1; 16]),
            name: "stage".into(),
            boot: Some(BootId([2; 16])),
            uid: 1000,
            pid: 77,
        }
    }

    fn bearing(&self, choice: ProcessChoice) -> Result<Bearing, HostError> {
        let (pid, source) = match choice {
            ProcessChoice::None => (None, Source::Declared),
            ProcessChoice::Parent => (Some(76), Source::Default),
            ProcessChoice::Itself => (Some(77), Source::Declared),
            ProcessChoice::Pid(pid) => (Some(pid), Source::Declared),
        };
        Ok(Bearing {
            host: HostId([1; 16]),
            boot: Some(BootId([2; 16])),
            process: pid.map(|pid| Process {
                pid,
                start: Some(START),
                pidns: Some(3),
                timens: Some(4),
                pidfs: None,
                ancestor: true,
                source,
            }),
            uid: 1000,
            recorded: Time(0),
        })
    }

    fn sight(&self, record: &Bearing) -> Sighting {
        let alive = Seen::Exists {
            start: Some(START),
            pidfs: None,
        };
        let pid = record.process.map_or(0, |p| p.pid);
        Sighting {
            host: HostId([1; 16]),
            boot: Some(BootId([2; 16])),
            boot_listed: true,
            pidns: Some(3),
            timens: Some(4),
            answer: *self.seen.lock().get(&pid).unwrap_or(&alive),
        }
    }

    fn remember_boot(&self) -> Result<(), HostError> {
        Ok(())
    }
}

/// A store in memory and its host.
pub struct Scene {
    /// The journal under it.
    pub log: MemoryLog,
    /// The host.
    pub stage: Arc<Stage>,
    /// The store.
    pub store: Store,
}

impl Scene {
    /// An empty store.
    pub fn new() -> Self {
        let log = MemoryLog::new(RulesVersion(1));
        let stage = Arc::new(Stage::default());
        let store = Store::over(Arc::new(log.clone()), stage.clone()).expect("an empty log opens");
        Self { log, stage, store }
    }

    /// Another handle on the same log, as another process would have.
    pub fn another(&self) -> Store {
        Store::over(Arc::new(self.log.clone()), self.stage.clone()).expect("the log opens")
    }

    /// Runs one line and gives its answer.
    pub fn run(&self, line: &str) -> String {
        self.run_on(&self.store, line)
    }

    /// Runs one line through another handle.
    pub fn run_on(&self, store: &Store, line: &str) -> String {
        let words = Words::parse(line);
        if let Some(view) = self.look(store, &words) {
            return view;
        }
        match store.execute(call(&words)) {
            Ok(done) => self.answer(store, &done),
            Err(Failure::Refused(refusal)) => {
                format!("{}: {}", refusal.code.as_str(), refusal.message)
            }
            Err(other) => format!("failed: {other}"),
        }
    }

    /// Runs lines, each of which must be done, and gives the answer of the last.
    pub fn play(&self, lines: &str) -> String {
        let mut last = String::new();
        for line in lines.lines().map(str::trim).filter(|l| !l.is_empty()) {
            last = self.run(line);
            assert!(!last.contains(": "), "{line} -> {last}");
        }
        last
    }

    /// The refusal of a line that must be refused.
    pub fn refusal(&self, line: &str) -> Refusal {
        match self.store.execute(call(&Words::parse(line))) {
            Err(Failure::Refused(refusal)) => *refusal,
            other => panic!("{line} was not refused: {other:?}"),
        }
    }

    /// The state at the head.
    pub fn state(&self) -> State {
        self.store.view(Clone::clone).expect("the log reads")
    }

    /// How many frames the log has.
    pub fn frames(&self) -> u64 {
        self.store.head().expect("the log reads").position.0
    }

    fn answer(&self, store: &Store, done: &Done) -> String {
        let again = if done.repeated { " again" } else { "" };
        let said = match &done.answer {
            Answer::Granted(grant) => {
                let mut said = grant.token.to_string();
                for former in &grant.former {
                    write!(said, " former@{}", former.generation).expect("a string grows");
                }
                said
            }
            Answer::Accepted {
                shared,
                instruction,
                ..
            } => {
                let list = store.view(|s| listed(s, shared)).expect("the log reads");
                match instruction {
                    None => "alone".into(),
                    Some(_) => format!("with{list}"),
                }
            }
            Answer::Dispatched { dispatch, envelope } => format!("{dispatch} {envelope}"),
            Answer::Sent { envelope } => envelope.to_string(),
            _ => "done".into(),
        };
        format!("{said}{again}")
    }

    fn look(&self, store: &Store, words: &Words<'_>) -> Option<String> {
        let name = words.plain.get(1).copied().unwrap_or_default();
        let view = |look: &dyn Fn(&State) -> String| Some(store.view(look).expect("the log reads"));
        match words.plain[0] {
            "session" => view(&|s| session(s, name)),
            "inbox" => view(&|s| inbox(s, name)),
            "work" => view(&work),
            "refusals" => view(&refusals),
            _ => None,
        }
    }
}

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

fn session(state: &State, name: &str) -> String {
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

fn inbox(state: &State, name: &str) -> String {
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

fn work(state: &State) -> String {
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

fn refusals(state: &State) -> String {
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

/// A line in its words: plain ones, and `key=value`.
struct Words<'l> {
    plain: Vec<&'l str>,
    named: BTreeMap<&'l str, &'l str>,
}

impl<'l> Words<'l> {
    fn parse(line: &'l str) -> Self {
        let mut words = Words {
            plain: Vec::new(),
            named: BTreeMap::new(),
        };
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some((key, value)) => drop(words.named.insert(key, value)),
                None => words.plain.push(word),
            }
        }
        words
    }

    fn text(&self, key: &str) -> Option<String> {
        self.named.get(key).map(ToString::to_string)
    }

    fn paths(&self, key: &str) -> Vec<PathBuf> {
        self.named
            .get(key)
            .map_or(Vec::new(), |p| p.split(',').map(PathBuf::from).collect())
    }

    fn body(&self) -> Option<Vec<u8>> {
        self.named.get("body").map(|b| b.as_bytes().to_vec())
    }

    fn reason(&self) -> String {
        self.text("reason").unwrap_or_else(|| "because".into())
    }

    fn bearer(&self) -> Bearer {
        let process = match self.named.get("pid") {
            None => ProcessChoice::Itself,
            Some(&"none") => ProcessChoice::None,
            Some(&"default") => ProcessChoice::Parent,
            Some(pid) => ProcessChoice::Pid(pid.parse().expect("a pid")),
        };
        Bearer {
            process,
            engine: self.text("engine"),
        }
    }

    fn labels(&self) -> Vec<Label> {
        let label = self.named.get("label").and_then(|l| l.split_once(':'));
        let label = label.map(|(key, value)| Label {
            key: key.into(),
            value: value.into(),
        });
        label.into_iter().collect()
    }
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn dispatch_no(text: &str) -> DispatchNo {
    DispatchNo::parse(text).expect("a dispatch number")
}

fn envelope_no(text: &str) -> EnvelopeNo {
    EnvelopeNo::parse(text).expect("an envelope number")
}

fn reference(text: &str) -> Ref {
    match DispatchNo::parse(text) {
        Some(dispatch) => Ref::Dispatch(dispatch),
        None => Ref::Envelope(envelope_no(text)),
    }
}

fn call(words: &Words<'_>) -> Call {
    let mut call = Call::new(verb(words)).by("tester");
    call.token = words.named.get("as").map(|t| t.parse().expect("a token"));
    if words.plain[0] == "retire" && words.plain[1].contains('@') {
        call.token = Some(words.plain[1].parse::<Token>().expect("a token"));
    }
    if let Some(reason) = words.text("force") {
        call = call.by_force(reason);
    }
    if let Some(key) = words.text("key") {
        call = call.keyed(key);
    }
    call
}

fn verb(words: &Words<'_>) -> Verb {
    let first = words.plain.get(1).copied().unwrap_or_default();
    let second = words.plain.get(2).copied().unwrap_or_default();
    match words.plain[0] {
        "register" => Verb::Register {
            name: name(first),
            bearer: words.bearer(),
            labels: words.labels(),
            checkout: words.paths("checkout").pop(),
        },
        "adopt" => Verb::Adopt {
            name: name(first),
            bearer: words.bearer(),
            labels: words.labels(),
        },
        "retire" => Verb::Retire {
            name: name(first.split('@').next().expect("a part")),
            if_idle: second == "idle",
            reason: words.text("reason"),
        },
        "dispatch" => {
            let (to, generation) = match second.split_once('@') {
                Some((to, g)) => (
                    to,
                    Some(tenure_core::generation::Generation::parse(g).expect("one")),
                ),
                None => (second, None),
            };
            Verb::Dispatch {
                item: name(first),
                to: name(to),
                to_generation: generation,
                title: words.text("title"),
                writes: words.paths("writes"),
                body: words.body(),
            }
        }
        _ => verb_on_things(words, first, second),
    }
}

fn verb_on_things(words: &Words<'_>, first: &str, second: &str) -> Verb {
    let re = |key| words.named.get(key).map(|t| reference(t));
    match words.plain[0] {
        "accept" => Verb::Accept {
            dispatch: dispatch_no(first),
        },
        "decline" => Verb::Decline {
            dispatch: dispatch_no(first),
            reason: words.reason(),
        },
        "report" => Verb::Report {
            dispatch: dispatch_no(first),
            outcome: Outcome::from_word(second).expect("an outcome"),
            body: words.body(),
        },
        "cancel" => Verb::Cancel {
            dispatch: dispatch_no(first),
            reason: words.reason(),
        },
        "fail" => Verb::Fail {
            dispatch: dispatch_no(first),
            reason: words.reason(),
        },
        "note" => Verb::Note {
            body: first.into(),
            on: re("on"),
        },
        "observe" => Verb::Observe {
            status: first.into(),
            wrote: words.paths("wrote"),
        },
        "send" => Verb::Send {
            to: name(first),
            body: second.into(),
            re: re("re"),
        },
        "deliver" => Verb::Deliver {
            envelope: envelope_no(first),
        },
        "ack" => Verb::Acknowledge {
            envelope: envelope_no(first),
        },
        other => panic!("the scene knows no {other}"),
    }
}
