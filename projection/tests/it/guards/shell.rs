//! Which git commands a shell line runs.

use std::path::Path;

use tenure_projection::guards::{Change, changing, classify, only_looks};

/// A line's changing commands in short: `VERB:CHANGE@DIRECTORY[PATHS]`, `!` where it is sweeping.
fn read(line: &str) -> String {
    let one = |c: &tenure_projection::guards::GitCommand| {
        let verb = c.verb.as_deref().unwrap_or("?");
        let at = c
            .directory
            .as_ref()
            .map_or("?".into(), |d| d.to_string_lossy());
        let paths = match c.paths.is_empty() {
            true => String::new(),
            false => format!("[{}]", c.paths.join(" ")),
        };
        let sweeping = if c.sweeping { "!" } else { "" };
        format!("{verb}:{}@{at}{paths}{sweeping}", c.change.as_str())
    };
    changing(line, Path::new("/w"))
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join(" ")
}

/// GIT-7, GIT-9: lines as agents write them: compound, wrapped, quoted, with -C and -c; only what changes something is named.
#[test]
fn changing_commands_are_found_in_compound_lines() {
    for (line, expected) in [
        ("git commit -m x", "commit:index@/w"),
        ("git status && git diff | cat; git log", ""),
        (
            "git add a b && git commit -m 'git push'",
            "add:index@/w[a b] commit:index@/w",
        ),
        ("git add -A", "add:index@/w!"),
        ("git add .", "add:index@/w!"),
        ("git add -- ':/'", "add:index@/w!"),
        ("git commit -am x", "commit:index@/w!"),
        ("git commit --all -m x", "commit:index@/w!"),
        ("git commit -m 'a -a b'", "commit:index@/w"),
        (
            "git -C sub -c user.name=x reset --hard",
            "reset:tree@/w/sub",
        ),
        ("git -C /r -C x checkout -- f", "checkout:tree@/r/x[f]"),
        (
            "git --git-dir=/r/.git --work-tree=/r clean -fd",
            "clean:tree@/r",
        ),
        ("git --no-pager -P stash", "stash:tree@/w"),
        ("cd sub && git rm -r x", "rm:tree@/w/sub[x]"),
        (
            "(cd sub && git mv a b); git restore b",
            "mv:tree@/w/sub[a b] restore:tree@/w[b]",
        ),
        ("cd $DIR && git reset --hard", "reset:tree@?"),
        ("cd ~/x; git reset --hard", "reset:tree@?"),
        ("FOO=1 BAR='x y' git rebase main", "rebase:tree@/w"),
        ("env -i A=1 git merge x", "merge:tree@/w"),
        ("sudo -u me git pull", "pull:tree@/w"),
        ("nice -n 5 timeout -k 1 30 git gc", "gc:refs@/w"),
        ("time /usr/bin/git switch x", "switch:tree@/w"),
        ("command git tag v1", "tag:refs@/w"),
        (
            "if ! git diff --quiet; then git stash push -- a; fi",
            "stash:tree@/w[a]",
        ),
        ("while true; do git branch -D x; done", "branch:refs@/w"),
        ("{ git tag -d v1; }", "tag:refs@/w"),
        (
            "bash -c 'cd y && git cherry-pick abc'",
            "cherry-pick:tree@/w/y",
        ),
        ("sh -lc \"git revert HEAD\"", "revert:tree@/w"),
        (
            "eval git update-ref refs/heads/x HEAD",
            "update-ref:refs@/w",
        ),
        (
            "echo $(git reset --hard) `git clean -f`",
            "reset:tree@/w clean:tree@/w",
        ),
        ("echo \"now $(git stash pop)\"", "stash:tree@/w"),
        ("echo '$(git stash pop)'", ""),
        ("echo git commit; # git reset --hard", ""),
        (
            "git log > out 2>&1; git add x >/dev/null",
            "add:index@/w[x]",
        ),
        (
            "cat <<EOF\ngit reset --hard\nEOF\ngit add y",
            "add:index@/w[y]",
        ),
        ("git \\\n  commit -m x", "commit:index@/w"),
        ("git status\ngit am < p", "am:tree@/w"),
        ("ls | xargs -n 1 git rm --cached", "rm:index@/w"),
        ("find . -name x -exec git rm {} \\;", "rm:tree@?[{}]"),
        ("git \"com\"mit -m x", "commit:index@/w"),
        ("git add *.rs", "add:index@/w"),
        ("git add $FILES", "add:index@/w"),
        ("git $VERB x", "?:unknown@/w"),
        ("$GIT commit -m x", "?:unknown@/w"),
        ("$EDITOR file", ""),
        ("git frobnicate", "frobnicate:unknown@/w"),
        ("git -c alias.x='!rm -rf .' x", "x:unknown@/w"),
        ("git fetch origin && git push origin main --force", ""),
        ("git --version; git help reset; git -h", ""),
        ("git worktree remove ../w2", "worktree:tree@/w[../w2]"),
        ("bash -c \"$SCRIPT git\"", "?:unknown@/w"),
        (
            "git add x &> out; git add y",
            "add:index@/w[x] add:index@/w[y]",
        ),
        (
            "diff <(git add x) >(git add y)",
            "add:index@/w[x] add:index@/w[y]",
        ),
        ("cat <<<'git add x'; git add y", "add:index@/w[y]"),
        (
            "cat <<-EOF\n\tgit add x\n\tEOF\ngit add y",
            "add:index@/w[y]",
        ),
        ("cat <<EOF\ngit add x", ""),
        ("echo a#b; git add x", "add:index@/w[x]"),
        ("cd -P sub && git add x", "add:index@/w/sub[x]"),
        ("bash --norc script", ""),
        ("bash -c \"$SCRIPT\"", ""),
        ("$TOOL -v \"$FILE\"", ""),
        ("git -$OPTION commit", "?:unknown@/w"),
        ("_A1=1 git add x", "add:index@/w[x]"),
        ("1A=1 git add x", ""),
        ("A-B=1 git add x", ""),
        ("git commit --amend -m x", "commit:index@/w"),
        ("", ""),
        ("git", ""),
        ("'unclosed git reset --hard", ""),
    ] {
        assert_eq!(read(line), expected, "{line}");
    }
}

/// GIT-7, D05, D07: what each command changes, with the options that make it merely look.
#[test]
fn commands_are_classified_as_the_table_says() {
    use Change::{Index, Nothing, Refs, Tree, Unknown};
    for (line, expected) in [
        ("add x", Index),
        ("add -n x", Nothing),
        ("add --dry-run .", Nothing),
        ("am p", Tree),
        ("apply p", Tree),
        ("apply --cached p", Index),
        ("apply --check p", Nothing),
        ("bisect start", Tree),
        ("bisect log", Nothing),
        ("branch", Nothing),
        ("branch -a", Nothing),
        ("branch --contains x", Nothing),
        ("branch x", Refs),
        ("branch -D x", Refs),
        ("branch --show-current", Nothing),
        ("checkout -b x", Tree),
        ("cherry-pick x", Tree),
        ("clean -fd", Tree),
        ("clean -nd", Nothing),
        ("commit -m x", Index),
        ("commit --dry-run", Nothing),
        ("config user.name", Nothing),
        ("config --get x", Nothing),
        ("config user.name y", Refs),
        ("config --unset user.name", Refs),
        ("diff", Nothing),
        ("fetch --prune", Nothing),
        ("gc", Refs),
        ("log", Nothing),
        ("merge x", Tree),
        ("mv a b", Tree),
        ("notes", Nothing),
        ("notes add", Refs),
        ("pull", Tree),
        ("push", Nothing),
        ("rebase x", Tree),
        ("reflog", Nothing),
        ("reflog expire --all", Refs),
        ("remote -v", Nothing),
        ("remote add o u", Refs),
        ("reset", Index),
        ("reset --soft x", Refs),
        ("reset --hard", Tree),
        ("restore x", Tree),
        ("restore --staged x", Index),
        ("restore --staged --worktree x", Tree),
        ("rm x", Tree),
        ("rm --cached x", Index),
        ("rm -n x", Nothing),
        ("rm --dry-run x", Nothing),
        ("restore -S x", Index),
        ("restore -SW x", Tree),
        ("restore --staged -W x", Tree),
        ("apply --check --apply p", Tree),
        ("branch -d", Refs),
        ("tag -n", Nothing),
        ("symbolic-ref -d HEAD", Refs),
        ("symbolic-ref --delete HEAD", Refs),
        ("replace", Nothing),
        ("replace -l x", Nothing),
        ("replace a b", Refs),
        ("stash", Tree),
        ("stash list", Nothing),
        ("stash drop", Refs),
        ("status", Nothing),
        ("submodule", Nothing),
        ("submodule update", Tree),
        ("switch x", Tree),
        ("symbolic-ref HEAD", Nothing),
        ("symbolic-ref HEAD refs/heads/x", Refs),
        ("tag", Nothing),
        ("tag -l x", Nothing),
        ("tag v1", Refs),
        ("update-index --refresh", Nothing),
        ("update-index --add x", Index),
        ("update-ref a b", Refs),
        ("worktree list", Nothing),
        ("worktree add x", Refs),
        ("worktree remove x", Tree),
        ("something-else", Unknown),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(classify(words[0], &words[1..]), expected, "{line}");
    }
}

/// Whatever the line is, it is read to its end or said to be unreadable; shells in shells end somewhere.
#[test]
fn no_line_is_too_odd() {
    let deep = (0..40).fold("git reset --hard".to_owned(), |line, _| {
        format!("echo $({line})")
    });
    assert!(
        changing(&deep, Path::new("/w"))
            .iter()
            .any(|c| c.change == Change::Unknown)
    );
    for line in [
        "$(",
        "`",
        "\"$(git",
        "<<",
        "git <<EOF",
        "(((",
        ")))",
        "\\",
        "$",
        "${",
        "git -C",
        "git --git-dir",
        "&&",
        "cd",
        "sh -c",
        "find -exec",
    ] {
        let _ = changing(line, Path::new("/w"));
    }
}

/// GIT-7: a line only looks if every command in it is known to, nothing goes into a file, and nothing is left unread.
#[test]
fn lines_that_only_look_are_told_from_all_others() {
    for line in [
        "ls -la && pwd",
        "cat a | grep -n b | head -3",
        "git status; git log --oneline | wc -l",
        "cd src && ls 2>/dev/null",
        "FOO=1 env ls 2>&1",
        "/usr/bin/stat a",
        "echo $(git rev-parse HEAD) `pwd`",
        "",
    ] {
        assert!(only_looks(line), "{line}");
    }
    for line in [
        "make",
        "echo x > a",
        "cat a >> b",
        "ls; rm a",
        "ls | xargs rm",
        "ls && git commit -a",
        "echo $(touch a)",
        "$TOOL a",
        "sh -c 'rm a'",
        "sed -i s/a/b/ c",
        "find . -delete",
        "cat a 2>/dev/null > b",
        "for f in a b; do rm $f; done",
        "sudo tee a",
    ] {
        assert!(!only_looks(line), "{line}");
    }
    // What stands deeper than anybody writes is not read, so it may do anything.
    let nested =
        |depth: usize| (0..depth).fold("ls".to_owned(), |line, _| format!("echo $({line})"));
    assert!(only_looks(&nested(7)));
    assert!(!only_looks(&nested(8)));
}
