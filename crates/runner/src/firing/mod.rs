//! One due moment of one job, and the small words around it. A leaf: anyone may use it.

mod reason;
mod state;
mod words;

pub use reason::{Cause, Reason};
pub use state::{Delivery, Origin, State};
pub(crate) use words::words;
pub use words::{UnknownWord, Vocabulary, Word};

use std::fmt::{self, Display};
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use uuid::Uuid;

/// The name of a job: `[a-z0-9][a-z0-9_-]*`, at most 100 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobName(Arc<str>);

impl JobName {
    /// Reads a name.
    ///
    /// # Errors
    /// [`InvalidName`] when the text is not a job's name.
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        let head = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let tail = |c: char| head(c) || c == '_' || c == '-';
        if text.len() <= 100 && text.starts_with(head) && text.chars().all(tail) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidName { text: text.into() })
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text that cannot name a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a job's name is lower case letters, digits, '-' and '_', begins with a letter or digit and has at most 100 characters; found {text:?}"
)]
pub struct InvalidName {
    /// What was found.
    pub text: String,
}

/// One due moment of one job: the identity that the ledger's UNIQUE constraint guards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Firing {
    /// Whose moment.
    pub job: JobName,
    /// The nominal instant, UTC, before jitter; never "now" for a firing of the schedule.
    pub scheduled_at: DateTime<Utc>,
    /// Which shard, from 0.
    pub shard: u32,
    /// Empty for firings of the schedule; tells manual firings apart.
    pub trigger_key: String,
    /// Why it exists. Not part of the identity.
    pub origin: Origin,
}

impl Firing {
    /// The same for every attempt and every replica: what a receiver deduplicates by.
    #[must_use]
    pub fn idempotency_key(&self, namespace: &str) -> String {
        let at = instant(self.scheduled_at);
        let mut key = format!("{namespace}/{}/{at}/{}", self.job, self.shard);
        if !self.trigger_key.is_empty() {
            key.push('/');
            key.push_str(&self.trigger_key);
        }
        key
    }
}

/// An instant as every face of the product writes it: `2026-03-29T01:00:00Z`, with milliseconds
/// only where there are any (manual firings).
#[must_use]
pub fn instant(at: DateTime<Utc>) -> String {
    let format = if at.timestamp_subsec_millis() == 0 { SecondsFormat::Secs } else { SecondsFormat::Millis };
    at.to_rfc3339_opts(format, true)
}

/// The number of a firing's row in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FiringId(pub i64);

/// The number minted with every claim: it only grows, so a receiver can refuse a stale writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub i64);

impl Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One replica process: the host's name and a random part, new at each start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instance(Arc<str>);

impl Instance {
    /// The instance named after `host`. The random part keeps two processes of one host apart,
    /// and a process apart from its own predecessor.
    #[must_use]
    pub fn new(host: &str, unique: Uuid) -> Self {
        let unique = unique.simple().to_string();
        let host: String =
            host.chars().map(|c| if c == '|' || c.is_whitespace() { '_' } else { c }).collect();
        Self(format!("{host}-{}", &unique[..8]).into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
