//! What all parts of one replica share.

use std::sync::Arc;

use lockcore::Jitter;

use super::lifecycle::Drain;
use super::pulse::Pulse;
use crate::clock::Clock;

/// The clocks of a replica, the state of its ledger, how far it has drained, and its random numbers. It is cheap to
/// clone, and all clones share one state.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The wall clock of this host and the clock that leases are judged by.
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether the ledger answers, and its time.
    pub(crate) pulse: Arc<Pulse>,
    /// How far the replica has drained.
    pub(crate) drain: Drain,
    /// The random part of every wait.
    pub(crate) jitter: Arc<Jitter>,
}

impl Site {
    /// A new site. The ledger has not answered yet, and the replica does not drain.
    pub(crate) fn new(clock: Arc<dyn Clock>, jitter: Arc<Jitter>) -> Self {
        let pulse = Arc::new(Pulse::new(clock.clone()));
        Self { clock, pulse, drain: Drain::default(), jitter }
    }
}
