//! Frames that no program of ours wrote: good bytes, any content.

use tenure_core::codec::v1;
use tenure_core::command::{Command, Count, Input, Origin, Request, Settle, Settlement};
use tenure_core::decide::decide;
use tenure_core::event::{Event, Fence};
use tenure_core::holder::HostId;
use tenure_core::id::{RefusalNo, Time};
use tenure_core::text::{Bodies, TextId, Texts};
use tenure_log::frame::{Draft, Parts};
use tenure_log::journal::{Deadline, Journal};
use tenure_log::position::TimeMicros;
use tenure_projection::entry;

use super::Scene;

/// A request that asks for nothing, with these texts in this order.
pub fn empty_request(texts: &[&str]) -> Request {
    let mut table = Texts::default();
    texts.iter().for_each(|text| table.push(text.as_bytes()));
    let mut bodies = Bodies::default();
    bodies.add(b"forged".to_vec());
    Request {
        input: Input {
            command: Command::Count(Count {
                refusal: RefusalNo(0),
                count: 0,
            }),
            origin: Origin {
                actor: TextId(0),
                uid: 0,
                pid: 0,
                host: HostId([9; 16]),
            },
            presented: None,
            force: None,
            evidence: None,
            key: None,
            require: None,
            seal: None,
        },
        texts: table,
        bodies,
        time: Time(0),
    }
}

impl Scene {
    /// Appends a frame with this fence and these events. The first text is number 0.
    pub fn forge(&self, fence: &Fence, texts: &[&str], events: &[Event]) {
        let parts = v1::encode(fence, &empty_request(texts), events, || [0; 16]).expect("it fits");
        self.forge_parts(parts.facts, parts.texts, parts.bodies);
    }

    /// Appends a frame with these parts.
    pub fn forge_parts(&self, facts: Vec<u8>, texts: Vec<u8>, bodies: Vec<u8>) {
        let draft = Draft {
            time: TimeMicros(0),
            parts: Parts {
                facts,
                texts,
                bodies,
            },
        };
        let head = Journal::head(&self.log).expect("it reads");
        self.log
            .transact(head, Deadline::NEVER, &mut |_| vec![draft.clone()])
            .expect("it is appended");
    }
}

impl Scene {
    /// Begins a new life of the log, as after a restore; gives its incarnation.
    pub fn raise(&self, how: Settlement) -> u64 {
        let state = self.state();
        let mut request = empty_request(&["an older copy was put back"]);
        let head = Journal::head(&self.log).expect("it reads");
        let mut begun = 0;
        self.log
            .raise(head, Deadline::NEVER, &mut |_, incarnation| {
                begun = incarnation.0;
                request.input.command = Command::Settle(Settle {
                    how,
                    incarnation: begun,
                    reason: TextId(0),
                });
                let decision = decide(&state, &request).expect("it is never refused");
                entry::draft(&request, &decision).expect("it fits")
            })
            .expect("it is appended");
        begun
    }
}
