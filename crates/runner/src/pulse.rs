//! The ledger's pulse: whether it answers, and what time it is there.
//!
//! A replica that is cut off from the ledger would fail fastest and so win every lock; therefore it
//! does not contend while the pulse is gone. And a replica's own wall clock may be wrong; therefore
//! firings are judged by the ledger's clock, carried forward between probes on the boot clock, which
//! no operator and no NTP step can move.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use lockcore::BootInstant;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::clock::Clock;
use crate::ledger::{LedgerError, Reader};
use crate::telemetry;

/// How often the ledger is asked for its time.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// A clock that is further off than this deserves a warning.
const OFFSET_WARNING: TimeDelta = TimeDelta::seconds(1);

/// Knows whether the ledger is reachable, and its clock.
#[derive(Debug)]
pub(crate) struct Pulse {
    clock: Arc<dyn Clock>,
    anchor: Mutex<Option<Anchor>>,
    beating: watch::Sender<bool>,
    /// Whether people have been told that this host's clock is off; told again once it was right.
    told_off: AtomicBool,
}

/// One moment at which both clocks were read.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    boot: BootInstant,
    ledger: DateTime<Utc>,
    round_trip: Duration,
}

impl Pulse {
    /// A pulse that has not been felt yet: the ledger counts as away until a probe succeeds.
    #[must_use]
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let told_off = AtomicBool::new(false);
        Self { clock, anchor: Mutex::new(None), beating: watch::Sender::new(false), told_off }
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
        *self.beating.borrow()
    }

    /// Waits until the ledger answers.
    ///
    /// # Cancel safety
    /// Safe to drop.
    pub(crate) async fn beating(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let mut beating = self.beating.subscribe();
        let _still_open = beating.wait_for(|beating| *beating).await;
    }

    /// Tells the pulse what a call to the ledger has just shown, without waiting for the next probe.
    pub(crate) fn lost(&self, error: &LedgerError) {
        if error.is_unavailable() && self.beating.send_replace(false) {
            warn!(
                error = error as &dyn std::error::Error,
                "the ledger does not answer; no firing contends until it does"
            );
        }
    }

    /// Probes the ledger once a second, for ever.
    pub(crate) async fn probe(&self, reader: &dyn Reader) {
        loop {
            self.probe_once(reader).await;
            tokio::time::sleep(PROBE_EVERY).await;
        }
    }

    /// Asks the ledger for its time, once.
    pub(crate) async fn probe_once(&self, reader: &dyn Reader) {
        let sent = self.clock.boot_now();
        match reader.now().await {
            Ok(ledger) => self.felt(sent, ledger),
            Err(error) => {
                let refused = !error.is_unavailable();
                if refused && self.beating.send_replace(false) {
                    warn!(error = &error as &dyn std::error::Error, "the ledger refuses to tell its time");
                }
                self.lost(&error);
            }
        }
    }

    fn felt(&self, sent: BootInstant, ledger: DateTime<Utc>) {
        let now = self.clock.boot_now();
        let round_trip = now.saturating_since(sent);
        let fresh = Anchor { boot: sent + round_trip / 2, ledger, round_trip };
        let mut anchor = self.anchor();
        // A slow answer tells the time less well than a quick one. Keep the better anchor while the
        // two agree within what the slow one can tell; a clock that was stepped shows beyond that.
        let replace = match *anchor {
            None => true,
            Some(old) => {
                let carried = old.ledger
                    + TimeDelta::from_std(fresh.boot.saturating_since(old.boot)).unwrap_or(TimeDelta::MAX);
                let apart = (fresh.ledger - carried).abs().to_std().unwrap_or_default();
                let aged = now.saturating_since(old.boot) > Duration::from_secs(60);
                round_trip <= old.round_trip * 2 || apart > round_trip || aged
            }
        };
        if replace {
            *anchor = Some(fresh);
        }
        drop(anchor);
        self.report_offset();
        if !self.beating.send_replace(true) {
            info!("the ledger answers");
        }
    }

    fn report_offset(&self) {
        let offset = self.clock.wall_now() - self.now();
        telemetry::clock_offset(offset);
        if offset.abs() < OFFSET_WARNING / 2 {
            self.told_off.store(false, Ordering::Relaxed);
        } else if offset.abs() > OFFSET_WARNING && !self.told_off.swap(true, Ordering::Relaxed) {
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
