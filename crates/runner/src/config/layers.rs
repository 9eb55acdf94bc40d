//! The layers: defaults, above them the file, above it the environment.

use std::collections::{BTreeMap, HashMap};

use config::{ConfigError, File, FileFormat, Map, Source, Value, ValueKind};
use toml::de::{DeTable, DeValue};

use super::diagnose::{Finding, Findings, KeyPath, Spot, hints, is_telling_text};
use super::document;
use super::environment::Environment;
use super::keys::{self, KNOWN_KEYS, SECTIONS};
use super::value::Table;

/// How the names of our variables begin.
const PREFIX: &str = "RUNNER__";

/// The sections with every layer in them, and which variable set which key.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    pub(crate) sections: HashMap<&'static str, Table>,
    pub(crate) variables: BTreeMap<KeyPath, String>,
}

/// Puts the layers together.
pub(crate) fn layer(tree: &DeTable<'_>, environment: &Environment, findings: &Findings) -> Layers {
    let (values, variables) = variables(environment, findings);
    let from_environment = config::Environment::with_prefix("RUNNER")
        .prefix_separator("__")
        .separator("__")
        .ignore_empty(true)
        .source(Some(values));
    let layered = config::Config::builder()
        .add_source(File::from_str(&keys::defaults(), FileFormat::Toml))
        .add_source(FileLayer(file_sections(tree, findings)))
        .add_source(from_environment)
        .build();
    let mut sections = HashMap::new();
    match layered.map(|layered| layered.cache.kind) {
        Ok(ValueKind::Table(mut found)) => {
            for section in SECTIONS {
                if let Some(Value { kind: ValueKind::Table(table), .. }) = found.remove(section.name) {
                    sections.insert(section.name, table);
                }
            }
        }
        Ok(_) => {}
        Err(error) => {
            let message = format!("the layers do not fit together: {error}");
            findings.problem(Finding { path: KeyPath::default(), spot: Spot::File, message, hint: None });
        }
    }
    Layers { sections, variables }
}

/// Refuses top-level keys that are no section.
pub(crate) fn refuse_unknown_sections(tree: &DeTable<'_>, findings: &Findings) {
    for key in tree.keys().map(|key| key.get_ref()) {
        if !(KNOWN_KEYS.is_table)(key) {
            let finding = unknown_section(key, Spot::Key, KeyPath::of([key]));
            findings.problem(finding);
        }
    }
}

fn unknown_section(name: &str, spot: Spot, path: KeyPath) -> Finding {
    let sections = SECTIONS.map(|section| section.name);
    let known = sections.into_iter().chain(["jobs"]);
    let hint = match hints::foreign_section(name).or_else(|| hints::nearest(name, known)) {
        Some("jobs") => "jobs are declared as [jobs.NAME]".to_owned(),
        Some(section) => format!("did you mean [{section}]?"),
        None => format!("the sections are {} and jobs", sections.join(", ")),
    };
    Finding { path, spot, message: format!("unknown section {name:?}"), hint: Some(hint) }
}

/// What the file says, as a layer among others.
#[derive(Clone, Debug)]
struct FileLayer(Table);

impl Source for FileLayer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        Ok(self.0.clone())
    }
}

fn file_sections(tree: &DeTable<'_>, findings: &Findings) -> Table {
    let mut sections = Table::new();
    for name in SECTIONS.map(|section| section.name) {
        let Some(value) = tree.get(name) else { continue };
        let path = KeyPath::of([name]);
        match value.get_ref() {
            DeValue::Table(table) => {
                let values = document::values(table, &path, findings);
                sections.insert(name.to_owned(), Value::new(None, ValueKind::Table(values)));
            }
            other => {
                let message = format!("expected the section [{name}], found {}", in_words(other));
                findings.problem(Finding { path, spot: Spot::Value, message, hint: None });
            }
        }
    }
    sections
}

/// The variables that reach a section, as `config` wants them, and the key that each one sets.
fn variables(
    environment: &Environment,
    findings: &Findings,
) -> (Map<String, String>, BTreeMap<KeyPath, String>) {
    let mut values = Map::new();
    let mut keys: BTreeMap<KeyPath, String> = BTreeMap::new();
    for name in environment.names() {
        let Some(rest) = name.strip_prefix(PREFIX) else {
            suggest_prefix(name, findings);
            continue;
        };
        // Whoever reads the variables of a command must not find the runner's own there.
        findings.secret_variable(name);
        let problem = |message: String, hint: Option<String>| {
            let spot = Spot::Variable(name.to_owned());
            findings.problem(Finding { path: KeyPath::default(), spot, message, hint });
        };
        let segments: Vec<String> = rest.to_lowercase().split("__").map(str::to_owned).collect();
        let [section, steps @ ..] = segments.as_slice() else { continue };
        if section == "jobs" {
            let hint = "change the job in the file, or change all jobs with RUNNER__DEFAULTS__…".to_owned();
            problem("a variable cannot change a single job".to_owned(), Some(hint));
        } else if !keys::is_section(section) {
            let finding = unknown_section(section, Spot::Variable(name.to_owned()), KeyPath::default());
            findings.problem(finding);
        } else if steps.is_empty() || segments.iter().any(|step| !is_key(step)) {
            problem("this names no key".to_owned(), Some("write for example RUNNER__LOCK__URL".to_owned()));
        } else {
            let text = match environment.get(name) {
                // Empty counts as unset: compose files and shells often leave such variables behind.
                Ok(text) => text.filter(|text| !text.is_empty()),
                Err(not_unicode) => {
                    problem(not_unicode.to_string(), None);
                    None
                }
            };
            let Some(text) = text else { continue };
            if segments.iter().any(|step| KNOWN_KEYS.is_secret(step)) || is_telling_text(text) {
                findings.secret(text);
            }
            if let Some(other) = keys.insert(KeyPath::of(&segments), name.to_owned()) {
                problem(format!("{other} sets the same key"), Some("remove one of the two".to_owned()));
            }
            values.insert(name.to_owned(), text.to_owned());
        }
    }
    (values, keys)
}

/// Whether a part of a name is a key. `config` would read more into it: `RUNNER__LOCK__A[0]`.
fn is_key(step: &str) -> bool {
    !step.is_empty() && step.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// `RUNNER_LOCK_TTL` has no effect, which whoever set it does not expect.
fn suggest_prefix(name: &str, findings: &Findings) {
    let Some(rest) = name.strip_prefix("RUNNER_") else { return };
    let Some((section, key)) = rest.split_once('_') else { return };
    if keys::is_section(&section.to_lowercase()) && !key.is_empty() && !key.starts_with('_') {
        let message = format!("{name} has no effect");
        let hint = Some(format!("write two underscores: RUNNER__{section}__{key}"));
        let spot = Spot::Variable(name.to_owned());
        findings.warning(Finding { path: KeyPath::default(), spot, message, hint });
    }
}

/// The tables of the jobs. Whatever else stands below `jobs` is refused.
pub(crate) fn jobs<'a, 't>(tree: &'a DeTable<'t>, findings: &Findings) -> Vec<(&'a str, &'a DeTable<'t>)> {
    let refuse = |path: KeyPath, found: &DeValue<'_>| {
        let message = format!("expected a job's table, found {}", in_words(found));
        let hint = Some("write [jobs.NAME], and below it the keys of the job".to_owned());
        findings.problem(Finding { path, spot: Spot::Key, message, hint });
    };
    let path = KeyPath::of(["jobs"]);
    let Some(jobs) = tree.get("jobs").map(|jobs| jobs.get_ref()) else { return Vec::new() };
    let Some(jobs) = jobs.as_table() else {
        refuse(path, jobs);
        return Vec::new();
    };
    let mut tables = Vec::new();
    for (name, value) in jobs {
        match value.get_ref() {
            DeValue::Table(table) => tables.push((name.get_ref().as_ref(), table)),
            other => refuse(path.child(name.get_ref()), other),
        }
    }
    tables
}

fn in_words(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
        DeValue::String(_) => "text",
        _ => "a single value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_of_its_section() {
        let layers = layer(&DeTable::new(), &Environment::default(), &Findings::default());
        for section in ["runner", "log", "lock", "ledger", "defaults"] {
            assert!(layers.sections.contains_key(section), "{section}");
        }
        assert!(!layers.sections.contains_key("admin"));
    }
}
