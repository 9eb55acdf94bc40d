//! What a load finds: problems, warnings, secrets. It does not stop at the first problem.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::key_path::KeyPath;

/// A problem or warning about one key, before its line has been looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Finding {
    pub(crate) path: KeyPath,
    pub(crate) spot: Spot,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Which part is underlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Spot {
    /// The value at the path; where it is missing, the nearest key above it.
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

/// The problem has been reported. Whoever gets this has nothing more to say and only stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reported;

/// Collects while the file is read. Shared by reference within one load, hence the cells.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    problems: RefCell<HashSet<Finding>>,
    warnings: RefCell<HashSet<Finding>>,
    secrets: RefCell<BTreeSet<String>>,
    secret_env: RefCell<BTreeSet<String>>,
}

impl Findings {
    /// Reports a problem. Reported again it counts once: a bad `[defaults]` is met in every job.
    pub(crate) fn problem(&self, finding: Finding) -> Reported {
        self.problems.borrow_mut().insert(finding);
        Reported
    }

    /// Reports a warning.
    pub(crate) fn warning(&self, finding: Finding) {
        self.warnings.borrow_mut().insert(finding);
    }

    /// Remembers a text that no message may show.
    pub(crate) fn secret(&self, text: &str) {
        self.secrets.borrow_mut().insert(text.to_owned());
    }

    /// Remembers a variable that holds a secret: commands must not inherit it.
    pub(crate) fn secret_variable(&self, name: &str) {
        self.secret_env.borrow_mut().insert(name.to_owned());
    }

    /// Everything that was found.
    pub(crate) fn into_collected(self) -> Collected {
        Collected {
            problems: self.problems.into_inner(),
            warnings: self.warnings.into_inner(),
            secrets: self.secrets.into_inner(),
            secret_env: self.secret_env.into_inner(),
        }
    }
}

/// Everything that a load found, in no order.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) problems: HashSet<Finding>,
    pub(crate) warnings: HashSet<Finding>,
    pub(crate) secrets: BTreeSet<String>,
    pub(crate) secret_env: BTreeSet<String>,
}
