//! One table of the file as its reader sees it: its keys, its layers, and a place to report problems.

use std::borrow::Cow;

use config::{File, FileFormat, Source, Value, ValueKind};

use super::diagnose::{Finding, KeyPath, Reported, Spot};
use super::keys::{Key, Keys};
use super::value::{BadValue, Table, is_written};
use super::walk::Walk;

/// A table and, below it, the tables that fill its gaps (`[defaults]` below a job).
#[derive(Clone)]
pub(crate) struct Section<'a> {
    keys: Keys,
    layers: Vec<(KeyPath, Cow<'a, Table>)>,
    walk: &'a Walk<'a>,
}

impl<'a> Section<'a> {
    /// The table at `path`, which has these keys. Keys that it must not have are reported.
    pub(crate) fn new(path: KeyPath, table: &'a Table, keys: Keys, walk: &'a Walk<'a>) -> Self {
        Self::checked(path, Cow::Borrowed(table), keys, walk)
    }

    fn checked(path: KeyPath, table: Cow<'a, Table>, keys: Keys, walk: &'a Walk<'a>) -> Self {
        let section = Self { keys, layers: vec![(path.clone(), table)], walk };
        let Some((_, table)) = section.layers.first() else { return section };
        for key in table.keys().filter(|key| keys.row(key).is_none()) {
            section.fault(&path, BadValue::unknown_key(key, &keys.names()));
        }
        section
    }

    /// The same with `table` below it.
    pub(crate) fn over(mut self, path: KeyPath, table: &'a Table) -> Self {
        self.layers.push((path, Cow::Borrowed(table)));
        self
    }

    /// Where the table stands.
    pub(crate) fn path(&self) -> KeyPath {
        self.layers.first().map(|(path, _)| path.clone()).unwrap_or_default()
    }

    /// The value of a key in the highest layer that has it, and where that is.
    fn find(&self, key: &str) -> Option<(&Value, KeyPath)> {
        debug_assert!(self.keys.row(key).is_some(), "{} has no row for {key}", self.keys.name);
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
        Self { layers: self.layers.iter().take(1).cloned().collect(), ..self.clone() }
    }

    /// The value of a key, if there is one.
    pub(crate) fn read<T>(&self, key: &Key<T>) -> Result<Option<T>, Reported> {
        self.read_then(key, Ok)
    }

    /// What `then` makes of the value of a key. What is wrong for `then` is reported at the value.
    pub(crate) fn read_then<T, U>(
        &self,
        key: &Key<T>,
        then: impl FnOnce(T) -> Result<U, BadValue>,
    ) -> Result<Option<U>, Reported> {
        let Some((value, path)) = self.find(key.name()) else { return Ok(None) };
        // Not even readable as TOML, and reported as that.
        if matches!(value.kind, ValueKind::Nil) {
            return Err(Reported);
        }
        let made = (key.parse)(value, self.walk).and_then(then);
        let made = made.map_err(|fault| self.fault(&path, fault))?;
        match key.row.refusal(&path.to_string(), value) {
            Some(fault) => Err(self.fault(&path, fault)),
            None => Ok(Some(made)),
        }
    }

    /// The value of a key that must be there.
    pub(crate) fn need<T>(&self, key: &Key<T>) -> Result<T, Reported> {
        self.need_or(key, None)
    }

    /// The value of a key that must be there; the hint says what to write when it is not.
    pub(crate) fn need_or<T>(&self, key: &Key<T>, hint: Option<&str>) -> Result<T, Reported> {
        self.read(key)?.ok_or_else(|| {
            let missing = BadValue::new(format!("{} is missing", key.name()));
            self.fault(&self.path(), missing.maybe_hint(hint.map(str::to_owned)))
        })
    }

    /// The table that is the value of a key, over its defaults. The table is empty where the key is not set.
    pub(crate) fn inner(&self, key: &Key<Table>, keys: Keys) -> Result<Section<'a>, Reported> {
        let table = self.read(key)?.unwrap_or_default();
        let path = self.place(key.name());
        let mut inner = Self::checked(path.clone(), Cow::Owned(table), keys, self.walk);
        inner.layers.push((path, Cow::Owned(defaults(keys))));
        Ok(inner)
    }

    /// Reports what is wrong with the value at `path`.
    pub(crate) fn fault(&self, path: &KeyPath, fault: BadValue) -> Reported {
        let BadValue { within, is_key, message, hint } = fault;
        let spot = if is_key { Spot::Key } else { Spot::Value };
        self.walk.findings.problem(Finding { path: path.below(within), spot, message, hint })
    }

    /// Reports what is wrong with a key whose value is right by itself.
    pub(crate) fn problem(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) -> Reported {
        self.fault(&self.place(key), BadValue::new(message).hint(hint))
    }

    /// Warns about a key.
    pub(crate) fn warning(&self, key: &str, message: impl Into<String>) {
        let (path, message) = (self.place(key), message.into());
        self.walk.findings.warning(Finding { path, spot: Spot::Value, message, hint: None });
    }
}

/// The default values of a table that is not a section.
fn defaults(keys: Keys) -> Table {
    File::from_str(&keys.defaults(), FileFormat::Toml).collect().unwrap_or_default()
}
