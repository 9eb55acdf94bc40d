//! Locks in the memory of one process: no server, the same rules.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{
    AcquireOutcome, AcquireRequest, BootClock, BootInstant, BoxFuture, DoneMark, Holder, LockBackend,
    LockError, LockKey, ReleaseOutcome, RenewOutcome, Token,
};

/// A table of locks in the memory of this process. It never fails.
#[derive(Debug)]
pub(crate) struct MemoryBackend {
    clock: Arc<dyn BootClock>,
    table: Mutex<Table>,
}

impl MemoryBackend {
    /// An empty table whose expiries are judged by `clock`.
    pub(crate) fn new(clock: Arc<dyn BootClock>) -> Self {
        Self { clock, table: Mutex::new(Table::default()) }
    }

    /// Runs one step on the table. The step is atomic, because the table is locked meanwhile.
    fn step<'a, T>(
        &'a self,
        step: impl FnOnce(&mut Table, BootInstant) -> T + Send + 'a,
    ) -> BoxFuture<'a, Result<T, LockError>> {
        Box::pin(async move {
            let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
            let now = self.clock.boot_now();
            Ok(step(&mut table, now))
        })
    }
}

impl LockBackend for MemoryBackend {
    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<AcquireOutcome, LockError>> {
        self.step(move |table, now| {
            let lock = request.key.lock();
            let holder = table.get(&lock, now);
            if holder.is_some_and(|(value, _)| value == request.token.as_str()) {
                return AcquireOutcome::Acquired;
            }
            if let Some(subject) = &request.unless_done
                && table.get(&request.key.done(), now).is_some_and(|(value, _)| value == subject)
            {
                return AcquireOutcome::Done;
            }
            if let Some((value, remaining)) = table.get(&lock, now) {
                return AcquireOutcome::Held {
                    holder: Holder::from_value(value),
                    remaining: Some(remaining),
                };
            }
            table.set(lock, request.token.as_str(), request.ttl, now);
            AcquireOutcome::Acquired
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<RenewOutcome, LockError>> {
        self.step(move |table, now| {
            let lock = key.lock();
            if table.get(&lock, now).is_none_or(|(value, _)| value != token.as_str()) {
                return RenewOutcome::NotMine;
            }
            table.set(lock, token.as_str(), ttl, now);
            RenewOutcome::Renewed
        })
    }

    fn release<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        done: Option<&'a DoneMark>,
    ) -> BoxFuture<'a, Result<ReleaseOutcome, LockError>> {
        self.step(move |table, now| {
            let lock = key.lock();
            if table.get(&lock, now).is_none_or(|(value, _)| value != token.as_str()) {
                return ReleaseOutcome::NotMine;
            }
            table.entries.remove(&lock);
            if let Some(mark) = done {
                table.set(key.done(), &mark.subject, mark.ttl, now);
            }
            ReleaseOutcome::Released
        })
    }
}

/// Values that expire, as in Redis.
#[derive(Debug, Default)]
struct Table {
    entries: HashMap<String, (String, BootInstant)>,
    /// How many entries had not expired when the expired ones were last removed.
    alive: usize,
}

impl Table {
    /// The value and the time until it expires, if it has not expired.
    fn get(&self, key: &str, now: BootInstant) -> Option<(&str, Duration)> {
        let (value, expiry) = self.entries.get(key)?;
        let remaining = expiry.saturating_since(now);
        (!remaining.is_zero()).then_some((value.as_str(), remaining))
    }

    fn set(&mut self, key: String, value: &str, ttl: Duration, now: BootInstant) {
        self.entries.insert(key, (value.into(), now + ttl));
        // Nobody asks for the keys of past instants again. Expired entries are removed each time the table
        // has doubled: it stays small, and the cost of one `set` is constant on average.
        if self.entries.len() > 64.max(2 * self.alive) {
            self.entries.retain(|_, (_, expiry)| *expiry > now);
            self.alive = self.entries.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_entries_are_removed_each_time_the_table_has_doubled() {
        let (mut table, ttl, start) =
            (Table::default(), Duration::from_secs(1), BootInstant::from_boot(Duration::ZERO));
        let mut removals = Vec::new();
        for number in 1..=300_usize {
            let before = table.alive;
            table.set(format!("job@{number}"), "token", ttl, start);
            if table.alive != before {
                removals.push(number);
            }
        }
        assert_eq!(removals, [65, 131, 263]);
        assert_eq!(table.entries.len(), 300, "what has not expired stays");
    }

    #[test]
    fn an_entry_that_expires_at_this_very_moment_is_removed() {
        let (mut table, ttl, start) =
            (Table::default(), Duration::from_secs(1), BootInstant::from_boot(Duration::ZERO));
        for number in 0..64 {
            table.set(format!("job@{number}"), "token", ttl, start);
        }
        assert!(table.get("job@0", start + ttl).is_none());
        table.set("job@64".into(), "token", ttl, start + ttl);
        assert_eq!((table.entries.len(), table.alive), (1, 1));
    }

    #[test]
    fn keys_of_past_instants_do_not_accumulate() {
        let mut table = Table::default();
        let ttl = Duration::from_secs(1);
        for second in 0..10_000_u64 {
            let now = BootInstant::from_boot(Duration::from_secs(second));
            table.set(format!("job@{second}"), "token", ttl, now);
        }
        assert!(table.entries.len() <= 65, "{} entries", table.entries.len());
    }
}
