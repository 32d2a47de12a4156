//! Exit codes. One table: `--help` prints it, `docs/cli.md` shows it, every code of the rules stands in it.
//!
//! 2 is never used: agent hosts read it as "block this tool".

use std::fmt::Write;

use tenure_projection::core::refusal::Code;

/// What the process ends with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Exit(u8);

impl Exit {
    /// Done, yes, clean.
    pub const DONE: Self = Self(0);
    /// A negative answer.
    pub const NEGATIVE: Self = Self(1);
    /// Not everything could be looked at.
    pub const INCOMPLETE: Self = Self(3);
    /// The token is not current.
    pub const NOT_CURRENT: Self = Self(10);

    /// The number for the system.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// That of a command that was run: passed on as it is, whatever it means.
    #[must_use]
    pub fn of_command(code: u8) -> Self {
        Self(code)
    }

    /// That of a refusal.
    #[must_use]
    pub fn of(code: Code) -> Self {
        Self(code.exit())
    }
}

macro_rules! causes {
    ($($(#[$meta:meta])* $variant:ident $word:literal exit $exit:literal,)*) => {
        /// Why a command failed without being refused.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Cause { $($(#[$meta])* $variant,)* }

        impl Cause {
            /// Every cause.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The printed word.
            #[must_use]
            pub fn as_str(self) -> &'static str { match self { $(Self::$variant => $word,)* } }

            /// What the process ends with.
            #[must_use]
            pub fn exit(self) -> Exit { match self { $(Self::$variant => Exit($exit),)* } }
        }
    };
}

causes! {
    /// It may have happened.
    OutcomeUnknown "outcome-unknown" exit 13,
    /// The command line makes no sense.
    Usage "usage" exit 64,
    /// A name breaks the rules for names.
    InvalidName "invalid-name" exit 64,
    /// A position or time that the log does not have.
    BadPosition "bad-position" exit 64,
    /// What is not done, whoever asks.
    Unsupported "unsupported" exit 64,
    /// More than a limit allows.
    LimitExceeded "limit-exceeded" exit 64,
    /// Bytes are not what was written.
    Damaged "damaged" exit 65,
    /// Written by a newer program.
    NewerFormat "newer-format" exit 65,
    /// Files of another store.
    ForeignStore "foreign-store" exit 65,
    /// The directory is not where it was last written.
    HomeChanged "home-changed" exit 65,
    /// What the caller knows of the log is not in it.
    Diverged "diverged" exit 65,
    /// There is no store.
    UnknownStore "unknown-store" exit 66,
    /// Nothing has that number.
    UnknownRefusal "unknown-refusal" exit 66,
    /// No record opened anything of that name.
    UnknownActivity "unknown-activity" exit 66,
    /// No such engine in this program.
    EngineUnavailable "engine-unavailable" exit 69,
    /// A fault of the program.
    Fault "fault" exit 70,
    /// A file or directory cannot be created.
    CannotCreate "cannot-create" exit 73,
    /// The file system is mounted read-only.
    ReadOnly "read-only" exit 73,
    /// The system refused an operation.
    Io "io" exit 74,
    /// No space left.
    NoSpace "no-space" exit 74,
    /// Somebody else is writing.
    Busy "busy" exit 75,
    /// The system allows this user less.
    Permission "permission" exit 77,
    /// The store was made from a bundle, to be looked at only.
    ReadOnlyCopy "read-only-copy" exit 77,
    /// A file of the store is another user's, or open to others.
    ForeignOwner "foreign-owner" exit 77,
    /// A setting is not acceptable.
    Configuration "configuration" exit 78,
    /// A file system whose locks or syncs are not relied on.
    RefusedFileSystem "refused-file-system" exit 78,
}

/// What each exit code means. The codes that lead to it follow from [`Code`] and [`Cause`].
const MEANINGS: &[(u8, &str)] = &[
    (0, "done, yes, clean"),
    (
        1,
        "a negative answer: nobody holds it, nothing has that key, something was found",
    ),
    (
        3,
        "verify: not everything could be looked at, and nothing was found in the rest",
    ),
    (10, "the token is not current"),
    (11, "somebody or something is in the way"),
    (12, "it is held"),
    (13, "it may have happened: ask `tenure outcome KEY`"),
    (64, "the command line is wrong"),
    (
        65,
        "the store is damaged, foreign or newer; the message names the command that helps",
    ),
    (66, "there is no such thing"),
    (69, "the engine is not available"),
    (70, "a fault of this program"),
    (73, "it cannot be created"),
    (74, "the system failed, or there is no space"),
    (75, "busy: nothing happened, try again"),
    (77, "no permission"),
    (78, "a setting is not acceptable"),
];

/// A row of the table: exit code, the codes that lead to it, what it means.
pub struct Row {
    /// The exit code.
    pub exit: u8,
    /// The codes, as printed.
    pub codes: Vec<&'static str>,
    /// What it means.
    pub meaning: &'static str,
}

/// The table, in the order of the exit codes.
#[must_use]
pub fn table() -> Vec<Row> {
    let refusals = Code::ALL.iter().map(|c| (c.exit(), c.as_str()));
    let causes = Cause::ALL.iter().map(|c| (c.exit().number(), c.as_str()));
    // What is refused and what is found to be wrong earlier may have one word.
    let mut codes: Vec<(u8, &'static str)> = Vec::new();
    for code in refusals.chain(causes) {
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    MEANINGS
        .iter()
        .map(|&(exit, meaning)| Row {
            exit,
            codes: codes
                .iter()
                .filter(|(e, _)| *e == exit)
                .map(|(_, c)| *c)
                .collect(),
            meaning,
        })
        .collect()
}

/// The table as `--help` prints it.
#[must_use]
pub fn help() -> String {
    let mut text = String::new();
    for row in table() {
        let _ = writeln!(text, "  {:>2}  {}", row.exit, row.meaning);
        if !row.codes.is_empty() {
            let _ = writeln!(text, "      {}", row.codes.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_in_the_table_once_and_2_is_never_used() {
        let rows = table();
        let listed: Vec<&str> = rows.iter().flat_map(|r| r.codes.iter().copied()).collect();
        for code in Code::ALL
            .iter()
            .map(|c| c.as_str())
            .chain(Cause::ALL.iter().map(|c| c.as_str()))
        {
            assert_eq!(listed.iter().filter(|l| **l == code).count(), 1, "{code}");
        }
        // What shells, hosts and signals use for themselves.
        assert!(rows.iter().all(|r| r.exit != 2 && r.exit < 101));
        assert!(rows.is_sorted_by(|a, b| a.exit < b.exit));
    }
}
