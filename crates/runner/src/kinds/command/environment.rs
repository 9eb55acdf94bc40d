//! The environment variables of a command.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use tokio::process::Command;

use crate::firing;
use crate::job::JobContext;

/// Settings of the runner itself, which may hold secrets.
const SETTINGS: &str = "RUNNER__";

const NAMES: [&str; 8] = [
    "RUNNER_JOB",
    "RUNNER_SCHEDULED_AT",
    "RUNNER_ATTEMPT",
    "RUNNER_FENCE",
    "RUNNER_SHARD",
    "RUNNER_SHARDS",
    "RUNNER_ORIGIN",
    "RUNNER_IDEMPOTENCY_KEY",
];

/// Whether only the runner sets the variable `name`.
pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with(SETTINGS) || NAMES.contains(&name)
}

/// The variables that tell a command which run it is.
pub(super) fn of_run(ctx: &JobContext) -> [(&'static str, String); 8] {
    let values = [
        ctx.job().to_owned(),
        firing::instant(ctx.scheduled_at()),
        ctx.attempt().to_string(),
        ctx.fence().to_string(),
        ctx.shard().to_string(),
        ctx.shards().to_string(),
        ctx.origin().to_string(),
        ctx.idempotency_key(),
    ];
    let mut values = values.into_iter();
    NAMES.map(|name| (name, values.next().unwrap_or_default()))
}

/// The names that a command must not inherit.
#[derive(Clone, Debug, Default)]
pub(super) struct Withheld(BTreeSet<OsString>);

impl Withheld {
    /// `secrets`, and every setting of the runner that is in the environment now. This process never changes
    /// its own environment.
    pub(super) fn new(secrets: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let settings = std::env::vars_os().map(|(name, _)| name).filter(|name| is_setting(name));
        Self(secrets.into_iter().map(Into::into).chain(settings).collect())
    }

    /// Removes the names from what `process` inherits.
    pub(super) fn from(&self, process: &mut Command) {
        self.0.iter().for_each(|name| {
            process.env_remove(name);
        });
    }
}

fn is_setting(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(SETTINGS.as_bytes())
}
