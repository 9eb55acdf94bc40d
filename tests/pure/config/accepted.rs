//! What good files mean, their defaults, and the sample that the project ships.

use std::path::Path;
use std::time::Duration;

use runner::internal::config::{
    Config, Environment, Guard, LedgerKind, LogFormat, Misfire, OnUnavailable, Overlap,
};
use runner::internal::firing::Delivery;
use runner::internal::ledger::check_url;

use super::desk::{Desk, GOOD, Shop, job_with};

#[test]
fn a_job_needs_three_keys_and_the_rest_has_defaults() {
    let desk = Desk::with(GOOD);
    let config = desk.config();
    assert_eq!(&*config.runner.namespace, "default");
    assert_eq!(config.runner.timezone, chrono_tz::UTC);
    assert_eq!(config.runner.max_concurrent, 64);
    assert_eq!(config.runner.shutdown_grace, Duration::from_secs(30));
    assert_eq!(config.log.format, LogFormat::Text);
    assert!(config.lock.url.is_none() && config.admin.is_none());
    assert_eq!(config.ledger.retention, Duration::from_secs(30 * 24 * 3600));
    assert!(config.ledger.migrate && !config.ledger.pooler);
    let file = desk.path().with_file_name("runner.db");
    assert_eq!(config.ledger.url.expose(), format!("sqlite:{}", file.display()));
    assert_eq!(config.ledger.kind(), LedgerKind::Sqlite);

    let job = &config.jobs[0];
    assert_eq!((job.overlap, job.misfire, job.guard), (Overlap::Skip, Misfire::Latest, Guard::Both));
    assert_eq!((job.delivery, job.on_unavailable), (Delivery::AtLeastOnce, OnUnavailable::LedgerOnly));
    assert_eq!((job.max_attempts, job.max_crashes, job.max_catchup, job.shards), (1, 3, 100, 1));
    assert_eq!(job.start_deadline, Duration::from_secs(600));
    assert_eq!(job.jitter, Duration::ZERO);
    assert_eq!((job.backoff.initial, job.backoff.max), (Duration::from_secs(1), Duration::from_secs(300)));
    assert_eq!((job.budget.ttl, job.budget.max_renewals), (Duration::from_secs(30), 3));
    assert_eq!(
        (job.budget.kill_grace, job.budget.timeout),
        (Duration::from_secs(5), Duration::from_millis(54_695))
    );
    assert_eq!(job.budget.lock_life(), Duration::from_secs(60));
    assert!(job.enabled && config.warnings.is_empty());
}

#[test]
fn every_key_that_is_built_can_be_set() {
    let text = "\
[runner]
namespace = \"billing.prod\"
timezone = \"Europe/Berlin\"
max_concurrent = 8
shutdown_grace = \"1m 30s\"
[log]
format = \"json\"
level = \"warn\"
[lock]
url = \"rediss://user@redis.internal:6380/2\"
ttl = \"15s\"
[ledger]
url = \"postgres://runner@db.internal/billing?sslmode=verify-full\"
retention = \"90d\"
migrate = false
pooler = true
[admin]
listen = \"[::1]:9090\"
[defaults]
max_attempts = 2
[jobs.reconcile]
description = \"match orders with payments\"
schedule = \"0 */5 * * * *\"
timezone = \"Asia/Shanghai\"
kind = \"command\"
params = { argv = [\"/usr/local/bin/reconcile\", \"--all\"], env = { MODE = \"full\" } }
timeout = \"1m\"
ttl = \"30s\"
max_renewals = 6
kill_grace = \"2s\"
overlap = \"allow\"
misfire = \"latest\"
start_deadline = \"2m\"
max_catchup = 100
delivery = \"at_least_once\"
max_attempts = 5
max_crashes = 0
backoff = { initial = \"2s\", max = \"1m\", factor = 1.5 }
guard = \"ledger\"
on_unavailable = \"skip\"
shards = 1
jitter = \"10s\"
enabled = false
";
    let config = Desk::with(text).config();
    let job = config.job("reconcile").expect("the job");
    assert_eq!(job.schedule_text, "0 */5 * * * *");
    assert_eq!(job.timezone, chrono_tz::Asia::Shanghai);
    assert_eq!((job.max_attempts, job.max_crashes), (5, 0));
    assert_eq!((job.budget.timeout, job.budget.max_renewals), (Duration::from_secs(60), 6));
    assert_eq!(
        (job.overlap, job.guard, job.on_unavailable),
        (Overlap::Allow, Guard::Ledger, OnUnavailable::Skip)
    );
    assert_eq!(job.jitter, Duration::from_secs(10));
    assert!(!job.enabled);
    assert_eq!(config.ledger.kind(), LedgerKind::Postgres);
    assert_eq!(config.runner.shutdown_grace, Duration::from_secs(90));
    assert_eq!(config.admin.expect("the section").listen.to_string(), "[::1]:9090");
}

#[test]
fn a_rule_is_one_of_three_and_keeps_its_words() {
    let text = |rule: &str| {
        Desk::with(&job_with("").replace("every = \"5s\"", rule)).config().jobs[0].schedule_text.clone()
    };
    assert_eq!(text("schedule = \" */5 * * * * \""), "*/5 * * * *");
    assert_eq!(text("every = \"90s\""), "every 1m 30s");
    assert_eq!(text("at = 2026-06-01T02:00:00+02:00"), "at 2026-06-01T00:00:00Z");
    assert_eq!(text("at = \"2026-06-01T00:00:00Z\""), "at 2026-06-01T00:00:00Z");
}

#[test]
fn the_hash_of_a_spec_changes_with_rule_zone_and_enabled_and_with_nothing_else() {
    let hash = |keys: &str, rule: &str| {
        Desk::with(&job_with(keys).replace("every = \"5s\"", rule)).config().jobs[0].spec_hash()
    };
    let first = hash("", "schedule = \"0 3 * * *\"");
    assert_eq!(first.len(), 16);
    assert_eq!(first, hash("timeout = \"1m\"\nmax_attempts = 2", "schedule = \"0 3 * * *\""));
    assert_eq!(hash("", "every = \"60s\""), hash("", "every = \"1m\""));
    let others = [
        hash("", "schedule = \"0 4 * * *\""),
        hash("timezone = \"Europe/Berlin\"", "schedule = \"0 3 * * *\""),
        hash("enabled = false", "schedule = \"0 3 * * *\""),
    ];
    assert!(others.iter().all(|other| *other != first), "{first} {others:?}");
    // The ledger keeps it: it must not change from one version to the next.
    assert_eq!(first, "7f793e0a3a24501b");
}

#[test]
fn jobs_come_in_the_order_of_their_names() {
    let text = ["c", "a", "b"].map(|name| GOOD.replace("good", name)).concat();
    let config = Desk::with(&text).config();
    let names: Vec<&str> = config.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn what_is_odd_but_works_draws_a_warning() {
    for (text, key, message) in [
        (format!("[lock]\nurl = \"redis://h\"\n{GOOD}"), "lock.url", "protects one host only"),
        (format!("[admin]\nlisten = \"0.0.0.0:9090\"\n{GOOD}"), "admin.listen", "other hosts"),
        (format!("[admin]\nlisten = \"10.1.2.3:9090\"\n{GOOD}"), "admin.listen", "other hosts"),
        (job_with("timezone = \"Europe/Berlin\""), "jobs.a.timezone", "no effect"),
        (job_with("guard = \"ledger\"\nmax_renewals = 9"), "jobs.a.max_renewals", "takes no lock"),
        (job_with("guard = \"ledger\"\non_unavailable = \"skip\""), "jobs.a.on_unavailable", "takes no lock"),
        (job_with("ttl = \"2h\""), "jobs.a.ttl", "2h"),
        (job_with("enabled = false"), "jobs", "no job is enabled"),
        (
            job_with("").replace("every = \"5s\"", "schedule = \"* */1 * * * *\""),
            "jobs.a.schedule",
            "every second",
        ),
        (job_with("").replace("every = \"5s\"", "schedule = \"*/45 * * * *\""), "jobs.a.schedule", "uneven"),
    ] {
        let config = Desk::with(&text).config();
        let warnings = &config.warnings;
        assert_eq!(warnings.len(), 1, "{text}: {warnings:?}");
        assert_eq!(warnings[0].key(), key);
        assert!(warnings[0].message().contains(message), "{warnings:?}");
        assert!(warnings[0].to_string().starts_with("warning: "), "{}", warnings[0]);
    }
}

#[test]
fn a_file_of_a_thousand_jobs_is_read_job_by_job() {
    let text: String = (0..1000).map(|number| GOOD.replace("good", &format!("job-{number}"))).collect();
    assert_eq!(Desk::with(&text).config().jobs.len(), 1000);
}

#[test]
fn the_sample_that_the_project_ships_needs_no_server_and_draws_no_warning() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../jobs.toml");
    let config = Config::load(&sample, &Environment::default(), &Shop, &check_url)
        .unwrap_or_else(|errors| panic!("the sample is refused:\n{errors}"));
    assert!(config.lock.url.is_none());
    assert_eq!(config.ledger.kind(), LedgerKind::Sqlite);
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let now = "2026-06-01T00:00:01Z".parse().expect("an instant");
    let soon = |job: &runner::internal::config::JobSpec| {
        job.timetable.next(now).is_some_and(|next| next - now <= chrono::TimeDelta::seconds(10))
    };
    assert!(config.jobs.iter().any(|job| job.enabled && soon(job)), "no job fires within ten seconds");
}
