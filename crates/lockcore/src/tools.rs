//! What every lock of one backend is kept with.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::{BootClock, Jitter, LockBackend};

/// What [`Locks`](crate::Locks), their guards and their keep-alives all need. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub(crate) backend: Arc<dyn LockBackend>,
    pub(crate) clock: Arc<dyn BootClock>,
    /// The runtime of the renewals and of the clean-ups.
    pub(crate) renewals: Handle,
    pub(crate) jitter: Arc<Jitter>,
}
