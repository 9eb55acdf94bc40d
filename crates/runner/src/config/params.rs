//! What a job's kind is told: a table that hides what it holds.

use std::fmt;

use serde::de::DeserializeOwned;

use super::diagnose::{KeyPath, hints};

/// The beginning of the message about a key that a kind does not have.
const UNKNOWN_KEY: &str = "unknown key";

/// Stands between message and hint in the one text that a serde error has.
const HINT: &str = "\nhint: ";

/// A job's `params`, with every `{ env }` and `{ file }` in it replaced by the text it stands for.
///
/// Debug shows its keys only, since its values may be secrets.
#[derive(Clone, Default, PartialEq)]
pub struct Params {
    table: toml::Table,
    place: KeyPath,
}

impl Params {
    /// The table. Do not print it.
    #[must_use]
    pub fn table(&self) -> &toml::Table {
        &self.table
    }

    /// The params that stand at `place`, which is in a job or in `[defaults]`.
    pub(crate) fn at(place: KeyPath, table: toml::Table) -> Self {
        Self { table, place }
    }

    /// Where what is wrong with them stands.
    pub(crate) fn place_of(&self, problem: &ParamProblem) -> KeyPath {
        self.place.below(KeyPath::parse(&problem.path).segments())
    }

    /// Reads them as the type that a kind wants.
    ///
    /// # Errors
    /// The first [`ParamProblem`]: where, what, and a hint where a misspelt key is likely.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ParamProblem> {
        read_params(&self.table)
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Params(")?;
        f.debug_set().entries(self.table.keys()).finish()?;
        f.write_str(")")
    }
}

/// What is wrong with a job's params, as its kind sees it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParamProblem {
    /// Steps down from `params`, dotted: `argv.0`. Empty for the params as a whole.
    pub path: String,
    /// What is wrong. Secrets in it are hidden before it is shown.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

impl ParamProblem {
    /// A problem at `path` below `params`.
    #[must_use]
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Whether the key at the path is wrong, and not what it is set to.
    pub(crate) fn is_about_key(&self) -> bool {
        self.message.starts_with(UNKNOWN_KEY)
    }
}

/// The kinds of jobs, as far as the check of a file needs them.
pub trait Kinds {
    /// Their names, in the order in which a message lists them.
    fn names(&self) -> Vec<String>;

    /// Which of a kind's params name a text file beside jobs.toml. The kind is told what is in it.
    fn files(&self, _kind: &str) -> &'static [&'static str] {
        &[]
    }

    /// Whether a kind accepts these params.
    ///
    /// # Errors
    /// [`ParamProblem`] when it does not. Called for known kinds only.
    fn check(&self, kind: &str, params: &toml::Table) -> Result<(), ParamProblem>;
}

/// Kinds that have names only, and accept any params.
impl Kinds for &[&str] {
    fn names(&self) -> Vec<String> {
        self.iter().map(|name| (*name).to_owned()).collect()
    }

    fn check(&self, _kind: &str, _params: &toml::Table) -> Result<(), ParamProblem> {
        Ok(())
    }
}

/// Reads params as the type that a kind wants. Mark that type with `deny_unknown_fields`, so that a
/// misspelt key is a problem and not a default.
///
/// # Errors
/// The first [`ParamProblem`]: where, what, and a hint where a misspelt key is likely.
pub fn read_params<T: DeserializeOwned>(params: &toml::Table) -> Result<T, ParamProblem> {
    let value = toml::Value::Table(params.clone());
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        explain(if path == "." { String::new() } else { path }, error.inner().message())
    })
}

/// The text with which a kind's own `Deserialize` says what is wrong and what to write instead.
pub(crate) fn hinted(message: impl fmt::Display, hint: impl fmt::Display) -> String {
    format!("{message}{HINT}{hint}")
}

/// Turns serde's words about a wrong key into ours.
fn explain(path: String, message: &str) -> ParamProblem {
    if let Some((message, hint)) = message.split_once(HINT) {
        return ParamProblem::new(path, message).with_hint(hint);
    }
    if let Some((key, known)) = unknown_field(message) {
        let at = if path.is_empty() || path == key { key.to_owned() } else { path };
        let at = if at.ends_with(key) { at } else { format!("{at}.{key}") };
        let problem = ParamProblem::new(at, format!("{UNKNOWN_KEY} {key:?}"));
        return match hints::nearest(key, known.iter().copied()) {
            Some(nearest) => problem.with_hint(format!("did you mean {nearest}?")),
            None if known.is_empty() => problem.with_hint("this kind takes none"),
            None => problem.with_hint(format!("the keys are {}", known.join(", "))),
        };
    }
    if let Some(key) = message.strip_prefix("missing field ").map(|rest| rest.trim_matches('`')) {
        return ParamProblem::new(path, format!("{key} is missing"));
    }
    ParamProblem::new(path, message)
}

/// The key and the known ones of "unknown field `a`, expected one of `b`, `c`".
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let (key, rest) = message.strip_prefix("unknown field `")?.split_once('`')?;
    Some((key, rest.split('`').skip(1).step_by(2).collect()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Told {
        #[expect(dead_code, reason = "only read into")]
        argv: Vec<String>,
        #[serde(default)]
        #[expect(dead_code, reason = "only read into")]
        env: BTreeMap<String, String>,
    }

    fn problem(text: &str) -> ParamProblem {
        read_params::<Told>(&text.parse().expect("TOML")).expect_err("a problem")
    }

    #[test]
    fn a_problem_says_where_in_the_params_it_stands() {
        assert_eq!(problem("argv = ['a', 1]").path, "argv[1]");
        assert_eq!(problem("argv = ['a']\nenv = { A = 1 }").path, "env.A");
        assert_eq!(problem(""), ParamProblem::new("", "argv is missing"));
    }

    #[test]
    fn a_misspelt_key_is_answered_with_the_key_that_was_meant() {
        let expected = ParamProblem::new("argvv", "unknown key \"argvv\"").with_hint("did you mean argv?");
        assert_eq!(problem("argvv = ['a']"), expected);
        let expected =
            ParamProblem::new("colour", "unknown key \"colour\"").with_hint("the keys are argv, env");
        assert_eq!(problem("argv = ['a']\ncolour = 1"), expected);
    }

    #[test]
    fn a_kinds_own_refusal_may_bring_its_hint() {
        let expected = ParamProblem::new("url", "it is wrong").with_hint("write another");
        assert_eq!(explain("url".into(), &hinted("it is wrong", "write another")), expected);
    }

    #[test]
    fn debug_shows_keys_and_no_values() {
        let table = "argv = ['S3CRET']".parse().expect("TOML");
        let params = Params::at(KeyPath::of(["jobs", "a", "params"]), table);
        assert_eq!(format!("{params:?}"), "Params({\"argv\"})");
    }
}
