//! Whether a checkout is about to change its branch (D04).

use std::fs;

use super::GitRepository;

/// A checkout that goes from one branch to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Switch {
    /// The branch that it is on, or the commit, shortened.
    pub from: String,
    /// Where it goes.
    pub to: String,
}

/// A branch by its short name; a commit by the beginning of its id.
fn place(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_end();
    let reference = text.strip_prefix("ref:").map(str::trim_start);
    match reference {
        Some(name) => name.strip_prefix("refs/heads/").unwrap_or(name).to_owned(),
        None => text.chars().take(12).collect(),
    }
}

/// What `HEAD` is to become among refs that are to move, each with what it moves to; `None` where that is no switch: a commit
/// moves `HEAD` together with its branch.
pub fn head<'r>(refs: impl Iterator<Item = (&'r [u8], &'r [u8])>) -> Option<&'r [u8]> {
    let (mut to, mut with_branch) = (None, false);
    for (name, new) in refs {
        if name == b"HEAD" && new.iter().any(|b| *b != b'0') {
            to = Some(new);
        }
        with_branch |= name.starts_with(b"refs/heads/");
    }
    to.filter(|to| is_branch(to) || !with_branch)
}

fn is_branch(text: &[u8]) -> bool {
    text.starts_with(b"ref:")
}

impl GitRepository {
    /// Whether this checkout changes its branch when `HEAD` becomes `to`, while git holds it locked for that. A step of a
    /// rebase goes from commit to commit, which is no switch, and neither is the `HEAD` of another worktree.
    #[must_use]
    pub fn switch(&self, to: &[u8]) -> Option<Switch> {
        let now = fs::read(self.git.join("HEAD")).ok()?;
        let steps = !is_branch(to) && !is_branch(&now);
        if steps || !self.git.join("HEAD.lock").exists() {
            return None;
        }
        let (from, to) = (place(&now), place(to));
        (from != to).then_some(Switch { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(head: &str, locked: bool) -> (tempfile::TempDir, GitRepository) {
        let room = tempfile::tempdir().expect("a directory");
        let git = room.path().to_path_buf();
        fs::write(git.join("HEAD"), head).expect("written");
        if locked {
            fs::write(git.join("HEAD.lock"), "").expect("written");
        }
        let repository = GitRepository {
            top: git.clone(),
            git: git.clone(),
            common: git,
            worktrees: Vec::new(),
        };
        (room, repository)
    }

    /// D04: every way in which `HEAD` moves, and which of them change the branch of the checkout.
    #[test]
    fn a_switch_is_told_from_a_commit() {
        const MAIN: &str = "ref: refs/heads/main\n";
        const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
        let other = "1".repeat(40);
        let zeros = "0".repeat(40);
        let switch = |now: &str, refs: &[(&str, &str)]| {
            let (_room, repository) = repository(now, true);
            let refs = refs.iter().map(|(n, to)| (n.as_bytes(), to.as_bytes()));
            let switch = head(refs).and_then(|to| repository.switch(to));
            switch.map(|s| format!("{} {}", s.from, s.to))
        };
        let side = "ref:refs/heads/a/side";
        assert_eq!(switch(MAIN, &[("HEAD", side)]), Some("main a/side".into()));
        assert_eq!(
            switch(MAIN, &[("HEAD", COMMIT)]),
            Some("main 0123456789ab".into())
        );
        assert_eq!(
            switch(COMMIT, &[("HEAD", side)]),
            Some("0123456789ab a/side".into())
        );
        assert_eq!(switch(MAIN, &[("HEAD", "ref:refs/heads/main")]), None);
        let committed = [("HEAD", COMMIT), ("refs/heads/main", COMMIT)];
        assert_eq!(switch(MAIN, &committed), None);
        assert_eq!(switch(COMMIT, &[("HEAD", &other)]), None);
        assert_eq!(switch(MAIN, &[("HEAD", &zeros)]), None);
        assert_eq!(switch(MAIN, &[("refs/heads/side", COMMIT)]), None);
        let (_room, unlocked) = repository(MAIN, false);
        assert_eq!(unlocked.switch(side.as_bytes()), None, "another worktree's");
    }
}
