//! `[ledger]`: layer two.

use std::time::Duration;

use super::row::{Key, keys};
use crate::config::address;
use crate::config::diagnose::Exposure;
use crate::config::duration::at_least;
use crate::config::secret::Secret;
use crate::config::value::boolean;

/// A claim or a reconciliation may still ask for rows that are younger.
const SHORTEST_RETENTION: Duration = Duration::from_secs(60 * 60);

keys! { "ledger":
    URL: Secret = Key::new("url", "secret", |value, walk| address::ledger(walk.resolver.secret(value)?, walk),
        "`postgres://user@host/database` for several hosts, or `sqlite:FILE` for one. A relative file lies beside jobs.toml.")
        .default_in_words("`sqlite:runner.db`")
        .exposed(Exposure::Never)
        .refuses("what the database's client cannot use; other schemes; a database in memory");

    RETENTION: Duration = Key::new("retention", "duration",
        |value, _| at_least(value, SHORTEST_RETENTION, "a replica may still ask for the rows that would be gone"),
        "How long rows are kept after they have ended.")
        .default("\"30d\"")
        .refuses("less than `1h`; less than the time within which a firing of a job may start");

    MIGRATE: bool = Key::new("migrate", "boolean", |value, _| boolean(value),
        "Whether a start brings the tables up to date. With `false`, `runner migrate` does.")
        .default("true");

    POOLER: bool = Key::new("pooler", "boolean", |value, _| boolean(value),
        "Whether a pooler in transaction mode (such as PgBouncer) stands before PostgreSQL.")
        .default("false");
}
