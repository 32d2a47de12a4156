//! The README's tour is real: its commands are run, and what they print is what it shows.

use crate::console::{plain, run, steps};

#[test]
fn the_readme_shows_what_its_commands_print() {
    let room = tempfile::tempdir().expect("a directory");
    let room = room.path().canonicalize().expect("it is there");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let page = std::fs::read_to_string(page).expect("the README is there");
    let steps = steps(&page);
    assert!(steps.len() > 10, "the tour has commands");
    let printed = run(&steps, &room, "");
    for (step, printed) in steps.iter().zip(&printed) {
        let clean = |lines: &[String]| -> Vec<String> {
            lines
                .iter()
                .map(|l| plain(l, &room))
                .filter(|l| !l.is_empty())
                .collect()
        };
        assert_eq!(clean(&step.shown), clean(printed), "$ {}", step.command);
    }
    assert_eq!(
        printed.len(),
        steps.len() + 1,
        "every command came to its end"
    );
}
