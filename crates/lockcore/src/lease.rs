//! How long a lock may be believed: pure arithmetic, no clock and no server.

use std::time::Duration;

use crate::BootInstant;

/// One hold of a lock, as its holder may believe in it.
///
/// Trust counts from the instant *before* the request was sent, because the server may have started
/// the expiry at any moment after that; and it ends a margin before the expiry, because two clocks
/// never run at quite the same rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    ttl: Duration,
    sent_at: BootInstant,
    renewals: u32,
    max_renewals: u32,
}

impl Lease {
    /// A lease whose acquisition was first sent at `sent_at`.
    #[must_use]
    pub const fn granted(sent_at: BootInstant, ttl: Duration, max_renewals: u32) -> Self {
        Self { ttl, sent_at, renewals: 0, max_renewals }
    }

    /// The lease after a renewal that was sent at `sent_at`.
    #[must_use]
    pub const fn renewed(self, sent_at: BootInstant) -> Self {
        Self { sent_at, renewals: self.renewals + 1, ..self }
    }

    /// What is taken off the ttl: 1 % for clock rates and 5 ms for timers.
    #[must_use]
    pub fn margin(ttl: Duration) -> Duration {
        ttl / 100 + Duration::from_millis(5)
    }

    /// From this moment on the lock must not be believed.
    #[must_use]
    pub fn trusted_until(&self) -> BootInstant {
        self.sent_at + self.ttl.saturating_sub(Self::margin(self.ttl))
    }

    /// When the next renewal is due; `None` once the cap is reached.
    #[must_use]
    pub fn renewal_due(&self) -> Option<BootInstant> {
        (self.renewals < self.max_renewals).then(|| self.sent_at + self.ttl / 3)
    }

    /// The longest a lock can live: its ttl and `max_renewals` thirds of it.
    #[must_use]
    pub fn longest_life(ttl: Duration, max_renewals: u32) -> Duration {
        ttl.saturating_add((ttl / 3).saturating_mul(max_renewals))
    }

    /// How long the lock lives without a renewal.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How often it has been renewed.
    #[must_use]
    pub const fn renewals(&self) -> u32 {
        self.renewals
    }
}
