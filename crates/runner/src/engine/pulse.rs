//! The ledger's pulse: whether it answers, and what time it is there.
//!
//! A replica that cannot reach the ledger would fail faster than the others and so win every lock. Therefore it
//! does not contend while the pulse is gone. And a replica's own wall clock may be wrong. Therefore firings go by
//! the ledger's clock. Between two probes the boot clock carries it forward; no operator and no NTP step can move
//! that one.
//!
//! It also notices when another server has taken the ledger over, and logs what may be lost then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use lockcore::BootInstant;
use tokio::sync::Notify;
use tracing::{error, info, warn};

use crate::clock::Clock;
use crate::ledger::{Housekeeping, LedgerError, Reader, Reading, Server, Succession};
use crate::telemetry;

/// How often the ledger is asked for its time.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// If the ledger's clock is this far from where it should be by the boot clock, somebody has set it.
const STEP: TimeDelta = TimeDelta::seconds(1);
/// For so long after a step the ledger's clock is not believed about the past. A clock that is wrong for a few seconds
/// must not decide about hours of firings.
const SETTLES_IN: Duration = Duration::from_secs(15);
/// If this host's clock differs by more than this, a warning is logged.
const OFFSET_WARNING: TimeDelta = TimeDelta::seconds(1);

/// Knows whether the ledger is reachable, and its clock.
#[derive(Debug)]
pub(crate) struct Pulse {
    clock: Arc<dyn Clock>,
    anchor: Mutex<Option<Anchor>>,
    beating: AtomicBool,
    /// Notified when the ledger answers again. Those who wait get their turn in the order in which they came.
    came_back: Notify,
    /// Whether the wrong clock of this host has been logged. When the clock is right again, this is reset.
    told_of_offset: AtomicBool,
    /// The newest server that has answered.
    server: Mutex<Option<Server>>,
    /// Whether it has been logged that a server answers which another one has replaced.
    told_overruled: AtomicBool,
    /// When the ledger's clock was last seen to be set.
    stepped: Mutex<Option<BootInstant>>,
}

/// One moment at which both clocks were read.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    boot: BootInstant,
    ledger: DateTime<Utc>,
    round_trip: Duration,
}

impl Pulse {
    /// A new pulse: the ledger counts as away until a probe succeeds.
    #[must_use]
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            anchor: Mutex::new(None),
            beating: AtomicBool::new(false),
            came_back: Notify::new(),
            told_of_offset: AtomicBool::new(false),
            server: Mutex::new(None),
            told_overruled: AtomicBool::new(false),
            stepped: Mutex::new(None),
        }
    }

    /// The time as the ledger sees it; the host's wall clock until the ledger was first reached.
    #[must_use]
    pub(crate) fn now(&self) -> DateTime<Utc> {
        match *self.anchor() {
            Some(anchor) => {
                let since = self.clock.boot_now().saturating_since(anchor.boot);
                anchor.ledger + TimeDelta::from_std(since).unwrap_or(TimeDelta::MAX)
            }
            None => self.clock.wall_now(),
        }
    }

    /// Sleeps until the ledger's clock shows `instant`.
    ///
    /// # Cancel safety
    /// Safe to drop.
    pub(crate) async fn sleep_until(&self, instant: DateTime<Utc>) {
        // The clock may be stepped and the machine suspended while we sleep: look again each second.
        while let Ok(left) = (instant - self.now()).to_std() {
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(Duration::from_secs(1))).await;
        }
    }

    /// Whether the ledger answered when it was last asked.
    #[must_use]
    pub(crate) fn is_beating(&self) -> bool {
        self.beating.load(Ordering::Relaxed)
    }

    /// Whether the ledger's clock has gone on for a while without having been set.
    #[must_use]
    pub(crate) fn is_clock_settled(&self) -> bool {
        let stepped = *self.stepped.lock().unwrap_or_else(PoisonError::into_inner);
        stepped.is_none_or(|at| self.clock.boot_now().saturating_since(at) >= SETTLES_IN)
    }

    /// Waits until the ledger answers.
    ///
    /// # Cancel safety
    /// Safe to drop.
    pub(crate) async fn beating(&self) {
        loop {
            let came_back = self.came_back.notified();
            if self.is_beating() {
                return;
            }
            came_back.await;
        }
    }

    /// Tells the pulse what a call to the ledger has just shown, without waiting for the next probe.
    pub(crate) fn lost(&self, error: &LedgerError) {
        if error.is_unavailable() && self.set_beating(false) {
            warn!(
                error = error as &dyn std::error::Error,
                "the ledger does not answer; no firing contends until it does"
            );
        }
    }

    /// Probes the ledger once a second, for ever.
    pub(crate) async fn probe(&self, reader: &dyn Reader, housekeeping: &dyn Housekeeping) {
        loop {
            self.probe_once(reader, housekeeping).await;
            tokio::time::sleep(PROBE_EVERY).await;
        }
    }

    /// Asks the ledger for its time, once.
    pub(crate) async fn probe_once(&self, reader: &dyn Reader, housekeeping: &dyn Housekeeping) {
        let sent = self.clock.boot_now();
        let answer = match reader.now().await {
            Ok(Reading { now, server }) => {
                self.accept(server, housekeeping).await.map(|accepted| accepted.then_some(now))
            }
            Err(error) => Err(error),
        };
        match answer {
            Ok(Some(ledger)) => self.answered(sent, ledger),
            Ok(None) => {
                self.set_beating(false);
            }
            Err(error) => {
                let refused = !error.is_unavailable();
                if refused && self.set_beating(false) {
                    warn!(error = &error as &dyn std::error::Error, "the ledger refuses to tell its time");
                }
                self.lost(&error);
            }
        }
    }

    /// Whether this replica may use the server that answers. A new server is noted in the ledger first, before
    /// anything is claimed there.
    async fn accept(
        &self,
        server: Option<Server>,
        housekeeping: &dyn Housekeeping,
    ) -> Result<bool, LedgerError> {
        let Some(server) = server else { return Ok(true) };
        let seen = *self.server.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.map(|seen| seen.succession(server)) {
            Some(Succession::Same) => return Ok(true),
            Some(Succession::Overruled) => {
                if !self.told_overruled.swap(true, Ordering::Relaxed) {
                    error!(
                        timeline = server.timeline,
                        newest = seen.map(|seen| seen.timeline),
                        "a database server answers that a promoted standby has replaced: two may be taking \
                         rows. Nothing is fired through it; shut it down (to go back to it on purpose, \
                         restart the replicas)"
                    );
                }
                return Ok(false);
            }
            Some(Succession::Promoted | Succession::Foreign) | None => {}
        }
        let noted = housekeeping.adopt().await?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        self.told_overruled.store(false, Ordering::Relaxed);
        // A replica that starts after the change compares with what the ledger has noted.
        if let Some(former) = seen.or(noted) {
            report_succession(former, server);
        }
        Ok(true)
    }

    /// Notes that the ledger has answered a question that was sent at `sent`, and its time then.
    pub(super) fn answered(&self, sent: BootInstant, ledger: DateTime<Utc>) {
        let now = self.clock.boot_now();
        let round_trip = now.saturating_since(sent);
        let fresh = Anchor { boot: sent + round_trip / 2, ledger, round_trip };
        let mut anchor = self.anchor();
        // A slow answer tells the time less exactly than a fast one. The better anchor is kept while both agree
        // within that error. A clock that was set shows a larger difference.
        let replace = match *anchor {
            None => true,
            Some(old) => {
                let carried = old.ledger
                    + TimeDelta::from_std(fresh.boot.saturating_since(old.boot)).unwrap_or(TimeDelta::MAX);
                let step = fresh.ledger - carried;
                let apart = step.abs().to_std().unwrap_or_default();
                if step.abs() > STEP && apart > round_trip + old.round_trip {
                    self.notice_step(now, step);
                }
                let aged = now.saturating_since(old.boot) > Duration::from_secs(60);
                round_trip <= old.round_trip * 2 || apart > round_trip || aged
            }
        };
        if replace {
            *anchor = Some(fresh);
        }
        drop(anchor);
        self.report_offset();
        if !self.set_beating(true) {
            info!("the ledger answers");
        }
    }

    fn notice_step(&self, now: BootInstant, step: TimeDelta) {
        *self.stepped.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        telemetry::clock_stepped();
        warn!(
            step_ms = step.num_milliseconds(),
            "the ledger's clock was set; firings follow it, and missed ones are looked for in {SETTLES_IN:?}"
        );
    }

    /// Notes whether the ledger answers, and returns whether it did before.
    fn set_beating(&self, beating: bool) -> bool {
        let before = self.beating.swap(beating, Ordering::Relaxed);
        if beating && !before {
            self.came_back.notify_waiters();
        }
        before
    }

    fn report_offset(&self) {
        let offset = self.clock.wall_now() - self.now();
        telemetry::clock_offset(offset);
        if offset.abs() < OFFSET_WARNING / 2 {
            self.told_of_offset.store(false, Ordering::Relaxed);
        } else if offset.abs() > OFFSET_WARNING && !self.told_of_offset.swap(true, Ordering::Relaxed) {
            warn!(
                offset_ms = offset.num_milliseconds(),
                "this host's clock differs from the ledger's; firings go by the ledger's"
            );
        }
    }

    fn anchor(&self) -> std::sync::MutexGuard<'_, Option<Anchor>> {
        self.anchor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs what is not promised any more, and what to do.
fn report_succession(former: Server, server: Server) {
    let succession = former.succession(server);
    if succession == Succession::Same {
        return;
    }
    telemetry::ledger_failover();
    if succession == Succession::Foreign {
        error!(
            system = server.system,
            former = former.system,
            "the ledger's URL leads to another database cluster: firings whose rows were not brought along \
             run again. If that was not meant, stop the replicas and correct the URL"
        );
    } else {
        warn!(
            timeline = server.timeline,
            former = former.timeline,
            "a standby has been promoted under the ledger: unless replication is synchronous, rows of the last \
             moments may be missing and their firings may run again, with a higher fence. See that the \
             former server is down, and look for lost work: docs/operating.md"
        );
    }
}

#[cfg(test)]
mod tests {
    use lockcore::BootClock;
    use tokio::time::Instant;

    use super::*;

    /// A host whose timers run fast, and which can be suspended: its timers do not notice that.
    #[derive(Debug)]
    struct Host {
        began: Instant,
        suspended: Mutex<Duration>,
    }

    impl Host {
        fn pulse() -> (Arc<Self>, Pulse) {
            #[expect(clippy::disallowed_methods, reason = "the runtime's paused time is this host's")]
            let began = Instant::now();
            let host = Arc::new(Self { began, suspended: Mutex::default() });
            let pulse = Pulse::new(host.clone());
            pulse.answered(host.boot_now(), host.wall_now());
            (host, pulse)
        }
    }

    impl BootClock for Host {
        fn boot_now(&self) -> BootInstant {
            let awake = self.began.elapsed().mul_f64(0.98);
            BootInstant::from_boot(Duration::from_secs(1_000) + awake + *self.suspended.lock().unwrap())
        }
    }

    impl Clock for Host {
        fn wall_now(&self) -> DateTime<Utc> {
            DateTime::UNIX_EPOCH + self.boot_now().saturating_since(BootInstant::from_boot(Duration::ZERO))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_whose_timers_are_early_goes_on_until_its_instant() {
        let (_host, pulse) = Host::pulse();
        for number in 1..1_000 {
            let instant = pulse.now() + TimeDelta::milliseconds(1 + number * number % 30_000);
            pulse.sleep_until(instant).await;
            let late = pulse.now() - instant;
            assert!(late >= TimeDelta::zero() && late < TimeDelta::milliseconds(5), "{late}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_through_a_suspend_ends_a_second_after_it_and_not_by_so_much_later() {
        let (host, pulse) = Host::pulse();
        let instant = pulse.now() + TimeDelta::hours(23);
        let suspend = async {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            *host.suspended.lock().unwrap() = Duration::from_secs(30 * 3_600);
        };
        let (woken, ()) = tokio::join!(pulse.sleep_until(instant), suspend);
        let () = woken;
        assert!(host.began.elapsed() < Duration::from_secs(3_602), "{:?}", host.began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_either_way_is_settled_after_a_while() {
        let (host, pulse) = Host::pulse();
        let answer = |ahead: TimeDelta| pulse.answered(host.boot_now(), host.wall_now() + ahead);
        answer(TimeDelta::milliseconds(900));
        assert!(pulse.is_clock_settled());
        for ahead in [TimeDelta::hours(8), TimeDelta::zero()] {
            answer(ahead);
            assert!(!pulse.is_clock_settled());
            tokio::time::sleep(Duration::from_secs(15)).await;
            answer(ahead);
            assert!(!pulse.is_clock_settled(), "this host's timers run a little fast");
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(pulse.is_clock_settled());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspend_of_this_host_is_no_step_of_the_ledgers_clock() {
        let (host, pulse) = Host::pulse();
        *host.suspended.lock().unwrap() = Duration::from_secs(30 * 3_600);
        pulse.answered(host.boot_now(), host.wall_now());
        assert!(pulse.is_clock_settled());
    }
}
