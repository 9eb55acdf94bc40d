//! Work that is committed together with the end of its run.

use std::sync::Arc;
use std::time::Duration;

use runner::clock::SystemClock;
use runner::firing::{Delivery, Fence, State};
use runner::ledger::{Effect, EffectTerms, Heartbeat, Opened, Run, Settled};
use runner::sqlx::{self, AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
use runner::{Cancel, ContextParts, EffectError, JobContext, Transaction};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::fixture::sqlite::Sqlite;
use crate::fixture::{Fixture, HOUR, Postgres, Site, ended, eventually, run, succeeded};

const SECOND: Duration = Duration::from_secs(1);

/// The context of a run, as its job is handed it.
async fn context<F: Fixture>(site: &Site<F>, run: Run, attempt: u32, lease: Duration) -> JobContext {
    let clock = Arc::new(SystemClock::default());
    let deadline = lockcore::BootClock::boot_now(&*clock) + HOUR;
    let terms = EffectTerms { run, attempt, lease, deadline, clock };
    parts(site, run, Some(Effect::new(site.opened.effects.clone(), terms))).await
}

async fn parts<F: Fixture>(site: &Site<F>, run: Run, effect: Option<Effect>) -> JobContext {
    let far = lockcore::BootClock::boot_now(&SystemClock::default()) + HOUR;
    JobContext::new(ContextParts {
        namespace: "test".into(),
        firing: site.firing(SECOND).await,
        shards: 1,
        attempt: 1,
        fence: run.fence,
        deadline: far,
        kill_grace: SECOND,
        cancel: Cancel::default(),
        licence: watch::channel(far).1,
        effect,
    })
}

async fn say(transaction: &mut Transaction, sql: &str) -> Result<(), sqlx::Error> {
    let statements = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    if let Ok(connection) = transaction.postgres() {
        statements.execute(connection).await?;
    } else {
        statements.execute(transaction.sqlite().unwrap()).await?;
    }
    Ok(())
}

/// The work of every test: one more note.
async fn work(transaction: &mut Transaction) {
    say(transaction, "INSERT INTO notes (text) VALUES ('done')").await.unwrap();
}

/// Makes the table that the work writes to. Nothing in it is UNIQUE.
async fn prepare<F: Fixture>(site: &Site<F>) {
    outside(site, "CREATE TABLE notes (text text)").await;
}

async fn outside<F: Fixture>(site: &Site<F>, sql: &'static str) {
    let url = site.address();
    if url.starts_with("sqlite") {
        sqlx::raw_sql(sql).execute(&mut SqliteConnection::connect(&url).await.unwrap()).await.unwrap();
    } else {
        sqlx::raw_sql(sql).execute(&mut PgConnection::connect(&url).await.unwrap()).await.unwrap();
    }
}

async fn notes<F: Fixture>(site: &Site<F>) -> i64 {
    const COUNT: &str = "SELECT count(*) FROM notes";
    let url = site.address();
    if url.starts_with("sqlite") {
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        sqlx::query_scalar(COUNT).fetch_one(&mut connection).await.unwrap()
    } else {
        sqlx::query_scalar(COUNT).fetch_one(&mut PgConnection::connect(&url).await.unwrap()).await.unwrap()
    }
}

/// Ends an abandoned run as its owner's death would.
async fn sweep<F: Fixture>(site: &Site<F>, abandoned: Run) {
    let suspect = site.suspect(abandoned).await;
    assert_eq!(site.sweep(&[suspect]).await.len(), 1);
}

async fn beat(opened: &Opened, run: Run) -> Heartbeat {
    opened.ledger.heartbeat(run, HOUR).await.expect("an answer to the heartbeat")
}

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
        (row.state, row.reason.as_deref(), row.output.as_deref()),
        (State::Succeeded, None, Some("what it left"))
    );
    assert!(row.finished_at.is_some() && row.lease_until.is_none(), "{row:?}");
    assert_eq!(notes(site).await, 1);
    assert_eq!(beat(&site.opened, run).await, Heartbeat::Lost);
    assert_eq!(site.settle(run, succeeded()).await, Settled::Recorded);
    assert_eq!(site.settle(run, ended(State::Failed, "error")).await, Settled::Fenced);
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
    let rows = site.opened.reader.history(&runner::ledger::HistoryFilter::default()).await.unwrap();
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

mod in_postgres {
    use super::*;

    /// Sessions at work on something that does not end by itself. The server has other tests too.
    const ASLEEP: &str = "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event = 'PgSleep' AND datname = current_database()";
    /// Sessions with a transaction of a run.
    const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity
        WHERE application_name LIKE 'runner effect %' AND datname = current_database()";

    async fn until(site: &Site<Postgres>, sessions: &str, wanted: &str) {
        eventually(sessions, async || match site.sql(sessions) {
            found if found == wanted => Ok(()),
            found => Err(found),
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_takeover_in_between_undoes_the_work() {
        let site = Site::<Postgres>::open().await;
        prepare(&site).await;
        let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
        let ctx = context(&site, abandoned, 1, HOUR).await;
        let mut transaction = ctx.transaction().await.unwrap();
        work(&mut transaction).await;
        sweep(&site, abandoned).await;
        let refusal = transaction.commit().await.unwrap_err();
        assert!(matches!(refusal, EffectError::TakenOver), "{refusal:?}");
        assert_eq!(notes(&site).await, 0);
        assert_eq!(site.state(abandoned.id).await, (State::Queued, Some("owner_lost".into())));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_successor_at_work_undoes_the_work() {
        let site = Site::<Postgres>::open().await;
        prepare(&site).await;
        let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
        let mut transaction = context(&site, abandoned, 1, HOUR).await.transaction().await.unwrap();
        work(&mut transaction).await;
        sweep(&site, abandoned).await;
        let next = run(site.win(&crate::fixture::take(&site.firing(SECOND).await, abandoned.id)).await);
        let refusal = transaction.commit().await.unwrap_err();
        assert!(matches!(refusal, EffectError::TakenOver), "{refusal:?}");
        assert_eq!(notes(&site).await, 0);
        assert_eq!(beat(&site.opened, next).await, Heartbeat::Alive { cancel_requested: false });
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn heartbeats_go_on_beside_an_open_transaction_even_where_the_default_is_serializable() {
        let site = Site::<Postgres>::open().await;
        prepare(&site).await;
        let database = site.sql("SELECT current_database()");
        site.sql(&format!("ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'"));
        let run = run(site.run().await);
        let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
        work(&mut transaction).await;
        let in_time =
            tokio::time::timeout(SECOND * 5, beat(&site.opened, run)).await.expect("no lock in the way");
        assert_eq!(in_time, Heartbeat::Alive { cancel_requested: false });
        transaction.commit().await.unwrap();
        assert_eq!(notes(&site).await, 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_owner_that_falls_silent_is_thrown_out_within_its_lease() {
        let site = Site::<Postgres>::open().await;
        prepare(&site).await;
        let run = run(site.run().await);
        let lease = SECOND * 2;
        let mut transaction = context(&site, run, 1, lease).await.transaction().await.unwrap();
        work(&mut transaction).await;
        assert_eq!(site.sql(SESSIONS), "1");
        let thrown_out = until(&site, SESSIONS, "0");
        tokio::time::timeout(lease, thrown_out).await.expect("within the lease");
        assert!(transaction.commit().await.is_err());
        assert_eq!(notes(&site).await, 0);
        assert_eq!(site.state(run.id).await.0, State::Running);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_next_attempt_throws_out_what_the_last_one_left_at_work() {
        let site = Site::<Postgres>::open().await;
        prepare(&site).await;
        let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
        let mut left = context(&site, abandoned, 1, HOUR).await.transaction().await.unwrap();
        let firing = crate::fixture::other_job(&site.firing(SECOND).await);
        let another = run(site.win(&crate::fixture::fresh(&firing)).await);
        let others = context(&site, another, 1, HOUR).await.transaction().await.unwrap();
        let mut asleep = JoinSet::new();
        asleep.spawn(async move {
            let slept = say(&mut left, "INSERT INTO notes VALUES ('first'); SELECT pg_sleep(600)").await;
            (slept.is_err(), left.commit().await.is_err())
        });
        until(&site, ASLEEP, "1").await;
        sweep(&site, abandoned).await;
        let next = run(site.win(&crate::fixture::take(&site.firing(SECOND).await, abandoned.id)).await);
        let ctx = context(&site, next, 2, HOUR).await;
        let begun = tokio::time::timeout(SECOND * 20, ctx.transaction()).await;
        let mut transaction = begun.expect("it is not thrown out itself").unwrap();
        let ended = tokio::time::timeout(SECOND * 20, asleep.join_all()).await.expect("it is thrown out");
        assert_eq!(ended, [(true, true)]);
        others.commit().await.expect("another firing's transaction goes on");
        work(&mut transaction).await;
        transaction.commit().await.unwrap();
        assert_eq!(notes(&site).await, 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_may_look_for_its_tables_elsewhere() {
        let site = Site::<Postgres>::open().await;
        let run = run(site.run().await);
        let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
        say(&mut transaction, "CREATE SCHEMA billing; SET search_path = billing; CREATE TABLE bills (n int)")
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(site.state(run.id).await.0, State::Succeeded);
        assert_eq!(site.sql("SELECT count(*) FROM billing.bills"), "0");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_failed_statement_that_was_passed_over_lets_nothing_commit() {
        let site = Site::<Postgres>::open().await;
        prepare(&site).await;
        let run = run(site.run().await);
        let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
        work(&mut transaction).await;
        assert!(say(&mut transaction, "SELECT 1 / 0").await.is_err());
        assert!(matches!(transaction.commit().await, Err(EffectError::Broken)));
        assert_eq!(notes(&site).await, 0);
        assert_eq!(site.state(run.id).await.0, State::Running);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_constraint_that_is_checked_at_the_commit_ends_nothing() {
        let site = Site::<Postgres>::open().await;
        site.sql("CREATE TABLE notes (text text UNIQUE DEFERRABLE INITIALLY DEFERRED)");
        let run = run(site.run().await);
        let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
        work(&mut transaction).await;
        work(&mut transaction).await;
        let refusal = transaction.commit().await.unwrap_err();
        assert!(matches!(refusal, EffectError::Ledger(_)), "{refusal:?}");
        assert_eq!(site.state(run.id).await.0, State::Running);
        assert_eq!(notes(&site).await, 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_statement_whose_run_was_dropped_does_not_go_on_for_long() {
        let site = Site::<Postgres>::open().await;
        let run = run(site.run().await);
        let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
        tokio::select! {
            slept = say(&mut transaction, "SELECT pg_sleep(600)") => panic!("{slept:?}"),
            () = until(&site, ASLEEP, "1") => {}
        }
        drop(transaction);
        until(&site, ASLEEP, "0").await;
    }
}

mod in_sqlite {
    use super::*;

    /// Counts for longer than anybody waits.
    const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        INSERT INTO notes SELECT i FROM n WHERE i < 0";

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_transaction_lasts_a_third_of_the_lease_and_then_lets_the_others_go_on() {
        let site = Site::<Sqlite>::open().await;
        prepare(&site).await;
        let run = run(site.run().await);
        let mut transaction = context(&site, run, 1, SECOND).await.transaction().await.unwrap();
        work(&mut transaction).await;
        assert!(say(&mut transaction, ENDLESS).await.is_err(), "it was not stopped");
        let refusal = transaction.commit().await.unwrap_err();
        assert!(matches!(refusal, EffectError::TooLong { .. }), "{refusal:?}");
        assert_eq!(beat(&site.opened, run).await, Heartbeat::Alive { cancel_requested: false });
        assert_eq!(notes(&site).await, 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nobody_takes_a_run_over_while_its_transaction_is_open() {
        let site = Site::<Sqlite>::open().await;
        prepare(&site).await;
        let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
        let suspect = site.suspect(abandoned).await;
        let mut transaction = context(&site, abandoned, 1, HOUR).await.transaction().await.unwrap();
        work(&mut transaction).await;
        let upkeep = site.opened.upkeep.clone();
        let mut sweep = JoinSet::new();
        sweep.spawn(async move { upkeep.sweep(&[suspect]).await.unwrap() });
        let early = tokio::time::timeout(Duration::from_millis(200), sweep.join_next()).await;
        assert!(early.is_err(), "{early:?}");
        transaction.commit().await.unwrap();
        assert_eq!(sweep.join_all().await, [[]]);
        assert_eq!(site.state(abandoned.id).await.0, State::Succeeded);
        assert_eq!(notes(&site).await, 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_statement_whose_run_was_dropped_lets_the_file_go() {
        let site = Site::<Sqlite>::open().await;
        prepare(&site).await;
        let run = run(site.run().await);
        let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
        let given_up = tokio::time::timeout(Duration::from_millis(100), say(&mut transaction, ENDLESS)).await;
        assert!(given_up.is_err(), "{given_up:?}");
        drop(transaction);
        let alive = tokio::time::timeout(SECOND * 2, beat(&site.opened, run)).await;
        assert_eq!(alive, Ok(Heartbeat::Alive { cancel_requested: false }));
    }
}
