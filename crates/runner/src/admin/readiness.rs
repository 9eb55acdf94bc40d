//! Whether this replica can work now.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Site;
use crate::engine::scheduler::LastTick;

/// The scheduler ticks every second, or every three seconds if its ticker fails. It hangs if it has not
/// ticked for this long.
const SILENCE: Duration = Duration::from_secs(5);

/// What the answer depends on. It is looked at for each request.
#[derive(Clone, Debug)]
pub(crate) struct Readiness {
    pub(crate) site: Site,
    pub(crate) last_tick: Arc<LastTick>,
}

impl Readiness {
    /// Every reason why the replica is not ready, in words; empty when it is ready.
    ///
    /// The lock's server is not asked. Without it a job runs with the ledger alone or its firing is recorded
    /// as skipped, and a replica that is not ready for that reason would do neither.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.site.drain.is_closing() {
            missing.push("draining: this replica takes no new firings".to_owned());
        }
        if !self.site.pulse.is_beating() {
            missing.push("the ledger does not answer".to_owned());
        }
        match self.last_tick.age(self.site.clock.boot_now()) {
            None => missing.push("the scheduler has not begun".to_owned()),
            Some(age) if age > SILENCE => {
                missing.push(format!("the scheduler has not ticked for {} s", age.as_secs()));
            }
            Some(_) => {}
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use lockcore::BootClock;

    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn a_planner_that_stands_still_is_told_and_so_is_everything_else_that_is_missing() {
        let clock = Arc::new(ManualClock::new(DateTime::UNIX_EPOCH));
        let site = Site::new(clock.clone(), Arc::default());
        let readiness = Readiness { site, last_tick: Arc::default() };
        assert_eq!(readiness.missing(), ["the ledger does not answer", "the scheduler has not begun"]);
        readiness.last_tick.tick(clock.boot_now());
        clock.advance(SILENCE);
        assert_eq!(readiness.missing(), ["the ledger does not answer"]);
        clock.advance(Duration::from_secs(2));
        assert_eq!(readiness.missing()[1], "the scheduler has not ticked for 7 s");
        readiness.site.drain.close();
        assert!(readiness.missing()[0].starts_with("draining"));
        readiness.last_tick.tick(clock.boot_now());
        assert_eq!(readiness.missing().len(), 2);
    }
}
