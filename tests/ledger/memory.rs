//! The ledger in memory that simulated worlds stand on: it has to pass the suite, or they show nothing.

use std::fmt::Debug;
use std::future::{Future, ready};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::Utc;
use runner::ledger::{Answer, Opened};

use crate::book::{Book, Millis};
use crate::fixture::Fixture;
use crate::in_memory::{Carrier, MemoryLedger};

/// A book at hand: nothing lies on the way to it, and its clock is the host's. No two steps share a moment, as
/// those of a database hardly ever do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<(Book, Millis)>>);

impl Fixture for Memory {
    fn new() -> Self {
        Self::default()
    }

    fn url(&self) -> String {
        "memory".into()
    }

    fn open(&self, namespace: &str) -> impl Future<Output = Opened> + Send {
        ready(Opened::new(MemoryLedger::new(namespace, self.clone())))
    }
}

impl Carrier for Memory {
    fn carry<'a, T, F>(&'a self, _: &'static str, ask: F) -> Answer<'a, T>
    where
        T: Debug + Send + 'static,
        F: FnOnce(&mut Book, Millis) -> T + Send + 'static,
    {
        Box::pin(async move {
            let mut at_hand = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (book, last) = &mut *at_hand;
            #[expect(clippy::disallowed_methods, reason = "a ledger's clock is that of its host")]
            let now = Utc::now().timestamp_millis();
            *last = now.max(*last + 1);
            Ok(ask(book, *last))
        })
    }
}
