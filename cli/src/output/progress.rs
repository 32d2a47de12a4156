//! How far something long has come, for whoever waits at a terminal.

use std::io::{self, IsTerminal, Write};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tenure_projection::gauge::Gauge;

use super::Output;
use crate::fault::Stop;

/// How often the bar is drawn again.
const REDRAW: Duration = Duration::from_millis(100);
/// How long one waits without being told anything.
const PATIENCE: Duration = Duration::from_secs(1);
/// Columns of the bar between its brackets.
const BAR_COLUMNS: u64 = 30;

/// A bar on standard error: only where that is a terminal, and never with `--quiet`. Whoever prints a line wipes it
/// before, so that the line begins where the bar was.
pub struct Progress {
    whole: u64,
    shown: bool,
    /// When it was drawn last, and in how many columns it stands there now.
    drawn: Option<Instant>,
    columns: usize,
}

impl Progress {
    /// Nothing done yet of `whole` bytes.
    #[must_use]
    pub fn new(out: &Output, whole: u64) -> Self {
        Self {
            whole,
            shown: io::stderr().is_terminal() && !out.is_quiet(),
            drawn: None,
            columns: 0,
        }
    }

    /// `done` bytes are done: draws the bar, if it was not drawn a moment ago.
    ///
    /// # Errors
    /// When what was printed before cannot be written.
    pub fn at(&mut self, out: &mut Output, done: u64) -> Result<(), Stop> {
        let moment = self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW);
        if !self.shown || moment {
            return Ok(());
        }
        self.wipe(out)?;
        out.flush()?;
        self.draw(done);
        Ok(())
    }

    fn draw(&mut self, done: u64) {
        let bar = bar(done, self.whole);
        self.columns = bar.len();
        self.drawn = Some(Instant::now());
        // A bar that cannot be drawn is no reason to stop.
        let _ = write!(io::stderr(), "\r{bar}");
    }

    /// Takes the bar away.
    ///
    /// # Errors
    /// When what was printed before cannot be written.
    pub fn wipe(&mut self, out: &mut Output) -> Result<(), Stop> {
        if self.columns > 0 {
            out.flush()?;
            self.erase();
        }
        Ok(())
    }

    fn erase(&mut self) {
        if self.columns > 0 {
            let _ = write!(io::stderr(), "\r{:1$}\r", "", self.columns);
            self.columns = 0;
        }
    }
}

/// Does `work` on a thread of its own and meanwhile draws how far it has come, once it takes longer than a second: `far`
/// says how much is done of how much. Where nothing is drawn (standard error is no terminal, or `quiet`), it is simply
/// done.
pub fn watched<T: Send>(
    quiet: bool,
    far: impl Fn() -> (u64, u64),
    work: impl FnOnce() -> T + Send,
) -> T {
    if quiet || !io::stderr().is_terminal() {
        return work();
    }
    let mut progress = Progress {
        whole: 0,
        shown: true,
        drawn: None,
        columns: 0,
    };
    let (over, is_over) = channel();
    thread::scope(|scope| {
        let working = scope.spawn(move || {
            let worked = work();
            drop::<Sender<()>>(over);
            worked
        });
        let mut wait = PATIENCE;
        while is_over.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            wait = REDRAW;
            let (done, whole) = far();
            progress.whole = whole;
            // Nothing is known of it before it moves.
            if whole > 0 {
                progress.draw(done);
            }
        }
        progress.erase();
        // A panic there is one here.
        working.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// The same for work in which a store is opened, or a state made again.
pub fn replaying<T: Send>(quiet: bool, work: impl FnOnce() -> T + Send) -> T {
    let gauge = Arc::new(Gauge::default());
    watched(quiet, || gauge.read(), || gauge.over(work))
}

fn bar(done: u64, whole: u64) -> String {
    let done = u128::from(done.min(whole));
    let of = |parts: u64| match whole {
        0 => u128::from(parts),
        _ => done * u128::from(parts) / u128::from(whole),
    };
    let full = usize::try_from(of(BAR_COLUMNS)).unwrap_or_default();
    let left = BAR_COLUMNS as usize - full;
    format!("[{:#<full$}{:left$}] {:>3} %", "", "", of(100))
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn a_bar_fills_from_none_to_whole() {
        assert_eq!(bar(0, 8), format!("[{}]   0 %", " ".repeat(30)));
        assert_eq!(
            bar(4, 8),
            format!("[{}{}]  50 %", "#".repeat(15), " ".repeat(15))
        );
        for (done, whole) in [(8, 8), (9, 8), (0, 0), (u64::MAX, u64::MAX)] {
            assert_eq!(bar(done, whole), format!("[{}] 100 %", "#".repeat(30)));
        }
    }
}
