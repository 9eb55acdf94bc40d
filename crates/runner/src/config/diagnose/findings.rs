//! What a load finds out on its way: problems, warnings, secrets. Nothing stops at the first problem.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::key_path::KeyPath;

/// Something to say about one place, before the place has been looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Finding {
    pub(crate) path: KeyPath,
    pub(crate) spot: Spot,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// What of a place is underlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Spot {
    /// The value at the path; what stands nearest above it when it is not there.
    Value,
    /// The key at the path.
    Key,
    /// These bytes, whatever the path.
    Bytes(Range<usize>),
    /// An environment variable.
    Variable(String),
    /// The file as a whole.
    File,
}

/// The problem has been written down; whoever holds this only has to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reported;

/// Collects while the file is walked. Shared by reference within one load, hence the cells.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    problems: RefCell<HashSet<Finding>>,
    warnings: RefCell<HashSet<Finding>>,
    secrets: RefCell<BTreeSet<String>>,
    secret_env: RefCell<BTreeSet<String>>,
}

impl Findings {
    /// Writes a problem down, once: a bad `[defaults]` is met again in every job.
    pub(crate) fn problem(&self, finding: Finding) -> Reported {
        self.problems.borrow_mut().insert(finding);
        Reported
    }

    /// Writes down something odd that is no reason to stop.
    pub(crate) fn warning(&self, finding: Finding) {
        self.warnings.borrow_mut().insert(finding);
    }

    /// Remembers text that no message may show.
    pub(crate) fn secret(&self, text: &str) {
        self.secrets.borrow_mut().insert(text.to_owned());
    }

    /// Remembers a variable that holds a secret: commands must not inherit it.
    pub(crate) fn secret_variable(&self, name: &str) {
        self.secret_env.borrow_mut().insert(name.to_owned());
    }

    /// Everything, taken apart.
    pub(crate) fn into_found(self) -> Found {
        Found {
            problems: self.problems.into_inner(),
            warnings: self.warnings.into_inner(),
            secrets: self.secrets.into_inner(),
            secret_env: self.secret_env.into_inner(),
        }
    }
}

/// What a whole load found; in no order.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) problems: HashSet<Finding>,
    pub(crate) warnings: HashSet<Finding>,
    pub(crate) secrets: BTreeSet<String>,
    pub(crate) secret_env: BTreeSet<String>,
}
