//! What lies between replicas and servers: messages take their time, get lost, come late.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockcore::{
    AcquireOutcome, AcquireRequest, BoxFuture, DoneMark, LockBackend, LockError, LockKey, ReleaseOutcome,
    RenewOutcome, Token,
};
use runner::internal::ledger::{Answer, LedgerError};
use tokio::sync::{Notify, oneshot};

use super::clock::SimClock;
use super::dice::Dice;
use super::errand::Deed;
use super::plan::{Plan, REPLICAS, Store, TTL, Tick, Weather};
use super::servers::{Order, Said, Servers, ledger_time};
use super::tally::Tally;
use super::trace::Trace;
use crate::book::memory::Carrier;
use crate::book::{Book, Millis};

/// No message takes less: so long a replica may run ahead of what others do meanwhile.
const LEAST: Tick = 1;

/// Hands a reply to whoever waits for it; to nobody, if nobody does any more.
pub(crate) type Delivery = Box<dyn FnOnce() + Send>;

/// What a request does to the server when it arrives there.
type HandIn = Box<dyn FnOnce(&mut Servers, Tick, &mut Record) -> Delivery + Send>;

/// A request on its way.
pub(crate) struct Parcel {
    pub(crate) replica: usize,
    /// Which life of that replica sent it.
    pub(crate) life: u32,
    pub(crate) number: u64,
    /// When the reply reaches its sender; never, if it gets lost.
    pub(crate) reply_at: Option<Tick>,
    pub(crate) hand_in: HandIn,
}

/// What is written down of a world.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) trace: Trace,
    pub(crate) tally: Tally,
    /// What jobs did.
    pub(crate) deeds: Vec<Deed>,
}

/// Everything between replicas and servers.
pub(crate) struct Wire {
    pub(crate) plan: Arc<Plan>,
    inner: Mutex<Inner>,
}

pub(crate) struct Inner {
    dice: Dice,
    sent: u64,
    /// Requests by their arrival; those of one moment in an order of chance.
    pub(crate) parcels: BTreeMap<(Tick, u64, u64), Parcel>,
    /// When each replica will hear something: what it was not answered yet, too.
    pub(crate) expected: [BTreeSet<(Tick, u64)>; REPLICAS],
    pub(crate) record: Record,
}

impl Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Wire {
    pub(crate) fn new(seed: u64, plan: Arc<Plan>, readable: bool) -> Self {
        let record = Record { trace: Trace::new(readable), tally: Tally::default(), deeds: Vec::new() };
        let inner = Inner {
            dice: Dice::of(&[seed, 2]),
            sent: 0,
            parcels: BTreeMap::new(),
            expected: Default::default(),
            record,
        };
        Self { plan, inner: Mutex::new(inner) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, at: Tick, what: &str, replica: usize) {
        self.lock().record.trace.note(at, what, replica, String::new);
    }
}

impl Inner {
    /// How long one message takes.
    fn latency(&mut self, weather: Weather) -> Tick {
        let slow = self.dice.in_thousand(weather.slow);
        if slow { self.dice.between(10, weather.slowest) } else { self.dice.between(LEAST, 4) }
    }

    pub(crate) fn dice(&self) -> &Dice {
        &self.dice
    }
}

/// One replica's end of the wire.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) wire: Arc<Wire>,
    pub(crate) replica: usize,
    pub(crate) life: u32,
    pub(crate) clock: Arc<SimClock>,
    /// Told at each request.
    pub(crate) sent: Arc<Notify>,
}

/// There is no answer, and nobody knows what happened.
#[derive(Debug, thiserror::Error)]
enum Silence {
    #[error("refused")]
    Refused,
    #[error("no answer in time")]
    TooLate,
}

impl Line {
    /// Sends a request and waits for the reply.
    async fn call<T: Debug + Send + 'static>(
        &self,
        store: Store,
        doing: &'static str,
        patience: Duration,
        ask: impl FnOnce(&mut Servers, Tick) -> T + Send + 'static,
    ) -> Result<T, Silence> {
        let (answer, heard) = oneshot::channel();
        let replica = self.replica;
        let hand_in = Box::new(move |servers: &mut Servers, at: Tick, record: &mut Record| -> Delivery {
            let said = ask(servers, at);
            record.trace.note(at, doing, replica, || format!("{said:?}"));
            record.tally.heard(&said as &dyn Any);
            // Nobody may be listening any more.
            Box::new(move || drop(answer.send(said)))
        });
        if !self.post(store, doing, hand_in) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            return Err(Silence::Refused);
        }
        let heard = async {
            match heard.await {
                Ok(said) => said,
                // What is lost tells nobody so.
                Err(_) => pending().await,
            }
        };
        match tokio::time::timeout(patience, heard).await {
            Ok(said) => Ok(said),
            Err(_) => {
                let now = self.clock.now();
                let mut inner = self.wire.lock();
                inner.record.trace.note(now, doing, replica, || "given up".into());
                inner.record.tally.unknown(doing);
                Err(Silence::TooLate)
            }
        }
    }

    /// Puts a request on the wire; false if it is refused at once.
    fn post(&self, store: Store, doing: &'static str, hand_in: HandIn) -> bool {
        let (now, plan) = (self.clock.now(), &self.wire.plan);
        let mut inner = self.wire.lock();
        let gate_is_open = plan.gate_is_open && doing == "now";
        if let Some(cut) = plan.cut(self.replica, store, now).filter(|_| !gate_is_open) {
            return !cut.refused;
        }
        let weather = plan.weather(now);
        if inner.dice.in_thousand(weather.request_lost) {
            inner.record.trace.note(now, doing, self.replica, || "the request is lost".into());
            inner.record.tally.requests_lost += 1;
            return true;
        }
        let latency = if inner.dice.in_thousand(weather.late) {
            inner.record.tally.late += 1;
            inner.dice.between(300, weather.latest)
        } else {
            inner.latency(weather)
        };
        let arrival = now + latency;
        let answered = !inner.dice.in_thousand(weather.reply_lost)
            && (gate_is_open || plan.cut(self.replica, store, arrival).is_none());
        inner.record.tally.replies_lost += u64::from(!answered);
        let reply_at = answered.then(|| arrival + inner.latency(plan.weather(arrival)));
        if let Some(reply_at) = reply_at {
            let number = inner.sent;
            inner.expected[self.replica].insert((reply_at, number));
        }
        let parcel = Parcel { replica: self.replica, life: self.life, number: inner.sent, reply_at, hand_in };
        let place = (arrival, inner.dice.between(0, 999), inner.sent);
        inner.sent += 1;
        inner.parcels.insert(place, parcel);
        self.sent.notify_one();
        true
    }
}

impl Carrier for Line {
    fn carry<'a, T, F>(&'a self, doing: &'static str, ask: F) -> Answer<'a, T>
    where
        T: Debug + Send + 'static,
        F: FnOnce(&mut Book, Millis) -> T + Send + 'static,
    {
        Box::pin(async move {
            let patience = Duration::from_millis(TTL / 4);
            let ask = |servers: &mut Servers, at| ask(&mut servers.book, ledger_time(at));
            let said = self.call(Store::Ledger, doing, patience, ask).await;
            said.map_err(|silence| LedgerError::Unavailable { doing, source: silence.into() })
        })
    }
}

impl Line {
    async fn order(&self, doing: &'static str, order: Order) -> Result<Said, LockError> {
        let patience = Duration::from_millis(TTL / 6);
        let ask = |servers: &mut Servers, at| servers.locks.carry_out(at, order);
        let said = self.call(Store::Lock, doing, patience, ask).await;
        said.map_err(|silence| LockError::unavailable(doing, silence))
    }
}

impl LockBackend for Line {
    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<AcquireOutcome, LockError>> {
        Box::pin(async move {
            match self.order("acquire", Order::Acquire(request.clone())).await? {
                Said::Acquire(outcome) => Ok(outcome),
                other => unreachable!("{other:?} to an acquire"),
            }
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<RenewOutcome, LockError>> {
        Box::pin(async move {
            match self.order("renew", Order::Renew(key.clone(), token.clone(), ttl)).await? {
                Said::Renew(outcome) => Ok(outcome),
                other => unreachable!("{other:?} to a renewal"),
            }
        })
    }

    fn release<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        done: Option<&'a DoneMark>,
    ) -> BoxFuture<'a, Result<ReleaseOutcome, LockError>> {
        Box::pin(async move {
            match self.order("release", Order::Release(key.clone(), token.clone(), done.cloned())).await? {
                Said::Release(outcome) => Ok(outcome),
                other => unreachable!("{other:?} to a release"),
            }
        })
    }
}
