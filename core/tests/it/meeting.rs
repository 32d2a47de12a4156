//! The table of meetings in `docs/disclosure.md`, and whose a submodule is.

use tenure_core::holder::{BootId, HostId};
use tenure_core::path::{AROUND, Anchor, Inode, Level, Meeting, Repository, Scope, contains, meet};

fn repository(common: &'static str) -> Repository<&'static [u8]> {
    Repository {
        common: common.as_bytes(),
        inode: None,
        top: b"/r",
    }
}

/// D11: a submodule's git directory says whose it is; no other does.
#[test]
fn the_superproject_follows_from_where_the_git_directory_is() {
    for (common, superproject) in [
        ("/s/.git/modules/sub", Some("/s/.git")),
        ("/s/.git/modules/libs/sub", Some("/s/.git")),
        ("/s/.git/worktrees/w/modules/sub", Some("/s/.git")),
        ("/s/.git/modules/a/modules/b", Some("/s/.git/modules/a")),
        ("/s/.git", None),
        ("/s/sub/.git", None),
        ("/modules/s/.git", None),
        ("/s/modules/sub", None),
        ("/s/.git/worktrees/w", None),
    ] {
        let found = repository(common);
        let found = found.superproject().map(String::from_utf8_lossy);
        assert_eq!(found.as_deref(), superproject, "{common}");
    }
}

/// The table of `docs/disclosure.md`: which meetings are certain, and which of the two is deeper.
#[test]
fn a_meeting_is_as_certain_as_what_proves_it() {
    let boot = |n| Some(BootId([n; 16]));
    let inode = |inode, birth| Inode {
        device: 1,
        inode,
        birth,
    };
    let anchor = |depth, number, birth| Anchor {
        inode: inode(number, birth),
        depth,
    };
    let scope = |path: &'static str, boot, anchors: &[Anchor]| Scope {
        path: path.as_bytes(),
        host: HostId([1; 16]),
        boot,
        anchors: anchors.to_vec(),
        repository: None,
    };
    let root = anchor(0, 1, Some(1));
    let tree = |certain, second_is_deeper| {
        Some(Meeting {
            level: Level::Tree,
            certain,
            second_is_deeper,
        })
    };
    let w = |boot, own: Anchor| scope("/w", boot, &[root, own]);
    let old = anchor(1, 5, Some(7));
    // path: in one boot, and while nothing on it was exchanged.
    assert_eq!(meet(&w(boot(1), old), &w(boot(1), old)), tree(true, false));
    let file = scope("/w/f", boot(1), &[root, old]);
    assert_eq!(meet(&w(boot(1), old), &file), tree(true, true));
    assert_eq!(meet(&file, &w(boot(1), old)), tree(true, false));
    assert_eq!(meet(&w(boot(1), old), &w(boot(2), old)), tree(false, false));
    assert_eq!(meet(&w(None, old), &w(None, old)), tree(false, false));
    let exchanged = anchor(1, 6, Some(7));
    assert_eq!(
        meet(&w(boot(1), old), &w(boot(1), exchanged)),
        tree(false, false)
    );
    let reused = anchor(1, 5, Some(8));
    assert_eq!(
        meet(&w(boot(1), old), &w(boot(1), reused)),
        tree(false, false)
    );
    // identity: another path, one directory; certain where the birth is known.
    let alias = |birth| scope("/m/n", boot(1), &[anchor(2, 5, birth)]);
    assert_eq!(meet(&w(boot(1), old), &alias(Some(7))), tree(true, false));
    assert_eq!(meet(&w(boot(1), old), &alias(Some(8))), None);
    let unborn = anchor(1, 5, None);
    assert_eq!(meet(&w(boot(1), unborn), &alias(None)), tree(false, false));
    assert_eq!(meet(&w(boot(2), old), &alias(Some(7))), None);
    // around: one holds the other by way of a mount; only the directory itself does.
    let mounted = |birth| {
        scope(
            "/m",
            boot(1),
            &[anchor(1, 9, Some(1)), anchor(AROUND, 5, birth)],
        )
    };
    assert_eq!(meet(&w(boot(1), old), &mounted(Some(7))), tree(true, true));
    assert_eq!(meet(&mounted(Some(7)), &w(boot(1), old)), tree(true, false));
    assert_eq!(meet(&w(boot(1), unborn), &mounted(None)), tree(false, true));
    let below = scope("/w/x", boot(1), &[root, old]);
    assert_eq!(meet(&below, &mounted(Some(7))), None);
    // strangers.
    let elsewhere = Scope {
        host: HostId([2; 16]),
        ..w(boot(1), old)
    };
    assert_eq!(meet(&w(boot(1), old), &elsewhere), None);
    // What contains a place, and by how many components.
    assert_eq!(contains(&w(boot(1), old), &file), Some(1));
    assert_eq!(contains(&file, &w(boot(1), old)), None);
    assert_eq!(contains(&w(boot(1), old), &mounted(Some(7))), Some(1));
    assert_eq!(contains(&w(boot(1), unborn), &mounted(None)), None);
}
