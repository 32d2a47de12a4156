//! Which repository a path belongs to, compared with what git itself says of real ones.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use tenure_core::path::{Level, Repository, Scope};
use tenure_projection::checkouts::{CheckoutError, locate};

use super::{Place, borrowed, meet};
use crate::actors;
use crate::git::{commit, git, try_git};

/// One repository `r` with a linked worktree `w` outside and one inside, a superproject `super` with a submodule
/// `sub` that has a worktree too, one whose git directory lies elsewhere, one below another, a bare one, and
/// places that only look like one.
fn zoo() -> Place {
    let place = Place::with_directories(&["r/docs", "super", "apart", "plain/x", "fake/.git"]);
    for name in ["r", "super"] {
        git(&place.at(name), &["init", "-q"]);
        commit(&place.at(name));
    }
    git(&place.at("r"), &["worktree", "add", "-q", "../w"]);
    git(&place.at("r"), &["worktree", "add", "-q", "docs/inside"]);
    fs::create_dir(place.at("w/docs")).expect("made");
    git(
        &place.at("super"),
        &["submodule", "--quiet", "add", "../r", "sub"],
    );
    git(
        &place.at("super/sub"),
        &["worktree", "add", "-q", "-b", "side", "../../w-of-sub"],
    );
    git(
        &place.at("apart"),
        &["init", "-q", "--separate-git-dir", "../apart.git"],
    );
    commit(&place.at("apart"));
    git(&place.root, &["init", "-q", "r/docs/nested"]);
    git(&place.root, &["init", "-q", "--bare", "bare.git"]);
    place.link("linked-git", "r");
    fs::create_dir(place.at("by-link")).expect("made");
    place.link("by-link/.git", "../r/.git");
    // An empty `.git` inside a checkout is passed over; a file that points nowhere stops.
    fs::create_dir_all(place.at("r/empty/.git")).expect("made");
    fs::create_dir(place.at("r/broken")).expect("made");
    fs::write(place.at("r/broken/.git"), "gitdir: ../nowhere\n").expect("written");
    fs::create_dir(place.at("r/garbled")).expect("made");
    fs::write(place.at("r/garbled/.git"), "what is this").expect("written");
    place
}

fn repository(place: &Place, path: &str) -> Option<Repository<PathBuf>> {
    let scope: Scope<PathBuf> = place
        .locate(path)
        .map(|bytes| PathBuf::from(std::ffi::OsStr::from_bytes(bytes)));
    scope.repository
}

/// What git says of a directory: the top of its checkout and the common git directory.
fn according_to_git(dir: &Path) -> Option<(PathBuf, PathBuf)> {
    let output = try_git(
        dir,
        &[
            "rev-parse",
            "--path-format=absolute",
            "--show-toplevel",
            "--git-common-dir",
        ],
    );
    let told = String::from_utf8(output.stdout).expect("text");
    let mut lines = told.lines().map(PathBuf::from);
    let both = (lines.next()?, lines.next()?.canonicalize().ok()?);
    output.status.success().then_some(both)
}

/// D11, DSC-8: worktrees, submodules and everything in between, as git has them.
#[test]
fn checkouts_are_found_as_git_finds_them() {
    let place = zoo();
    let directories = [
        "r",
        "r/docs",
        "w",
        "w/docs",
        "r/docs/inside",
        "super",
        "super/sub",
        "w-of-sub",
        "apart",
        "r/docs/nested",
        "bare.git",
        "bare.git/refs",
        "plain/x",
        "fake",
        "linked-git/docs",
        "by-link",
        "r/empty",
        "r/broken",
        "r/garbled",
        ".",
    ];
    let mut repositories = 0;
    for name in directories {
        let ours = repository(&place, name).map(|r| (r.top, r.common));
        assert_eq!(ours, according_to_git(&place.at(name)), "{name}");
        repositories += usize::from(ours.is_some());
    }
    assert_eq!(repositories, 13);
}

/// A checkout ends where another file system begins, for git and for us.
#[test]
fn a_checkout_ends_where_another_file_system_begins() {
    const TEST: &str = "checkouts::repositories::a_checkout_ends_where_another_file_system_begins";
    if let Some(dir) = actors::part() {
        let path = Path::new(&dir);
        let ours = locate(&super::host(), path, Path::new("new")).expect("a scope");
        let both = (ours.repository.is_some(), according_to_git(path).is_some());
        return actors::answer(&format!("{both:?}"));
    }
    let place = zoo();
    let dir = place.at("r/docs");
    let dir = dir.to_str().expect("text");
    let mount = format!(r#"mount -t tmpfs none '{dir}' && exec "$@""#);
    let wrap = ["unshare", "-m", "sh", "-c", &mount, "sh"];
    let probe: Vec<&str> = wrap.iter().copied().chain(["true"]).collect();
    if !actors::is_root() || !actors::can(&probe) {
        return actors::skip(TEST, "needs root and mount namespaces");
    }
    assert_eq!(actors::play(&[], TEST, dir), "(true, true)");
    assert_eq!(actors::play(&wrap, TEST, dir), "(false, false)");
}

/// D11: `.git` of a submodule is a file; the checkout is where the files are.
#[test]
fn a_submodule_is_a_checkout_of_its_own() {
    let place = zoo();
    let sub = repository(&place, "super/sub/new").expect("a repository");
    assert_eq!(sub.top, place.at("super/sub"));
    assert_eq!(sub.common, place.at("super/.git/modules/sub"));
    let outer = repository(&place, "super").expect("a repository");
    let located = place.locate("super/sub/new");
    let its = borrowed(&located).repository.expect("a repository");
    let common = outer.common.as_os_str().as_bytes();
    assert_eq!(
        its.superproject(),
        Some(common),
        "it is recorded whose it is"
    );
    assert_ne!(outer.common, sub.common);
    assert_ne!(outer.inode, sub.inode);
    let whole = place.locate("super");
    assert_eq!(
        meet(&whole, &place.locate("super/sub/new")),
        Some(Level::Tree)
    );
    assert_eq!(
        meet(&place.locate("super/f"), &place.locate("super/sub/new")),
        None
    );
    let side = place.locate("w-of-sub");
    assert_eq!(
        meet(&place.locate("super/sub/f"), &side),
        Some(Level::Repository)
    );
    assert_eq!(meet(&whole, &side), None);
}

/// DSC-8, D07: linked worktrees are different trees and share the rest.
#[test]
fn linked_worktrees_share_a_repository_and_no_files() {
    let place = zoo();
    let (main, linked) = (place.locate("r/docs"), place.locate("w/docs"));
    let (a, b) = (main.repository.as_ref(), linked.repository.as_ref());
    let (a, b) = (a.expect("a repository"), b.expect("a repository"));
    assert_eq!((&a.common, a.inode), (&b.common, b.inode));
    assert!(a.inode.is_some());
    assert_ne!(a.top, b.top);
    assert_eq!(meet(&main, &linked), Some(Level::Repository));
    assert_eq!(
        meet(&main, &place.locate("r/other")),
        None,
        "one tree, other files"
    );
    assert_eq!(
        meet(&main, &place.locate("r/docs/inside/x")),
        Some(Level::Tree)
    );
    assert_eq!(meet(&main, &place.locate("apart/x")), None);
}

/// DSC-9, D12: the repository is that of the path, from whatever checkout it is named.
#[test]
fn the_repository_is_that_of_the_path() {
    let place = zoo();
    let host = super::host();
    let named_from = |base: &str, path: &str| {
        let found = locate(&host, &place.at(base), Path::new(path));
        found.expect("a scope")
    };
    let expected = place.locate("r/docs/new");
    assert_eq!(named_from("w", "../r/docs/new"), expected);
    assert_eq!(
        named_from("super/sub", place.at("r/docs/new").to_str().expect("text")),
        expected
    );
    assert_eq!(named_from("plain", "../linked-git/docs/new"), expected);
}

/// D11: nobody's work is inside a git directory, however it is spelled, and whether it exists or not.
#[test]
fn paths_inside_a_git_directory_are_no_scopes() {
    let place = zoo();
    for (given, git) in [
        ("r/.git", "r/.git"),
        ("r/.git/config", "r/.git"),
        ("super/.git/modules/sub/x", "super/.git"),
        ("super/sub/.git", "super/sub/.git"),
        ("w/.git", "w/.git"),
        ("r/.git/worktrees/w/HEAD", "r/.git"),
        ("plain/new/.git/config", "plain/new/.git"),
        ("linked-git/.git/hooks", "r/.git"),
        ("by-link/.git/hooks", "r/.git"),
        ("fake/.git/x", "fake/.git"),
        ("r/docs/../.git/x", "r/.git"),
    ] {
        let refused = place.try_locate(given).expect_err(given);
        let CheckoutError::InsideGit { git: found, .. } = &refused else {
            panic!("{given}: {refused}");
        };
        assert_eq!(*found, place.at(git), "{given}");
    }
    let elsewhere = place.at("elsewhere");
    fs::rename(place.at("apart.git"), &elsewhere).expect("moved");
    place.link("plain/.git", &elsewhere);
    let refused = place
        .try_locate("plain/.git/config")
        .expect_err("by its name");
    assert!(
        matches!(refused, CheckoutError::InsideGit { .. }),
        "{refused}"
    );

    for fine in [
        "r/.gitignore",
        "r/.github/x",
        "r/.git/../docs",
        "r/git",
        "r/x.git/y",
    ] {
        place.try_locate(fine).expect(fine);
    }
}

/// Every file below a directory, with its bytes and the time of its last change.
fn everything(dir: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("there") {
        let path = entry.expect("there").path();
        let meta = path.symlink_metadata().expect("there");
        let changed = meta.modified().expect("told");
        if meta.is_dir() {
            all.extend(everything(&path));
        }
        all.insert(path.clone(), (fs::read(&path).ok(), changed));
    }
    all
}

/// D09: looking changes nothing, not even the index that `git status` would refresh.
#[test]
fn locating_changes_nothing() {
    let place = zoo();
    let file = fs::File::options()
        .append(true)
        .open(place.at("r/f"))
        .expect("there");
    file.set_modified(SystemTime::UNIX_EPOCH).expect("set");
    let before = everything(&place.root);
    for path in [
        "r",
        "r/f",
        "r/docs/new",
        "w/f",
        "super/sub/f",
        "plain/x",
        "r/broken/x",
    ] {
        place.locate(path);
    }
    assert_eq!(everything(&place.root), before);
    git(&place.at("r"), &["status"]);
    assert_ne!(
        everything(&place.root),
        before,
        "git itself refreshes the index"
    );
}

/// D09: nobody's git fails because somebody looks.
#[test]
fn git_works_on_while_somebody_looks() {
    let place = zoo();
    let done = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let mut looks = 0_u32;
            while !done.load(Ordering::Relaxed) {
                place.locate("r/f");
                looks += 1;
            }
            looks
        });
        for n in 0..100 {
            fs::write(place.at("r/f"), n.to_string()).expect("written");
            let output = try_git(&place.at("r"), &["add", "f"]);
            if !output.status.success() {
                done.store(true, Ordering::Relaxed);
                panic!("{}", String::from_utf8_lossy(&output.stderr));
            }
        }
        done.store(true, Ordering::Relaxed);
        looker.join().expect("no panic")
    });
    assert!(looks > 0);
}

/// What git would not read as a pointer is none, and nothing of it hangs or fails.
#[test]
fn a_git_file_that_points_nowhere_is_no_repository() {
    let place = zoo();
    let contents: [&[u8]; 9] = [
        b"",
        b"gitdir:",
        b"gitdir: ",
        b"gitdir:../r/.git",
        b"gitdir: ../../r/.git\0",
        b"gitdir: /\xff\xfe",
        b"GITDIR: ../../r/.git",
        b"gitdir: ../../plain",
        &[b'x'; 100_000],
    ];
    for content in contents {
        fs::write(place.at("plain/.git"), content).expect("written");
        assert_eq!(
            repository(&place, "plain/x"),
            None,
            "{:?}",
            &content[..content.len().min(40)]
        );
        assert_eq!(according_to_git(&place.at("plain/x")), None, "git agrees");
        fs::remove_file(place.at("plain/.git")).expect("removed");
    }
    for ending in ["", "\n", "\r\n", "\n\n"] {
        fs::write(place.at("plain/.git"), format!("gitdir: ../r/.git{ending}")).expect("written");
        let found = repository(&place, "plain/x").map(|r| (r.top, r.common));
        assert_eq!(found, according_to_git(&place.at("plain/x")), "{ending:?}");
        assert!(found.is_some(), "{ending:?}");
    }
    fs::remove_file(place.at("plain/.git")).expect("removed");
    assert!(actors::can(&[
        "mkfifo",
        place.at("plain/.git").to_str().expect("text")
    ]));
    assert_eq!(repository(&place, "plain/x"), None);
    fs::remove_file(place.at("plain/.git")).expect("removed");
    place.link("plain/.git", ".git");
    assert_eq!(repository(&place, "plain/x"), None);
}
