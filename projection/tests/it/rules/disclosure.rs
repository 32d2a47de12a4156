//! Shared checkouts: both sides are told, and nobody is refused (DSC).

use std::path::Path;
use std::process::Command;

use tenure_core::disclosure::{INSTRUCTION_REPOSITORY, INSTRUCTION_TREE};
use tenure_core::holder::Answer;
use tenure_core::path::Level;
use tenure_projection::store::Answer as Said;
use tenure_projection::views::Lens;

use crate::scene::Scene;

/// DSC-1: who is at work there, with engine, actor, status, scopes, items and titles.
#[test]
fn acceptance_lists_who_else_is_at_work_there() {
    let scene = Scene::new();
    scene.play(
        "register web engine=codex \n register api \n register idle
         dispatch shell web writes=/w/src,/w/docs title=Shell \n dispatch tests web writes=/w/tests
         dispatch other web writes=/v
         accept d1 as=web@1 \n accept d2 as=web@1 \n accept d3 as=web@1
         observe drawing as=web@1 \n dispatch mine api writes=/w",
    );
    let done = scene.done("accept d4 as=api@1");
    let Said::Accepted {
        shared,
        instruction,
        ..
    } = done.answer
    else {
        panic!("it accepts");
    };
    assert_eq!(instruction, Some(INSTRUCTION_TREE));
    let state = scene.state();
    let lens = Lens {
        state: &state,
        host: scene.store.host(),
        shelf: &*scene.store,
    };
    let [entry] = &shared[..] else {
        panic!("one session: {shared:?}");
    };
    let view = lens.shared(entry);
    let holder = view.holder.as_ref().expect("it is held");
    assert_eq!(
        (view.session.as_str(), holder.engine.as_deref()),
        ("web", Some("codex"))
    );
    assert_eq!(
        (holder.actor.as_str(), view.status.as_str()),
        ("tester", "drawing")
    );
    assert_eq!(view.writes, ["/w/src", "/w/docs", "/w/tests"]);
    assert_eq!(view.items, ["shell", "tests"]);
    assert_eq!(view.titles, [Some("Shell".to_owned()), None]);
    assert_eq!(view.level, Level::Tree);
}

/// DSC-2
#[test]
fn scopes_meet_when_one_is_inside_the_other_by_components() {
    for (theirs, mine, meets) in [
        ("/w/a", "/w/a", true),
        ("/w/a", "/w/a/b/c", true),
        ("/w/a/b/c", "/w/a", true),
        ("/w/a", "/w/a/", true),
        ("/w/a", "/w/x/../a", true),
        ("/w/a", "/", true),
        ("/w/a", "/w/a-site", false),
        ("/w/a-site", "/w/a", false),
        ("/w/a", "/w/b", false),
        ("/w/a", "/w/A", false),
        ("/w/a,/v", "/x,/v/deep", true),
    ] {
        let scene = Scene::new();
        scene.play("register web \n register api");
        scene.play(&format!(
            "dispatch one web writes={theirs} \n accept d1 as=web@1"
        ));
        scene.play(&format!("dispatch two api writes={mine}"));
        let expected = if meets {
            "with web(tree,declared)"
        } else {
            "alone"
        };
        assert_eq!(
            scene.run("accept d2 as=api@1"),
            expected,
            "{theirs} and {mine}"
        );
    }
}

/// DSC-3, DSC-5: who writes nowhere meets nobody, and nothing is added for who is alone.
#[test]
fn an_empty_scope_meets_nobody() {
    let scene = Scene::new();
    scene.check(
        "register web                 => web@1
         register api                 => api@1
         dispatch one web writes=/w   => d1 e1
         accept d1 as=web@1           => alone
         dispatch two api             => d2 e2
         accept d2 as=api@1           => alone
         dispatch tre api writes=/w/x => d3 e3
         accept d3 as=api@1           => with web(tree,declared)
         inbox web                    => e1 work pending@1; e4 notice pending@1 newcomer",
    );
    let Said::Accepted {
        instruction,
        shared,
        ..
    } = scene.done("accept d2 as=api@1").answer
    else {
        panic!("it accepts");
    };
    assert_eq!((instruction, shared.len()), (None, 0));
}

/// DSC-4: a session is not shown to itself; whoever held it before and may still be writing is.
#[test]
fn a_session_is_not_shown_to_itself_but_its_former_holders_are() {
    let scene = Scene::new();
    scene.check(
        "register api pid=500         => api@1
         register web                 => web@1
         dispatch one api writes=/w   => d1 e1
         dispatch two api writes=/w/x => d2 e2
         accept d1 as=api@1           => alone
         accept d2 as=api@1           => alone
         adopt api force=stuck pid=501 => api@2 former@1
         dispatch tre api writes=/w/y => d3 e3
         accept d3 as=api@2           => with api@1(tree,declared)
         log 9                        => accepted joined
         dispatch for web writes=/w   => d4 e4
         accept d4 as=web@1           => with api@1(tree,declared) api(tree,declared)
         dispatch fiv api writes=/v   => d5 e6
         accept d5 as=api@2           => alone
         shared web /v                => api(tree,declared)
         shared - /w/x                => api@1(tree,declared) api(tree,declared) web(tree,declared)",
    );
    // Work that ends, and even a new start elsewhere, says nothing about what the old process still writes.
    scene.check(
        "retire api@2         => done
         register api checkout=/v => api@3 former@1
         shared web /w/x      => api@1(tree,declared)
         shared web /v        => api(tree,present)",
    );
    scene.stage.sees(500, Answer::NoSuchProcess);
    scene.check("shared web /w/x => \n dispatch six api writes=/w/x => d6 e7");
    scene.check("accept d6 as=api@3 => with web(tree,declared)");
}

/// DSC-7: what has ended, what is only queued, and sessions that were given back are not listed.
#[test]
fn only_what_is_at_work_is_listed() {
    let scene = Scene::new();
    scene.play("register api \n register web");
    for (n, end) in [
        "report dN done as=web@1",
        "report dN failed as=web@1",
        "report dN blocked as=web@1",
        "cancel dN",
    ]
    .iter()
    .enumerate()
    {
        let dispatch = n + 1;
        scene.play(&format!(
            "dispatch i{n} web writes=/w \n accept d{dispatch} as=web@1"
        ));
        scene.check("shared api /w => web(tree,declared)");
        scene.play(&end.replace("dN", &format!("d{dispatch}")));
        scene.check("shared api /w =>");
    }
    scene.check(
        "dispatch a web writes=/w   => d5 e5
         shared api /w              =>
         decline d5 as=web@1        => done
         shared api /w              =>
         dispatch b web writes=/w   => d6 e6
         accept d6 as=web@1         => alone
         observe busy as=web@1 wrote=/w/x => done
         retire web@1               => done
         shared api /w              =>
         register web               => web@2
         shared api /w              =>",
    );
}

/// DSC-10: asked again, the list is that of now, and whoever works hears of newcomers.
#[test]
fn asking_again_gives_the_list_of_now() {
    let scene = Scene::new();
    scene.check(
        "register api                 => api@1
         register web                 => web@1
         dispatch one api writes=/w   => d1 e1
         accept d1 as=api@1           => alone
         shared api /w                =>
         dispatch two web writes=/w/s => d2 e2
         accept d2 as=web@1           => with api(tree,declared)
         shared api /w                => web(tree,declared)
         accept d1 as=api@1           => with web(tree,declared) again
         inbox api                    => e1 work pending@1; e3 notice pending@1 newcomer
         report d2 done as=web@1      => done
         shared api /w                =>
         observe busy as=web@1 wrote=/w/t => done
         shared api /w                => web(tree,observed)
         shared web /w                => api(tree,declared)
         shared nobody /w             => api(tree,declared) web(tree,observed)",
    );
}

/// A session without a dispatch is where it said it works, until it has one; where it was seen to write is the
/// stronger word.
#[test]
fn a_session_without_work_is_in_its_checkout() {
    let scene = Scene::new();
    scene.check(
        "register api checkout=/w     => api@1
         register web                 => web@1
         shared web /w/x              => api(tree,present)
         observe busy as=api@1 wrote=/w/src/a => done
         shared web /w                => api(tree,observed)
         shared web /w/docs           => api(tree,present)
         dispatch one api writes=/w/src => d1 e1
         accept d1 as=api@1           => alone
         shared web /w/docs           =>
         shared web /w/src/a          => api(tree,declared)
         report d1 done as=api@1      => done
         shared web /w/docs           => api(tree,present)
         adopt api as=api@1           => api@2
         shared web /w/src            => api(tree,observed)
         retire api@2                 => done
         register api                 => api@3
         shared web /w                =>",
    );
}

/// DSC-13: equal paths of different hosts are different files.
#[test]
fn equal_paths_on_different_hosts_are_strangers() {
    let scene = Scene::new();
    scene.play("register api \n register web");
    let there = scene.elsewhere(2);
    scene.check_on(
        &there,
        "dispatch one web writes=/w => d1 e1 \n accept d1 as=web@1 => alone",
    );
    scene.check(
        "dispatch two api writes=/w => d2 e2
         accept d2 as=api@1         => alone
         shared - /w                => api(tree,declared)",
    );
    scene.check_on(&there, "shared - /w => web(tree,declared)");
}

fn git(dir: &Path, args: &[&str]) {
    let settings = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let mut git = Command::new("git");
    let output = git.args(settings).args(args).current_dir(dir).output();
    let output = output.expect("git runs");
    assert!(output.status.success(), "{args:?}: {output:?}");
}

/// DSC-5, DSC-8: in another worktree of the repository the short instruction is enough; in the same one the full.
#[test]
fn another_worktree_gets_the_short_instruction() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("there");
    let main = root.join("main");
    std::fs::create_dir(&main).expect("made");
    git(&main, &["init", "-q"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&main, &["worktree", "add", "-q", "../side"]);
    let scene = Scene::new();
    let here = root.display();
    scene.play(&format!(
        "register api \n register web \n register ops
         dispatch one api writes={here}/main/src \n accept d1 as=api@1
         dispatch two web writes={here}/side \n dispatch tre ops writes={here}/main,{here}/side"
    ));
    for (line, expected, said) in [
        (
            "accept d2 as=web@1",
            "with api(repository,declared)",
            INSTRUCTION_REPOSITORY,
        ),
        (
            "accept d3 as=ops@1",
            "with api(tree,declared) web(tree,declared)",
            INSTRUCTION_TREE,
        ),
    ] {
        assert_eq!(scene.run(line), expected);
        let Said::Accepted { instruction, .. } = scene.done(line).answer else {
            panic!("it accepts");
        };
        assert_eq!(instruction, Some(said));
    }
    scene.check("inbox api => e1 work pending@1; e4 notice pending@1 newcomer; e5 notice pending@1 newcomer");
}
