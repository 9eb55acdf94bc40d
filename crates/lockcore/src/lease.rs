//! How long a lock may be trusted: pure arithmetic, without a clock and without a server.

use std::time::Duration;

use crate::BootInstant;

/// How long the holder of a lock may trust that it has the lock.
///
/// Trust counts from the instant *before* the request was sent, because the server may have started the
/// expiry at any moment after that. It ends a margin before the expiry, because two clocks never run at
/// exactly the same rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    ttl: Duration,
    granted_at: BootInstant,
    sent_at: BootInstant,
    renewals: u32,
    max_renewals: u32,
}

impl Lease {
    /// A lease whose acquisition was first sent at `sent_at`.
    #[must_use]
    pub const fn granted(sent_at: BootInstant, ttl: Duration, max_renewals: u32) -> Self {
        Self { ttl, granted_at: sent_at, sent_at, renewals: 0, max_renewals }
    }

    /// The lease after a renewal that was sent at `sent_at`.
    #[must_use]
    pub const fn renewed(self, sent_at: BootInstant) -> Self {
        Self { sent_at, renewals: self.renewals.saturating_add(1), ..self }
    }

    /// How long before the expiry trust ends: 1 % of the ttl for the rates of clocks, and 5 ms for timers.
    #[must_use]
    pub fn margin(ttl: Duration) -> Duration {
        ttl / 100 + Duration::from_millis(5)
    }

    /// From this moment on the lock must not be trusted.
    #[must_use]
    pub fn trusted_until(&self) -> BootInstant {
        let expiry = (self.sent_at + self.ttl).min(self.life_ends());
        expiry.saturating_sub(Self::margin(self.ttl))
    }

    /// When the next renewal is due. `None` once the cap is reached.
    #[must_use]
    pub fn renewal_due(&self) -> Option<BootInstant> {
        let capped = self.renewals >= self.max_renewals || self.sent_at + self.ttl >= self.life_ends();
        (!capped).then(|| self.sent_at + self.ttl / 3)
    }

    /// The ttl that a renewal sent at `now` may ask for. `None` once the life of the lock has ended.
    ///
    /// It is the full ttl, but never reaches beyond [`life_ends`](Self::life_ends). Renewals without a reply
    /// are not counted; without this limit they could keep a lock alive for ever.
    #[must_use]
    pub fn renewal_ttl(&self, now: BootInstant) -> Option<Duration> {
        let left = self.life_ends().saturating_since(now);
        (left >= Duration::from_millis(1)).then(|| left.min(self.ttl))
    }

    /// When the lock expires at the latest, however often it is renewed.
    #[must_use]
    pub fn life_ends(&self) -> BootInstant {
        self.granted_at + Self::longest_life(self.ttl, self.max_renewals)
    }

    /// The longest time that a lock can live: its ttl and `max_renewals` thirds of it.
    #[must_use]
    pub fn longest_life(ttl: Duration, max_renewals: u32) -> Duration {
        ttl.saturating_add((ttl / 3).saturating_mul(max_renewals))
    }

    /// When the acquisition was first sent.
    #[must_use]
    pub const fn granted_at(&self) -> BootInstant {
        self.granted_at
    }

    /// How long the lock lives without a renewal.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How often the lock was renewed.
    #[must_use]
    pub const fn renewals(&self) -> u32 {
        self.renewals
    }
}
