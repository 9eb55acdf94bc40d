//! What a scripted server answers, and what was asked of it.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::LedgerError;

/// The events of one test in their order, each with the time since the test began.
#[derive(Clone, Debug)]
pub(super) struct Log {
    began: Instant,
    events: Arc<Mutex<Vec<(Duration, &'static str)>>>,
}

impl Log {
    /// A log that begins now. Call it on a runtime whose time is paused.
    pub(super) fn begin() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the runtime's paused time is the time of the test")]
        let began = Instant::now();
        Self { began, events: Arc::default() }
    }

    /// The time since the test began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn note(&self, event: &'static str) {
        self.events.lock().unwrap().push((self.elapsed(), event));
    }

    /// All events so far.
    pub(super) fn events(&self) -> Vec<&'static str> {
        self.events.lock().unwrap().iter().map(|(_, event)| *event).collect()
    }

    /// When `event` happened, in milliseconds.
    pub(super) fn times(&self, event: &str) -> Vec<u128> {
        let events = self.events.lock().unwrap();
        events.iter().filter(|(_, noted)| *noted == event).map(|(at, _)| at.as_millis()).collect()
    }

    pub(super) fn count(&self, event: &str) -> usize {
        self.times(event).len()
    }
}

/// The answers to one operation, in the order in which they are given.
#[derive(Debug)]
pub(super) struct Answers<T, E = LedgerError> {
    planned: Mutex<VecDeque<(Duration, Result<T, E>)>>,
    otherwise: Mutex<fn() -> Result<T, E>>,
}

impl<T, E> Answers<T, E> {
    /// `otherwise` is the answer when no other is planned.
    pub(super) fn new(otherwise: fn() -> Result<T, E>) -> Self {
        Self { planned: Mutex::default(), otherwise: Mutex::new(otherwise) }
    }

    /// The next answer.
    pub(super) fn then(&self, answer: Result<T, E>) -> &Self {
        self.after(Duration::ZERO, answer)
    }

    /// The next answer, which takes `delay`.
    pub(super) fn after(&self, delay: Duration, answer: Result<T, E>) -> &Self {
        self.planned.lock().unwrap().push_back((delay, answer));
        self
    }

    /// The answer when no other is planned.
    pub(super) fn always(&self, answer: fn() -> Result<T, E>) {
        *self.otherwise.lock().unwrap() = answer;
    }

    /// Gives the next answer.
    pub(super) async fn next(&self) -> Result<T, E> {
        let planned = self.planned.lock().unwrap().pop_front();
        let Some((delay, answer)) = planned else {
            let otherwise = *self.otherwise.lock().unwrap();
            return otherwise();
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        answer
    }
}

/// The requests of one operation, in their order.
#[derive(Debug)]
pub(super) struct Requests<T>(Mutex<Vec<T>>);

impl<T: Clone> Requests<T> {
    pub(super) fn push(&self, request: T) {
        self.0.lock().unwrap().push(request);
    }

    pub(super) fn all(&self) -> Vec<T> {
        self.0.lock().unwrap().clone()
    }

    /// The only request.
    pub(super) fn one(&self) -> T {
        let all = self.all();
        assert_eq!(all.len(), 1, "not one request");
        all[0].clone()
    }
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// No answer: the ledger is away, and the pulse stops.
pub(super) fn away() -> LedgerError {
    LedgerError::Unavailable { doing: "test", source: "no answer".into() }
}

/// No answer that can be used, from a ledger that is there: the pulse goes on.
pub(super) fn busy() -> LedgerError {
    LedgerError::Busy { doing: "test", source: "others stood in the way".into() }
}
