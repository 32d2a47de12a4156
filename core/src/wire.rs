//! How enums reach the disk: by numbers assigned by hand, never by the order of variants. Swapping two
//! variants of a derived enum would silently turn one event into another.

/// A field-less enum with its number and word for each variant.
macro_rules! wire_enum {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$vmeta:meta])* $variant:ident = $number:literal $word:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$vmeta])* $variant,)* }

        impl $name {
            /// Every variant, in the order of the numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its number, as recorded: assigned by hand, never the order of variants.
            #[must_use]
            pub const fn number(self) -> u8 {
                match self { $(Self::$variant => $number,)* }
            }

            /// The variant with that number.
            #[must_use]
            pub const fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }

            /// The word printed for it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The variant that is printed as `word`.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl bincode::Encode for $name {
            fn encode<E: bincode::enc::Encoder>(
                &self,
                encoder: &mut E,
            ) -> Result<(), bincode::error::EncodeError> {
                self.number().encode(encoder)
            }
        }

        impl<C> bincode::Decode<C> for $name {
            fn decode<D: bincode::de::Decoder<Context = C>>(
                decoder: &mut D,
            ) -> Result<Self, bincode::error::DecodeError> {
                let number = <u8 as bincode::Decode<C>>::decode(decoder)?;
                Self::from_number(number)
                    .ok_or(bincode::error::DecodeError::Other(concat!("unknown ", stringify!($name))))
            }
        }

        impl $crate::codec::plain::Plain for $name {
            #[inline]
            fn plain(bytes: &mut &[u8]) -> Option<Self> {
                Self::from_number(<u8 as $crate::codec::plain::Plain>::plain(bytes)?)
            }
        }

        impl<'de, C> bincode::BorrowDecode<'de, C> for $name {
            fn borrow_decode<D: bincode::de::BorrowDecoder<'de, Context = C>>(
                decoder: &mut D,
            ) -> Result<Self, bincode::error::DecodeError> {
                bincode::Decode::decode(decoder)
            }
        }
    };
}

/// An enum of structs, each with its kind number: commands and events. A payload is the struct in bincode's
/// standard encoding; the number stands outside it.
macro_rules! wire_kinds {
    ($(#[$meta:meta])* pub enum $enum:ident {
        $($(#[$vmeta:meta])* $number:literal $word:literal $variant:ident {
            $($(#[$fmeta:meta])* $field:ident: $ty:ty,)*
        })*
    }) => {
        $(
            $(#[$vmeta])*
            #[derive(Clone, PartialEq, Eq, Debug, bincode::Encode, bincode::Decode)]
            pub struct $variant { $($(#[$fmeta])* pub $field: $ty,)* }

            impl $crate::codec::plain::Plain for $variant {
                #[inline]
                fn plain(bytes: &mut &[u8]) -> Option<Self> {
                    // A kind may have no fields.
                    let _ = &bytes;
                    Some(Self { $($field: $crate::codec::plain::Plain::plain(bytes)?,)* })
                }
            }

            impl From<$variant> for $enum {
                fn from(value: $variant) -> Self { Self::$variant(value) }
            }
        )*

        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum $enum { $($(#[$vmeta])* $variant($variant),)* }

        impl $enum {
            /// Kind number and word of every variant.
            pub const KINDS: &[(u16, &str)] = &[$(($number, $word),)*];

            /// Its kind number: assigned by hand, never reused.
            #[must_use]
            pub fn kind(&self) -> u16 {
                match self { $(Self::$variant(_) => $number,)* }
            }

            /// The word printed for its kind.
            #[must_use]
            pub fn word(&self) -> &'static str {
                match self { $(Self::$variant(_) => $word,)* }
            }

            /// Every text it names, with what each is there.
            pub(crate) fn mention(&self, see: &mut dyn FnMut($crate::text::TextId, $crate::redaction::Use)) {
                match self {
                    $(Self::$variant(value) => {
                        // A variant without fields that name a text sees nothing.
                        let _ = (value, &see);
                        $($crate::redaction::Mention::mention(&value.$field, stringify!($field), see);)*
                    })*
                }
            }

            pub(crate) fn encode_payload(
                &self,
                out: &mut alloc::vec::Vec<u8>,
            ) -> Result<(), bincode::error::EncodeError> {
                match self {
                    $(Self::$variant(value) => $crate::codec::append(out, value),)*
                }
            }

            /// What the plain way makes of a payload, and what bincode does.
            #[cfg(test)]
            pub(crate) fn both_ways(
                kind: u16,
                payload: &[u8],
            ) -> Option<(Option<Self>, Result<Self, bincode::error::DecodeError>)> {
                match kind {
                    $($number => Some((
                        $crate::codec::plain::Plain::whole(payload).map(Self::$variant),
                        $crate::codec::exact(payload).map(Self::$variant),
                    )),)*
                    _ => None,
                }
            }

            /// Decodes a payload and hands it to `put`, which can leave it where it belongs: it is large. `None` for a
            /// kind number that this program does not know.
            pub(crate) fn decode_payload<R>(
                kind: u16,
                payload: &[u8],
                put: impl FnOnce(Self) -> R,
            ) -> Option<Result<R, bincode::error::DecodeError>> {
                match kind {
                    $($number => Some(match $crate::codec::plain::Plain::whole(payload) {
                        Some(value) => Ok(put(Self::$variant(value))),
                        None => $crate::codec::exact(payload).map(|value| put(Self::$variant(value))),
                    }),)*
                    _ => None,
                }
            }
        }
    };
}
