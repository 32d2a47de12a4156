//! Roles, hand-overs and disclosures, spelled out.

use tenure_core::disclosure::Peer;
use tenure_core::event::{Event, RoleLapsed};
use tenure_core::holder::{Proof, Verdict};
use tenure_core::id::RoleNo;

use super::{Field, Payload, Spelled, Spelling, shown};

impl Spelling<'_> {
    /// `ROLE@SCOPE`; in the frame that introduces it, as the frame has it.
    fn role(self, number: RoleNo) -> Field {
        if let Some(role) = self.state.role(number) {
            let text = |symbol| shown(self.state.pool.get(symbol));
            return Field::Text(format!("{}@{}", text(role.name), text(role.scope.text)));
        }
        let named = self.entry.events.iter().find_map(|event| match event {
            Event::RoleTaken(e) if e.role == number => {
                Some(format!("{}@{}", self.text(e.name), self.text(e.scope.text)))
            }
            _ => None,
        });
        Field::maybe(named)
    }

    fn peers(self, peers: &[Peer]) -> Field {
        let one = |p: &Peer| {
            let level = p.level.as_str();
            format!("{}@{} ({level})", self.name(p.session), p.generation)
        };
        Field::List(peers.iter().map(one).collect())
    }

    fn lapse(self, e: &RoleLapsed) -> Payload {
        let spell = |verdict: Verdict, proofs: &[Proof]| {
            let proofs: Vec<&str> = proofs.iter().map(|p| p.as_str()).collect();
            format!("{}: {}", verdict.as_str(), proofs.join("; "))
        };
        let holder = e.evidence.as_ref().map(|e| spell(e.verdict, &e.proofs));
        let process = e.process.as_ref().map(|e| spell(e.verdict, &e.proofs));
        vec![
            ("role", self.role(e.role)),
            ("role_generation", Field::text(e.generation)),
            ("evidence", Field::maybe(holder)),
            ("process_evidence", Field::maybe(process)),
            ("notice", Field::text(e.notice)),
        ]
    }

    pub(super) fn rights(self, event: &Event) -> Spelled {
        match event {
            Event::RoleTaken(e) => {
                let process = e.process.and_then(|b| b.process);
                let pid = process.map_or(Field::None, |p| Field::Number(u64::from(p.pid)));
                let payload = vec![
                    ("role", self.role(e.role)),
                    ("role_generation", Field::text(e.generation)),
                    ("pid", pid),
                ];
                (Some(e.session), Some(e.under), payload)
            }
            Event::RoleLapsed(e) => (Some(e.session), None, self.lapse(e)),
            Event::RoleReleased(e) => (Some(e.session), None, vec![("role", self.role(e.role))]),
            Event::RoleCleared(e) => (
                Some(e.session),
                None,
                vec![
                    ("role", self.role(e.role)),
                    ("role_generation", Field::text(e.generation)),
                    ("reason", Field::text(self.text(e.reason))),
                    ("notice", Field::text(e.notice)),
                ],
            ),
            Event::HandedOver(e) => (
                Some(e.session),
                Some(e.generation),
                vec![
                    ("dispatch", Field::text(e.dispatch)),
                    ("from", Field::text(self.name(e.from))),
                    ("envelope", Field::text(e.envelope)),
                ],
            ),
            other => self.disclosed(other),
        }
    }

    fn disclosed(self, event: &Event) -> Spelled {
        match event {
            Event::PolicySet(e) => (
                self.entry.fence.session,
                self.entry.fence.named,
                vec![
                    ("rule", Field::text(e.rule.as_str())),
                    ("scope", Field::text(self.text(e.scope.path))),
                    ("shared", Field::Flag(e.shared)),
                ],
            ),
            Event::Shown(e) => (
                Some(e.session),
                None,
                vec![
                    ("writes", self.paths(&e.writes)),
                    ("peers", self.peers(&e.peers)),
                    ("first_notice", Field::text(e.first_notice)),
                ],
            ),
            Event::Warned(e) => (
                Some(e.session),
                None,
                vec![
                    ("writes", self.paths(&e.writes)),
                    ("peers", self.peers(&e.peers)),
                    ("first_notice", Field::text(e.first_notice)),
                ],
            ),
            Event::Attended(e) => (
                self.owner(e.dispatch),
                None,
                vec![
                    ("dispatch", Field::text(e.dispatch)),
                    ("reason", self.maybe_text(e.reason)),
                ],
            ),
            // Kinds of a later version of the rules that this page has no words for.
            _ => (self.entry.fence.session, self.entry.fence.named, Vec::new()),
        }
    }
}
