//! Clocks, requests, guards, and the one way to poll.

use std::fmt::Debug;
use std::sync::Mutex;
use std::time::Duration;

use lockcore::{
    AcquireOutcome, AcquireRequest, Acquisition, BootClock, BootInstant, LeaseGuard, LockBackend, LockKey,
    Token,
};
use tokio::time::Instant;
use uuid::Uuid;

/// The key that most tests contend for.
pub(crate) fn key() -> LockKey {
    LockKey::new("test", "default", "job").unwrap()
}

/// A request by `instance` for a firing at noon, with a token of its own.
pub(crate) fn request(key: &LockKey, instance: &str, ttl: Duration) -> AcquireRequest {
    let token = Token::new(instance, "2026-06-01T12:00:00Z", Uuid::new_v4());
    AcquireRequest::new(key.clone(), token, ttl)
}

/// The guard of a lock that must be ours.
#[track_caller]
pub(crate) fn guard(acquisition: Acquisition) -> LeaseGuard {
    match acquisition {
        Acquisition::Acquired(guard) => guard,
        other => panic!("expected the lock, found {other:?}"),
    }
}

/// Whether the lock is free right now. If it is, this takes it and releases it again.
pub(crate) async fn is_free(backend: &dyn LockBackend, key: &LockKey) -> bool {
    let probe = request(key, "probe", Duration::from_secs(30));
    match backend.acquire(&probe).await {
        Ok(AcquireOutcome::Acquired) => {
            backend.release(key, &probe.token, None).await.unwrap();
            true
        }
        Ok(_) => false,
        Err(error) => panic!("probe: {error:?}"),
    }
}

/// Polls until `check` gives a value. After twenty seconds it fails and shows the last status. Only for what
/// no event announces.
pub(crate) async fn wait_for<T, S: Debug>(what: &str, mut check: impl AsyncFnMut() -> Result<T, S>) -> T {
    let start = now();
    loop {
        match check().await {
            Ok(value) => return value,
            Err(status) if now() - start > Duration::from_secs(20) => {
                panic!("waited 20 s for {what}; last status: {status:?}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the runtime's clock, which tests can pause")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A boot clock that follows the clock of the runtime, which tests can pause, and adds suspends to it.
#[derive(Debug)]
pub(crate) struct RuntimeClock {
    start: Instant,
    suspended: Mutex<Duration>,
}

impl RuntimeClock {
    pub(crate) fn new() -> Self {
        Self { start: now(), suspended: Mutex::new(Duration::ZERO) }
    }

    /// Lets `span` pass while the timers of the runtime stand still.
    pub(crate) fn suspend(&self, span: Duration) {
        *self.suspended.lock().unwrap() += span;
    }
}

impl BootClock for RuntimeClock {
    fn boot_now(&self) -> BootInstant {
        // Not zero, where a subtraction would saturate.
        let booted = Duration::from_secs(1_000);
        BootInstant::from_boot(booted + (now() - self.start) + *self.suspended.lock().unwrap())
    }
}

/// A boot clock that moves only when told to.
#[derive(Debug)]
pub(crate) struct ManualClock(Mutex<Duration>);

impl ManualClock {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Duration::from_secs(1_000)))
    }

    pub(crate) fn advance(&self, span: Duration) {
        *self.0.lock().unwrap() += span;
    }
}

impl BootClock for ManualClock {
    fn boot_now(&self) -> BootInstant {
        BootInstant::from_boot(*self.0.lock().unwrap())
    }
}
