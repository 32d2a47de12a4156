//! When two write scopes overlap.

use proptest::collection::vec;
use proptest::prelude::*;
use tenure_core::holder::{BootId, HostId};
use tenure_core::path::{
    Anchor, Inode, Level, Repository, Scope, contains, nested, overlap, same_place,
};

const HOST: HostId = HostId([1; 16]);
const BOOT: Option<BootId> = Some(BootId([1; 16]));

fn scope(path: &str) -> Scope<&[u8]> {
    Scope {
        path: path.as_bytes(),
        host: HOST,
        boot: BOOT,
        anchors: Vec::new(),
        repository: None,
    }
}

fn inode(number: u64) -> Inode {
    Inode {
        device: 1,
        inode: number,
        birth: Some(7),
    }
}

fn anchored<'p>(path: &'p str, anchors: &[(u64, u32)]) -> Scope<&'p [u8]> {
    let anchors = anchors.iter().map(|(number, depth)| Anchor {
        inode: inode(*number),
        depth: *depth,
    });
    Scope {
        anchors: anchors.collect(),
        ..scope(path)
    }
}

fn checked_out<'p>(path: &'p str, top: &'p str, common: &'p str) -> Scope<&'p [u8]> {
    Scope {
        repository: Some(Repository {
            common: common.as_bytes(),
            inode: None,
            top: top.as_bytes(),
        }),
        ..scope(path)
    }
}

/// The level, asked both ways round.
fn meet(a: &Scope<&[u8]>, b: &Scope<&[u8]>) -> Option<Level> {
    let there = overlap(a, b, |path| path);
    assert_eq!(there, overlap(b, a, |path| path), "{a:?} {b:?}");
    there
}

/// DSC-2
#[test]
fn one_path_inside_the_other_overlaps_and_a_common_prefix_does_not() {
    let cases = [
        ("/w/a", "/w/a", true),
        ("/w/a", "/w/a/b/c", true),
        ("/w", "/w/a", true),
        ("/", "/w/a", true),
        ("/", "/", true),
        ("/w/a", "/w/a-site", false),
        ("/w/a", "/w/a.txt", false),
        ("/w/a", "/w/ab", false),
        ("/w/a/b", "/w/b/a", false),
        ("/w/a/x", "/w/a/y", false),
        ("/w/A", "/w/a", false),
        ("/a", "/w/a", false),
    ];
    for (a, b, expected) in cases {
        assert_eq!(nested(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
        let level = expected.then_some(Level::Tree);
        assert_eq!(meet(&scope(a), &scope(b)), level, "{a} {b}");
    }
}

/// DSC-8: names are bytes; what is no UTF-8 compares like anything else.
#[test]
fn names_compare_as_bytes() {
    assert!(nested(b"/w/\xff", b"/w/\xff/x"));
    assert!(!nested(b"/w/\xff", b"/w/\xfe"));
    assert!(!nested("/w/\u{e9}".as_bytes(), "/w/e\u{301}".as_bytes()));
}

/// DSC-13, C11
#[test]
fn equal_paths_on_different_hosts_do_not_overlap() {
    let here = anchored("/w/a", &[(1, 0), (2, 1), (3, 2)]);
    let there = Scope {
        host: HostId([2; 16]),
        ..here.clone()
    };
    assert_eq!(meet(&here, &here), Some(Level::Tree));
    assert_eq!(meet(&here, &there), None);
}

/// D16: both ends of a bind mount have the same directory, at different depths of different paths.
#[test]
fn a_directory_with_two_paths_overlaps_with_itself() {
    // `/src` is mounted at `/mnt/deep/dst`.
    let src = anchored("/src", &[(1, 0), (2, 1)]);
    let src_a = anchored("/src/a", &[(1, 0), (2, 1), (3, 2)]);
    let dst = anchored("/mnt/deep/dst", &[(1, 0), (8, 1), (9, 2), (2, 3)]);
    let dst_a = anchored("/mnt/deep/dst/a", &[(1, 0), (8, 1), (9, 2), (2, 3), (3, 4)]);
    let dst_new = anchored("/mnt/deep/dst/new", &[(1, 0), (8, 1), (9, 2), (2, 3)]);
    let src_new = anchored("/src/new/x", &[(1, 0), (2, 1)]);
    assert_eq!(meet(&src_a, &dst_a), Some(Level::Tree));
    assert_eq!(meet(&src, &dst_a), Some(Level::Tree));
    assert_eq!(meet(&src_a, &dst), Some(Level::Tree));
    assert_eq!(
        meet(&src_new, &dst_new),
        Some(Level::Tree),
        "neither exists yet"
    );
    assert_eq!(meet(&src_a, &dst_new), None);
}

/// D16: an identity counts only within one boot, and only with an equal birth.
#[test]
fn an_inode_that_may_be_another_directory_proves_nothing() {
    let src = anchored("/src", &[(2, 1)]);
    let dst = anchored("/dst", &[(2, 1)]);
    assert_eq!(meet(&src, &dst), Some(Level::Tree));

    let earlier = Scope {
        boot: Some(BootId([9; 16])),
        ..src.clone()
    };
    let unknown = Scope {
        boot: None,
        ..src.clone()
    };
    let unknown_too = Scope {
        boot: None,
        ..dst.clone()
    };
    assert_eq!(meet(&earlier, &dst), None);
    assert_eq!(meet(&unknown, &dst), None);
    assert_eq!(meet(&unknown, &unknown_too), None);

    for birth in [Some(8), None] {
        let mut recycled = src.clone();
        recycled.anchors[0].inode.birth = birth;
        assert_eq!(meet(&recycled, &dst), None, "{birth:?}");
    }
    let mut other_device = src.clone();
    other_device.anchors[0].inode.device = 2;
    assert_eq!(meet(&other_device, &dst), None);
}

/// DSC-8, D07: linked worktrees are different trees of one repository.
#[test]
fn worktrees_of_one_repository_meet_at_the_second_level() {
    let main = checked_out("/r/a", "/r", "/r/.git");
    let linked = checked_out("/w2/b", "/w2", "/r/.git");
    let stranger = checked_out("/s/b", "/s", "/s/.git");
    let nowhere = scope("/t/b");
    assert_eq!(meet(&main, &linked), Some(Level::Repository));
    assert_eq!(meet(&main, &stranger), None);
    assert_eq!(meet(&main, &nowhere), None);
    assert_eq!(
        meet(&main, &checked_out("/r/b", "/r", "/r/.git")),
        None,
        "one tree, other files"
    );
    let inside = checked_out("/r/a/w3/c", "/r/a/w3", "/r/.git");
    assert_eq!(
        meet(&main, &inside),
        Some(Level::Tree),
        "a worktree below the scope"
    );
}

/// D16, D07: a repository with two paths is one by its identity, within one boot.
#[test]
fn a_repository_with_two_paths_is_one() {
    let with = |path, top, common, number: Option<u64>| {
        let mut scope = checked_out(path, top, common);
        if let Some(repository) = &mut scope.repository {
            repository.inode = number.map(inode);
        }
        scope
    };
    let main = with("/r/a", "/r", "/r/.git", Some(5));
    let linked = with("/w2/b", "/w2", "/mnt/r/.git", Some(5));
    assert_eq!(meet(&main, &linked), Some(Level::Repository));
    let other = with("/w2/b", "/w2", "/mnt/r/.git", Some(6));
    assert_eq!(meet(&main, &other), None);
    let unread = with("/w2/b", "/w2", "/mnt/r/.git", None);
    assert_eq!(meet(&main, &unread), None);
    let rebooted = Scope {
        boot: Some(BootId([9; 16])),
        ..linked
    };
    assert_eq!(meet(&main, &rebooted), None);
}

fn parts() -> impl Strategy<Value = Vec<String>> {
    // Few names, some of them prefixes of others.
    vec(
        prop::sample::select(vec!["a", "a-site", "b", "ab", "\u{e9}", ".."]),
        0..6,
    )
    .prop_map(|parts| parts.into_iter().map(str::to_owned).collect())
}

fn join(parts: &[String]) -> String {
    format!("/{}", parts.join("/"))
}

/// A small disk: directories have a number of their own, and one of them is mounted a second time at `/mnt`.
/// Numbers follow from the place in the tree, so a directory has one number whatever the path to it.
#[derive(Clone, Debug)]
struct Disk {
    mounted: Vec<String>,
}

impl Disk {
    /// The place in the tree that a path leads to.
    fn place<'p>(&'p self, path: &'p [String]) -> Vec<&'p str> {
        match path.split_first() {
            Some((first, rest)) if first == "mnt" => self
                .mounted
                .iter()
                .chain(rest)
                .map(String::as_str)
                .collect(),
            _ => path.iter().map(String::as_str).collect(),
        }
    }

    /// What a host would record: an anchor for each of the first `exist` directories and the root.
    fn scope<'p>(&self, path: &[String], text: &'p str, exist: usize) -> Scope<&'p [u8]> {
        let number = |depth: usize| {
            let place = self.place(&path[..depth]).join("/");
            place
                .bytes()
                .fold(7_u64, |n, b| n.wrapping_mul(1_000_003) ^ u64::from(b))
        };
        let depths = 0..=exist.min(path.len());
        let anchors: Vec<(u64, u32)> = depths.map(|d| (number(d), d as u32)).collect();
        anchored(text, &anchors)
    }
}

prop_compose! {
    fn two_paths_on_a_disk()(
        mounted in parts(),
        a in parts(),
        b in parts(),
        [a_by_mount, b_by_mount] in any::<[bool; 2]>(),
        exist in 0_usize..8,
    ) -> (Disk, Vec<String>, Vec<String>, usize) {
        let through = |path: Vec<String>, by_mount: bool| if by_mount {
            std::iter::once("mnt".to_owned()).chain(path).collect()
        } else {
            path
        };
        (Disk { mounted }, through(a, a_by_mount), through(b, b_by_mount), exist)
    }
}

/// The scope with more or less known about it.
fn known(scope: Scope<&[u8]>, host: bool, boot: bool, top: u8, common: u8) -> Scope<&[u8]> {
    let words: [&[u8]; 3] = [b"/r", b"/s", b"/t"];
    let word = |n: u8| words.get(usize::from(n % 4)).copied();
    Scope {
        host: HostId([u8::from(host); 16]),
        boot: boot.then_some(BootId([1; 16])),
        repository: word(common).zip(word(top)).map(|(common, top)| Repository {
            common,
            inode: None,
            top,
        }),
        ..scope
    }
}

fn inside<T: PartialEq>(a: &[T], b: &[T]) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, ..ProptestConfig::default() })]

    /// DSC-2: against lists of components.
    #[test]
    fn nesting_is_by_components_and_symmetric(a in parts(), b in parts()) {
        let (x, y) = (join(&a), join(&b));
        prop_assert_eq!(nested(x.as_bytes(), y.as_bytes()), inside(&a, &b));
        prop_assert_eq!(nested(y.as_bytes(), x.as_bytes()), inside(&a, &b));
        prop_assert!(nested(x.as_bytes(), x.as_bytes()));
    }

    /// DSC-2, D16: two paths overlap when the places they lead to do. Found whenever both paths pass through
    /// the directory that is mounted twice; from outside of it, by the text of the path.
    #[test]
    fn scopes_overlap_where_the_places_do((disk, a, b, exist) in two_paths_on_a_disk()) {
        let (x, y) = (join(&a), join(&b));
        let found = meet(&disk.scope(&a, &x, exist), &disk.scope(&b, &y, exist));
        let (place_a, place_b) = (disk.place(&a), disk.place(&b));
        let truth = inside(&place_a, &place_b);
        if found.is_some() {
            prop_assert!(truth, "{place_a:?} {place_b:?}");
        }
        let mounted: Vec<&str> = disk.mounted.iter().map(String::as_str).collect();
        let both_pass = place_a.starts_with(&mounted) && place_b.starts_with(&mounted);
        let exists = exist >= mounted.len().max(1);
        if truth && both_pass && exists {
            prop_assert_eq!(found, Some(Level::Tree));
        }
    }

    /// The order in which two sessions are compared changes nothing, whatever is known of either.
    #[test]
    fn overlap_is_symmetric(
        (disk, a, b, exist) in two_paths_on_a_disk(),
        tops in any::<[u8; 2]>(),
        commons in any::<[u8; 2]>(),
        boots in any::<[bool; 2]>(),
        hosts in any::<[bool; 2]>(),
    ) {
        let (x, y) = (join(&a), join(&b));
        let one = known(disk.scope(&a, &x, exist), hosts[0], boots[0], tops[0], commons[0]);
        let other = known(disk.scope(&b, &y, exist), hosts[1], boots[1], tops[1], commons[1]);
        meet(&one, &other);
    }
}

/// DSC-13, C11: one place has one name on its host, or one identity in one boot; what tells none of these is another.
#[test]
fn one_place_is_told_by_host_and_path_or_by_identity_within_a_boot() {
    let a = anchored("/w/a", &[(1, 0), (2, 1), (3, 2)]);
    let b = anchored("/mnt/a", &[(1, 0), (9, 1), (3, 2)]);
    let on = |scope: &Scope<&'static [u8]>, host, boot| Scope {
        host: HostId([host; 16]),
        boot,
        ..scope.clone()
    };
    let other_boot = Some(BootId([2; 16]));
    let unborn = |mut scope: Scope<&'static [u8]>| {
        for anchor in &mut scope.anchors {
            anchor.inode.birth = None;
        }
        scope
    };
    let cases = [
        ("itself", a.clone(), a.clone(), true),
        (
            "itself in another boot",
            a.clone(),
            on(&a, 1, other_boot),
            true,
        ),
        ("itself elsewhere", a.clone(), on(&a, 2, BOOT), false),
        ("one identity", a.clone(), b.clone(), true),
        ("one identity, elsewhere", a.clone(), on(&b, 2, BOOT), false),
        (
            "one identity, another boot",
            a.clone(),
            on(&b, 1, other_boot),
            false,
        ),
        ("no boot known", on(&a, 1, None), on(&b, 1, None), false),
        (
            "no birth known",
            unborn(a.clone()),
            unborn(b.clone()),
            false,
        ),
        (
            "other identities",
            a.clone(),
            anchored("/mnt/a", &[(8, 2)]),
            false,
        ),
        ("no identities", scope("/w/a"), scope("/w/b"), false),
    ];
    for (what, one, other, expected) in cases {
        assert_eq!(same_place(&one, &other), expected, "{what}");
        assert_eq!(same_place(&other, &one), expected, "{what}");
        let depth = contains(&one, &other);
        assert_eq!(depth, expected.then_some(2), "{what}");
    }
}

/// DSC-13: what is below a place is in it, by name or by the identity of the place among its own.
#[test]
fn what_is_below_a_place_is_in_it() {
    let outer = anchored("/w/a", &[(1, 0), (2, 1), (3, 2)]);
    let named = scope("/w/a/b");
    let mounted = anchored("/mnt/b", &[(1, 0), (3, 1), (4, 2)]);
    assert_eq!(contains(&outer, &named), Some(2));
    assert_eq!(contains(&outer, &mounted), Some(2));
    assert_eq!(contains(&named, &outer), None);
    assert_eq!(contains(&outer, &anchored("/mnt/b", &[(4, 2)])), None);
    for (host, boot) in [(2, BOOT), (1, None), (1, Some(BootId([2; 16])))] {
        let other = Scope {
            host: HostId([host; 16]),
            boot,
            ..mounted.clone()
        };
        assert_eq!(contains(&outer, &other), None, "{host} {boot:?}");
    }
}

/// D11: the superproject of a submodule of a linked worktree is the repository, however its worktrees are called.
#[test]
fn a_superproject_is_found_behind_a_worktree_and_not_behind_what_is_called_so() {
    let of = |common: &'static str| {
        let repository = Repository {
            common: common.as_bytes(),
            inode: None,
            top: &b"/w"[..],
        };
        repository.superproject().map(<[u8]>::to_vec)
    };
    let git = Some(b"/w/.git".to_vec());
    assert_eq!(of("/w/.git/modules/sub"), git);
    assert_eq!(of("/w/.git/worktrees/one/modules/sub"), git);
    let deeper = Some(b"/w/worktrees/x/y/.git".to_vec());
    assert_eq!(of("/w/worktrees/x/y/.git/modules/sub"), deeper);
    assert_eq!(
        of("/w/.git/modules/sub/modules/subsub"),
        Some(b"/w/.git/modules/sub".to_vec())
    );
    assert_eq!(of("/w/.git"), None);
    assert_eq!(of("/w/modules/sub"), None);
}
