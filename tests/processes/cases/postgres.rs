//! A database with defaults of its own, statements that lose against others, and sessions that linger.

use std::time::Duration;

use chrono::TimeDelta;
use testbed::rows::{number, state};
use testbed::scene::{QUICK, SECOND, START, end, instance, soon};
use testbed::{Account, Cluster, PrivatePostgres, Scene, let_pass, wait_until_blocking};

use super::said;
use crate::program;

#[test]
fn under_a_stricter_isolation_by_default_no_firing_notices_another() {
    let cluster = Cluster::start();
    let mut stages: Vec<_> = ["serializable", "repeatable read"]
        .into_iter()
        .map(|isolation| {
            let ledger = cluster.postgres.create_database();
            let name = PrivatePostgres::sql_at(&ledger, "SELECT current_database()");
            let default = format!("ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}'");
            PrivatePostgres::sql_at(&ledger, &default);
            let mut deployment = cluster.deployment(program()).ledger(ledger);
            for number in 0..4 {
                deployment = deployment.job(&format!("tick-{number}"), QUICK, "every = \"1s\"");
            }
            // All three at once, and there is no table yet.
            let replicas = deployment.start(3);
            (deployment, replicas)
        })
        .collect();
    for (deployment, replicas) in &mut stages {
        deployment.effects().wait_for_starts("tick-0", 5, START);
        end(replicas);
        for word in ["claim refused", "without an answer", "upkeep failed", "could not serialize"] {
            assert_eq!(said(replicas, word), Vec::<String>::new());
        }
        for number in 0..4 {
            let account = Account::of(deployment, &format!("tick-{number}"), SECOND);
            account.assert_all_succeeded_at_once();
        }
    }
}

#[test]
fn a_result_whose_statement_lost_against_another_is_written_by_the_next_try() {
    let scene = Scene::new();
    let deployment = scene.deployment(program()).job("tick", QUICK, "every = \"1s\"");
    assert!(deployment.run(&["migrate"]).status.success());
    scene.ask(
        "CREATE SEQUENCE tries;
         CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            CASE nextval('tries') % 3
                WHEN 0 THEN RETURN NEW;
                WHEN 1 THEN RAISE EXCEPTION 'lost' USING ERRCODE = '40001';
                ELSE RAISE EXCEPTION 'lost' USING ERRCODE = '40P01';
            END CASE;
         END $$;
         CREATE TRIGGER lose BEFORE UPDATE ON runner_firings FOR EACH ROW
            WHEN (NEW.state = 'succeeded') EXECUTE FUNCTION lose();",
    );
    let mut replicas = deployment.start(2);
    deployment.effects().wait_for_starts("tick", 4, START);
    end(&mut replicas);
    let tries: usize = scene.ask("SELECT last_value FROM tries").parse().unwrap();
    let account = Account::of(&deployment, "tick", SECOND);
    account.assert_all_succeeded_at_once();
    assert_eq!(tries, account.rows.len() * 3);
    assert_eq!(said(&replicas, "without an answer"), Vec::<String>::new());
}

#[test]
fn twenty_runs_at_once_hold_neither_transactions_nor_more_than_a_few_sessions() {
    let scene = Scene::new();
    // Two guards that operators set for everybody; neither may hit a replica's work.
    for guard in ["idle_session_timeout = '700ms'", "idle_in_transaction_session_timeout = '700ms'"] {
        scene.cluster.postgres.sql(&format!("ALTER SYSTEM SET {guard}"));
    }
    scene.cluster.postgres.sql("SELECT pg_reload_conf()");
    let keys = format!("{}\ntimeout = \"20s\"", soon());
    let mut deployment = scene.deployment(program());
    for number in 0..20 {
        deployment = deployment.job(&format!("slow-{number}"), Duration::from_secs(2), &keys);
    }
    let mut replicas = deployment.start(1);
    instance(&replicas[0]);
    let (mut most, mut looks) = (0, 0);
    loop {
        let seen = scene.ask(
            "SELECT count(*), count(*) FILTER (WHERE state LIKE 'idle in transaction%'
                AND clock_timestamp() - state_change > interval '300 ms')
             FROM pg_stat_activity WHERE application_name = 'runner'",
        );
        let (sessions, open) = seen.split_once('|').unwrap();
        assert_eq!(open, "0", "a transaction stands open while nobody needs it");
        most = most.max(sessions.parse::<usize>().unwrap());
        looks += 1;
        if scene.ask("SELECT count(*) FROM runner_firings WHERE state = 'succeeded'") == "20" {
            break;
        }
        assert!(looks < 600, "{}", scene.ask("SELECT state, count(*) FROM runner_firings GROUP BY 1"));
        let_pass(Duration::from_millis(50));
    }
    // Nobody has any work, and nobody holds a transaction for it.
    let_pass(SECOND);
    let open =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'runner' AND backend_xmin IS NOT NULL
        AND state <> 'active'";
    assert_eq!(scene.ask(open), "0");
    end(&mut replicas);
    assert_eq!(said(&replicas, "the ledger does not answer"), Vec::<String>::new());
    assert!(most <= 16, "{most} sessions for one replica");
    for number in 0..20 {
        let account = Account::of(&deployment, &format!("slow-{number}"), SECOND);
        account.assert_all_succeeded_at_once();
        // They ran beside each other, whatever the number of connections.
        account.assert_on_time(TimeDelta::milliseconds(2_500));
    }
}

#[test]
fn replicas_that_prune_at_the_same_moment_do_not_stand_in_each_others_way() {
    let scene = Scene::new();
    let deployment = scene
        .deployment(program())
        .job("tick", QUICK, "every = \"1s\"")
        .job("old", QUICK, "schedule = \"0 0 1 1 *\"")
        .job("older", QUICK, "schedule = \"0 0 1 1 *\"");
    assert!(deployment.run(&["migrate"]).status.success());
    for job in ["old", "older"] {
        scene.ask(&format!(
            "INSERT INTO runner_firings (namespace, job, scheduled_at, shard, origin, state, attempt,
                 exclusive, delivery, created_at, finished_at)
             SELECT '{}', '{job}', now() - interval '90 days' + n * interval '1 second', 0, 'schedule',
                 'succeeded', 1, true, 'at_least_once', now() - interval '90 days', now() - interval '80 days'
             FROM generate_series(1, 15000) AS n",
            deployment.namespace()
        ));
    }
    let mut replicas = deployment.start(3);
    wait_until_blocking(START, || {
        match scene.ask("SELECT count(*) FROM runner_firings WHERE job LIKE 'old%'").as_str() {
            "0" => Ok(()),
            left => Err(format!("{left} rows are left")),
        }
    });
    deployment.effects().wait_for_starts("tick", 3, START);
    end(&mut replicas);
    assert_eq!(said(&replicas, "could not prune"), Vec::<String>::new());
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(scene.ask(deadlocks), "0");
    Account::of(&deployment, "tick", SECOND).assert_all_succeeded_at_once();
}

#[test]
fn work_in_the_database_begins_again_after_a_deadlock_and_after_a_restart() {
    let cluster = Cluster::start();
    let ledger = cluster.postgres.create_database();
    let ask = |sql: &str| PrivatePostgres::sql_at(&ledger, sql);
    ask("CREATE TABLE accounts (name text PRIMARY KEY, money int);
         INSERT INTO accounts VALUES ('ada', 0), ('grace', 0), ('joan', 0)");
    let raise = |name: &str| format!("UPDATE accounts SET money = money + 1 WHERE name = '{name}'");
    let both = |first: &str, second: &str| format!("{}; SELECT pg_sleep(1); {}", raise(first), raise(second));
    let once = "SELECT pg_sleep(CASE WHEN CAST(:attempt AS int) = 1 THEN 30 ELSE 0 END)";
    let at = soon();
    let job = |name: &str, sql: &str| {
        format!(
            "[jobs.{name}]\nkind = \"sql\"\nparams = {{ statement = {sql:?} }}\nmax_attempts = 3\n\
             timeout = \"40s\"\nbackoff = {{ initial = \"100ms\" }}\n{at}\n"
        )
    };
    let deployment = cluster.deployment(program()).ledger(&ledger).ttl("9s").jobs(&format!(
        "{}{}{}",
        job("there", &both("ada", "grace")),
        job("back", &both("grace", "ada")),
        job("slow", &format!("{}; {once}", raise("joan"))),
    ));
    let mut replicas = deployment.start(2);
    replicas.iter().map(instance).for_each(drop);
    let succeeded = |job: &str| {
        wait_until_blocking(START, || match deployment.history(job).pop() {
            Some(row) if state(&row) == "succeeded" => Ok(number(&row, "attempt")),
            row => Err(format!("{row:?}")),
        })
    };
    assert_eq!(succeeded("there") + succeeded("back"), 3, "one of the two had to try again");
    assert_ne!(ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"), "0");
    cluster.postgres.shut_down();
    cluster.postgres.start_again();
    assert_eq!(succeeded("slow"), 2);
    end(&mut replicas);
    assert_eq!(ask("SELECT name, money FROM accounts ORDER BY 1"), "ada|2\ngrace|2\njoan|1");
}
