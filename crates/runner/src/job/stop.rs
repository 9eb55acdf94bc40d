//! What stops a run: being asked to, and the end of its licence.

use std::sync::{Arc, Mutex, PoisonError};

use lockcore::BootInstant;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::firing::Cause;

/// What tells a run to stop, and why.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    token: CancellationToken,
    cause: Arc<Mutex<Option<Cause>>>,
}

impl Cancel {
    /// Asks the run to stop. The first cause stays.
    pub fn cancel(&self, cause: Cause) {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
        self.token.cancel();
    }

    /// Why the run was asked to stop, if it was.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        *self.cause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends when the run is asked to stop.
    ///
    /// # Cancel safety
    /// Safe to drop and call again.
    pub async fn cancelled(&self) -> Cause {
        self.token.cancelled().await;
        self.cause().unwrap_or(Cause::LeaseLost)
    }
}

/// Until when a run may work. Moves forward with every heartbeat that the ledger acknowledges; the warden of a
/// command lives by it.
#[derive(Clone, Debug)]
pub struct Licence(watch::Receiver<BootInstant>);

impl Licence {
    /// A licence whose end is what the sender of `ends` says.
    #[must_use]
    pub const fn new(ends: watch::Receiver<BootInstant>) -> Self {
        Self(ends)
    }

    /// A licence that never ends.
    #[must_use]
    pub fn endless() -> Self {
        Self(watch::channel(BootInstant::from_boot(std::time::Duration::MAX)).1)
    }

    /// Its end as it stands now, on the boot clock.
    #[must_use]
    pub fn ends(&self) -> BootInstant {
        *self.0.borrow()
    }

    /// Its end once that has moved since it was last asked for here; never, if nobody moves it any more.
    ///
    /// # Cancel safety
    /// Safe to drop and call again.
    pub async fn moved(&mut self) -> BootInstant {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        *self.0.borrow_and_update()
    }
}
