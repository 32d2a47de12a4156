//! A state in pages says what the state says that it was made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenure_core::codec;
use tenure_core::id::DispatchNo;
use tenure_core::state::paged::{Item, Layout, Paged, Shelf, Span};
use tenure_core::state::{Dispatch, RefusalRecord, State};
use tenure_core::text::{Pool, Text};

/// Pages in memory; counts which were asked for.
struct Kept {
    pages: Vec<u8>,
    asked: AtomicUsize,
}

impl Kept {
    fn of(pages: Vec<u8>) -> Arc<Self> {
        Arc::new(Self {
            pages,
            asked: AtomicUsize::new(0),
        })
    }
}

impl Shelf for Kept {
    fn page(&self, at: Span) -> Option<&[u8]> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let begin = at.begin as usize;
        let page = self.pages.get(begin..begin + at.bytes as usize)?;
        (crc32fast::hash(page) == at.check).then_some(page)
    }
}

/// Enough texts, records, live dispatches and names for several pages of each.
fn state() -> State {
    let mut state = State::new();
    for n in 0..1000_u32 {
        let subject = state.pool.intern(format!("subject {n}").as_bytes());
        state.refusals.push(RefusalRecord {
            code: n as u16,
            subject,
            ..RefusalRecord::blank()
        });
    }
    for n in 1..=40_u64 {
        let dispatch = Dispatch {
            item: Text::from(format!("item {n}").as_bytes()),
            ..Dispatch::blank()
        };
        state.live.insert(DispatchNo(n * n), dispatch);
    }
    state
}

fn reopened(layout: &Layout) -> (State, Arc<Kept>) {
    let kept = Kept::of(layout.pages.clone());
    let (state, bytes) = State::find_again(&layout.head, kept.clone()).expect("it decodes");
    assert_eq!(bytes, layout.pages.len() as u64);
    (state, kept)
}

#[test]
fn a_state_is_the_same_whether_its_pages_were_asked_for_or_not() {
    let state = state();
    let layout = state.lay_out().expect("it is laid out");
    let (found, kept) = reopened(&layout);
    assert_eq!(
        kept.asked.load(Ordering::Relaxed),
        0,
        "opening reads no page"
    );
    assert_eq!(found.refusals[640], state.refusals[640]);
    assert_eq!(
        kept.asked.load(Ordering::Relaxed),
        1,
        "one item is one page"
    );
    assert_eq!(found.refusals[650], state.refusals[650]);
    assert_eq!(kept.asked.load(Ordering::Relaxed), 1, "and it is kept");
    let again = found.lay_out().expect("it is laid out");
    assert_eq!((again.head, again.pages), (layout.head, layout.pages));
    assert_eq!(format!("{found:?}"), format!("{state:?}"));
    assert_eq!(codec::digest(&found).ok(), codec::digest(&state).ok());
    assert_eq!(found, state);
}

#[test]
fn what_changes_after_opening_is_as_it_is_without() {
    let mut state = state();
    let (mut found, _) = reopened(&state.lay_out().expect("it is laid out"));
    for state in [&mut state, &mut found] {
        state.refusals[33].count = 9;
        state.refusals[999].count = 8;
        state.refusals.push(RefusalRecord::blank());
        assert_eq!(state.pool.intern(b"subject 77"), state.refusals[77].subject);
        let new = state.pool.intern(b"another");
        state.refusals[1000].subject = new;
    }
    assert_eq!(found, state);
    let (one, other) = (found.lay_out(), state.lay_out());
    let (one, other) = (one.expect("laid out"), other.expect("laid out"));
    assert_eq!((&one.head, &one.pages), (&other.head, &other.pages));
    let (again, _) = reopened(&one);
    assert_eq!(again, state);
    assert_eq!(again.pool.find(b"another"), state.pool.find(b"another"));
}

#[test]
fn every_text_is_found_by_its_bytes_and_no_other_is() {
    let mut state = State::new();
    for n in 0..5000_u32 {
        state.pool.intern(&n.to_le_bytes()[..(n % 4 + 1) as usize]);
    }
    let (found, _) = reopened(&state.lay_out().expect("it is laid out"));
    let known = |pool: &Pool, text: &[u8]| pool.find(text);
    for n in 0..9000_u32 {
        for length in 0..=4 {
            let text = &n.to_le_bytes()[..length];
            assert_eq!(
                known(&found.pool, text),
                known(&state.pool, text),
                "{text:?}"
            );
        }
    }
}

#[test]
fn a_page_that_is_not_what_was_written_is_blank_and_is_written_down_no_more() {
    let state = state();
    let layout = state.lay_out().expect("it is laid out");
    let mut pages = layout.pages.clone();
    let last = pages.len() - 1;
    pages[last] ^= 1;
    let (found, _) = State::find_again(&layout.head, Kept::of(pages)).expect("it decodes");
    assert_eq!(found.refusals[0], state.refusals[0]);
    assert_eq!(found.refusals.get(999), Some(&RefusalRecord::blank()));
    assert!(found.lay_out().is_err(), "nobody may write a blank down");
    assert!(found.clone().refusals.get_mut(998).is_some());
}

#[test]
fn a_directory_cut_short_or_too_long_is_none() {
    let layout = state().lay_out().expect("it is laid out");
    for cut in 0..layout.head.len() {
        let head = &layout.head[..cut];
        assert!(
            State::find_again(head, Kept::of(Vec::new())).is_err(),
            "{cut}"
        );
    }
    let longer = [&layout.head[..], &[0]].concat();
    assert!(State::find_again(&longer, Kept::of(Vec::new())).is_err());
}

#[test]
fn a_list_of_items_is_encoded_as_a_list() {
    let list: Vec<RefusalRecord> = state().refusals.iter().cloned().collect();
    let paged: Paged<RefusalRecord> = list.iter().cloned().collect();
    assert_eq!(codec::encode(&paged).ok(), codec::encode(&list).ok());
    assert_eq!(paged.iter().len(), 1000);
}

/// C6, P1: what is written down of a state and changed in any byte or cut anywhere is refused, or is a state like any other.
#[test]
fn a_damaged_head_is_refused_or_is_a_state() {
    let layout = state().lay_out().expect("it is laid out");
    let (mut refused, mut found) = (0, 0);
    let mut read = |head: &[u8]| match State::find_again(head, Kept::of(layout.pages.clone())) {
        Err(_) => refused += 1,
        Ok((state, _)) => {
            let live = state.live.iter().count();
            assert_eq!(live, state.live.len());
            found += 1;
        }
    };
    let step = layout.head.len() / 2000 + 1;
    for at in (0..layout.head.len()).step_by(step) {
        read(&layout.head[..at]);
        for change in [1, 0x80, 0xff] {
            let mut head = layout.head.clone();
            head[at] ^= change;
            read(&head);
        }
    }
    assert!(
        refused > 100 && found > 0,
        "{refused} refused, {found} found"
    );
}
