//! The conditions of a statement or script: what breaks without each, and which test fails.
//!
//! They are in `NAME.conditions.toml` beside `NAME.sql` or `NAME.lua`:
//!
//! ```toml
//! [[condition]]
//! words = "the job is not paused"
//! without = "a paused job runs"
//! test = "conformance::claims::a_paused_job_is_not_claimed_until_it_is_resumed"
//! cuts = [{ text = "AND paused_at IS NULL" }]
//!
//! [[spare]]
//! texts = ["WHERE true"]
//! covered = "none: the grammar needs it"
//! ```
//!
//! `words` identifies a condition. If two files have the same condition, their other values must be equal too.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::{Cut, Mutant};

const ENDING: &str = ".conditions.toml";

/// The conditions of one file.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The statement or script, from the root of the workspace.
    pub file: String,
    /// Conditions that are removed, one at a time.
    pub conditions: Vec<Condition>,
    /// Texts whose removal no test can notice.
    pub spares: Vec<Spare>,
}

/// A condition whose removal makes a test fail.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// What it demands.
    pub words: String,
    /// What breaks without it.
    pub without: String,
    /// The function that fails, as `folder::file::name` below the folder of its test program.
    pub test: String,
    /// The places of the condition. Each of them is removed alone.
    pub cuts: Vec<Text>,
}

/// A text to remove from the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// The file contains it exactly once.
    pub text: String,
    /// The replacement, which must not be longer.
    #[serde(default)]
    pub put: String,
    /// The name of another file of the same folder that contains the text. Without it: this file.
    #[serde(rename = "in")]
    pub elsewhere: Option<String>,
    /// Other conditions that have the same effect as this one. They are removed together with it.
    #[serde(default)]
    pub also: Vec<Text>,
}

/// Conditions that other conditions already imply, and why they stay.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spare {
    /// The file contains each of them exactly once.
    pub texts: Vec<String>,
    /// What implies them, or why they are not conditions.
    pub covered: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sidecar {
    #[serde(default, rename = "condition")]
    conditions: Vec<Condition>,
    #[serde(default, rename = "spare")]
    spares: Vec<Spare>,
}

impl Conditions {
    /// The conditions of every file in `folder` (from `root`) whose name ends with `.ending`, by name.
    ///
    /// # Panics
    /// When a file cannot be read or parsed, when there are conditions for a missing file, when a file does not
    /// contain a text exactly once, and when a file has the same `words` twice.
    #[must_use]
    pub fn in_folder(root: &Path, folder: &str, ending: &str) -> Vec<Self> {
        let path = root.join(folder);
        let entries = path.read_dir().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let names = entries.map(|entry| entry.expect("a folder's entry").file_name());
        let mut names: Vec<_> = names
            .filter_map(|name| name.to_str().and_then(|name| name.strip_suffix(ENDING)).map(str::to_owned))
            .collect();
        names.sort();
        let all: Vec<_> = names.iter().map(|name| Self::of(root, folder, name, ending)).collect();
        for (file, text) in all.iter().flat_map(Self::texts) {
            let place = fs::read_to_string(root.join(&file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            let times = place.matches(text).count();
            assert!(
                times == 1,
                "{file}: {text:?} is there {times} times, and must be there once: correct its conditions"
            );
        }
        all
    }

    fn of(root: &Path, folder: &str, name: &str, ending: &str) -> Self {
        let (sidecar, file) = (format!("{folder}/{name}{ENDING}"), format!("{folder}/{name}.{ending}"));
        assert!(root.join(&file).is_file(), "{sidecar}: there is no {file}: rename it, or remove it");
        let text = fs::read_to_string(root.join(&sidecar)).expect("it was there");
        let Sidecar { conditions, spares } =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{sidecar}: {error}"));
        for (number, condition) in conditions.iter().enumerate() {
            let words = &condition.words;
            let first = conditions.iter().position(|other| other.words == *words);
            assert!(first == Some(number), "{sidecar}: {words:?} is there twice: merge the two");
            assert!(!condition.cuts.is_empty(), "{sidecar}: {words:?} removes nothing");
        }
        Self { file, conditions, spares }
    }

    /// The file's name without folder and ending.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = self.file.rsplit_once('/').map_or(&*self.file, |(_, name)| name);
        name.rsplit_once('.').map_or(name, |(name, _)| name)
    }

    /// A mutant for each place of each condition. `test_named` makes a test's full name from the value of `test`.
    pub fn mutants(&self, test_named: impl Fn(&str) -> String) -> impl Iterator<Item = Mutant> {
        self.conditions.iter().flat_map(move |condition| {
            let test = test_named(&condition.test);
            condition.cuts.iter().map(move |text| {
                let cuts = std::iter::once(text).chain(&text.also).map(|text| self.cut(text)).collect();
                Mutant { cuts, test: test.clone() }
            })
        })
    }

    /// Every text that these conditions name, and the file that contains it.
    pub fn texts(&self) -> impl Iterator<Item = (String, &str)> {
        let cuts = self.conditions.iter().flat_map(|condition| &condition.cuts);
        let cuts = cuts.flat_map(|text| std::iter::once(text).chain(&text.also));
        let spares = self.spares.iter().flat_map(|spare| &spare.texts);
        cuts.map(|text| (self.place_of(text), &*text.text))
            .chain(spares.map(|text| (self.file.clone(), &**text)))
    }

    fn cut(&self, text: &Text) -> Cut {
        Cut { file: self.place_of(text), text: text.text.clone(), put: text.put.clone() }
    }

    fn place_of(&self, text: &Text) -> String {
        let own = self.name();
        let (before, after) = self.file.rsplit_once(own).expect("the name is a part of it");
        format!("{before}{}{after}", text.elsewhere.as_deref().unwrap_or(own))
    }
}

/// A row of a page's table for each condition: its words; for each of `columns` the files that contain it; what
/// breaks without it; and its test, in a file below `tests`.
///
/// # Panics
/// When two files have different values for the same condition.
#[must_use]
pub fn condition_rows(columns: &[&[Conditions]], tests: &str) -> Vec<String> {
    struct Row<'c> {
        condition: &'c Condition,
        file: &'c str,
        places: Vec<Vec<&'c str>>,
    }
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (column, files) in columns.iter().enumerate() {
        for of in *files {
            for condition in &of.conditions {
                let known = rows.iter().position(|row| row.condition.words == condition.words);
                let row = known.unwrap_or_else(|| {
                    rows.push(Row { condition, file: &of.file, places: vec![Vec::new(); columns.len()] });
                    rows.len() - 1
                });
                let Row { condition: first, file, places } = &mut rows[row];
                let agree = (&first.without, &first.test) == (&condition.without, &condition.test);
                assert!(agree, "{file} and {} disagree about {:?}", of.file, condition.words);
                places[column].push(of.name());
            }
        }
    }
    let line = |Row { condition, places, .. }: Row<'_>| {
        let places: Vec<_> = places
            .into_iter()
            .map(|names| if names.is_empty() { "–".to_owned() } else { names.join(", ") })
            .collect();
        let (file, name) = condition.test.rsplit_once("::").expect("a test's file stands before its name");
        let (words, without, places) = (&condition.words, &condition.without, places.join(" | "));
        format!("| {words} | {places} | {without} | `{tests}/{}.rs::{name}` |", file.replace("::", "/"))
    };
    rows.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDECAR: &str = "[[condition]]\nwords = 'it is even'\nwithout = 'it is odd'\ntest = 'a::b::c'\n\
                           cuts = [{ text = 'AND even' }]\n[[spare]]\ntexts = ['true']\ncovered = 'none'\n";

    /// A folder with these files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sql")).unwrap();
        for (name, text) in files {
            fs::write(dir.path().join("sql").join(name), text).unwrap();
        }
        dir
    }

    fn read(files: &[(&str, &str)]) -> Vec<Conditions> {
        Conditions::in_folder(folder(files).path(), "sql", "sql")
    }

    #[track_caller]
    fn refused(files: &[(&str, &str)], word: &str) {
        let panic = std::panic::catch_unwind(|| read(files)).unwrap_err();
        let said = panic.downcast_ref::<String>().unwrap();
        assert!(said.contains(word), "{said}");
    }

    const STATEMENT: (&str, &str) = ("find.sql", "SELECT 1 WHERE true AND even");

    #[test]
    fn a_condition_becomes_a_mutant_and_a_line_of_the_page() {
        let read = read(&[STATEMENT, ("find.conditions.toml", SIDECAR)]);
        let mutants: Vec<_> = read[0].mutants(|test| format!("{test}!")).collect();
        assert_eq!(mutants.len(), 1);
        assert_eq!((&*mutants[0].cuts[0].file, &*mutants[0].test), ("sql/find.sql", "a::b::c!"));
        let rows = condition_rows(&[&read, &[]], "tests/x");
        assert_eq!(rows, ["| it is even | find | – | it is odd | `tests/x/a/b.rs::c` |"]);
        let texts: Vec<_> = read[0].texts().map(|(_, text)| text).collect();
        assert_eq!(texts, ["AND even", "true"]);
    }

    #[test]
    fn conditions_without_a_statement_are_refused() {
        refused(&[("gone.conditions.toml", SIDECAR)], "there is no sql/gone.sql");
    }

    #[test]
    fn a_text_that_does_not_stand_in_its_statement_exactly_once_is_refused() {
        refused(&[("find.sql", "WHERE true"), ("find.conditions.toml", SIDECAR)], "is there 0 times");
        let twice = "WHERE true AND even AND even";
        refused(&[("find.sql", twice), ("find.conditions.toml", SIDECAR)], "is there 2 times");
        let spare = "SELECT 1 WHERE 1 AND even";
        refused(&[("find.sql", spare), ("find.conditions.toml", SIDECAR)], "\"true\" is there 0 times");
        let elsewhere = SIDECAR.replace("even' }", "even', in = 'other' }");
        refused(&[STATEMENT, ("find.conditions.toml", &elsewhere)], "sql/other.sql: ");
    }

    #[test]
    fn a_key_that_does_not_exist_is_refused_with_its_file() {
        let misspelt = SIDECAR.replace("without", "witout");
        refused(&[STATEMENT, ("find.conditions.toml", &misspelt)], "sql/find.conditions.toml: ");
        let twice = format!("{SIDECAR}{SIDECAR}");
        refused(&[STATEMENT, ("find.conditions.toml", &twice)], "is there twice");
    }

    #[test]
    fn files_that_disagree_about_a_condition_are_refused() {
        let other = SIDECAR.replace("odd", "something else");
        let both = read(&[
            STATEMENT,
            ("find.conditions.toml", SIDECAR),
            ("seek.sql", STATEMENT.1),
            ("seek.conditions.toml", &other),
        ]);
        let panic = std::panic::catch_unwind(|| condition_rows(&[&both], "tests")).unwrap_err();
        assert!(panic.downcast_ref::<String>().unwrap().contains("sql/find.sql and sql/seek.sql disagree"));
    }
}
