//! What git's commands change: one table.

use super::lex::Word;

/// What a git command changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    /// Nothing that others work on: it looks, or it only exchanges with other repositories.
    Nothing,
    /// Branches, tags, the stash, settings: shared by all worktrees of the repository (D07).
    Refs,
    /// What is staged, which is one per worktree.
    Index,
    /// Files of the working tree (D05).
    Tree,
    /// It cannot be read, or is no command of git's own: taken for changing.
    Unknown,
}

impl Change {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Refs => "refs",
            Self::Index => "index",
            Self::Tree => "tree",
            Self::Unknown => "unknown",
        }
    }
}

/// Commands that change nothing, whatever follows.
const LOOKING: &[&str] = &[
    "annotate",
    "archive",
    "blame",
    "bugreport",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "cherry",
    "clone",
    "column",
    "commit-tree",
    "count-objects",
    "credential",
    "describe",
    "diagnose",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "difftool",
    "fast-export",
    "fetch",
    "fmt-merge-msg",
    "for-each-ref",
    "for-each-repo",
    "format-patch",
    "fsck",
    "get-tar-commit-id",
    "grep",
    "hash-object",
    "help",
    "init",
    "instaweb",
    "interpret-trailers",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "merge-tree",
    "mktag",
    "mktree",
    "name-rev",
    "patch-id",
    "push",
    "range-diff",
    "request-pull",
    "rev-list",
    "rev-parse",
    "send-email",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "status",
    "stripspace",
    "unpack-file",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "write-tree",
];

/// Commands that change files of the working tree, whatever follows.
const TREES: &[&str] = &[
    "am",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "filter-branch",
    "filter-repo",
    "merge",
    "mergetool",
    "mv",
    "pull",
    "read-tree",
    "rebase",
    "revert",
    "subtree",
    "switch",
];

/// Commands that change what the worktrees share, whatever follows.
const REFS: &[&str] = &[
    "commit-graph",
    "fast-import",
    "gc",
    "index-pack",
    "maintenance",
    "multi-pack-index",
    "pack-refs",
    "prune",
    "repack",
    "unpack-objects",
    "update-ref",
];

/// What `git VERB ARGUMENTS` changes.
#[must_use]
pub fn classify(verb: &str, arguments: &[&str]) -> Change {
    let has = |names: &[&str]| arguments.iter().any(|argument| names.contains(argument));
    // Short options stand together: `-nd`.
    let short = |letter: char| {
        arguments
            .iter()
            .take_while(|a| **a != "--")
            .any(|a| a.starts_with('-') && !a.starts_with("--") && a.contains(letter))
    };
    let first = arguments.iter().find(|a| !a.starts_with('-')).copied();
    let names = arguments.iter().filter(|a| !a.starts_with('-')).count();
    let unless = |looking: bool, change: Change| if looking { Change::Nothing } else { change };
    match verb {
        _ if LOOKING.contains(&verb) => Change::Nothing,
        _ if TREES.contains(&verb) => Change::Tree,
        _ if REFS.contains(&verb) => Change::Refs,
        "add" | "stage" => unless(short('n') || has(&["--dry-run"]), Change::Index),
        "commit" => unless(has(&["--dry-run"]), Change::Index),
        "update-index" => unless(
            has(&["--refresh", "--really-refresh"]) && names == 0,
            Change::Index,
        ),
        "rm" if short('n') || has(&["--dry-run"]) => Change::Nothing,
        "rm" => {
            if has(&["--cached"]) {
                Change::Index
            } else {
                Change::Tree
            }
        }
        "restore" if (has(&["--staged"]) || short('S')) && !has(&["--worktree"]) && !short('W') => {
            Change::Index
        }
        "restore" => Change::Tree,
        "clean" => unless(short('n') || has(&["--dry-run"]), Change::Tree),
        "apply" if has(&["--check", "--stat", "--numstat", "--summary"]) && !has(&["--apply"]) => {
            Change::Nothing
        }
        "apply" => {
            if has(&["--cached"]) {
                Change::Index
            } else {
                Change::Tree
            }
        }
        "reset" if has(&["--hard", "--merge", "--keep"]) => Change::Tree,
        "reset" if has(&["--soft"]) => Change::Refs,
        "reset" => Change::Index,
        "stash" => match first {
            Some("list" | "show" | "create") => Change::Nothing,
            Some("drop" | "clear" | "store") => Change::Refs,
            _ => Change::Tree,
        },
        "branch" => {
            let looks = has(&[
                "--list",
                "-l",
                "--show-current",
                "--contains",
                "--no-contains",
                "--merged",
                "--no-merged",
                "--points-at",
            ]);
            unless(
                looks || names == 0 && !short('d') && !short('D'),
                Change::Refs,
            )
        }
        "tag" => unless(
            has(&[
                "-l",
                "--list",
                "-v",
                "--verify",
                "--contains",
                "--points-at",
            ]) || short('n')
                || names == 0,
            Change::Refs,
        ),
        "symbolic-ref" => unless(
            names < 2 && !short('d') && !has(&["--delete"]),
            Change::Refs,
        ),
        "config" => {
            let get = arguments
                .iter()
                .any(|a| a.starts_with("--get") || matches!(*a, "--list" | "-l" | "get" | "list"));
            let sets = has(&[
                "--unset",
                "--unset-all",
                "--remove-section",
                "--rename-section",
                "--edit",
                "-e",
                "--add",
            ]);
            unless(get || names < 2 && !sets, Change::Refs)
        }
        "notes" => unless(
            matches!(first, None | Some("list" | "show" | "get-ref")),
            Change::Refs,
        ),
        "replace" => unless(names == 0 || has(&["-l", "--list"]), Change::Refs),
        "reflog" => unless(!matches!(first, Some("expire" | "delete")), Change::Refs),
        "remote" => unless(
            matches!(first, None | Some("show" | "get-url" | "update" | "prune")),
            Change::Refs,
        ),
        "bundle" => unless(first != Some("unbundle"), Change::Refs),
        "bisect" => unless(
            matches!(first, Some("log" | "view" | "visualize" | "terms" | "help")),
            Change::Tree,
        ),
        "sparse-checkout" => unless(first == Some("list"), Change::Tree),
        "submodule" => unless(
            matches!(first, None | Some("status" | "summary")),
            Change::Tree,
        ),
        "worktree" => match first {
            None | Some("list") => Change::Nothing,
            Some("remove" | "move") => Change::Tree,
            _ => Change::Refs,
        },
        _ => Change::Unknown,
    }
}

/// The paths that a command names, and whether it takes whatever is there. No path: everything.
pub(super) fn paths(verb: &str, arguments: &[Word]) -> (Vec<String>, bool) {
    let dashes = arguments.iter().position(|word| word.text == "--");
    let named: Vec<&Word> = match (verb, dashes) {
        (_, Some(at)) => arguments[at + 1..].iter().collect(),
        ("add" | "stage" | "rm" | "mv" | "restore" | "clean", None) => arguments
            .iter()
            .filter(|word| !word.text.starts_with('-'))
            .collect(),
        ("worktree", None) => arguments
            .iter()
            .skip(1)
            .filter(|word| !word.text.starts_with('-'))
            .collect(),
        _ => Vec::new(),
    };
    let flag = |long: &[&str], letters: &[char]| {
        let options = arguments.iter().take(dashes.unwrap_or(arguments.len()));
        options.into_iter().any(|word| {
            let text = word.text.as_str();
            long.contains(&text)
                || text.starts_with('-') && !text.starts_with("--") && text.contains(letters)
        })
    };
    let whole = named
        .iter()
        .any(|word| matches!(&*word.text, "." | ":/" | "*" | "./"));
    let sweeping = match verb {
        "add" | "stage" => {
            whole || flag(&["--all", "--update", "--no-ignore-removal"], &['A', 'u'])
        }
        "commit" => flag(&["--all"], &['a']),
        _ => false,
    };
    // What a pattern or a variable stands for is not known, so it may be everything.
    let readable = named
        .iter()
        .all(|word| word.plain && !word.text.starts_with(':'));
    let paths = if readable && !whole {
        named
    } else {
        Vec::new()
    };
    (
        paths.into_iter().map(|word| word.text.clone()).collect(),
        sweeping,
    )
}
