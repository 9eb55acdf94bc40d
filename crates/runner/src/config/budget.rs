//! How long one run and its leases may last: pure arithmetic, so that no run can outlive its lock.

use std::time::Duration;

use lockcore::Lease;

/// How often the lock is renewed when neither `max_renewals` nor `timeout` is set.
const DEFAULT_RENEWALS: u32 = 3;

/// The longest `kill_grace` that is chosen when none is set.
const LONGEST_DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// More renewals than any run needs. With more of them a run would be practically unlimited.
pub(crate) const MOST_RENEWALS: u32 = 1_000_000;

/// With a shorter ttl, network timeouts (a quarter of the ttl) and delays on a busy machine would make
/// replicas lose leases that they hold.
pub(crate) const SHORTEST_TTL: Duration = Duration::from_secs(1);

/// When the owner of a firing is lost, another owner waits one ttl. Renewals cover long runs.
pub(crate) const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// How long one run and its leases may last; consistent by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// The lease of both layers.
    pub ttl: Duration,
    /// How often the lock may be renewed.
    pub max_renewals: u32,
    /// The hard limit of a run.
    pub timeout: Duration,
    /// How long a run may take to end after it was asked to.
    pub kill_grace: Duration,
}

/// What a job asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) ttl: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_renewals: Option<u32>,
    pub(crate) kill_grace: Option<Duration>,
}

/// Why a wish cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// A run that is asked to stop would take longer than the time between two renewals, which is `most`.
    GraceTooLong { most: Duration },
    /// The lock would expire before the run must end. `cap` renewals would cover it, or a timeout of
    /// `longest`.
    Uncovered { cap: u32, longest: Duration },
    /// No number of renewals would cover the timeout.
    Uncoverable,
}

impl Budget {
    /// The budget that meets `wish`: the cap follows from the timeout, or the timeout from the cap.
    pub(crate) fn plan(wish: Wish) -> Result<Self, Conflict> {
        let Wish { ttl, .. } = wish;
        let kill_grace = wish.kill_grace.unwrap_or_else(|| LONGEST_DEFAULT_GRACE.min(ttl / 6));
        if kill_grace > ttl / 3 {
            return Err(Conflict::GraceTooLong { most: ttl / 3 });
        }
        let longest = |cap| Lease::longest_life(ttl, cap).saturating_sub(Lease::margin(ttl) + kill_grace);
        let (timeout, max_renewals) = match (wish.timeout, wish.max_renewals) {
            (None, cap) => (longest(cap.unwrap_or(DEFAULT_RENEWALS)), cap.unwrap_or(DEFAULT_RENEWALS)),
            (Some(timeout), cap) => {
                let needed = cap_for(timeout, ttl, kill_grace).ok_or(Conflict::Uncoverable)?;
                match cap {
                    Some(cap) if cap < needed => {
                        return Err(Conflict::Uncovered { cap: needed, longest: longest(cap) });
                    }
                    cap => (timeout, cap.unwrap_or(needed)),
                }
            }
        };
        Ok(Self { ttl, max_renewals, timeout, kill_grace })
    }

    /// How long the lock of one run can live, with all its renewals.
    #[must_use]
    pub fn lock_life(&self) -> Duration {
        Lease::longest_life(self.ttl, self.max_renewals)
    }
}

/// The smallest number of renewals with which the lock covers the run and its end:
/// `max(0, ceil((timeout + margin + kill_grace − ttl) / (ttl/3)))`.
fn cap_for(timeout: Duration, ttl: Duration, kill_grace: Duration) -> Option<u32> {
    let covered = timeout.saturating_add(Lease::margin(ttl)).saturating_add(kill_grace);
    let beyond = covered.saturating_sub(ttl).as_nanos();
    let cap = u32::try_from(beyond.div_ceil((ttl / 3).as_nanos().max(1))).ok()?;
    (cap <= MOST_RENEWALS).then_some(cap)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    const fn wish(ttl: Duration) -> Wish {
        Wish { ttl, timeout: None, max_renewals: None, kill_grace: None }
    }

    #[test]
    fn with_nothing_set_a_run_has_two_ttls_less_margin_and_grace() {
        let budget = Budget::plan(wish(secs(30))).expect("a budget");
        assert_eq!(budget.max_renewals, 3);
        assert_eq!(budget.kill_grace, secs(5));
        assert_eq!(budget.lock_life(), secs(60));
        assert_eq!(budget.timeout, secs(60) - millis(305) - secs(5));
    }

    #[test]
    fn the_cap_follows_from_the_timeout() {
        let cap = |timeout| {
            Budget::plan(Wish { timeout: Some(timeout), ..wish(secs(30)) }).expect("a budget").max_renewals
        };
        // 24.695 s + 0.305 s + 5 s is the ttl to the millisecond.
        assert_eq!(cap(millis(24_695)), 0);
        assert_eq!(cap(millis(24_696)), 1);
        assert_eq!(cap(millis(34_695)), 1);
        assert_eq!(cap(secs(60)), 4);
    }

    #[test]
    fn the_timeout_follows_from_the_cap() {
        let budget = Budget::plan(Wish { max_renewals: Some(0), ..wish(secs(30)) }).expect("a budget");
        assert_eq!(budget.timeout, millis(24_695));
    }

    #[test]
    fn both_set_and_inconsistent_is_refused_with_the_cap_that_is_needed() {
        let asked = Wish { timeout: Some(secs(60)), max_renewals: Some(2), ..wish(secs(30)) };
        assert_eq!(Budget::plan(asked), Err(Conflict::Uncovered { cap: 4, longest: millis(44_695) }));
        assert!(Budget::plan(Wish { max_renewals: Some(4), ..asked }).is_ok());
        assert!(Budget::plan(Wish { max_renewals: Some(9), ..asked }).is_ok());
    }

    #[test]
    fn a_grace_beyond_a_third_of_the_ttl_is_refused() {
        let grace = |grace| Budget::plan(Wish { kill_grace: Some(grace), ..wish(secs(30)) });
        assert!(grace(secs(10)).is_ok());
        assert_eq!(grace(millis(10_001)), Err(Conflict::GraceTooLong { most: secs(10) }));
    }

    #[test]
    fn a_timeout_that_no_cap_covers_is_refused() {
        let asked = Wish { timeout: Some(secs(100 * 24 * 3600)), ..wish(secs(1)) };
        assert_eq!(Budget::plan(asked), Err(Conflict::Uncoverable));
    }

    fn any_wish() -> impl Strategy<Value = Wish> {
        let ttl = SHORTEST_TTL.as_millis() as u64..=LONGEST_TTL.as_millis() as u64;
        let timeout = proptest::option::of(1_u64..=10 * 24 * 3_600_000);
        let grace = proptest::option::of(0_u64..=100_000);
        (ttl, timeout, proptest::option::of(0_u32..=1_000), grace).prop_map(
            |(ttl, timeout, max_renewals, grace)| Wish {
                ttl: millis(ttl),
                timeout: timeout.map(millis),
                max_renewals,
                kill_grace: grace.map(millis),
            },
        )
    }

    proptest! {
        #[test]
        fn a_run_and_its_end_always_fit_into_the_life_of_its_lock(wish in any_wish()) {
            if let Ok(budget) = Budget::plan(wish) {
                let needed = budget.timeout + Lease::margin(budget.ttl) + budget.kill_grace;
                prop_assert!(needed <= budget.lock_life(), "{budget:?}");
                prop_assert!(budget.kill_grace <= budget.ttl / 3);
                prop_assert!(budget.timeout > Duration::ZERO);
            }
        }

        #[test]
        fn what_was_asked_for_is_never_changed(wish in any_wish()) {
            if let Ok(budget) = Budget::plan(wish) {
                prop_assert_eq!(budget.ttl, wish.ttl);
                prop_assert!(wish.timeout.is_none_or(|timeout| timeout == budget.timeout));
                prop_assert!(wish.max_renewals.is_none_or(|cap| cap == budget.max_renewals));
                prop_assert!(wish.kill_grace.is_none_or(|grace| grace == budget.kill_grace));
            }
        }

        #[test]
        fn a_derived_cap_is_the_smallest_that_covers_the_run(wish in any_wish()) {
            let wish = Wish { max_renewals: None, ..wish };
            if let (Ok(budget), Some(_)) = (Budget::plan(wish), wish.timeout)
                && let Some(less) = budget.max_renewals.checked_sub(1)
            {
                let refused = Budget::plan(Wish { max_renewals: Some(less), ..wish });
                let names_it = matches!(refused, Err(Conflict::Uncovered { cap, .. }) if cap == budget.max_renewals);
                prop_assert!(names_it);
            }
        }

        #[test]
        fn the_cap_and_the_timeout_that_a_refusal_names_are_accepted(wish in any_wish()) {
            if let Err(Conflict::Uncovered { cap, longest }) = Budget::plan(wish) {
                let with_cap = Wish { max_renewals: Some(cap), ..wish };
                let with_timeout = Wish { timeout: Some(longest), ..wish };
                prop_assert!(Budget::plan(with_cap).is_ok());
                prop_assert!(Budget::plan(with_timeout).is_ok());
            }
        }
    }
}
