//! What a batch of worlds has seen: a world in which nothing happened proves nothing.

use std::any::Any;
use std::fmt;

use lockcore::{ReleaseOutcome, RenewOutcome};
use runner::internal::ledger::{Claim, Heartbeat, Settled, Skipped, Swept};

use super::servers::Said;

macro_rules! tally {
    ($($(#[$doc:meta])* $what:ident)+) => {
        /// How often each thing happened.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Tally {
            $($(#[$doc])* pub(crate) $what: u64,)+
        }

        impl Tally {
            /// Adds another world's.
            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$what += other.$what;)+
            }

            /// What never happened.
            pub(crate) fn never(&self) -> Vec<&'static str> {
                [$((stringify!($what), self.$what)),+]
                    .into_iter()
                    .filter_map(|(what, count)| (count == 0).then_some(what))
                    .collect()
            }
        }

        impl fmt::Display for Tally {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(writeln!(f, "{:>9} {}", self.$what, stringify!($what).replace('_', " "))?;)+
                Ok(())
            }
        }
    };
}

tally! {
    requests_lost
    replies_lost
    late
    calls_without_an_answer
    claims_without_an_answer
    settles_without_an_answer
    stops
    suspends
    kills
    drains
    skews
    flushes
    failovers
    cancels
    pauses
    claims_won
    duplicates_refused
    overlaps_refused
    early_claims_refused
    paused_claims_refused
    takeovers
    crash_loops
    losses
    late_results_of_lost_runs
    stale_settles_refused
    stale_heartbeats_refused
    foreign_renewals_refused
    foreign_releases_refused
    overlaps_skipped
    gaps_found
    starts
    ends
    runs_cancelled
    runs_dropped
    panics
    failures
}

impl Tally {
    /// Counts what a server has said.
    pub(crate) fn heard(&mut self, said: &dyn Any) {
        if let Some(claim) = said.downcast_ref::<Claim>() {
            *match claim {
                Claim::Won(_) => &mut self.claims_won,
                Claim::Duplicate(_) => &mut self.duplicates_refused,
                Claim::Overlap(_) => &mut self.overlaps_refused,
                Claim::TooEarly(_) => &mut self.early_claims_refused,
                Claim::Paused => &mut self.paused_claims_refused,
                _ => return,
            } += 1;
        } else if let Some(Settled::Fenced) = said.downcast_ref::<Settled>() {
            self.stale_settles_refused += 1;
        } else if let Some(Heartbeat::Lost) = said.downcast_ref::<Heartbeat>() {
            self.stale_heartbeats_refused += 1;
        } else if let Some(Skipped::Recorded) = said.downcast_ref::<Skipped>() {
            self.overlaps_skipped += 1;
        } else if let Some(swept) = said.downcast_ref::<Vec<Swept>>() {
            for swept in swept {
                *match swept.state.as_str() {
                    "queued" => &mut self.takeovers,
                    "lost" => &mut self.losses,
                    "failed" => &mut self.crash_loops,
                    _ => continue,
                } += 1;
            }
        } else if let Some(said) = said.downcast_ref::<Said>() {
            self.foreign_renewals_refused += u64::from(*said == Said::Renew(RenewOutcome::NotMine));
            self.foreign_releases_refused += u64::from(*said == Said::Release(ReleaseOutcome::NotMine));
        }
    }

    /// Counts a call that was given up.
    pub(crate) fn unknown(&mut self, doing: &str) {
        self.calls_without_an_answer += 1;
        self.claims_without_an_answer += u64::from(doing == "claim");
        self.settles_without_an_answer += u64::from(doing == "settle");
    }
}
