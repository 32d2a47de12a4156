//! Reverts, new names, and lineages.

use tenure_core::id::SessionNo;
use tenure_projection::views::{Kinship, Lens};

use super::scene;

/// BRN-19, BRN-16: a revert hides and removes nothing, reverts stack, and a branch at an earlier point is the same before
/// and after.
#[test]
fn a_revert_hides_and_removes_nothing() {
    let scene = scene();
    scene.check(
        "branch api early at=3 => early@1 from api at 3
         revert 3 as=api@1     => done
         history api           => a@2 b@3
         record d as=api@1     => record 3
         record e as=api@1     => record 4
         revert 7 as=api@1     => done
         record f as=api@1     => record 4
         history api           => a@2 b@3 d@7 f@10
         history api all       => a@2 b@3 [c@4] revert@6:3 d@7 [e@8] revert@9:7 f@10
         history api at=5      => a@2 b@3 c@4
         history api at=8      => a@2 b@3 d@7 e@8
         history api at=9      => a@2 b@3 d@7
         branch api late at=3  => late@1 from api at 3
         branch api more at=4  => bad-position: ..
         branch api more at=8  => bad-position: the history of api cannot be cut at position 8: no visible record of it stands there
         revert 8 as=api@1     => bad-position: ..
         revert 0 as=api@1     => done
         history api           =>
         revert 0 as=api@1     => done again
         record g as=api@1     => record 1
         history api           => g@15",
    );
    let hash = |name| scene.session(name).history.hash();
    assert_eq!(hash("early"), hash("late"));
    let frames = scene.frames();
    scene.check("revert 15 as=api@1 => done again \n revert 15 as=api@9 => never-issued: ..");
    assert_eq!(scene.frames(), frames + 1, "only the refusal is new");
}

/// BRN-19: while something runs there is nothing to go back to.
#[test]
fn a_revert_is_refused_while_something_runs() {
    let scene = scene();
    scene.check(
        "record ask as=api@1 opens=run:7 => record 4
         revert 3 as=api@1 => open-obligations: api has 1 open activities, run:7 since position 5; a history is not cut while it runs
         record end as=api@1 closes=run:7 => record 5
         revert 3 as=api@1 => done
         history api       => a@2 b@3",
    );
    scene.check(
        "record q as=api@1 opens=call:1 => record 3 \n record z as=api@1 closes=call:1 => record 4",
    );
    scene.check("revert 9 as=api@1 => bad-position: ..");
}

/// BRN-19, BRN-6: a branch may go back behind its own beginning; its source does not, and the other way round.
#[test]
fn a_branch_reverts_what_it_inherited() {
    let scene = scene();
    scene.check(
        "branch api one    => one@1 from api at 4
         record x as=one@1 => record 4
         revert 2 as=one@1 => done
         record y as=one@1 => record 2
         branch one two    => two@1 from one at 8
         revert 2 as=api@1 => done
         record z as=two@1 => record 3
         history one       => api:a@2 y@8
         history two       => api:a@2 one:y@8 z@11
         history api       => a@2
         history one at=6  => api:a@2 api:b@3 api:c@4 x@6
         history one all   => api:a@2 [api:b@3] [api:c@4] [x@6] revert@7:2 y@8
         branch two tre at=3 => bad-position: ..
         branch one tre at=6 => bad-position: ..
         branch two tre at=8 => tre@1 from two at 8
         branch two fur at=2 => fur@1 from two at 2
         history tre       => api:a@2 one:y@8",
    );
}

/// BRN-22: a rename keeps number, generation, history and holder; the old name leads to it for ever, also in tokens,
/// and is nobody else's.
#[test]
fn a_renamed_session_is_the_same_session() {
    let scene = scene();
    scene.play("register web \n branch api one");
    let before = scene.session("api");
    scene.check(
        "rename api web as=api@1 => name-taken: web is active
         rename api api as=api@1 => same-name: it is called api already
         rename api two as=web@1 => held: api@1 is renamed under its own token only
         rename ops two as=api@1 => unknown-session: ..
         rename api two as=api@2 => never-issued: ..
         rename api two as=api@1 => done
         rename two tre as=api@1 => done
         record d as=api@1       => record 4
         record e as=tre@1       => record 5
         session two             => active@1 open=0 inbox=1
         register api            => already-active: tre is active as tre@1..
         branch web api          => name-taken: api is a name that tre had
         branch two api          => same-name: tre cannot be..
         rename web two as=web@1 => name-taken: two is a name that tre had
         adopt two as=api@1      => tre@2
         retire two@2            => done
         register api            => tre@3
         history one             => tre:a@2 tre:b@3 tre:c@4
         rename tre api as=two@3 => done
         session tre             => active@3 open=0 inbox=0",
    );
    assert_eq!(scene.number("two"), SessionNo(0));
    let after = scene.session("api");
    assert_eq!(after.registered_at, before.registered_at);
    let state = scene.state();
    let names: Vec<_> = after
        .aliases
        .iter()
        .map(|a| state.pool.string(*a))
        .collect();
    assert_eq!(names, ["two", "tre"]);
    assert_eq!(
        scene.another().view(|s| s.find(b"two")).expect("it reads"),
        Some(SessionNo(0))
    );
}

/// BRN-23: ancestors, and the tree of branches.
#[test]
fn ancestry_and_branches_can_be_listed() {
    let scene = scene();
    scene.play(
        "branch api one \n branch one leaf \n branch api two at=3 \n branch leaf twig \n branch one last",
    );
    let state = scene.state();
    let lens = Lens {
        state: &state,
        host: scene.store.host(),
        shelf: &*scene.store,
    };
    let listed = |name: &str| -> Vec<(String, Kinship, usize)> {
        let views = lens.lineage(state.find(name.as_bytes()).expect("it is there"));
        views
            .into_iter()
            .map(|v| (v.session, v.kinship, v.depth))
            .collect()
    };
    let (old, own, new) = (Kinship::Ancestor, Kinship::Itself, Kinship::Branch);
    let row = |name: &str, kinship, depth| (name.to_owned(), kinship, depth);
    assert_eq!(
        listed("api"),
        [
            row("api", own, 0),
            row("one", new, 1),
            row("leaf", new, 2),
            row("twig", new, 3),
            row("last", new, 2),
            row("two", new, 1)
        ]
    );
    assert_eq!(
        listed("leaf"),
        [
            row("api", old, 0),
            row("one", old, 1),
            row("leaf", own, 2),
            row("twig", new, 3)
        ]
    );
}
