//! The verdict on a holder: the table of `holder`, over every input, against rows that are written out whole.
//!
//! The code takes the first row that matches. Here every row states its complete condition, so that exactly one
//! may hold; order cannot hide a gap or an overlap.

use proptest::prelude::*;
use tenure_core::generation::Generation;
use tenure_core::holder::{
    Answer, Bearing, BootId, Evidence, HostId, Process, Proof, Sighting, Source, Verdict, judge,
};
use tenure_core::id::{SessionNo, Time};

const HOSTS: [HostId; 2] = [HostId([1; 16]), HostId([2; 16])];
const BOOT: Option<BootId> = Some(BootId([3; 16]));
const OTHER_BOOT: Option<BootId> = Some(BootId([4; 16]));
const ONE_OR_OTHER: [Option<u64>; 3] = [None, Some(10), Some(20)];

fn answers() -> Vec<Answer> {
    let mut all = vec![Answer::NoSuchProcess, Answer::Denied, Answer::Failed];
    for start in ONE_OR_OTHER {
        for pidfs in ONE_OR_OTHER {
            all.push(Answer::Exists { start, pidfs });
        }
    }
    all
}

fn processes() -> Vec<Option<Process>> {
    let mut all = vec![None];
    for start in [None, Some(10)] {
        for pidns in [None, Some(10)] {
            for timens in [None, Some(10)] {
                for pidfs in [None, Some(10)] {
                    for source in [Source::Default, Source::Declared] {
                        for ancestor in [false, true] {
                            all.push(Some(Process {
                                pid: 77,
                                start,
                                pidns,
                                timens,
                                pidfs,
                                ancestor,
                                source,
                            }));
                        }
                    }
                }
            }
        }
    }
    all
}

fn sightings() -> Vec<Sighting> {
    let mut all = Vec::new();
    for host in HOSTS {
        for boot in [None, BOOT, OTHER_BOOT] {
            for boot_listed in [false, true] {
                for pidns in ONE_OR_OTHER {
                    for timens in ONE_OR_OTHER {
                        for answer in answers() {
                            all.push(Sighting {
                                host,
                                boot,
                                boot_listed,
                                pidns,
                                timens,
                                answer,
                            });
                        }
                    }
                }
            }
        }
    }
    all
}

fn bearing(boot: Option<BootId>, process: Option<Process>) -> Bearing {
    Bearing {
        host: HOSTS[0],
        boot,
        process,
        uid: 1000,
        recorded: Time(5),
    }
}

fn every_input(mut visit: impl FnMut(&Bearing, &Sighting)) {
    let sightings = sightings();
    for process in processes() {
        for boot in [None, BOOT] {
            for seen in &sightings {
                visit(&bearing(boot, process), seen);
            }
        }
    }
}

/// What is true of one pair, each thing by itself.
struct Facts {
    process: bool,
    same_host: bool,
    boots_differ: bool,
    boots_equal: bool,
    listed: bool,
    same_pidns: bool,
    gone: bool,
    denied: bool,
    failed: bool,
    exists: bool,
    inodes_known: bool,
    inodes_equal: bool,
    starts_comparable: bool,
    starts_equal: bool,
    by_default: bool,
}

fn both<T: PartialEq>(a: Option<T>, b: Option<T>) -> (bool, bool) {
    let known = a.is_some() && b.is_some();
    (known, known && a == b)
}

fn facts(record: &Bearing, seen: &Sighting) -> Facts {
    let process = record.process;
    let (now_start, now_inode) = match seen.answer {
        Answer::Exists { start, pidfs } => (start, pidfs),
        _ => (None, None),
    };
    let (boots_known, boots_equal) = both(record.boot, seen.boot);
    let (_, same_pidns) = both(process.and_then(|p| p.pidns), seen.pidns);
    let (_, same_timens) = both(process.and_then(|p| p.timens), seen.timens);
    let (inodes_known, inodes_equal) = both(process.and_then(|p| p.pidfs), now_inode);
    let (starts_known, starts_equal) = both(process.and_then(|p| p.start), now_start);
    Facts {
        process: process.is_some(),
        same_host: record.host == seen.host,
        boots_differ: boots_known && !boots_equal,
        boots_equal,
        listed: seen.boot_listed,
        same_pidns,
        gone: seen.answer == Answer::NoSuchProcess,
        denied: seen.answer == Answer::Denied,
        failed: seen.answer == Answer::Failed,
        exists: matches!(seen.answer, Answer::Exists { .. }),
        inodes_known,
        inodes_equal,
        starts_comparable: starts_known && same_timens,
        starts_equal,
        by_default: process.is_some_and(|p| p.source == Source::Default),
    }
}

/// The rows that hold, each with its whole condition: proof and what it proves by itself.
fn rows(f: &Facts) -> Vec<(Proof, Verdict)> {
    use Verdict::{Alive, Dead, Unknowable};
    let local = f.process && f.same_host;
    let pid = local && !f.boots_differ && f.same_pidns;
    let by_start = pid && f.exists && !f.inodes_known;
    let table = [
        (!f.process, Proof::NoProcess, Unknowable),
        (f.process && !f.same_host, Proof::OtherHost, Unknowable),
        (local && f.boots_differ && f.listed, Proof::OtherBoot, Dead),
        (
            local && f.boots_differ && !f.listed,
            Proof::ForeignBoot,
            Unknowable,
        ),
        (
            local && !f.boots_differ && !f.same_pidns,
            Proof::OtherPidns,
            Unknowable,
        ),
        (pid && f.gone, Proof::NoSuchProcess, Dead),
        (pid && f.denied, Proof::Denied, Alive),
        (pid && f.failed, Proof::ProbeFailed, Unknowable),
        (
            pid && f.exists && f.inodes_known && !f.inodes_equal,
            Proof::OtherInode,
            Dead,
        ),
        (
            pid && f.exists && f.inodes_known && f.inodes_equal,
            Proof::SameInode,
            Alive,
        ),
        (
            by_start && f.starts_comparable && !f.starts_equal,
            Proof::OtherStart,
            Dead,
        ),
        (
            by_start && f.starts_comparable && f.starts_equal,
            Proof::SameStart,
            Alive,
        ),
        (by_start && !f.starts_comparable, Proof::NoStart, Unknowable),
    ];
    table
        .into_iter()
        .filter(|(holds, ..)| *holds)
        .map(|(_, proof, verdict)| (proof, verdict))
        .collect()
}

/// What the table demands: one row, and the two rules that take a death back.
fn oracle(record: &Bearing, seen: &Sighting) -> (Verdict, Vec<Proof>) {
    let f = facts(record, seen);
    let rows = rows(&f);
    let [(proof, mut verdict)] = rows[..] else {
        panic!("not one row but {rows:?} for {record:?} and {seen:?}");
    };
    let mut proofs = vec![proof];
    let asked_by_pid = f.process && f.same_host && !f.boots_differ;
    if asked_by_pid && !f.boots_equal {
        proofs.push(Proof::NoBoot);
        if verdict == Verdict::Dead {
            verdict = Verdict::Unknowable;
        }
    }
    if verdict == Verdict::Dead && f.by_default {
        proofs.push(Proof::ByDefault);
        verdict = Verdict::Unknowable;
    }
    (verdict, proofs)
}

/// A verdict read later follows from its reasons, and from no others does another verdict follow.
fn assert_follows((verdict, proofs): &(Verdict, Vec<Proof>)) {
    for other in Verdict::ALL {
        let evidence = Evidence {
            session: SessionNo(0),
            generation: Generation::first(1),
            verdict: *other,
            proofs: proofs.clone(),
        };
        assert_eq!(evidence.follows(), other == verdict, "{evidence:?}");
    }
}

/// LIV-2, LIV-3, LIV-4, LIV-5, LIV-6, LIV-7, LIV-8, C03, C06, C08, C10, C11, C14, C15: one function, three
/// answers, and every combination of what can be recorded and seen gives the row that the table names.
#[test]
fn every_combination_is_judged_as_the_table_says() {
    let mut judged = 0_u32;
    let mut met = std::collections::BTreeSet::new();
    every_input(|record, seen| {
        let expected = oracle(record, seen);
        assert_eq!(judge(record, seen), expected, "{record:?} {seen:?}");
        assert_follows(&expected);
        met.extend(expected.1);
        judged += 1;
    });
    assert_eq!(judged, 65 * 2 * 1296);
    // The two that the probe cannot give: another grant, and nobody looked.
    assert_eq!(met.len(), Proof::ALL.len() - 2, "{met:?}");
}

/// C10: an equal boot id proves nothing by itself, neither life nor death.
#[test]
fn an_equal_boot_id_alone_decides_nothing() {
    every_input(|record, seen| {
        let without = Sighting {
            answer: Answer::Failed,
            ..*seen
        };
        if record.boot == seen.boot {
            assert_eq!(judge(record, &without).0, Verdict::Unknowable, "{record:?}");
        }
    });
}

/// C11, LIV-7: nothing that is seen here says anything about a process of another host.
#[test]
fn a_record_of_another_host_is_never_judged_by_what_is_here() {
    every_input(|record, seen| {
        if record.host != seen.host {
            assert_eq!(judge(record, seen).0, Verdict::Unknowable);
        }
    });
}

/// LIV-17: a process recorded by default can prove life, never death.
#[test]
fn a_process_recorded_by_default_is_never_found_dead() {
    every_input(|record, seen| {
        let Some(process) = record.process else {
            return;
        };
        let declared = Process {
            source: Source::Declared,
            ..process
        };
        let by_default = Process {
            source: Source::Default,
            ..process
        };
        let judge = |p| judge(&bearing(record.boot, Some(p)), seen).0;
        match (judge(declared), judge(by_default)) {
            (Verdict::Dead, found) => assert_eq!(found, Verdict::Unknowable),
            (other, found) => assert_eq!(found, other),
        }
    });
}

/// LIV-11, C16: the record has a time, and no verdict depends on it.
#[test]
fn the_clock_of_the_record_changes_no_verdict() {
    every_input(|record, seen| {
        for recorded in [Time(i64::MIN), Time(0), Time(i64::MAX)] {
            let other = Bearing {
                recorded,
                ..*record
            };
            assert_eq!(judge(&other, seen), judge(record, seen));
        }
    });
}

/// A machine that runs, was rebooted or cloned, and a record made on it: who is right is known.
#[derive(Clone, Debug)]
struct World {
    /// Whether the holder still runs (in the boot that goes on).
    runs: bool,
    /// Whether the machine was rebooted since, and remembers that.
    rebooted: bool,
    remembers: bool,
    /// Whether the asker is a clone with a boot of its own, while the original goes on.
    cloned: bool,
    other_host: bool,
    other_pidns: bool,
    other_timens: bool,
    /// Whether the pid went to another process, and whether in the same clock tick.
    reused: bool,
    same_tick: bool,
    /// What the two probes could not read.
    hidden: [bool; 8],
    denied: bool,
    source: Source,
}

prop_compose! {
    fn worlds()(
        [runs, rebooted, remembers, cloned] in any::<[bool; 4]>(),
        [other_host, other_pidns, other_timens] in any::<[bool; 3]>(),
        [reused, same_tick, denied, declared] in any::<[bool; 4]>(),
        hidden in any::<[bool; 8]>(),
    ) -> World {
        let rebooted = rebooted && !cloned;
        World {
            // Nobody lives through a reboot, and a pid that is reused was given back.
            runs: runs && !rebooted && !reused,
            rebooted, remembers, cloned, other_host, other_pidns, other_timens, reused, same_tick,
            hidden, denied,
            source: if declared { Source::Declared } else { Source::Default },
        }
    }
}

impl World {
    fn record(&self) -> Bearing {
        let read = |at: usize, value| (!self.hidden[at]).then_some(value);
        let process = Process {
            pid: 77,
            start: read(0, 500),
            pidns: read(1, 10),
            timens: read(2, 10),
            pidfs: read(3, 9000),
            ancestor: false,
            source: self.source,
        };
        let boot = if self.hidden[4] { None } else { BOOT };
        bearing(boot, Some(process))
    }

    /// What an honest probe sees from where the asker is.
    fn sighting(&self) -> Sighting {
        let elsewhere = self.other_host || self.cloned || self.rebooted || self.other_pidns;
        let read = |at: usize, value| (!self.hidden[at]).then_some(value);
        // From elsewhere the number is that of nobody or of a stranger.
        let stranger = self.reused || (elsewhere && self.same_tick);
        let tick = if self.same_tick { 500 } else { 600 };
        let answer = match (self.runs && !elsewhere, stranger) {
            (true, _) if self.denied => Answer::Denied,
            // In another time namespace the same start reads otherwise.
            (true, _) => Answer::Exists {
                start: read(5, if self.other_timens { 700 } else { 500 }),
                pidfs: read(6, 9000),
            },
            (false, true) => Answer::Exists {
                start: read(5, tick),
                pidfs: read(6, 9001),
            },
            (false, false) => Answer::NoSuchProcess,
        };
        let other_boot = self.rebooted || self.cloned;
        Sighting {
            host: HOSTS[usize::from(self.other_host)],
            boot: if self.hidden[7] {
                None
            } else if other_boot {
                OTHER_BOOT
            } else {
                BOOT
            },
            boot_listed: self.rebooted && self.remembers,
            pidns: Some(if self.other_pidns { 20 } else { 10 }),
            timens: Some(if self.other_timens { 20 } else { 10 }),
            answer,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    /// LIV-5, LIV-6, C08: whatever could not be read and from wherever it is asked, nobody who runs is found
    /// dead.
    #[test]
    fn nobody_who_runs_is_found_dead(world in worlds()) {
        let (verdict, proofs) = judge(&world.record(), &world.sighting());
        prop_assert!(!(world.runs && verdict == Verdict::Dead), "{proofs:?}");
    }

    /// LIV-3, LIV-4: where everything can be read, on the same host and in the same namespaces, death is found.
    #[test]
    fn a_death_that_can_be_seen_is_found(world in worlds()) {
        let world = World {
            hidden: [false; 8],
            source: Source::Declared,
            cloned: false,
            other_host: false,
            other_pidns: false,
            remembers: true,
            ..world
        };
        let (verdict, _) = judge(&world.record(), &world.sighting());
        prop_assert_eq!(verdict, if world.runs { Verdict::Alive } else { Verdict::Dead });
    }
}

/// A01, LIV-4: two records are of one process only where host, boot, namespace and number agree and the inode, or else the
/// start time, is known to be the same.
#[test]
fn records_of_one_process_are_known_by_more_than_its_number() {
    let process = |pid, start, pidns, timens, pidfs| Process {
        pid,
        start,
        pidns,
        timens,
        pidfs,
        ancestor: false,
        source: Source::Declared,
    };
    let some = [None, Some(1), Some(2)];
    let mut all = Vec::new();
    for pid in [1, 2] {
        for start in some {
            for pidns in some {
                for timens in some {
                    for pidfs in some {
                        all.push(process(pid, start, pidns, timens, pidfs));
                    }
                }
            }
        }
    }
    let known = |a: Option<u64>, b: Option<u64>| a.is_some() && a == b;
    for one in &all {
        for two in &all {
            let inodes = one.pidfs.is_some() && two.pidfs.is_some();
            let same = one.pid == two.pid
                && known(one.pidns, two.pidns)
                && if inodes {
                    one.pidfs == two.pidfs
                } else {
                    known(one.start, two.start) && known(one.timens, two.timens)
                };
            let (a, b) = (bearing(BOOT, Some(*one)), bearing(BOOT, Some(*two)));
            assert_eq!(a.is_same_process(&b), same, "{one:?} {two:?}");
            let elsewhere = Bearing {
                host: HOSTS[1],
                ..b
            };
            let later = Bearing { boot: None, ..b };
            let nobody = bearing(BOOT, None);
            for other in [elsewhere, later, nobody] {
                assert!(!a.is_same_process(&other) && !other.is_same_process(&a));
            }
        }
    }
    assert!(!bearing(BOOT, None).is_same_process(&bearing(BOOT, None)));
}
