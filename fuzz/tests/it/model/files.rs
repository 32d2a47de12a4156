//! The segments of the model: what a read sees, what a power loss leaves, and the log that is read from them.

use super::rules::Rules;
use super::state::{Broken, FileId, FrameId};

/// What stands where a frame can stand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Content {
    Zeros,
    /// A write has begun, or ended short.
    Torn,
    /// A good frame, and the frame that its chain value follows.
    Frame {
        id: FrameId,
        follows: FrameId,
    },
}

/// What the page cache knows about the disk's copy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kept {
    /// The disk has what a read sees.
    Clean,
    /// The next sync writes it.
    Dirty,
    /// A sync failed: nothing writes it again, and no later sync says so.
    Lost,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cell {
    pub now: Content,
    /// What the last successful sync left on the disk.
    synced: Content,
    pub kept: Kept,
}

impl Cell {
    const ZEROS: Cell = Cell {
        now: Content::Zeros,
        synced: Content::Zeros,
        kept: Kept::Clean,
    };

    fn clean(content: Content) -> Cell {
        Cell {
            now: content,
            synced: content,
            kept: Kept::Clean,
        }
    }

    /// What a power loss may leave: the old, zeros (a torn page and zeros are both no frame), the new. The same bytes
    /// written over themselves are there all the time.
    fn remains(&self) -> Vec<Content> {
        let mut remains = vec![self.now];
        if self.kept != Kept::Clean && self.now != self.synced {
            for content in [self.synced, Content::Zeros] {
                if !remains.contains(&content) {
                    remains.push(content);
                }
            }
        }
        remains
    }
}

/// A segment file. Its frames have the positions `first`, `first + 1`, ... whoever wrote them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Segment {
    pub file: FileId,
    /// The predecessor that the header names; it ends at the position before `first`.
    pub predecessor: Option<FileId>,
    /// The chain at the start, as the header states it.
    pub follows: FrameId,
    pub entry_synced: bool,
    pub header_synced: bool,
    pub header_good: bool,
    /// How many syncs of this file failed.
    pub errors: u8,
    pub cells: Vec<Cell>,
    /// The greatest epoch that found its name taken by this file; with epochs in the names only its own can.
    pub opened_in: u8,
}

impl Segment {
    pub fn new(file: FileId, predecessor: Option<FileId>, follows: FrameId) -> Segment {
        Segment {
            file,
            predecessor,
            follows,
            entry_synced: true,
            header_synced: true,
            header_good: true,
            errors: 0,
            cells: Vec::new(),
            opened_in: file.epoch,
        }
    }

    /// Frames that a new segment has from the start: written and synced before its name appears.
    pub fn begin_with(&mut self, frames: impl Iterator<Item = FrameId>) {
        let mut follows = self.follows;
        for id in frames {
            self.cells.push(Cell::clean(Content::Frame { id, follows }));
            follows = id;
        }
    }

    /// Writes at a position. Where no power loss is in the bounds, nothing is kept about the disk.
    pub fn put(&mut self, position: u8, content: Content, disk_matters: bool) {
        let at = usize::from(
            position
                .checked_sub(self.file.first)
                .expect("a writer stays behind its segment's start"),
        );
        while self.cells.len() <= at {
            self.cells.push(Cell::ZEROS);
        }
        if disk_matters {
            self.cells[at] = Cell {
                now: content,
                kept: Kept::Dirty,
                ..self.cells[at]
            };
        } else {
            self.cells[at] = Cell::clean(content);
        }
    }

    /// Zeroes everything behind a position.
    pub fn cut(&mut self, end: u8, disk_matters: bool) {
        for position in end + 1..self.file.first + self.cells.len() as u8 {
            self.put(position, Content::Zeros, disk_matters);
        }
        self.trim();
    }

    pub fn has_bytes_behind(&self, end: u8) -> bool {
        (self.file.first..)
            .zip(&self.cells)
            .any(|(position, cell)| position > end && cell.now != Content::Zeros)
    }

    /// Writes the good frames behind one position and up to another again, from the bytes that a read sees.
    /// Says whether each of them was there.
    pub fn write_again(&mut self, above: u8, up_to: u8) -> bool {
        let mut there = self.file.first;
        for (position, cell) in (self.file.first..).zip(&mut self.cells) {
            if position > above && position <= up_to && matches!(cell.now, Content::Frame { .. }) {
                cell.kept = Kept::Dirty;
            }
            if there == position && matches!(cell.now, Content::Frame { .. }) {
                there = position + 1;
            }
        }
        there > up_to
    }

    pub fn sync(&mut self) {
        self.header_synced = true;
        for cell in &mut self.cells {
            if cell.kept == Kept::Dirty {
                *cell = Cell::clean(cell.now);
            }
        }
        self.trim();
    }

    pub fn lose(&mut self) {
        for cell in &mut self.cells {
            if cell.kept == Kept::Dirty {
                cell.kept = Kept::Lost;
            }
        }
    }

    pub fn can_be_evicted(&self) -> bool {
        self.cells
            .iter()
            .any(|cell| cell.kept == Kept::Lost && cell.now != cell.synced)
    }

    pub fn evict(&mut self) {
        for cell in self.cells.iter_mut().filter(|cell| cell.kept == Kept::Lost) {
            *cell = Cell::clean(cell.synced);
        }
        self.trim();
    }

    /// A file of zeros has no length of its own here.
    fn trim(&mut self) {
        while self.cells.last() == Some(&Cell::ZEROS) {
            self.cells.pop();
        }
    }

    pub fn map_ids(&mut self, f: impl Fn(FrameId) -> FrameId) {
        self.follows = f(self.follows);
        for content in self
            .cells
            .iter_mut()
            .flat_map(|c| [&mut c.now, &mut c.synced])
        {
            if let Content::Frame { id, follows } = content {
                (*id, *follows) = (f(*id), f(*follows));
            }
        }
    }

    /// In how many ways a power loss can leave this file, its name included.
    fn outcomes(&self) -> usize {
        let body: usize = self.cells.iter().map(|c| c.remains().len()).product();
        body * if self.header_synced { 1 } else { 2 } * if self.entry_synced { 1 } else { 2 }
    }

    /// One of the outcomes; none when the name is gone.
    fn after_power_loss(&self, outcome: &mut usize) -> Option<Segment> {
        let mut pick = |ways: usize| {
            let way = *outcome % ways;
            *outcome /= ways;
            way
        };
        let mut left = self.clone();
        for cell in &mut left.cells {
            let remains = cell.remains();
            *cell = Cell::clean(remains[pick(remains.len())]);
        }
        left.header_good &= self.header_synced || pick(2) == 0;
        let entry_left = self.entry_synced || pick(2) == 0;
        left.header_synced = true;
        left.entry_synced = true;
        left.trim();
        entry_left.then_some(left)
    }
}

/// In how many ways a power loss can leave the segments.
pub fn power_loss_outcomes(segments: &[Segment]) -> usize {
    segments.iter().map(Segment::outcomes).product()
}

/// The segments after a power loss. Nothing is left of a failed sync but what it lost.
pub fn after_power_loss(segments: &[Segment], mut outcome: usize) -> Vec<Segment> {
    segments
        .iter()
        .filter_map(|s| s.after_power_loss(&mut outcome))
        .map(|s| Segment { errors: 0, ..s })
        .collect()
}

/// The log as any opener reads it.
#[derive(Debug)]
pub struct Log {
    pub frames: Vec<FrameId>,
    /// The segment that decides: index among the segments.
    pub newest: usize,
    /// Behind the last frame stands a good one with another history: that is damage, whoever left it there.
    pub foreign: bool,
}

impl Log {
    pub fn head(&self) -> u8 {
        self.frames.len() as u8
    }

    pub fn tip(&self) -> FrameId {
        self.frames.last().copied().unwrap_or(FrameId::NONE)
    }
}

fn named(segments: &[Segment], name: FileId, rules: &Rules) -> Option<usize> {
    segments.iter().position(|s| {
        s.file.first == name.first && (s.file.epoch == name.epoch || !rules.names_carry_epoch)
    })
}

/// Reads the log: the segment of the highest epoch decides, its header names the one before it, and so on.
pub fn read(segments: &[Segment], rules: &Rules) -> Result<Log, Broken> {
    let age = |s: &Segment| {
        if rules.highest_epoch_decides {
            (s.file.epoch, s.file.first)
        } else {
            (s.file.first, u8::MAX - s.file.epoch)
        }
    };
    let newest = (0..segments.len())
        .max_by_key(|&i| age(&segments[i]))
        .ok_or(Broken::Lineage)?;
    let mut lineage = vec![newest];
    while let Some(name) = segments[*lineage.last().expect("never empty")].predecessor {
        let before = named(segments, name, rules).ok_or(Broken::Lineage)?;
        if lineage.contains(&before) {
            return Err(Broken::Lineage);
        }
        lineage.push(before);
    }
    let mut frames = Vec::new();
    let mut tip = FrameId::NONE;
    let mut foreign = false;
    for (i, &index) in lineage.iter().enumerate().rev() {
        let segment = &segments[index];
        if !segment.header_good || segment.follows != tip {
            return Err(Broken::Lineage);
        }
        if usize::from(segment.file.first) != frames.len() + 1 {
            return Err(Broken::Gap);
        }
        let end = i
            .checked_sub(1)
            .map(|next| segments[lineage[next]].file.first - 1);
        for (position, cell) in (segment.file.first..).zip(&segment.cells) {
            match cell.now {
                _ if end.is_some_and(|end| position > end) => break,
                Content::Frame { id, follows } if follows == tip => {
                    frames.push(id);
                    tip = id;
                }
                Content::Frame { .. } => {
                    foreign = true;
                    break;
                }
                _ => break,
            }
        }
        if end.is_some_and(|end| frames.len() < usize::from(end)) {
            return Err(Broken::Gap);
        }
    }
    Ok(Log {
        frames,
        newest,
        foreign,
    })
}

/// Who has the name that a new segment wants.
pub fn taken(segments: &[Segment], file: FileId, rules: &Rules) -> Option<usize> {
    named(segments, file, rules)
}
