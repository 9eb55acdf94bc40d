//! Runs of a request with levers to pull.

use std::time::Duration;

use chrono::{TimeZone as _, Utc};
use lockcore::{BootClock as _, BootInstant, SystemBootClock};
use runner::internal::config::read_params;
use runner::internal::firing::{Fence, Firing, JobName, Origin};
use runner::internal::kinds::Http;
use runner::internal::{Cancel, ContextParts};
use runner::{Job as _, JobContext, JobError, Licence};
use tokio::sync::watch;

use super::PATIENCE;
use super::receiver::Receiver;

/// A run, seen from outside.
pub(crate) struct Levers {
    pub(crate) cancel: Cancel,
    _licence: watch::Sender<BootInstant>,
}

/// Attempt 2 of shard 3 of 8, under fence 41, licensed for `licence`.
pub(crate) fn context(licence: Duration) -> (JobContext, Levers) {
    let cancel = Cancel::default();
    let now = SystemBootClock.boot_now();
    let (sender, receiver) = watch::channel(now + licence);
    let context = JobContext::from(ContextParts {
        namespace: "tests".into(),
        firing: Firing {
            job: JobName::new("payouts").expect("a name"),
            scheduled_at: Utc.with_ymd_and_hms(2026, 3, 29, 1, 0, 0).unwrap(),
            shard: 3,
            trigger_key: String::new(),
            origin: Origin::CatchUp,
        },
        shards: 8,
        attempt: 2,
        fence: Fence(41),
        deadline: now + PATIENCE,
        kill_grace: PATIENCE,
        cancel: cancel.clone(),
        licence: Licence::new(receiver),
        effect: None,
    });
    (context, Levers { cancel, _licence: sender })
}

/// A request from its params as jobs.toml has them.
#[track_caller]
pub(crate) fn http(params: &str) -> Http {
    Http::new(
        read_params(&params.parse().expect("TOML")).unwrap_or_else(|problem| panic!("{problem:?}: {params}")),
    )
}

/// A request to `path` of `receiver` with these other params.
#[track_caller]
pub(crate) fn to(receiver: &Receiver, path: &str, params: &str) -> Http {
    http(&format!("url = {:?}\n{params}", receiver.url(path)))
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().expect("a runtime").block_on(future)
}

/// How a request ends that nobody disturbs, and what was kept of its answer.
pub(crate) fn outcome(http: &Http) -> (Result<(), JobError>, Option<String>) {
    block_on(async {
        let (context, _levers) = context(PATIENCE);
        let result = http.run(&context).await;
        (result, context.output())
    })
}

/// How a request fails: whether another attempt may help, and why.
#[track_caller]
pub(crate) fn failure(http: &Http) -> (bool, String) {
    let (result, output) = outcome(http);
    match result {
        Ok(()) => panic!("it succeeded with {output:?}"),
        Err(error) => (error.is_retry(), error.to_string()),
    }
}
