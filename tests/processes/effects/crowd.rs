//! Many jobs, due in the same second.

use std::time::Duration;

use testbed::{Cluster, PrivatePostgres, wait_until_blocking};

use super::table::{counting, end, on};

const JOBS: usize = 200;
const INSTANTS: usize = 3;

#[test]
fn two_hundred_jobs_due_in_the_same_second_on_three_replicas_leave_one_effect_each() {
    let cluster = Cluster::start();
    let (mut deployment, database) = on(&cluster);
    for number in 0..JOBS {
        deployment = deployment.jobs(&format!("[jobs.crowd-{number}]\nevery = \"10s\"\n{}", counting("")));
    }
    let deployment = deployment.ttl("10s");
    let mut replicas = deployment.start(3);
    for replica in &replicas {
        replica.wait_for_line(Duration::from_secs(60), |line| line.contains("ready"));
    }
    let count = |query: &str| -> usize { PrivatePostgres::sql_at(&database, query).parse().unwrap() };
    wait_until_blocking(Duration::from_secs(90), || {
        let firings = count("SELECT count(*) FROM runner_firings WHERE state = 'succeeded'");
        if firings >= JOBS * INSTANTS { Ok(()) } else { Err(format!("{firings} have succeeded")) }
    });
    end(&mut replicas);
    let states = PrivatePostgres::sql_at(&database, "SELECT DISTINCT state FROM runner_firings");
    assert_eq!(states, "succeeded");
    // Every job at every instant; and effects and rows are the same ones.
    let uneven = count(
        "SELECT count(*) FROM (SELECT scheduled_at FROM runner_firings GROUP BY scheduled_at
         HAVING count(*) <> 200) AS instants",
    );
    let effects = count("SELECT count(*) FROM effects");
    let firings = count("SELECT count(*) FROM runner_firings");
    let matched = count(
        "SELECT count(DISTINCT firing.id) FROM runner_firings AS firing JOIN effects
         ON effects.fence = firing.fence AND effects.job = firing.job AND effects.attempt = firing.attempt",
    );
    assert_eq!((uneven, effects, matched), (0, firings, firings));
    assert!(firings >= JOBS * INSTANTS);
}
