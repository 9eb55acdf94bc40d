//! Waiting for a condition by polling. Use it only where there is no event to wait for.

use std::panic::Location;
use std::time::{Duration, Instant};

/// The first pauses are short, for a condition that is almost true; the later ones avoid a busy loop.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
];

/// Calls `probe` until it returns `Ok`, at most for `deadline`.
///
/// `Err` is not a failure. It holds the present status. The panic at the deadline shows the last status, so that
/// the failed test says what it saw.
///
/// # Panics
/// When the deadline has passed.
#[track_caller]
pub fn wait_until<T>(
    deadline: Duration,
    mut probe: impl AsyncFnMut() -> Result<T, String>,
) -> impl Future<Output = T> {
    let mut poll = Poll::new(deadline, Location::caller());
    async move {
        loop {
            match probe().await {
                Ok(value) => return value,
                Err(status) => tokio::time::sleep(poll.pause_or_panic(&status)).await,
            }
        }
    }
}

/// [`wait_until`] for tests without a runtime.
///
/// # Panics
/// When the deadline has passed.
#[track_caller]
pub fn wait_until_blocking<T>(deadline: Duration, mut probe: impl FnMut() -> Result<T, String>) -> T {
    let mut poll = Poll::new(deadline, Location::caller());
    loop {
        match probe() {
            Ok(value) => return value,
            Err(status) => std::thread::sleep(poll.pause_or_panic(&status)),
        }
    }
}

/// Calls `probe` until it returns a value, at most for `limit`. For a condition that may never be true.
pub fn wait_at_most<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let mut poll = Poll::new(limit, Location::caller());
    loop {
        match probe() {
            Some(value) => return Some(value),
            None => std::thread::sleep(poll.pause()?),
        }
    }
}

/// Sleeps. Only for tests in which the passing of time is itself the fault.
pub fn let_pass(span: Duration) {
    std::thread::sleep(span);
}

struct Poll {
    since: Instant,
    deadline: Duration,
    asked: usize,
    place: &'static Location<'static>,
}

impl Poll {
    fn new(deadline: Duration, place: &'static Location<'static>) -> Self {
        Self { since: Instant::now(), deadline, asked: 0, place }
    }

    fn pause_or_panic(&mut self, status: &str) -> Duration {
        let (place, waited) = (self.place, self.since.elapsed());
        self.pause().unwrap_or_else(|| panic!("{place}: waited {waited:.1?} in vain; last status: {status}"))
    }

    /// How long to wait before the next question; `None` at the deadline.
    fn pause(&mut self) -> Option<Duration> {
        self.asked += 1;
        let pause = PAUSES[(self.asked / 10).min(PAUSES.len() - 1)];
        (self.since.elapsed() < self.deadline).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_what_may_never_be_ends_at_its_limit_without_a_value() {
        assert_eq!(wait_at_most(Duration::from_millis(20), || None::<()>), None);
        let mut asked = 0;
        let mut third = || {
            asked += 1;
            (asked == 3).then_some(asked)
        };
        assert_eq!(wait_at_most(Duration::from_secs(5), &mut third), Some(3));
    }

    #[test]
    fn an_answer_ends_the_wait() {
        let mut asked = 0;
        let answer = wait_until_blocking(Duration::from_secs(5), || {
            asked += 1;
            if asked < 15 { Err(format!("asked {asked} times")) } else { Ok(asked) }
        });
        assert_eq!(answer, 15);
    }

    #[test]
    #[should_panic(expected = "last status: the door is shut")]
    fn a_wait_that_fails_says_what_it_saw_last() {
        wait_until_blocking(Duration::from_millis(20), || Err::<(), _>("the door is shut".into()));
    }

    #[tokio::test]
    async fn an_async_probe_may_await() {
        let (send, mut receive) = tokio::sync::mpsc::channel::<u32>(1);
        send.send(7).await.expect("the channel is open");
        let got = wait_until(Duration::from_secs(5), async || receive.recv().await.ok_or("closed".into()));
        assert_eq!(got.await, 7);
    }
}
