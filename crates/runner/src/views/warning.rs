//! A warning about the configuration.

use serde::Serialize;

use crate::config::Warning;

/// Which key the warning is about, and what it says.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WarningView<'w> {
    key: &'w str,
    warning: &'w str,
}

impl<'w> From<&'w Warning> for WarningView<'w> {
    fn from(warning: &'w Warning) -> Self {
        Self { key: warning.key(), warning: warning.message() }
    }
}
