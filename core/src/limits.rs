//! Every maximum of the model, with its reason. A limit is checked where a request enters, before anything
//! is decided; the tests try each at the limit and one past it.

/// A session name, item id or role name, in bytes. Long enough for `host.user/worktree:agent-uuid`.
pub const NAME_BYTES_MAX: usize = 128;
/// A path, in bytes: Linux's `PATH_MAX`.
pub const PATH_BYTES_MAX: usize = 4096;
/// A title, in bytes: one line in a list of everybody's work.
pub const TITLE_BYTES_MAX: usize = 256;
/// A reason, in bytes: shown whole in refusals.
pub const REASON_BYTES_MAX: usize = 1024;
/// A status, in bytes: one line in `status`.
pub const STATUS_BYTES_MAX: usize = 256;
/// An actor, engine, host name or label, in bytes.
pub const LABEL_BYTES_MAX: usize = 256;
/// Labels of one session: enough for the ids of a few hosts and a pipeline.
pub const LABELS_MAX: usize = 32;
/// The body of a note, message, report or dispatch, in bytes (1 MiB): a long report with a diff.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// One record of a history, in bytes (16 MiB): a tool's result with what it printed, or a picture. The log takes
/// frames of twice that size.
pub const RECORD_BYTES_MAX: usize = 16 << 20;
/// Activities of one session open at a time: an agent has a few, and a host program that forgets to close them
/// hears of it before its state grows.
pub const ACTIVITIES_OPEN_MAX: usize = 1024;
/// Write scopes declared by one dispatch, or observed by one call.
pub const SCOPES_MAX: usize = 64;
/// Observed scopes remembered for one session; the oldest give way.
pub const OBSERVED_SCOPES_MAX: usize = 64;
/// Directories of one path whose identity is kept, counted from the path itself upward.
pub const ANCHORS_MAX: usize = 48;
/// An idempotency key, in bytes.
pub const KEY_BYTES_MAX: usize = 256;
/// Refusal records open at a time; further ones share the record `other`, so that a reject loop over many
/// names cannot grow the log.
pub const REFUSALS_OPEN_MAX: usize = 256;
/// A refusal record is open until so many frames have passed without one about it. More than all open records
/// together can fill (each keeps [`REFUSED_BODIES_MAX`] bodies and logs its count at 20 powers of ten), so
/// refusals alone close none, and the log grows by them only as it grows by other things.
pub const REFUSAL_OPEN_FRAMES: u64 = 32_768;
/// Differing bodies kept for one refusal record.
pub const REFUSED_BODIES_MAX: usize = 64;
/// Bytes of differing bodies kept for one refusal record (1 MiB).
pub const REFUSED_BODY_BYTES_MAX: u64 = 1 << 20;
/// Texts of one frame: what a dispatch with every scope and label can need, with room.
pub const TEXTS_MAX: usize = 512;
/// Former holders remembered for one session; the oldest give way.
pub const FORMERS_MAX: usize = 16;
/// Places remembered of one former holder: two dispatches with every scope. Declared ones come first.
pub const FORMER_PLACES_MAX: usize = 128;
/// Former holders remembered of one role, to tell who lost it from who never had it; the oldest give way.
pub const ROLE_PAST_MAX: usize = 64;
/// Policies of one store: places with a rule of their own, looked through at every meeting.
pub const POLICIES_MAX: usize = 256;
/// Others named in one disclosure; the rest is named by the next one.
pub const PEERS_MAX: usize = 256;
/// Others that a holder is remembered to have been shown; the oldest give way, and are shown again.
pub const TOLD_MAX: usize = 1024;

const _: () = {
    // Bodies, and counts at 10, 100, ... up to the largest 64-bit number.
    let frames_of_one = REFUSED_BODIES_MAX + 1 + 19;
    assert!(((REFUSALS_OPEN_MAX + 1) * frames_of_one) as u64 * 4 < REFUSAL_OPEN_FRAMES * 3);
};
