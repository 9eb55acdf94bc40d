//! A loaded configuration: every value is valid, every default filled in.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{Guard, Misfire, OnUnavailable, Overlap};
use crate::firing::{Delivery, JobName};
use crate::schedule::Timetable;

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

/// Everything jobs.toml and the environment say.
#[derive(Clone, Debug)]
pub struct Config {
    /// `[runner]`
    pub runner: RunnerSettings,
    /// `[log]`
    pub log: LogSettings,
    /// `[lock]`
    pub lock: LockSettings,
    /// `[ledger]`
    pub ledger: LedgerSettings,
    /// `[admin]`
    pub admin: Option<AdminSettings>,
    /// `[jobs.*]`, by name.
    pub jobs: Vec<Arc<JobSpec>>,
}

/// `[runner]`
#[derive(Clone, Debug)]
pub struct RunnerSettings {
    /// Prefix of lock keys and ledger rows.
    pub namespace: Arc<str>,
    /// For schedules that name none.
    pub timezone: chrono_tz::Tz,
    /// Runs at once on this replica.
    pub max_concurrent: usize,
    /// How long a drain lets runs finish.
    pub shutdown_grace: Duration,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object per line.
    Json,
}

/// `[log]`
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// How lines look.
    pub format: LogFormat,
    /// The least level shown.
    pub level: tracing::level_filters::LevelFilter,
}

/// `[lock]`
#[derive(Clone, Debug)]
pub struct LockSettings {
    /// Redis; `None` means this process only.
    pub url: Option<Secret>,
    /// Both layers' lease, unless a job says otherwise.
    pub ttl: Duration,
}

/// `[ledger]`
#[derive(Clone, Debug)]
pub struct LedgerSettings {
    /// PostgreSQL or SQLite, as a URL. Without one it is `sqlite:` and `runner.db` beside the file.
    pub url: Secret,
    /// How long ended rows are kept.
    pub retention: Duration,
    /// Whether a start applies migrations.
    pub migrate: bool,
    /// A pooler in transaction mode stands before PostgreSQL.
    pub pooler: bool,
}

/// `[admin]`
#[derive(Clone, Debug)]
pub struct AdminSettings {
    /// Where HTTP is served.
    pub listen: SocketAddr,
}

/// One job of jobs.toml.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// Its name.
    pub name: JobName,
    /// For people.
    pub description: Option<String>,
    /// When it fires.
    pub timetable: Timetable,
    /// The rule as it was written, for people: `0 */5 * * * *`, `every 30s`, `at 2026-06-01T00:00:00Z`.
    pub schedule_text: String,
    /// The zone its rule is read in.
    pub timezone: chrono_tz::Tz,
    /// Which implementation runs it.
    pub kind: String,
    /// What that implementation is told.
    pub params: toml::Table,
    /// How long things may take.
    pub budget: Budget,
    /// See [`Overlap`].
    pub overlap: Overlap,
    /// See [`Misfire`].
    pub misfire: Misfire,
    /// Later than this a firing is skipped.
    pub start_deadline: Duration,
    /// At most so many missed firings run.
    pub max_catchup: u32,
    /// See [`Delivery`].
    pub delivery: Delivery,
    /// Of runs that fail.
    pub max_attempts: u32,
    /// Of owners that vanish.
    pub max_crashes: u32,
    /// Between attempts.
    pub backoff: Backoff,
    /// See [`Guard`].
    pub guard: Guard,
    /// See [`OnUnavailable`].
    pub on_unavailable: OnUnavailable,
    /// Into how many parts each instant is split.
    pub shards: u32,
    /// The most a firing is delayed by a hash.
    pub jitter: Duration,
    /// Whether it fires at all.
    pub enabled: bool,
}

/// How long one run and its leases may last; consistent by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The lease of both layers.
    pub ttl: Duration,
    /// How often the lock may be renewed.
    pub max_renewals: u32,
    /// The hard limit of a run.
    pub timeout: Duration,
    /// How long a run has to end in order.
    pub kill_grace: Duration,
}

/// How long to wait before another attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Before the second attempt.
    pub initial: Duration,
    /// At most.
    pub max: Duration,
    /// What each further wait is multiplied by.
    pub factor: f64,
}
