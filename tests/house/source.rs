//! A file of the project as the rules see it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::reading::{self, Reading};

/// What is not ours to judge.
const NOT_OURS: [&str; 2] = ["target", ".git"];

/// One text file, its path relative to the root of the workspace.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    reading: OnceLock<Reading>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into(), reading: OnceLock::new() }
    }

    /// What stands in a Rust file. It is parsed once.
    pub(crate) fn rust(&self) -> &Reading {
        self.reading.get_or_init(|| match reading::read(&self.text) {
            Ok(reading) => reading,
            Err((line, error)) => panic!("{}", self.breach(line, &format!("this is no Rust: {error}"))),
        })
    }

    /// The lines with their numbers, comments and all, but for those under `#[cfg(test)]`.
    pub(crate) fn lines_without_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = &self.rust().tests;
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        lines.filter(|(number, _)| !tests.iter().any(|lines| lines.contains(number)))
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn is_under(&self, prefix: &str) -> bool {
        self.path.starts_with(prefix)
    }

    /// The file's name without its ending.
    pub(crate) fn stem(&self) -> &str {
        Path::new(&self.path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    /// What is wrong in which line, for the person who has to mend it.
    pub(crate) fn breach(&self, line: usize, advice: &str) -> String {
        format!("{}:{line}: {advice}", self.path)
    }

    /// A breach for every line in which `is_in` finds something.
    pub(crate) fn breaches(&self, is_in: impl Fn(&str) -> bool, advice: &str) -> Vec<String> {
        let lines = self.text.lines().enumerate().filter(|(_, line)| is_in(line));
        lines.map(|(index, _)| self.breach(index + 1, advice)).collect()
    }
}

/// Every text file of the project, read once for all tests of a process.
pub(crate) fn project() -> &'static [Source] {
    static PROJECT: OnceLock<Vec<Source>> = OnceLock::new();
    PROJECT.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut sources = Vec::new();
        read_below(&root, &root, &mut sources);
        sources
    })
}

fn read_below(root: &Path, dir: &Path, sources: &mut Vec<Source>) {
    let mut entries: Vec<PathBuf> = dir.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if NOT_OURS.contains(&name) {
            continue;
        }
        if path.is_dir() {
            read_below(root, &path, sources);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            sources.push(Source::new(path.strip_prefix(root).unwrap().to_str().unwrap(), &text));
        }
    }
}

/// The Rust below `prefix`, less the files that are compiled for tests only.
pub(crate) fn rust_under<'a>(project: &'a [Source], prefix: &str) -> Vec<&'a Source> {
    let sources: Vec<_> =
        project.iter().filter(|source| source.is_rust() && source.is_under(prefix)).collect();
    let tests: Vec<PathBuf> = sources.iter().flat_map(|source| test_files(source)).collect();
    let is_test = |source: &Source| tests.iter().any(|test| Path::new(&source.path).starts_with(test));
    sources.into_iter().filter(|source| !is_test(source)).collect()
}

/// The files, or the folders, of the modules that this file declares under `#[cfg(test)]`.
fn test_files(source: &Source) -> impl Iterator<Item = PathBuf> {
    let path = Path::new(&source.path);
    let owns_its_folder = matches!(source.stem(), "mod" | "lib" | "main");
    let folder = if owns_its_folder { path.with_file_name("") } else { path.with_extension("") };
    source.rust().test_files.iter().flat_map(move |file| {
        if file.ends_with(".rs") {
            vec![path.with_file_name(file)]
        } else {
            vec![folder.join(file), folder.join(format!("{file}.rs"))]
        }
    })
}

#[test]
fn a_file_that_is_compiled_for_tests_only_is_no_product() {
    let sources = [
        Source::new("crates/a/src/mod.rs", "#[cfg(test)]\nmod tests;\nmod b;"),
        Source::new("crates/a/src/b.rs", "#[cfg(test)]\nmod c;\n#[cfg(test)]\n#[path = \"d.rs\"]\nmod e;"),
        Source::new("crates/a/src/b/c/mod.rs", ""),
        Source::new("crates/a/src/c.rs", ""),
        Source::new("crates/a/src/d.rs", ""),
        Source::new("crates/a/src/tests.rs", ""),
        Source::new("tests/other.rs", ""),
    ];
    let paths: Vec<_> =
        rust_under(&sources, "crates/").into_iter().map(|source| source.path.as_str()).collect();
    assert_eq!(paths, ["crates/a/src/mod.rs", "crates/a/src/b.rs", "crates/a/src/c.rs"]);
}
