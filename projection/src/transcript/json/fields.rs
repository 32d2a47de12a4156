//! The values of a record that say what record it is, by the names that the three hosts give them.

use crate::transcript::id::Id;

/// Where in a record something stands, as far as that is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Top,
    Payload,
    Message,
    Content,
    Block,
    Elsewhere,
}

/// A value that is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    Kind,
    Subtype,
    Uuid,
    Parent,
    LogicalParent,
    Session,
    ProjectHash,
    Sidechain,
    Meta,
    Leaf,
    MessageRef,
    Timestamp,
    Ordinal,
    Id,
    Rewind,
    Set,
    Payload,
    PayloadKind,
    PayloadId,
    HistoryMode,
    Turn,
    Call,
    MessageId,
    BlockKind,
}

/// What of a value could be read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Link {
    /// It is not there.
    #[default]
    Absent,
    /// It is `null`.
    Null,
    /// It names something.
    To(Id),
}

impl Link {
    /// What it names.
    #[must_use]
    pub fn id(self) -> Option<Id> {
        match self {
            Self::To(id) => Some(id),
            Self::Absent | Self::Null => None,
        }
    }
}

/// The values of one object that say what record it is.
#[derive(Clone, Default, Debug)]
pub struct Fields {
    pub kind: Option<Box<str>>,
    pub subtype: Option<Box<str>>,
    pub payload_kind: Option<Box<str>>,
    pub uuid: Link,
    pub parent: Link,
    pub logical_parent: Link,
    pub session: Link,
    pub leaf: Link,
    pub message_ref: Link,
    pub id: Link,
    pub rewind: Link,
    pub payload_id: Link,
    pub turn: Link,
    pub call: Link,
    pub message_id: Link,
    pub ordinal: Option<u64>,
    pub project_hash: bool,
    pub timestamp: bool,
    pub sidechain: bool,
    pub meta: bool,
    pub set: bool,
    pub payload: bool,
    pub paginated: bool,
    /// A tool's result is among the parts of its message.
    pub result: bool,
}

impl Fields {
    pub(super) fn link(&mut self, field: Field) -> Option<&mut Link> {
        Some(match field {
            Field::Uuid => &mut self.uuid,
            Field::Parent => &mut self.parent,
            Field::LogicalParent => &mut self.logical_parent,
            Field::Session => &mut self.session,
            Field::Leaf => &mut self.leaf,
            Field::MessageRef => &mut self.message_ref,
            Field::Id => &mut self.id,
            Field::Rewind => &mut self.rewind,
            Field::PayloadId => &mut self.payload_id,
            Field::Turn => &mut self.turn,
            Field::Call => &mut self.call,
            Field::MessageId => &mut self.message_id,
            _ => return None,
        })
    }
}

/// The names of the values that are looked at, as the three hosts write them.
pub(super) fn field(place: Place, key: &[u8]) -> Option<Field> {
    Some(match (place, key) {
        (Place::Top, b"type") => Field::Kind,
        (Place::Top, b"subtype") => Field::Subtype,
        (Place::Top, b"uuid") => Field::Uuid,
        (Place::Top, b"parentUuid") => Field::Parent,
        (Place::Top, b"logicalParentUuid") => Field::LogicalParent,
        (Place::Top, b"sessionId") => Field::Session,
        (Place::Top, b"projectHash") => Field::ProjectHash,
        (Place::Top, b"isSidechain") => Field::Sidechain,
        (Place::Top, b"isMeta") => Field::Meta,
        (Place::Top, b"leafUuid") => Field::Leaf,
        (Place::Top, b"messageId") => Field::MessageRef,
        (Place::Top, b"timestamp") => Field::Timestamp,
        (Place::Top, b"ordinal") => Field::Ordinal,
        (Place::Top, b"id") => Field::Id,
        (Place::Top, b"$rewindTo") => Field::Rewind,
        (Place::Top, b"$set") => Field::Set,
        (Place::Top, b"payload") => Field::Payload,
        (Place::Payload, b"type") => Field::PayloadKind,
        (Place::Payload, b"id") => Field::PayloadId,
        (Place::Payload, b"history_mode") => Field::HistoryMode,
        (Place::Payload, b"turn_id") => Field::Turn,
        (Place::Payload, b"call_id") => Field::Call,
        (Place::Message, b"id") => Field::MessageId,
        (Place::Block, b"type") => Field::BlockKind,
        _ => return None,
    })
}
