//! How a replica ends: it takes no more firings, lets runs finish, interrupts the rest, and exits.

use std::future::pending;
use std::time::Duration;

use futures_util::future::OptionFuture;
use rustix::process::Signal as RawSignal;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

/// The three steps of a drain. Every part of the replica sees them. No step is ever taken back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drain {
    closing: CancellationToken,
    interrupting: CancellationToken,
    abandoning: CancellationToken,
    stuck: CancellationToken,
}

impl Drain {
    /// Step one: take no more firings. A firing that has its lock is still claimed and run.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Step two: runs are asked to stop.
    pub(crate) fn interrupt(&self) {
        self.closing.cancel();
        self.interrupting.cancel();
    }

    /// Step three: nobody waits for the ledger or the lock any longer. Leases run out by themselves.
    pub(crate) fn abandon(&self) {
        self.interrupt();
        self.abandoning.cancel();
    }

    /// A run ignores its cancellation: the replica leaves and its exit code says so. Other runs may finish.
    pub(crate) fn give_up_on_stuck_run(&self) {
        self.stuck.cancel();
        self.close();
    }

    /// Whether a run that ignored its cancellation is why we leave.
    #[must_use]
    pub(crate) fn is_stuck(&self) -> bool {
        self.stuck.is_cancelled()
    }

    /// Whether step one was taken.
    #[must_use]
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Ends when step one is taken.
    ///
    /// # Cancel safety
    /// Safe to drop, as are the three others.
    pub(crate) async fn closing(&self) {
        self.closing.cancelled().await;
    }

    /// Ends when step two is taken.
    pub(crate) async fn interrupting(&self) {
        self.interrupting.cancelled().await;
    }

    /// Ends when step three is taken.
    pub(crate) async fn abandoning(&self) {
        self.abandoning.cancelled().await;
    }

    /// Ends when a run that ignores its cancellation is given up on.
    pub(crate) async fn stuck(&self) {
        self.stuck.cancelled().await;
    }
}

/// The signals that end a replica. None where its own program ends it.
#[derive(Debug)]
pub(crate) struct Signals(Option<Listening>);

#[derive(Debug)]
struct Listening {
    terminate: Signal,
    interrupt: Signal,
    /// The terminal was closed. None under `nohup`: then the process is to outlive its terminal.
    hangup: Option<Signal>,
    quit: Signal,
    /// Held so that their default, to kill the process at once, does not apply.
    _ignored: Vec<Signal>,
}

/// Signals that mean nothing to the runner. By default each of them would kill it without a drain.
const IGNORED: [RawSignal; 7] = [
    RawSignal::USR1,
    RawSignal::USR2,
    RawSignal::ALARM,
    RawSignal::VTALARM,
    RawSignal::PROF,
    RawSignal::IO,
    RawSignal::POWER,
];

impl Signals {
    /// Listens from now on; call within a runtime, before anything is started.
    ///
    /// # Errors
    /// When the operating system refuses a handler.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let ignored = IGNORED.iter().map(|number| signal(SignalKind::from_raw(number.as_raw())));
        Ok(Self(Some(Listening {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: if is_hangup_ignored() { None } else { Some(signal(SignalKind::hangup())?) },
            quit: signal(SignalKind::quit())?,
            _ignored: ignored.collect::<Result<_, _>>()?,
        })))
    }

    /// Listens to none.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// The next SIGTERM, SIGINT, SIGHUP or SIGQUIT.
    ///
    /// # Cancel safety
    /// Safe to drop; no signal is lost.
    pub(crate) async fn next(&mut self) {
        let Some(listening) = &mut self.0 else { return pending().await };
        tokio::select! {
            _ = listening.terminate.recv() => {}
            _ = listening.interrupt.recv() => {}
            Some(_) = OptionFuture::from(listening.hangup.as_mut().map(Signal::recv)) => {}
            _ = listening.quit.recv() => {}
        }
    }

    async fn let_echo_pass(&mut self) {
        let _one_or_none = tokio::time::timeout(ONE_SIGNAL, self.next()).await;
    }
}

/// Whether the process was started with SIGHUP ignored.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
    // The lowest bit stands for signal 1, which is SIGHUP.
    ignored.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Signals closer together than this count as one. Some process managers signal a process and then its group, and
/// the second signal does not mean "now".
const ONE_SIGNAL: Duration = Duration::from_millis(20);

/// How long runs that are left behind have to log that. A run that ignores everything is not waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Waits for a signal (or for `drain` to be closed from within), then takes the steps in order.
///
/// Returns when every task in `firings` has ended. A task that is left gets `parting` after it was interrupted, and
/// a moment to log that. Its leases run out by themselves.
pub(crate) async fn run_until_drained(
    mut signals: Signals,
    drain: &Drain,
    firings: &TaskTracker,
    grace: Duration,
    parting: Duration,
) {
    tokio::select! {
        biased;
        () = signals.next() => {
            drain.close();
            signals.let_echo_pass().await;
            info!(?grace, "draining: no new firings, runs may finish");
        }
        () = drain.closing() => {}
    }
    firings.close();
    tokio::select! {
        biased;
        () = firings.wait() => return,
        () = tokio::time::sleep(grace) => info!(left = firings.len(), "the grace is over: interrupting runs"),
        () = signals.next() => info!(left = firings.len(), "second signal: interrupting runs now"),
        () = drain.interrupting() => {}
    }
    drain.interrupt();
    tokio::select! {
        biased;
        () = firings.wait() => return,
        () = tokio::time::sleep(parting) => {}
        () = signals.next() => {}
    }
    warn!(left = firings.len(), "leaving runs behind: other replicas take over when their leases end");
    drain.abandon();
    // Somebody may look in the log for a run that was left behind.
    let _said_or_stuck = tokio::time::timeout(LAST_WORDS, firings.wait()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_steps_of_a_drain_only_go_forward_and_a_later_one_takes_the_earlier_ones() {
        let drain = Drain::default();
        assert!(!drain.is_closing());
        drain.interrupt();
        assert!(drain.is_closing());
        drain.interrupting().await;
        assert!(!drain.abandoning.is_cancelled());
        drain.abandon();
        drain.abandoning().await;
        assert!(!drain.is_stuck());
    }

    #[tokio::test]
    async fn what_is_left_behind_says_so_before_the_replica_leaves() {
        let (drain, firings) = (Drain::default(), TaskTracker::new());
        let (say, mut said) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..20 {
            let (drain, say) = (drain.clone(), say.clone());
            firings.spawn(async move {
                drain.abandoning().await;
                // Others have their turn first, as on a busy machine.
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                say.send(number).unwrap();
            });
        }
        firings.spawn(std::future::pending::<()>());
        drain.interrupt();
        let signals = Signals::listen().unwrap();
        run_until_drained(signals, &drain, &firings, Duration::ZERO, Duration::ZERO).await;
        let told = std::iter::from_fn(|| said.try_recv().ok()).count();
        assert_eq!(told, 20);
    }

    #[tokio::test]
    async fn a_stuck_run_makes_the_replica_leave_without_interrupting_the_others_at_once() {
        let drain = Drain::default();
        drain.give_up_on_stuck_run();
        drain.stuck().await;
        assert!(drain.is_stuck() && drain.is_closing());
        assert!(!drain.interrupting.is_cancelled());
    }
}
