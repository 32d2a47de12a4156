//! doctor: who is still there, what is released by proof, and what is only listed.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;

use serde_json::{Value, json};
use tenure_projection::call::{Bearer, Call, ProcessChoice, Verb};
use tenure_projection::core::holder::{Bearing, BootId, HostId, Sighting};
use tenure_projection::core::id::{Name, Time};
use tenure_projection::host::{Host, HostError, System, This};
use tenure_projection::store::{OpenOptions, Store};

use crate::terminal::Terminal;

fn sleeper() -> Child {
    Command::new("sleep").arg("600").spawn().expect("it runs")
}

fn end(mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("reaped");
}

/// This machine, which records holders otherwise.
#[derive(Debug)]
struct Otherwise {
    system: System,
    how: Recorded,
}

impl Host for Otherwise {
    fn now(&self) -> Time {
        self.system.now()
    }

    fn this(&self) -> This {
        self.system.this()
    }

    fn bearing(&self, choice: ProcessChoice) -> Result<Bearing, HostError> {
        let mut bearing = self.system.bearing(choice)?;
        self.how.change(&mut bearing);
        Ok(bearing)
    }

    fn sight(&self, record: &Bearing) -> Sighting {
        self.system.sight(record)
    }

    fn remember_boot(&self) -> Result<(), HostError> {
        self.system.remember_boot()
    }
}

#[derive(Clone, Copy, Debug)]
enum Recorded {
    InAnEarlierBoot,
    OnAnotherHost,
    Malformed,
    WithAnotherStart,
}

impl Recorded {
    fn change(self, bearing: &mut Bearing) {
        let process = bearing.process.as_mut().expect("a process");
        match self {
            Self::InAnEarlierBoot => bearing.boot = Some(EARLIER),
            Self::OnAnotherHost => bearing.host = HostId([7; 16]),
            Self::Malformed => (process.pid, process.pidns) = (u32::MAX, None),
            Self::WithAnotherStart => {
                process.pidfs = None;
                process.start = process.start.map(|ticks| ticks + 1);
            }
        }
    }
}

const EARLIER: BootId = BootId([0xee; 16]);

fn state(user: &Terminal) -> PathBuf {
    user.file(".local/state")
}

/// Registers a session for this very process, recorded so.
fn register(user: &Terminal, name: &str, how: Recorded) {
    let system = System::new(&state(user));
    let host = Otherwise { system, how };
    let store = Store::open(&OpenOptions::new(user.store()), Arc::new(host)).expect("it opens");
    let verb = Verb::Register {
        name: Name::parse(name).expect("a name"),
        bearer: Bearer {
            process: ProcessChoice::Itself,
            engine: None,
        },
        labels: Vec::new(),
        checkout: None,
    };
    store.execute(Call::new(verb)).expect("registered");
}

/// This machine remembers an earlier boot.
fn remember_an_earlier_boot(user: &Terminal) {
    use std::os::unix::fs::DirBuilderExt;
    let dir = state(user).join("tenure-host");
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .expect("made");
    let line: String = EARLIER.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let boots = dir.join("boots");
    fs::write(&boots, format!("{line}\n")).expect("written");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&boots, private).expect("set");
    System::new(&state(user))
        .remember_boot()
        .expect("remembered");
}

fn claim<'v>(doctor: &'v Value, name: &str) -> &'v Value {
    let claims = doctor["claims"].as_array().expect("a list");
    claims
        .iter()
        .find(|c| c["name"] == name)
        .expect("it is listed")
}

/// Three claims of an earlier boot, five of processes that are gone, and four that are nobody's to release.
fn leave_eight_stale(user: &Terminal) {
    remember_an_earlier_boot(user);
    user.play(&format!("register alive --pid {}", std::process::id()));
    user.play("register nobody --pid none");
    for name in ["boot1", "boot2", "boot3"] {
        register(user, name, Recorded::InAnEarlierBoot);
    }
    register(user, "foreign", Recorded::OnAnotherHost);
    register(user, "malformed", Recorded::Malformed);
    for n in 1..=5 {
        let holder = sleeper();
        user.play(&format!("register gone{n} --pid {}", holder.id()));
        end(holder);
    }
}

/// LIV-13, LIV-15, LIV-2, LIV-3, LIV-7, LIV-9, C01, C03: the clean-up of eight stale claims, three of a previous boot and five of
/// dead pids: exactly those are released, with the sum and its parts; the living, another host's and what is malformed stay.
/// Whoever was released is fenced, and everybody can adopt what they held.
#[test]
fn eight_stale_claims_are_released_and_nothing_else() {
    let user = Terminal::new();
    leave_eight_stale(&user);
    user.play("dispatch item --to gone1\naccept d1 --as gone1@1");
    let frames = user.json("status")["position"].clone();
    let seen = user.run("--json doctor").ended(1).object();
    assert_eq!(seen["counts"]["stale"], 8);
    assert_eq!(
        (
            &seen["counts"]["earlier_boot"],
            &seen["counts"]["no_process"],
            &seen["counts"]["released"]
        ),
        (&json!(3), &json!(5), &json!(0))
    );
    assert_eq!(
        user.json("status")["position"],
        frames,
        "looking writes nothing"
    );
    for (name, verdict) in [
        ("alive", "alive"),
        ("nobody", "unknowable"),
        ("foreign", "unknowable"),
        ("malformed", "unknowable"),
        ("boot1", "dead"),
        ("gone5", "dead"),
    ] {
        assert_eq!(claim(&seen, name)["verdict"], verdict, "{name}");
    }
    let people = user.run("doctor").ended(1).out;
    assert!(
        people.contains("stale: 8 = 3 of an earlier boot + 5 without process"),
        "{people}"
    );

    let fixed = user.run("--json doctor --fix").ended(1).object();
    assert_eq!(fixed["counts"]["released"], 8);
    let events = user.list("log --kind released");
    assert_eq!(events.len(), 8);
    for name in ["alive", "nobody", "foreign", "malformed"] {
        assert_eq!(claim(&fixed, name)["released"], false, "{name}");
        user.play(&format!("check {name}@1"));
    }
    let clean = user.run("--json doctor").ended(0).object();
    assert_eq!(clean["counts"]["stale"], 0);
    assert_eq!(clean["claims"].as_array().map(Vec::len), Some(4));
    // If one of them lives after all, it is fenced.
    for name in ["boot1", "gone1"] {
        let late = user
            .run(&format!("--json note late --as {name}@1"))
            .ended(10)
            .object();
        assert_eq!(late["code"], "stale-generation", "{name}");
    }
    assert_eq!(user.json("adopt gone1 --pid none")["generation"], 2);
    assert_eq!(
        user.json("show d1")["state"],
        "accepted",
        "its work is carried"
    );
}

/// LIV-4: a pid that went to another process is a death of its own kind.
#[test]
fn a_recycled_pid_is_counted_as_such() {
    let user = Terminal::new();
    user.play(&format!("register alive --pid {}", std::process::id()));
    register(&user, "recycled", Recorded::WithAnotherStart);
    let fixed = user.run("doctor --fix").ended(1).out;
    assert!(fixed.contains("stale: 1 = 1 of a recycled pid"), "{fixed}");
    assert!(fixed.contains("released: 1"), "{fixed}");
    user.run("doctor").ended(0);
}

/// LIV-14, C20: a clean-up that races a new claimant never takes the new claim away: in every round the claim that
/// was made stands, whoever came first.
#[test]
fn a_clean_up_never_removes_a_new_claim() {
    let user = Terminal::new();
    let us = std::process::id();
    user.play(&format!("register keep --pid {us}"));
    for round in 0..12 {
        let holder = sleeper();
        let name = format!("round{round}");
        user.play(&format!("register {name} --pid {}", holder.id()));
        end(holder);
        let spawn = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let mut command = user.command(&words);
            command
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped());
            command.spawn().expect("it runs")
        };
        let adopt = format!("--json adopt {name} --pid {us}");
        let mut running = Vec::new();
        if round % 2 == 0 {
            running.push(spawn("--json doctor --fix"));
        }
        let adopting = spawn(&adopt);
        running.push(spawn("--json doctor --fix"));
        let grant = adopting.wait_with_output().expect("it ends");
        for doctor in running {
            let output = doctor.wait_with_output().expect("it ends");
            assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        }
        let grant: Value = serde_json::from_slice(&grant.stdout).expect("JSON");
        let token = grant["token"]
            .as_str()
            .unwrap_or_else(|| panic!("adopted: {grant}"));
        user.play(&format!("check {token}\nnote mine --as {token}"));
        assert_eq!(
            user.json(&format!("show {name}"))["holder"]["verdict"],
            "alive"
        );
    }
}

/// Looks until the role of the runner has that verdict.
fn until_role_is(user: &Terminal, verdict: &str) -> Value {
    loop {
        let doctor = user.run("--json doctor").object();
        let is = |c: &Value| c["name"] == "deploy@site" && c["verdict"] == verdict;
        if doctor["claims"]
            .as_array()
            .is_some_and(|all| all.iter().any(is))
        {
            return doctor;
        }
        std::thread::yield_now();
    }
}

/// ROL-5, LIV-3: a tree is released by its root, whose sessions and roles end with it; a role of a process that is gone
/// lapses although its session lives on, which is told.
#[test]
fn trees_and_roles_are_listed_and_released_too() {
    let user = Terminal::new();
    let holder = sleeper();
    user.play(&format!(
        "register root --pid {pid}
         register child --parent root@1 --pid {pid}
         role take lead --scope here --as root@1
         register live --pid {us}
         role take keep --scope here --as live@1",
        pid = holder.id(),
        us = std::process::id()
    ));
    let ran = user
        .command(&[
            "role", "run", "deploy", "--scope", "site", "--as", "live@1", "--", "sleep", "600",
        ])
        .spawn()
        .expect("it runs");
    let listed = until_role_is(&user, "alive");
    // The runner is killed first, so that it gives nothing back.
    let process = claim(&listed, "deploy@site")["holder"]["pid"].to_string();
    end(ran);
    assert!(
        Command::new("kill")
            .args(["-9", &process])
            .status()
            .expect("it runs")
            .success()
    );
    end(holder);
    let doctor = until_role_is(&user, "dead");
    assert_eq!(claim(&doctor, "root")["kind"], "tree");
    assert_eq!(claim(&doctor, "child")["through"], "root");
    assert_eq!(claim(&doctor, "lead@here")["through"], "root");
    assert_eq!(
        doctor["counts"]["stale"], 2,
        "the tree and the role of the process: {doctor}"
    );
    let fixed = user.run("--json doctor --fix").ended(1).object();
    assert_eq!(fixed["counts"]["released"], 2, "{fixed}");
    user.run("check child@1").ended(10);
    user.run("role check keep --scope here --as live@1")
        .ended(0);
    user.run("role check deploy --scope site --as live@1")
        .ended(10);
    let told = user.list("inbox live --pending");
    assert!(
        told.iter().any(|e| e["notice"] == "role-lapsed"),
        "{told:?}"
    );
    let clean = user.run("--json doctor").ended(0).object();
    let names: Vec<&str> = clean["claims"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|c| c["name"].as_str())
        .collect();
    assert_eq!(names, ["live", "keep@here"]);
}

/// LIV-16, TRE-15: lock files of older schemes are listed with what they say, never consulted and never removed.
#[test]
fn lock_files_of_older_schemes_are_listed_and_left() {
    let user = Terminal::new();
    let us = std::process::id();
    user.play(&format!("register api --pid {us}"));
    let git = |line: &str| {
        let status = Command::new("git")
            .args(line.split(' '))
            .current_dir(user.path())
            .status();
        assert!(status.expect("git runs").success());
    };
    fs::create_dir(user.file("r")).expect("made");
    git("init -q r");
    let gone = sleeper();
    let pid = gone.id();
    end(gone);
    let files = [
        (user.file("r/owner.lock"), format!("{us}\n")),
        (
            user.file("r/abc.owner.lock"),
            format!("{{\"pid\": {pid}, \"engine\": \"old\"}}"),
        ),
        (
            user.file("r/.agent/deep/down/session.lock"),
            "rubbish".to_owned(),
        ),
        (user.file("r/.agent/role.lock"), format!("pid={pid}")),
        (user.store().join("owner.lock"), String::new()),
    ];
    for (path, text) in &files {
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }
    fs::write(user.file("r/session.lock"), "not ours").expect("written");
    let doctor = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        Terminal::finish(user.command(&words).current_dir(user.file("r")))
    };
    let seen = doctor("--json doctor --fix").ended(1).object();
    let left = seen["leftovers"].as_array().expect("a list");
    assert_eq!(left.len(), files.len(), "{left:?}");
    let of = |name: &str| {
        let ends = |l: &&Value| l["path"].as_str().is_some_and(|p| p.ends_with(name));
        left.iter().find(ends).expect("listed")
    };
    // Never dead: such a file says nothing of boot or start.
    for entry in left {
        assert_eq!(entry["verdict"], "unknowable", "{entry}");
    }
    assert_eq!(of("r/owner.lock")["pid"], us);
    assert_eq!(of("abc.owner.lock")["pid"], pid);
    assert_eq!(
        of("abc.owner.lock")["evidence"][0],
        "no process has the recorded pid"
    );
    assert_eq!(of("session.lock")["pid"], Value::Null);
    for (path, text) in &files {
        assert_eq!(&fs::read_to_string(path).expect("it stays"), text);
    }
    // What holds the store says nothing of them.
    user.play("note fine --as api@1");
    let people = doctor("doctor").ended(1).out;
    assert!(people.contains("never consulted"), "{people}");
}
