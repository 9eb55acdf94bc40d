//! PgBouncer in transaction mode between the replicas and their PostgreSQL: everything that holds without
//! it holds with it. The ledger's own suite meets the same pooler in `tests/ledger/conformance/mod.rs`.

use std::time::Duration;

use crate::effects::table::{TABLE, assert_one_effect_each, counting, effects, end, wait_until_all_ended};
use chrono::TimeDelta;
use testbed::rows::{assert_no_gap, states};
use testbed::{Cluster, Deployment, PrivatePgBouncer, PrivatePostgres, Replica, wait_until_blocking};

use crate::program;

const SECOND: Duration = Duration::from_secs(1);
const START: Duration = Duration::from_secs(30);

/// The servers, and the pooler that stands between.
struct Scene {
    cluster: Cluster,
    pooler: PrivatePgBouncer,
    /// Past the pooler.
    database: String,
}

impl Scene {
    fn new() -> Self {
        Self::configured("")
    }

    fn configured(lines: &str) -> Self {
        let cluster = Cluster::start();
        let pooler = PrivatePgBouncer::configured(&cluster.postgres, lines);
        let database = cluster.postgres.create_database();
        Self { cluster, pooler, database }
    }

    /// A deployment that knows no other way to its database than the pooler, and does not know that it is one.
    fn unaware(&self) -> Deployment {
        Deployment::new(program()).redis(self.cluster.redis.url()).ledger(self.pooler.url_of(&self.database))
    }

    fn deployment(&self) -> Deployment {
        self.unaware().pooler()
    }

    fn ask(&self, sql: &str) -> String {
        PrivatePostgres::sql_at(&self.database, sql)
    }
}

fn wait_until_ready(replicas: &[Replica]) {
    for replica in replicas {
        replica.wait_for_line(START, |line| line.contains("ready instance="));
    }
}

#[test]
fn three_replicas_behind_a_pooler_run_each_firing_once_also_when_it_is_restarted() {
    let scene = Scene::new();
    let deployment = scene.deployment().job("tick", Duration::ZERO, "every = \"1s\"").job(
        "work",
        Duration::from_millis(300),
        "schedule = \"* * * * * *\"",
    );
    let mut replicas = deployment.start(3);
    wait_until_ready(&replicas);
    deployment.effects().wait_for_starts("work", 5, START);
    // All connections break, and what was under way has an outcome that nobody was told.
    scene.pooler.stop();
    scene.pooler.start_again();
    for job in ["tick", "work"] {
        let before = deployment.effects().instants(job).len();
        deployment.effects().wait_for_starts(job, before + 5, START);
    }
    end(&mut replicas);
    for job in ["tick", "work"] {
        deployment.effects().assert_nothing_doubled(job);
        assert_eq!(deployment.effects().overlaps(job), Vec::<String>::new());
        let rows = deployment.history(job);
        assert_no_gap(&rows, SECOND);
        // A firing that was late at the restart may have been running when the next was due, and the
        // replicas leave none running.
        let others: Vec<_> = states(&rows).into_keys().filter(|state| state != "succeeded").collect();
        assert!(others.iter().all(|state| state == "skipped(overlap)"), "{others:?}");
    }
}

#[test]
fn a_killed_owner_behind_a_pooler_is_taken_over() {
    let scene = Scene::new();
    let at = clock() + TimeDelta::seconds(4);
    let once = format!("at = {}\ntimeout = \"20s\"", at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
    let deployment = scene.deployment().ttl("2s").job("pay", Duration::from_secs(3), &once);
    let mut replicas = deployment.start(3);
    wait_until_ready(&replicas);
    deployment.effects().wait_for_starts("pay", 1, START);
    let owner = wait_until_blocking(SECOND * 5, || {
        let works = replicas.iter().position(|replica| !replica.descendants().is_empty());
        works.ok_or_else(|| "no replica has a child".to_owned())
    });
    replicas.remove(owner).kill9();
    wait_until_blocking(START, || match &*deployment.history("pay") {
        [row] if row["state"] == "succeeded" => Ok(()),
        rows => Err(format!("{rows:?}")),
    });
    end(&mut replicas);
    let row = &deployment.history("pay")[0];
    assert_eq!((&row["attempt"], &row["crashes"]), (&2.into(), &1.into()), "{row}");
    assert_eq!(scene.ask("SELECT string_agg(reason, ',') FROM runner_attempts"), "owner_lost");
    assert_eq!(deployment.effects().overlaps("pay"), Vec::<String>::new());
}

#[test]
fn work_in_the_ledgers_database_is_committed_once_behind_a_pooler() {
    let scene = Scene::new();
    scene.ask(TABLE);
    // Runs that overlap, so that transactions of many seconds hold servers of the pooler.
    let mut deployment = scene.deployment();
    for number in 0..4 {
        let work = counting("SELECT pg_sleep(0.4);");
        deployment = deployment.jobs(&format!("[jobs.count-{number}]\nevery = \"1s\"\n{work}"));
    }
    let mut replicas = deployment.start(3);
    wait_until_ready(&replicas);
    wait_until_blocking(START, || {
        let ended = scene.ask("SELECT count(*) FROM runner_firings WHERE state = 'succeeded'");
        if ended.parse::<usize>().unwrap() >= 24 { Ok(()) } else { Err(format!("{ended} have succeeded")) }
    });
    end(&mut replicas);
    for number in 0..4 {
        let job = format!("count-{number}");
        wait_until_all_ended(&deployment, &job);
        assert_one_effect_each(&deployment, &job, &effects(&scene.database, &job));
    }
}

#[test]
fn four_processes_that_migrate_at_once_behind_a_pooler_all_succeed() {
    let scene = Scene::new();
    let deployment = scene.deployment().job("tick", Duration::ZERO, "every = \"1h\"");
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| deployment.run(&["migrate"]))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for done in &done {
        assert!(done.status.success(), "{done:?}");
    }
    assert_eq!(scene.ask("SELECT bool_and(success) FROM runner_migrations"), "t");
}

/// A replica that was not told of the pooler ends and says what to set, before it has claimed anything.
fn ends_with_advice(lines: &str) {
    let scene = Scene::configured(lines);
    let deployment = scene.unaware().job("tick", Duration::ZERO, "every = \"1s\"");
    let mut replica = deployment.replica().spawn();
    let status = replica.wait_exit(START);
    assert_eq!(status.code(), Some(1), "{}", replica.lines().tail());
    assert!(replica.lines().tail().contains("set `pooler = true` in [ledger]"), "{}", replica.lines().tail());
    assert!(deployment.effects().all().is_empty());
}

#[test]
fn a_replica_that_was_not_told_of_the_pooler_ends_and_says_what_to_set() {
    ends_with_advice("");
}

#[test]
fn a_pooler_that_drops_the_start_parameters_without_a_word_is_found_out() {
    // It would lend one client the statements of another.
    ends_with_advice("ignore_startup_parameters = options, extra_float_digits");
}

fn clock() -> chrono::DateTime<chrono::Utc> {
    #[expect(clippy::disallowed_methods, reason = "the test's own clock")]
    chrono::Utc::now()
}
