//! `[lock]`: layer one.

use std::time::Duration;

use config::Value;

use super::row::{Key, keys};
use crate::config::address;
use crate::config::budget::{LONGEST_TTL, SHORTEST_TTL};
use crate::config::diagnose::Exposure;
use crate::config::duration::at_least;
use crate::config::secret::Secret;
use crate::config::value::BadValue;

keys! { "lock":
    URL: Secret = Key::new("url", "secret", |value, walk| address::lock(walk.resolver.secret(value)?),
        "The Redis that all replicas share: `redis://`, `rediss://` (TLS), `redis+unix:///path`. Without it the lock holds within one process only; the ledger still forbids a second run.")
        .default_in_words("none")
        .exposed(Exposure::Never)
        .refuses("what the Redis client cannot use: other schemes, a missing host, a port or database that is not a number");

    TTL: Duration = Key::new("ttl", "duration", |value, _| ttl(value),
        "The lease of a run, in both layers, unless the job has its own: how long the firing of a lost owner waits for another. About three times the duration of all but the slowest runs.")
        .default("\"30s\"")
        .refuses("less than `1s`, where network timeouts and a busy machine would lose leases that are held; more than `1d`");
}

/// A ttl, of `[lock]` or of a job.
pub(crate) fn ttl(value: &Value) -> Result<Duration, BadValue> {
    let why = "below one second, network timeouts and a busy machine would lose leases that are held";
    let ttl = at_least(value, SHORTEST_TTL, why)?;
    if ttl > LONGEST_TTL {
        let message = "a ttl is at most a day: when the owner of a firing is lost, another waits that long";
        return Err(
            BadValue::new(message).hint("for long runs set timeout: the lease is renewed while they run")
        );
    }
    Ok(ttl)
}
