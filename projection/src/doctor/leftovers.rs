//! Lock files of older schemes: listed with what they say, never consulted, never removed.
//!
//! | name | where |
//! |---|---|
//! | `owner.lock`, `ID.owner.lock`, `role.lock` | in a directory that is named, and anywhere below its `.agent` |
//! | `session.lock` | anywhere below `.agent` |

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tenure_core::holder::{Bearing, Process, Proof, Source, Verdict, judge};
use tenure_core::id::Time;

use crate::host::Host;

/// Directories below one another that are looked into.
const DEPTH_MAX: usize = 8;
/// Entries looked at.
const ENTRIES_MAX: usize = 10_000;
/// Bytes read of one file.
const BYTES_MAX: u64 = 4096;

/// A lock file of an older scheme.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leftover {
    /// Where it is.
    pub path: PathBuf,
    /// The process that it names, where it can be read so.
    pub pid: Option<u32>,
    /// What is known of that process. Never dead: such a file records no boot and no start time, so its number may be
    /// anybody's (LIV-8).
    pub verdict: Verdict,
    /// Why.
    pub proofs: Vec<Proof>,
}

/// The leftovers in these directories; what cannot be looked at is passed over.
#[must_use]
pub fn leftovers(host: &dyn Host, directories: &[PathBuf]) -> Vec<Leftover> {
    let mut search = Search {
        left: ENTRIES_MAX,
        paths: Vec::new(),
    };
    for directory in directories {
        search.look(directory, false, 0);
        search.look(&directory.join(".agent"), true, DEPTH_MAX);
    }
    search.paths.sort();
    search.paths.dedup();
    search
        .paths
        .into_iter()
        .map(|path| judged(host, path))
        .collect()
}

struct Search {
    left: usize,
    paths: Vec<PathBuf>,
}

impl Search {
    fn look(&mut self, directory: &Path, agent: bool, depth: usize) {
        let Ok(entries) = fs::read_dir(directory) else {
            return;
        };
        for entry in entries.flatten() {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && depth > 0 {
                self.look(&entry.path(), agent, depth - 1);
            } else if kind.is_file() && is_leftover(&entry.file_name().to_string_lossy(), agent) {
                self.paths.push(entry.path());
            }
        }
    }
}

fn is_leftover(name: &str, agent: bool) -> bool {
    let anywhere = matches!(name, "owner.lock" | "role.lock") || name.ends_with(".owner.lock");
    anywhere || (agent && name == "session.lock")
}

fn judged(host: &dyn Host, path: PathBuf) -> Leftover {
    let pid = read(&path).and_then(|text| pid_in(&text));
    let mut record = Bearing {
        host: host.this().id,
        boot: host.this().boot,
        process: None,
        uid: 0,
        recorded: Time(0),
    };
    // The number is asked about as if it were of this boot and namespace, and then not believed to be.
    record.process = pid.map(|pid| Process {
        pid,
        start: None,
        pidns: host.sight(&record).pidns,
        timens: None,
        pidfs: None,
        ancestor: false,
        source: Source::Declared,
    });
    let (verdict, mut proofs) = judge(&record, &host.sight(&record));
    if pid.is_some() {
        proofs.push(Proof::NoBoot);
    }
    Leftover {
        path,
        pid,
        verdict: match verdict {
            Verdict::Dead => Verdict::Unknowable,
            other => other,
        },
        proofs,
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    // A file that is replaced by something that never ends, or by a link, is not read.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The process that a text names: `"pid": N`, `pid=N`, or a first line that is a number.
fn pid_in(text: &[u8]) -> Option<u32> {
    let number = |bytes: &[u8]| {
        let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
        let text = std::str::from_utf8(&bytes[..digits]).ok()?;
        text.parse::<u32>().ok().filter(|pid| *pid > 0)
    };
    let first = text
        .split(|b| *b == b'\n')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    if !first.is_empty() && first.iter().all(u8::is_ascii_digit) {
        return number(first);
    }
    let at = text
        .windows(3)
        .position(|word| word.eq_ignore_ascii_case(b"pid"))?;
    let rest = &text[at + 3..];
    let skipped = rest.iter().take_while(|b| b"\"'=: \t".contains(b)).count();
    number(&rest[skipped..])
}

#[cfg(test)]
mod tests {
    use super::{is_leftover, pid_in};

    /// LIV-9: what cannot be read as a record names nobody.
    #[test]
    fn a_leftover_names_a_process_or_nobody() {
        let read = |text: &str| pid_in(text.as_bytes());
        assert_eq!(read("4242\n"), Some(4242));
        assert_eq!(read(" 17 \nhost"), Some(17));
        assert_eq!(
            read("{\"engine\":\"x\",\"pid\": 9, \"boot\":\"y\"}"),
            Some(9)
        );
        assert_eq!(read("PID=12"), Some(12));
        for nothing in [
            "",
            "\n",
            "{}",
            "pid",
            "pid: x",
            "0",
            "-3",
            "99999999999",
            "{\"pid\":\"a\"}",
            "\u{0}\u{1}",
        ] {
            assert_eq!(read(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn names_of_older_schemes_are_known() {
        for name in ["owner.lock", "role.lock", "abc.owner.lock"] {
            assert!(
                is_leftover(name, false) && is_leftover(name, true),
                "{name}"
            );
        }
        assert!(is_leftover("session.lock", true) && !is_leftover("session.lock", false));
        assert!(!is_leftover("Cargo.lock", true) && !is_leftover("index.lock", true));
    }
}
