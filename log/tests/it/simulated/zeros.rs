//! Zeros that a holder wrote and did not live to report on.

use tenure_log::conformance::{draft, read};
use tenure_log::journal::{Deadline, Journal};
use tenure_log::position::Position;
use tenure_log::storage::sim::{Fault, Sim, Survival};

use super::told::{Told, copy};
use super::{Context, open, recover};

/// A store whose first frame is durable, and behind it three frames that nobody ever knew to be, the first of
/// them bad: a torn tail with good frames in it.
fn torn(seed: u64, told: &Told) -> Sim {
    let sim = Sim::new(seed);
    let written = sim.run_one(|process| {
        let log = open(process)?;
        told.append(&log, "first")?;
        let head = log.head()?;
        let three = ["a", "b", "c"].map(draft).to_vec();
        log.transact(head, Deadline::NEVER, &mut |_| three.clone())
            .expect("appended");
        let frames = read(&log, Position::ZERO);
        Ok::<_, tenure_log::error::Error>(frames[0].header.frame_bytes() as u64)
    });
    let first = written.expect("not killed").expect("no fault");
    sim.cut_power(Survival::Everything);
    sim.flip("segments/00000000000000000001-1.seg", 4096 + first + 84, 0);
    sim
}

/// R6 and recovery row 7: the holder that puts a torn tail away is told that its sync of the zeros failed, and dies before
/// it says so to anybody. Whoever comes next writes frames of the same length as the bad one; after a power cut
/// none of the old ones stands behind them.
#[test]
fn a_holder_that_dies_of_a_failed_sync_of_zeros_brings_no_old_frame_back() {
    let (mut repaired, mut raised) = (0, 0);
    for at in 0..400 {
        let told = Told::default();
        let sim = torn(7, &told);
        let _context = Context(format!("the last sync fails at step {at}"));
        sim.set_fault(sim.steps() + at, Fault::LastSync);
        let ended = sim.run_one(|process| open(process).map(drop));
        sim.clear_fault();
        if ended.is_some() {
            continue;
        }
        repaired += 1;
        let gone_on = sim.run_one(|process| {
            let log = open(process)?;
            told.append(&log, "x")?;
            told.append(&log, "y")
        });
        gone_on.expect("not killed").expect("the store goes on");
        raised += usize::from(sim.bytes_of("locks/2").is_some());
        for survival in [Survival::Nothing, Survival::LastWrite, Survival::Some(at)] {
            let cut = sim.fork();
            cut.cut_power(survival);
            recover(&cut, &copy(&told), "after power");
        }
    }
    assert!(
        repaired > 2 && raised > 0,
        "{repaired} repairs were cut short, {raised} raised the epoch"
    );
}
