//! Who held what, asked of the projection and of a replay that knows nothing of intervals.

use proptest::prelude::*;
use tenure_core::command::{Command, Origin, Request, Settle, Settlement};
use tenure_core::decide::decide;
use tenure_core::event::Entry;
use tenure_core::generation::Generation;
use tenure_core::holder::HostId;
use tenure_core::id::{Position, RoleNo, SessionNo, Time};
use tenure_core::state::{DispatchState, Holder, State};
use tenure_core::text::{Pool, Texts};
use tenure_log::frame::Frame;
use tenure_log::journal::{CounterTag, Deadline, Journal};
use tenure_projection::authority::{About, Authority, Interval, When};
use tenure_projection::entry;
use tenure_projection::error::Error;
use tenure_projection::projector::Projector;
use tenure_projection::views::{Lens, Shelf, WhoView};

use crate::scene::Scene;

mod kept;
mod over;

use kept::followed_as_read;
use over::over_as_replayed;

const SESSIONS: [&str; 3] = ["api", "web", "ops"];
const ITEMS: [&str; 3] = ["login", "style", "docs"];

/// Begins a new life of the log, as after a restore.
fn raise(scene: &Scene) {
    let state = scene.state();
    let known = scene.store.head().expect("the log reads");
    scene
        .log
        .raise(known, Deadline::NEVER, &mut |_, incarnation| {
            let mut texts = Texts::default();
            let settle = Settle {
                how: Settlement::Restored,
                incarnation: incarnation.0,
                reason: texts.add(b"put back"),
            };
            let origin = Origin {
                actor: texts.add(b"operator"),
                uid: 0,
                pid: 1,
                host: HostId([1; 16]),
            };
            let request = Request::of_the_store(
                Command::from(settle),
                origin,
                texts,
                Time(1_900_000_000_000_000),
            );
            let decision = decide(&state, &request).expect("a raise is never refused");
            entry::draft(&request, &decision).expect("it fits into a frame")
        })
        .expect("a log in memory takes it");
}

/// One step of a random history. Many are refused, which is the point: tokens are guessed.
pub fn step() -> impl Strategy<Value = String> {
    let session = || prop::sample::select(&SESSIONS[..]);
    let item = || prop::sample::select(&ITEMS[..]);
    let token = move || {
        (session(), 0_usize..2, 1_u64..5).prop_map(|(s, guess, g)| {
            // Mostly the token that is current when the line runs, sometimes a guess.
            if guess == 0 {
                format!("{s}@{g}")
            } else {
                format!("{s}@current")
            }
        })
    };
    let dispatch = || (1_u64..12).prop_map(|n| format!("d{n}"));
    prop_oneof![
        3 => session().prop_map(|s| format!("register {s}")),
        2 => session().prop_map(|s| format!("adopt {s} force=why")),
        1 => token().prop_map(|t| format!("retire {t}")),
        1 => session().prop_map(|s| format!("retire {s} force=why")),
        4 => (item(), session(), 0..4_usize).prop_map(|(i, s, n)| {
            let writes = ["/w/{}", "/w", "/w/{}/deep/er", "/v/{},/w/docs"][n].replace("{}", i);
            format!("dispatch {i} {s} writes={writes}")
        }),
        6 => (dispatch(), token()).prop_map(|(d, t)| format!("accept {d} as={t}")),
        1 => (dispatch(), token()).prop_map(|(d, t)| format!("decline {d} as={t}")),
        2 => (dispatch(), token()).prop_map(|(d, t)| format!("report {d} done as={t}")),
        1 => dispatch().prop_map(|d| format!("cancel {d} force=why")),
        1 => dispatch().prop_map(|d| format!("fail {d} force=why")),
        1 => token().prop_map(|t| format!("note text as={t}")),
        1 => Just("raise".to_owned()),
        3 => (session(), token()).prop_map(|(s, t)| format!("register {s} parent={t}")),
        1 => session().prop_map(|s| format!("reserve {s}")),
        1 => (session(), token()).prop_map(|(s, t)| format!("publish {s} as={t}")),
        1 => session().prop_map(|s| format!("claim {s} force=why pid=500")),
        1 => session().prop_map(|s| format!("adopt {s} tree force=why pid=501")),
        2 => session().prop_map(|s| format!("adopt {s} epoch=current pid=500")),
        1 => session().prop_map(|s| format!("rollback {s} epoch=current")),
        1 => token().prop_map(|t| format!("release {} as={t}", t.split('@').next().unwrap_or(&t))),
        1 => (session(), token()).prop_map(|(s, t)| format!("adopt {s} as={t} pid=502")),
        1 => (session(), 0..9).prop_map(|(s, n)| format!("branch {s} b{n} in-tree pid=503")),
        2 => (token(), 0..2).prop_map(|(t, n)| format!("role take lead hall{n} as={t}{}", ["", " pid=77"][n as usize])),
        1 => token().prop_map(|t| format!("role release lead hall0 as={t}")),
        1 => Just("role clear lead hall1 reason=enough".to_owned()),
        1 => (dispatch(), session(), token()).prop_map(|(d, s, t)| format!("handoff {d} {s} as={t}")),
    ]
}

pub fn play(scene: &Scene, line: &str) {
    if line == "raise" {
        return raise(scene);
    }
    let mut line = line.to_owned();
    for name in SESSIONS {
        let state = scene.state();
        let current = state.find(name.as_bytes()).and_then(|n| state.session(n));
        let current = current.map_or_else(|| "1".to_owned(), |s| s.generation.to_string());
        line = line.replace(&format!("{name}@current"), &format!("{name}@{current}"));
    }
    if line.contains("epoch=current") {
        let state = scene.state();
        let name = line.split_whitespace().nth(1).unwrap_or_default();
        let tree = state.find(name.as_bytes()).and_then(|n| state.tree(n));
        let epoch = tree.map_or(1, |t| t.epoch.0);
        line = line.replace("epoch=current", &format!("epoch={epoch}"));
    }
    scene.run(&line);
}

/// Who holds, as the state says: session, generation, and who (actor and process).
type Held = (String, Generation, Option<(String, Option<u32>)>);

fn who(pool: &Pool, holder: &Holder) -> (String, Option<u32>) {
    (
        pool.string(holder.actor),
        holder.bearing.process.map(|p| p.pid),
    )
}

fn session_in(state: &State, name: &str) -> Option<Held> {
    let number = state.find(name.as_bytes())?;
    let session = state.session(number)?;
    let current = state.check(number, session.generation).is_ok();
    let holder = session.holder.filter(|_| current)?;
    Some((
        name.to_owned(),
        session.generation,
        Some(who(&state.pool, &holder)),
    ))
}

fn item_in(state: &State, item: &str) -> Option<Held> {
    let dispatch = state.live_dispatch_of(item.as_bytes())?;
    let row = state.dispatch(dispatch)?;
    if row.state != DispatchState::Accepted {
        return None;
    }
    let current = state.check(row.session, row.generation).is_ok();
    let holder = state.session(row.session)?.holder.filter(|_| current);
    let holder = holder.map(|h| who(&state.pool, &h));
    Some((state.name(row.session), row.generation, holder))
}

fn tree_in(state: &State, name: &str) -> Option<Held> {
    let root = state.session(state.find(name.as_bytes())?)?.root;
    let (holder, _) = state.tree_holder(root)?;
    let generation = state.session(root)?.generation;
    Some((
        state.name(root),
        generation,
        Some(who(&state.pool, &holder)),
    ))
}

fn role_in(state: &State, number: RoleNo) -> Option<Held> {
    let holding = state.role(number)?.holding.as_ref()?;
    let session = state.session(holding.session)?;
    // The process that took it counts as long as the grant it was taken under.
    let taken = holding.since.position;
    let granted_since = session.grants.iter().any(|note| note.at.position > taken);
    let process = holding.process.filter(|_| !granted_since);
    let holder = state.writer(holding.session).map(|holder| Holder {
        bearing: process.unwrap_or(holder.bearing),
        ..holder
    });
    Some((
        state.name(holding.session),
        session.generation,
        holder.map(|h| who(&state.pool, &h)),
    ))
}

fn held(state: &State, authority: &Authority, interval: Option<&Interval>) -> Option<Held> {
    let interval = interval?;
    let holder = interval.holder.map(|h| who(authority.pool(), &h));
    Some((state.name(interval.session), interval.generation, holder))
}

/// Nothing is fetched: what is asked here stands in the state.
struct Bare;

impl Shelf for Bare {
    fn frame(&self, _: Position) -> Result<Option<Frame>, Error> {
        Ok(None)
    }

    fn counted(&self, _: CounterTag) -> Result<u64, Error> {
        Ok(0)
    }
}

/// The answer made from the state at the head agrees with the interval, down to the event it began with.
fn agrees(view: &WhoView, interval: Option<&Interval>, pool: &Pool) -> Result<(), TestCaseError> {
    let since = view.since.map(|p| (p.at, p.event));
    prop_assert_eq!(since, interval.map(|i| (i.since.at, i.since.event)));
    prop_assert_eq!(view.generation, interval.map(|i| i.generation));
    let shown = view.holder.as_ref();
    let shown = shown.map(|h| (h.actor.clone(), h.process.map(|p| p.pid)));
    let holder = interval.and_then(|i| i.holder);
    prop_assert_eq!(shown, holder.map(|h| who(pool, &h)));
    Ok(())
}

/// The same answers from the state alone, as `who` without a position gives them.
fn by_state_alone(
    scene: &Scene,
    brute: &State,
    authority: &Authority,
    at: When,
) -> Result<(), TestCaseError> {
    let lens = Lens {
        state: brute,
        host: &*scene.stage,
        shelf: &Bare,
    };
    for name in SESSIONS {
        if let Some(number) = brute.find(name.as_bytes()) {
            agrees(
                &lens.who_session(name, number),
                authority.session_at(name.as_bytes(), at),
                authority.pool(),
            )?;
            let root = brute.session(number).map_or(number, |s| s.root);
            let tree = authority.tree_at(root, at);
            agrees(&lens.who_tree(name, root), tree, authority.pool())?;
        }
    }
    for item in ITEMS {
        agrees(
            &lens.who_item(item, item.as_bytes()),
            authority.item_at(item.as_bytes(), at),
            authority.pool(),
        )?;
    }
    for number in (0..brute.roles.len()).map(|n| RoleNo(n as u64)) {
        let view = lens.who_role("role", Some(number));
        agrees(&view, authority.role_at(number, at), authority.pool())?;
    }
    Ok(())
}

fn compare(scene: &Scene) -> Result<(), TestCaseError> {
    let head = Position(scene.frames());
    let (mut projector, mut authority) = (Projector::new(), Authority::new());
    projector
        .read(&scene.store, None, &mut [&mut authority])
        .expect("the log reads");
    prop_assert_eq!(projector.position(), head);
    prop_assert_eq!(projector.findings(), &[]);
    let names = projector.state();
    let mut brute = State::new();
    for position in (0..=head.0).map(Position) {
        if position.0 > 0 {
            brute = scene.store.state_at(position).expect("the log reads");
        }
        let at = When::At(position);
        for name in SESSIONS {
            let found = authority.session_at(name.as_bytes(), at);
            prop_assert_eq!(
                held(names, &authority, found),
                session_in(&brute, name),
                "{} at {}",
                name,
                position
            );
        }
        for item in ITEMS {
            let found = authority.item_at(item.as_bytes(), at);
            prop_assert_eq!(
                held(names, &authority, found),
                item_in(&brute, item),
                "{} at {}",
                item,
                position
            );
        }
        for name in SESSIONS {
            let root = brute.find(name.as_bytes()).and_then(|n| brute.session(n));
            let found = root.and_then(|r| authority.tree_at(r.root, at));
            prop_assert_eq!(
                held(names, &authority, found),
                tree_in(&brute, name),
                "tree of {} at {}",
                name,
                position
            );
        }
        for number in (0..names.roles.len()).map(|n| RoleNo(n as u64)) {
            let found = authority.role_at(number, at);
            prop_assert_eq!(
                held(names, &authority, found),
                role_in(&brute, number),
                "role {} at {}",
                number.0,
                position
            );
        }
        by_state_alone(scene, &brute, &authority, at)?;
    }
    for name in SESSIONS {
        prop_assert_eq!(
            authority.session_at(name.as_bytes(), When::Now),
            authority.session_at(name.as_bytes(), When::At(head))
        );
    }
    Ok(())
}

/// A stretch with its holder in words.
type Told = (Interval, Option<String>);

fn told_with_holders(stretches: &[Interval], pool: &Pool) -> Vec<Told> {
    let told = |i: &Interval| {
        let holder = i
            .holder
            .map(|h| format!("{:?}", (who(pool, &h), h.bearing)));
        (Interval { holder: None, ..*i }, holder)
    };
    stretches.iter().map(told).collect()
}

fn kept_as_replayed(scene: &Scene) -> Result<(), TestCaseError> {
    let (mut projector, mut authority) = (Projector::new(), Authority::new());
    projector
        .read(&scene.store, None, &mut [&mut authority])
        .expect("the log reads");
    let sessions = (0..projector.state().sessions.len()).map(|n| SessionNo(n as u64));
    let mut subjects: Vec<About> = sessions.clone().map(About::Session).collect();
    subjects.extend(sessions.map(About::Tree));
    subjects.extend(
        ITEMS
            .iter()
            .map(|item| About::Item(item.as_bytes().to_vec())),
    );
    let roles = (0..projector.state().roles.len()).map(|n| RoleNo(n as u64));
    subjects.extend(roles.map(About::Role));
    let again = scene.another();
    for about in &subjects {
        let held = again.held(about).expect("the log reads");
        let found = told_with_holders(&held.stretches, &held.pool);
        let wanted = told_with_holders(authority.of(about), authority.pool());
        prop_assert_eq!(found, wanted, "{:?}", about);
        for position in (0..=scene.frames()).step_by(3).map(Position) {
            let at = When::At(position);
            let found = again.held_at(about, at).expect("the log reads");
            let found = found.map(|(i, pool)| told_with_holders(&[i], &pool));
            let wanted = authority.of(about).iter().rfind(|i| {
                let begun = i.since.at.position <= position;
                begun && i.until.is_none_or(|u| position < u.at.position)
            });
            let wanted = wanted.map(|i| told_with_holders(&[*i], authority.pool()));
            prop_assert_eq!(found, wanted, "{:?} at {}", about, position);
        }
    }
    for position in (1..=scene.frames()).step_by(5).map(Position) {
        let brute = again.state_at(position).expect("the log reads");
        over_as_replayed(scene, &brute, &again, position)?;
    }
    let times: Vec<Time> = scene.all().iter().map(|f| Time(f.header.time.0)).collect();
    for time in times.iter().flat_map(|t| [Time(t.0 - 1), *t]) {
        let resolved = again.resolve(time).expect("the log reads");
        let mut found = resolved.also;
        found.push(resolved.position);
        prop_assert_eq!(found, passed(&times, time));
    }
    Ok(())
}

/// Behind which positions the clock passed `time`, by going through all of them.
fn passed(times: &[Time], time: Time) -> Vec<Position> {
    let written = |n: usize| n == 0 || times[n - 1] <= time;
    let behind = |n: usize| n < times.len() && times[n] <= time;
    let all = (0..=times.len()).filter(|n| written(*n) && !behind(*n));
    all.map(|n| Position(n as u64)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_iters: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is kept beside the snapshot, up to any position, and read on from there gives the stretches that a
    /// replay from the start gives, and the positions behind which a clock passed a time.
    #[test]
    fn what_is_kept_gives_the_stretches_of_a_replay(lines in prop::collection::vec(step(), 1..60), every in 1_usize..20) {
        let scene = Scene::new();
        for (number, line) in lines.iter().enumerate() {
            play(&scene, line);
            if number % every == 0 {
                scene.store.snapshot().expect("it is kept");
            }
        }
        kept_as_replayed(&scene)?;
        followed_as_read(&scene)?;
        kept_as_replayed(&scene)?;
    }

    /// BND-5, AUD-1: who held a session or an item at any position is what a replay up to there says, and
    /// there is never more than one.
    #[test]
    fn who_at_every_position_is_what_a_replay_says(lines in prop::collection::vec(step(), 1..60)) {
        let scene = Scene::new();
        for line in &lines {
            play(&scene, line);
        }
        compare(&scene)?;
    }
}

/// Intervals as lines.
fn told(intervals: &[Interval]) -> Vec<String> {
    let line = |i: &Interval| {
        let pid = i
            .holder
            .and_then(|h| h.bearing.process)
            .map_or(0, |p| p.pid);
        let until = i.until.map(|u| format!("{} {}", u.event, u.at.position));
        let until = until.unwrap_or_else(|| "now".into());
        let (generation, since) = (i.generation, i.since);
        format!(
            "@{generation} by {pid}: {} {} to {until}",
            since.event, since.at.position
        )
    };
    intervals.iter().map(line).collect()
}

/// The story of the product, told by its intervals (BND-3, BND-5).
#[test]
fn a_session_and_its_item_change_hands() {
    let scene = Scene::new();
    scene.play(
        "register api pid=1
         dispatch login api writes=/w/login
         accept d1 as=api@1
         adopt api force=hangs pid=2
         report d1 done as=api@2
         retire api@2
         register api pid=3",
    );
    let mut authority = Authority::new();
    let mut projector = Projector::new();
    projector
        .read(&scene.store, None, &mut [&mut authority])
        .expect("the log reads");
    assert_eq!(
        told(authority.of_session(b"api")),
        [
            "@1 by 1: registered 1 to adopted 4",
            "@2 by 2: adopted 4 to retired 6",
            "@3 by 3: registered 7 to now",
        ]
    );
    assert_eq!(
        told(authority.of_item(b"login")),
        [
            "@1 by 1: accepted 3 to carried 4",
            "@2 by 2: carried 4 to reported 5"
        ]
    );
    let time = |position: u64| {
        let mut time = Time(0);
        let mut look = |entry: &Entry, _: &State| {
            if entry.at.position.0 == position {
                time = entry.at.time;
            }
        };
        Projector::new()
            .read(&scene.store, None, &mut [&mut look])
            .expect("the log reads");
        time
    };
    let at = |t: Time| {
        authority
            .session_at(b"api", When::Time(t))
            .map(|i| i.generation.number)
    };
    assert_eq!(at(Time(time(1).0 - 1)), None);
    assert_eq!(at(time(1)), Some(1));
    assert_eq!(at(Time(time(4).0 - 1)), Some(1));
    assert_eq!(at(time(4)), Some(2));
    assert_eq!(at(time(6)), None);
    assert_eq!(at(Time(i64::MAX)), Some(3));
}

/// AUD-1: raises and claims that touch what nobody holds any more. Each once gave another answer from what was
/// kept, or from the state alone, than a replay did.
#[test]
fn authority_that_nobody_holds_goes_through_raises_and_claims() {
    let stories = [
        "register api
         register web
         role take lead hall1 as=web@1 pid=77
         raise
         adopt api force=why pid=500
         raise",
        "register ops
         register api parent=ops@1
         dispatch login api writes=/w/login
         accept d1 as=api@1
         raise
         adopt ops force=why",
    ];
    for story in stories {
        for every in [1, 2, 6] {
            let scene = Scene::new();
            for (number, line) in story.lines().enumerate() {
                play(&scene, line.trim());
                if number % every == every - 1 {
                    scene.store.snapshot().expect("it is kept");
                }
            }
            kept_as_replayed(&scene).expect("what is kept is what is replayed");
            compare(&scene).expect("who is what a replay says");
        }
    }
}
