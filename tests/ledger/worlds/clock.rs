//! The clocks of one simulated replica.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use lockcore::{BootClock, BootInstant};
use runner::internal::clock::Clock;
use tokio::time::Instant;

use super::plan::Tick;
use super::servers::ledger_time;
use crate::book::instant;

/// How long a machine had been up when the world began.
const UP_FOR: u64 = 1_000_000;

/// The time of a runtime that stands still until it is moved, as its replica reads it.
#[derive(Debug)]
pub(crate) struct SimClock {
    /// The moment of the world at which the runtime began; later, if its machine has slept since.
    base: AtomicU64,
    zero: OnceLock<Instant>,
    /// How far the boot clock is off, in millionths.
    drift: i64,
    /// How far the wall clock is off, in milliseconds.
    skew: AtomicI64,
    over: AtomicBool,
}

impl SimClock {
    pub(crate) fn new(base: Tick, drift: i64, skew: i64) -> Self {
        Self {
            base: AtomicU64::new(base),
            zero: OnceLock::new(),
            drift,
            skew: AtomicI64::new(skew),
            over: AtomicBool::new(false),
        }
    }

    /// Begins; call within the runtime.
    pub(crate) fn start(&self) {
        self.zero.get_or_init(Instant::now);
    }

    /// The moment of the world; call within the runtime.
    pub(crate) fn now(&self) -> Tick {
        let zero = self.zero.get_or_init(Instant::now);
        let elapsed = u64::try_from(zero.elapsed().as_millis()).expect("a short world");
        self.base.load(Ordering::Relaxed) + elapsed
    }

    /// When the runtime's timers show this moment of the world.
    pub(crate) fn at(&self, moment: Tick) -> Instant {
        let zero = self.zero.get_or_init(Instant::now);
        *zero + Duration::from_millis(moment.saturating_sub(self.base.load(Ordering::Relaxed)))
    }

    /// The machine slept for so long.
    pub(crate) fn slept(&self, span: Tick) {
        self.base.fetch_add(span, Ordering::Relaxed);
    }

    /// The replica is gone: whatever is dropped from now on was not done by it.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(crate) fn set_skew(&self, skew: i64) {
        self.skew.store(skew, Ordering::Relaxed);
    }
}

impl BootClock for SimClock {
    fn boot_now(&self) -> BootInstant {
        let micros = (UP_FOR + self.now()) * 1_000;
        let drift = i64::try_from(micros).expect("a short world") / 1_000_000 * self.drift;
        BootInstant::from_boot(Duration::from_micros(micros.saturating_add_signed(drift)))
    }
}

impl Clock for SimClock {
    fn wall_now(&self) -> DateTime<Utc> {
        instant(ledger_time(self.now()) + self.skew.load(Ordering::Relaxed))
    }
}
