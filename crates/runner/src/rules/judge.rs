//! How a run's end is judged: from what the run did to where its firing goes.

use std::time::Duration;

use super::ending::Ending;
use super::lost::{LostFate, LostRun};
use super::view::Won;
use crate::firing::{Cause, Delivery, Reason, State};

/// How long a firing that goes back into the queue may wait there for an owner, once it is due.
pub const QUEUE_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);

/// What the code of a run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned without an error.
    Succeeded,
    /// It returned an error.
    Failed {
        /// Whether another attempt may help.
        retry: bool,
        /// The error and its causes, for people.
        error: String,
    },
    /// It panicked, saying this.
    Panicked(String),
    /// It was dropped before it ended, or before it began.
    Dropped,
}

/// What a job wants done about the end of its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunTerms {
    /// The hard limit of a run.
    pub timeout: Duration,
    /// Of runs that fail by themselves.
    pub max_attempts: u32,
    /// Of runs that crash.
    pub max_crashes: u32,
    /// What happens to a firing whose run is lost.
    pub delivery: Delivery,
    /// How long to wait before another attempt.
    pub backoff: Backoff,
}

/// How long to wait before another attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Backoff {
    /// Before the second attempt.
    pub initial: Duration,
    /// At most.
    pub max: Duration,
    /// What each further wait is multiplied by.
    pub factor: f64,
}

impl Backoff {
    /// A wait of `initial`, multiplied by `factor` after each further failure, and never longer than `max`.
    #[must_use]
    pub const fn new(initial: Duration, max: Duration, factor: f64) -> Self {
        Self { initial, max, factor }
    }

    /// The wait after so many failures; the first failure counts as one.
    fn delay(&self, failures: u32) -> Duration {
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.initial.as_secs_f64() * self.factor.powi(exponent);
        Duration::try_from_secs_f64(seconds).unwrap_or(self.max).min(self.max)
    }
}

/// How a run is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Where the firing goes.
    pub ending: Ending,
    /// Whether the run counts against `max_crashes` rather than `max_attempts`.
    pub crashed: bool,
    /// What went wrong, for people.
    pub error: Option<String>,
}

impl Verdict {
    /// The run has done its work.
    #[must_use]
    pub const fn succeeded() -> Self {
        Self::terminal(State::Succeeded, None, None)
    }

    const fn terminal(state: State, reason: Option<Reason>, error: Option<String>) -> Self {
        Self { ending: Ending::Terminal { state, reason }, crashed: false, error }
    }

    fn requeue(reason: Reason, due_in: Duration, error: Option<String>) -> Self {
        let expires_in = due_in.saturating_add(QUEUE_EXPIRY);
        Self { ending: Ending::Requeue { reason, due_in, expires_in }, crashed: false, error }
    }
}

/// Judges a run. A run that was asked to stop ends by that cause, whatever it returned afterwards: half-done
/// work that exits with 0 on SIGTERM must not count as done.
#[must_use]
pub fn judge(terms: &RunTerms, won: &Won, outcome: &Outcome, cause: Option<Cause>) -> Verdict {
    let Some(cause) = cause else { return judge_by_itself(terms, won, outcome) };
    match cause {
        Cause::Timeout => {
            let text = format!("ran longer than its timeout of {:?}", terms.timeout);
            failed(terms, won, Reason::Timeout, with_detail(text, outcome))
        }
        Cause::CancelRequested => Verdict::terminal(State::Cancelled, None, detail(outcome)),
        Cause::LockLost | Cause::RenewalCap | Cause::LeaseLost | Cause::Drain => {
            interrupted(terms, won, cause, outcome)
        }
    }
}

/// A run that nobody asked to stop.
fn judge_by_itself(terms: &RunTerms, won: &Won, outcome: &Outcome) -> Verdict {
    match outcome {
        Outcome::Succeeded => Verdict::succeeded(),
        Outcome::Failed { retry: true, error } => failed(terms, won, Reason::Error, error.clone()),
        Outcome::Failed { retry: false, error } => {
            Verdict::terminal(State::Failed, Some(Reason::Error), Some(error.clone()))
        }
        Outcome::Panicked(text) => failed(terms, won, Reason::Panicked, format!("panicked: {text}")),
        Outcome::Dropped => failed(terms, won, Reason::Error, "the run was dropped".into()),
    }
}

/// A run that failed by itself: again, if attempts are left. Vanished owners, interruptions and drains use
/// up no attempt.
fn failed(terms: &RunTerms, won: &Won, reason: Reason, error: String) -> Verdict {
    let failures = won.failures.saturating_add(1);
    if failures < terms.max_attempts {
        Verdict::requeue(Reason::Retry, terms.backoff.delay(failures), Some(error))
    } else {
        Verdict::terminal(State::Failed, Some(reason), Some(error))
    }
}

/// A run that we stopped for a reason that is not the job's.
fn interrupted(terms: &RunTerms, won: &Won, cause: Cause, outcome: &Outcome) -> Verdict {
    // A crash is a run that took its owner with it, or kept it from the ledger. Neither a drain nor a lock server that
    // loses its keys is one.
    let crashed = !matches!(cause, Cause::Drain | Cause::LockLost);
    let lost = LostRun {
        delivery: terms.delivery,
        crashes: won.crashes,
        max_crashes: terms.max_crashes,
        crashed,
        // The statement that ends the run looks whether someone has asked for it meanwhile.
        cancel_requested: false,
    };
    let error = Some(with_detail(format!("interrupted: {cause}"), outcome));
    let verdict = match lost.fate() {
        LostFate::Lost => Verdict::terminal(State::Lost, Some(cause.into()), error),
        LostFate::CrashLoop => Verdict::terminal(State::Failed, Some(Reason::CrashLoop), error),
        LostFate::Cancelled => Verdict::terminal(State::Cancelled, None, error),
        LostFate::Again => Verdict::requeue(Reason::Interrupted, Duration::ZERO, error),
    };
    Verdict { crashed, ..verdict }
}

/// What a run that was asked to stop has said in the end.
fn detail(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Failed { error, .. } => Some(error.clone()),
        Outcome::Panicked(text) => Some(format!("panicked: {text}")),
        Outcome::Succeeded | Outcome::Dropped => None,
    }
}

fn with_detail(text: String, outcome: &Outcome) -> String {
    match detail(outcome) {
        Some(detail) => format!("{text}; {detail}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_failures_makes_a_backoff_longer_than_its_maximum() {
        let max = Duration::from_secs(3_600);
        for factor in [1.0, 1.5, 2.0, 100.0] {
            let rule = Backoff { initial: Duration::from_secs(1), max, factor };
            let delays = [1, 2, 3, 10, 64, 1_100, u32::MAX].map(|failures| rule.delay(failures));
            assert_eq!(delays[0], rule.initial);
            assert!(delays.is_sorted() && delays[6] <= max, "{factor}: {delays:?}");
            assert!(factor == 1.0 || delays[6] == max, "{factor}: {delays:?}");
        }
    }

    #[test]
    fn a_firing_that_goes_back_into_the_queue_may_wait_there_for_a_day() {
        let Ending::Requeue { expires_in, .. } =
            Verdict::requeue(Reason::Interrupted, Duration::ZERO, None).ending
        else {
            panic!("a requeue");
        };
        assert_eq!(expires_in, Duration::from_secs(86_400));
    }

    #[test]
    fn a_retry_expires_only_after_it_has_been_due_for_a_while() {
        let in_two_days = Duration::from_secs(2 * 24 * 60 * 60);
        let Ending::Requeue { due_in, expires_in, .. } =
            Verdict::requeue(Reason::Retry, in_two_days, None).ending
        else {
            panic!("a requeue");
        };
        assert_eq!((due_in, expires_in), (in_two_days, in_two_days + QUEUE_EXPIRY));
    }

    const TERMS: RunTerms = RunTerms {
        timeout: Duration::from_secs(60),
        max_attempts: 2,
        max_crashes: 1,
        delivery: Delivery::AtLeastOnce,
        backoff: Backoff::new(Duration::from_secs(1), Duration::from_secs(300), 2.0),
    };

    fn won(crashes: u32, failures: u32) -> Won {
        Won {
            id: crate::firing::FiringId(1),
            fence: crate::firing::Fence(1),
            attempt: 1 + crashes + failures,
            crashes,
            failures,
            started_at: chrono::DateTime::UNIX_EPOCH,
        }
    }

    fn error(retry: bool) -> Outcome {
        Outcome::Failed { retry, error: "no route".into() }
    }

    /// State, reason, whether it crashed, and the error of a run that ended so.
    fn told(won: Won, outcome: &Outcome, cause: Option<Cause>) -> (State, Option<Reason>, bool, String) {
        let verdict = judge(&TERMS, &won, outcome, cause);
        let (state, reason) = verdict.ending.words();
        (state, reason, verdict.crashed, verdict.error.unwrap_or_default())
    }

    #[test]
    fn a_run_that_ends_by_itself_is_judged_by_what_it_did() {
        let by_itself = |failures, outcome| told(won(0, failures), &outcome, None);
        assert_eq!(by_itself(0, Outcome::Succeeded), (State::Succeeded, None, false, String::new()));
        let retry = (State::Queued, Some(Reason::Retry), false, "no route".to_owned());
        assert_eq!(by_itself(0, error(true)), retry);
        let failed = |reason, text: &str| (State::Failed, Some(reason), false, text.to_owned());
        assert_eq!(by_itself(1, error(true)), failed(Reason::Error, "no route"));
        assert_eq!(by_itself(0, error(false)), failed(Reason::Error, "no route"));
        let panicked = by_itself(1, Outcome::Panicked("ouch".into()));
        assert_eq!(panicked, failed(Reason::Panicked, "panicked: ouch"));
        assert_eq!(by_itself(1, Outcome::Dropped), failed(Reason::Error, "the run was dropped"));
    }

    #[test]
    fn a_run_that_was_asked_to_stop_ends_by_that_cause_whatever_it_returned() {
        let asked = |failures, outcome: &Outcome, cause| told(won(0, failures), outcome, Some(cause));
        let (state, reason, crashed, text) = asked(1, &Outcome::Succeeded, Cause::Timeout);
        assert_eq!((state, reason, crashed), (State::Failed, Some(Reason::Timeout), false));
        assert_eq!(text, "ran longer than its timeout of 60s");
        assert_eq!(asked(0, &error(false), Cause::Timeout).1, Some(Reason::Retry));
        let cancelled = asked(0, &error(true), Cause::CancelRequested);
        assert_eq!(cancelled, (State::Cancelled, None, false, "no route".to_owned()));
        let drained = asked(9, &error(false), Cause::Drain);
        let text = "interrupted: drain; no route".to_owned();
        assert_eq!(drained, (State::Queued, Some(Reason::Interrupted), false, text));
    }

    #[test]
    fn an_interruption_counts_as_a_crash_and_neither_a_drain_nor_a_lost_lock_does() {
        for cause in [Cause::RenewalCap, Cause::LeaseLost] {
            let first = told(won(0, 0), &Outcome::Dropped, Some(cause));
            assert_eq!((first.0, first.1, first.2), (State::Queued, Some(Reason::Interrupted), true));
            let last = told(won(1, 0), &Outcome::Dropped, Some(cause));
            assert_eq!((last.0, last.1, last.2), (State::Failed, Some(Reason::CrashLoop), true));
        }
        for cause in [Cause::Drain, Cause::LockLost] {
            let again = told(won(1, 0), &Outcome::Dropped, Some(cause));
            assert_eq!((again.0, again.1, again.2), (State::Queued, Some(Reason::Interrupted), false));
        }
    }

    #[test]
    fn an_interrupted_run_that_may_run_only_once_is_lost_by_its_cause() {
        let terms = RunTerms { delivery: Delivery::AtMostOnce, ..TERMS };
        let causes = [Cause::LockLost, Cause::RenewalCap, Cause::LeaseLost, Cause::Drain];
        for cause in causes {
            let verdict = judge(&terms, &won(0, 0), &Outcome::Succeeded, Some(cause));
            assert_eq!(verdict.ending.words(), (State::Lost, Some(cause.into())));
            assert!(verdict.ending.is_terminal());
        }
    }

    #[test]
    fn a_retry_is_due_after_its_backoff_and_no_interruption_waits() {
        let due_in = |failures, outcome: &Outcome, cause| {
            let terms = RunTerms { max_attempts: 9, ..TERMS };
            match judge(&terms, &won(0, failures), outcome, cause).ending {
                Ending::Requeue { due_in, .. } => due_in.as_secs(),
                Ending::Terminal { state, reason } => panic!("{state} {reason:?}"),
            }
        };
        assert_eq!([0, 1, 2].map(|failures| due_in(failures, &error(true), None)), [1, 2, 4]);
        assert_eq!(due_in(3, &error(true), Some(Cause::LeaseLost)), 0);
    }
}
