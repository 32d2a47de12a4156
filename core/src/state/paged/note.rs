//! What programs keep of their own in pages, written down as the tables of a state are.

use alloc::boxed::Box;
use alloc::sync::Arc;

use bincode::{Decode, Encode};

use crate::codec;

use super::{Directory, Item, Layout, Paged, Shelf};

/// What programs keep of their own in pages: some numbers, and a text.
#[derive(Clone, PartialEq, Eq, Default, Debug, Encode, Decode)]
pub struct Note {
    /// The numbers.
    pub words: [u64; 8],
    /// The text.
    pub text: Box<[u8]>,
}

impl Item for Note {
    const ROWS: usize = 16;

    fn blank() -> Self {
        Self::default()
    }
}

/// Writes lists of notes down in pages.
///
/// # Errors
/// When a page cannot be had any more, or one is too long.
pub fn lay_out(lists: &[&Paged<Note>]) -> Result<Layout, codec::Error> {
    let mut layout = Layout::default();
    let laid = lists.iter().try_for_each(|list| list.lay_out(&mut layout));
    laid.map_err(codec::Error::encoding)?;
    Ok(layout)
}

/// Reads what [`lay_out`] wrote of as many lists, and how many bytes their pages take, which stand on `shelf`.
///
/// # Errors
/// For any other bytes than the head of such a layout.
pub fn find_again<const LISTS: usize>(
    head: &[u8],
    shelf: Arc<dyn Shelf>,
) -> Result<([Paged<Note>; LISTS], u64), codec::Error> {
    codec::read_with(head, |decoder| {
        let mut found = Directory::of(shelf);
        let mut lists = core::array::from_fn(|_| Paged::default());
        for list in &mut lists {
            *list = Paged::find_again(decoder, &mut found)?;
        }
        Ok((lists, found.bytes()))
    })
}
