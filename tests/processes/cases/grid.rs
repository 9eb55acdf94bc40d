//! Schedules under load: runs that take longer than their interval, jobs that are broken, places that
//! are few, owners that come back at once.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use testbed::rows::{instant, number, state, states};
use testbed::scene::{QUICK, SECOND, START, end, instance, soon, wait_for_row};
use testbed::{Account, Effect, EffectKind, PrivateRedis, Scene, let_pass, wait_until_blocking};

use super::command;
use crate::{embedded, program};

#[test]
fn a_run_longer_than_its_interval_leaves_out_one_and_the_next_is_on_its_instant() {
    let scene = Scene::new();
    let deployment = scene
        .deployment(program())
        .job("long", Duration::from_millis(1_400), "every = \"1s\"")
        .job("tick", QUICK, "every = \"1s\"");
    // Started half a period apart: what they count from must not be their own start.
    let mut replicas = deployment.start(1);
    let_pass(Duration::from_millis(500));
    replicas.extend(deployment.start(1));
    replicas.iter().map(instance).for_each(drop);
    deployment.effects().wait_for_starts("long", 3, START);
    deployment.effects().wait_for_starts("tick", 8, START);
    end(&mut replicas);
    let long = Account::of(&deployment, "long", SECOND);
    long.assert_states(&["succeeded", "skipped(overlap)"]);
    long.assert_one_attempt_each();
    for pair in long.rows.windows(2) {
        let both = pair.iter().all(|row| state(row) == "succeeded");
        assert!(!both, "the second of these was due while the first ran: {pair:#?}");
    }
    // Neither the length of the runs nor the number of periods moves a start away from its instant.
    long.assert_on_time(TimeDelta::milliseconds(700));
    let tick = Account::of(&deployment, "tick", SECOND);
    tick.assert_all_succeeded_at_once();
    tick.assert_on_time(TimeDelta::milliseconds(700));
    for row in long.rows.iter().chain(&tick.rows) {
        assert_eq!(instant(row, "scheduled_at").timestamp_subsec_nanos(), 0, "{row}");
    }
}

#[test]
fn jobs_that_are_broken_keep_neither_the_start_nor_the_other_jobs_from_going_on() {
    let every = "every = \"1s\"";
    let nowhere =
        "[jobs.nowhere]\nkind = \"http\"\nparams = { url = \"http://127.0.0.1:9/\" }\nevery = \"1s\"\n";
    let redis = PrivateRedis::start();
    let mut deployment = embedded().redis(redis.url()).job("tick", QUICK, every).jobs(nowhere);
    for job in [
        command("absent", &["/no/such/program"], every),
        command("killed", &["/bin/sh", "-c", "kill -9 $$"], every),
        command("off", &["/no/such/program"], "every = \"1s\"\nenabled = false"),
        command("hangs", &["/bin/sleep", "60"], "every = \"1s\"\ntimeout = \"1s\"\nkill_grace = \"200ms\""),
    ] {
        deployment = deployment.jobs(&job);
    }
    let mut replicas = deployment.start(1);
    deployment.effects().wait_for_starts("tick", 5, START);
    end(&mut replicas);
    let tick = Account::of(&deployment, "tick", SECOND);
    tick.assert_all_succeeded_at_once();
    tick.assert_on_time(TimeDelta::milliseconds(700));
    for (job, wanted) in [
        ("absent", "failed(error)"),
        ("killed", "failed(error)"),
        ("nowhere", "failed(error)"),
        ("hangs", "failed(timeout)"),
    ] {
        let counted = states(&deployment.history(job));
        assert!(counted.contains_key(wanted), "{job}: {counted:?}");
        assert!(
            counted.keys().all(|state| [wanted, "skipped(overlap)"].contains(&state.as_str())),
            "{job}: {counted:?}"
        );
    }
    assert!(deployment.history("off").is_empty());
    assert_eq!(redis.call(&["KEYS", "*:lock"]).as_deref(), Some(""), "a run has left its lock behind");
}

/// From the first line of each run to its last.
fn spans(effects: &[Effect]) -> Vec<(DateTime<Utc>, DateTime<Utc>, String)> {
    let starts = effects.iter().filter(|line| line.kind == EffectKind::Start);
    let mut spans: Vec<_> = starts
        .map(|start| {
            let run = effects.iter().filter(|line| line.job == start.job && line.fence == start.fence);
            (start.at, run.map(|line| line.at).max().unwrap(), start.job.clone())
        })
        .collect();
    spans.sort();
    spans
}

#[test]
fn a_place_that_is_given_back_is_given_back_once_however_the_run_ended() {
    let keys = "every = \"1s\"\ntimeout = \"700ms\"\nkill_grace = \"200ms\"";
    let deployment = embedded()
        .ttl("2s")
        .runner("max_concurrent = 1")
        .job("ends", Duration::from_millis(150), "every = \"1s\"")
        .job("also", Duration::from_millis(150), "every = \"1s\"")
        .job("never", Duration::from_secs(30), keys);
    let mut replicas = deployment.start(1);
    instance(&replicas[0]);
    let effects = deployment.effects();
    effects.wait_for_starts("never", 2, START);
    // Past every lease: what it was at is ended by its warden, and swept by itself when it wakes.
    replicas[0].stop();
    let_pass(Duration::from_secs(3));
    replicas[0].cont();
    let before = effects.instants("ends").len();
    effects.wait_for_starts("ends", before + 3, START);
    let before = effects.instants("never").len();
    effects.wait_for_starts("never", before + 2, START);
    end(&mut replicas);
    let spans = spans(&effects.all());
    for pair in spans.windows(2) {
        assert!(pair[1].0 >= pair[0].1, "two runs on one place: {pair:?}");
    }
}

#[test]
fn a_replica_that_is_back_at_once_under_the_same_host_name_takes_over_what_it_left() {
    let scene = Scene::new();
    let keys = format!("{}\ntimeout = \"10s\"", soon());
    let deployment = scene.deployment(program()).ttl("2s").job("pay", Duration::from_secs(2), &keys);
    let mut first = deployment.start(1).remove(0);
    let before = instance(&first);
    deployment.effects().wait_for_starts("pay", 1, START);
    first.kill9();
    let mut replicas = deployment.start(1);
    let after = instance(&replicas[0]);
    let host = |name: &str| name.rsplit_once('-').unwrap().0.to_owned();
    assert!(before != after && host(&before) == host(&after), "{before} and {after}");
    let row = wait_for_row(&deployment, "pay", "succeeded");
    end(&mut replicas);
    assert_eq!((number(&row, "attempt"), number(&row, "crashes")), (2, 1), "{row}");
    assert_eq!(row["owner"], after.as_str());
    Account::of(&deployment, "pay", SECOND);
}

#[test]
fn a_retry_that_waits_when_fewer_attempts_are_allowed_is_the_last() {
    let job = |attempts: u32| {
        let keys =
            format!("{}\nmax_attempts = {attempts}\nbackoff = {{ initial = \"1s\", max = \"1s\" }}", soon());
        command("fails", &["/bin/false"], &keys)
    };
    let deployment = embedded().jobs(&job(9));
    let mut replicas = deployment.start(1);
    instance(&replicas[0]);
    let waits = wait_until_blocking(START, || match deployment.history("fails").pop() {
        Some(row) if state(&row) == "queued(retry)" && number(&row, "attempt") == 2 => Ok(row),
        row => Err(format!("{row:?}")),
    });
    end(&mut replicas);
    let text = std::fs::read_to_string(deployment.config()).unwrap();
    let deployment = deployment.file(text.replace("max_attempts = 9", "max_attempts = 2"));
    let mut replicas = deployment.start(1);
    let row = wait_for_row(&deployment, "fails", "failed(error)");
    end(&mut replicas);
    assert_eq!(number(&row, "attempt"), number(&waits, "attempt") + 1, "{row}");
}
