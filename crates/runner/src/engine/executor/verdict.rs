//! From what a run did to how its firing goes on: a pure function.

use std::time::Duration;

use super::run::{Ended, Outcome};
use crate::config::{Backoff, JobSpec};
use crate::firing::{Delivery, State};
use crate::job::{Cause, JobError};
use crate::ledger::{Ending, Won};

/// How long a firing that goes back into the queue may wait there for an owner, once it is due.
const QUEUE_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);

/// How a run is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct Verdict {
    /// Where the firing goes.
    pub(crate) ending: Ending,
    /// Whether the run counts against `max_crashes` rather than `max_attempts`.
    pub(crate) crashed: bool,
    /// What went wrong, for people.
    pub(crate) error: Option<String>,
}

impl Verdict {
    pub(super) fn succeeded() -> Self {
        Self::terminal(State::Succeeded, None, None)
    }

    fn terminal(state: State, reason: Option<&str>, error: Option<String>) -> Self {
        Self { ending: Ending::Terminal { state, reason: reason.map(Into::into) }, crashed: false, error }
    }

    fn requeue(reason: &str, due_in: Duration, error: Option<String>) -> Self {
        let expires_in = due_in.saturating_add(QUEUE_EXPIRY);
        let ending = Ending::Requeue { reason: reason.into(), due_in, expires_in };
        Self { ending, crashed: false, error }
    }

    fn crashed(self) -> Self {
        Self { crashed: true, ..self }
    }

    /// State and reason as metrics and logs name them.
    pub(super) fn words(&self) -> (State, &str) {
        match &self.ending {
            Ending::Terminal { state: State::Cancelled, .. } => (State::Cancelled, "requested"),
            Ending::Terminal { state, reason } => (*state, reason.as_deref().unwrap_or_default()),
            Ending::Requeue { reason, .. } => (State::Queued, reason),
        }
    }
}

/// Judges a run. A run that was asked to stop ends by that cause, whatever it returned afterwards:
/// half-done work that exits with 0 on SIGTERM must not count as done.
pub(super) fn judge(spec: &JobSpec, won: &Won, ended: &Ended) -> Verdict {
    match ended.cause {
        None => match &ended.outcome {
            Outcome::Returned(Ok(())) => Verdict::succeeded(),
            Outcome::Returned(Err(error)) if error.is_retry() => {
                failed(spec, won, "error", error.to_string())
            }
            Outcome::Returned(Err(error)) => {
                Verdict::terminal(State::Failed, Some("error"), Some(error.to_string()))
            }
            Outcome::Panicked(text) => failed(spec, won, "panicked", format!("panicked: {text}")),
            Outcome::Dropped => failed(spec, won, "error", "the run was dropped".into()),
        },
        Some(Cause::Timeout) => {
            let text = format!("ran longer than its timeout of {:?}", spec.budget.timeout);
            failed(spec, won, "timeout", with_detail(text, &ended.outcome))
        }
        Some(Cause::CancelRequested) => Verdict::terminal(State::Cancelled, None, detail(&ended.outcome)),
        Some(cause) => interrupted(spec, won, cause, detail(&ended.outcome)),
    }
}

/// A run that failed by itself: again, if attempts are left. Vanished owners, interruptions and
/// drains do not use attempts up.
fn failed(spec: &JobSpec, won: &Won, reason: &str, error: String) -> Verdict {
    let failures = won.failures.saturating_add(1);
    if failures < spec.max_attempts {
        Verdict::requeue("retry", backoff(&spec.backoff, failures), Some(error))
    } else {
        Verdict::terminal(State::Failed, Some(reason), Some(error))
    }
}

/// A run that we stopped for a reason that is not the job's.
fn interrupted(spec: &JobSpec, won: &Won, cause: Cause, detail: Option<String>) -> Verdict {
    let drained = cause == Cause::Drain;
    let error = with_detail_opt(format!("interrupted: {cause}"), detail);
    let verdict = match spec.delivery {
        Delivery::AtMostOnce => Verdict::terminal(State::Lost, Some(cause.as_str()), Some(error)),
        Delivery::AtLeastOnce if !drained && won.crashes >= spec.max_crashes => {
            Verdict::terminal(State::Failed, Some("crash_loop"), Some(error))
        }
        Delivery::AtLeastOnce => Verdict::requeue("interrupted", Duration::ZERO, Some(error)),
    };
    if drained { verdict } else { verdict.crashed() }
}

fn backoff(backoff: &Backoff, failures: u32) -> Duration {
    let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
    let seconds = backoff.initial.as_secs_f64() * backoff.factor.powi(exponent);
    Duration::try_from_secs_f64(seconds).unwrap_or(backoff.max).min(backoff.max)
}

fn detail(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Returned(Err(error)) => Some(JobError::to_string(error)),
        Outcome::Panicked(text) => Some(format!("panicked: {text}")),
        Outcome::Returned(Ok(())) | Outcome::Dropped => None,
    }
}

fn with_detail(text: String, outcome: &Outcome) -> String {
    with_detail_opt(text, detail(outcome))
}

fn with_detail_opt(text: String, detail: Option<String>) -> String {
    match detail {
        Some(detail) => format!("{text}; {detail}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_failures_makes_a_backoff_longer_than_its_maximum_or_shorter_than_the_last() {
        let max = Duration::from_secs(3_600);
        for factor in [1.0, 1.5, 2.0, 100.0] {
            let rule = Backoff { initial: Duration::from_secs(1), max, factor };
            let delays = [1, 2, 3, 10, 64, 1_100, u32::MAX].map(|failures| backoff(&rule, failures));
            assert_eq!(delays[0], rule.initial);
            assert!(delays.is_sorted() && delays[6] <= max, "{factor}: {delays:?}");
            assert!(factor == 1.0 || delays[6] == max, "{factor}: {delays:?}");
        }
    }

    #[test]
    fn a_retry_expires_only_after_it_has_been_due_for_a_while() {
        let in_two_days = Duration::from_secs(2 * 24 * 60 * 60);
        let Ending::Requeue { due_in, expires_in, .. } = Verdict::requeue("retry", in_two_days, None).ending
        else {
            panic!("a requeue");
        };
        assert_eq!((due_in, expires_in), (in_two_days, in_two_days + QUEUE_EXPIRY));
    }
}
