//! The table of `docs/trees.md`: every standing, asker and command, each tried in a scene of its own.

use tenure_core::holder::Answer;
use tenure_core::refusal::Code;
use tenure_core::state::TreeStanding;

use crate::scene::Scene;

const PAGE: &str = include_str!("../../../../../docs/trees.md");
const HOLDER: u32 = 500;

/// A tree in a standing, with what each asker presents.
struct Setting {
    scene: Scene,
    /// A current token of the tree; of the root, where it is to be retired.
    owner: Option<String>,
    /// The epoch of the tree.
    epoch: u64,
    /// The session that is not adopted yet.
    target: &'static str,
    /// A token, and an epoch, that have lapsed.
    former: (String, u64),
}

/// Root `main`, children `one` and `two`, held by process 500.
fn family(scene: &Scene) {
    scene.play(
        "register main pid=500
         register one parent=main@1 pid=501
         register two parent=one@1 pid=502",
    );
}

fn setting(standing: &str, command: &str) -> Setting {
    let scene = Scene::new();
    let (owner, target, former) = match standing {
        "unowned" => {
            family(&scene);
            scene.play("release main as=main@1");
            (None, "two", ("one@1", 1))
        }
        "pending-publish" => {
            scene.play(
                "register main pid=500
                 retire main@1
                 reserve main pid=500
                 register two parent=main@2 pid=502",
            );
            (Some("main@2"), "two", ("main@1", 1))
        }
        "adopting" => {
            family(&scene);
            scene.play("claim one as=one@1 pid=500");
            (None, "two", ("one@1", 1))
        }
        "owned" => {
            family(&scene);
            scene.play("claim one as=one@1 pid=500 \n adopt main epoch=2 pid=500");
            (Some("main@2"), "two", ("main@1", 1))
        }
        other => panic!("no standing is called {other}"),
    };
    // Only a retired name can be registered again under a token of an earlier life.
    let former = match (standing, command) {
        ("owned" | "pending-publish", "retire-root") => ("main@1", former.1),
        ("unowned" | "adopting", "retire-root") => ("main@1", former.1),
        _ => former,
    };
    let epoch = scene.session("main").tree.epoch.0;
    Setting {
        scene,
        owner: owner.map(str::to_owned),
        epoch,
        target,
        former: (former.0.to_owned(), former.1),
    }
}

/// Whether a command is asked for under an epoch, by whoever has one.
fn takes_epoch(command: &str) -> bool {
    matches!(
        command,
        "publish" | "adopt-claimed" | "rollback" | "recover" | "release"
    )
}

/// What a command is in the words of the scene, without what is presented.
fn words(command: &str, target: &str) -> String {
    match command {
        "write" => "note text".into(),
        "register-child" => "register three pid=503".into(),
        "publish" => "publish main".into(),
        "claim" => format!("claim {target} pid=600"),
        "adopt" => format!("adopt {target} pid=600"),
        "branch-in-tree" => format!("branch {target} new in-tree pid=600"),
        "adopt-tree" => format!("adopt {target} tree pid=600"),
        "adopt-claimed" => format!("adopt {target} pid=500"),
        "rollback" => "rollback main".into(),
        "recover" => format!("recover {target} text"),
        "release" => "release main".into(),
        "release-dead" => format!("release-dead {target}"),
        "register-root" => "register main pid=600".into(),
        "reserve-root" => "reserve main pid=600".into(),
        "retire-root" => "retire main".into(),
        other => panic!("no command is called {other}"),
    }
}

/// The line of an asker; `None` where there is none.
fn line(at: &Setting, asker: &str, command: &str) -> String {
    let mut line = words(command, at.target);
    let token = match asker {
        "owner" => at.owner.clone(),
        "former" if takes_epoch(command) && !matches!(command, "publish" | "release") => None,
        "former" => Some(at.former.0.clone()),
        _ => None,
    };
    let epoch = match asker {
        "claimer" => Some(at.epoch),
        "former" if token.is_none() => Some(at.former.1),
        _ => None,
    };
    if let Some(epoch) = epoch {
        line += &format!(" epoch={epoch}");
    }
    match (command, token) {
        ("retire-root", Some(token)) => return format!("retire {token}"),
        ("register-child", Some(token)) => line += &format!(" parent={token}"),
        ("register-child", None) => line += " parent=none",
        (_, Some(token)) => line += &format!(" as={token}"),
        (_, None) => {}
    }
    if asker == "operator" {
        line += " force=why";
    }
    line
}

fn outcome(at: &Setting, asker: &str, command: &str) -> String {
    let answer = match asker {
        "finder" => Answer::NoSuchProcess,
        _ => Answer::Exists {
            start: Some(1000),
            pidfs: None,
        },
    };
    at.scene.stage.sees(HOLDER, answer);
    let before = at.scene.session("main").tree.standing;
    let said = at.scene.run(&line(at, asker, command));
    let code = said.split_once(": ").map(|(code, _)| code);
    if let Some(code) = code.filter(|c| Code::ALL.iter().any(|known| known.as_str() == *c)) {
        return code.to_owned();
    }
    assert!(code.is_none(), "{said}");
    if said.ends_with(" again") {
        return "again".into();
    }
    let after = at.scene.session("main").tree.standing;
    if before == after && same_by_nature(command) {
        "done".into()
    } else {
        after.as_str().into()
    }
}

/// Commands that leave a tree as it stands, whoever gives them.
fn same_by_nature(command: &str) -> bool {
    matches!(command, "write" | "register-child" | "recover")
}

fn rows() -> Vec<Vec<&'static str>> {
    let table = PAGE
        .split("<!-- the table of transitions")
        .nth(1)
        .expect("it begins");
    let table = table
        .split("<!-- end of the table")
        .next()
        .expect("it ends");
    let lines = table.lines().filter(|line| line.starts_with('|'));
    lines
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// TRE-3, TRE-1, TRE-2, TRE-4, TRE-5, TRE-6, TRE-9, TRE-10, TRE-13, TRE-17, ADO-3, ADO-4, ADO-5, ADO-10, ADO-11, LIV-13:
/// each asker in each standing is answered as the page says, and a refused one changes nothing.
#[test]
fn every_standing_asker_and_command_is_answered_as_the_page_says() {
    let rows = rows();
    let askers = &rows[0][2..];
    let (mut tried, mut wrong) = (0, Vec::new());
    for row in &rows[2..] {
        let (standing, command) = (row[0], row[1]);
        for (asker, expected) in askers.iter().zip(&row[2..]) {
            if *expected == "-" {
                continue;
            }
            let at = setting(standing, command);
            assert_eq!(at.scene.session("main").tree.standing.as_str(), standing);
            let before = at.scene.state();
            let found = outcome(&at, asker, command);
            // An adopt in a reserved tree grants, and the tree stands as it did.
            let found = match *expected {
                "done" if found == standing => "done".to_owned(),
                _ => found,
            };
            if found != *expected {
                let line = line(&at, asker, command);
                wrong.push(format!(
                    "{standing} {command} {asker}: {expected}, not {found} ({line})"
                ));
            }
            if Code::ALL.iter().any(|code| code.as_str() == *expected) || *expected == "again" {
                assert_eq!(at.scene.state().sessions.len(), before.sessions.len());
                for (old, new) in before.sessions.iter().zip(&at.scene.state().sessions) {
                    assert_eq!((old.generation, &old.tree), (new.generation, &new.tree));
                }
            }
            tried += 1;
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    let standings = TreeStanding::ALL.len();
    assert_eq!(
        rows.len() - 2,
        standings * 15,
        "every command in every standing"
    );
    assert!(tried > 200, "{tried}");
}
