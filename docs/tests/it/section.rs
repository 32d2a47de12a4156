//! A part of a page that a test writes: between two marks, compared on every run, written anew by `UPDATE_EXPECT=1`.

use crate::assert_none;
use crate::tree::{self, Tree};
use std::collections::BTreeSet;

/// Where in which page the part stands.
pub struct Section {
    pub page: &'static str,
    /// The line before it, with its end of line.
    pub begin: &'static str,
    /// The line behind it, with its end of line.
    pub end: &'static str,
}

impl Section {
    /// The page with this body, or `None` when it has no place for one.
    fn with(&self, page: &str, body: &str) -> Option<String> {
        let (before, rest) = page.split_once(self.begin)?;
        let (_, after) = rest.split_once(self.end)?;
        Some(format!("{before}{}{body}{}{after}", self.begin, self.end))
    }

    /// Lines that the page lacks and lines it has too much.
    pub fn differences(&self, tree: &Tree, body: &str) -> Vec<String> {
        let name = self.page;
        let page = tree.text(name).unwrap_or_default();
        let Some(wanted) = self.with(page, body) else {
            return vec![format!("{name}: has no place for what is written there")];
        };
        let have: BTreeSet<&str> = page.lines().collect();
        let want: BTreeSet<&str> = wanted.lines().collect();
        let lacks = want
            .difference(&have)
            .map(|line| format!("{name}: lacks {line}"));
        let dead = have
            .difference(&want)
            .map(|line| format!("{name}: not in the tree: {line}"));
        let mut findings: Vec<String> = lacks.chain(dead).collect();
        if findings.is_empty() && page != wanted {
            findings.push(format!("{name}: out of order"));
        }
        findings
    }

    /// Compares, or writes the page when the run was asked to.
    pub fn settle(&self, tree: &Tree, body: &str) {
        if tree::update() {
            let page = tree.text(self.page).expect("the page is there");
            let page = self.with(page, body).expect("the page has both marks");
            std::fs::write(tree::root().join(self.page), page).expect("the page can be written");
            return;
        }
        let rule = "the page is not what the tree says (UPDATE_EXPECT=1 writes it anew)";
        assert_none(rule, self.differences(tree, body));
    }
}
