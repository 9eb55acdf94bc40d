//! One life of one replica: the product itself, on a runtime of its own whose time stands still until it is
//! moved.
//!
//! A process is a runtime. Nobody drives it while it is stopped, and then its whole time passes at once; it
//! is killed by dropping it, with everything that runs on it.

use std::pin::Pin;
use std::sync::Arc;

use lockcore::Jitter;
use runner::Runner;
use runner::internal::config::Config;
use runner::internal::firing::Instance;
use runner::internal::ledger::Opened;
use runner::internal::{Parts, Ticker, embed};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Duration, advance, sleep_until};
use uuid::Uuid;

use super::clock::SimClock;
use super::errand::{Errand, Params, Stage};
use super::plan::Tick;
use super::wire::{Delivery, Line, Wire};
use crate::book::memory::MemoryLedger;

/// The namespace of every simulated deployment.
pub(crate) const NAMESPACE: &str = "simulation";

/// How time passes before a replica goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leap {
    None,
    /// All at once, timers included.
    Stopped(Tick),
    /// Without the timers noticing.
    Slept(Tick),
}

type Life = Pin<Box<dyn Future<Output = ()>>>;

pub(crate) struct Machine {
    runtime: Runtime,
    life: Option<Life>,
    clock: Arc<SimClock>,
    sent: Arc<Notify>,
    stop: Option<oneshot::Sender<()>>,
}

/// Who lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth {
    pub(crate) seed: u64,
    pub(crate) replica: usize,
    /// Which life of the replica.
    pub(crate) life: u32,
    pub(crate) at: Tick,
    pub(crate) drift: i64,
    pub(crate) skew: i64,
}

impl Machine {
    pub(crate) fn start(birth: Birth, config: &Arc<Config>, wire: &Arc<Wire>) -> Self {
        let Birth { seed, replica, life, at, drift, skew } = birth;
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let clock = Arc::new(SimClock::new(at, drift, skew));
        let sent = Arc::<Notify>::default();
        let line = Line { wire: wire.clone(), replica, life, clock: clock.clone(), sent: sent.clone() };
        let unique = (replica as u128) << 120 | u128::from(life) << 96;
        let parts = Parts {
            instance: Instance::new("replica", Uuid::from_u128(unique)),
            clock: clock.clone(),
            jitter: Arc::new(Jitter::from_seed(seed ^ (u64::from(life) << 8 | replica as u64))),
            ticker: Ticker::Timer,
            locks: Arc::new(line.clone()),
            ledger: Opened::new(MemoryLedger::new(NAMESPACE, line)),
        };
        let stage = Stage { seed, wire: wire.clone(), clock: clock.clone(), replica };
        let config = config.clone();
        let (stop, stopped) = oneshot::channel();
        let life: Life = Box::pin(async move {
            let builder = Runner::builder()
                .kind("errand", move |params: Params| Ok(Errand::new(stage.clone(), params)));
            let stopped = async {
                // Kept until the machine is gone.
                let _told = stopped.await;
            };
            assert!(
                embed(&builder, &config, parts, stopped).await.expect("jobs that bind"),
                "left in disorder"
            );
        });
        Self { runtime, life: Some(life), clock, sent, stop: Some(stop) }
    }

    /// Tells it to leave.
    pub(crate) fn drain(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).ok();
        }
    }

    /// Kills it.
    pub(crate) fn kill(self) {
        self.clock.end();
    }

    pub(crate) fn set_skew(&self, skew: i64) {
        self.clock.set_skew(skew);
    }

    pub(crate) fn has_left(&self) -> bool {
        self.life.is_none()
    }

    /// Lets it live until it sends something, at most until `until`, and says what time it is then. `replies`
    /// are there when it begins.
    pub(crate) fn drive(&mut self, until: Tick, leap: Leap, replies: Vec<Delivery>) -> Tick {
        let Self { runtime, life, clock, sent, .. } = self;
        runtime.block_on(async {
            clock.start();
            for deliver in replies {
                deliver();
            }
            match leap {
                Leap::None => {}
                Leap::Stopped(span) => advance(Duration::from_millis(span)).await,
                Leap::Slept(span) => clock.slept(span),
            }
            tokio::select! {
                biased;
                () = sent.notified() => {}
                () = sleep_until(clock.at(until)) => {}
                () = async { life.as_mut().expect("it lives").await }, if life.is_some() => *life = None,
            }
            clock.now()
        })
    }
}
