//! Recording that a firing did not run.

use std::time::Duration;

use runner::internal::firing::{Firing, JobName, Reason, State};
use runner::internal::ledger::{Skip, Skipped};

use crate::fixture::{Fixture, Site, fresh, later, other_job, run, skipping, succeeded};

const SECOND: Duration = Duration::from_secs(1);

async fn skip(site: &Site<impl Fixture>, skip: &Skip) -> Skipped {
    site.opened.ledger.skip(skip).await.expect("an answer to the skip")
}

pub(crate) async fn a_skip_writes_a_row_that_ends_the_firing(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let request = Skip { detail: Some("too busy".into()), ..skipping(&firing, Reason::Missed) };
    assert_eq!(skip(site, &request).await, Skipped::Recorded);
    let rows = site.opened.reader.history(&Default::default()).await.unwrap();
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&row.state, &row.reason), (&State::Skipped.into(), &Some(Reason::Missed.into())));
    assert_eq!((row.error.as_deref(), row.attempt, row.fence), (Some("too busy"), 0, None));
    assert!(row.finished_at.is_some() && row.started_at.is_none());
}

pub(crate) async fn a_firing_with_a_row_is_not_skipped(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let won = site.win(&fresh(&firing)).await;
    let overlap = Skip { only_while_running: true, ..skipping(&firing, Reason::Overlap) };
    for request in [&skipping(&firing, Reason::Missed), &overlap] {
        assert_eq!(skip(site, request).await, Skipped::AlreadyThere(State::Running.into()));
    }
    site.settle(run(won), succeeded()).await;
    assert_eq!(skip(site, &overlap).await, Skipped::AlreadyThere(State::Succeeded.into()));
    assert_eq!(site.state(won.id).await, (State::Succeeded, None));
}

pub(crate) async fn an_overlap_is_skipped_only_while_something_runs(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 5).await;
    let overlap = |firing: &Firing| Skip { only_while_running: true, ..skipping(firing, Reason::Overlap) };
    assert_eq!(skip(site, &overlap(&firing)).await, Skipped::NothingRunning);
    let won = site.run().await;
    assert_eq!(skip(site, &overlap(&other_job(&firing))).await, Skipped::NothingRunning);
    let other_shard = Firing { shard: 1, ..firing.clone() };
    assert_eq!(skip(site, &overlap(&other_shard)).await, Skipped::NothingRunning);
    for second in 0..2 {
        let skipped = skip(site, &overlap(&later(&firing, SECOND * second * 2))).await;
        assert_eq!(skipped, Skipped::Recorded, "they do not wait, so there may be many");
    }
    site.settle(run(won), succeeded()).await;
    let next = later(&firing, SECOND);
    assert_eq!(skip(site, &overlap(&next)).await, Skipped::NothingRunning);
    site.win(&fresh(&next)).await;
}

pub(crate) async fn a_skip_of_a_paused_job_is_written(site: &Site<impl Fixture>) {
    site.opened.operators.pause("a", "me", "note").await.unwrap();
    let firing = site.firing(SECOND).await;
    assert_eq!(skip(site, &skipping(&firing, Reason::Paused)).await, Skipped::Recorded);
}

pub(crate) async fn a_skip_of_an_unknown_job_or_a_pruned_instant_is_refused(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 5).await;
    let unknown = Firing { job: JobName::new("nobody").unwrap(), ..firing.clone() };
    assert_eq!(skip(site, &skipping(&unknown, Reason::Missed)).await, Skipped::Refused);
    let won = site.run().await;
    site.settle(run(won), succeeded()).await;
    site.prune_all().await;
    assert_eq!(skip(site, &skipping(&firing, Reason::Missed)).await, Skipped::Refused);
    let overlap = Skip { only_while_running: true, ..skipping(&firing, Reason::Overlap) };
    assert_eq!(skip(site, &overlap).await, Skipped::Refused);
}
