//! Connections with a time limit on every use. After a use with an unknown result, the connection is closed.

use std::future::Future;
use std::str::FromStr;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions as _, Executor, PgConnection, Postgres};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::failure::{Failure, is_clash, is_stale, taints};
use crate::ledger::{Answer, LedgerError, LedgerOptions};

/// A statement and its arguments.
pub(super) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// How often a statement that lost against another (deadlock, serialization) is tried again.
const TRIES: u32 = 4;

/// A pool with a time limit on everything.
///
/// The client has no timeout of its own. If the peer is gone without closing the connection, a query waits as
/// long as the kernel retransmits, which is a quarter of an hour. So each operation has a limit. When it is
/// reached, the connection in use is closed: a late answer could be taken for the answer to a later statement.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pool: PgPool,
    timeout: Duration,
    pooler: bool,
    returns: TaskTracker,
}

impl Link {
    /// Opens no connection yet: a replica can start even while the database is away.
    pub(super) fn new(connect: &PgConnectOptions, options: &LedgerOptions, connections: u32) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(options.timeout)
            .test_before_acquire(false)
            .idle_timeout(Duration::from_secs(60))
            .max_lifetime(Duration::from_secs(600))
            .connect_lazy_with(connect.clone());
        Self { pool, timeout: options.timeout, pooler: options.pooler, returns: TaskTracker::new() }
    }

    /// Does `work` within the time limit. Tries it again after a deadlock or serialization error, and after a
    /// session that the server has ended.
    ///
    /// # Cancel safety
    /// When the answer is dropped or late, the connection in use is closed and the outcome unknown.
    pub(super) fn ask<'a, T, F, W>(&'a self, doing: &'static str, work: W) -> Answer<'a, T>
    where
        T: Send + 'a,
        F: Future<Output = Result<T, Failure>> + Send + 'a,
        W: Fn() -> F + Send + Sync + 'a,
    {
        Box::pin(async move {
            let tries = async {
                let mut tries = 1;
                loop {
                    match work().await {
                        Err(Failure::Sql(error)) if is_clash(&error) && tries < TRIES => tries += 1,
                        // Repeated for every connection of the pool that the server has ended.
                        Err(Failure::Sql(error)) if is_stale(&error) => {}
                        answer => return answer,
                    }
                }
            };
            match tokio::time::timeout(self.timeout, tries).await {
                Ok(answer) => answer.map_err(|failure| failure.while_we(doing)),
                Err(late) => Err(LedgerError::Unavailable { doing, source: late.into() }),
            }
        })
    }

    /// Closes the idle connections: they lead to a server that has been replaced.
    pub(super) fn forget_idle(&self) {
        forget_idle(&self.pool);
    }

    /// A connection for one operation.
    pub(super) async fn session(&self) -> Result<Session<'_>, Failure> {
        let connection = self.pool.acquire().await?;
        Ok(Session { connection: Some(connection), clean: true, link: self })
    }
}

/// A borrowed connection. It goes back to the pool only if no statement is running on it and none broke it.
pub(super) struct Session<'l> {
    connection: Option<PoolConnection<Postgres>>,
    clean: bool,
    link: &'l Link,
}

impl Session<'_> {
    /// Runs a statement and gives its first row, once the server has committed.
    pub(super) async fn row(&mut self, statement: Statement<'_>) -> Result<Option<PgRow>, Failure> {
        let statement = statement.persistent(!self.link.pooler);
        let answer = statement.fetch_optional(self.begin().await?).await;
        self.end(answer).await
    }

    /// Runs a statement and gives all its rows, once the server has committed.
    pub(super) async fn rows(&mut self, statement: Statement<'_>) -> Result<Vec<PgRow>, Failure> {
        let statement = statement.persistent(!self.link.pooler);
        let answer = statement.fetch_all(self.begin().await?).await;
        self.end(answer).await
    }

    /// Closes the connection at the end of this use, even if all goes well.
    pub(super) const fn give_up(&mut self) {
        self.clean = false;
    }

    /// Behind a pooler each statement gets a transaction of its own. The statement is parsed in one exchange and
    /// executed in the next, and only a transaction keeps both on the same server session.
    async fn begin(&mut self) -> Result<&mut PgConnection, Failure> {
        self.clean = false;
        let Some(connection) = self.connection.as_mut() else { return Err(sqlx::Error::PoolClosed.into()) };
        if self.link.pooler {
            connection.execute("BEGIN ISOLATION LEVEL read committed").await?;
        }
        Ok(connection)
    }

    async fn end<T>(&mut self, answer: Result<T, sqlx::Error>) -> Result<T, Failure> {
        if answer.as_ref().is_err_and(taints) {
            return answer.map_err(Failure::Sql);
        }
        if let Some(connection) = self.connection.as_mut().filter(|_| self.link.pooler) {
            connection.execute(if answer.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        }
        self.clean = true;
        answer.map_err(Failure::Sql)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        match Handle::try_current() {
            Ok(runtime) if self.clean => {
                // The pool pings the server before it takes a connection back, and until then the place in the
                // pool is not free. So this has a limit too.
                let back = tokio::time::timeout(self.link.timeout, connection.return_to_pool());
                self.link.returns.spawn_on(back, &runtime);
            }
            _ => drop(connection.detach()),
        }
    }
}

/// Closes the connections of `pool` that are not in use, without a message to the server.
pub(super) fn forget_idle(pool: &PgPool) {
    while let Some(connection) = pool.try_acquire() {
        drop(connection.detach());
    }
}

/// Where to connect, as the client reads it from the URL.
///
/// # Errors
/// [`LedgerError::Unusable`] when the client cannot use the URL.
pub(super) fn parse_url(url: &str) -> Result<PgConnectOptions, LedgerError> {
    PgConnectOptions::from_str(url).map_err(|error| LedgerError::Unusable {
        hint: "the URL does not name a PostgreSQL database (postgres://user@host/database)".into(),
        source: Some(error.into()),
    })
}

/// Where and how to connect, with time limits on the server's side for the case that this process is gone.
///
/// # Errors
/// As [`parse_url`].
pub(super) fn connect_options(options: &LedgerOptions) -> Result<PgConnectOptions, LedgerError> {
    let connect = parse_url(&options.url)?;
    // Statements are visible on the server by their first line. In our log they would only be noise.
    let connect = connect.disable_statement_logging();
    let connect = match connect.get_application_name() {
        Some(_) => connect,
        None => connect.application_name("runner"),
    };
    if options.pooler {
        // A pooler in transaction mode refuses start parameters that it does not know. And each transaction may
        // get another server session, which does not have our prepared statements.
        return Ok(connect.extra_float_digits(None).statement_cache_capacity(0));
    }
    let limit = options.timeout.as_millis();
    Ok(connect.options([
        // Whatever the database's default is: a statement that waited for another transaction must see its
        // changes.
        ("default_transaction_isolation", "read committed".to_owned()),
        // A claim that a crash of the server could lose would lead to a second run.
        ("synchronous_commit", "on".to_owned()),
        // A statement that we no longer wait for must not take effect much later, and must not keep its locks.
        ("statement_timeout", limit.to_string()),
        ("lock_timeout", (limit * 2 / 3).max(1).to_string()),
        ("idle_in_transaction_session_timeout", limit.to_string()),
        // The server must notice when the client's host is gone.
        ("tcp_user_timeout", (limit * 2).to_string()),
        ("tcp_keepalives_idle", "5".to_owned()),
        ("tcp_keepalives_interval", "2".to_owned()),
        ("tcp_keepalives_count", "3".to_owned()),
    ]))
}
