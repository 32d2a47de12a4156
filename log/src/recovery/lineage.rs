//! Which segment follows which, from their names, headers and sizes alone. The newest segment decides; every other one is
//! closed by the header of its successor, or late.

use std::collections::BTreeMap;

use super::Obstacle;
use crate::error::{Damage, Next};
use crate::fault::Fault;
use crate::format::{SegmentHeader, SegmentName};
use crate::position::{Head, Positions, StoreId};
use crate::zoo::planted;

/// A file of the segments directory, as far as the lineage looks at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentFile {
    /// Its name.
    pub name: SegmentName,
    /// Its size.
    pub bytes: u64,
    /// Its header, or what is wrong with it.
    pub header: Result<SegmentHeader, Fault>,
}

/// A segment that its successor's header closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed {
    /// Its header.
    pub header: SegmentHeader,
    /// The size of its file.
    pub bytes: u64,
    /// The offset behind its last frame.
    pub end_offset: u64,
    /// Its last frame.
    pub end: Head,
}

/// The segments of a store, in order, and what does not fit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lineage {
    /// The closed segments, oldest first: as far back from the newest as the headers lead.
    pub closed: Vec<Closed>,
    /// The newest segment, when its header is good.
    pub newest: Option<SegmentHeader>,
    /// Segments of older epochs that no header names: made by a writer that had lost its epoch.
    pub late: Vec<SegmentHeader>,
    /// Segments with a good header that can be placed nowhere, since something else is missing or damaged.
    pub unplaced: Vec<SegmentHeader>,
    /// What does not fit together.
    pub damage: Vec<Damage>,
    /// Segments that are not this store's, or not this program's.
    pub obstacles: Vec<Obstacle>,
}

impl Lineage {
    /// Puts the files in order. `store` is the store they should belong to, where the caller knows; otherwise the oldest
    /// good header says.
    #[must_use]
    pub fn of(store: Option<StoreId>, files: &[SegmentFile]) -> Lineage {
        let mut lineage = Lineage::default();
        let mut files: BTreeMap<SegmentName, SegmentFile> =
            files.iter().map(|file| (file.name, *file)).collect();
        let expected = store.or_else(|| {
            files
                .values()
                .find_map(|file| Some(file.header.ok()?.store))
        });
        files.retain(|name, file| match file.header {
            Err(Fault::NewerFormat { found, known }) => {
                lineage.obstacles.push(Obstacle::NewerFormat {
                    segment: *name,
                    found,
                    known,
                });
                false
            }
            Ok(SegmentHeader { store: found, .. }) if Some(found) != expected => {
                let expected = expected.expect("a good header is one that says");
                lineage.obstacles.push(Obstacle::ForeignStore {
                    segment: *name,
                    found,
                    expected,
                });
                false
            }
            _ => true,
        });
        lineage.follow_back(&mut files);
        lineage.sort_out_the_rest(&files);
        lineage.closed.reverse();
        lineage
    }

    /// From the newest segment back through the predecessors; takes what it passes out of `files`.
    fn follow_back(&mut self, files: &mut BTreeMap<SegmentName, SegmentFile>) {
        let Some((_, newest)) = files.pop_last() else {
            return;
        };
        let Some(mut header) = self.good_header(&newest, None) else {
            return;
        };
        self.newest = Some(header);
        while let Some(before) = header.predecessor {
            let Some(file) = files.remove(&before.name) else {
                let fault = Fault::SegmentMissing {
                    named_by: header.name(),
                };
                let positions = Positions::to(
                    before.name.first,
                    before.end.position.max(before.name.first),
                );
                self.damage.push(damage(before.name, 0, positions, fault));
                return;
            };
            let Some(closed) = self.good_header(&file, Some(before.end)) else {
                return;
            };
            if file.bytes < before.end_offset && !planted("file-length-trusted") {
                let fault = Fault::SegmentCut {
                    bytes: file.bytes,
                    stated: before.end_offset,
                };
                let positions = Positions::to(
                    before.name.first,
                    before.end.position.max(before.name.first),
                );
                self.damage
                    .push(damage(before.name, file.bytes, positions, fault));
            }
            if closed.incarnation > header.incarnation {
                let fault = Fault::Incarnation {
                    segment: header.incarnation,
                    found: closed.incarnation,
                };
                self.damage.push(damage(
                    closed.name(),
                    0,
                    Positions::from(closed.first),
                    fault,
                ));
            }
            self.closed.push(Closed {
                header: closed,
                bytes: file.bytes,
                end_offset: before.end_offset,
                end: before.end,
            });
            header = closed;
        }
    }

    /// What nothing names: late when its epoch has ended, damage otherwise.
    fn sort_out_the_rest(&mut self, files: &BTreeMap<SegmentName, SegmentFile>) {
        for name in files.keys() {
            if let Some(newest) = self.newest
                && name.epoch == newest.epoch
            {
                let fault = Fault::SegmentUnnamed {
                    newest: newest.name(),
                };
                self.damage
                    .push(damage(*name, 0, Positions::from(name.first), fault));
            }
        }
        for file in files.values() {
            let Some(header) = self.good_header(file, None) else {
                continue;
            };
            // Behind a lost segment nothing can be called late: the lost one may have named it.
            if !self.damage.is_empty() {
                self.unplaced.push(header);
            } else {
                self.late.push(header);
            }
        }
    }

    fn good_header(&mut self, file: &SegmentFile, end: Option<Head>) -> Option<SegmentHeader> {
        let fault = match file.header {
            Ok(header) if header.name() == file.name => return Some(header),
            Ok(header) => Fault::SegmentRenamed {
                stated: header.name(),
            },
            Err(fault) => fault,
        };
        let first = file.name.first;
        let positions = end.map_or(Positions::from(first), |end| {
            Positions::to(first, end.position.max(first))
        });
        self.damage.push(damage(file.name, 0, positions, fault));
        None
    }
}

fn damage(segment: SegmentName, offset: u64, positions: Positions, fault: Fault) -> Damage {
    Damage {
        segment,
        offset,
        positions,
        fault,
        next: Next::RestoreFile,
    }
}
