//! The process environment, read once. No other file of the product reads it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

/// The variables of the process as they were at one moment.
///
/// Everything that depends on the environment is given one of these. A test gives its own, and two
/// reads cannot differ.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, OsString>,
}

impl Environment {
    /// The environment of this process, now.
    #[must_use]
    pub fn capture() -> Self {
        let variables = std::env::vars_os();
        Self {
            variables: variables.map(|(name, value)| (name.to_string_lossy().into_owned(), value)).collect(),
        }
    }

    /// The value of a variable; `None` when it is not set.
    ///
    /// # Errors
    /// [`NotUnicode`] when it is set to bytes that are not UTF-8.
    pub fn get(&self, name: &str) -> Result<Option<&str>, NotUnicode> {
        match self.variables.get(name) {
            None => Ok(None),
            Some(value) => value.to_str().map(Some).ok_or_else(|| NotUnicode { name: name.into() }),
        }
    }

    /// The names of all variables, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }
}

impl<K: Into<String>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self { variables: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}

/// Values may be secrets: only the number of variables is shown.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.variables.len())
    }
}

/// A variable whose value is not text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} is not UTF-8 text")]
pub struct NotUnicode {
    /// Which variable.
    pub name: String,
}
