//! A replica on parts that its caller has opened.

use std::future::{Future, pending};
use std::sync::Arc;

use lockcore::{Jitter, LockBackend};
use tokio::runtime::Handle;

use super::{Builder, Engine, Vitals};
use crate::clock::Clock;
use crate::config::{Config, ConfigErrors};
use crate::firing::Instance;
use crate::ledger::Opened;
use crate::lifecycle::{Drain, Signals};
use crate::runtimes::Homes;
use crate::scheduler::Heart;

/// What a replica stands on: who it is, its clocks, and both layers.
#[derive(Clone, Debug)]
pub struct Parts {
    /// In whose name it locks and claims; no two replicas may share one.
    pub instance: Instance,
    /// Its clocks.
    pub clock: Arc<dyn Clock>,
    /// The chance in its waits.
    pub jitter: Arc<Jitter>,
    /// What wakes its planner.
    pub heart: Heart,
    /// Layer one.
    pub locks: Arc<dyn LockBackend>,
    /// Layer two.
    pub ledger: Opened,
}

impl Builder {
    /// Fires the jobs of `config` on `parts` until `stop` ends, then drains as at a signal: `config` says
    /// which jobs, `parts` say where, so that what it says of urls, `[admin]` and `[log]` has no effect.
    /// Says whether the replica ended in order.
    ///
    /// Everything runs on the caller's runtime, which needs its timers: a job that blocks its thread
    /// blocks what keeps its leases, too. A process of its own, by [`Builder::main`], does not have that.
    ///
    /// # Errors
    /// [`ConfigErrors`] when a kind refuses its params.
    ///
    /// # Cancel safety
    /// Dropped, it fires nothing more and lets go of its runs only with the runtime.
    pub async fn embed(
        &self,
        config: &Config,
        parts: Parts,
        stop: impl Future<Output = ()>,
    ) -> Result<bool, ConfigErrors> {
        let jobs = self.registry.bind(config)?;
        let drain = Drain::default();
        let vitals = Vitals::of(parts.clock.clone());
        let replica = async {
            let homes = Homes::all_on(&Handle::current());
            let engine = Engine::on(parts, config, homes, drain.clone(), &vitals).await;
            engine.serve(config, &jobs, &vitals, Signals::none()).await
        };
        let stopped = async {
            stop.await;
            drain.close();
            pending().await
        };
        tokio::select! {
            biased;
            in_order = replica => Ok(in_order),
            never = stopped => never,
        }
    }
}
