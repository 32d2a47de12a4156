//! Lines about roles, hand-overs and policies.

use tenure_core::disclosure::Rule;
use tenure_core::generation::Generation;
use tenure_core::id::Name;
use tenure_projection::call::{ProcessChoice, RoleAt, RoleScope, Verb};

use super::{Words, dispatch_no, name};

/// The call that such a line asks for; `None` for any other.
pub fn verb(words: &Words<'_>) -> Option<Verb> {
    let word = |n: usize| words.plain.get(n).copied().unwrap_or_default();
    Some(match word(0) {
        "role" => about_a_role(words, word(1)),
        "handoff" => {
            let (to, to_generation) = match word(2).split_once('@') {
                Some((to, g)) => (to, Some(Generation::parse(g).expect("one"))),
                None => (word(2), None),
            };
            Verb::HandOff {
                dispatch: dispatch_no(word(1)),
                to: name(to),
                to_generation,
            }
        }
        "policy" => Verb::SetPolicy {
            rule: Rule::from_word(word(1)).expect("a rule"),
            scope: word(2).into(),
            shared: word(3) == "shared",
        },
        "check" => Verb::CheckWrite {
            writes: word(1).split(',').map(Into::into).collect(),
        },
        "attend" => Verb::Attend {
            dispatch: dispatch_no(word(1)),
            reason: words.text("reason"),
        },
        _ => return None,
    })
}

fn about_a_role(words: &Words<'_>, what: &str) -> Verb {
    let at = RoleAt {
        role: Name::parse(words.plain[2]).expect("a role"),
        scope: RoleScope::parse(words.plain[3]).expect("a scope"),
    };
    match what {
        "take" => Verb::TakeRole {
            at,
            process: words
                .text("pid")
                .map(|pid| ProcessChoice::Pid(pid.parse().expect("a pid"))),
        },
        "release" => Verb::ReleaseRole { at },
        "lapse" => Verb::LapseRole { at },
        "check" => Verb::CheckRole {
            at,
            generation: words
                .text("generation")
                .map(|g| Generation::parse(&g).expect("a generation")),
        },
        "clear" => Verb::ClearRole {
            at,
            reason: words.reason(),
        },
        other => panic!("the scene knows no role {other}"),
    }
}
