//! The numbers tell what happened.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use testbed::client::get;
use testbed::rows::states;
use testbed::{Cluster, Replica, wait_until_blocking};

use super::documented::assert_documented;
use super::exposition::Page;
use super::{ADMIN, START, address, alone};
use crate::program;

const LONG: Duration = Duration::from_secs(60);

/// The page of one replica; the test fails if it breaks a rule of the format.
pub(crate) fn page(address: SocketAddr) -> Page {
    let answer = get(address, "/metrics");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    Page::parse(&answer.body).unwrap_or_else(|problem| panic!("{problem}\n{}", answer.body))
}

/// A number over all replicas.
fn total(pages: &[Page], name: &str, labels: &[(&str, &str)]) -> f64 {
    pages.iter().map(|page| page.sum(name, labels)).sum()
}

#[test]
fn after_flushes_of_redis_the_numbers_show_what_each_layer_caught() {
    let cluster = Cluster::start();
    let mut deployment = cluster.deployment(program()).ttl("1s").jobs(ADMIN).job(
        "long",
        Duration::from_millis(1_500),
        "every = \"2s\"\ntimeout = \"20s\"",
    );
    for number in 0..5 {
        let name = format!("tick-{number}");
        deployment = deployment.job(&name, Duration::from_millis(100), "every = \"1s\"\ntimeout = \"20s\"");
    }
    let replicas = deployment.start(3);
    let addresses: Vec<_> = replicas.iter().map(address).collect();
    let pages = || -> Vec<Page> { addresses.iter().map(|address| page(*address)).collect() };

    // While all is well: renewals, seen before the run ends, and nothing caught.
    wait_until_blocking(LONG, || {
        let pages = pages();
        let renewed = total(&pages, "runner_lock_renewals_total", &[("outcome", "renewed")]);
        let held = total(&pages, "runner_lock_acquire_total", &[("outcome", "held")]);
        let enough = renewed >= 4.0 && held >= 10.0;
        if enough { Ok(()) } else { Err(format!("{renewed} renewals, {held} times held")) }
    });

    // Locks vanish again and again, until each kind of trouble has been seen.
    let seen = RefCell::new(Vec::new());
    wait_until_blocking(LONG, || {
        for _ in 0..10 {
            cluster.redis.flushall();
        }
        let now = pages();
        let wanted: [(&str, &[(&str, &str)]); 5] = [
            ("runner_ledger_duplicate_total", &[("found", "running")]),
            ("runner_ledger_claims_total", &[("outcome", "duplicate")]),
            ("runner_lock_release_mismatch_total", &[]),
            ("runner_lock_renewals_total", &[("outcome", "not_mine")]),
            ("runner_lock_lost_total", &[("job", "long"), ("reason", "not_mine")]),
        ];
        let counts = wanted.map(|(name, labels)| total(&now, name, labels));
        seen.replace(now);
        if counts.iter().all(|count| *count > 0.0) { Ok(()) } else { Err(format!("{counts:?}")) }
    });
    let pages = seen.into_inner();
    let firings = total(&pages, "runner_firing_lateness_seconds_count", &[]);
    assert!(firings >= 10.0, "lateness of {firings} firings");
    assert!(total(&pages, "runner_firings_total", &[("state", "succeeded")]) >= 5.0);
    assert!(pages.iter().all(|page| page.sum("runner_clock_offset_seconds", &[]).abs() < 5.0));
    for page in &pages {
        assert_documented(page);
    }
    for number in 0..5 {
        assert_eq!(deployment.effects().overlaps(&format!("tick-{number}")), Vec::<String>::new());
    }
    end(replicas);
}

#[test]
fn a_result_that_comes_after_a_takeover_is_counted_where_it_was_refused() {
    let cluster = Cluster::start();
    let deployment = cluster.deployment(program()).ttl("1s").jobs(ADMIN).job(
        "pay",
        Duration::from_secs(2),
        "every = \"10s\"\ntimeout = \"10s\"",
    );
    let mut replicas = deployment.start(2);
    let owner = wait_until_blocking(LONG, || {
        let owner = replicas.iter().position(|replica| !replica.descendants().is_empty());
        owner.ok_or_else(|| "nothing runs".to_owned())
    });
    let mut owner = replicas.swap_remove(owner);
    owner.stop();
    wait_until_blocking(LONG, || {
        let rows = deployment.history("pay");
        let row = rows.first().ok_or("no row")?;
        if row["attempt"] == 2 { Ok(()) } else { Err(row.to_string()) }
    });
    owner.cont();
    wait_until_blocking(LONG, || {
        let counted = page(address(&owner)).sum("runner_ledger_fenced_total", &[("job", "pay")]);
        if counted > 0.0 { Ok(()) } else { Err("no result was refused".into()) }
    });
    replicas.push(owner);
    end(replicas);
}

fn end(replicas: Vec<Replica>) {
    for mut replica in replicas {
        replica.terminate();
        assert!(replica.wait_exit(START).success(), "{}", replica.lines().tail());
    }
}

#[test]
fn before_anything_has_happened_every_counter_is_there_with_zero() {
    let deployment = alone().jobs(
        "[jobs.yearly]\nschedule = \"0 0 1 1 *\"\nkind = \"command\"\nparams = { argv = [\"true\"] }\n",
    );
    let replicas = deployment.start(1);
    let address = address(&replicas[0]);
    replicas[0].wait_for_line(START, |line| line.contains("INFO ready"));
    let page = page(address);
    assert_documented(&page);
    let mut counters = 0;
    for (name, family) in page.families.iter().filter(|(_, family)| family.kind == "counter") {
        let of_job = family.samples.iter().filter(|(_, labels, _)| labels["job"] == "yearly");
        if family.samples.iter().all(|(_, labels, _)| labels.contains_key("job")) {
            let values: Vec<f64> = of_job.map(|sample| sample.2).collect();
            assert!(!values.is_empty() && values.iter().all(|value| *value == 0.0), "{name}: {values:?}");
            counters += 1;
        }
    }
    assert_eq!(counters, 9);
    assert_eq!(page.sum("runner_firings_total", &[("job", "yearly"), ("state", "failed")]), 0.0);
    assert_eq!(page.sum("runner_heartbeat_missed_total", &[]), 0.0);
    end(replicas);
}

#[test]
fn a_run_shows_its_renewals_while_it_goes_on() {
    let deployment = alone().job("long", Duration::from_secs(20), "every = \"1s\"\ntimeout = \"1m\"");
    let replicas = deployment.start(1);
    let address = address(&replicas[0]);
    wait_until_blocking(Duration::from_secs(15), || {
        let page = page(address);
        let renewed = page.sum("runner_lock_renewals_total", &[("outcome", "renewed")]);
        let running = page.sum("runner_ledger_claims_total", &[("job", "long"), ("outcome", "won")]);
        let released = page.sum("runner_lock_hold_seconds_count", &[("job", "long")]);
        assert_eq!(released, 0.0, "the run ended before its renewals were seen");
        if running == 1.0 && renewed >= 2.0 {
            Ok(())
        } else {
            Err(format!("{running} runs, {renewed} renewals"))
        }
    });
}

#[test]
fn a_vanished_owner_is_counted_by_the_replica_that_notices() {
    let deployment =
        alone().ttl("1s").job("long", Duration::from_secs(20), "every = \"1s\"\ntimeout = \"1m\"");
    let mut owner = deployment.replica().spawn();
    deployment.effects().wait_for_starts("long", 1, START);
    let other = deployment.replica().spawn();
    let address = address(&other);
    other.wait_for_line(START, |line| line.contains("INFO ready"));
    owner.kill9();
    wait_until_blocking(LONG, || {
        let labels = [("job", "long"), ("state", "queued"), ("reason", "owner_lost")];
        let swept = page(address).sum("runner_firings_total", &labels);
        if swept == 1.0 { Ok(()) } else { Err(format!("{swept} runs swept")) }
    });
}

#[test]
fn the_last_page_of_a_drain_agrees_with_the_ledger() {
    let deployment = alone().job("long", Duration::from_secs(4), "every = \"1s\"");
    let mut replicas = deployment.start(1);
    let replica = &mut replicas[0];
    let address = address(replica);
    wait_until_blocking(LONG, || {
        let page = page(address);
        let ticks = page.sum("runner_firings_total", &[("job", "tick"), ("state", "succeeded")]);
        let long = page.sum("runner_ledger_claims_total", &[("job", "long"), ("outcome", "won")]);
        let ended = page.sum("runner_firings_total", &[("job", "long"), ("state", "succeeded")]);
        // A long run has just begun, so that the drain takes a while.
        if ticks >= 3.0 && long > ended { Ok(()) } else { Err(format!("{ticks}, {long}, {ended}")) }
    });
    replica.terminate();
    let last = wait_until_blocking(START, || {
        let page = page(address);
        let ready = get(address, "/readyz");
        let running = page.sum("runner_running", &[]);
        if ready.status == 503 && running == 1.0 { Ok(page) } else { Err(format!("{running} {ready:?}")) }
    });
    let rows = deployment.history("tick");
    let succeeded = states(&rows).get("succeeded").copied().unwrap_or_default();
    let counted = last.sum("runner_firings_total", &[("job", "tick"), ("state", "succeeded")]);
    assert_eq!(counted.to_string(), succeeded.to_string(), "{rows:?}");
    assert_eq!(last.sum("runner_job_missed_total", &[]), 0.0);
    assert!(replica.wait_exit(START).success());
}
