//! How a server is reached: timeouts and runtimes.

use std::time::Duration;

use tokio::runtime::Handle;

/// The longest wait for one reply or one connection, whatever the ttl.
const LONGEST_TIMEOUT: Duration = Duration::from_millis(500);

/// How [`open`](crate::open) reaches a server.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "this build can reach no server"))]
pub struct OpenOptions {
    /// How long to wait for a connection, and then for a reply.
    pub(crate) timeout: Duration,
    /// The runtime on which the connection of acquisitions and releases lives.
    pub(crate) requests: Handle,
    /// The runtime on which the connection of renewals lives.
    pub(crate) renewals: Handle,
}

impl OpenOptions {
    /// Acquisitions and releases go over a connection on the runtime `requests`, renewals over one on
    /// `renewals`. Both runtimes need I/O and time enabled, and must live longer than the backend.
    ///
    /// A socket is served by the runtime on which it was opened. Work that blocks all threads of a runtime
    /// stops its sockets too, so neither runtime should run code that may block.
    #[must_use]
    pub fn new(requests: Handle, renewals: Handle) -> Self {
        Self { timeout: LONGEST_TIMEOUT, requests, renewals }
    }

    /// Sets the timeout to a sixth of `ttl`, at most 500 ms.
    ///
    /// Pass the shortest ttl of all locks: a failed renewal must leave time for a second one.
    #[must_use]
    pub fn shortest_ttl(self, ttl: Duration) -> Self {
        self.timeout((ttl / 6).min(LONGEST_TIMEOUT))
    }

    /// Sets how long to wait for a connection, and then for a reply: 500 ms by default, at least 1 ms.
    ///
    /// One call takes at most twice as long; four times as long if the server does not know the script yet.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: timeout.max(Duration::from_millis(1)), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_leave_room_for_a_second_renewal_within_a_third_of_the_ttl() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let options = OpenOptions::new(runtime.handle().clone(), runtime.handle().clone());
        assert_eq!(options.timeout, Duration::from_millis(500));
        let short = options.clone().shortest_ttl(Duration::from_millis(600));
        assert_eq!(short.timeout, Duration::from_millis(100));
        let long = options.clone().shortest_ttl(Duration::from_secs(60));
        assert_eq!(long.timeout, Duration::from_millis(500));
        assert_eq!(options.timeout(Duration::ZERO).timeout, Duration::from_millis(1));
    }
}
