//! What the log says when a lock does not end as it should.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockcore::{LeaseGuard, LockBackend, Locks, Loss, Terms};
use tokio::runtime::Handle;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::support::{RuntimeClock, guard, key, request};

const TTL: Duration = Duration::from_secs(30);

/// Keeps the warnings of this thread, one line each.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

/// A lock that is held, and the warnings since it was taken.
async fn scene(
    max_renewals: u32,
) -> (Arc<dyn LockBackend>, LeaseGuard, Warnings, tracing::subscriber::DefaultGuard) {
    let warnings = Warnings::default();
    let logging = tracing::subscriber::set_default(warnings.clone());
    let clock = Arc::new(RuntimeClock::new());
    let backend = lockcore::in_process(clock.clone());
    let locks = Locks::new(backend.clone(), clock, Handle::current());
    let terms = Terms::new(max_renewals, Duration::ZERO);
    let guard = guard(locks.acquire(request(&key(), "a", TTL), terms).await.unwrap());
    (backend, guard, warnings, logging)
}

#[tokio::test(start_paused = true)]
async fn a_release_that_mismatches_is_warned_of_with_key_and_token() {
    let (backend, guard, warnings, _logging) = scene(3).await;
    let token = guard.token().clone();
    backend.release(&key(), &token, None).await.unwrap();
    guard.release(None).await.outcome.unwrap();
    let lines = warnings.0.lock().unwrap().clone();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(&format!("key={} token={token}", key())), "{lines:?}");
    assert!(lines[0].contains("no longer ours"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_cap_is_warned_of_once() {
    let (_backend, mut guard, warnings, _logging) = scene(2).await;
    assert_eq!(guard.lost().await, Loss::Cap);
    tokio::time::sleep(TTL * 3).await;
    let lines = warnings.0.lock().unwrap().clone();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("renewals=2") && lines[0].contains("cap"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_ends_as_it_should_is_no_warning() {
    let (_backend, guard, warnings, _logging) = scene(2).await;
    tokio::time::sleep(TTL).await;
    guard.release(None).await.outcome.unwrap();
    assert!(warnings.0.lock().unwrap().is_empty());
}
