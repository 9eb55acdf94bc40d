//! A ledger of the test's own, and short ways to say what every test says.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use runner::firing::{Delivery, Firing, Instance, JobName, Origin, State};
use runner::ledger::{
    Claim, ClaimRequest, Ending, Enqueue, Enqueued, Entry, FiringId, FiringRow, Found, JobRegistration,
    LedgerOptions, Opened, Run, Running, Settled, Settlement, Skip, Suspect, Swept, Won, open,
};
use testbed::{PrivatePgBouncer, PrivatePostgres};
use uuid::Uuid;

/// Long enough for anything that is not about leases.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// A database to hold a ledger.
pub(crate) trait Fixture: Debug + Send + Sync {
    /// An empty database.
    fn new() -> Self;

    /// Where it is.
    fn url(&self) -> String;

    /// The same past a pooler, for those who ask the database themselves.
    fn direct(&self) -> String {
        self.url()
    }

    /// How to open it.
    fn options(&self) -> LedgerOptions {
        options(self.url())
    }

    /// The ledger in it, as one deployment sees it.
    fn open(&self, namespace: &str) -> impl Future<Output = Opened> + Send {
        let options = LedgerOptions { namespace: namespace.into(), ..self.options() };
        async { open(options).await.expect("the ledger opens") }
    }
}

/// A database of its own on the test process's PostgreSQL.
#[derive(Debug)]
pub(crate) struct Postgres {
    url: String,
}

impl Fixture for Postgres {
    fn new() -> Self {
        Self { url: PrivatePostgres::shared().create_database() }
    }

    fn url(&self) -> String {
        self.url.clone()
    }
}

/// The same, behind PgBouncer in transaction mode.
#[derive(Debug)]
pub(crate) struct Pooled(Postgres);

impl Fixture for Pooled {
    fn new() -> Self {
        Self(Postgres::new())
    }

    fn url(&self) -> String {
        PrivatePgBouncer::shared().url_of(&self.0.url)
    }

    fn direct(&self) -> String {
        self.0.url()
    }

    fn options(&self) -> LedgerOptions {
        LedgerOptions { pooler: true, ..options(self.url()) }
    }
}

/// An open ledger that knows the jobs `a` and `b`.
#[derive(Debug)]
pub(crate) struct Site<F> {
    pub(crate) opened: Opened,
    fixture: F,
}

pub(crate) fn options(url: String) -> LedgerOptions {
    LedgerOptions {
        url,
        namespace: "test".into(),
        timeout: Duration::from_secs(20),
        pooler: false,
        migrate: true,
    }
}

impl Site<Postgres> {
    /// The ledger at `url`.
    pub(crate) async fn at(url: String) -> Self {
        Self::on(Postgres { url }).await
    }

    pub(crate) fn url(&self) -> String {
        self.fixture.url()
    }

    /// What the database says when it is asked past the ledger.
    pub(crate) fn sql(&self, statements: &str) -> String {
        PrivatePostgres::sql_at(&self.url(), statements)
    }
}

impl<F: Fixture> Site<F> {
    pub(crate) async fn open() -> Self {
        Self::on(F::new()).await
    }

    async fn on(fixture: F) -> Self {
        let opened = fixture.open("test").await;
        let site = Self { opened, fixture };
        site.register(&["a", "b"]).await;
        site
    }

    /// Where the database itself is.
    pub(crate) fn address(&self) -> String {
        self.fixture.direct()
    }

    /// The same database under another namespace.
    pub(crate) async fn neighbour(&self, namespace: &str) -> Opened {
        self.fixture.open(namespace).await
    }

    pub(crate) async fn register(&self, names: &[&str]) {
        let jobs: Vec<_> =
            names.iter().map(|&name| JobRegistration { name: name.into(), spec_hash: "1".into() }).collect();
        self.opened.upkeep.register(&jobs).await.expect("registered");
    }

    pub(crate) async fn now(&self) -> DateTime<Utc> {
        self.opened.reader.now().await.expect("the ledger's clock").now
    }

    /// A firing of job `a`, due `ago` before the ledger's now.
    pub(crate) async fn firing(&self, ago: Duration) -> Firing {
        let ago = TimeDelta::from_std(ago).expect("a short time");
        let scheduled_at = (self.now().await - ago).trunc_subsecs(3);
        Firing {
            job: JobName::new("a").expect("a name"),
            scheduled_at,
            shard: 0,
            trigger_key: String::new(),
            origin: Origin::Schedule,
        }
    }

    pub(crate) async fn claim(&self, request: &ClaimRequest) -> Claim {
        self.opened.ledger.claim(request).await.expect("an answer to the claim")
    }

    pub(crate) async fn win(&self, request: &ClaimRequest) -> Won {
        match self.claim(request).await {
            Claim::Won(won) => won,
            no => panic!("should have won: {no:?}"),
        }
    }

    /// Claims a firing of a second ago for an hour.
    pub(crate) async fn run(&self) -> Won {
        let firing = self.firing(Duration::from_secs(1)).await;
        self.win(&fresh(&firing)).await
    }

    /// Claims a firing whose lease is over as soon as it begins.
    pub(crate) async fn abandoned(&self, delivery: Delivery) -> Run {
        let firing = self.firing(Duration::from_secs(1)).await;
        let request = ClaimRequest { delivery, lease: Duration::ZERO, ..fresh(&firing) };
        run(self.win(&request).await)
    }

    pub(crate) async fn settle(&self, run: Run, ending: Ending) -> Settled {
        let settlement = Settlement { run, ending, crashed: false, error: None, output: None };
        self.opened.ledger.settle(&settlement).await.expect("an answer to the settle")
    }

    pub(crate) async fn row(&self, id: FiringId) -> FiringRow {
        self.opened.reader.firing(id).await.expect("a look").expect("a row")
    }

    pub(crate) async fn state(&self, id: FiringId) -> (State, Option<String>) {
        let row = self.row(id).await;
        (row.state, row.reason)
    }

    pub(crate) async fn enqueue(&self, enqueue: &Enqueue) -> Enqueued {
        self.opened.upkeep.enqueue(enqueue).await.expect("an answer to the enqueue")
    }

    pub(crate) async fn queued(&self, firing: &Firing) -> FiringId {
        match self.enqueue(&waiting(firing, "trigger")).await {
            Enqueued::Queued(id) => id,
            no => panic!("should have been queued: {no:?}"),
        }
    }

    /// The run as the sweep sees it, once its lease is over.
    pub(crate) async fn suspect(&self, run: Run) -> Suspect {
        let seen = eventually("the lease is over", async || {
            let running = self.opened.upkeep.running().await.expect("the runs");
            let seen = running.into_iter().find(|seen| seen.run == run);
            match seen {
                Some(seen) if seen.remaining.is_zero() => Ok(seen),
                other => Err(other),
            }
        });
        suspect(&seen.await)
    }

    pub(crate) async fn sweep(&self, suspects: &[Suspect]) -> Vec<Swept> {
        self.opened.upkeep.sweep(suspects).await.expect("an answer to the sweep")
    }

    /// Makes the ledger forget everything of job `a` that has ended, up to now.
    pub(crate) async fn prune_all(&self) -> u64 {
        eventually("ended rows are in the past", async || {
            match self.opened.upkeep.prune(Duration::ZERO, 100).await.expect("an answer to the prune") {
                0 => Err(0),
                removed => Ok(removed),
            }
        })
        .await
    }
}

pub(crate) fn suspect(seen: &Running) -> Suspect {
    Suspect { run: seen.run, lease_until: seen.lease_until, max_crashes: 3, expires_in: HOUR }
}

/// A first claim, exclusive, at least once, for an hour.
pub(crate) fn fresh(firing: &Firing) -> ClaimRequest {
    ClaimRequest {
        firing: firing.clone(),
        entry: Entry::Fresh { not_after: HOUR },
        claim_id: Uuid::new_v4(),
        owner: Instance::new("host", Uuid::new_v4()),
        exclusive: true,
        delivery: Delivery::AtLeastOnce,
        lease: HOUR,
    }
}

/// A claim of a queued row.
pub(crate) fn take(firing: &Firing, id: FiringId) -> ClaimRequest {
    ClaimRequest { entry: Entry::Queued(id), ..fresh(firing) }
}

pub(crate) fn run(won: Won) -> Run {
    Run { id: won.id, fence: won.fence }
}

pub(crate) fn other_job(firing: &Firing) -> Firing {
    Firing { job: JobName::new("b").expect("a name"), ..firing.clone() }
}

/// The same firing `by` later.
pub(crate) fn later(firing: &Firing, by: Duration) -> Firing {
    let by = TimeDelta::from_std(by).expect("a short time");
    Firing { scheduled_at: firing.scheduled_at + by, ..firing.clone() }
}

pub(crate) fn waiting(firing: &Firing, reason: &str) -> Enqueue {
    Enqueue {
        firing: firing.clone(),
        reason: reason.into(),
        exclusive: true,
        delivery: Delivery::AtLeastOnce,
        due_in: Duration::ZERO,
        expires_in: HOUR,
    }
}

pub(crate) fn skipping(firing: &Firing, reason: &str) -> Skip {
    Skip { firing: firing.clone(), reason: reason.into(), detail: None, only_while_running: false }
}

pub(crate) fn succeeded() -> Ending {
    Ending::Terminal { state: State::Succeeded, reason: None }
}

pub(crate) fn ended(state: State, reason: &str) -> Ending {
    Ending::Terminal { state, reason: Some(reason.into()) }
}

pub(crate) fn requeue(reason: &str) -> Ending {
    Ending::Requeue { reason: reason.into(), due_in: Duration::ZERO, expires_in: HOUR }
}

pub(crate) fn found(claim: Claim) -> Found {
    match claim {
        Claim::Duplicate(found) | Claim::Overlap(found) => found,
        other => panic!("should have found a row in the way: {other:?}"),
    }
}

/// Asks again until it is so; if it never is, fails with the last answer.
pub(crate) async fn eventually<T, S: Debug, F: Future<Output = Result<T, S>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let mut last = None;
    for _ in 0..1500 {
        match ask().await {
            Ok(value) => return value,
            Err(status) => last = Some(status),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within 15 s: {what}; last seen: {last:?}")
}

/// Starts all of them at the same moment and collects what they say.
pub(crate) async fn at_once<T: Send + 'static>(
    tasks: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = tasks.into_iter().collect();
    let start = std::sync::Arc::new(tokio::sync::Barrier::new(tasks.len()));
    let mut set = tokio::task::JoinSet::new();
    for task in tasks {
        let start = start.clone();
        set.spawn(async move {
            start.wait().await;
            task.await
        });
    }
    set.join_all().await
}
