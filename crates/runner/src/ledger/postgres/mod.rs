//! The ledger in PostgreSQL: the one for several hosts.
//!
//! What makes it safe is said by the statements, one file each; why, condition by condition:
//!
//! - **A claim locks the job's row first**, then reads the clock and mints the fence. Without the lock
//!   a pause could be acknowledged and a claim still win; a prune could remove a row whose firing is
//!   claimed again at that moment; and a fence taken early could be committed late, below a newer one.
//! - **The claim's window** is judged by this server's clock: a replica whose clock is ahead cannot run
//!   tomorrow's work today, and a slow one cannot run what is long over.
//! - **`ON CONFLICT DO NOTHING` names no constraint** on purpose: a second row for the firing and a
//!   second exclusive run are both a "no", never an error. Which of them it was is asked afterwards.
//! - **A claim whose answer was lost** is confirmed by the id that this very try made, and only while
//!   the row is running. Neither the replica's name nor an expected fence proves anything: the same
//!   replica may have claimed twice, and the row may have been swept in between.
//! - **Heartbeat and settle ask for the fence and the state, never for the time**: as long as nobody
//!   took over, a late owner is still the owner.
//! - **A sweep takes a run only as it was seen**, by fence and lease, and only if the lease is over for
//!   this server too. So a heartbeat in the last moment wins, one of many sweepers wins, and neither a
//!   jump of this server's clock nor its return after an outage expires everybody at once.
//! - **A fence carries the timeline** of the server that minted it: a standby that is promoted may lack
//!   the last values of the sequence, and mints above them all the same. A cluster that the ledger was
//!   moved to counts timelines anew, and is adopted before anything is claimed there.
//! - **A prune raises the watermark** under the job's lock before rows go: what is not there any more
//!   can never be claimed as if it had never been.
//!
//! Heartbeats have a connection of their own, and so has upkeep: a burst of claims must not delay
//! the proof of life of the runs that are under way.

mod claim;
mod connection;
mod effect;
mod failure;
mod gaps;
mod jobs;
mod migrate;
mod queue;
mod read;
mod rows;
mod server;
mod settle;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

use self::connection::{Link, connect_options};
use self::effect::EffectPools;
use super::{
    Answer, AttemptRow, Claim, ClaimRequest, Counted, Decision, Due, Enqueue, Enqueued, Expired, FiringId,
    FiringRow, Heartbeat, HistoryFilter, Horizon, JobRegistration, JobRow, Ledger, LedgerError,
    LedgerOptions, Question, Reader, Reading, Run, Running, Server, Settled, Settlement, Skip, Skipped,
    Suspect, Swept, Upkeep, Won,
};

pub(in crate::ledger) use self::effect::PostgresWork;

/// A ledger in a PostgreSQL database.
#[derive(Clone, Debug)]
pub struct PostgresLedger {
    namespace: Arc<str>,
    /// Claims and settles.
    corridor: Link,
    /// Heartbeats and nothing else.
    pulse: Link,
    /// Everything that can wait.
    upkeep: Link,
    /// Jobs' own transactions.
    effects: EffectPools,
}

impl PostgresLedger {
    /// Connects once, brings the schema up to date or checks it, and opens the ledger.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`] while the server is away; [`LedgerError::Unusable`] when the URL
    /// is none or the schema is missing, newer or another one.
    ///
    /// # Cancel safety
    /// Safe to drop and call again.
    pub async fn open(options: LedgerOptions) -> Result<Self, LedgerError> {
        let connect = connect_options(&options)?;
        if !options.pooler {
            migrate::check_guards(&connect, options.timeout).await?;
        }
        if options.migrate {
            migrate::migrate(&connect).await?;
        } else {
            migrate::check(&connect).await?;
        }
        Ok(Self::with(&connect, &options))
    }

    /// Applies the migrations that are missing and names them, `0001_ledger`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn migrate(options: &LedgerOptions) -> Result<Vec<String>, LedgerError> {
        migrate::migrate(&connect_options(options)?).await
    }

    pub(super) fn check_url(options: &LedgerOptions) -> Result<(), LedgerError> {
        connect_options(options).map(drop)
    }

    fn with(connect: &PgConnectOptions, options: &LedgerOptions) -> Self {
        Self {
            namespace: options.namespace.clone(),
            corridor: Link::new(connect, options, 8),
            pulse: Link::new(connect, options, 2),
            upkeep: Link::new(connect, options, 4),
            effects: EffectPools::new(connect, options),
        }
    }
}

impl Ledger for PostgresLedger {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Claim> {
        self.corridor.ask("claim a firing", || self.claim_firing(request))
    }

    fn confirm<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Option<Won>> {
        self.corridor.ask("confirm a claim", || self.confirm_claim(request))
    }

    fn heartbeat(&self, run: Run, lease: Duration) -> Answer<'_, Heartbeat> {
        self.pulse.ask("keep a lease", move || self.move_lease(run, lease))
    }

    fn settle<'a>(&'a self, settlement: &'a Settlement) -> Answer<'a, Settled> {
        self.corridor.ask("settle a run", || self.end_run(settlement))
    }

    fn skip<'a>(&'a self, skip: &'a Skip) -> Answer<'a, Skipped> {
        self.corridor.ask("record a skip", || self.write_skip(skip))
    }
}

impl Upkeep for PostgresLedger {
    fn register<'a>(&'a self, jobs: &'a [JobRegistration]) -> Answer<'a, ()> {
        self.upkeep.ask("register the jobs", || self.register_jobs(jobs))
    }

    fn enqueue<'a>(&'a self, enqueue: &'a Enqueue) -> Answer<'a, Enqueued> {
        self.upkeep.ask("queue a firing", || self.put_into_queue(enqueue))
    }

    fn due<'a>(&'a self, jobs: &'a [String], limit: u32) -> Answer<'a, Vec<Due>> {
        self.upkeep.ask("read the queue", move || self.list_due(jobs, limit))
    }

    fn expire(&self, limit: u32) -> Answer<'_, Vec<Expired>> {
        self.upkeep.ask("end what waited too long", move || self.end_expired(limit))
    }

    fn running(&self) -> Answer<'_, Vec<Running>> {
        self.upkeep.ask("list the runs", || self.list_running())
    }

    fn sweep<'a>(&'a self, suspects: &'a [Suspect]) -> Answer<'a, Vec<Swept>> {
        self.upkeep.ask("sweep", || self.end_suspects(suspects))
    }

    fn horizons<'a>(&'a self, questions: &'a [Question]) -> Answer<'a, Vec<Horizon>> {
        self.upkeep.ask("look for gaps", || self.read_horizons(questions))
    }

    fn decide<'a>(&'a self, decision: &'a Decision) -> Answer<'a, bool> {
        self.upkeep.ask("decide about gaps", || self.write_decision(decision))
    }

    fn prune(&self, retention: Duration, batch: u32) -> Answer<'_, u64> {
        Box::pin(async move {
            const DOING: &str = "prune";
            let mut total = 0;
            for job in self.upkeep.ask(DOING, || self.jobs_to_prune(retention)).await? {
                loop {
                    let removed = self.upkeep.ask(DOING, || self.prune_batch(&job, retention, batch)).await?;
                    total += removed;
                    if removed < u64::from(batch) || batch == 0 {
                        break;
                    }
                }
            }
            Ok(total)
        })
    }

    fn pause<'a>(&'a self, job: &'a str, by: &'a str, note: &'a str) -> Answer<'a, bool> {
        self.upkeep.ask("pause a job", move || self.pause_job(job, by, note))
    }

    fn resume<'a>(&'a self, job: &'a str) -> Answer<'a, bool> {
        self.upkeep.ask("resume a job", move || self.resume_job(job))
    }

    fn adopt(&self) -> Answer<'_, Option<Server>> {
        self.upkeep.ask("note the server", || self.note_server())
    }

    fn cancel(&self, id: FiringId) -> Answer<'_, bool> {
        self.upkeep.ask("cancel a firing", move || self.request_cancel(id))
    }
}

impl Reader for PostgresLedger {
    fn now(&self) -> Answer<'_, Reading> {
        self.upkeep.ask("read the clock", || self.read_clock())
    }

    fn history<'a>(&'a self, filter: &'a HistoryFilter) -> Answer<'a, Vec<FiringRow>> {
        self.upkeep.ask("read the history", || self.read_history(filter))
    }

    fn firing(&self, id: FiringId) -> Answer<'_, Option<FiringRow>> {
        self.upkeep.ask("read a firing", move || self.read_firing(id))
    }

    fn attempts(&self, id: FiringId) -> Answer<'_, Vec<AttemptRow>> {
        self.upkeep.ask("read the attempts", move || self.read_attempts(id))
    }

    fn jobs(&self) -> Answer<'_, Vec<JobRow>> {
        self.upkeep.ask("read the jobs", || self.read_jobs())
    }

    fn counts(&self) -> Answer<'_, Vec<Counted>> {
        self.upkeep.ask("count the rows", || self.count_rows())
    }
}
