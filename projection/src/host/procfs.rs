//! What `/proc` says, as text: read from bytes, since a process names itself as it likes.

/// Start time of the process in clock ticks since boot: field 22 of `/proc/PID/stat`.
///
/// The name stands in parentheses as field 2 and may hold spaces, newlines and parentheses, so fields are
/// counted from the last `)` (LIV-10).
pub(super) fn start_ticks(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|b| *b == b')')?;
    let behind = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    // The first field behind the name is field 3.
    behind.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

/// What we need of `/proc/PID/status`. The kernel escapes newlines in its `Name:`, so lines are lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Status {
    /// The number of the process in the namespace that `/proc` was mounted for.
    pub(super) pid: u32,
    /// Its parent's; 0 where the parent is outside.
    pub(super) parent: u32,
    /// Its effective user id.
    pub(super) uid: u32,
    /// How many namespaces number it, from the one that `/proc` was mounted for to its own; 0 where the
    /// kernel does not say.
    pub(super) namespaces: usize,
}

/// Reads `/proc/PID/status`.
pub(super) fn status(text: &[u8]) -> Option<Status> {
    let field = |name: &[u8]| {
        text.split(|b| *b == b'\n').find_map(|line| {
            let rest = line.strip_prefix(name)?.strip_prefix(b":")?;
            std::str::from_utf8(rest).ok()
        })
    };
    let number = |name: &[u8], at: usize| {
        field(name)?
            .split_ascii_whitespace()
            .nth(at)?
            .parse::<u32>()
            .ok()
    };
    Some(Status {
        pid: number(b"Pid", 0)?,
        parent: number(b"PPid", 0)?,
        uid: number(b"Uid", 1)?,
        namespaces: field(b"NSpid").map_or(0, |pids| pids.split_ascii_whitespace().count()),
    })
}

/// Whether the numbers in `/proc` are those of our own pid namespace, judged by our own status there. A
/// `/proc` left from outside (`unshare -pf` without `--mount-proc`) shows other processes under our numbers.
pub(super) fn is_ours(ourselves: &Status, pid: u32) -> bool {
    ourselves.pid == pid && ourselves.namespaces <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 424242 20 21";

    /// LIV-10
    #[test]
    fn names_with_spaces_and_parentheses_do_not_shift_the_start_time() {
        for name in [
            "sh",
            "a b",
            "a) S 1 2",
            "((",
            "))",
            ") R 1 1 1",
            "",
            "\n",
            "\u{fffd}",
        ] {
            let stat = format!("77 ({name}){TAIL}\n");
            assert_eq!(start_ticks(stat.as_bytes()), Some(424_242), "{name:?}");
        }
        let mut bytes = b"77 (\xff\xfe)".to_vec();
        bytes.extend(TAIL.bytes());
        assert_eq!(start_ticks(&bytes), Some(424_242));
    }

    #[test]
    fn a_stat_that_is_cut_off_tells_no_start_time() {
        let stat = format!("77 (sh){TAIL}");
        let enough = stat.find(" 20 21").expect("the tail");
        for cut in 0..=stat.len() {
            let told = start_ticks(&stat.as_bytes()[..cut]);
            // Within the number a prefix of it is a number too; the kernel writes the file in one piece.
            match told {
                Some(ticks) => {
                    assert!(cut >= enough - 5 && "424242".starts_with(&ticks.to_string()))
                }
                None => assert!(cut < enough),
            }
        }
    }

    #[test]
    fn status_is_read_by_field_names() {
        let text =
            b"Name:\tx\\nPPid:\t9\nTgid:\t7\nPid:\t7\nPPid:\t1\nUid:\t10\t11\t12\t13\nNSpid:\t7\t1\n";
        let read = status(text).expect("complete");
        assert_eq!(
            (read.pid, read.parent, read.uid, read.namespaces),
            (7, 1, 11, 2)
        );
        assert_eq!(status(b"Name:\tx\n"), None);
        assert_eq!(status(b""), None);
    }

    /// C08
    #[test]
    fn a_proc_of_an_outer_namespace_is_not_ours() {
        let seen = |pid, namespaces| Status {
            pid,
            parent: 1,
            uid: 0,
            namespaces,
        };
        assert!(is_ours(&seen(7, 1), 7));
        assert!(is_ours(&seen(7, 0), 7), "kernels before 4.1 have no NSpid");
        assert!(!is_ours(&seen(812, 2), 1));
        assert!(!is_ours(&seen(7, 2), 7), "the same number in both");
        assert!(!is_ours(&seen(8, 0), 7));
    }
}
