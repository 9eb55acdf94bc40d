//! The ledger in PostgreSQL: the one for several hosts.
//!
//! The statements make it safe; each is a file of its own. These are the reasons for their conditions:
//!
//! - **A claim locks the job's row first**, then reads the clock and mints the fence. Without this lock, a claim
//!   could win after a pause was acknowledged; a prune could remove a row while its firing is claimed again; and
//!   a fence that was minted early could be committed after a higher one.
//! - **The server's clock judges whether a claim is too early or too late.** So a replica whose clock is ahead
//!   cannot run tomorrow's work today, and a slow replica cannot run a firing that is long over.
//! - **`ON CONFLICT DO NOTHING` names no constraint** on purpose: a second row for the firing and a second
//!   exclusive run are both a "no", never an error. A second statement reads which of them it was.
//! - **A claim whose answer was lost** is confirmed by the id of this one try, and only while the row is
//!   running. The replica's name or an expected fence would prove nothing: the same replica may have claimed
//!   twice, and the row may have been swept in between.
//! - **Heartbeat and settle compare the fence and the state, never the time.** A late owner is still the owner
//!   until another one takes over.
//! - **A sweep ends a run only if its fence and lease are still as they were seen**, and only if the lease is over
//!   by the server's clock too. So a heartbeat in the last moment wins, and only one of many sweepers wins. A
//!   jump of the server's clock, or its return after an outage, does not end all runs at once.
//! - **A fence contains the timeline** of the server that minted it. A promoted standby may lack the last values
//!   of the sequence, and still mints higher fences. Another cluster counts timelines from the beginning, so it
//!   is recorded before anything is claimed there.
//! - **A prune raises the watermark** under the job's lock before it removes rows. So a removed firing can never
//!   be claimed as if it were new.
//!
//! Heartbeats have connections of their own, and so has upkeep: a burst of claims must not delay the heartbeats
//! of the runs in progress.

mod connection;
mod corridor;
mod effect;
mod failure;
mod gaps;
mod housekeeping;
mod migrate;
mod operators;
mod queue;
mod reader;
mod rows;
mod sweeping;
mod view;

use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;

use self::connection::{Link, connect_options};
use self::effect::EffectPools;
use super::{LedgerError, LedgerOptions};

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
    /// [`LedgerError::Unavailable`] while the server is away; [`LedgerError::Unusable`] when the URL is not valid,
    /// or the schema is missing, newer or a different one.
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

    /// Applies the missing migrations and returns their names, such as `0001_ledger`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn migrate(options: &LedgerOptions) -> Result<Vec<String>, LedgerError> {
        migrate::migrate(&connect_options(options)?).await
    }

    pub(super) fn check_url(url: &str) -> Result<(), LedgerError> {
        connection::parse_url(url).map(drop)
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
