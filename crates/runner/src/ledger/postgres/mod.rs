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
