//! A host that answers what a test tells it to.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tenure_core::holder::{Answer, Bearing, BootId, HostId, Process, Sighting, Source};
use tenure_core::id::Time;

use super::{Host, HostError, ProcessChoice, This};

/// A host without a machine: clock, processes and boots are what the test says. A pid of which nothing was said
/// has no process.
#[derive(Debug)]
pub struct Scripted(Mutex<Script>);

#[derive(Debug)]
struct Script {
    now: Time,
    this: This,
    parent: u32,
    pidns: Option<u64>,
    timens: Option<u64>,
    answers: BTreeMap<u32, Answer>,
    past: Vec<BootId>,
}

impl Scripted {
    /// A host at time 0, whose process 100 of user 1000 has the parent 99; both exist.
    #[must_use]
    pub fn new(id: HostId, boot: BootId) -> Self {
        let running = |pid: u32| Answer::Exists {
            start: Some(u64::from(pid) * 10),
            pidfs: Some(u64::from(pid) + 1_000_000),
        };
        Self(Mutex::new(Script {
            now: Time(0),
            this: This {
                id,
                name: "scripted".into(),
                boot: Some(boot),
                uid: 1000,
                pid: 100,
            },
            parent: 99,
            pidns: Some(1),
            timens: Some(1),
            answers: BTreeMap::from([(99, running(99)), (100, running(100))]),
            past: Vec::new(),
        }))
    }

    /// Sets the clock.
    pub fn set_now(&self, now: Time) {
        self.0.lock().now = now;
    }

    /// Sets who asks. Another boot is a reboot: [`Host::remember_boot`] then finds the old one past.
    pub fn set_this(&self, this: This) {
        self.0.lock().this = this;
    }

    /// Sets the parent of the process that asks.
    pub fn set_parent(&self, pid: u32) {
        self.0.lock().parent = pid;
    }

    /// Sets the pid and the time namespace of the process that asks.
    pub fn set_namespaces(&self, pidns: Option<u64>, timens: Option<u64>) {
        let mut script = self.0.lock();
        (script.pidns, script.timens) = (pidns, timens);
    }

    /// Sets what the kernel says of a pid, when recording as when sighting.
    pub fn set_answer(&self, pid: u32, answer: Answer) {
        self.0.lock().answers.insert(pid, answer);
    }
}

impl Script {
    fn answer(&self, pid: u32) -> Answer {
        self.answers
            .get(&pid)
            .copied()
            .unwrap_or(Answer::NoSuchProcess)
    }

    fn record(&self, pid: u32, source: Source) -> Result<Process, HostError> {
        let (start, pidfs) = match self.answer(pid) {
            Answer::Exists { start, pidfs } => (start, pidfs),
            Answer::NoSuchProcess => return Err(HostError::NoSuchProcess { pid }),
            Answer::Denied | Answer::Failed => (None, None),
        };
        Ok(Process {
            pid,
            start,
            pidns: self.pidns,
            timens: self.timens,
            pidfs,
            ancestor: pid == self.this.pid || pid == self.parent,
            source,
        })
    }
}

impl Host for Scripted {
    fn now(&self) -> Time {
        self.0.lock().now
    }

    fn this(&self) -> This {
        self.0.lock().this.clone()
    }

    fn bearing(&self, choice: ProcessChoice) -> Result<Bearing, HostError> {
        let script = self.0.lock();
        let process = match choice {
            ProcessChoice::None => None,
            ProcessChoice::Parent => script.record(script.parent, Source::Default).ok(),
            ProcessChoice::Itself => Some(script.record(script.this.pid, Source::Declared)?),
            ProcessChoice::Pid(pid) => Some(script.record(pid, Source::Declared)?),
        };
        Ok(Bearing {
            host: script.this.id,
            boot: script.this.boot,
            process,
            uid: script.this.uid,
            recorded: script.now,
        })
    }

    fn sight(&self, record: &Bearing) -> Sighting {
        let script = self.0.lock();
        let listed = |boot| script.past.contains(&boot) && script.this.boot != Some(boot);
        Sighting {
            host: script.this.id,
            boot: script.this.boot,
            boot_listed: record.boot.is_some_and(listed),
            pidns: script.pidns,
            timens: script.timens,
            answer: record
                .process
                .map_or(Answer::Failed, |process| script.answer(process.pid)),
        }
    }

    fn remember_boot(&self) -> Result<(), HostError> {
        let mut script = self.0.lock();
        let boot = script.this.boot.ok_or(HostError::NoBoot)?;
        if script.past.last() != Some(&boot) {
            script.past.push(boot);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::holder::{Proof, Verdict, judge};

    fn verdict(host: &Scripted, record: &Bearing) -> (Verdict, Vec<Proof>) {
        judge(record, &host.sight(record))
    }

    #[test]
    fn the_script_is_judged_like_a_machine() {
        let host = Scripted::new(HostId([1; 16]), BootId([1; 16]));
        let record = host.bearing(ProcessChoice::Itself).expect("it exists");
        host.remember_boot().expect("kept");
        assert_eq!(
            verdict(&host, &record),
            (Verdict::Alive, vec![Proof::SameInode])
        );

        host.set_answer(100, Answer::NoSuchProcess);
        assert_eq!(
            verdict(&host, &record),
            (Verdict::Dead, vec![Proof::NoSuchProcess])
        );
        assert!(host.bearing(ProcessChoice::Itself).is_err());
        host.set_answer(100, Answer::Denied);
        assert_eq!(
            verdict(&host, &record),
            (Verdict::Alive, vec![Proof::Denied])
        );

        host.set_namespaces(Some(2), Some(1));
        assert_eq!(
            verdict(&host, &record),
            (Verdict::Unknowable, vec![Proof::OtherPidns])
        );

        let rebooted = This {
            boot: Some(BootId([2; 16])),
            ..host.this()
        };
        host.set_this(rebooted);
        assert_eq!(
            verdict(&host, &record),
            (Verdict::Dead, vec![Proof::OtherBoot])
        );
    }

    #[test]
    fn a_parent_proves_life_only_and_an_absent_one_is_not_recorded() {
        let host = Scripted::new(HostId([1; 16]), BootId([1; 16]));
        let record = host.bearing(ProcessChoice::Parent).expect("recorded");
        assert_eq!(verdict(&host, &record).0, Verdict::Alive);
        host.set_answer(99, Answer::NoSuchProcess);
        assert_eq!(
            verdict(&host, &record),
            (
                Verdict::Unknowable,
                vec![Proof::NoSuchProcess, Proof::ByDefault]
            )
        );
        host.set_parent(7);
        host.set_now(Time(5));
        let record = host.bearing(ProcessChoice::Parent).expect("recorded");
        assert_eq!((record.process, record.recorded), (None, Time(5)));
    }
}
