//! Text in, text out: a store in memory, a scripted host, and one line per command.
//!
//! ```text
//! register NAME [checkout=P] [key=K] [pid=N|none|default] [engine=E] [label=K:V]
//! adopt NAME [force=R] [as=T] [key=K] [pid=N]         retire T [idle] | retire NAME force=R
//! dispatch ITEM NAME[@G] [as=T] [writes=P,P] [title=..] [body=..] [key=K]
//! accept dN as=T      decline dN as=T      report dN done|failed|blocked as=T [body=..] [key=K]
//! cancel dN [as=T] [force=R]               fail dN [as=T] [force=R]
//! note TEXT as=T [on=R]                    observe STATUS as=T [wrote=P,P]
//! send NAME TEXT [as=T] [re=R] [key=K]     deliver eN as=T      ack eN as=T
//! finding N
//! bypass HOOK at=P [as=T] [said=S] [reason=R]      unlocked PATH [reason=R]
//! record TEXT as=T [kind=K] [expect=N] [opens=KIND:ID] [closes=KIND:ID] [key=K]
//! revert N as=T      branch SOURCE NAME [in-tree as=T] [at=N] [pid=N] [engine=E] [label=K:V] [key=K]
//! rename NAME NEW as=T      import NAME [origin=NAME] as=T
//! register NAME parent=T                   reserve NAME [pid=N]         publish NAME as=T | epoch=E
//! claim NAME [as=T] [force=R] [pid=N]      adopt NAME tree [..]         adopt NAME epoch=E [pid=N]
//! rollback NAME epoch=E                    recover NAME TEXT epoch=E
//! release NAME as=T | epoch=E              release-dead NAME
//! seal      (whatever grants takes secret=HEX in a sealed store)
//! ```
//!
//! Views: `session NAME`, `tree NAME` (who is writable), `history NAME [at=N] [all]`, `inbox NAME`, `work`, `roles`, `blocked`, `told NAME`,
//! `refusals`, `shared NAME|- PATH`, `log N` (the events at a position), `findings`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use tenure_core::event::Entry;
use tenure_core::holder::{Answer as Seen, Bearing, BootId, HostId, Process, Sighting, Source};
use tenure_core::id::{Position, SessionNo, Time};
use tenure_core::refusal::Refusal;
use tenure_core::state::{Session, State};
use tenure_log::frame::{Depth, Frame};
use tenure_log::journal::memory::MemoryLog;
use tenure_log::journal::{Frames, Journal, RulesVersion};
use tenure_projection::call::ProcessChoice;
use tenure_projection::entry;
use tenure_projection::error::Failure;
use tenure_projection::host::{Host, HostError, This};
use tenure_projection::store::{Answer, Done, Store};

pub mod forge;
mod kept;
pub mod line;
pub mod look;

use line::{Words, call};

/// A host whose clock ticks by one second a look and whose processes are what the scene says.
#[derive(Debug)]
pub struct Stage {
    machine: u8,
    clock: AtomicI64,
    seen: Mutex<BTreeMap<u32, Seen>>,
}

const START: u64 = 1000;
const MORNING: i64 = 1_800_000_000_000_000;

impl Stage {
    /// The machine of that number.
    pub fn of_machine(machine: u8) -> Self {
        Self {
            machine,
            clock: AtomicI64::new(MORNING),
            seen: Mutex::default(),
        }
    }

    /// From now on the kernel answers so for that pid.
    pub fn sees(&self, pid: u32, answer: Seen) {
        self.seen.lock().insert(pid, answer);
    }

    /// Moves the clock, be it back.
    pub fn passes(&self, seconds: i64) {
        self.clock.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Host for Stage {
    fn now(&self) -> Time {
        Time(self.clock.fetch_add(1_000_000, Ordering::Relaxed))
    }

    fn this(&self) -> This {
        This {
            id: HostId([self.machine; 16]),
            name: format!("stage{}", self.machine).into(),
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
            host: HostId([self.machine; 16]),
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
            host: HostId([self.machine; 16]),
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
        Self::over(MemoryLog::new(RulesVersion(1)))
    }

    /// A store over a journal that is there.
    pub fn over(log: MemoryLog) -> Self {
        let stage = Arc::new(Stage::of_machine(1));
        let store = Store::over(Arc::new(log.clone()), stage.clone()).expect("the log opens");
        Self { log, stage, store }
    }

    /// Another handle on the same log, as another process would have.
    pub fn another(&self) -> Store {
        self.upon(Arc::new(self.log.clone()))
    }

    /// A handle on a journal that stands before the log, with the scene's host.
    pub fn upon(&self, journal: Arc<dyn Journal>) -> Store {
        Store::over(journal, self.stage.clone()).expect("the log opens")
    }

    /// A handle on the same log on another machine.
    pub fn elsewhere(&self, machine: u8) -> Store {
        let stage = Arc::new(Stage::of_machine(machine));
        Store::over(Arc::new(self.log.clone()), stage).expect("the log opens")
    }

    /// Runs one line and gives its answer.
    pub fn run(&self, line: &str) -> String {
        self.run_on(&self.store, line)
    }

    /// Runs one line through another handle.
    pub fn run_on(&self, store: &Store, line: &str) -> String {
        let words = Words::parse(line);
        if let Some(view) = self.look(store, &words) {
            return view.trim_end().replace('\n', "; ");
        }
        match store.execute(call(&words)) {
            Ok(done) => self.answer(store, &done),
            Err(Failure::Refused(refusal)) => {
                format!("{}: {}", refusal.code.as_str(), refusal.message)
            }
            Err(Failure::Unknown { cause, .. }) => format!("unknown: {cause}"),
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

    /// Runs lines of the form `COMMAND => ANSWER`; an answer that ends in `..` gives its beginning.
    pub fn check(&self, lines: &str) {
        self.check_on(&self.store, lines);
    }

    /// The same through another handle.
    pub fn check_on(&self, store: &Store, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|l| !l.is_empty()) {
            let (command, expected) = line.split_once("=>").expect("COMMAND => ANSWER");
            let (command, expected) = (command.trim(), expected.trim());
            let answer = self.run_on(store, command);
            match expected.strip_suffix("..") {
                Some(begin) => assert!(answer.starts_with(begin), "{command} -> {answer}"),
                None => assert_eq!(answer, expected, "{command}"),
            }
        }
    }

    /// What a line is answered with when it is done.
    pub fn done(&self, line: &str) -> Done {
        match self.store.execute(call(&Words::parse(line))) {
            Ok(done) => done,
            Err(failure) => panic!("{line}: {failure}"),
        }
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

    /// The session of that name.
    pub fn session(&self, name: &str) -> Session {
        let state = self.state();
        let number = state.find(name.as_bytes()).expect("the session exists");
        state.session(number).expect("it is in the table").clone()
    }

    /// The number of that session.
    pub fn number(&self, name: &str) -> SessionNo {
        self.state()
            .find(name.as_bytes())
            .expect("the session exists")
    }

    /// How many frames the log has.
    pub fn frames(&self) -> u64 {
        self.store.head().expect("the log reads").position.0
    }

    /// Every frame.
    pub fn all(&self) -> Vec<Frame> {
        frames_of(&self.log)
    }

    /// Every entry.
    pub fn entries(&self) -> Vec<Entry> {
        let decoded = |f: &Frame| entry::decode(&entry::lend(f)).expect("it decodes");
        self.all().iter().map(decoded).collect()
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
                let list = store
                    .view(|s| look::listed(s, shared))
                    .expect("the log reads");
                match instruction {
                    None => "alone".into(),
                    Some(_) => format!("with{list}"),
                }
            }
            Answer::Dispatched { dispatch, envelope } => format!("{dispatch} {envelope}"),
            Answer::Sent { envelope } => envelope.to_string(),
            Answer::Role {
                role, generation, ..
            } => {
                let named = |s: &State| look::role(s, *role);
                let named = store.view(named).expect("the log reads");
                format!("{named} {generation}")
            }
            Answer::Met {
                shared,
                instruction,
                warned,
            } => {
                let list = store
                    .view(|s| look::listed(s, shared))
                    .expect("the log reads");
                match (instruction, warned) {
                    (None, _) => "alone".into(),
                    (Some(_), false) => format!("with{list}"),
                    (Some(_), true) => format!("warned of{list}"),
                }
            }
            Answer::Branched { grant, source, at } => {
                let source = store.view(|s| s.name(*source)).expect("the log reads");
                let at = at.map_or(0, |at| at.position.0);
                format!("{} from {source} at {at}", grant.token)
            }
            Answer::Recorded { index, .. } => format!("record {index}"),
            Answer::Claimed { epoch, .. } => format!("epoch {epoch}"),
            _ => "done".into(),
        };
        format!("{said}{again}")
    }

    fn look(&self, store: &Store, words: &Words<'_>) -> Option<String> {
        let name = words.plain.get(1).copied().unwrap_or_default();
        let view = |look: &dyn Fn(&State) -> String| Some(store.view(look).expect("the log reads"));
        match words.plain[0] {
            "session" => view(&|s| look::session(s, name)),
            "tree" => view(&|s| look::tree(s, name)),
            "inbox" => view(&|s| look::inbox(s, name)),
            "history" => {
                let at = words.number("at").map(Position);
                let all = words.plain.get(2) == Some(&"all");
                Some(look::history(store, name, at, all))
            }
            "work" => view(&look::work),
            "refusals" => view(&look::refusals),
            "findings" => view(&look::findings),
            "roles" => view(&look::roles),
            "blocked" => view(&look::blocked),
            "told" => view(&|s| look::told(s, name)),
            "log" => {
                let position = Position(name.parse().expect("a position"));
                let entry = &self.entries()[position.0 as usize - 1];
                let events: Vec<_> = entry.events.iter().map(|e| e.word()).collect();
                Some(events.join(" "))
            }
            "shared" => {
                let asker = store.view(|s| s.find(name.as_bytes())).expect("it reads");
                let paths: Vec<_> = words.plain[2..].iter().map(PathBuf::from).collect();
                let (list, _) = store.shared_at(asker, &paths).expect("they are located");
                view(&|s| look::listed(s, &list).trim_start().to_owned())
            }
            _ => None,
        }
    }
}

/// Every frame of a journal.
pub fn frames_of(journal: &dyn Journal) -> Vec<Frame> {
    let start = tenure_log::position::Position::ZERO;
    let mut frames = journal.read_from(start, Depth::Whole).expect("it reads");
    let mut all = Vec::new();
    while let Some(frame) = Frames::next(&mut *frames) {
        all.push(frame.expect("it is good").to_owned());
    }
    all
}
