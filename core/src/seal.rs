//! Sealed grants: what makes a token more than a number that can be read in a listing (`docs/sealed.md`).
//!
//! A store is sealed for ever or never, by its first frame. In a sealed one every grant is made with a secret of 128
//! random bits that its asker chose. The log keeps a digest of the secret, the token has the secret itself, and a write
//! under a token stands only with it.

use alloc::string::{String, ToString};
use core::fmt::Write;

use bincode::{Decode, Encode};

/// The secret of a sealed grant. It is written out by [`Secret::reveal`] alone: `Debug` has none of it, and there is no
/// `Display`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; Secret::BYTES]);

/// What the log keeps of a secret: the first 16 bytes of its BLAKE3 hash under a context of its own. A secret has 128
/// random bits, so nobody finds one by trying.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Seal(pub [u8; 16]);

/// The text is no secret. It is not repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a secret is {} hexadecimal digits in lower case", 2 * Secret::BYTES)]
pub struct SecretFault;

impl Secret {
    /// Its length, in bytes.
    pub const BYTES: usize = 16;

    /// From random bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Its digest.
    #[must_use]
    pub fn seal(&self) -> Seal {
        let mut hasher = blake3::Hasher::new_derive_key("tenure sealed grant v1");
        hasher.update(&self.0);
        let mut seal = [0; 16];
        seal.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Seal(seal)
    }

    /// The secret itself, in 32 hexadecimal digits: for the file or the answer that a token is handed over in.
    #[must_use]
    pub fn reveal(&self) -> String {
        hexadecimal(&self.0)
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl core::str::FromStr for Secret {
    type Err = SecretFault;

    fn from_str(text: &str) -> Result<Self, SecretFault> {
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return Err(SecretFault);
        };
        let mut bytes = [0; Self::BYTES];
        if pairs.len() != bytes.len() {
            return Err(SecretFault);
        }
        let digit = |c: u8| match c {
            b'0'..=b'9' => Ok(c - b'0'),
            b'a'..=b'f' => Ok(c - b'a' + 10),
            _ => Err(SecretFault),
        };
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(bytes))
    }
}

impl core::fmt::Display for Seal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = "".to_string();
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::{Secret, SecretFault};

    /// The digest stands in logs: it never changes. The secret is read back from what `reveal` writes.
    #[test]
    fn a_secret_is_read_back_and_its_digest_stays() {
        let secret = Secret::from_bytes(core::array::from_fn(|n| n as u8 * 17));
        let text = secret.reveal();
        assert_eq!(text, "00112233445566778899aabbccddeeff");
        assert_eq!(text.parse(), Ok(secret));
        assert_eq!(
            format!("{}", secret.seal()),
            "adfb8547d46ae239ee5a976fca73c4e9"
        );
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        let short = String::from("00112233445566778899aabbccddee");
        for text in [
            "",
            "0",
            &short,
            &(short.clone() + "ffff"),
            &(short.clone() + "f"),
            &(short.clone() + "FF"),
            &(short.clone() + "g0"),
            &(short.clone() + "é"),
        ] {
            assert_eq!(text.parse::<Secret>(), Err(SecretFault), "{text:?}");
        }
    }
}
