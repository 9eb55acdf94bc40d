//! A crash and a freeze exactly between two steps of the corridor, for each pair of them: the firing has
//! one row, each start its licence, and another replica takes over in time.
//!
//! The moments are chosen from outside, on the binary as it is shipped: no failpoint is compiled into it.
//! Every step of the corridor but the run itself is one request to a server, and the proxy before that
//! server can hold the request, or its reply, while the test ends or stops the process that waits for it.
//! What cannot be reached that way (between the answer to the claim and the first act of the job there is
//! no request) is the moment at which the job has just begun, which the job itself shows.
//!
//! | moment | what is held | the corridor's step |
//! |---|---|---|
//! | `BeforeAcquire` | the acquisition | admitted, not yet locked |
//! | `AfterAcquire` | its reply | locked at the server, and the replica does not know |
//! | `BeforeClaim` | the claim | locked and kept, not yet claimed |
//! | `AfterClaim` | its reply | claimed, and the replica does not know: nothing has begun |
//! | `InRun` | nothing: the job has begun | in the run |
//! | `BeforeSettle` | the settle | the work is done, its end not recorded |
//! | `AfterSettle` | its reply | recorded, and the replica does not know |
//! | `BeforeRelease` | the release | recorded and known, still locked |
//! | `AfterRelease` | its reply | all over |

mod moment;
mod stage;

use moment::Moment;
use stage::Blow::{self, Freeze, Kill};
use stage::{Ended, Stage};

/// Nobody had begun: one run, by another replica.
const ONCE: Ended = Ended { state: "succeeded", attempt: 1, starts: 1, ends: 1 };
/// Claimed and not begun: the next attempt is the first that starts.
const CLAIMED: Ended = Ended { attempt: 2, ..ONCE };
/// Begun and not ended: it starts again.
const BEGUN: Ended = Ended { starts: 2, ..CLAIMED };
/// Ended and not recorded: it is done again, which is what "at least once" means.
const DONE: Ended = Ended { ends: 2, ..BEGUN };
/// Under `at_most_once`, claimed and not begun: given up all the same, since nobody knows.
const LOST: Ended = Ended { state: "lost", attempt: 1, starts: 0, ends: 0 };

/// What the firing must have come to, for each blow and under each delivery that is tried.
fn strike<const N: usize>(moment: Moment, cases: [(Blow, &'static str, Ended); N]) {
    // Most of the time they wait: for an instant, for a lease to end.
    std::thread::scope(|scope| {
        let strikes = cases.map(|(blow, delivery, expected)| {
            (blow, delivery, expected, scope.spawn(move || Stage::new(delivery).strike(blow, moment)))
        });
        for (blow, delivery, expected, strike) in strikes {
            let ended = strike.join().unwrap_or_else(|_| panic!("{blow:?} at {moment:?}, {delivery}"));
            assert_eq!(ended, expected, "{blow:?} at {moment:?}, {delivery}");
        }
    });
}

const AGAIN: &str = "at_least_once";
const NEVER_AGAIN: &str = "at_most_once";

#[test]
fn who_is_struck_before_it_locks_is_not_missed() {
    strike(Moment::BeforeAcquire, [(Kill, AGAIN, ONCE), (Freeze, AGAIN, ONCE)]);
}

#[test]
fn who_is_struck_with_a_lock_it_does_not_know_of_leaves_a_gap_that_is_found() {
    strike(Moment::AfterAcquire, [(Kill, AGAIN, ONCE), (Freeze, AGAIN, ONCE)]);
}

#[test]
fn who_is_struck_between_lock_and_claim_leaves_a_gap_that_is_found() {
    strike(Moment::BeforeClaim, [(Kill, AGAIN, ONCE), (Freeze, AGAIN, ONCE)]);
}

#[test]
fn who_is_struck_with_a_claim_it_does_not_know_of_is_swept_and_begins_nothing_later() {
    strike(Moment::AfterClaim, [(Kill, AGAIN, CLAIMED), (Freeze, AGAIN, CLAIMED), (Kill, NEVER_AGAIN, LOST)]);
}

#[test]
fn who_is_struck_in_its_run_is_swept_and_records_nothing_later() {
    let given_up = Ended { starts: 1, ..LOST };
    let cases = [
        (Kill, AGAIN, BEGUN),
        (Freeze, AGAIN, BEGUN),
        (Kill, NEVER_AGAIN, given_up),
        (Freeze, NEVER_AGAIN, given_up),
    ];
    strike(Moment::InRun, cases);
}

#[test]
fn who_is_struck_before_it_settles_has_its_work_done_again_or_given_up() {
    let given_up = Ended { starts: 1, ends: 1, ..LOST };
    // The one late result: it comes under the fence of the run that was given up, and nobody else's.
    let late = ONCE;
    let cases = [
        (Kill, AGAIN, DONE),
        (Freeze, AGAIN, DONE),
        (Kill, NEVER_AGAIN, given_up),
        (Freeze, NEVER_AGAIN, late),
    ];
    strike(Moment::BeforeSettle, cases);
}

#[test]
fn who_is_struck_with_a_settle_it_does_not_know_of_has_settled() {
    strike(Moment::AfterSettle, [(Kill, AGAIN, ONCE), (Freeze, AGAIN, ONCE)]);
}

#[test]
fn who_is_struck_before_its_release_holds_nobody_up_for_longer_than_its_lease() {
    strike(Moment::BeforeRelease, [(Kill, AGAIN, ONCE), (Freeze, AGAIN, ONCE)]);
}

#[test]
fn who_is_struck_after_its_release_has_done_everything() {
    strike(Moment::AfterRelease, [(Kill, AGAIN, ONCE), (Freeze, AGAIN, ONCE)]);
}
