//! PostgreSQL away, and back.

use std::time::Duration;

use testbed::rows::{assert_no_gap, states};
use testbed::{Cluster, PrivatePostgres, let_pass, wait_until_blocking};

use crate::program;

#[test]
fn while_postgresql_is_down_nothing_runs_without_a_row_and_work_resumes_at_once() {
    let cluster = Cluster::start();
    let deployment =
        cluster.deployment(program()).ttl("3s").job("tick", Duration::from_millis(50), "every = \"1s\"");
    let replicas = deployment.start(3);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, Duration::from_secs(30));
    cluster.postgres.stop();
    // A run that was claimed before the stop may still be starting its command.
    let_pass(Duration::from_secs(1));
    let before = effects.instants("tick");
    let_pass(Duration::from_secs(4));
    assert_eq!(effects.instants("tick"), before, "something ran while no row could be written");
    cluster.postgres.start_again();
    wait_until_blocking(Duration::from_secs(3), || {
        let now = effects.instants("tick").len();
        if now > before.len() { Ok(()) } else { Err("nothing has fired since PostgreSQL is back".into()) }
    });
    effects.wait_for_starts("tick", before.len() + 8, Duration::from_secs(30));
    for mut replica in replicas {
        replica.terminate();
        assert!(replica.wait_exit(Duration::from_secs(30)).success());
    }
    effects.assert_nothing_doubled("tick");
    let rows = deployment.history("tick");
    assert_no_gap(&rows, Duration::from_secs(1));
    for instant in effects.instants("tick") {
        let text = instant.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        assert!(rows.iter().any(|row| row["scheduled_at"] == text.as_str()), "{text} ran without a row");
    }
    let counted = states(&rows);
    assert!(counted.get("succeeded").is_some_and(|count| *count >= 8), "{counted:?}");
}

#[test]
fn a_ledger_that_has_forgotten_the_jobs_is_told_of_them_again() {
    let cluster = Cluster::start();
    let database = cluster.postgres.create_database();
    let deployment = cluster.deployment(program()).ledger(&database).ttl("3s").job(
        "tick",
        Duration::from_millis(50),
        "every = \"1s\"",
    );
    let mut replica = deployment.start(1).remove(0);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, Duration::from_secs(30));
    // What a failover to a standby that lagged leaves, or a database that was restored.
    PrivatePostgres::sql_at(&database, "DELETE FROM runner_jobs");
    replica.wait_for_line(Duration::from_secs(20), |line| line.contains("the ledger has forgotten"));
    let before = effects.instants("tick").len();
    effects.wait_for_starts("tick", before + 4, Duration::from_secs(20));
    replica.terminate();
    assert!(replica.wait_exit(Duration::from_secs(30)).success());
    effects.assert_nothing_doubled("tick");
}

/// Puts a firing into the queue, past the product.
fn queue_by_hand(database: &str, job: &str) {
    PrivatePostgres::sql_at(
        database,
        &format!(
            "INSERT INTO runner_firings (namespace, job, scheduled_at, shard, trigger_key, origin, state,
                 reason, exclusive, delivery, due_at, expires_at, created_at)
             SELECT namespace, name, now(), 0, 'by-hand', 'manual', 'queued', 'trigger', true,
                 'at_least_once', now(), now() + interval '1 hour', now()
             FROM runner_jobs WHERE name = '{job}'"
        ),
    );
}

/// Waits until that firing has run.
#[track_caller]
fn wait_for_hand(database: &str, deadline: Duration) {
    let state = "SELECT state FROM runner_firings WHERE trigger_key = 'by-hand'";
    wait_until_blocking(deadline, || match PrivatePostgres::sql_at(database, state).trim() {
        "succeeded" => Ok(()),
        state => Err(state.to_owned()),
    });
}

#[test]
fn a_row_that_someone_keeps_locked_holds_up_its_own_job_and_no_other() {
    let cluster = Cluster::start();
    let database = cluster.postgres.create_database();
    let deployment = cluster
        .deployment(program())
        .ledger(&database)
        .ttl("4s")
        .job("held", Duration::ZERO, "every = \"1s\"")
        .job("other", Duration::ZERO, "every = \"1s\"");
    let mut replica = deployment.start(1).remove(0);
    let effects = deployment.effects();
    effects.wait_for_starts("held", 2, Duration::from_secs(30));
    let psql = std::thread::spawn({
        let database = database.clone();
        move || {
            PrivatePostgres::sql_at(
                &database,
                "BEGIN; UPDATE runner_jobs SET name = name WHERE name = 'held'; SELECT pg_sleep(25); ROLLBACK;",
            )
        }
    });
    wait_until_blocking(Duration::from_secs(10), || {
        let before = effects.instants("held").len();
        let_pass(Duration::from_millis(2_500));
        if effects.instants("held").len() == before { Ok(()) } else { Err("it still fires".to_owned()) }
    });
    // By now the held job's gaps are looked at, in vain, in every round.
    let_pass(Duration::from_secs(6));
    queue_by_hand(&database, "other");
    wait_for_hand(&database, Duration::from_secs(6));
    assert!(!psql.is_finished(), "the row was not locked any more");
    // A ledger that says so is not away.
    replica.wait_for_line(Duration::from_secs(5), |line| {
        line.contains("other transactions blocked the request")
    });
    replica.terminate();
    assert!(replica.wait_exit(Duration::from_secs(30)).success());
    psql.join().unwrap();
}

#[test]
fn a_long_prune_holds_up_neither_queue_nor_sweep() {
    let cluster = Cluster::start();
    let database = cluster.postgres.create_database();
    let deployment = cluster
        .deployment(program())
        .ledger(&database)
        .ttl("4s")
        .job("old", Duration::ZERO, "schedule = \"0 0 1 1 *\"")
        .job("other", Duration::ZERO, "schedule = \"0 0 1 1 *\"");
    assert!(deployment.run(&["migrate"]).status.success());
    // Each batch takes a third of a second, and there are thirty of them.
    PrivatePostgres::sql_at(
        &database,
        &format!(
            "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$;
             CREATE TRIGGER slowly BEFORE DELETE ON runner_firings EXECUTE FUNCTION slowly();
             INSERT INTO runner_firings (namespace, job, scheduled_at, shard, origin, state, attempt,
                 exclusive, delivery, created_at, finished_at)
             SELECT '{}', 'old', now() - interval '90 days' + n * interval '1 second', 0, 'schedule',
                 'succeeded', 1, true, 'at_least_once', now() - interval '90 days', now() - interval '80 days'
             FROM generate_series(1, 30000) AS n",
            deployment.namespace()
        ),
    );
    let left = || -> u32 {
        let count = "SELECT count(*) FROM runner_firings WHERE job = 'old'";
        PrivatePostgres::sql_at(&database, count).trim().parse().unwrap()
    };
    let mut replica = deployment.start(1).remove(0);
    wait_until_blocking(Duration::from_secs(20), || match left() {
        30_000 => Err("the prune has not begun".to_owned()),
        _ => Ok(()),
    });
    queue_by_hand(&database, "other");
    wait_for_hand(&database, Duration::from_secs(20));
    assert!(left() > 0, "the queue had to wait until the prune was over");
    replica.terminate();
    assert!(replica.wait_exit(Duration::from_secs(30)).success());
}

#[test]
fn a_replica_whose_ledger_only_reads_does_not_contend() {
    let cluster = Cluster::start();
    let deployment =
        cluster.deployment(program()).ttl("3s").job("tick", Duration::from_millis(50), "every = \"1s\"");
    let mut replica = deployment.start(1).remove(0);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, Duration::from_secs(30));
    let only_reads = |value: &str| {
        cluster.postgres.sql(&format!("ALTER SYSTEM SET default_transaction_read_only = {value}"));
        cluster.postgres.sql("SELECT pg_reload_conf()");
    };
    // What a standby says, and a primary that was demoted.
    only_reads("on");
    replica.wait_for_line(Duration::from_secs(10), |line| line.contains("no firing contends until it does"));
    let mark = replica.lines().mark();
    let_pass(Duration::from_secs(3));
    let tried: Vec<_> =
        replica.lines().since(mark).into_iter().filter(|line| line.contains("claim without")).collect();
    assert_eq!(tried, Vec::<String>::new());
    only_reads("off");
    let before = effects.instants("tick").len();
    effects.wait_for_starts("tick", before + 3, Duration::from_secs(20));
    replica.terminate();
    assert!(replica.wait_exit(Duration::from_secs(30)).success());
    effects.assert_nothing_doubled("tick");
}
