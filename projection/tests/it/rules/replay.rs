//! Random streams of commands: the log gives the same state and the same judgements to whoever reads it (LOG).

use tenure_core::apply::{Applied, apply};
use tenure_core::codec;
use tenure_core::decide::{decide, refused};
use tenure_core::holder::Answer;
use tenure_core::id::Position;
use tenure_core::state::State;
use tenure_log::frame::Depth;
use tenure_projection::entry;

use crate::scene::Scene;

mod fences;

use fences::Fences;

/// A small generator, so that a seed repeats a stream (xorshift64*).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % sides
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len() as u64) as usize]
    }

    fn name(&mut self) -> &'static str {
        self.of(&["api", "web", "ops", "dev"])
    }

    /// Mostly a generation near the truth.
    fn token(&mut self, scene: &Scene) -> String {
        let name = self.name();
        let current = scene.store.view(|s| {
            s.find(name.as_bytes())
                .and_then(|n| s.session(n))
                .map_or(1, |s| s.generation.number)
        });
        let current = current.expect("the log reads");
        let number = match self.roll(8) {
            0 => current.saturating_sub(1).max(1),
            1 => current + 1,
            _ => current,
        };
        format!("{name}@{number}")
    }

    fn paths(&mut self) -> String {
        let path = ["/w/a", "/w/a/b", "/w/b", "/w"];
        format!("{},{}", self.of(&path), self.of(&path))
    }

    fn key(&mut self) -> String {
        if self.roll(4) == 0 {
            format!(" key=k{}", self.roll(12))
        } else {
            String::new()
        }
    }

    /// Any command about a history, sensible or not.
    fn about_a_history(&mut self, scene: &Scene, token: &str, key: &str) -> String {
        let activity = format!("{}:{}", self.of(&["call", "run", "approval"]), self.roll(3));
        let more = match self.roll(8) {
            0 | 1 => format!(" opens={activity}"),
            2..=4 => format!(" closes={activity}"),
            5 => format!(" expect={}", scene.frames().saturating_sub(self.roll(3))),
            _ => String::new(),
        };
        let near = scene.frames().saturating_sub(self.roll(20));
        let (name, other) = (self.name(), self.name());
        match self.roll(14) {
            0 => format!("revert {near} as={token}"),
            1 => format!("branch {name} {other}{key}"),
            2 => format!("branch {name} b{} label=k:w{key}", self.roll(40)),
            3 => format!("branch {name} b{} at={near}", self.roll(40)),
            4 => format!("branch b{} {other} at={near}", self.roll(40)),
            5 => format!("rename {name} {other} as={token}"),
            6 if self.roll(2) == 0 => format!("branch {name} b{} in-tree{key}", self.roll(40)),
            6 => format!("branch {name} b{} in-tree as={token}{key}", self.roll(40)),
            7 => format!("import there as={token}"),
            _ => format!("record text{} as={token}{more}{key}", self.roll(3)),
        }
    }

    /// Any command about roles, hand-overs and policies, sensible or not.
    fn about_rights(&mut self, token: &str, key: &str) -> String {
        let (d, name) = (1 + self.roll(12), self.name());
        let role = format!(
            "{} {}",
            self.of(&["lead", "scribe"]),
            self.of(&["w", "/w/a"])
        );
        match self.roll(14) {
            0..=2 => format!("role take {role} as={token}{key}"),
            3 => format!("role take {role} as={token} pid={}", 80 + self.roll(2)),
            4 => format!("role release {role} as={token}"),
            5 => format!(
                "role check {role} as={token} generation={}",
                1 + self.roll(6)
            ),
            6 => format!("role clear {role}"),
            7 | 8 => format!("handoff d{d} {name} as={token}{key}"),
            9 => {
                let rule = self.of(&["disclose", "warn-once", "refuse"]);
                format!("policy {rule} {}", self.of(&["/w", "/w/a", "/w/b"]))
            }
            10 | 11 => format!("check {} as={token}", self.paths()),
            12 => format!("attend d{d}"),
            _ => format!("note text as={token} require=lead@w"),
        }
    }

    /// Any command about trees, sensible or not.
    fn about_trees(&mut self, scene: &Scene, token: &str, key: &str) -> String {
        let name = self.name();
        let epoch = scene.store.view(|s| {
            let session = s.find(name.as_bytes());
            session.and_then(|n| s.tree(n)).map_or(1, |t| t.epoch.0)
        });
        let epoch = match self.roll(6) {
            0 => 1 + self.roll(9),
            _ => epoch.expect("the log reads"),
        };
        let child = self.of(&["sub", "leaf", "api", "ops"]);
        let pid = self.of(&["", " pid=77", " pid=80", " pid=none"]);
        let force = self.of(&["", "", " force=stuck"]);
        let member = self.of(&["sub", "leaf", name]);
        match self.roll(17) {
            0..=4 => format!("register {child} parent={token}{pid}{key}"),
            5 => format!("reserve {name}{pid}{key}"),
            6 => format!("publish {name} epoch={epoch}"),
            7 => format!("publish {name} as={token}"),
            8 => format!("claim {member}{force}{pid}{key}"),
            9 => format!("adopt {member} tree{force}{pid}{key}"),
            10 => format!("adopt {member} as={token}{pid}{key}"),
            11 | 12 => format!("adopt {member} epoch={epoch}{pid}{key}"),
            13 => format!("rollback {name} epoch={epoch}"),
            14 => format!("recover {member} text epoch={epoch}{key}"),
            15 if self.roll(2) == 0 => format!("release {name} epoch={epoch}{key}"),
            15 => format!("release {name} as={token}{key}"),
            _ => format!("release-dead {member}"),
        }
    }

    /// Any command, sensible or not.
    pub fn line(&mut self, scene: &Scene) -> String {
        // Near the newest ones, however long the stream.
        let next = |s: &State| (s.next_dispatch().0, s.next_envelope().0);
        let (dispatch, envelope) = scene.store.view(next).expect("the log reads");
        let d = dispatch.saturating_sub(11).max(1) + self.roll(12);
        let e = envelope.saturating_sub(29).max(1) + self.roll(30);
        let (token, key, name) = (self.token(scene), self.key(), self.name());
        let operator = if self.roll(3) == 0 {
            " force=because".into()
        } else {
            format!(" as={token}")
        };
        match self.roll(36) {
            0 => format!("register {name} engine=claude label=k:v{key}"),
            1 => format!("register {name} checkout=/w{key}"),
            2 => format!("adopt {name}{key}"),
            3 => format!("adopt {name} force=stuck{key}"),
            4 => format!("retire {token}{}", self.of(&["", " idle"])),
            5 => format!("retire {name} force=over"),
            6 | 7 => format!(
                "dispatch item{} {name}{operator} writes={}{key}",
                self.roll(5),
                self.paths()
            ),
            8 | 9 => format!("accept d{d} as={token}{key}"),
            10 => format!("decline d{d} as={token}"),
            11 => format!(
                "report d{d} {} as={token} body=b{}{key}",
                self.of(&["done", "failed", "blocked"]),
                self.roll(3)
            ),
            12 => format!("{} d{d}{operator}", self.of(&["cancel", "fail"])),
            13 => format!("note text{} as={token} on=d{d}", self.roll(3)),
            14 => format!("observe busy as={token} wrote={}", self.paths()),
            15 => format!("send {name} hello as={token} re=e{e}{key}"),
            16 => format!("deliver e{e} as={token}"),
            17..=20 => self.about_a_history(scene, &token, &key),
            22..=27 => self.about_rights(&token, &key),
            28..=35 => self.about_trees(scene, &token, &key),
            _ => format!("ack e{e} as={token}"),
        }
    }
}

/// Reads what was appended since `mirror`, judges every input again on the state before it, and folds it.
fn follow(scene: &Scene, mirror: &mut State, fences: &mut Fences) {
    let next = Position(mirror.at.position.0 + 1);
    let each = |frame: &tenure_log::frame::FrameRef<'_>| {
        let entry = entry::decode(frame)?;
        let mut request = entry::decode_request(frame)?;
        let judged = match decide(mirror, &request) {
            Ok(decision) => decision,
            Err(refusal) => refused(mirror, &mut request, &refusal)
                .unwrap_or_else(|| panic!("{} was recorded and would not be", entry.at.position)),
        };
        assert_eq!(judged.events, entry.events, "at {}", entry.at.position);
        assert_eq!(judged.fence, entry.fence, "at {}", entry.at.position);
        assert_eq!(apply(mirror, &entry), Applied::Honoured);
        fences.note(&entry.fence, entry.incarnation);
        fences.agree(mirror);
        Ok(true)
    };
    scene
        .store
        .frames(next, Position(u64::MAX), Depth::Whole, each)
        .expect("the log reads");
}

fn same(a: &State, b: &State) {
    assert!(a == b, "the states differ at {}", a.at.position);
    let bytes = |state: &State| codec::encode(state).expect("a state encodes");
    assert_eq!(bytes(a), bytes(b), "at {}", a.at.position);
}

/// LOG-3, LOG-4: after every command, what the log says decoded and folded equals the state that decided; every input
/// judged again on the state before it gives exactly the recorded events, refusals included; and a replay from the
/// start, and one from a snapshot, give the same answers to the same commands. A replay of fences alone finds the
/// same tokens current.
#[test]
fn a_random_stream_replays_to_the_same_state_and_the_same_judgements() {
    let streams = std::env::var("TENURE_STREAMS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(24);
    for seed in 1..=streams {
        let (scene, mut dice) = (Scene::new(), Dice(seed));
        let (mut mirror, mut fences) = (State::new(), Fences::default());
        for step in 0..160 {
            if dice.roll(20) == 0 {
                let answer = if dice.roll(2) == 0 {
                    Answer::NoSuchProcess
                } else {
                    Answer::Exists {
                        start: Some(1000),
                        pidfs: None,
                    }
                };
                let pid = [77, 80, 81][dice.roll(3) as usize];
                scene.stage.sees(pid, answer);
            }
            let line = dice.line(&scene);
            scene.run(&line);
            follow(&scene, &mut mirror, &mut fences);
            same(&mirror, &scene.state());
            if step % 40 == 0 {
                let again = scene.another();
                same(&again.view(Clone::clone).expect("the log reads"), &mirror);
                let refusing = "note late as=api@9999";
                assert_eq!(scene.run_on(&again, refusing), scene.run(refusing));
                follow(&scene, &mut mirror, &mut fences);
            }
        }
        let report = crate::audit::audit(&scene);
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.judged, scene.frames());
    }
}
