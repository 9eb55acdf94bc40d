//! A job that was registered while the ledger's clock was ahead: its gaps are found as soon as the clock is right.

use std::time::Duration;

use chrono::TimeDelta;
use runner::internal::firing::Delivery;
use runner::internal::ledger::{Decision, Question};

use crate::fixture::sqlite::Sqlite;
use crate::fixture::work::outside;
use crate::fixture::{Fixture, Postgres, Site};

/// Moves the registration eight hours ahead with `sql`, and then the horizon back.
async fn is_lowered_to_now(site: &Site<impl Fixture>, sql: &'static str) {
    outside(site, sql).await;
    let question = [Question { job: "a".into(), reach_back: Duration::ZERO }];
    let horizon = async || site.opened.gaps.horizons(&question).await.unwrap().remove(0);
    let (ahead, now) = (horizon().await, site.now().await);
    assert!(ahead.decided_until > now + TimeDelta::hours(7));
    let decision = Decision {
        job: "a".into(),
        decided_until: ahead.decided_until,
        until: now - TimeDelta::hours(1),
        exclusive: true,
        delivery: Delivery::AtLeastOnce,
        expires_in: Duration::from_secs(60),
        gaps: Vec::new(),
    };
    assert!(site.opened.gaps.decide(&decision).await.unwrap());
    let lowered = horizon().await.decided_until;
    // Nothing is invented for the time before the job was known.
    assert!(lowered >= now && lowered <= site.now().await, "{lowered} is not now, {now}");
}

#[tokio::test]
async fn on_postgresql_its_horizon_is_lowered_to_now() {
    let site = Site::<Postgres>::open().await;
    is_lowered_to_now(&site, "UPDATE runner_jobs SET known_since = known_since + interval '8 hours'").await;
}

#[tokio::test]
async fn on_sqlite_its_horizon_is_lowered_to_now() {
    let site = Site::<Sqlite>::open().await;
    is_lowered_to_now(&site, "UPDATE runner_jobs SET known_since = known_since + 28800000").await;
}
