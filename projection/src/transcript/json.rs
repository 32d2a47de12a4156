//! One JSON object, byte by byte: where it ends or first breaks, what its text has of trouble, and the few values
//! that say what record it is. Nothing of it is kept besides those.

use super::id::Id;

mod fields;

use fields::{Field, Place, field};
pub use fields::{Fields, Link};

/// How deep objects and lists may stand in each other; what is deeper is not read as a record.
pub const DEPTH_MAX: usize = 1024;
/// The longest key and the longest value that are looked at.
const TEXT_BYTES_MAX: usize = 256;

/// What was met in the texts of an object.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Texts {
    /// Where the first byte stands that is no UTF-8, counted from the object's first byte.
    pub invalid_utf8: Option<u64>,
    /// Where the first half of a surrogate pair stands that is alone.
    pub lone_surrogate: Option<u64>,
    /// Characters that some programs take for line ends (U+0085, U+2028, U+2029). They are text.
    pub odd_separators: u64,
}

/// What a byte came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The object goes on.
    More,
    /// The object ends with it.
    Done,
    /// No object goes on so.
    Broken,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Start,
    /// A key or the end of the object; only a key behind a comma.
    Key {
        first: bool,
    },
    Colon,
    /// A value; behind the opening of a list also its end.
    Value {
        first: bool,
    },
    /// Behind a value.
    After,
    Text {
        key: bool,
        escape: Escape,
    },
    Number(Number),
    Literal(&'static [u8]),
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Escape {
    No,
    Begun,
    /// So many digits, and their value.
    Digits(u8, u16),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Number {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
}

impl Number {
    /// What follows with this byte; `None` where the number is over or broken.
    fn step(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Minus, b'0') => Self::Zero,
            (Self::Minus, b'1'..=b'9') | (Self::Whole, b'0'..=b'9') => Self::Whole,
            (Self::Zero | Self::Whole, b'.') => Self::Point,
            (Self::Point | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Self::Exponent,
            (Self::Exponent, b'+' | b'-') => Self::Sign,
            (Self::Exponent | Self::Sign | Self::Power, b'0'..=b'9') => Self::Power,
            _ => return None,
        })
    }

    fn may_end(self) -> bool {
        matches!(
            self,
            Self::Zero | Self::Whole | Self::Fraction | Self::Power
        )
    }
}

/// Which bytes go on with a character of several.
#[derive(Clone, Copy, Default, Debug)]
struct Utf8 {
    due: u8,
    low: u8,
    high: u8,
    /// The character's value so far.
    value: u32,
}

/// Reads one object.
#[derive(Clone, Debug)]
pub struct Machine {
    state: State,
    levels: Vec<(bool, Place)>,
    at: u64,
    field: Option<Field>,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Whether the key or value is longer than what is looked at.
    long: bool,
    utf8: Utf8,
    /// Where a high surrogate stands that waits for its other half.
    high: Option<u64>,
    pub fields: Fields,
    pub texts: Texts,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            state: State::Start,
            levels: Vec::new(),
            at: 0,
            field: None,
            key: Vec::new(),
            value: Vec::new(),
            long: false,
            utf8: Utf8::default(),
            high: None,
            fields: Fields::default(),
            texts: Texts::default(),
        }
    }
}

impl Machine {
    /// Takes the next byte. Behind [`Step::Done`] and [`Step::Broken`] it takes no more.
    pub fn step(&mut self, byte: u8) -> Step {
        let step = self.take(byte);
        self.at += 1;
        step
    }

    fn take(&mut self, byte: u8) -> Step {
        match self.state {
            State::Text { key, escape } => self.text(byte, key, escape),
            State::Number(number) => match number.step(byte) {
                Some(next) => {
                    self.keep(byte);
                    self.goes_on(State::Number(next))
                }
                None if number.may_end() => {
                    self.number();
                    self.state = State::After;
                    self.take(byte)
                }
                None => Step::Broken,
            },
            State::Literal(rest) => match rest.split_first() {
                Some((next, rest)) if *next == byte => {
                    let after = rest.is_empty();
                    self.goes_on(if after {
                        State::After
                    } else {
                        State::Literal(rest)
                    })
                }
                _ => Step::Broken,
            },
            _ if matches!(byte, b' ' | b'\t' | b'\r') && self.state != State::Start => Step::More,
            State::Start if byte == b'{' => self.open(true),
            State::Key { .. } if byte == b'"' => {
                self.key.clear();
                self.long = false;
                self.string(true)
            }
            State::Key { first: true } if byte == b'}' => self.close(),
            State::Colon if byte == b':' => self.goes_on(State::Value { first: false }),
            State::Value { first: true } if byte == b']' => self.close(),
            State::Value { .. } => self.begin(byte),
            State::After => self.behind(byte),
            State::Start | State::Key { .. } | State::Colon | State::Ended => Step::Broken,
        }
    }

    fn goes_on(&mut self, state: State) -> Step {
        self.state = state;
        Step::More
    }

    fn string(&mut self, key: bool) -> Step {
        (self.utf8, self.high) = (Utf8::default(), None);
        let escape = Escape::No;
        self.goes_on(State::Text { key, escape })
    }

    /// A value begins.
    fn begin(&mut self, byte: u8) -> Step {
        self.value.clear();
        self.long = false;
        match byte {
            b'{' => self.open(true),
            b'[' => self.open(false),
            b'"' => self.string(false),
            b'-' | b'0'..=b'9' => {
                self.keep(byte);
                self.goes_on(State::Number(match byte {
                    b'-' => Number::Minus,
                    b'0' => Number::Zero,
                    _ => Number::Whole,
                }))
            }
            b't' => {
                self.flag(true);
                self.goes_on(State::Literal(b"rue"))
            }
            b'f' => {
                self.flag(false);
                self.goes_on(State::Literal(b"alse"))
            }
            b'n' => {
                self.nothing();
                self.goes_on(State::Literal(b"ull"))
            }
            _ => Step::Broken,
        }
    }

    fn behind(&mut self, byte: u8) -> Step {
        let object = self.levels.last().is_some_and(|(object, _)| *object);
        match (byte, object) {
            (b',', true) => self.goes_on(State::Key { first: false }),
            (b',', false) => self.goes_on(State::Value { first: false }),
            (b'}', true) | (b']', false) => self.close(),
            _ => Step::Broken,
        }
    }

    fn place(&self) -> Place {
        self.levels
            .last()
            .map_or(Place::Elsewhere, |(_, place)| *place)
    }

    fn open(&mut self, object: bool) -> Step {
        if self.levels.len() == DEPTH_MAX {
            return Step::Broken;
        }
        let place = match (self.levels.last(), self.field, object) {
            (None, ..) => Place::Top,
            (_, Some(Field::Payload), true) => {
                self.fields.payload = true;
                Place::Payload
            }
            (_, Some(Field::Set), true) => {
                self.fields.set = true;
                Place::Elsewhere
            }
            (Some((true, Place::Top)), _, true) if self.key == b"message" => Place::Message,
            (Some((true, Place::Message)), _, false) if self.key == b"content" => Place::Content,
            (Some((false, Place::Content)), _, true) => Place::Block,
            _ => Place::Elsewhere,
        };
        self.levels.push((object, place));
        self.field = None;
        self.goes_on(match object {
            true => State::Key { first: true },
            false => State::Value { first: true },
        })
    }

    fn close(&mut self) -> Step {
        self.levels.pop();
        self.field = None;
        if self.levels.is_empty() {
            self.state = State::Ended;
            return Step::Done;
        }
        self.goes_on(State::After)
    }

    fn text(&mut self, byte: u8, key: bool, escape: Escape) -> Step {
        let escape = match (escape, byte) {
            (Escape::No, b'"') => return self.text_ends(key),
            (Escape::No, 0..=0x1f) => return Step::Broken,
            (Escape::No, b'\\') => {
                self.is_cut_short();
                Escape::Begun
            }
            (Escape::No, _) => {
                self.is_alone();
                self.character(byte);
                Escape::No
            }
            (Escape::Begun, b'u') => Escape::Digits(0, 0),
            (Escape::Begun, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.is_alone();
                Escape::No
            }
            (Escape::Digits(count, value), digit) => {
                let Some(digit) = char::from(digit).to_digit(16) else {
                    return Step::Broken;
                };
                let value = value << 4 | digit as u16;
                if count == 3 {
                    self.escaped(value);
                    Escape::No
                } else {
                    Escape::Digits(count + 1, value)
                }
            }
            (Escape::Begun, _) => return Step::Broken,
        };
        match key {
            true => self.keep_key(byte),
            false => self.keep(byte),
        }
        self.goes_on(State::Text { key, escape })
    }

    fn text_ends(&mut self, key: bool) -> Step {
        self.is_alone();
        self.is_cut_short();
        if key {
            self.field = (!self.long)
                .then(|| field(self.place(), &self.key))
                .flatten();
            return self.goes_on(State::Colon);
        }
        self.word();
        self.goes_on(State::After)
    }

    /// A byte of a text that stands for itself.
    fn character(&mut self, byte: u8) {
        let utf8 = &mut self.utf8;
        if utf8.due > 0 && (utf8.low..=utf8.high).contains(&byte) {
            utf8.value = utf8.value << 6 | u32::from(byte & 0x3f);
            (utf8.due, utf8.low, utf8.high) = (utf8.due - 1, 0x80, 0xbf);
            let odd = matches!(utf8.value, 0x85 | 0x2028 | 0x2029);
            self.texts.odd_separators += u64::from(utf8.due == 0 && odd);
            return;
        }
        self.is_cut_short();
        let (due, low, high, bits) = match byte {
            0..=0x7f => (0, 0, 0, 0),
            0xc2..=0xdf => (1, 0x80, 0xbf, byte & 0x1f),
            0xe0 => (2, 0xa0, 0xbf, byte & 0x0f),
            0xed => (2, 0x80, 0x9f, byte & 0x0f),
            0xe1..=0xef => (2, 0x80, 0xbf, byte & 0x0f),
            0xf0 => (3, 0x90, 0xbf, byte & 0x07),
            0xf1..=0xf3 => (3, 0x80, 0xbf, byte & 0x07),
            0xf4 => (3, 0x80, 0x8f, byte & 0x07),
            _ => {
                self.texts.invalid_utf8.get_or_insert(self.at);
                (0, 0, 0, 0)
            }
        };
        let value = u32::from(bits);
        self.utf8 = Utf8 {
            due,
            low,
            high,
            value,
        };
    }

    /// No byte that a character of several still needs comes now.
    fn is_cut_short(&mut self) {
        if std::mem::take(&mut self.utf8).due > 0 {
            self.texts.invalid_utf8.get_or_insert(self.at);
        }
    }

    /// A `\uNNNN` is complete; `at` stands on its last digit.
    fn escaped(&mut self, value: u16) {
        let begins = self.at - 5;
        match value {
            0xd800..=0xdbff => {
                self.is_alone();
                self.high = Some(begins);
            }
            0xdc00..=0xdfff => {
                if self.high.take().is_none() {
                    self.texts.lone_surrogate.get_or_insert(begins);
                }
            }
            _ => self.is_alone(),
        }
    }

    /// What comes now is no other half of a pair.
    fn is_alone(&mut self) {
        if let Some(high) = self.high.take() {
            self.texts.lone_surrogate.get_or_insert(high);
        }
    }

    fn keep_key(&mut self, byte: u8) {
        match self.key.len() < TEXT_BYTES_MAX {
            true => self.key.push(byte),
            false => self.long = true,
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.field.is_none() {
            return;
        }
        match self.value.len() < TEXT_BYTES_MAX {
            true => self.value.push(byte),
            false => self.long = true,
        }
    }

    fn number(&mut self) {
        if self.field == Some(Field::Ordinal) {
            let text = std::str::from_utf8(&self.value).ok();
            self.fields.ordinal = text.filter(|_| !self.long).and_then(|t| t.parse().ok());
        }
    }

    fn flag(&mut self, value: bool) {
        match self.field {
            Some(Field::Sidechain) => self.fields.sidechain = value,
            Some(Field::Meta) => self.fields.meta = value,
            _ => {}
        }
    }

    fn nothing(&mut self) {
        if let Some(link) = self.field.and_then(|f| self.fields.link(f)) {
            *link = Link::Null;
        }
    }

    /// A text that is a value is complete.
    fn word(&mut self) {
        let Some(field) = self.field.filter(|_| !self.long) else {
            return;
        };
        if let Some(link) = self.fields.link(field) {
            *link = Link::To(Id::of(&self.value));
            return;
        }
        let text = || std::str::from_utf8(&self.value).ok().map(Box::from);
        let fields = &mut self.fields;
        match field {
            Field::Kind => fields.kind = text(),
            Field::Subtype => fields.subtype = text(),
            Field::PayloadKind => fields.payload_kind = text(),
            Field::ProjectHash => fields.project_hash = true,
            Field::Timestamp => fields.timestamp = true,
            Field::HistoryMode => fields.paginated = self.value == b"paginated",
            Field::BlockKind => fields.result |= self.value == b"tool_result",
            _ => {}
        }
    }
}
