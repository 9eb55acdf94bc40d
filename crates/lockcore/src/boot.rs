//! The clock of leases: it only moves forward, and it goes on while the machine is suspended.

use std::fmt::Debug;
use std::ops::Add;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment on the boot clock: the time since the machine started, including time in suspend.
///
/// `std::time::Instant` does not count the time in which a laptop or a VM is suspended. A lease measured by
/// it would look valid after a suspend in which it expired on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(Duration);

impl BootInstant {
    /// The moment that is `since_boot` after the start of the machine.
    #[must_use]
    pub const fn from_boot(since_boot: Duration) -> Self {
        Self(since_boot)
    }

    /// The time from `earlier` to this moment. Zero if `earlier` is later.
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment `span` before this one, but not before the start of the machine.
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

/// A source of boot time. It is passed in, so that a test can control it.
pub trait BootClock: Debug + Send + Sync + 'static {
    /// The current moment.
    fn boot_now(&self) -> BootInstant;
}

/// Sleeps until `clock` reads `until`.
///
/// It reads the clock at least every second: the timers of the runtime stop while the machine is suspended,
/// so one long sleep could end hours too late.
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
