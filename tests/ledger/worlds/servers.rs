//! The two servers. Each does one thing after another, at the moment it arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use lockcore::{
    AcquireOutcome, AcquireRequest, BootClock, BootInstant, BoxFuture, DoneMark, LockBackend, LockError,
    LockKey, ReleaseOutcome, RenewOutcome, Token,
};

use super::plan::Tick;
use crate::book::{Book, Millis};

/// The wall clock when the world begins.
pub(crate) const EPOCH: Millis = 1_780_315_200_000;

/// Both servers.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) book: Book,
    pub(crate) locks: LockServer,
}

/// The moment as the ledger's clock shows it.
pub(crate) fn ledger_time(at: Tick) -> Millis {
    EPOCH + Millis::try_from(at).expect("a short world")
}

/// The lock's server: the product's own table of locks, which can forget.
#[derive(Debug)]
pub(crate) struct LockServer {
    clock: Arc<ServerClock>,
    table: Arc<dyn LockBackend>,
    /// Everything it was asked to do, as a copy of it would be told, a while later.
    log: Vec<(Tick, Order)>,
}

/// What a lock's server is asked to do.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Acquire(AcquireRequest),
    Renew(LockKey, Token, Duration),
    Release(LockKey, Token, Option<DoneMark>),
}

/// What it says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Acquire(AcquireOutcome),
    Renew(RenewOutcome),
    Release(ReleaseOutcome),
}

#[derive(Debug, Default)]
struct ServerClock(AtomicU64);

impl BootClock for ServerClock {
    fn boot_now(&self) -> BootInstant {
        BootInstant::from_boot(Duration::from_millis(self.0.load(Ordering::Relaxed)))
    }
}

impl LockServer {
    pub(crate) fn new() -> Self {
        let clock = Arc::<ServerClock>::default();
        Self { table: lockcore::in_process(clock.clone()), clock, log: Vec::new() }
    }

    pub(crate) fn carry_out(&mut self, at: Tick, order: Order) -> Said {
        let said = self.apply(at, &order);
        self.log.push((at, order));
        said
    }

    /// It forgets all.
    pub(crate) fn flush(&mut self) {
        self.table = lockcore::in_process(self.clock.clone());
        self.log.clear();
    }

    /// A copy takes over that had not yet heard of anything after `until`.
    pub(crate) fn fail_over(&mut self, until: Tick) {
        self.log.retain(|(at, _)| *at <= until);
        self.table = lockcore::in_process(self.clock.clone());
        for (at, order) in self.log.clone() {
            self.apply(at, &order);
        }
    }

    fn apply(&mut self, at: Tick, order: &Order) -> Said {
        self.clock.0.store(at, Ordering::Relaxed);
        match order {
            Order::Acquire(request) => Said::Acquire(at_once(self.table.acquire(request))),
            Order::Renew(key, token, ttl) => Said::Renew(at_once(self.table.renew(key, token, *ttl))),
            Order::Release(key, token, done) => {
                Said::Release(at_once(self.table.release(key, token, done.as_ref())))
            }
        }
    }
}

fn at_once<T>(answer: BoxFuture<'_, Result<T, LockError>>) -> T {
    answer.now_or_never().and_then(Result::ok).expect("a table in memory answers at once, and never fails")
}
