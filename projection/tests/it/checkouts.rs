//! Where paths lead: on real directories, links and mounts.

mod repositories;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tenure_core::holder::{BootId, HostId};
use tenure_core::limits::{ANCHORS_MAX, PATH_BYTES_MAX};
use tenure_core::path::{Level, Scope, overlap};
use tenure_projection::checkouts::{CheckoutError, locate};
use tenure_projection::host::Scripted;

use crate::actors;
use crate::scene::Scene;

fn host() -> Scripted {
    Scripted::new(HostId([1; 16]), BootId([1; 16]))
}

/// A directory to work in, by its canonical path.
struct Place {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        Self { _dir: dir, root }
    }

    fn with_directories(names: &[&str]) -> Self {
        let place = Self::new();
        for name in names {
            fs::create_dir_all(place.at(name)).expect("made");
        }
        place
    }

    fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.at(name)).expect("made");
    }

    fn try_locate(&self, path: impl AsRef<Path>) -> Result<Scope<Vec<u8>>, CheckoutError> {
        locate(&host(), &self.root, path.as_ref())
    }

    fn locate(&self, path: impl AsRef<Path>) -> Scope<Vec<u8>> {
        self.try_locate(path).expect("a scope")
    }

    /// The canonical path of `path`, which begins here.
    fn found(&self, path: impl AsRef<Path>) -> PathBuf {
        path_of(&self.locate(path))
    }
}

fn path_of(scope: &Scope<Vec<u8>>) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&scope.path))
}

/// How two scopes meet, asked both ways round.
fn meet(a: &Scope<Vec<u8>>, b: &Scope<Vec<u8>>) -> Option<Level> {
    let (x, y) = (borrowed(a), borrowed(b));
    let level = overlap(&x, &y, |path| path);
    assert_eq!(level, overlap(&y, &x, |path| path));
    level
}

fn borrowed(scope: &Scope<Vec<u8>>) -> Scope<&[u8]> {
    use tenure_core::path::Repository;
    Scope {
        path: &scope.path,
        host: scope.host,
        boot: scope.boot,
        anchors: scope.anchors.clone(),
        repository: scope.repository.as_ref().map(|r| Repository {
            common: r.common.as_slice(),
            inode: r.inode,
            top: r.top.as_slice(),
        }),
    }
}

/// DSC-8: dots, doubled and trailing separators, and bytes that are no text.
#[test]
fn spellings_of_one_path_are_one_path() {
    let place = Place::with_directories(&["a/b"]);
    let odd = OsStr::from_bytes(b"\xff\xfe");
    fs::create_dir(place.at(odd)).expect("made");
    let cases: [(&[u8], &[u8]); 12] = [
        (b"a/b", b"a/b"),
        (b"./a/./b", b"a/b"),
        (b"a//b/", b"a/b"),
        (b"a/b/.", b"a/b"),
        (b"a/../a/b", b"a/b"),
        (b"a/b/..", b"a"),
        (b".", b""),
        (b"a/new/file", b"a/new/file"),
        (b"a/new//file/", b"a/new/file"),
        (b"\xff\xfe", b"\xff\xfe"),
        (b"\xff\xfe/\x80", b"\xff\xfe/\x80"),
        (b"a/b\n\x1b", b"a/b\n\x1b"),
    ];
    for (given, expected) in cases {
        let given = Path::new(OsStr::from_bytes(given));
        let expected = place.at(OsStr::from_bytes(expected));
        let expected = expected.components().collect::<PathBuf>();
        assert_eq!(
            place.found(given).as_os_str(),
            expected.as_os_str(),
            "{given:?}"
        );
        assert_eq!(
            place.found(place.at(given)).as_os_str(),
            expected.as_os_str()
        );
    }
    assert_eq!(path_of(&place.locate("/..")), Path::new("/"));
}

/// D14: a link and what it leads to are one place, also for what does not exist yet.
#[test]
fn a_link_is_where_it_leads() {
    let place = Place::with_directories(&["r/docs"]);
    place.link("link", "r");
    place.link("absolute", place.at("r"));
    place.link("r/up", "../link/docs");
    place.link("chain", "absolute");
    place.link("dangling", "r/later/on");
    fs::write(place.at("r/file"), "").expect("written");
    place.link("to-file", "r/file");
    for (given, expected) in [
        ("link/docs", "r/docs"),
        ("absolute/docs", "r/docs"),
        ("chain/up", "r/docs"),
        ("link/docs/new/x", "r/docs/new/x"),
        ("link/new", "r/new"),
        ("dangling", "r/later/on"),
        ("dangling/x", "r/later/on/x"),
        ("to-file", "r/file"),
        ("link/", "r"),
    ] {
        assert_eq!(place.found(given), place.at(expected), "{given}");
    }
    let both = (place.locate("r/docs"), place.locate("link/docs"));
    assert_eq!(both.0, both.1);
    assert_eq!(meet(&both.0, &both.1), Some(Level::Tree));
    assert_eq!(
        meet(&place.locate("link/docs/new"), &place.locate("r")),
        Some(Level::Tree)
    );
}

#[test]
fn dots_after_a_link_go_where_the_kernel_goes() {
    let place = Place::with_directories(&["r/deep/er", "other"]);
    place.link("link", "r/deep/er");
    fs::write(place.at("r/deep/x"), "").expect("written");
    assert_eq!(place.found("link/../x"), place.at("r/deep/x"));
    assert_eq!(place.found("link/../../new"), place.at("r/new"));
}

/// Below what does not exist there is nothing to follow, and `..` takes back what stands before it.
#[test]
fn a_missing_tail_stands_as_written() {
    let place = Place::with_directories(&["r"]);
    place.link("r/link", "/");
    fs::write(place.at("r/file"), "").expect("written");
    for (given, expected) in [
        ("r/new/a/../b", "r/new/b"),
        ("r/new/..", "r"),
        ("r/new/a/../../x", "r/x"),
        ("r/new/../../x", "x"),
        ("r/new/link", "r/new/link"),
        ("r/file/below", "r/file/below"),
        ("r/file/below/../../x", "r/x"),
    ] {
        assert_eq!(place.found(given), place.at(expected), "{given}");
    }
    assert_eq!(
        place.found("r/new/../link/etc"),
        Path::new("/etc"),
        "followed again from there"
    );
    let below = place.locate("r/new/a");
    assert_eq!(
        below.anchors,
        place.locate("r").anchors,
        "only what exists has an identity"
    );
    assert_eq!(
        place.locate("r/file/x").anchors,
        below.anchors,
        "a file is no directory"
    );
}

#[test]
fn links_that_never_end_are_refused() {
    let place = Place::new();
    place.link("loop", "loop");
    place.link("l0", ".");
    for n in 1..=40 {
        place.link(&format!("l{n}"), format!("l{}", n - 1));
    }
    assert_eq!(
        place.found("l39"),
        place.root,
        "40 links, as the kernel allows"
    );
    assert!(place.at("l39").canonicalize().is_ok());
    for given in ["l40", "loop", "loop/x"] {
        assert!(place.at(given).canonicalize().is_err());
        let refused = place.try_locate(given).expect_err("too many");
        assert!(matches!(refused, CheckoutError::Links { .. }), "{refused}");
    }
}

/// DSC-9: a relative path begins at the base that is given, wherever the process is.
#[test]
fn a_relative_path_begins_at_its_base() {
    let place = Place::with_directories(&["r/a", "other"]);
    place.link("link", "r/a");
    let host = host();
    let found = |base: PathBuf, path: &str| locate(&host, &base, Path::new(path));
    assert_eq!(
        path_of(&found(place.at("r"), "a").expect("a scope")),
        place.at("r/a")
    );
    assert_eq!(
        path_of(&found(place.at("link"), "../x").expect("a scope")),
        place.at("r/x")
    );
    let absolute = place.at("other");
    let elsewhere = locate(&host, Path::new("/no/such/base"), &absolute).expect("a scope");
    assert_eq!(path_of(&elsewhere), absolute, "an absolute path needs none");
}

#[test]
fn a_base_that_is_none_is_named() {
    let place = Place::with_directories(&["r"]);
    fs::write(place.at("file"), "").expect("written");
    let refused = |base: &Path| locate(&host(), base, Path::new("x")).expect_err("refused");
    let missing = refused(&place.at("r/missing"));
    assert!(
        matches!(missing, CheckoutError::BaseMissing { .. }),
        "{missing}"
    );
    assert!(missing.to_string().contains("r/missing"), "{missing}");
    let file = refused(&place.at("file"));
    assert!(
        matches!(file, CheckoutError::BaseNotDirectory { .. }),
        "{file}"
    );
    let relative = refused(Path::new("r"));
    assert!(
        matches!(relative, CheckoutError::BaseRelative { .. }),
        "{relative}"
    );
    let empty = refused(Path::new(""));
    assert!(matches!(empty, CheckoutError::Empty), "{empty}");
}

/// An empty path is no scope, least of all the whole disk.
#[test]
fn what_is_no_path_is_refused() {
    let place = Place::new();
    let empty = place.try_locate("").expect_err("refused");
    assert!(matches!(empty, CheckoutError::Empty), "{empty}");
    let nul = place.try_locate("a\0b").expect_err("refused");
    assert!(matches!(nul, CheckoutError::Nul { .. }), "{nul}");
}

/// DSC-3: who declares no write scope shares no files, on either side.
#[test]
fn who_writes_nowhere_shares_nothing() {
    let accepted = |first: &str, second: &str| {
        let scene = Scene::new();
        scene.play("register a \n register b");
        scene.play(&format!("dispatch one a {first} \n accept d1 as=a@1"));
        scene.play(&format!("dispatch two b {second}"));
        scene.run("accept d2 as=b@1")
    };
    let alone = accepted("", "");
    assert_eq!(alone, "alone");
    let together = accepted("writes=/w/x", "writes=/w/x/y");
    assert_eq!(together, "with a(tree,declared)");
    assert_eq!(accepted("writes=/w/x", ""), alone);
    assert_eq!(accepted("", "writes=/w/x"), alone);
    assert_eq!(accepted("writes=/w/x", "writes=/w/x-site"), alone);
}

#[test]
fn a_path_has_its_longest_length() {
    let place = Place::new();
    let fill = |bytes: usize| {
        let mut path = place.root.join("x").into_os_string().into_encoded_bytes();
        while path.len() < bytes {
            path.extend(if path.len() + 2 == bytes {
                b"yy"
            } else {
                &b"/y"[..]
            });
            path.truncate(bytes);
        }
        if path.ends_with(b"/") {
            let last = path.len() - 1;
            path[last] = b'y';
        }
        PathBuf::from(OsStr::from_bytes(&path))
    };
    let longest = fill(PATH_BYTES_MAX);
    assert_eq!(place.found(&longest), longest);
    let refused = place
        .try_locate(fill(PATH_BYTES_MAX + 1))
        .expect_err("one more");
    assert_eq!(
        refused.to_string(),
        "a path has at most 4096 bytes, this one has 4097"
    );

    // Short as given, too long once the link is resolved.
    fs::create_dir_all(place.at("d".repeat(100))).expect("made");
    place.link("l", "d".repeat(100));
    let given = Path::new("l").join("y/".repeat((PATH_BYTES_MAX - 100) / 2));
    let refused = place.try_locate(&given).expect_err("too long");
    assert!(
        matches!(refused, CheckoutError::TooLong { .. }),
        "{refused}"
    );
}

#[test]
fn only_the_nearest_directories_are_identified() {
    let place = Place::new();
    let above = place.root.components().count();
    let deep: PathBuf = std::iter::repeat_n("d", ANCHORS_MAX).collect();
    fs::create_dir_all(place.at(&deep)).expect("made");
    let scope = place.locate(&deep);
    let depths: Vec<u32> = scope.anchors.iter().map(|anchor| anchor.depth).collect();
    // The root of the disk is no component of the path, and has depth 0.
    let last = u32::try_from(above - 1 + ANCHORS_MAX).expect("small");
    let first = last + 1 - u32::try_from(ANCHORS_MAX).expect("small");
    assert_eq!(depths, (first..=last).collect::<Vec<_>>());

    let shallow = place.locate(".");
    let depths: Vec<u32> = shallow.anchors.iter().map(|anchor| anchor.depth).collect();
    assert_eq!(
        depths,
        (0..u32::try_from(above).expect("small")).collect::<Vec<_>>()
    );
}

/// D16: an identity is what the system says it is, with the birth where there is one.
#[test]
fn an_identity_is_device_inode_and_birth() {
    use std::os::unix::fs::MetadataExt;
    let place = Place::with_directories(&["a"]);
    let identity = place.locate("a/b").anchors.pop().expect("an anchor").inode;
    let meta = place.at("a").metadata().expect("there");
    assert_eq!((identity.device, identity.inode), (meta.dev(), meta.ino()));
    let born = meta.created().ok().map(|time| {
        let since = time
            .duration_since(std::time::UNIX_EPOCH)
            .expect("after 1970");
        i64::try_from(since.as_nanos()).expect("this century")
    });
    assert_eq!(identity.birth, born);
}

/// A directory that was removed and made again is another one, be its inode the same.
#[test]
fn a_directory_made_again_is_another() {
    let place = Place::with_directories(&["a"]);
    let first = place.locate("a");
    assert_eq!(place.locate("a"), first);
    fs::remove_dir(place.at("a")).expect("removed");
    fs::create_dir(place.at("a")).expect("made");
    let second = place.locate("a");
    assert_eq!(second.path, first.path);
    assert_ne!(second.anchors.last(), first.anchors.last());
    let all_but_last =
        |scope: &Scope<Vec<u8>>| scope.anchors.split_last().map(|(_, rest)| rest.to_vec());
    assert_eq!(all_but_last(&second), all_but_last(&first));
}

/// DSC-13, C11
#[test]
fn a_scope_is_of_its_host_and_boot() {
    let place = Place::with_directories(&["a"]);
    let there = Scripted::new(HostId([2; 16]), BootId([1; 16]));
    let here = place.locate("a");
    let there = locate(&there, &place.root, Path::new("a")).expect("a scope");
    assert_eq!(
        (here.host, here.boot),
        (HostId([1; 16]), Some(BootId([1; 16])))
    );
    assert_eq!(here.path, there.path);
    assert_eq!(here.anchors, there.anchors);
    assert_eq!(meet(&here, &there), None);
}

/// DSC-12: where we may not look, that is the answer.
#[test]
fn a_directory_that_is_closed_to_us_is_said_to_be() {
    const TEST: &str = "checkouts::a_directory_that_is_closed_to_us_is_said_to_be";
    let try_it = |path: &Path| {
        let refused = locate(&host(), Path::new("/"), path).expect_err("closed");
        assert!(
            matches!(refused, CheckoutError::Unreadable { .. }),
            "{refused}"
        );
        refused.to_string()
    };
    if let Some(path) = actors::part() {
        return actors::answer(&try_it(Path::new(&path)));
    }
    let place = Place::with_directories(&["closed/a"]);
    actors::open_to_all(&place.root);
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(place.at("closed"), closed).expect("set");
    let path = place.at("closed/a/b");
    let said = if !actors::is_root() {
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        fs::set_permissions(place.at("closed"), closed).expect("set");
        let said = try_it(&path);
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(place.at("closed"), open).expect("set");
        said
    } else if actors::can(&["setpriv", "--reuid=65534", "true"]) {
        actors::play_as_nobody(&[], TEST, path.to_str().expect("text"))
    } else {
        return actors::skip(TEST, "needs setpriv to be another user");
    };
    assert_eq!(said, format!("cannot look at {:?}", place.at("closed/a")));
}

/// D16, DSC-8: a bind mount gives a directory a second path without a link, and other directories that hold it.
#[test]
fn both_ends_of_a_bind_mount_overlap() {
    const TEST: &str = "checkouts::both_ends_of_a_bind_mount_overlap";
    if let Some(root) = actors::part() {
        let scope =
            |path: &str| locate(&host(), Path::new(&root), Path::new(path)).expect("a scope");
        let pairs = [
            ("src/a", "far/dst/a"),
            ("src", "far/dst/sub"),
            ("src/new/x", "far/dst/new"),
            ("src/a", "far/dst"),
            ("src/a", "far/dst/b"),
            ("src/a", "far"),
            ("src/a", "other/a"),
            // A directory inside a scope, mounted elsewhere, and what holds the place it is mounted at.
            ("src", "near/inner/x"),
            ("src/deep", "near/inner"),
            ("src/deep/er", "near/inner/new"),
            ("src/deep/er/x", "near"),
            ("src/a", "near/inner"),
            ("src/deep/o", "near/inner/x"),
        ];
        let met = pairs.map(|(a, b)| meet(&scope(a), &scope(b)).map_or("-", Level::as_str));
        return actors::answer(&met.join(" "));
    }
    let place = Place::with_directories(&[
        "src/a",
        "src/sub",
        "src/deep/er",
        "src/deep/o",
        "far/dst",
        "other/a",
        "near/inner",
    ]);
    let root = place.root.to_str().expect("text");
    let bind = format!(
        r#"cd '{root}' && mount --bind src far/dst && mount --bind src/deep/er near/inner && exec "$@""#
    );
    let wrap = ["unshare", "-m", "sh", "-c", &bind, "sh"];
    let probe: Vec<&str> = wrap.iter().copied().chain(["true"]).collect();
    if !actors::is_root() || !actors::can(&probe) {
        return actors::skip(TEST, "needs root and mount namespaces");
    }
    let met = actors::play(&wrap, TEST, root);
    assert_eq!(met, "tree tree tree tree - tree - tree tree tree tree - -");
    // Without the mounts, directories that have nothing in common.
    let apart = ["-"; 13].join(" ");
    assert_eq!(actors::play(&[], TEST, root), apart);
}

#[derive(Clone, Debug)]
enum Made {
    Directory,
    File,
    Link(String),
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c"])
}

fn relative() -> impl Strategy<Value = String> {
    let word = prop_oneof![4 => name(), 1 => Just(".."), 1 => Just(".")];
    prop::collection::vec(word, 1..6).prop_map(|words| words.join("/"))
}

fn disk() -> impl Strategy<Value = Vec<(String, Made)>> {
    let place = prop::collection::vec(name(), 1..4).prop_map(|words| words.join("/"));
    let made = prop_oneof![
        3 => Just(Made::Directory),
        1 => Just(Made::File),
        3 => relative().prop_map(Made::Link),
    ];
    prop::collection::vec((place, made), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// D14: whatever exists is found where the kernel finds it, and located again it is the same.
    #[test]
    fn what_exists_is_found_where_the_kernel_finds_it(disk in disk(), paths in prop::collection::vec(relative(), 1..8)) {
        let outer = Place::with_directories(&["x/y/z"]);
        // Three levels down, so that `..` does not leave the test's directory too soon.
        let root = outer.at("x/y/z");
        for (at, made) in disk {
            // Several of these ask for one place, or for one below a file: the first wins.
            let _ = match made {
                Made::Directory => fs::create_dir_all(root.join(at)),
                Made::File => fs::write(root.join(at), ""),
                Made::Link(target) => symlink(target, root.join(at)),
            };
        }
        for path in paths {
            let found = locate(&host(), &root, Path::new(&path));
            if let Ok(real) = root.join(&path).canonicalize() {
                let found = found.expect("it exists");
                prop_assert_eq!(path_of(&found), real, "{}", path);
                let again = locate(&host(), Path::new("/"), &path_of(&found)).expect("a scope");
                prop_assert_eq!(again, found);
            } else if let Ok(found) = found {
                let again = locate(&host(), Path::new("/"), &path_of(&found)).expect("a scope");
                prop_assert_eq!(path_of(&again), path_of(&found), "stable: {}", path);
            }
        }
    }
}
