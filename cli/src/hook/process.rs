//! Which process the host is. Names are a hint: what a grant records of the process that is found is its pid, start time
//! and inode.

use std::path::Path;

use tenure_projection::host::Ancestor;

use super::payload::Host;

/// Programs that run another: what counts is the script.
const INTERPRETERS: &[&str] = &["node", "bun", "deno", "python", "python3"];
/// The same, which run a line of text too.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"];

/// The nearest ancestor that is the host; else the parent, or what stands above a shell that was only started to run
/// `own`, the line of this command. `None` where nothing is above this process.
pub fn hosting(
    host: Host,
    own: &[String],
    ancestors: impl Iterator<Item = Ancestor>,
) -> Option<u32> {
    let mut passed: Vec<Ancestor> = Vec::new();
    for process in ancestors {
        if is_named(&process, host) {
            return Some(process.pid);
        }
        passed.push(process);
    }
    let ancestors = passed;
    let mut above = ancestors.iter().enumerate();
    let lasting = above.find(|(at, process)| {
        let next = ancestors.get(at + 1);
        !runs_only(process, own) && !is_subshell(process, next)
    });
    let parent = ancestors.first();
    lasting
        .map(|(_, process)| process)
        .or(parent)
        .map(|process| process.pid)
}

/// The variable in which `acp` says which process it is.
pub const PROXY: &str = "TENURE_ACP";

/// The agent that `acp` holds sessions for, where this is one of its descendants: the child of the proxy that the
/// environment names. A proxy that is not above this process is another's, or gone.
pub fn proxied(ancestors: impl Iterator<Item = Ancestor>) -> Option<u32> {
    let proxy: u32 = std::env::var(PROXY).ok()?.parse().ok()?;
    let all: Vec<u32> = ancestors.map(|process| process.pid).collect();
    below(proxy, &all)
}

fn below(proxy: u32, ancestors: &[u32]) -> Option<u32> {
    let at = ancestors.iter().position(|pid| *pid == proxy)?;
    ancestors.get(at.checked_sub(1)?).copied()
}

fn base(argument: &[u8]) -> String {
    let text = String::from_utf8_lossy(argument);
    let name = text.rsplit('/').next().unwrap_or_default();
    // A login shell calls itself `-bash`.
    name.trim_start_matches('-').to_owned()
}

fn is_one_of(process: &Ancestor, names: &[&str]) -> bool {
    let first = process.arguments.first().map(|first| base(first));
    first.is_some_and(|first| names.contains(&&*first))
}

/// The script that an interpreter runs.
fn script(process: &Ancestor) -> Option<&[u8]> {
    let rest = process.arguments.get(1..)?;
    let first = rest.first()?;
    if is_one_of(process, SHELLS) {
        return (!first.starts_with(b"-")).then_some(&**first);
    }
    if !is_one_of(process, INTERPRETERS) {
        return None;
    }
    let script = rest.iter().find(|argument| !argument.starts_with(b"-"));
    script.map(|script| &**script)
}

fn is_named(process: &Ancestor, host: Host) -> bool {
    let word = host.as_str();
    let calls = |name: &str| name == word || Path::new(name).file_stem().is_some_and(|s| s == word);
    let program = process.arguments.first().map(|first| base(first));
    if calls(&String::from_utf8_lossy(&process.name)) || program.is_some_and(|name| calls(&name)) {
        return true;
    }
    script(process).is_some_and(|script| {
        let text = String::from_utf8_lossy(script);
        let package = match host {
            Host::Claude => "@anthropic-ai/claude-code/",
            Host::Codex => "@openai/codex/",
            Host::Gemini => "@google/gemini-cli/",
        };
        calls(&base(script)) || text.contains(package)
    })
}

/// A shell that was started for one line, which is this command.
fn runs_only(process: &Ancestor, own: &[String]) -> bool {
    let bare = |text: &str| text.replace(['\'', '"', '\\'], "");
    let [_, flag, line, ..] = &process.arguments[..] else {
        return false;
    };
    let line = bare(&String::from_utf8_lossy(line));
    let several = line.contains([';', '\n', '{', '(']);
    is_one_of(process, SHELLS)
        && flag.starts_with(b"-")
        && flag.contains(&b'c')
        && !several
        && line.contains(&bare(&own.join(" ")))
}

/// A shell that has divided itself, as for `$( )`: it ends with what it runs, and the shell above it goes on.
fn is_subshell(process: &Ancestor, above: Option<&Ancestor>) -> bool {
    is_one_of(process, SHELLS) && above.is_some_and(|above| above.arguments == process.arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, name: &str, arguments: &[&str]) -> Ancestor {
        Ancestor {
            pid,
            name: name.as_bytes().to_vec(),
            arguments: arguments.iter().map(|a| a.as_bytes().to_vec()).collect(),
        }
    }

    /// Under a proxy it is the proxy's child, whatever runs below; what only names one that is not above counts nothing.
    #[test]
    fn under_a_proxy_the_agent_is_its_child() {
        assert_eq!(below(7, &[9, 8, 7, 6]), Some(8));
        assert_eq!(below(9, &[9, 8, 7]), None);
        assert_eq!(below(5, &[9, 8, 7]), None);
    }

    fn found(host: Host, all: &[Ancestor]) -> Option<u32> {
        let own = ["/opt/my tools/tenure", "hook", "--host", "claude"].map(str::to_owned);
        hosting(host, &own, all.iter().cloned())
    }

    /// LIV-17, A04: the host is found behind the shells and wrappers that it starts its hooks through.
    #[test]
    fn the_host_is_the_nearest_that_calls_itself_so() {
        let hook = "'/opt/my tools/tenure' hook --host claude";
        let shell = || process(9, "sh", &["/bin/sh", "-c", hook]);
        let ways: &[(&str, &[&str])] = &[
            ("claude", &["claude", "--resume"]),
            ("MainThread", &["node", "/usr/local/bin/claude"]),
            (
                "node",
                &[
                    "/usr/bin/node",
                    "--no-warnings",
                    "/lib/@anthropic-ai/claude-code/cli.js",
                ],
            ),
            ("claude", &["/bin/sh", "./claude"]),
            ("bun", &["bun", "claude.js"]),
            ("2.1.214", &["/srv/u/.local/bin/claude"]),
        ];
        for (name, arguments) in ways {
            let all = [
                shell(),
                process(8, name, arguments),
                process(7, "zsh", &["-zsh"]),
            ];
            assert_eq!(found(Host::Claude, &all), Some(8), "{arguments:?}");
        }
        let nested = [
            shell(),
            process(8, "claude", &["claude", "-p"]),
            process(7, "codex", &["codex"]),
            process(6, "claude", &["claude"]),
        ];
        assert_eq!(found(Host::Claude, &nested), Some(8));
        assert_eq!(found(Host::Codex, &nested), Some(7));
    }

    #[test]
    fn without_a_name_it_is_the_parent_that_stays() {
        let hook = "'/opt/my tools/tenure' hook --host claude";
        let runner = || process(5, "python3", &["python3", "runner.py"]);
        let one = |shell: &[&str]| found(Host::Claude, &[process(9, "sh", shell), runner()]);
        assert_eq!(one(&["sh", "-c", hook]), Some(5));
        assert_eq!(one(&["/bin/bash", "-lc", hook]), Some(5));
        assert_eq!(one(&["bash", "script.sh"]), Some(9));
        assert_eq!(one(&["bash"]), Some(9));
        assert_eq!(
            one(&["bash", "-c", "for p in *; do tenure hook; done"]),
            Some(9)
        );
        assert_eq!(one(&["sh", "-c", "other"]), Some(9));
        let divided = [
            process(9, "bash", &["bash", "run"]),
            process(8, "bash", &["bash", "run"]),
            runner(),
        ];
        assert_eq!(found(Host::Claude, &divided), Some(8));
        assert_eq!(
            found(Host::Claude, &[process(9, "sh", &["sh", "-c", hook])]),
            Some(9)
        );
        assert_eq!(found(Host::Claude, &[]), None);
        // Elsewhere than on Linux nothing is known of a parent but its number.
        assert_eq!(found(Host::Claude, &[process(3, "", &[])]), Some(3));
    }
}
