//! What follows from an event and from how the session stands: the tables of `docs/agents.md`, and nothing else.

use tenure_projection::agents::{Footing, Meeting};
use tenure_projection::core::disclosure::Rule;

use super::payload::{Event, Kind, Touch};

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// Say who the session is, and whom it meets.
    Greet,
    /// Take the session, and greet; where it cannot be taken, say who holds it.
    TakeAndGreet,
    /// Say what is new.
    News,
    /// Ask whether the tool may go where it goes.
    Check,
    /// Take the session, and check; where it cannot be taken, the tool does not run.
    TakeAndCheck,
    /// The tool does not run.
    Refuse,
    /// Say what was lost.
    Tell,
    /// Record where the tool went.
    Observe,
    /// Record an agent below.
    Child,
    /// Give the session back.
    Part,
}

/// The table of events and standings.
#[must_use]
pub fn step(event: &Event, footing: Footing) -> Step {
    use Footing as F;
    match (event.kind(), footing) {
        (Kind::Start, F::Ours(_)) => Step::Greet,
        (Kind::Start, F::Lost(_)) if *event == (Event::Start { compacted: true }) => Step::Tell,
        (Kind::Start, _) => Step::TakeAndGreet,
        (Kind::Prompt, F::Ours(_)) => Step::News,
        (Kind::Prompt | Kind::Stop, F::Lost(_)) => Step::Tell,
        (Kind::Prompt, _) => Step::TakeAndGreet,
        (Kind::Before, F::Ours(_)) => Step::Check,
        (Kind::Before, F::Lost(_)) => Step::Refuse,
        (Kind::Before, _) => Step::TakeAndCheck,
        (Kind::After, F::Ours(_)) => Step::Observe,
        (Kind::ChildStart | Kind::ChildStop, F::Ours(_)) => Step::Child,
        (Kind::End, F::Ours(_)) => Step::Part,
        (Kind::After | Kind::Stop | Kind::ChildStart | Kind::ChildStop | Kind::End, _) => {
            Step::Nothing
        }
    }
}

/// Whether an event is about nothing that the ledger knows, so that it is not opened.
#[must_use]
pub fn is_idle(event: &Event) -> bool {
    match event {
        Event::Before(tool) => tool.touch == Touch::Nothing,
        // Only files that a tool names are recorded.
        Event::After(tool) => !matches!(tool.touch, Touch::Files(_)),
        _ => false,
    }
}

/// What follows from whom a tool would meet: the rows of the second table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    /// It runs.
    Allow,
    /// The store is asked, decides and records.
    Ask,
    /// It runs, and who is there is said; the store is not asked, since a session that is gone would be in the way.
    Say,
}

/// The row of a meeting.
#[must_use]
pub fn row(meeting: &Meeting) -> Row {
    let gone_in_the_way = meeting.stale_rule() == Rule::Refuse;
    match meeting.rule() {
        Rule::Refuse => Row::Ask,
        _ if gone_in_the_way => Row::Say,
        _ if meeting.news => Row::Ask,
        _ => Row::Allow,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tenure_projection::core::generation::Generation;

    use super::super::payload::Tool;
    use super::*;

    fn events() -> Vec<(&'static str, Event)> {
        let tool = || Tool {
            name: "Bash".into(),
            touch: Touch::Unknown,
        };
        let id = || "a1".to_owned();
        vec![
            ("start", Event::Start { compacted: false }),
            ("compact", Event::Start { compacted: true }),
            ("prompt", Event::Prompt),
            ("before", Event::Before(tool())),
            ("after", Event::After(tool())),
            ("stop", Event::Stop),
            (
                "child-start",
                Event::ChildStart {
                    id: id(),
                    role: String::new(),
                },
            ),
            ("child-stop", Event::ChildStop { id: id() }),
            ("end", Event::End),
        ]
    }

    /// Every cell of the page's table: events down; ours, parted, lost, free, held across.
    const CELLS: &[(&str, [Step; 5])] = {
        use Step as S;
        &[
            (
                "start",
                [
                    S::Greet,
                    S::TakeAndGreet,
                    S::TakeAndGreet,
                    S::TakeAndGreet,
                    S::TakeAndGreet,
                ],
            ),
            (
                "compact",
                [
                    S::Greet,
                    S::TakeAndGreet,
                    S::Tell,
                    S::TakeAndGreet,
                    S::TakeAndGreet,
                ],
            ),
            (
                "prompt",
                [
                    S::News,
                    S::TakeAndGreet,
                    S::Tell,
                    S::TakeAndGreet,
                    S::TakeAndGreet,
                ],
            ),
            (
                "before",
                [
                    S::Check,
                    S::TakeAndCheck,
                    S::Refuse,
                    S::TakeAndCheck,
                    S::TakeAndCheck,
                ],
            ),
            (
                "after",
                [S::Observe, S::Nothing, S::Nothing, S::Nothing, S::Nothing],
            ),
            (
                "stop",
                [S::Nothing, S::Nothing, S::Tell, S::Nothing, S::Nothing],
            ),
            (
                "child-start",
                [S::Child, S::Nothing, S::Nothing, S::Nothing, S::Nothing],
            ),
            (
                "child-stop",
                [S::Child, S::Nothing, S::Nothing, S::Nothing, S::Nothing],
            ),
            (
                "end",
                [S::Part, S::Nothing, S::Nothing, S::Nothing, S::Nothing],
            ),
        ]
    };

    /// A01, REG-4: whoever was granted the session and lost it takes nothing back by looking, at no event but a start.
    #[test]
    fn every_cell_is_the_one_of_the_page() {
        let cells: BTreeMap<&str, [Step; 5]> = CELLS.iter().copied().collect();
        let first = Generation::first(1);
        let footings = [
            Footing::Ours(first),
            Footing::Parted(first),
            Footing::Lost(first),
            Footing::Free,
            Footing::Held,
        ];
        for (name, event) in events() {
            for (footing, expected) in footings.into_iter().zip(cells[name]) {
                assert_eq!(step(&event, footing), expected, "{name} {footing:?}");
                if matches!(footing, Footing::Lost(_)) && event.kind() != Kind::Start {
                    assert!(!matches!(expected, Step::TakeAndCheck | Step::TakeAndGreet));
                }
            }
        }
        let kinds: Vec<Kind> = events().iter().map(|(_, e)| e.kind()).collect();
        assert!(Kind::ALL.iter().all(|kind| kinds.contains(kind)));
    }

    /// Tools that only read open nothing, and only files that are named are observed.
    #[test]
    fn what_only_reads_is_idle() {
        let tool = |touch: &Touch| Tool {
            name: "T".into(),
            touch: touch.clone(),
        };
        let line = Touch::Line {
            line: "make".into(),
            directory: None,
        };
        let all = [
            (Touch::Nothing, true, true),
            (Touch::Files(vec!["a".into()]), false, false),
            (line, false, true),
            (Touch::Unknown, false, true),
        ];
        for (touch, before, after) in &all {
            assert_eq!(is_idle(&Event::Before(tool(touch))), *before, "{touch:?}");
            assert_eq!(is_idle(&Event::After(tool(touch))), *after, "{touch:?}");
        }
        assert!(!is_idle(&Event::Prompt) && !is_idle(&Event::End));
    }
}
