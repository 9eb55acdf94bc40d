//! One table of the file as its reader sees it: keys with their layers, and a place to complain.

use config::{Value, ValueKind};

use super::diagnose::{Finding, Findings, KeyPath, Reported, Spot};
use super::not_built;
use super::value::{Fault, Table, is_written};

/// A table and, below it, the table that fills its gaps (`[defaults]` below a job).
#[derive(Clone, Debug)]
pub(crate) struct Section<'a> {
    layers: Vec<(KeyPath, &'a Table)>,
    findings: &'a Findings,
}

impl<'a> Section<'a> {
    /// The table at `path`.
    pub(crate) fn new(path: KeyPath, table: &'a Table, findings: &'a Findings) -> Self {
        Self { layers: vec![(path, table)], findings }
    }

    /// The same with `table` below it.
    pub(crate) fn over(mut self, path: KeyPath, table: &'a Table) -> Self {
        self.layers.push((path, table));
        self
    }

    /// Where the table stands.
    pub(crate) fn path(&self) -> KeyPath {
        self.layers.first().map(|(path, _)| path.clone()).unwrap_or_default()
    }

    /// The value of a key in the highest layer that has it, and where that is.
    fn find(&self, key: &str) -> Option<(&'a Value, KeyPath)> {
        let mut layers = self.layers.iter();
        layers.find_map(|(path, table)| table.get(key).map(|value| (value, path.child(key))))
    }

    /// Where a key was set; the table itself when nobody set it.
    pub(crate) fn place(&self, key: &str) -> KeyPath {
        match self.find(key) {
            Some((value, path)) if is_written(value) => path,
            _ => self.path(),
        }
    }

    /// Whether the file or the environment sets the key.
    pub(crate) fn sets(&self, key: &str) -> bool {
        self.find(key).is_some_and(|(value, _)| is_written(value))
    }

    /// Whether the highest layer has the key.
    pub(crate) fn has_itself(&self, key: &str) -> bool {
        self.layers.first().is_some_and(|(_, table)| table.contains_key(key))
    }

    /// The highest layer alone.
    pub(crate) fn itself(&self) -> Self {
        Self { layers: self.layers.iter().take(1).cloned().collect(), findings: self.findings }
    }

    /// The value of a key, if it is set.
    pub(crate) fn read<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Result<Option<T>, Reported> {
        let Some((value, path)) = self.find(key) else { return Ok(None) };
        // Unreadable already as TOML, and reported as that.
        if matches!(value.kind, ValueKind::Nil) {
            return Err(Reported);
        }
        let parsed = parse(value).map_err(|fault| self.fault(&path, fault))?;
        match not_built::refusal(key, value) {
            Some(fault) => Err(self.fault(&path, fault)),
            None => Ok(Some(parsed)),
        }
    }

    /// The value of a key that must be there.
    pub(crate) fn need<T>(
        &self,
        key: &str,
        hint: &str,
        parse: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Result<T, Reported> {
        self.read(key, parse)?.ok_or_else(|| {
            let hint = (!hint.is_empty()).then(|| hint.to_owned());
            let (path, message) = (self.path(), format!("{key} is missing"));
            self.findings.problem(Finding { path, spot: Spot::Value, message, hint })
        })
    }

    /// Writes down what is wrong with the value at `path`.
    pub(crate) fn fault(&self, path: &KeyPath, fault: Fault) -> Reported {
        let Fault { within, is_key, message, hint } = fault;
        let spot = if is_key { Spot::Key } else { Spot::Value };
        self.findings.problem(Finding { path: path.below(within), spot, message, hint })
    }

    /// Writes down what is wrong with a key whose value is fine by itself.
    pub(crate) fn problem(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) -> Reported {
        self.fault(&self.place(key), Fault::new(message).hint(hint))
    }

    /// Writes down what is odd about a key.
    pub(crate) fn warning(&self, key: &str, message: impl Into<String>) {
        let (path, message) = (self.place(key), message.into());
        self.findings.warning(Finding { path, spot: Spot::Value, message, hint: None });
    }

    /// Refuses keys of the highest layer that are not among `known`.
    pub(crate) fn refuse_unknown(&self, known: &[&str]) {
        let Some((path, table)) = self.layers.first() else { return };
        for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
            self.fault(path, Fault::unknown_key(key, known));
        }
    }
}
