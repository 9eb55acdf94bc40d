//! Ends runs whose owner has vanished.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use lockcore::BootInstant;
use tracing::{info, warn};

use crate::clock::Clock;
use crate::firing::State;
use crate::ledger::{LedgerError, Run, Running, Suspect, Sweeping, Swept};
use crate::rules::QUEUE_EXPIRY;

/// What one replica has seen of the running rows, on its own clock.
///
/// A row is a suspect only if this replica has watched it for a whole lease and nobody has touched it. The ledger's
/// clock alone does not suffice: if it jumps, or if the ledger returns after an outage, all leases are over at once.
///
/// While the ledger is away nobody can touch a row. Therefore the time between two looks counts for a third of a
/// lease at most. When the ledger comes back, the owners have the rest of the lease to renew it, or to record a
/// run that has ended meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    seen: HashMap<Run, Sighting>,
    looked: Option<BootInstant>,
}

/// One lease, and for how long it has been watched without a change.
#[derive(Clone, Copy, Debug)]
struct Sighting {
    lease_until: DateTime<Utc>,
    watched: Duration,
    lease: Duration,
}

impl Sighting {
    fn watched_for(self, more: Duration) -> Self {
        Self { watched: self.watched + more.min(self.lease / 3), ..self }
    }
}

/// What jobs.toml says about a job whose run may be swept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SweepTerms {
    /// The job's lease.
    pub(crate) ttl: Duration,
    /// After more vanished owners than this the firing ends.
    pub(crate) max_crashes: u32,
}

impl Sweep {
    /// Looks at every running row and ends those whose owner has vanished. Returns them.
    ///
    /// # Errors
    /// When the ledger does not answer. What was seen so far is kept.
    ///
    /// # Cancel safety
    /// Safe to drop: a sweep that was not acknowledged is repeated.
    pub(crate) async fn once(
        &mut self,
        clock: &dyn Clock,
        sweeping: &dyn Sweeping,
        terms: impl Fn(&str) -> SweepTerms,
    ) -> Result<Vec<Swept>, LedgerError> {
        let rows = sweeping.running().await?;
        let suspects = self.suspects(clock.boot_now(), &rows, terms);
        if suspects.is_empty() {
            return Ok(Vec::new());
        }
        let swept = sweeping.sweep(&suspects).await?;
        for run in &swept {
            let (job, id, fence) = (&run.job, run.run.id.0, run.run.fence.0);
            if run.state == State::Queued {
                info!(job, id, fence, "the owner of a run vanished; queued again");
            } else {
                let reason = run.reason.map_or("", |reason| reason.as_str());
                warn!(job, id, fence, state = %run.state, reason, "the owner of a run vanished");
            }
        }
        Ok(swept)
    }

    fn suspects(
        &mut self,
        now: BootInstant,
        rows: &[Running],
        terms: impl Fn(&str) -> SweepTerms,
    ) -> Vec<Suspect> {
        let since_last = self.looked.map_or(Duration::ZERO, |last| now.saturating_since(last));
        let mut still = HashMap::with_capacity(rows.len());
        let mut suspects = Vec::new();
        for row in rows {
            let SweepTerms { ttl, max_crashes } = terms(&row.job);
            let sighting = match self.seen.get(&row.run) {
                Some(old) if old.lease_until == row.lease_until => old.watched_for(since_last),
                // Another replica may have a different file, which gives the job a longer lease than ours.
                _ => {
                    let lease = ttl.max(row.remaining);
                    Sighting { lease_until: row.lease_until, watched: Duration::ZERO, lease }
                }
            };
            still.insert(row.run, sighting);
            if row.remaining.is_zero() && sighting.watched >= sighting.lease {
                suspects.push(Suspect {
                    run: row.run,
                    lease_until: row.lease_until,
                    max_crashes,
                    expires_in: QUEUE_EXPIRY,
                });
            }
        }
        self.seen = still;
        self.looked = Some(now);
        suspects
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::firing::{Delivery, Fence};
    use crate::ledger::FiringId;

    const TTL: Duration = Duration::from_secs(2);

    fn row(lease_until: i64, remaining: u64) -> Running {
        Running {
            run: Run { id: FiringId(1), fence: Fence(7) },
            job: "pay".into(),
            scheduled_at: DateTime::UNIX_EPOCH,
            owner: "a".into(),
            delivery: Delivery::AtLeastOnce.into(),
            lease_until: DateTime::UNIX_EPOCH + TimeDelta::seconds(lease_until),
            remaining: Duration::from_secs(remaining),
        }
    }

    /// How many suspects there are at `second`, after looks at each half second since `from`.
    fn watch(sweep: &mut Sweep, from: u64, second: u64, row: &Running) -> usize {
        let mut suspects = 0;
        for half in 2 * from..=2 * second {
            let now = BootInstant::from_boot(Duration::from_millis(500) * u32::try_from(half).unwrap());
            let terms = |_: &str| SweepTerms { ttl: TTL, max_crashes: 3 };
            suspects = sweep.suspects(now, std::slice::from_ref(row), terms).len();
        }
        suspects
    }

    #[test]
    fn a_row_is_suspect_only_after_it_was_seen_untouched_for_a_whole_lease() {
        let mut sweep = Sweep::default();
        assert_eq!(watch(&mut sweep, 10, 11, &row(100, 0)), 0);
        assert_eq!(watch(&mut sweep, 12, 12, &row(100, 0)), 0, "it was not watched all the time");
        assert_eq!(watch(&mut sweep, 13, 13, &row(100, 0)), 1);
    }

    #[test]
    fn a_heartbeat_starts_the_watch_anew() {
        let mut sweep = Sweep::default();
        assert_eq!(watch(&mut sweep, 10, 11, &row(100, 0)), 0);
        assert_eq!(watch(&mut sweep, 12, 13, &row(101, 0)), 0);
        assert_eq!(watch(&mut sweep, 14, 14, &row(101, 0)), 0);
        assert_eq!(watch(&mut sweep, 15, 15, &row(101, 0)), 1);
    }

    #[test]
    fn a_ledger_that_was_away_gives_its_owners_time_to_come_back() {
        let mut sweep = Sweep::default();
        assert_eq!(watch(&mut sweep, 10, 11, &row(100, 0)), 0);
        // An hour without an answer is no hour without a heartbeat.
        assert_eq!(watch(&mut sweep, 3_600, 3_600, &row(100, 0)), 0);
        assert_eq!(watch(&mut sweep, 3_601, 3_601, &row(100, 0)), 1);
    }

    #[test]
    fn a_lease_that_the_ledger_still_believes_is_never_suspect() {
        let mut sweep = Sweep::default();
        assert_eq!(watch(&mut sweep, 10, 99, &row(100, 1)), 0);
    }

    #[test]
    fn a_lease_longer_than_our_file_says_is_waited_for() {
        let mut sweep = Sweep::default();
        assert_eq!(watch(&mut sweep, 10, 10, &row(100, 30)), 0);
        assert_eq!(watch(&mut sweep, 11, 39, &row(100, 0)), 0);
        assert_eq!(watch(&mut sweep, 40, 40, &row(100, 0)), 1);
    }
}
