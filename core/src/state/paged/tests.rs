//! Pages in memory, shared, put away and written down.

use super::*;

/// Pages in memory.
pub struct InMemory(Vec<u8>);

impl InMemory {
    /// A shelf of those.
    pub fn of(pages: Vec<u8>) -> Arc<dyn Shelf> {
        Arc::new(Self(pages))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
struct Number(u64);

impl Item for Number {
    const ROWS: usize = 4;
    const AWAY_PAGES: usize = 3;

    fn blank() -> Self {
        Self(0)
    }
}

/// Where pages are put away: in memory too, if there is room.
struct Aside {
    has_room: bool,
}

impl Sink for Aside {
    fn put_away(&self, bytes: &[u8]) -> Option<Arc<dyn Packed>> {
        let bytes = self.has_room.then(|| Box::<[u8]>::from(bytes))?;
        Some(Arc::new(bytes))
    }
}

/// Items are the same whatever was put away, written to since, shared and written down.
#[test]
fn pages_are_the_same_whether_put_away_or_not() {
    let laid_out = |paged: &Paged<Number>| {
        let mut layout = Layout::default();
        paged.lay_out(&mut layout).expect("it is laid out");
        (layout.head, layout.pages)
    };
    for has_room in [false, true] {
        let (mut kept, mut away) = (Paged::default(), Paged::default());
        away.put_away_in(&(Arc::new(Aside { has_room }) as Arc<dyn Sink>));
        for n in 0..100 {
            for paged in [&mut kept, &mut away] {
                paged.push(Number(n));
                if n % 7 == 0 {
                    paged[n as usize / 2].0 += 1000;
                }
            }
            if n % 31 == 0 {
                away.share();
            }
            assert_eq!(laid_out(&away), laid_out(&kept));
        }
        let put = away.pages.iter();
        let put = put.filter(|page| matches!(page, Page::Kept(kept) if kept.away.is_some()));
        assert_eq!(put.count() > 0, has_room);
        assert_eq!(away, kept);
    }
}

/// What was written down once and not written to since is taken over.
#[test]
fn only_what_was_written_to_is_encoded_again() {
    let anew = |paged: &Paged<Number>| {
        let mut layout = Layout::default();
        paged.lay_out(&mut layout).expect("it is laid out");
        layout.anew
    };
    let mut paged: Paged<Number> = (0..40).map(Number).collect();
    paged.share();
    let whole = anew(&paged);
    assert_eq!(anew(&paged), 0);
    paged[17].0 += 1;
    paged.share();
    let page = anew(&paged);
    assert!(page > 0 && page * 5 < whole, "{page} of {whole}");
    assert_eq!(anew(&paged), 0);
}

impl Shelf for InMemory {
    fn page(&self, at: Span) -> Option<&[u8]> {
        let begin = usize::try_from(at.begin).ok()?;
        let page = self.0.get(begin..begin + at.bytes as usize)?;
        (crc32fast::hash(page) == at.check).then_some(page)
    }
}
