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
    pub(crate) const fn renewed(self, sent_at: BootInstant) -> Self {
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
    pub(crate) fn renewal_due(&self) -> Option<BootInstant> {
        let capped = self.renewals >= self.max_renewals || self.sent_at + self.ttl >= self.life_ends();
        (!capped).then(|| self.sent_at + self.ttl / 3)
    }

    /// The ttl that a renewal sent at `now` may ask for. `None` once the life of the lock has ended.
    ///
    /// It is the full ttl, but never reaches beyond [`life_ends`](Self::life_ends). Renewals without a reply
    /// are not counted; without this limit they could keep a lock alive for ever.
    pub(crate) fn renewal_ttl(&self, now: BootInstant) -> Option<Duration> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> BootInstant {
        BootInstant::from_boot(Duration::from_millis(millis))
    }

    prop_compose! {
        /// A lease of 50 ms to 10 min, and how late after its due moment each renewal is sent.
        fn lives()(
            start in 1_000_000_u64..2_000_000,
            ttl in 50_u64..600_000,
            max_renewals in 0_u32..12,
            delays in proptest::collection::vec(0.0_f64..0.6, 0..20),
        ) -> (Lease, Vec<f64>) {
            (Lease::granted(at(start), Duration::from_millis(ttl), max_renewals), delays)
        }
    }

    /// The states of a lease that is renewed at each due moment, late by these shares of its ttl.
    fn states(first: Lease, delays: &[f64]) -> Vec<Lease> {
        let mut states = vec![first];
        for delay in delays {
            let lease = states[states.len() - 1];
            let Some(due) = lease.renewal_due() else { break };
            let sent = due + lease.ttl().mul_f64(*delay);
            if sent >= lease.trusted_until() || lease.renewal_ttl(sent).is_none() {
                break;
            }
            states.push(lease.renewed(sent));
        }
        states
    }

    proptest! {
        #[test]
        fn trust_ends_a_margin_before_the_ttl((lease, _) in lives()) {
            let trusted = lease.trusted_until().saturating_since(lease.granted_at());
            prop_assert_eq!(trusted, lease.ttl() - Lease::margin(lease.ttl()));
        }

        #[test]
        fn no_renewals_make_a_lock_live_longer_than_its_cap((first, delays) in lives()) {
            for lease in states(first, &delays) {
                prop_assert!(lease.trusted_until() < first.life_ends());
                prop_assert_eq!(lease.life_ends(), first.life_ends());
            }
        }

        #[test]
        fn there_are_never_more_renewals_than_the_cap_allows((first, delays) in lives(), cap in 0_u32..5) {
            let capped = Lease::granted(first.granted_at(), first.ttl(), cap);
            for lease in states(capped, &delays) {
                prop_assert!(lease.renewals() <= cap);
            }
        }

        #[test]
        fn punctual_renewals_use_the_whole_cap((first, _) in lives(), cap in 0_u32..12) {
            let capped = Lease::granted(first.granted_at(), first.ttl(), cap);
            let last = *states(capped, &[0.0; 12]).last().unwrap();
            prop_assert_eq!(last.renewal_due(), None);
            // A ttl that three does not divide leaves some nanoseconds.
            prop_assert_eq!(last.renewals(), cap);
            let unused = capped.life_ends().saturating_since(last.trusted_until() + Lease::margin(first.ttl()));
            prop_assert!(unused < Duration::from_micros(1), "{:?}", unused);
        }

        #[test]
        fn every_renewal_moves_the_end_of_trust_on((first, delays) in lives()) {
            for pair in states(first, &delays).windows(2) {
                prop_assert!(pair[1].trusted_until() > pair[0].trusted_until());
            }
        }

        #[test]
        fn a_renewal_is_due_well_before_trust_ends((first, delays) in lives()) {
            for lease in states(first, &delays) {
                if let Some(due) = lease.renewal_due() {
                    prop_assert!(due + lease.ttl() / 3 < lease.trusted_until() + Lease::margin(lease.ttl()));
                }
            }
        }

        #[test]
        fn no_renewal_asks_for_an_expiry_beyond_the_life_of_the_lock((first, _) in lives(), after in 0_u64..10_000_000) {
            let now = first.granted_at() + Duration::from_millis(after);
            match first.renewal_ttl(now) {
                Some(ttl) => {
                    prop_assert!(ttl <= first.ttl());
                    prop_assert!(now + ttl <= first.life_ends());
                }
                None => prop_assert!(now + Duration::from_millis(1) > first.life_ends()),
            }
        }

        #[test]
        fn a_lease_shorter_than_its_margin_is_never_trusted(ttl in 0_u64..5, start in 1_000_u64..9_000) {
            let lease = Lease::granted(at(start), Duration::from_millis(ttl), 3);
            prop_assert!(lease.trusted_until() <= lease.granted_at());
        }
    }
}
