//! A job that takes its own replica down, each time it runs: it ends as a crash loop, and what runs beside
//! it goes on.

use std::time::Duration;

use chrono::{DateTime, Utc};
use testbed::rows::state;
use testbed::{Cluster, Deployment, EffectKind, Replica, wait_until_blocking};

use crate::program;

/// More vanished owners than this end the firing.
const MAX_CRASHES: usize = 2;
/// Each crash is found when a lease is over that a sweep has watched for its whole length.
const PATIENCE: Duration = Duration::from_secs(90);

/// Kills the process whose child's child it is: the command runs under a warden, which the replica started.
const KILL_MY_RUNNER: &str = r#"
    "$@"
    read -r _ _ _ runner _ < /proc/$PPID/stat
    kill -KILL "$runner"
"#;

/// The replicas, started again whenever one has died, as a supervisor would.
struct Supervised {
    deployment: Deployment,
    replicas: Vec<Replica>,
    deaths: usize,
}

impl Supervised {
    fn start(deployment: Deployment, count: usize) -> Self {
        let migrated = deployment.run(&["migrate"]);
        assert!(migrated.status.success(), "{migrated:?}");
        Self { replicas: deployment.start(count), deployment, deaths: 0 }
    }

    fn look_after(&mut self) {
        for replica in &mut self.replicas {
            if !replica.is_running() {
                self.deaths += 1;
                *replica = self.deployment.replica().spawn();
            }
        }
    }

    /// Looks after them until the only row of `job` is in this state.
    fn until(&mut self, job: &str, wanted: &str) {
        wait_until_blocking(PATIENCE, || {
            self.look_after();
            let rows = self.deployment.history(job);
            let there = rows.first().is_some_and(|row| state(row) == wanted);
            if there { Ok(()) } else { Err(format!("{} deaths; {rows:#?}", self.deaths)) }
        });
    }
}

#[test]
fn a_job_that_kills_its_replica_each_time_ends_as_a_crash_loop_and_others_go_on() {
    let cluster = Cluster::start();
    let deployment = cluster.deployment(program()).ttl("2s").job("tick", Duration::ZERO, "every = \"1s\"");
    let argv = deployment.effects().argv(Duration::ZERO);
    let argv: Vec<_> = ["/bin/sh", "-c", KILL_MY_RUNNER, "poison"]
        .into_iter()
        .chain(argv.iter().map(String::as_str))
        .collect();
    let at = wall() + chrono::TimeDelta::seconds(4);
    let deployment = deployment.jobs(&format!(
        "[jobs.poison]\nkind = \"command\"\nat = {}\nmax_crashes = {MAX_CRASHES}\nparams = {{ argv = {} }}",
        at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        serde_json::to_string(&argv).unwrap(),
    ));
    let mut supervised = Supervised::start(deployment, 2);
    supervised.until("poison", "failed(crash_loop)");
    let Supervised { deployment, mut replicas, deaths } = supervised;
    // Nobody tries it again, and the other job has a run of its own after the last death.
    let before = deployment.effects().instants("tick").len();
    deployment.effects().wait_for_starts("tick", before + 3, PATIENCE);
    for replica in &mut replicas {
        replica.terminate();
        assert!(replica.wait_exit(Duration::from_secs(15)).success(), "{}", replica.lines().tail());
    }
    assert_eq!(deaths, MAX_CRASHES + 1);
    let starts = |effect: &&testbed::Effect| effect.job == "poison" && effect.kind == EffectKind::Start;
    let effects = deployment.effects().all();
    assert_eq!(effects.iter().filter(starts).count(), MAX_CRASHES + 1);
    let [row] = &*deployment.history("poison") else { panic!("one firing, one row") };
    assert_eq!((row["attempt"].as_u64(), row["crashes"].as_u64()), (Some(3), Some(3)), "{row}");
    // Runs of the other job that went down with a replica were run again; none is missing.
    assert_eq!(deployment.effects().overlaps("tick"), Vec::<String>::new());
    testbed::rows::assert_no_gap(&deployment.history("tick"), Duration::from_secs(1));
    let poisoned = |row: &&serde_json::Value| !matches!(&*state(row), "succeeded" | "skipped(overlap)");
    let history = deployment.history("tick");
    let others: Vec<_> = history.iter().filter(poisoned).collect();
    assert!(others.is_empty(), "{others:#?}");
    // Each death took at most one run of it along, which began again.
    let again = deployment.effects().effects_per_firing();
    let again = again.into_iter().filter(|((job, ..), count)| job == "tick" && *count > 1).count();
    assert!(again <= deaths, "{again} firings began twice");
}

#[expect(clippy::disallowed_methods, reason = "the test's own clock")]
fn wall() -> DateTime<Utc> {
    Utc::now()
}
