//! The clock that leases are judged by: it only moves forward, and it counts suspend.

use std::fmt::Debug;
use std::ops::Add;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment on the boot clock: time since the machine started, suspend included.
///
/// `std::time::Instant` stands still while a laptop or a VM sleeps, so a lease measured by it would
/// look fresh after a night in which it ran out elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(Duration);

impl BootInstant {
    /// The moment `since_boot` after the machine started.
    #[must_use]
    pub const fn from_boot(since_boot: Duration) -> Self {
        Self(since_boot)
    }

    /// Time from `earlier` to this moment; zero if `earlier` is later.
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// This moment moved `span` into the past, at most to the start of the clock.
    #[must_use]
    pub fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

impl Add<Duration> for BootInstant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

/// Where leases read the time. Passed in, so that a test can hold it.
pub trait BootClock: Debug + Send + Sync + 'static {
    /// The present moment.
    fn boot_now(&self) -> BootInstant;
}

/// Sleeps until `clock` reads `until`.
///
/// It looks at the clock at least every second: the runtime's timers stand still while the machine is
/// suspended, so one long sleep would end hours after its moment.
pub(crate) async fn sleep_until(clock: &dyn BootClock, until: BootInstant) {
    loop {
        let left = until.saturating_since(clock.boot_now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(Duration::from_secs(1))).await;
    }
}

/// The kernel's `CLOCK_BOOTTIME`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemBootClock;

impl BootClock for SystemBootClock {
    fn boot_now(&self) -> BootInstant {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
        BootInstant(Duration::new(seconds, nanos))
    }
}
