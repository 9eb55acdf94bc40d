//! The product itself in simulated worlds: what its seed says goes wrong, and no promise is broken.
//! docs/simulation.md says what runs here, what goes wrong, and how to run one seed again.

#![expect(clippy::disallowed_methods, reason = "the time of these runtimes stands still")]

mod batch;
mod clock;
mod dice;
mod errand;
mod judge;
mod machine;
mod plan;
mod servers;
mod tally;
mod trace;
mod watch;
mod wire;
mod world;

use crate::book::Flaw;
use batch::{found, hold};
use plan::Mode::{self, Liveness, Safety};

#[test]
fn no_seed_breaks_a_promise() {
    let Some(tally) = hold(Safety, 700) else { return };
    println!("{tally}");
    let never = tally.never();
    assert!(never.is_empty(), "a batch in which this never happened shows nothing about it: {never:?}");
}

#[test]
fn the_healed_get_on_whatever_is_wrong_with_the_third() {
    let Some(tally) = hold(Liveness, 400) else { return };
    println!("{tally}");
    let seen = [tally.takeovers, tally.gaps_found, tally.duplicates_refused, tally.claims_without_an_answer];
    assert!(seen.iter().all(|count| *count > 0), "a batch that shows nothing:\n{tally}");
}

/// What broke once, in the product or in here, is run for ever after.
const SEEDS_THAT_FAILED: [(Mode, u64, &str); 6] = [
    (Safety, 67, "a blow struck a replica that had not woken from the one before: its time went back"),
    (Safety, 244, "the same"),
    (Safety, 29, "what was dropped with a killed replica was written down, in an order of chance"),
    (Safety, 204, "the same"),
    (Safety, 212, "the same"),
    (Liveness, 3_836, "an acquire that came after its release, past the heal, held the job up for a ttl"),
];

#[test]
fn seeds_that_failed_once_hold() {
    for (mode, seed, what) in SEEDS_THAT_FAILED {
        let outcome = world::run(seed, mode, None, false);
        assert!(outcome.breaches.is_empty(), "seed {seed} ({what}):\n{}", outcome.breaches.join("\n"));
    }
}

#[test]
fn a_seed_makes_the_same_history_again() {
    for mode in [Safety, Liveness] {
        for seed in 0..25 {
            let digests = [false, true].map(|readable| world::run(seed, mode, None, readable).digest);
            assert_eq!(digests[0], digests[1], "{mode:?}, seed {seed}");
        }
    }
    assert_ne!(world::run(1, Safety, None, false).digest, world::run(2, Safety, None, false).digest);
}

/// Each ledger that leaves out one condition is found out, and for the right reason.
macro_rules! planted {
    ($($claim:ident: $flaw:ident, $mode:ident, $breach:literal)+) => {
        $(#[test]
        fn $claim() {
            found($breach, |seed| world::run(seed, $mode, Some(Flaw::$flaw), false));
        })+
    };
}

planted! {
    a_claim_of_a_firing_that_has_a_row_is_found: ClaimsTwice, Safety, "one row per firing"
    runs_that_do_not_exclude_one_another_are_found: Overlaps, Safety, "licensed beside"
    a_claim_before_its_time_is_found: ClaimsEarly, Safety, "it runs early"
    a_settle_of_any_run_is_found: SettlesAnything, Safety, "no such change"
    a_heartbeat_that_moves_nothing_is_found: ForgetsHeartbeats, Safety, "a run outlives its lease"
    a_lost_run_that_runs_again_is_found: RunsLostAgain, Safety, "at_most_once starts once"
    a_fence_given_twice_is_found: RepeatsFences, Safety, "the fence does not grow"
    a_gap_that_nobody_fills_is_found: LeavesGaps, Safety, "no firing is missing"
    a_gap_that_nobody_fills_in_time_is_found: LeavesGaps, Liveness, "has no row"
}

#[test]
fn a_replica_that_contends_without_the_ledger_is_found_to_starve_the_others() {
    found("liveness", |seed| world::run_spoilt(seed, Liveness, |plan| plan.gate_is_open = true));
}
