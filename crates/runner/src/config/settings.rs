//! A loaded configuration: every value is valid, every default filled in.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::address::LedgerKind;
use super::budget::Budget;
use super::diagnose::{Finding, Problem, SourceMap, Spot, Warning};
use super::params::{ParamProblem, Params};
use super::secret::Secret;
use crate::firing::{Delivery, JobName, words};
use crate::rules::{Backoff, Guard, Misfire, OnUnavailable, Overlap};
use crate::schedule::Timetable;

/// Everything jobs.toml and the environment say.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// What is valid but probably a mistake, in the order of the file.
    pub warnings: Vec<Warning>,
    /// Variables that a command must not inherit: those that an `{ env }` names, and all of `RUNNER__`.
    pub secret_env: BTreeSet<String>,
    /// Where each key stands.
    pub source: SourceMap,
}

impl Config {
    /// The job of this name.
    #[must_use]
    pub fn job(&self, name: &str) -> Option<&Arc<JobSpec>> {
        self.jobs.iter().find(|job| job.name.as_str() == name)
    }

    /// A problem that was found after the load, with the value of the dotted `key`
    /// (`jobs.a.params.argv`), at its line. Secrets in `message` are hidden.
    #[must_use]
    pub fn problem_at(&self, key: &str, message: impl Into<String>, hint: Option<String>) -> Problem {
        self.source.problem_at(key, message, hint)
    }

    /// A problem with a job's params, at the line that sets them: in the job, or in `[defaults]`.
    #[must_use]
    pub fn param_problem(&self, job: &JobSpec, problem: &ParamProblem) -> Problem {
        let spot = if problem.is_about_key() { Spot::Key } else { Spot::Value };
        let (path, message, hint) =
            (job.params.place_of(problem), problem.message.clone(), problem.hint.clone());
        self.source.problem(Finding { path, spot, message, hint })
    }
}

/// `[runner]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunnerSettings {
    /// The prefix of lock keys and ledger rows.
    pub namespace: Arc<str>,
    /// The zone of schedules that name none.
    pub timezone: chrono_tz::Tz,
    /// How many runs this replica has at once, at most.
    pub max_concurrent: usize,
    /// How long a drain waits for runs to finish.
    pub shutdown_grace: Duration,
}

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object per line.
    Json,
}

words!(pub LogFormat { Text = "text", Json = "json" });

/// `[log]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogSettings {
    /// The format of a line.
    pub format: LogFormat,
    /// The lowest level that is logged.
    pub level: tracing::level_filters::LevelFilter,
}

/// `[lock]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LockSettings {
    /// The address of Redis. `None`: the lock holds within this process only.
    pub url: Option<Secret>,
    /// The lease of both layers, for jobs that set none.
    pub ttl: Duration,
}

/// `[ledger]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LedgerSettings {
    /// `postgres://…`, or `sqlite:` and an absolute path, percent-encoded where a path needs it.
    /// When the file names none it is `runner.db` beside the file.
    pub url: Secret,
    /// How long rows are kept after they have ended.
    pub retention: Duration,
    /// Whether a start applies migrations.
    pub migrate: bool,
    /// A pooler in transaction mode stands before PostgreSQL.
    pub pooler: bool,
}

impl LedgerSettings {
    /// Which database the address names.
    #[must_use]
    pub fn kind(&self) -> LedgerKind {
        LedgerKind::of(&self.url)
    }
}

/// `[admin]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdminSettings {
    /// Where health and metrics are served over HTTP. With port 0 the system chooses one.
    pub listen: SocketAddr,
}

/// One job of jobs.toml.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    pub params: Params,
    /// How long a run and its leases may last.
    pub budget: Budget,
    /// See [`Overlap`].
    pub overlap: Overlap,
    /// See [`Misfire`].
    pub misfire: Misfire,
    /// A firing that could not start for this long is skipped.
    pub start_deadline: Duration,
    /// How many missed firings run, at most.
    pub max_catchup: u32,
    /// See [`Delivery`].
    pub delivery: Delivery,
    /// How often a firing runs at most, when it fails.
    pub max_attempts: u32,
    /// How many lost owners a firing survives.
    pub max_crashes: u32,
    /// The wait between attempts.
    pub backoff: Backoff,
    /// See [`Guard`].
    pub guard: Guard,
    /// See [`OnUnavailable`].
    pub on_unavailable: OnUnavailable,
    /// Into how many parts each instant is split.
    pub shards: u32,
    /// The longest delay of a firing.
    pub jitter: Duration,
    /// Whether its schedule fires.
    pub enabled: bool,
}

impl JobSpec {
    /// Sixteen hex digits that change only when the rule, its zone or `enabled` changes. They are the
    /// same on every replica and in every version, because the ledger keeps them.
    #[must_use]
    pub fn spec_hash(&self) -> String {
        let zone = self.timezone.name();
        let enabled = if self.enabled { "enabled" } else { "disabled" };
        // No part can hold a line feed, so no two specs share one text.
        format!("{:016x}", fnv1a(format!("{}\n{zone}\n{enabled}", self.schedule_text).as_bytes()))
    }
}

/// FNV-1a of 64 bits. The standard library's hashers may change with the compiler.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::fnv1a;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
