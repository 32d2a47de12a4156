//! Gemini's transcripts: one line, in the order of the file. Nothing in a record says which one it continues, so two
//! writers of one file cannot be told apart.

use std::collections::HashSet;

use super::Reading;
use super::branches::{Branches, finding, whole};
use super::finding::{About, Findings, Kind};
use super::shape::{Host, Part};

pub(super) fn separate(reading: &Reading) -> Branches {
    let mut findings = Findings::default();
    let mut said = HashSet::new();
    let mut headed = false;
    for record in reading
        .records
        .iter()
        .filter(|r| r.shape == Some(Host::Gemini))
    {
        let kind = match record.part {
            Part::Head if headed => Kind::SecondHeader,
            Part::Head => {
                headed = true;
                continue;
            }
            Part::Rewind => match record.about {
                Some(id) if !said.contains(&id) => {
                    findings.add(finding(Kind::Dangling, record, About::Id(id)));
                    continue;
                }
                _ => Kind::Rewind,
            },
            _ => match record.id {
                Some(id) if !said.insert(id) => Kind::Rewritten,
                _ => continue,
            },
        };
        findings.add(finding(kind, record, About::Place));
    }
    whole(reading, findings)
}
