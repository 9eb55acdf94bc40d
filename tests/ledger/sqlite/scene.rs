//! A fresh file, and the values that the tests speak in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use runner::internal::firing::{Delivery, Firing, Instance, JobName, Origin, State};
use runner::internal::ledger::{
    ClaimRequest, Ending, Entry, Housekeeping, JobRegistration, LedgerOptions, Run, Settlement, SqliteLedger,
};
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) const JOB: &str = "orders";
pub(crate) const LEASE: Duration = Duration::from_secs(30);

pub(crate) struct Scene {
    dir: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().expect("a temporary directory") }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("runner.db")
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The ledger, with [`JOB`] known to it.
    pub(crate) async fn ledger(&self) -> SqliteLedger {
        let ledger = open(&self.file()).await;
        register(&ledger, &[JOB]).await;
        ledger
    }
}

pub(crate) async fn open(file: &Path) -> SqliteLedger {
    SqliteLedger::open(options(&url(file), true)).await.expect("the file opens")
}

pub(crate) fn url(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

pub(crate) fn options(url: &str, migrate: bool) -> LedgerOptions {
    LedgerOptions {
        url: url.to_owned(),
        namespace: "test".into(),
        timeout: Duration::from_secs(1),
        pooler: false,
        migrate,
    }
}

pub(crate) async fn register(ledger: &SqliteLedger, jobs: &[&str]) {
    let jobs: Vec<_> = jobs
        .iter()
        .map(|name| JobRegistration { name: (*name).to_owned(), spec_hash: "1".to_owned() })
        .collect();
    ledger.register(&jobs).await.expect("registered");
}

/// An instant that has just come, `back` seconds further in the past.
pub(crate) fn second(back: i64) -> DateTime<Utc> {
    let now = Utc::now().timestamp();
    DateTime::from_timestamp(now, 0).expect("now") - TimeDelta::seconds(back)
}

pub(crate) fn firing(scheduled_at: DateTime<Utc>) -> Firing {
    Firing {
        job: JobName::new(JOB).expect("a name"),
        scheduled_at,
        shard: 0,
        trigger_key: String::new(),
        origin: Origin::Schedule,
    }
}

/// A claim of a firing that does not exclude others, so that many can run at once.
pub(crate) fn claim_of(firing: Firing, owner: &str) -> ClaimRequest {
    ClaimRequest {
        firing,
        entry: Entry::Fresh { not_after: Duration::from_secs(86_400) },
        claim_id: Uuid::new_v4(),
        owner: Instance::new(owner, Uuid::new_v4()),
        exclusive: false,
        delivery: Delivery::AtLeastOnce,
        lease: LEASE,
    }
}

pub(crate) fn success(run: Run) -> Settlement {
    Settlement {
        run,
        ending: Ending::Terminal { state: State::Succeeded, reason: None },
        crashed: false,
        error: None,
        output: None,
    }
}
