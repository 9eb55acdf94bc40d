//! Work that is committed together with the end of its run.

use std::sync::Arc;
use std::time::Duration;

use runner::internal::clock::SystemClock;
use runner::internal::firing::{Delivery, Fence, Reason, State};
use runner::internal::ledger::{EffectTerms, Heartbeat, Run, Settled};
use runner::sqlx::{self, Connection as _};
use runner::{EffectError, JobContext};

use crate::fixture::work::{beat, context, notes, parts, prepare, say, sweep, work};
use crate::fixture::{Fixture, HOUR, Site, ended, run, succeeded};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn a_commit_ends_the_firing_and_keeps_the_work<F: Fixture>(site: &Site<F>) {
    prepare(site).await;
    let run = run(site.run().await);
    let ctx = context(site, run, 1, HOUR).await;
    let mut transaction = ctx.transaction().await.unwrap();
    work(&mut transaction).await;
    assert_eq!(site.state(run.id).await.0, State::Running, "before the commit");
    ctx.set_output("what it left");
    transaction.commit().await.unwrap();
    let row = site.row(run.id).await;
    assert_eq!(
        (&row.state, &row.reason, row.output.as_deref()),
        (&State::Succeeded.into(), &None, Some("what it left"))
    );
    assert!(row.finished_at.is_some() && row.lease_until.is_none(), "{row:?}");
    assert_eq!(notes(site).await, 1);
    assert_eq!(beat(&site.opened, run).await, Heartbeat::Lost);
    assert_eq!(site.settle(run, succeeded()).await, Settled::Recorded);
    assert_eq!(site.settle(run, ended(State::Failed, Reason::Error)).await, Settled::Fenced);
}

pub(crate) async fn what_is_dropped_without_a_commit_is_undone<F: Fixture>(site: &Site<F>) {
    prepare(site).await;
    let run = run(site.run().await);
    let ctx = context(site, run, 1, HOUR).await;
    let mut transaction = ctx.transaction().await.unwrap();
    work(&mut transaction).await;
    drop(transaction);
    assert_eq!(notes(site).await, 0);
    assert_eq!(site.state(run.id).await.0, State::Running);
    // And the run may try again.
    let mut transaction = ctx.transaction().await.unwrap();
    work(&mut transaction).await;
    transaction.commit().await.unwrap();
    assert_eq!(notes(site).await, 1);
}

pub(crate) async fn a_run_that_was_taken_over_gets_no_transaction<F: Fixture>(site: &Site<F>) {
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    sweep(site, abandoned).await;
    let ctx = context(site, abandoned, 1, HOUR).await;
    assert!(matches!(ctx.transaction().await, Err(EffectError::TakenOver)));
    let running = run(site.win(&crate::fixture::take(&site.firing(SECOND).await, abandoned.id)).await);
    let stale = Run { fence: Fence(running.fence.0 - 1), ..running };
    assert!(matches!(context(site, stale, 1, HOUR).await.transaction().await, Err(EffectError::TakenOver)));
    assert!(context(site, running, 2, HOUR).await.transaction().await.is_ok());
}

pub(crate) async fn a_transaction_belongs_to_a_number_and_a_fence<F: Fixture>(site: &Site<F>) {
    let firing = site.firing(SECOND * 9).await;
    let first = run(site.win(&crate::fixture::fresh(&firing)).await);
    let second = run(site.win(&crate::fixture::fresh(&crate::fixture::other_job(&firing))).await);
    let mixed = [Run { id: first.id, fence: second.fence }, Run { id: second.id, fence: first.fence }];
    for run in mixed {
        assert!(matches!(context(site, run, 1, HOUR).await.transaction().await, Err(EffectError::TakenOver)));
    }
    let other = site.neighbour("other").await;
    let clock = Arc::new(SystemClock::default());
    let deadline = lockcore::BootClock::boot_now(&*clock) + HOUR;
    let terms = EffectTerms { run: first, attempt: 1, lease: HOUR, deadline, clock };
    assert!(other.effects.begin(&terms).await.unwrap().is_none(), "not for another namespace");
    context(site, first, 1, HOUR).await.transaction().await.unwrap().commit().await.unwrap();
    assert_eq!(site.state(second.id).await.0, State::Running);
    for run in mixed.into_iter().chain([second]) {
        assert!(!site.opened.effects.committed(run).await.unwrap());
    }
    assert!(!other.effects.committed(first).await.unwrap());
    assert!(site.opened.effects.committed(first).await.unwrap());
}

pub(crate) async fn a_commit_ends_its_own_firing_only<F: Fixture>(site: &Site<F>) {
    let firing = site.firing(SECOND * 9).await;
    let first = run(site.win(&crate::fixture::fresh(&firing)).await);
    let second = run(site.win(&crate::fixture::fresh(&crate::fixture::other_job(&firing))).await);
    context(site, first, 1, HOUR).await.transaction().await.unwrap().commit().await.unwrap();
    assert_eq!(site.state(first.id).await.0, State::Succeeded);
    assert_eq!(site.state(second.id).await.0, State::Running);
}

pub(crate) async fn a_run_commits_once<F: Fixture>(site: &Site<F>) {
    prepare(site).await;
    let ctx = context(site, run(site.run().await), 1, HOUR).await;
    let mut transaction = ctx.transaction().await.unwrap();
    work(&mut transaction).await;
    transaction.commit().await.unwrap();
    assert!(matches!(ctx.transaction().await, Err(EffectError::Ended)));
    // A context that does not know of the first commit is refused by the row.
    let other = context(site, Run { ..run_of(&ctx, site).await }, 1, HOUR).await;
    assert!(matches!(other.transaction().await, Err(EffectError::TakenOver)));
    assert_eq!(notes(site).await, 1);
}

async fn run_of<F: Fixture>(ctx: &JobContext, site: &Site<F>) -> Run {
    let rows = site.opened.reader.history(&runner::internal::ledger::HistoryFilter::default()).await.unwrap();
    let row = rows.iter().find(|row| row.fence == Some(ctx.fence().0)).expect("the run's row");
    Run { id: row.id, fence: ctx.fence() }
}

pub(crate) async fn a_run_has_one_transaction_at_a_time<F: Fixture>(site: &Site<F>) {
    let ctx = context(site, run(site.run().await), 1, HOUR).await;
    let first = ctx.transaction().await.unwrap();
    assert!(matches!(ctx.transaction().await, Err(EffectError::Open)));
    drop(first);
    assert!(ctx.transaction().await.is_ok());
}

pub(crate) async fn a_nested_transaction_does_not_commit_the_work<F: Fixture>(site: &Site<F>) {
    prepare(site).await;
    let ctx = context(site, run(site.run().await), 1, HOUR).await;
    let mut transaction = ctx.transaction().await.unwrap();
    const INSERT: &str = "INSERT INTO notes (text) VALUES ('nested')";
    if let Ok(connection) = transaction.postgres() {
        let mut nested = connection.begin().await.unwrap();
        sqlx::query(INSERT).execute(&mut *nested).await.unwrap();
        nested.commit().await.unwrap();
    } else {
        let mut nested = transaction.sqlite().unwrap().begin().await.unwrap();
        sqlx::query(INSERT).execute(&mut *nested).await.unwrap();
        nested.commit().await.unwrap();
    }
    drop(transaction);
    assert_eq!(notes(site).await, 0);
}

pub(crate) async fn a_transaction_that_was_ended_by_a_statement_does_not_end_the_firing<F: Fixture>(
    site: &Site<F>,
) {
    prepare(site).await;
    let run = run(site.run().await);
    for own_end in ["COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN"] {
        let ctx = context(site, run, 1, HOUR).await;
        let mut transaction = ctx.transaction().await.unwrap();
        work(&mut transaction).await;
        say(&mut transaction, own_end).await.unwrap();
        let refusal = transaction.commit().await.unwrap_err();
        assert!(matches!(refusal, EffectError::Broken), "{own_end}: {refusal:?}");
        assert_eq!(site.state(run.id).await.0, State::Running, "{own_end}");
    }
}

pub(crate) async fn a_run_without_a_ledger_gets_no_transaction<F: Fixture>(site: &Site<F>) {
    let ctx = parts(site, run(site.run().await), None).await;
    assert!(matches!(ctx.transaction().await, Err(EffectError::NotOffered)));
}

pub(crate) async fn the_connection_is_that_of_the_ledgers_database<F: Fixture>(site: &Site<F>) {
    let ctx = context(site, run(site.run().await), 1, HOUR).await;
    let mut transaction = ctx.transaction().await.unwrap();
    let (postgres, sqlite) = (transaction.postgres().is_ok(), transaction.sqlite().is_ok());
    let is_sqlite = site.address().starts_with("sqlite");
    assert_eq!((postgres, sqlite), (!is_sqlite, is_sqlite));
}

pub(crate) async fn an_unknown_commit_is_answered_by_the_row<F: Fixture>(site: &Site<F>) {
    let run = run(site.run().await);
    assert!(!site.opened.effects.committed(run).await.unwrap());
    context(site, run, 1, HOUR).await.transaction().await.unwrap().commit().await.unwrap();
    assert!(site.opened.effects.committed(run).await.unwrap());
    let stale = Run { fence: Fence(run.fence.0 - 1), ..run };
    assert!(!site.opened.effects.committed(stale).await.unwrap());
}
