//! Which git commands a shell line runs (GIT-7): read as a shell reads it, as far as that is possible without running
//! anything. What cannot be read is said to be so, never guessed.

use std::path::{Path, PathBuf};

mod lex;
mod verbs;

pub use verbs::{Change, classify};

use lex::{Piece, Word, pieces};

/// Shells in shells that are followed; a line that goes deeper is not read to its end.
const DEPTH_MAX: usize = 8;

/// A git command in a shell line that is not merely looking.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GitCommand {
    /// The word behind `git`; `None` where the command itself cannot be read.
    pub verb: Option<String>,
    /// What it changes.
    pub change: Change,
    /// The directory it runs in; `None` where that cannot be read.
    pub directory: Option<PathBuf>,
    /// The paths that it names, as they are written; empty: everything there.
    pub paths: Vec<String>,
    /// Whether it takes whatever is there (`add -A`, `commit -a`) (GIT-9).
    pub sweeping: bool,
}

/// The git commands of a shell line that change something, for a shell that begins in `cwd`. Looking, `fetch` and `push`
/// are not among them.
#[must_use]
pub fn changing(line: &str, cwd: &Path) -> Vec<GitCommand> {
    let mut reader = Reader {
        found: Vec::new(),
        depth: 0,
    };
    reader.line(line, &mut Some(cwd.to_owned()));
    reader.found
}

/// Programs that only look, whatever their arguments are.
const LOOKING: &[&str] = &[
    "[", "basename", "cat", "cd", "cmp", "cut", "date", "df", "diff", "dirname", "du", "echo",
    "egrep", "false", "fgrep", "file", "grep", "head", "hostname", "id", "jq", "ls", "popd",
    "printenv", "printf", "ps", "pushd", "pwd", "readlink", "realpath", "rg", "sleep", "stat",
    "tail", "tenure", "test", "tr", "true", "type", "uname", "wc", "which", "whoami",
];

/// Whether a shell line only looks: every command in it is known to, and nothing is redirected into a file. What cannot be
/// read may do anything.
#[must_use]
pub fn only_looks(line: &str) -> bool {
    let mut bare = line.to_owned();
    for harmless in [
        "2>&1",
        ">&2",
        "2>/dev/null",
        ">/dev/null",
        "2> /dev/null",
        "> /dev/null",
    ] {
        bare = bare.replace(harmless, " ");
    }
    !bare.contains('>') && changing(&bare, Path::new("/")).is_empty() && looks(&bare, DEPTH_MAX)
}

fn looks(line: &str, depth: usize) -> bool {
    depth > 0
        && pieces(line).iter().all(|piece| match piece {
            Piece::Open | Piece::Close => true,
            Piece::Inside(text) => looks(text, depth - 1),
            Piece::Command(words) => behind_wrappers(words).first().is_none_or(|first| {
                let name = first.text.rsplit('/').next().unwrap_or_default();
                // What git changes was asked before.
                first.plain && (name == "git" || LOOKING.contains(&name))
            }),
        })
}

struct Reader {
    found: Vec<GitCommand>,
    depth: usize,
}

impl Reader {
    fn line(&mut self, line: &str, cwd: &mut Option<PathBuf>) {
        if self.depth == DEPTH_MAX {
            return self.unreadable(cwd.clone());
        }
        self.depth += 1;
        // A subshell gives its directory back.
        let mut outer = Vec::new();
        for piece in pieces(line) {
            match piece {
                Piece::Open => outer.push(cwd.clone()),
                Piece::Close => {
                    if let Some(before) = outer.pop() {
                        *cwd = before;
                    }
                }
                Piece::Inside(text) => self.line(&text, &mut cwd.clone()),
                Piece::Command(words) => self.command(&words, cwd),
            }
        }
        self.depth -= 1;
    }

    fn unreadable(&mut self, directory: Option<PathBuf>) {
        self.found.push(GitCommand {
            verb: None,
            change: Change::Unknown,
            directory,
            paths: Vec::new(),
            sweeping: false,
        });
    }

    fn command(&mut self, words: &[Word], cwd: &mut Option<PathBuf>) {
        let words = behind_wrappers(words);
        let Some((first, rest)) = words.split_first() else {
            return;
        };
        if !first.plain {
            // `$GIT commit` may be anything; only where it looks like git is it taken for one.
            if rest.iter().any(|word| word.plain && is_verb(&word.text)) {
                self.unreadable(cwd.clone());
            }
            return;
        }
        let name = first.text.rsplit('/').next().unwrap_or_default();
        match name {
            "cd" | "pushd" => {
                let target = rest
                    .iter()
                    .find(|word| !word.text.starts_with('-') || !word.plain);
                *cwd = match (target, cwd.take()) {
                    (Some(word), Some(at)) if word.plain && !word.text.starts_with('~') => {
                        Some(at.join(&word.text))
                    }
                    _ => None,
                };
            }
            "git" => self.git(rest, cwd.as_deref()),
            "sh" | "bash" | "dash" | "zsh" | "ksh" => {
                let script = rest.iter().position(|word| {
                    word.text.starts_with('-')
                        && !word.text.starts_with("--")
                        && word.text.contains('c')
                });
                if let Some(script) = script.and_then(|at| rest.get(at + 1)) {
                    self.inner(script, cwd);
                }
            }
            "eval" => {
                let all: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
                let whole = Word {
                    text: all.join(" "),
                    plain: rest.iter().all(|word| word.plain),
                };
                self.inner(&whole, cwd);
            }
            "find" => {
                let mut at = rest;
                while let Some(exec) = at
                    .iter()
                    .position(|w| matches!(&*w.text, "-exec" | "-execdir" | "-ok"))
                {
                    at = &at[exec + 1..];
                    let end = at
                        .iter()
                        .position(|w| matches!(&*w.text, ";" | "+"))
                        .unwrap_or(at.len());
                    // It runs in directories that are not known.
                    self.command(&at[..end], &mut None);
                    at = &at[end..];
                }
            }
            _ => {}
        }
    }

    fn inner(&mut self, script: &Word, cwd: &mut Option<PathBuf>) {
        if script.plain {
            self.line(&script.text, &mut cwd.clone());
        } else if script.text.contains("git") {
            self.unreadable(cwd.clone());
        }
    }

    fn git(&mut self, words: &[Word], cwd: Option<&Path>) {
        let mut directory = cwd.map(Path::to_path_buf);
        let mut at = 0;
        let moved = |directory: Option<PathBuf>, word: &Word| match directory {
            Some(from) if word.plain => Some(from.join(&word.text)),
            _ => None,
        };
        let nothing = Word {
            text: String::new(),
            plain: false,
        };
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            let value = words.get(at + 1).unwrap_or(&nothing);
            match text {
                "-C" | "--work-tree" => {
                    directory = moved(directory, value);
                    at += 1;
                }
                // What is changed is found by the working tree, or else by where the repository is.
                "--git-dir" => {
                    directory = moved(directory, value);
                    at += 1;
                }
                "-c" | "--namespace" | "--config-env" | "--attr-source" => at += 1,
                "-h" | "--help" | "--version" | "-v" | "--html-path" | "--man-path"
                | "--exec-path" => return,
                _ if text.starts_with("--work-tree=") || text.starts_with("--git-dir=") => {
                    let value = Word {
                        text: text.split_once('=').map_or("", |(_, v)| v).to_owned(),
                        plain: word.plain,
                    };
                    directory = moved(directory, &value);
                }
                _ if text.starts_with('-') && word.plain => {}
                _ => break,
            }
            at += 1;
        }
        let Some(verb) = words.get(at) else { return };
        if !verb.plain {
            return self.unreadable(directory);
        }
        let arguments = &words[at + 1..];
        let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
        let change = classify(&verb.text, &texts);
        if change == Change::Nothing {
            return;
        }
        let (paths, sweeping) = verbs::paths(&verb.text, arguments);
        self.found.push(GitCommand {
            verb: Some(verb.text.clone()),
            change,
            directory,
            paths,
            sweeping,
        });
    }
}

fn is_verb(word: &str) -> bool {
    !word.starts_with('-') && classify(word, &["x"]) != Change::Unknown
}

/// The command behind assignments, keywords and programs that run another.
fn behind_wrappers(mut words: &[Word]) -> &[Word] {
    while let Some(first) = words.first() {
        let text = first.text.as_str();
        let name = text.rsplit('/').next().unwrap_or_default();
        let skip = match name {
            _ if is_assignment(text) => 1,
            "!" | "if" | "then" | "elif" | "else" | "while" | "until" | "do" | "time"
            | "command" | "exec" | "builtin" | "nohup" | "setsid" | "coproc" => {
                1 + flags(&words[1..], &[])
            }
            "env" => 1 + flags(&words[1..], &["-u", "-C", "-S"]),
            "sudo" | "doas" => 1 + flags(&words[1..], &["-u", "-g", "-h", "-p", "-D", "-C"]),
            "nice" | "ionice" => 1 + flags(&words[1..], &["-n", "-c"]),
            "xargs" => {
                1 + flags(
                    &words[1..],
                    &["-I", "-n", "-L", "-P", "-d", "-a", "-s", "-E"],
                )
            }
            "stdbuf" => 1 + flags(&words[1..], &["-i", "-o", "-e"]),
            "timeout" => 2 + flags(&words[1..], &["-k", "-s"]),
            _ => return words,
        };
        words = words.get(skip..).unwrap_or_default();
    }
    words
}

fn flags(words: &[Word], with_value: &[&str]) -> usize {
    let mut at = 0;
    while let Some(word) = words
        .get(at)
        .filter(|word| word.text.starts_with('-') && word.plain)
    {
        at += 1 + usize::from(with_value.contains(&word.text.as_str()));
    }
    at
}

fn is_assignment(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else {
        return false;
    };
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
