//! The repository's files in memory, so that every rule can also be run over a made-up tree.

use crate::rust::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Directories that hold nothing a person wrote.
const NOT_OURS: &[&str] = &[".git", "target", "__pycache__"];

/// Files by their path from the repository's root, with `/` between the parts.
pub struct Tree {
    texts: BTreeMap<String, String>,
    paths: BTreeSet<String>,
    sources: BTreeMap<String, Source>,
}

impl Tree {
    /// The repository this test was built from, read once.
    pub fn repository() -> &'static Tree {
        static REPOSITORY: OnceLock<Tree> = OnceLock::new();
        REPOSITORY.get_or_init(|| {
            let mut files = Vec::new();
            collect(&root(), &root(), &mut files);
            Tree::of(files)
        })
    }

    /// A made-up tree for a negative control.
    pub fn sample(files: &[(&str, &str)]) -> Tree {
        Tree::of(
            files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned())))
                .collect(),
        )
    }

    fn of(files: Vec<(String, Option<String>)>) -> Tree {
        let mut tree = Tree {
            texts: BTreeMap::new(),
            paths: BTreeSet::new(),
            sources: BTreeMap::new(),
        };
        for (path, text) in files {
            // Directories count as paths: a link to one is good.
            for (slash, _) in path.match_indices('/') {
                tree.paths.insert(path[..slash].to_owned());
            }
            tree.paths.insert(path.clone());
            let Some(text) = text else { continue };
            if path.ends_with(".rs") {
                tree.sources
                    .insert(path.clone(), Source::read(&path, &text));
            }
            tree.texts.insert(path, text);
        }
        tree
    }

    /// Whether a file or a directory has this path.
    pub fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Every path, files and directories.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Every file that is UTF-8, with its text.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Every text file whose path ends so.
    pub fn ending(&self, end: &str) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(move |(path, _)| path.ends_with(end))
    }

    /// Every Rust file, read into what the rules ask for.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources
            .iter()
            .map(|(path, source)| (path.as_str(), source))
    }

    /// One Rust file.
    pub fn source(&self, path: &str) -> Option<&Source> {
        self.sources.get(path)
    }
}

/// The repository's root on this disk.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the docs crate has a parent")
}

/// Whether this run rewrites generated tables instead of comparing them (`UPDATE_EXPECT=1`).
pub fn update() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some()
}

fn collect(root: &Path, directory: &Path, files: &mut Vec<(String, Option<String>)>) {
    let entries = fs::read_dir(directory).expect("a directory of the repository is readable");
    for entry in entries {
        let entry = entry.expect("a directory entry is readable");
        let name = entry.file_name();
        let path = entry.path();
        let kind = entry.file_type().expect("a file has a type");
        if NOT_OURS.iter().any(|not_ours| name == *not_ours) || kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            collect(root, &path, files);
        } else {
            let relative = path.strip_prefix(root).expect("found beneath the root");
            let relative = relative
                .to_str()
                .expect("paths in the repository are UTF-8")
                .to_owned();
            let bytes = fs::read(&path).expect("a file of the repository is readable");
            files.push((relative, String::from_utf8(bytes).ok()));
        }
    }
}

#[test]
fn reads_the_repository_it_was_built_from() {
    let tree = Tree::repository();
    assert!(tree.has("docs/tests/it/tree.rs") && tree.has("docs/tests"));
    assert!(tree.source("docs/tests/it/tree.rs").is_some());
    assert!(
        tree.paths()
            .all(|path| !path.contains("/target/") && !path.starts_with(".git/"))
    );
}
