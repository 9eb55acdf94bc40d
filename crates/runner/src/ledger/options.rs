//! How a ledger is opened.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How to open a ledger.
#[derive(Clone)]
pub struct LedgerOptions {
    /// `postgres://...` or `sqlite:...`; may hold a password.
    pub url: String,
    /// Prefix of every row: deployments that share a database do not see each other.
    pub namespace: Arc<str>,
    /// How long one call may take; well below the shortest lease.
    pub timeout: Duration,
    /// There is a pooler in transaction mode between us and PostgreSQL.
    pub pooler: bool,
    /// Whether opening brings the schema up to date, or only checks it.
    pub migrate: bool,
}

impl fmt::Debug for LedgerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url: _, namespace, timeout, pooler, migrate } = self;
        f.debug_struct("LedgerOptions")
            .field("url", &"***")
            .field("namespace", namespace)
            .field("timeout", timeout)
            .field("pooler", pooler)
            .field("migrate", migrate)
            .finish()
    }
}
