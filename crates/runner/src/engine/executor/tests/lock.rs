//! A lock that follows the rules of the real ones, unless it is told to answer otherwise.

use std::sync::Arc;
use std::time::Duration;

use lockcore::{
    AcquireOutcome, AcquireRequest, BootClock, BoxFuture, DoneMark, Holder, LockBackend, LockError, LockKey,
    ReleaseOutcome, RenewOutcome, Token,
};

use super::answers::{Answers, Log, Requests};

/// `None` stands for what the lock in memory answers.
#[derive(Debug)]
pub(super) struct ScriptedLock {
    log: Log,
    memory: Arc<dyn LockBackend>,
    pub(super) acquire: Answers<Option<AcquireOutcome>, LockError>,
    pub(super) renew: Answers<Option<RenewOutcome>, LockError>,
    pub(super) acquires: Requests<AcquireRequest>,
    /// What each release left in the lock's place.
    pub(super) marks: Requests<Option<DoneMark>>,
}

impl ScriptedLock {
    pub(super) fn new(log: Log, clock: Arc<dyn BootClock>) -> Self {
        Self {
            log,
            memory: lockcore::in_process(clock),
            acquire: Answers::new(|| Ok(None)),
            renew: Answers::new(|| Ok(None)),
            acquires: Requests::default(),
            marks: Requests::default(),
        }
    }
}

/// The lock is held by another replica, for `subject`.
pub(super) fn held_for(subject: &str) -> AcquireOutcome {
    let holder = Holder::from_value(&format!("other|{subject}|1"));
    AcquireOutcome::Held { holder, remaining: Some(Duration::from_secs(1)) }
}

/// The lock's server does not answer.
pub(super) fn unreachable<T>() -> Result<T, LockError> {
    Err(LockError::unavailable("acquire", "no answer"))
}

impl LockBackend for ScriptedLock {
    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<AcquireOutcome, LockError>> {
        self.log.note("acquire");
        self.acquires.push(request.clone());
        Box::pin(async move {
            match self.acquire.next().await? {
                Some(answer) => Ok(answer),
                None => self.memory.acquire(request).await,
            }
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<RenewOutcome, LockError>> {
        self.log.note("renew");
        Box::pin(async move {
            match self.renew.next().await? {
                Some(answer) => Ok(answer),
                None => self.memory.renew(key, token, ttl).await,
            }
        })
    }

    fn release<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        done: Option<&'a DoneMark>,
    ) -> BoxFuture<'a, Result<ReleaseOutcome, LockError>> {
        self.log.note("release");
        self.marks.push(done.cloned());
        self.memory.release(key, token, done)
    }
}
