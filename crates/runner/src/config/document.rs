//! The file as text, and its tree as values.

use std::path::Path;
use std::sync::Arc;

use config::{Value, ValueKind};
use toml::de::{DeTable, DeValue};

use super::diagnose::{Finding, Findings, KeyPath, Reported, Spot};
use super::value::{FROM_FILE, Table};

/// How to begin an empty file.
const FIRST_JOB: &str = "begin with [jobs.hello], every = \"5s\", kind = \"command\", params = { argv = [\"/bin/echo\", \"hello\"] }";

/// Reads the file. A problem is about the file as a whole, or about the first byte that is not UTF-8.
pub(crate) fn read(path: &Path, findings: &Findings) -> Result<Arc<str>, Reported> {
    let bytes = std::fs::read(path).map_err(|error| {
        let hint = "name the file with --config FILE or RUNNER_CONFIG".to_owned();
        whole_file(findings, format!("cannot read it: {error}"), Some(hint))
    })?;
    String::from_utf8(bytes).map(Arc::from).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        whole_file(findings, format!("line {line} is not UTF-8 text"), None)
    })
}

/// Refuses a file that has nothing to run; `Ok` when it has jobs.
pub(crate) fn require_jobs(text: &str, tree: &DeTable<'_>, findings: &Findings) -> Result<(), Reported> {
    let says_something = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let message = match tree.get("jobs").map(|jobs| jobs.get_ref()) {
        None if !text.trim_start_matches('\u{feff}').lines().any(says_something) => {
            "the file is empty: there is no job to run"
        }
        None => "no job is declared: there is nothing to run",
        Some(DeValue::Table(jobs)) if jobs.is_empty() => "[jobs] is empty: there is nothing to run",
        Some(_) => return Ok(()),
    };
    Err(whole_file(findings, message.to_owned(), Some(FIRST_JOB.to_owned())))
}

/// A table of the file as values whose origin is the file. Numbers that do not fit are reported.
pub(crate) fn values(table: &DeTable<'_>, path: &KeyPath, findings: &Findings) -> Table {
    let origin = FROM_FILE.to_owned();
    let entries = table.iter();
    entries
        .map(|(key, value)| {
            let path = path.child(key.get_ref());
            (key.get_ref().clone().into_owned(), node(value.get_ref(), &path, &origin, findings))
        })
        .collect()
}

fn node(value: &DeValue<'_>, path: &KeyPath, origin: &String, findings: &Findings) -> Value {
    let unreadable = |message: String| {
        findings.problem(Finding { path: path.clone(), spot: Spot::Value, message, hint: None });
        ValueKind::Nil
    };
    let kind = match value {
        DeValue::String(text) => ValueKind::String(text.clone().into_owned()),
        DeValue::Boolean(truth) => ValueKind::Boolean(*truth),
        // A time becomes text: `config` has no type for it. The reader of `at` parses it again.
        DeValue::Datetime(instant) => ValueKind::String(instant.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => ValueKind::I64(number),
            Err(_) => unreadable("the number is too large".to_owned()),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => ValueKind::Float(number),
            Err(_) => unreadable("this is not a number".to_owned()),
        },
        DeValue::Array(items) => {
            let items = items.iter().enumerate();
            let nodes =
                items.map(|(at, item)| node(item.get_ref(), &path.child(&at.to_string()), origin, findings));
            ValueKind::Array(nodes.collect())
        }
        DeValue::Table(table) => ValueKind::Table(values(table, path, findings)),
    };
    Value::new(Some(origin), kind)
}

fn whole_file(findings: &Findings, message: String, hint: Option<String>) -> Reported {
    findings.problem(Finding { path: KeyPath::default(), spot: Spot::File, message, hint })
}
