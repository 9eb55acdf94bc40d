//! Step two: which lock is asked for, and in whose name.

use std::sync::Arc;

use lockcore::Holder;

use super::fixture::{Corridor, SUBJECT, TTL, ran};
use crate::engine::executor::Ticket;
use crate::firing::Origin;

#[tokio::test(start_paused = true)]
async fn the_lock_is_asked_for_one_ttl_in_the_name_of_the_firing() {
    let corridor = Corridor::succeeding("");
    ran(corridor.execute().await);
    let request = corridor.lock.acquires.one();
    assert_eq!(request.key.lock(), "{runner:test/job}:lock");
    assert_eq!(request.ttl, TTL);
    let holder = Holder::from_value(request.token.as_str());
    assert_eq!(
        (holder.instance.as_str(), holder.subject.as_str()),
        (corridor.executor.instance.as_str(), SUBJECT)
    );
    assert_eq!(request.unless_done.as_deref(), Some(SUBJECT));
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_a_manual_firing_names_its_key_and_ignores_the_done_marker() {
    let corridor = Corridor::succeeding("");
    let mut firing = corridor.firing(Origin::Manual);
    firing.trigger_key = "by-hand".into();
    ran(corridor.executor.execute(&corridor.job, Ticket::Fresh(firing)).await);
    let request = corridor.lock.acquires.one();
    assert_eq!(Holder::from_value(request.token.as_str()).subject, format!("{SUBJECT}/by-hand"));
    assert_eq!(request.unless_done, None);
}

#[tokio::test(start_paused = true)]
async fn a_queued_firing_ignores_the_done_marker() {
    let corridor = Corridor::succeeding("");
    ran(corridor.execute_queued().await);
    assert_eq!(corridor.lock.acquires.one().unless_done, None);
}

#[tokio::test(start_paused = true)]
async fn each_shard_has_a_lock_of_its_own() {
    let mut corridor = Corridor::succeeding("");
    Arc::make_mut(&mut corridor.job.spec).shards = 4;
    ran(corridor.execute().await);
    assert_eq!(corridor.lock.acquires.one().key.lock(), "{runner:test/job}:lock#0");
}

#[tokio::test(start_paused = true)]
async fn runs_that_may_overlap_have_a_lock_for_each_instant() {
    let corridor = Corridor::succeeding("overlap = \"allow\"");
    ran(corridor.execute().await);
    assert_eq!(corridor.lock.acquires.one().key.lock(), "{runner:test/job}:lock@1800000000000");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_the_ledger_alone_guards_takes_no_lock() {
    let corridor = Corridor::succeeding("guard = \"ledger\"");
    ran(corridor.execute().await);
    assert_eq!(corridor.log.events(), ["claim", "run", "gone", "settle"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_of_which_no_key_can_be_made_leaves_the_row_as_guard() {
    let mut corridor = Corridor::succeeding("");
    corridor.executor.namespace = "}".into();
    ran(corridor.execute().await);
    assert_eq!(corridor.log.events(), ["claim", "run", "gone", "settle"]);
}
