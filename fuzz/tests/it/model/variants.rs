//! Each part of the protocol switched back: what it guards against happens. `docs/protocol.md` names these tests.

mod disk;
mod second;
mod writers;

use super::rules::Bounds;
use super::state::Budget;

fn quiet(processes: usize, commands: u8, budget: Budget) -> Bounds {
    Bounds {
        budget,
        ..Bounds::quiet(processes, commands)
    }
}

fn raises(raises: u8) -> Budget {
    Budget {
        raises,
        ..Budget::default()
    }
}

fn power() -> Budget {
    Budget {
        power_losses: 1,
        ..Budget::default()
    }
}
