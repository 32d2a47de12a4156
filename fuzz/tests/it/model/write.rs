//! The steps that write frames and publish them.

use super::branch::Branch;
use super::files::Content;
use super::protocol::Protocol;
use super::state::{At, Broken, Place, State, Word};

impl Protocol {
    pub fn step_of_write(&self, s: &mut State, p: usize, at: At) {
        match at {
            At::Mark | At::Rotate => self.mark(
                s,
                p,
                if at == At::Mark {
                    At::WriteBegin
                } else {
                    At::CloseBegin
                },
            ),
            At::WriteBegin => {
                self.begin_attempt(s, p);
                let several = self.open_parts(s, p).len() > 1;
                s.processes[p].at = if several {
                    At::WriteMiddle
                } else {
                    At::WriteEnd
                };
                self.put(s, p, 0, Content::Torn);
            }
            At::WriteMiddle => {
                self.put_frame(s, p, 0);
                self.put(s, p, 1, Content::Torn);
                s.processes[p].at = At::WriteEnd;
            }
            At::WriteEnd => {
                self.put_frame(s, p, self.open_parts(s, p).len() - 1);
                s.processes[p].at = At::Place;
            }
            At::Place => {
                let head = self.head_to_publish(s, p);
                self.put_place(s, p, head);
                s.processes[p].at = At::Publish;
                if !self.bounds.places_race {
                    self.publish(s, p);
                }
            }
            At::Publish => self.publish(s, p),
            At::PublishRaise => {
                let head = s.processes[p].waits_for;
                self.raise_durable(s, head);
                s.processes[p].at = At::Wait;
                s.locks.release_all_of(p);
            }
            _ => {
                let head = self.head_to_publish(s, p);
                self.published(
                    s,
                    p,
                    Word {
                        head,
                        in_doubt: false,
                        ..s.word
                    },
                );
            }
        }
    }

    pub fn put_place(&self, s: &mut State, p: usize, head: u8) {
        let process = &s.processes[p];
        let stale = s.word.epoch != process.epoch;
        if stale {
            self.note(Branch::StalePlace);
        }
        if !stale || self.bounds.places_race {
            s.put_place(Place {
                head,
                file: process.opened().file,
            });
        }
    }

    fn head_to_publish(&self, s: &State, p: usize) -> u8 {
        s.processes[p].opened().caught_up() + self.open_parts(s, p).len() as u8
    }

    pub fn begin_attempt(&self, s: &mut State, p: usize) {
        let process = &mut s.processes[p];
        if process.attempt > 0 {
            self.note(Branch::WroteAfterAbsent);
        }
        for part in process.part..process.batch {
            process.written[usize::from(part)] = process.attempt;
        }
    }

    fn mark(&self, s: &mut State, p: usize, next: At) {
        let process = &s.processes[p];
        if s.word.epoch == process.epoch && s.word.head == process.opened().caught_up() {
            s.word.in_doubt = true;
            s.processes[p].at = next;
        } else {
            self.note(Branch::MarkFailed);
            s.processes[p].handle = None;
            self.unlock_for_another_round(s, p);
        }
    }

    fn put(&self, s: &mut State, p: usize, nth: usize, content: Content) {
        let handle = s.processes[p].opened();
        let disk_matters = self.bounds.disk_matters();
        let closed = s
            .segments
            .iter()
            .any(|segment| segment.predecessor == Some(handle.file));
        if closed && matches!(content, Content::Frame { .. }) {
            self.note(Branch::LateFrame);
        }
        // A file that was replaced takes the bytes to nowhere.
        if let Some(segment) = self.segment(s, handle.file) {
            segment.put(handle.caught_up() + 1 + nth as u8, content, disk_matters);
        }
    }

    fn put_frame(&self, s: &mut State, p: usize, nth: usize) {
        let handle = s.processes[p].opened();
        let ids = self.open_parts(s, p);
        let follows = nth.checked_sub(1).map_or(handle.tip, |before| ids[before]);
        self.put(
            s,
            p,
            nth,
            Content::Frame {
                id: ids[nth],
                follows,
            },
        );
    }

    /// A short write or an error in the middle: the bit stays set, and the frames are in question.
    pub fn write_short(&self, s: &mut State, p: usize) {
        s.left.short_writes -= 1;
        self.ask_later(s, p);
        self.unlock_for_another_round(s, p);
    }

    fn ask_later(&self, s: &mut State, p: usize) {
        let process = &mut s.processes[p];
        process.asks = true;
        process.question = process.opened().caught_up() + 1;
        process.handle = None;
    }

    fn publish(&self, s: &mut State, p: usize) {
        let process = &s.processes[p];
        let expected = Word {
            epoch: process.epoch,
            head: process.opened().caught_up(),
            in_doubt: true,
        };
        let published = Word {
            head: self.head_to_publish(s, p),
            in_doubt: false,
            ..expected
        };
        if self.rules.word_is_swapped && s.word == expected {
            self.published(s, p, published);
        } else if !self.rules.word_is_swapped && s.word.epoch == process.epoch {
            s.processes[p].at = At::PublishStore;
        } else {
            self.note(Branch::PublishFailed);
            self.ask_later(s, p);
            self.unlock_for_another_round(s, p);
            if !self.rules.question_under_lock {
                let log = self.log(s);
                self.answer(s, p, &log);
            }
        }
    }

    /// The head is published.
    fn published(&self, s: &mut State, p: usize, word: Word) {
        let ids = self.open_parts(s, p);
        let mut handle = s.processes[p].opened();
        let from = handle.caught_up();
        s.word = word;
        if s.evicted {
            // Bytes are gone, perhaps before these: only what is called durable is a promise.
        } else if s.published.len() == usize::from(from) {
            s.published.extend_from_slice(&ids);
        } else {
            s.broken = Some(Broken::PrefixChanged);
        }
        let head = from + ids.len() as u8;
        handle.head = Some(head);
        handle.tip = *ids.last().expect("a write has a frame");
        s.processes[p].handle = Some(handle);
        s.processes[p].waits_for = head;
        if std::mem::take(&mut s.processes[p].born) {
            s.processes[p].at = At::PublishRaise;
        } else {
            s.processes[p].at = At::Wait;
            s.locks.release_all_of(p);
        }
    }
}
