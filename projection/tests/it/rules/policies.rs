//! Policies, and the question whether paths may be changed now: the tables of `docs/disclosure.md` (DSC-11).

use tenure_core::disclosure::Rule;
use tenure_core::event::Event;
use tenure_core::refusal::Code;

use crate::scene::Scene;

/// `web` has accepted work in /w/src; `api` asks.
fn at_work() -> Scene {
    let scene = Scene::new();
    scene.play(
        "register web \n register api \n dispatch one web writes=/w/src \n accept d1 as=web@1",
    );
    scene
}

/// DSC-10, NOT-6: without a policy a question is answered with the list; the pair is told of each other once, at a
/// position before anything the asker writes.
#[test]
fn a_question_shows_who_is_there_and_is_kept_once() {
    let scene = at_work();
    let position = scene.frames() + 1;
    scene.check(&format!(
        "check /v as=api@1              => alone again
         check /w/src/a as=api@1        => with web(tree,declared)
         log {position}                 => shown
         told api                       => web@1 at {position}
         inbox web                      => e1 work pending@1; e2 notice pending@1 newcomer
         check /w/src/a as=api@1        => with web(tree,declared) again
         check /w/src/b,/w as=api@1     => with web(tree,declared) again
         observe busy as=api@1 wrote=/w/src/a => done
         inbox web                      => e1 work pending@1; e2 notice pending@1 newcomer
         check /w/src as=web@1          => with api(tree,observed)
         inbox api                      =>
         check /w as=api@2              => never-issued: .."
    ));
    let entries = scene.entries();
    let shown = entries.iter().position(|e| {
        let names =
            |e: &Event| matches!(e, Event::Shown(s) if s.peers[0].session == scene.number("web"));
        e.events.iter().any(names)
    });
    let wrote = entries
        .iter()
        .position(|e| matches!(e.events.first(), Some(Event::Observed(_))));
    assert!(shown.is_some() && shown < wrote, "{shown:?} {wrote:?}");
    // A new holder of either side is told again.
    scene.check(
        "adopt web as=web@1 pid=9        => web@2
         check /w/src/a as=api@1         => with web(tree,declared)
         adopt api as=api@1 pid=8        => api@2
         told api                        =>
         check /w/src/a as=api@2         => with web(tree,declared)
         check /w/src/a as=api@2         => with web(tree,declared) again",
    );
}

/// DSC-1, DSC-10: what is shown at an acceptance and at an observation is kept too.
#[test]
fn an_acceptance_and_an_observation_show_and_tell() {
    let scene = at_work();
    scene.check(
        "dispatch two api writes=/w => d2 e2
         accept d2 as=api@1         => with web(tree,declared)
         told api                   => web@1 at 6
         check /w/src as=api@1      => with web(tree,declared) again
         register new               => new@1
         observe x as=new@1 wrote=/w/src/x => with web(tree,declared) api(tree,declared)
         log 8                      => observed shown
         told new                   => web@1 at 8; api@1 at 8
         observe x as=new@1 wrote=/w/src/y => done
         inbox api                  => e2 work pending@1; e5 notice pending@1 newcomer",
    );
}

/// DSC-11: the first attempt after somebody is met is not to be executed; the identical one runs; once for each
/// pair of holders.
#[test]
fn a_policy_warns_once() {
    let scene = at_work();
    scene.check(
        "policy warn-once /w            => done
         check /w/src/a as=api@1        => warned of web(tree,declared)
         log 6                          => warned
         check /w/src/a as=api@1        => with web(tree,declared) again
         check /w/src/b as=api@1        => with web(tree,declared) again
         inbox web                      => e1 work pending@1; e2 notice pending@1 newcomer
         register more checkout=/w      => more@1
         check /w/src/a as=api@1        => warned of web(tree,declared) more(tree,present)
         check /w/src/a as=api@1        => with web(tree,declared) more(tree,present) again
         adopt api as=api@1 pid=8       => api@2
         check /w/src/a as=api@2        => warned of web(tree,declared) more(tree,present)
         adopt web as=web@1 pid=9       => web@2
         check /w/src/a as=api@2        => warned of web(tree,declared) more(tree,present)
         check /w/src/a as=api@2        => with web(tree,declared) more(tree,present) again",
    );
}

/// The answer of the table for `/w/src/a`, with a rule at a scope; what is there decides by itself.
fn asked(rule: Rule, scope: &str, there: &str) -> String {
    let scene = Scene::new();
    scene.play(&format!(
        "register web \n register api \n policy {} {scope} \n {there}",
        rule.as_str()
    ));
    let answer = scene.run("check /w/src/a as=api@1");
    let again = scene.run("check /w/src/a as=api@1");
    let word = |answer: &str| {
        answer
            .split([' ', ':'])
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    format!("{} {}", word(&answer), word(&again))
}

/// DSC-11: every rule against every way of being there, exhaustively: the table of rules.
#[test]
fn each_rule_meets_each_presence_as_the_table_says() {
    let accepted = "dispatch one web writes=/w/src \n accept d1 as=web@1";
    let earlier = "dispatch own api writes=/w/src \n accept d1 as=api@1
                   dispatch one web writes=/w/src";
    let seen = "observe x as=web@1 wrote=/w/src/a";
    let present = "retire web@1 \n register web checkout=/w";
    let former = "dispatch one web writes=/w/src \n accept d1 as=web@1
                  adopt web force=stuck pid=9 \n retire web@2";
    let own_and_seen = "dispatch own api writes=/w/src \n accept d1 as=api@1
                        observe x as=web@1 wrote=/w/src/a";
    // Nobody; somebody who goes before the asker; somebody who does not.
    let cases = [
        (
            "note alone as=web@1",
            "alone alone",
            "alone alone",
            "alone alone",
        ),
        (accepted, "with with", "warned with", "held held"),
        (seen, "with with", "warned with", "held held"),
        (present, "with with", "warned with", "with with"),
        (former, "with with", "warned with", "with with"),
        (own_and_seen, "with with", "warned with", "with with"),
    ];
    for (there, disclose, warn, refuse) in cases {
        assert_eq!(asked(Rule::Disclose, "/w", there), disclose, "{there}");
        assert_eq!(asked(Rule::WarnOnce, "/w", there), warn, "{there}");
        assert_eq!(asked(Rule::Refuse, "/w", there), refuse, "{there}");
    }
    // Who accepted first goes first, both ways round; the second accept is refused while the rule stands.
    let scene = Scene::new();
    scene.play(&format!("register web \n register api \n {earlier}"));
    scene.check(
        "policy refuse /w      => done
         accept d2 as=web@1    => held: the policy there is `refuse`, and api is at work on d1 at /w/src
         work                  => d1 accepted api@1; d2 queued web@1
         policy disclose /w    => done
         accept d2 as=web@1    => with api(tree,declared)
         policy refuse /w      => done
         check /w/src as=api@1 => with web(tree,declared)
         check /w/src as=web@1 => held: ..
         report d1 done as=api@1 => done
         check /w/src as=web@1 => alone again",
    );
}

/// DSC-11: what decides is the place where the two meet, and the longest policy scope that contains it.
#[test]
fn the_longest_scope_that_contains_the_meeting_decides() {
    let accepted = "dispatch one web writes=/w/src \n accept d1 as=web@1";
    for (scopes, expected) in [
        ("/w/src/b refuse", "with with"),
        ("/w/src/a/deep refuse", "with with"),
        ("/w/src/a refuse", "held held"),
        ("/w refuse,/w/src disclose", "with with"),
        ("/w disclose,/w/src refuse", "held held"),
        ("/w/src refuse,/w disclose", "held held"),
        ("/w refuse,/w disclose", "with with"),
        ("/ refuse", "held held"),
        ("/w-site refuse", "with with"),
    ] {
        let scene = Scene::new();
        scene.play(&format!("register web \n register api \n {accepted}"));
        for policy in scopes.split(',') {
            let (scope, rule) = policy.split_once(' ').expect("SCOPE RULE");
            scene.play(&format!("policy {rule} {scope}"));
        }
        let answers = [(); 2].map(|()| scene.run("check /w/src/a as=api@1"));
        let words = answers.map(|a| a.split([' ', ':']).next().unwrap_or_default().to_owned());
        assert_eq!(words.join(" "), expected, "{scopes}");
    }
    // Asked for as a whole, the deeper of the two is the other's.
    let scene = Scene::new();
    scene.play(&format!(
        "register web \n register api \n {accepted} \n policy refuse /w/src"
    ));
    let refusal = scene.refusal("check / as=api@1");
    assert_eq!(refusal.code, Code::Held);
    assert!(
        refusal.message.contains("web is at work on d1 at /w/src"),
        "{}",
        refusal.message
    );
}

/// DSC-13: equal paths of two hosts are strangers until both are declared shared; then they are disclosed, never
/// refused, since nothing proves that they are one place.
#[test]
fn paths_that_are_declared_shared_meet_across_hosts() {
    let scene = at_work();
    let there = scene.elsewhere(2);
    let ask = |expected: &str| {
        scene.check_on(&there, &format!("check /w/src/a as=api@1 => {expected}"));
    };
    ask("alone again");
    scene.play("policy refuse /w shared");
    ask("with web(tree,declared)");
    scene.check_on(&there, "check /v as=api@1 => alone again");
    scene.play("policy disclose /w");
    ask("alone again");
}

/// A policy is set again in place; a store has so many and no more.
#[test]
fn a_place_has_one_policy() {
    let scene = at_work();
    scene.play("policy refuse /w \n policy warn-once /w/ \n policy disclose /w/.");
    let rules: Vec<Rule> = scene.state().policies.iter().map(|p| p.rule).collect();
    assert_eq!(rules, [Rule::Disclose]);
    for n in 1..tenure_core::limits::POLICIES_MAX {
        scene.play(&format!("policy refuse /p{n}"));
    }
    scene.check(
        "policy refuse /more => failed: the list of policies..
         policy warn-once /w => done",
    );
}

/// What a person has to see to: work that was reported blocked, until somebody says so or gives the item again.
#[test]
fn blocked_work_waits_for_somebody() {
    let scene = at_work();
    scene.check(
        "blocked                     =>
         attend d1                   => not-pending: d1 is accepted, not blocked
         attend d9                   => unknown-dispatch: ..
         report d1 blocked as=web@1 body=key => done
         blocked                     => d1
         attend d1 as=web@2          => never-issued: ..
         attend d1 reason=sent       => done
         blocked                     =>
         attend d1                   => done again
         dispatch two web            => d2 e2
         accept d2 as=web@1          => alone
         report d2 blocked as=web@1  => done
         dispatch other web          => d3 e3
         blocked                     => d2
         dispatch two api            => d4 e4
         blocked                     =>",
    );
}

/// D01: disclosure is not once and for all: who comes later is listed with who was there, who was there is told, and
/// asking again gives the list of now.
#[test]
fn who_comes_later_is_told_to_who_was_there() {
    let scene = Scene::new();
    scene.play("register a \n register b \n dispatch one a writes=/r/a.txt \n accept d1 as=a@1");
    scene.check(
        "check /r/a.txt as=a@1      => alone again
         dispatch two b writes=/r   => d2 e2
         accept d2 as=b@1           => with a(tree,declared)
         inbox a                    => e1 work pending@1; e3 notice pending@1 newcomer
         check /r/a.txt as=a@1      => with b(tree,declared)
         report d2 done as=b@1      => done
         check /r/a.txt as=a@1      => alone again",
    );
}

/// D05: what changes a whole tree is held against everybody's scope in it, and names whom it would hit; what stays in
/// the asker's own files is not.
#[test]
fn a_change_of_the_whole_tree_meets_everybody_in_it() {
    let scene = Scene::new();
    scene.play(
        "register a \n register b \n register c
         dispatch one a writes=/r/a \n dispatch two b writes=/r/b \n dispatch tre c writes=/r/c
         accept d1 as=a@1 \n accept d2 as=b@1 \n accept d3 as=c@1",
    );
    scene.check(
        "check /r as=b@1     => with a(tree,declared) c(tree,declared)
         policy refuse /r    => done
         check /r as=b@1     => held: the policy there is `refuse`, and a is at work on d1 at /r/a
         check /r/b/x as=b@1 => alone again
         check /r/a as=b@1   => held: ..
         check /r/c as=b@1   => held: ..",
    );
}

/// A23: who accepted work on a file learns that another session was seen to write it meanwhile, at the time and whenever
/// it asks; what nobody said is not known.
#[test]
fn a_file_that_another_session_wrote_meanwhile_is_told() {
    let scene = Scene::new();
    scene.play("register a \n register b \n dispatch one a writes=/r/f \n accept d1 as=a@1");
    scene.check(
        "check /r/f as=a@1             => alone again
         observe busy as=b@1 wrote=/r/g => done
         check /r/f as=a@1             => alone again
         observe busy as=b@1 wrote=/r/f => with a(tree,declared)
         inbox a                       => e1 work pending@1; e2 notice pending@1 newcomer
         check /r/f as=a@1             => with b(tree,observed)
         report d1 done as=a@1         => done",
    );
}

/// D17: places whose names look alike once separators are lost are different places: nobody's session is found at
/// another's.
#[test]
fn places_with_names_alike_are_different_places() {
    let scene = Scene::new();
    let places = [
        "/w/a-b/c", "/w/a/b-c", "/w/my_p", "/w/my-p", "/w/my.p", "/w/a/b/c",
    ];
    for (n, place) in places.iter().enumerate() {
        let n = n + 1;
        scene.play(&format!(
            "register s{n} checkout={place} \n dispatch i{n} s{n} writes={place} \n accept d{n} as=s{n}@1"
        ));
        scene.check(&format!("shared none {place} => s{n}(tree,declared)"));
    }
    scene.check("shared none /w/a-b /w/a/b-c => s1(tree,declared) s2(tree,declared)");
}

/// D12: where a session was seen to write counts beside what it declared: whoever accepts work there later is shown it, with
/// how that is known.
#[test]
fn writing_outside_the_declared_scope_is_shown_to_others() {
    let scene = Scene::new();
    scene.play(
        "register a \n register b \n dispatch one a writes=/w1 \n accept d1 as=a@1
         dispatch two b writes=/r/main \n dispatch tre b writes=/w1/x",
    );
    scene.check(
        "observe busy as=a@1 wrote=/r/main/x => done
         accept d2 as=b@1 => with a(tree,observed)
         accept d3 as=b@1 => with a(tree,declared)",
    );
}
