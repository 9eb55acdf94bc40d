//! A directory with one jobs.toml in it, and an environment of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use runner::internal::config::{
    Config, ConfigErrors, Environment, Kinds, ParamProblem, Problem, read_params,
};
use runner::internal::ledger::check_url;
use serde::Deserialize;

/// A job that is fine, to put beside one that is not.
pub(crate) const GOOD: &str =
    "[jobs.good]\nevery = \"5s\"\nkind = \"command\"\nparams = { argv = [\"/bin/true\"] }\n";

/// Where a file lies while it is loaded.
pub(crate) struct Desk {
    directory: tempfile::TempDir,
    environment: BTreeMap<String, String>,
}

impl Desk {
    /// A desk with `text` as its jobs.toml.
    pub(crate) fn with(text: &str) -> Self {
        let desk =
            Self { directory: tempfile::tempdir().expect("a directory"), environment: BTreeMap::new() };
        desk.put("jobs.toml", text)
    }

    /// The same with another file beside it.
    pub(crate) fn put(self, name: &str, text: &str) -> Self {
        std::fs::write(self.directory.path().join(name), text).expect("written");
        self
    }

    /// The same with a variable set.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Where its jobs.toml lies.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("jobs.toml")
    }

    /// What the load makes of it.
    pub(crate) fn load(&self) -> Result<Config, ConfigErrors> {
        let environment: Environment =
            self.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Config::load(&self.path(), &environment, &Shop, &check_url)
    }

    /// The configuration; the test fails with all problems if there is none.
    pub(crate) fn config(&self) -> Config {
        self.load().unwrap_or_else(|errors| panic!("refused:\n{errors}"))
    }

    /// What is wrong with it.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        match self.load() {
            Ok(config) => panic!("accepted: {config:?}"),
            Err(errors) => errors.problems().to_vec(),
        }
    }

    /// All that is printed about it, with the directory left out.
    pub(crate) fn printed(&self) -> String {
        let errors = self.load().err().unwrap_or_else(|| panic!("accepted"));
        errors.to_string().replace(&format!("{}/", self.directory.path().display()), "")
    }
}

/// The one problem of a file: its dotted key, message and hint.
pub(crate) fn only_problem(text: &str) -> (String, String, String) {
    let problems = Desk::with(text).problems();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let problem = &problems[0];
    (problem.key.clone(), problem.message.clone(), problem.hint.clone().unwrap_or_default())
}

/// A job with further keys.
pub(crate) fn job_with(keys: &str) -> String {
    format!("[jobs.a]\nevery = \"5s\"\nkind = \"command\"\nparams = {{ argv = [\"/bin/true\"] }}\n{keys}\n")
}

/// Two kinds: `command` wants an argv, `report` takes anything.
#[derive(Debug)]
pub(crate) struct Shop;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandParams {
    #[serde(rename = "argv")]
    _argv: Vec<String>,
    #[serde(default, rename = "env")]
    _env: BTreeMap<String, String>,
    #[serde(default, rename = "limit")]
    _limit: Option<u8>,
}

impl Kinds for Shop {
    fn names(&self) -> Vec<String> {
        vec!["command".to_owned(), "report".to_owned()]
    }

    fn check(&self, kind: &str, params: &toml::Table) -> Result<(), ParamProblem> {
        match kind {
            "command" => read_params::<CommandParams>(params).map(drop),
            _ => Ok(()),
        }
    }
}
