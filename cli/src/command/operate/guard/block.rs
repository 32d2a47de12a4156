//! The text of our hooks: a block of shell that stands by itself or inside somebody's script, and the settings that
//! it carries, so that it knows what to do when the program or the store is not there.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::Policy;

/// The version of the block's text.
const VERSION: u32 = 2;
/// What a shell script that we wrote says in its second line.
pub const OURS: &str =
    "# Written by `tenure guard install`; `tenure guard uninstall` takes it away.";

/// A hook that is guarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guarded {
    /// Before a commit is made.
    PreCommit,
    /// Before refs move.
    ReferenceTransaction,
}

impl Guarded {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::PreCommit, Self::ReferenceTransaction];

    /// The name of its file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PreCommit => "pre-commit",
            Self::ReferenceTransaction => "reference-transaction",
        }
    }

    /// The hook whose file has that name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.name() == name)
    }
}

/// What a block carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The program that it runs.
    pub program: PathBuf,
    /// The store that it asks where the environment names none.
    pub store: PathBuf,
    /// What follows when paths of others are taken along, and when nothing can be asked.
    pub policy: Policy,
    /// How many paths of others a commit may delete.
    pub deletions_max: u32,
}

fn begin(hook: Guarded) -> String {
    format!("# >>> tenure guard {VERSION}: {} >>>", hook.name())
}

fn end(hook: Guarded) -> String {
    format!("# <<< tenure guard {VERSION}: {} <<<", hook.name())
}

/// What begins the block of any version.
const BEGIN: &[u8] = b"# >>> tenure guard ";
/// What ends it.
const END: &[u8] = b"# <<< tenure guard ";

/// A value as one word of a shell, whatever bytes it has.
#[must_use]
pub fn quoted(value: &OsStr) -> Vec<u8> {
    let mut text = vec![b'\''];
    for byte in value.as_bytes() {
        match byte {
            b'\'' => text.extend_from_slice(br"'\''"),
            byte => text.push(*byte),
        }
    }
    text.push(b'\'');
    text
}

fn unquoted(text: &[u8]) -> Option<OsString> {
    let inner = text.strip_prefix(b"'")?.strip_suffix(b"'")?;
    let mut value = Vec::new();
    let mut rest = inner;
    while let Some((byte, behind)) = rest.split_first() {
        if *byte == b'\'' {
            rest = rest.strip_prefix(br"'\''")?;
            value.push(b'\'');
        } else {
            value.push(*byte);
            rest = behind;
        }
    }
    Some(OsString::from_vec(value))
}

/// What runs the program. Any exit but 0 and 1 means that nothing was checked: it failed, or is not there.
const ASK: &str = r#"tenure_said=0
if [ -x "$tenure_program" ]; then
    TENURE_STORE="${TENURE_STORE:-$tenure_store}" "$tenure_program" guard hook @HOOK@ \
        --policy "$tenure_policy" --deletions-max "$tenure_deletions" @INPUT@|| tenure_said=$?
@DATA@else
    tenure_said=127
    echo "tenure guard: $tenure_program is not there" >&2
fi
case $tenure_said in
0) ;;
1) exit 1 ;;
*)
    echo "tenure guard: nothing was checked (exit $tenure_said), policy $tenure_policy" >&2
    if [ "$tenure_policy" = refuse ]; then exit 1; fi
    ;;
esac
"#;

/// Refs move often: without a token, and in the states that decide nothing, no process is started; nor for a lone note of
/// git's (`AUTO_MERGE` goes with every commit). The first lines are read without a process of their own. What comes
/// behind the block still reads what git wrote to the hook.
const REFS: &str = r#"if [ "${1-}" = prepared ] && [ -n "${TENURE_TOKEN_FILE-}${TENURE_TOKEN-}" ]; then
tenure_refs=
tenure_more=4
while [ "$tenure_more" -gt 0 ] && IFS= read -r tenure_line; do
    tenure_refs="${tenure_refs:+$tenure_refs
}$tenure_line"
    tenure_more=$((tenure_more - 1))
done
if [ "$tenure_more" -eq 0 ]; then
    tenure_line=$(cat)
    tenure_refs="$tenure_refs${tenure_line:+
$tenure_line}"
fi
tenure_name=${tenure_refs##* }
case "$tenure_more:$tenure_name" in
3:HEAD | 3:*[!A-Z_]* | [!3]:*)
@ASK@;;
esac
exec <<TENURE_REFS
$tenure_refs
TENURE_REFS
fi
"#;

/// How the refs reach the program.
const INPUT: &str = "<<TENURE_REFS ";
const DATA: &str = "$tenure_refs\nTENURE_REFS\n";

/// The block of a hook.
#[must_use]
pub fn text(hook: Guarded, settings: &Settings) -> Vec<u8> {
    let mut block = Vec::new();
    let mut line = |parts: &[&[u8]]| {
        parts.iter().for_each(|part| block.extend_from_slice(part));
        block.push(b'\n');
    };
    line(&[begin(hook).as_bytes()]);
    line(&[b"# It warns, and refuses what a policy says; git's own locks are what excludes."]);
    line(&[b"tenure_program=", &quoted(settings.program.as_os_str())]);
    line(&[b"tenure_store=", &quoted(settings.store.as_os_str())]);
    line(&[
        b"tenure_policy='",
        settings.policy.as_str().as_bytes(),
        b"'",
    ]);
    line(&[
        b"tenure_deletions='",
        settings.deletions_max.to_string().as_bytes(),
        b"'",
    ]);
    let ask = ASK.replace("@HOOK@", hook.name());
    let body = match hook {
        Guarded::PreCommit => ask.replace("@INPUT@", "").replace("@DATA@", ""),
        Guarded::ReferenceTransaction => {
            let ask = ask.replace("@INPUT@", INPUT).replace("@DATA@", DATA);
            REFS.replace("@ASK@", &ask)
        }
    };
    block.extend_from_slice(body.as_bytes());
    block.extend_from_slice(end(hook).as_bytes());
    block.push(b'\n');
    block
}

/// A block found in a hook: where it begins and ends, whole lines.
#[must_use]
pub fn find(script: &[u8]) -> Option<std::ops::Range<usize>> {
    let line_with = |what: &[u8], from: usize| {
        let mut at = from;
        script[from..]
            .split_inclusive(|b| *b == b'\n')
            .find_map(|line| {
                let start = at;
                at += line.len();
                line.starts_with(what).then_some(start..at)
            })
    };
    let begin = line_with(BEGIN, 0)?;
    let end = line_with(END, begin.end)?;
    Some(begin.start..end.end)
}

/// What the block in a hook carries; `None` where there is none, or none that can be read.
#[must_use]
pub fn settings(script: &[u8]) -> Option<Settings> {
    let block = &script[find(script)?];
    let value = |name: &str| {
        let lines = block.split(|b| *b == b'\n');
        lines
            .filter_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
            .find_map(unquoted)
    };
    let policy = value("tenure_policy")?;
    let policies = [Policy::Disclose, Policy::WarnOnce, Policy::Refuse];
    Some(Settings {
        program: value("tenure_program")?.into(),
        store: value("tenure_store")?.into(),
        policy: policies.into_iter().find(|p| policy == p.as_str())?,
        deletions_max: value("tenure_deletions")?.to_str()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Settings {
        Settings {
            program: PathBuf::from(OsStr::from_bytes(b"/o'brien/\xff tenure")),
            store: "/st ore/$HOME`x`".into(),
            policy: Policy::Refuse,
            deletions_max: 7,
        }
    }

    #[test]
    fn a_block_is_read_back_as_it_was_written() {
        for hook in Guarded::ALL {
            let text = text(hook, &some());
            assert_eq!(settings(&text), Some(some()), "{hook:?}");
            let around = [b"#!/bin/sh\n", &text[..], b"echo rest\n"].concat();
            let range = find(&around).expect("it is there");
            assert_eq!(&around[range.clone()], &text[..]);
            assert_eq!(range.start, 10);
        }
        assert_eq!(find(b"#!/bin/sh\necho '# >>> tenure guard 1'\n"), None);
        assert_eq!(
            settings(b"# >>> tenure guard 9: x >>>\n# <<< tenure guard 9: x <<<\n"),
            None
        );
    }

    /// GIT-14: the hook says itself what it is not.
    #[test]
    fn a_block_says_that_git_excludes() {
        let text = String::from_utf8_lossy(&text(Guarded::PreCommit, &some())).into_owned();
        assert!(text.contains("git's own locks are what excludes"), "{text}");
    }
}
