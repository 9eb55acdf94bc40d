//! Several real replicas on one lock and one ledger: every firing once, none left out.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use testbed::rows::{assert_no_gap, state, states};
use testbed::{Cluster, Deployment, Proxy, Replica, ReplicaBuilder, let_pass, wait_until_blocking};

use crate::{embedded, program};

const SECOND: Duration = Duration::from_secs(1);
/// Longer than a start takes on a busy machine: migrations included, four processes at once.
const START: Duration = Duration::from_secs(20);
/// Longer than a drain takes when nothing runs for more than a third of a second.
const DRAIN: Duration = Duration::from_secs(10);

/// Two jobs that fire every second: one that is over at once and one that takes 0.3 s.
fn two_jobs(deployment: Deployment) -> Deployment {
    deployment.job("tick", Duration::ZERO, "every = \"1s\"").job(
        "work",
        Duration::from_millis(300),
        "schedule = \"* * * * * *\"",
    )
}

fn is_ready(line: &str) -> bool {
    line.contains("ready")
}

/// Ends all of them in order.
#[track_caller]
fn end(replicas: &mut [Replica]) {
    for replica in &mut *replicas {
        replica.terminate();
    }
    for replica in replicas {
        let status = replica.wait_exit(DRAIN);
        assert!(status.success(), "SIGTERM ended a replica with {status:?}\n{}", replica.lines().tail());
    }
}

fn instant(row: &Value) -> DateTime<Utc> {
    row["scheduled_at"].as_str().unwrap().parse().unwrap()
}

/// What three replicas and one must leave behind alike: for each firing one effect and one row that
/// says succeeded, without a hole between the first and the last.
#[track_caller]
fn assert_each_firing_ran_once(deployment: &Deployment, job: &str) {
    let effects = deployment.effects();
    effects.assert_nothing_doubled(job);
    assert_eq!(effects.gaps(job, SECOND), Vec::<DateTime<Utc>>::new(), "never started");
    assert_eq!(effects.overlaps(job), Vec::<String>::new());
    let rows = deployment.history(job);
    let counted = states(&rows);
    assert_eq!(counted.into_iter().collect::<Vec<_>>(), [("succeeded".to_owned(), rows.len())]);
    assert_no_gap(&rows, SECOND);
    let recorded: BTreeSet<_> = rows.iter().map(instant).collect();
    assert_eq!(recorded, effects.instants(job), "rows and effects tell of different firings");
    assert_eq!(recorded.len(), rows.len(), "two rows for one firing");
}

/// Lets `count` replicas run for twenty firings of each job, ends them, and looks at what they left.
fn run_for_twenty_seconds(deployment: &Deployment, count: usize) {
    let mut replicas = deployment.start(count);
    deployment.effects().wait_for_starts("tick", 20, START + Duration::from_secs(25));
    deployment.effects().wait_for_starts("work", 20, Duration::from_secs(25));
    end(&mut replicas);
    for job in ["tick", "work"] {
        assert_each_firing_ran_once(deployment, job);
    }
}

#[test]
fn three_replicas_on_redis_and_postgres_run_each_firing_once() {
    let cluster = Cluster::start();
    run_for_twenty_seconds(&two_jobs(cluster.deployment(program())), 3);
}

#[test]
fn two_processes_on_one_sqlite_file_run_each_firing_once() {
    run_for_twenty_seconds(&two_jobs(embedded()), 2);
}

#[test]
fn a_killed_replica_leaves_no_hole_to_the_others() {
    let cluster = Cluster::start();
    let deployment = two_jobs(cluster.deployment(program()));
    let mut replicas = deployment.start(3);
    for replica in &replicas {
        replica.wait_for_line(START, is_ready);
    }
    deployment.effects().wait_for_starts("tick", 3, START);
    replicas.remove(0).kill9();
    let before = deployment.effects().instants("tick").len();
    deployment.effects().wait_for_starts("tick", before + 5, START);
    end(&mut replicas);
    // Its own last firing may have to be run again; that is attempt two of the same row.
    assert_no_gap(&deployment.history("tick"), SECOND);
    assert_eq!(deployment.effects().overlaps("tick"), Vec::<String>::new());
}

#[test]
fn what_waits_behind_a_job_that_fires_every_second_gets_its_turn() {
    let cluster = Cluster::start();
    // Longer than the freeze: the run that is frozen in its middle loses its lease, not its time.
    let keys = "every = \"1s\"\ntimeout = \"20s\"";
    let deployment = cluster.deployment(program()).job("work", Duration::from_millis(300), keys);
    let mut replicas = deployment.start(1);
    deployment.effects().wait_for_starts("work", 2, START);
    // Longer than the lease: what falls due in the meantime is found missing afterwards, and queued.
    replicas[0].stop();
    let_pass(Duration::from_secs(6));
    replicas[0].cont();
    let woken = replicas[0].lines().mark();
    replicas[0].lines().wait_for(woken, START, |line| line.contains("queued job=work"));
    wait_until_blocking(START, || {
        let counted = states(&deployment.history("work"));
        let waits = counted.keys().any(|state| state.starts_with("queued"));
        if waits { Err(format!("{counted:?}")) } else { Ok(()) }
    });
    end(&mut replicas);
    // The run that was frozen in its middle had to be run again; all the others ran once, or were
    // skipped because another was running.
    let rows = deployment.history("work");
    assert_no_gap(&rows, SECOND);
    for row in &rows {
        assert!(["succeeded", "skipped(overlap)"].contains(&state(row).as_str()), "{row}");
    }
    assert_eq!(deployment.effects().overlaps("work"), Vec::<String>::new());
}

#[test]
fn a_replica_with_a_wrong_clock_fires_by_the_ledgers() {
    for offset in ["+1h", "-1h"] {
        let cluster = Cluster::start();
        let deployment = two_jobs(cluster.deployment(program()));
        let mut replicas = vec![deployment.replica().faketime(offset).spawn()];
        replicas[0].wait_for_line(START, |line| line.contains("clock differs from the ledger's"));
        deployment.effects().wait_for_starts("tick", 5, START);
        end(&mut replicas);
        // The effects carry the host's own time, which is the ledger's: nothing ran early, and
        // nothing waited for the replica's clock to come round.
        let early = TimeDelta::milliseconds(-100);
        for effect in deployment.effects().all() {
            let lateness = effect.at - effect.scheduled_at;
            assert!(
                lateness > early && lateness < TimeDelta::seconds(5),
                "{offset}: {lateness} for {effect:?}"
            );
        }
        assert_each_firing_ran_once(&deployment, "tick");
    }
}

#[test]
fn a_clock_that_is_set_wrong_while_the_replica_runs_is_told_of() {
    let cluster = Cluster::start();
    let deployment = two_jobs(cluster.deployment(program()));
    let mut replica = deployment.replica().faketime("+0").spawn();
    replica.wait_for_line(START, is_ready);
    let mark = replica.lines().mark();
    replica.set_clock("+1h");
    replica.lines().wait_for(mark, START, |line| line.contains("clock differs from the ledger's"));
    end(std::slice::from_mut(&mut replica));
}

#[test]
fn a_replica_plans_nothing_by_its_own_clock_before_the_ledger_has_told_the_time() {
    let cluster = Cluster::start();
    let database = cluster.postgres.create_database();
    let proxy = Proxy::new(([127, 0, 0, 1], cluster.postgres.port()).into());
    let own = format!(":{}/", cluster.postgres.port());
    let through = format!(":{}/", proxy.address().port());
    assert!(database.contains(&own), "{database}");
    let deployment = cluster.deployment(program()).ledger(database.replace(&own, &through)).job(
        "tick",
        Duration::ZERO,
        "every = \"1s\"",
    );
    proxy.swallow_reply_once("-- now\n");
    let mut replica = deployment.replica().faketime("+1h").spawn();
    replica.wait_for_line(START, is_ready);
    assert_eq!(proxy.swallowed(), 1);
    deployment.effects().wait_for_starts("tick", 3, START);
    end(std::slice::from_mut(&mut replica));
    let rows = deployment.history("tick");
    assert!(rows.iter().all(|row| row["origin"] == "schedule"), "{rows:#?}");
}

#[test]
fn a_replica_whose_heart_beats_misses_no_beat() {
    let deployment = two_jobs(embedded()).jobs("[log]\nlevel = \"debug\"");
    let mut replicas = deployment.start(1);
    deployment.effects().wait_for_starts("tick", 3, START);
    end(&mut replicas);
    let missed: Vec<_> =
        replicas[0].lines().since(0).into_iter().filter(|line| line.contains("no beat for")).collect();
    assert_eq!(missed, Vec::<String>::new());
}

#[test]
fn replicas_whose_clocks_disagree_run_each_firing_once() {
    let cluster = Cluster::start();
    let deployment = two_jobs(cluster.deployment(program()));
    let builders =
        [deployment.replica().faketime("+1h"), deployment.replica().faketime("-1h"), deployment.replica()];
    let mut replicas: Vec<_> = builders.into_iter().map(ReplicaBuilder::spawn).collect();
    for replica in &replicas {
        replica.wait_for_line(START, is_ready);
    }
    deployment.effects().wait_for_starts("tick", 10, START);
    end(&mut replicas);
    for job in ["tick", "work"] {
        assert_each_firing_ran_once(&deployment, job);
    }
}

/// Starts four at once and waits until each of them is up.
fn start_four_at_once(deployment: &Deployment) {
    let mut replicas = deployment.start(4);
    for replica in &replicas {
        replica.wait_for_line(START, is_ready);
    }
    deployment.effects().wait_for_starts("tick", 2, START);
    for replica in &mut replicas {
        assert!(replica.is_running(), "one did not stay\n{}", replica.lines().tail());
    }
    end(&mut replicas);
    assert_each_firing_ran_once(deployment, "tick");
}

#[test]
fn four_processes_started_at_once_on_a_fresh_sqlite_file_all_come_up() {
    start_four_at_once(&two_jobs(embedded()));
}

#[test]
fn four_processes_started_at_once_on_a_fresh_postgres_database_all_come_up() {
    let cluster = Cluster::start();
    start_four_at_once(&two_jobs(cluster.deployment(program())));
}

#[test]
fn the_sample_file_runs_without_any_server_and_ends_in_order() {
    let sample = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../jobs.toml"));
    let deployment = embedded().file(sample.unwrap());
    let mut replicas = deployment.start(1);
    let ten_seconds = Duration::from_secs(10);
    wait_until_blocking(ten_seconds, || {
        let lines = deployment.run(&["history", "--format", "json"]).stdout;
        let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let done = rows.iter().any(|row| state(row) == "succeeded");
        if done { Ok(()) } else { Err(format!("rows: {:?}", states(&rows))) }
    });
    end(&mut replicas);
}

#[test]
fn next_shows_the_night_in_which_the_clocks_change() {
    let after = "2026-03-28T00:00:00Z";
    let until = "2026-03-31T00:00:00Z";
    let done = embedded().run(&[
        "next",
        "--schedule",
        "30 2 * * *",
        "--timezone",
        "Europe/Berlin",
        "--after",
        after,
        "--until",
        until,
        "--format",
        "json",
    ]);
    assert!(done.status.success(), "{done:?}");
    let rows: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let instants: Vec<_> = rows.iter().map(|row| row["scheduled_at"].as_str().unwrap()).collect();
    assert_eq!(instants, ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
}
