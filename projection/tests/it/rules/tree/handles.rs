//! Trees and sessions as a runtime holds them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tenure_core::event::Event;
use tenure_core::id::Name;
use tenure_core::refusal::Code;
use tenure_projection::call::Verb;
use tenure_projection::error::Failure;
use tenure_projection::session::Session;
use tenure_projection::tree::Tree;

use crate::scene::Scene;

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn note() -> Verb {
    Verb::Note {
        body: b"text".to_vec(),
        on: None,
    }
}

fn code<T: std::fmt::Debug>(answer: Result<T, Failure>) -> Code {
    match answer {
        Err(Failure::Refused(refusal)) => refusal.code,
        other => panic!("it was not refused: {other:?}"),
    }
}

/// A tree of a root and twenty children, as one runtime holds it.
fn runtime(scene: &Scene) -> Vec<Session> {
    let root = Session::register(&scene.store, &name("root")).expect("the name is free");
    let mut all = vec![root];
    for n in 0..20 {
        let parent: &Session = &all[n / 2];
        let child = parent.delegate(&name(&format!("child{n}")));
        all.push(child.expect("the tree is ours"));
    }
    all
}

/// TRE-7, E08: when a tree is claimed elsewhere, every handle that was kept of every session in it is read-only at
/// once: its next write is refused, and the ones behind that without asking the store.
#[test]
fn every_retained_handle_is_read_only_at_once_after_a_claim() {
    let scene = Scene::new();
    let handles = runtime(&scene);
    for handle in &handles {
        handle.call(note()).expect("it is ours");
    }
    let taken = Tree::claim(&scene.another(), &name("child7"), Some("moved"));
    let taken = taken.expect("by force");
    for handle in &handles {
        assert!(
            !handle.is_current().expect("it reads"),
            "{}",
            handle.token()
        );
        assert_eq!(
            code(handle.call(note())),
            Code::StaleGeneration,
            "{}",
            handle.token()
        );
        assert!(handle.lost().is_some());
    }
    let frames = scene.frames();
    for handle in &handles {
        let retained = handle.clone();
        assert_eq!(code(retained.call(note())), Code::StaleGeneration);
        assert_eq!(
            code(retained.delegate(&name("late"))),
            Code::StaleGeneration
        );
        assert_eq!(code(retained.release(None)), Code::StaleGeneration);
    }
    assert_eq!(scene.frames(), frames, "nothing asks the store any more");
    let session = taken.adopt(&name("child7")).expect("it is the claimer's");
    session.call(note()).expect("and writable");
}

/// TRE-7, TRE-12, LIV-15: whoever gives a tree back has no writable handle left of it, wherever it was kept, and without
/// a question to the store.
#[test]
fn every_retained_handle_is_read_only_at_once_after_a_release() {
    let scene = Scene::new();
    let handles = runtime(&scene);
    handles[9].release(Some("done")).expect("it is ours");
    let frames = scene.frames();
    for handle in &handles {
        let lost = handle.lost().expect("it is known");
        assert_eq!(lost.code, Code::StaleGeneration);
        assert_eq!(code(handle.call(note())), Code::StaleGeneration);
        assert_eq!(code(handle.clone().retire()), Code::StaleGeneration);
    }
    assert_eq!(scene.frames(), frames);
    // Through the tree's own handle it is the same.
    let tree = Tree::claim(&scene.store, &name("root"), None).expect("nobody holds it");
    let root = tree.adopt(&name("root")).expect("it is ours");
    let child = root
        .adopt_in_tree(&name("child3"))
        .expect("the tree is ours");
    tree.release(None).expect("it is ours");
    let frames = scene.frames();
    for handle in [&root, &child] {
        assert_eq!(code(handle.call(note())), Code::StaleGeneration);
    }
    assert_eq!(code(tree.adopt(&name("child4"))), Code::StaleGeneration);
    assert_eq!(
        code(tree.recover(&name("child4"), b"x".to_vec())),
        Code::StaleGeneration
    );
    assert_eq!(scene.frames(), frames);
}

/// ADO-6, ADO-10, TRE-17: one adoption at a time: a second handle in the same process claims nothing; a rollback gives up
/// only a claim under which nothing was adopted.
#[test]
fn a_second_handle_in_one_process_claims_nothing() {
    let scene = Scene::new();
    let handles = runtime(&scene);
    handles[0].release(None).expect("it is ours");
    let tree = Tree::claim(&scene.store, &name("child1"), None).expect("nobody holds it");
    assert_eq!(
        code(Tree::claim(&scene.store, &name("child2"), None)),
        Code::Held
    );
    assert_eq!(
        code(Session::adopt(&scene.store, &name("child2"), None)),
        Code::Held
    );
    let one = tree.adopt(&name("child1")).expect("it is ours");
    assert_eq!(
        code(tree.adopt(&name("child1"))),
        Code::AlreadyActive,
        "ADO-11"
    );
    assert_eq!(code(tree.rollback()), Code::NotPending);
    let two = tree.clone().adopt(&name("child2")).expect("it is ours");
    for handle in [&one, &two] {
        handle
            .call(note())
            .expect("a rollback that was refused took nothing");
    }
    let other = Tree::claim(&scene.another(), &name("child3"), Some("mine now")).expect("by force");
    other.rollback().expect("nothing was adopted under it");
    assert_eq!(
        code(two.call(note())),
        Code::StaleGeneration,
        "an epoch that was spent stays spent"
    );
    let free = Tree::claim(&scene.store, &name("child3"), None);
    free.expect("another process can adopt at once");
}

/// TRE-8, REG-19: a reservation that is dropped unpublished leaves a free name; one that is published stays.
#[test]
fn a_reservation_is_published_or_gone() {
    let scene = Scene::new();
    let (tree, root) = Tree::reserve(&scene.store, &name("import")).expect("the name is free");
    let child = root
        .delegate(&name("import-part"))
        .expect("children may join");
    child.call(note()).expect("and write");
    assert_eq!(
        code(Tree::reserve(&scene.another(), &name("import"))),
        Code::Held
    );
    assert_eq!(code(tree.release(None)), Code::OpenObligations);
    drop(tree);
    assert_eq!(code(root.call(note())), Code::Retired);
    let (tree, root) = Tree::reserve(&scene.another(), &name("import")).expect("it is free again");
    tree.publish().expect("it is ours");
    assert_eq!(code(tree.publish()), Code::NotPending);
    drop(tree);
    root.call(note()).expect("it is there to stay");
    let shown = scene
        .store
        .view(|state| state.is_published(state.find(b"import").expect("it is there")));
    assert!(shown.expect("it reads"));
}

/// REG-11, REG-10, DIS-16: a release takes its place in the log's order: of many threads that write while the tree is
/// released, everything before it stands, nothing behind it does, and each thread knows which of its writes did.
#[test]
fn a_release_waits_for_what_is_in_order_already() {
    for _ in 0..20 {
        let scene = Scene::new();
        let handles = runtime(&scene);
        let (written, over) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|threads| {
            for handle in &handles[1..9] {
                threads.spawn(|| {
                    // A handle of its own: what it knows of the loss is not shared.
                    let own = Session::of(&scene.store, handle.token().clone());
                    while !over.load(Ordering::Relaxed) {
                        match own.call(note()) {
                            Ok(_) => drop(written.fetch_add(1, Ordering::Relaxed)),
                            Err(Failure::Refused(_)) => return,
                            Err(other) => panic!("{other}"),
                        }
                    }
                });
            }
            while written.load(Ordering::Relaxed) < 20 {
                std::thread::yield_now();
            }
            let done = handles[0].release(None);
            over.store(true, Ordering::Relaxed);
            done.expect("it is ours");
        });
        let entries = scene.entries();
        let released = entries
            .iter()
            .position(|e| matches!(e.events.first(), Some(Event::Released(_))));
        let released = released.expect("it is in the log");
        let noted =
            |e: &&tenure_core::event::Entry| matches!(e.events.first(), Some(Event::Noted(_)));
        let before = entries[..released].iter().filter(noted).count();
        assert_eq!(
            before as u64,
            written.load(Ordering::Relaxed),
            "all that was answered stands"
        );
        assert_eq!(entries[released..].iter().filter(noted).count(), 0);
        scene.check("findings => \n adopt child3 pid=600 => child3@2");
    }
}
