//! A private Redis and a private PostgreSQL.

use std::path::Path;

use crate::{Deployment, PrivatePostgres, PrivateRedis};

/// The servers of one test. No other test uses them.
#[derive(Debug)]
pub struct Cluster {
    /// The lock's server.
    pub redis: PrivateRedis,
    /// The ledger's server.
    pub postgres: PrivatePostgres,
}

impl Cluster {
    /// Starts both servers.
    #[must_use]
    pub fn start() -> Self {
        Self { redis: PrivateRedis::start(), postgres: PrivatePostgres::start() }
    }

    /// A deployment of `program` on these servers, with a database of its own.
    #[must_use]
    pub fn deployment(&self, program: &Path) -> Deployment {
        Deployment::new(program).redis(self.redis.url()).ledger(self.postgres.create_database())
    }
}
