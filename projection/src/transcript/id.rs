//! Ids as hosts write them, in 16 bytes each: an index of millions fits into memory.

use std::fmt::{self, Display, Formatter};

/// An id of a host. Short ones and UUIDs are kept as they are; of any other its digest is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id {
    form: Form,
    bytes: [u8; 16],
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Form {
    /// So many bytes of text.
    Text(u8),
    /// A UUID in lower case with its four dashes.
    Uuid,
    /// The first 16 bytes of BLAKE3 of the text.
    Digest,
}

const DASHES: [usize; 4] = [8, 13, 18, 23];

impl Id {
    /// That of a text.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let mut bytes = [0; 16];
        if text.len() <= bytes.len() {
            bytes[..text.len()].copy_from_slice(text);
            let form = Form::Text(text.len() as u8);
            return Self { form, bytes };
        }
        if let Some(bytes) = uuid(text) {
            let form = Form::Uuid;
            return Self { form, bytes };
        }
        bytes.copy_from_slice(&blake3::hash(text).as_bytes()[..16]);
        let form = Form::Digest;
        Self { form, bytes }
    }
}

fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 || DASHES.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut bytes = [0; 16];
    let digits = (0..36).filter(|at| !DASHES.contains(at)).map(|at| text[at]);
    for (place, digit) in digits.enumerate() {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        bytes[place / 2] = bytes[place / 2] << 4 | value;
    }
    Some(bytes)
}

impl Display for Id {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Text(length) => {
                let text = &self.bytes[..usize::from(length)];
                f.write_str(&String::from_utf8_lossy(text))
            }
            Form::Uuid => {
                for (place, byte) in self.bytes.iter().enumerate() {
                    let dash = if matches!(place, 4 | 6 | 8 | 10) {
                        "-"
                    } else {
                        ""
                    };
                    write!(f, "{dash}{byte:02x}")?;
                }
                Ok(())
            }
            Form::Digest => {
                f.write_str("blake3:")?;
                self.bytes
                    .iter()
                    .try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_told_as_it_was_written() {
        for text in [
            "",
            "u1",
            "sixteen-bytes-xx",
            "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
        ] {
            assert_eq!(Id::of(text.as_bytes()).to_string(), text);
        }
        let upper = Id::of(b"0A1B2C3D-4e5f-6071-8293-a4b5c6d7e8f9");
        let lower = Id::of(b"0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9");
        assert_ne!(upper, lower);
        assert!(upper.to_string().starts_with("blake3:"), "{upper}");
        assert_ne!(Id::of(b"a"), Id::of(b"a\0"), "the length is part of it");
    }
}
