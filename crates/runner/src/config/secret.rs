//! Text that is never printed, and where it comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use config::{Value, ValueKind};

use super::diagnose::Findings;
use super::environment::Environment;
use super::value::{BadValue, Table, describe};

/// More than a secret needs: a device or a log that is named by mistake is not read to its end.
const LARGEST_FILE: u64 = 64 * 1024;

/// Text that must never be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// Follows `{ env = "NAME" }` and `{ file = "/path" }`.
#[derive(Debug)]
pub(crate) struct Resolver<'a> {
    pub(crate) environment: &'a Environment,
    /// Where relative files are: beside jobs.toml, wherever the process was started.
    pub(crate) directory: PathBuf,
    pub(crate) findings: &'a Findings,
}

impl Resolver<'_> {
    /// A secret as plain text, `{ env = "NAME" }` or `{ file = "/path" }`. Never empty.
    pub(crate) fn secret(&self, value: &Value) -> Result<Secret, BadValue> {
        let text = match &value.kind {
            ValueKind::String(text) if text.trim().is_empty() => return Err(BadValue::new("this is empty")),
            ValueKind::String(text) => without_line_end(text).to_owned(),
            ValueKind::Table(table) => match reference(table) {
                Some(reference) => self.follow(reference)?,
                None => return Err(expected("a table")),
            },
            _ => return Err(expected(describe(value))),
        };
        self.findings.secret(&text);
        Ok(Secret::new(text))
    }

    /// The same table with every reference below it replaced by its text. The table itself is no
    /// reference, whatever its keys: `params = { file = "report.sql" }` names a file to a kind.
    pub(crate) fn resolve_within(&self, table: &Table) -> Result<toml::Table, Vec<BadValue>> {
        let mut resolved = toml::Table::new();
        let mut faults = Vec::new();
        for (key, value) in table {
            match self.resolve(value) {
                Ok(Some(value)) => drop(resolved.insert(key.clone(), value)),
                Ok(None) => {}
                Err(found) => faults.extend(found.into_iter().map(|fault| fault.under(key))),
            }
        }
        if faults.is_empty() { Ok(resolved) } else { Err(faults) }
    }

    fn resolve(&self, value: &Value) -> Result<Option<toml::Value>, Vec<BadValue>> {
        Ok(Some(match &value.kind {
            ValueKind::Nil | ValueKind::I128(_) | ValueKind::U64(_) | ValueKind::U128(_) => return Ok(None),
            ValueKind::Boolean(truth) => toml::Value::Boolean(*truth),
            ValueKind::I64(number) => toml::Value::Integer(*number),
            ValueKind::Float(number) => toml::Value::Float(*number),
            ValueKind::String(text) => toml::Value::String(text.clone()),
            ValueKind::Array(items) => {
                let mut resolved = Vec::new();
                let mut faults = Vec::new();
                for (at, item) in items.iter().enumerate() {
                    match self.resolve(item) {
                        Ok(item) => resolved.extend(item),
                        Err(found) => {
                            faults.extend(found.into_iter().map(|fault| fault.under(&at.to_string())))
                        }
                    }
                }
                if !faults.is_empty() {
                    return Err(faults);
                }
                toml::Value::Array(resolved)
            }
            ValueKind::Table(table) => match reference(table) {
                Some(reference) => {
                    let text = self.follow(reference).map_err(|fault| vec![fault])?;
                    self.findings.secret(&text);
                    toml::Value::String(text)
                }
                None => toml::Value::Table(self.resolve_within(table)?),
            },
        }))
    }

    fn follow(&self, reference: Reference<'_>) -> Result<String, BadValue> {
        match reference {
            Reference::Env(name) => {
                self.findings.secret_variable(name);
                match self.environment.get(name).map(|text| text.map(without_line_end)) {
                    Ok(Some(text)) if !text.is_empty() => Ok(text.to_owned()),
                    Ok(Some(_)) => Err(BadValue::new(format!("the environment variable {name} is empty"))),
                    Ok(None) => Err(BadValue::new(format!("the environment variable {name} is not set"))),
                    Err(not_unicode) => Err(BadValue::new(not_unicode.to_string())),
                }
                .map_err(|fault| fault.under("env"))
            }
            Reference::File(file) => read(&self.directory.join(file)).map_err(|fault| fault.under("file")),
        }
    }
}

enum Reference<'a> {
    Env(&'a str),
    File(&'a str),
}

fn reference(table: &Table) -> Option<Reference<'_>> {
    let (key, value) = table.iter().next().filter(|_| table.len() == 1)?;
    match (key.as_str(), &value.kind) {
        ("env", ValueKind::String(name)) => Some(Reference::Env(name)),
        ("file", ValueKind::String(file)) => Some(Reference::File(file)),
        _ => None,
    }
}

fn expected(found: &str) -> BadValue {
    BadValue::new(format!("expected text, {{ env = \"NAME\" }} or {{ file = \"/path\" }}, found {found}"))
}

/// A secret without one last line end: editors, `echo` and `$(cat)` add it, and it is never meant.
fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// The text of the file.
fn read(path: &Path) -> Result<String, BadValue> {
    let shown = path.display();
    let cannot = |error: std::io::Error| BadValue::new(format!("cannot read the file {shown}: {error}"));
    let size = std::fs::metadata(path).map_err(cannot)?.len();
    if size > LARGEST_FILE {
        return Err(BadValue::new(format!("the file {shown} has {size} bytes, more than a secret needs")));
    }
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    let text = without_line_end(&text);
    if text.is_empty() {
        return Err(BadValue::new(format!("the file {shown} is empty")));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_last_line_end_is_no_part_of_a_secret() {
        for (text, secret) in
            [("a", "a"), ("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("\n", ""), (" a ", " a ")]
        {
            assert_eq!(without_line_end(text), secret, "{text:?}");
        }
    }

    #[test]
    fn a_secret_hides_itself() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(***)");
    }
}
