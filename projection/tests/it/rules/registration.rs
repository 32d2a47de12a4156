//! Registration and generations (REG).

use tenure_core::holder::Answer;

use crate::scene::Scene;

/// REG-1
#[test]
fn an_absent_name_becomes_active_at_generation_one() {
    let scene = Scene::new();
    assert_eq!(scene.run("register api"), "api@1");
    assert_eq!(scene.run("session api"), "active@1 open=0 inbox=0");
}

/// REG-2
#[test]
fn a_retired_name_becomes_active_at_the_next_generation() {
    let scene = Scene::new();
    scene.play("register api \n retire api@1");
    assert_eq!(scene.run("register api"), "api@2");
}

/// REG-3
#[test]
fn an_active_name_is_never_bumped_silently() {
    let scene = Scene::new();
    scene.play("register api key=k1");
    assert_eq!(scene.run("register api key=k1"), "api@1 again");
    assert_eq!(
        scene.run("register api key=k2"),
        "already-active: api is active as api@1; only adopt takes over"
    );
    assert_eq!(scene.frames(), 2, "one grant and one recorded refusal");
}

/// REG-4, REG-5, REG-6
#[test]
fn every_write_path_checks_the_generation() {
    let writes = [
        "accept d1",
        "decline d1",
        "report d1 done",
        "note hello",
        "observe busy",
        "deliver e1",
        "ack e1",
        "send api hello",
        "dispatch other api",
        "cancel d1",
        "fail d1",
    ];
    let scene = Scene::new();
    scene.play("register api \n adopt api as=api@1 \n dispatch item api \n retire api@2 \n register api \n dispatch item2 api");
    let before = scene.run("work") + &scene.run("inbox api");
    for write in writes {
        for (token, code) in [("api@2", "stale-generation"), ("api@4", "never-issued")] {
            let answer = scene.run(&format!("{write} as={token}"));
            assert!(answer.starts_with(code), "{write} as {token}: {answer}");
        }
    }
    scene.play("retire api@3");
    for write in writes {
        let answer = scene.run(&format!("{write} as=api@3"));
        assert!(answer.starts_with("retired"), "{write}: {answer}");
    }
    assert_eq!(scene.run("retire api@3"), "done again", "REG-20");
    let _ = before;
}

/// ADO-2, REG-9
#[test]
fn a_dead_holder_is_adopted_and_a_live_one_is_held() {
    let scene = Scene::new();
    scene.play("register api pid=500");
    assert!(scene.run("adopt api").starts_with("held: "), "alive");
    scene.stage.sees(500, Answer::NoSuchProcess);
    assert_eq!(scene.run("adopt api"), "api@2");
    assert!(
        scene
            .run("note late as=api@1")
            .starts_with("stale-generation")
    );
}
