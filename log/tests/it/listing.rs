//! What stands in segment files, as lines of text: what `log/tests/decoder.py` prints too.

use std::fmt::Write as _;

use tenure_log::format::SegmentHeader;
use tenure_log::inspect::{Entry, inspect_file};
use tenure_log::scan::{Checks, Link, Step};

use crate::store::Bytes;

/// Every stretch of one file.
pub fn listing(name: &str, bytes: &[u8]) -> String {
    let mut text = String::new();
    inspect_file(
        name,
        &Bytes(bytes.to_vec()),
        &[],
        Checks::ALL,
        &mut |entry| line(&mut text, &entry),
    );
    text
}

/// One line of it, or two.
pub fn line(text: &mut String, entry: &Entry<'_>) {
    match entry {
        Entry::Segment {
            name,
            bytes,
            header,
            ..
        } => {
            writeln!(text, "segment {name} {bytes}").expect("memory");
            match header {
                Ok(header) => header_line(text, header),
                Err(fault) => writeln!(text, "header {}", fault.code()).expect("memory"),
            }
        }
        Entry::Step {
            span,
            step: Step::Zeros,
        } => {
            writeln!(text, "zeros {} {}", span.offset, span.bytes).expect("memory");
        }
        Entry::Step {
            span,
            step: Step::Bad(fault, header),
        } => {
            let position = header
                .map(|header| format!(" position={}", header.position))
                .unwrap_or_default();
            writeln!(
                text,
                "bad {} {} {}{position}",
                span.offset,
                span.bytes,
                fault.code()
            )
            .expect("memory");
        }
        Entry::Step {
            span,
            step: Step::Frame(frame, link),
        } => {
            let link = if *link == Link::Follows {
                "follows"
            } else {
                "detached"
            };
            let h = &frame.header;
            writeln!(
                text,
                "frame {} {} {link} position={} incarnation={} epoch={} time={} durable={} facts={} texts={} bodies={} chain={}",
                span.offset, span.bytes, h.position, h.incarnation, h.epoch, h.time, h.durable,
                frame.facts.len(), frame.texts.len(), frame.bodies.len(), h.chain
            )
            .expect("memory");
        }
        Entry::Unreadable { name, error } => {
            writeln!(text, "unreadable {name} {error}").expect("memory")
        }
    }
}

fn header_line(text: &mut String, header: &SegmentHeader) {
    let predecessor = match &header.predecessor {
        Some(before) => format!("{} end={}", before.name, before.end_offset),
        None => "none".to_owned(),
    };
    writeln!(
        text,
        "header writer={} rules={} store={} salt={} incarnation={} epoch={} first={} chain={} predecessor={predecessor}",
        header.writer.0, header.rules, header.store, header.salt, header.incarnation, header.epoch, header.first,
        header.chain
    )
    .expect("memory");
}
