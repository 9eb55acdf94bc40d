//! Time, passed in and never taken. A leaf: anyone may use it.

use std::sync::Mutex;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
pub use lockcore::{BootClock, BootInstant, SystemBootClock};

/// The wall clock (for schedules) and the boot clock (for leases) of one replica.
pub trait Clock: BootClock {
    /// This host's idea of UTC. It may be wrong: the ledger's clock decides what is due.
    fn wall_now(&self) -> DateTime<Utc>;
}

/// The host's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock(SystemBootClock);

impl BootClock for SystemClock {
    fn boot_now(&self) -> BootInstant {
        self.0.boot_now()
    }
}

impl Clock for SystemClock {
    fn wall_now(&self) -> DateTime<Utc> {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
        Utc::now()
    }
}

/// Clocks that move when told to.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<(DateTime<Utc>, Duration)>,
}

impl ManualClock {
    /// Clocks that stand at `wall`.
    #[must_use]
    pub fn new(wall: DateTime<Utc>) -> Self {
        Self { state: Mutex::new((wall, Duration::from_secs(1_000))) }
    }

    /// Lets `span` pass on both clocks.
    pub fn advance(&self, span: Duration) {
        let mut state = self.lock();
        state.0 += TimeDelta::from_std(span).unwrap_or(TimeDelta::MAX);
        state.1 += span;
    }

    /// Sets the wall clock, as an operator or NTP would; the boot clock does not notice.
    pub fn jump(&self, wall: DateTime<Utc>) {
        self.lock().0 = wall;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (DateTime<Utc>, Duration)> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl BootClock for ManualClock {
    fn boot_now(&self) -> BootInstant {
        BootInstant::from_boot(self.lock().1)
    }
}

impl Clock for ManualClock {
    fn wall_now(&self) -> DateTime<Utc> {
        self.lock().0
    }
}

/// Sleeps until the boot clock shows `at`.
///
/// Timers stand still while the machine is suspended; looking again each second bounds how late we
/// learn of it.
///
/// # Cancel safety
/// Safe to drop.
pub async fn sleep_until(clock: &dyn Clock, at: BootInstant) {
    loop {
        let left = at.saturating_since(clock.boot_now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(Duration::from_secs(1))).await;
    }
}
