//! Defaults below the file below the environment; `[defaults]` below a job.

use std::time::Duration;

use runner::internal::config::{LogFormat, Place};
use tracing::level_filters::LevelFilter;

use super::desk::{Desk, GOOD, job_with};

#[test]
fn the_environment_has_the_last_word_and_the_file_the_one_before() {
    let file = format!("[lock]\nttl = \"20s\"\n[log]\nformat = \"json\"\n{GOOD}");
    let config = Desk::with(&file).config();
    assert_eq!(config.lock.ttl, Duration::from_secs(20));
    assert_eq!((config.log.format, config.log.level), (LogFormat::Json, LevelFilter::INFO));

    let config =
        Desk::with(&file).set("RUNNER__LOCK__TTL", "40s").set("RUNNER__LOG__LEVEL", "debug").config();
    assert_eq!(config.lock.ttl, Duration::from_secs(40));
    assert_eq!((config.log.format, config.log.level), (LogFormat::Json, LevelFilter::DEBUG));
    assert_eq!(config.jobs[0].budget.ttl, Duration::from_secs(40));
}

#[test]
fn numbers_and_truth_values_are_read_from_the_text_of_a_variable() {
    let config = Desk::with(GOOD)
        .set("RUNNER__RUNNER__MAX_CONCURRENT", "7")
        .set("RUNNER__LEDGER__MIGRATE", "false")
        .set("RUNNER__RUNNER__NAMESPACE", "123")
        .set("RUNNER__DEFAULTS__BACKOFF__FACTOR", "3")
        .config();
    assert_eq!(config.runner.max_concurrent, 7);
    assert!(!config.ledger.migrate);
    assert_eq!(&*config.runner.namespace, "123");
    assert!((config.jobs[0].backoff.factor - 3.0).abs() < f64::EPSILON);
    assert_eq!(config.jobs[0].backoff.max, Duration::from_secs(300));
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let config = Desk::with(GOOD).set("RUNNER__LOCK__TTL", "").config();
    assert_eq!(config.lock.ttl, Duration::from_secs(30));
}

#[test]
fn a_variable_replaces_a_secret_of_the_file_whatever_its_form() {
    let file = format!("[lock]\nurl = {{ env = \"NOT_SET\" }}\n{GOOD}");
    let config = Desk::with(&file).set("RUNNER__LOCK__URL", "redis://other").config();
    assert_eq!(config.lock.url.expect("an address").expose(), "redis://other");
    let config =
        Desk::with(GOOD).set("RUNNER__LOCK__URL__ENV", "WHERE").set("WHERE", "redis://there").config();
    assert_eq!(config.lock.url.expect("an address").expose(), "redis://there");
}

#[test]
fn a_variable_with_a_bad_value_is_named() {
    for bad in ["4hrs", "0", "0s", "-5s", "10", "soon"] {
        let problems = Desk::with(GOOD).set("RUNNER__LOCK__TTL", bad).problems();
        assert_eq!(problems.len(), 1, "{bad}: {problems:?}");
        assert_eq!(problems[0].key, "lock.ttl");
        assert_eq!(problems[0].place, variable("RUNNER__LOCK__TTL"));
    }
}

#[test]
fn a_variable_that_sets_nothing_is_refused_by_name() {
    for (name, message) in [
        ("RUNNER__LOCK__TTLL", "unknown key"),
        ("RUNNER__DATABASE__URL", "unknown section"),
        ("RUNNER__JOBS__GOOD__EVERY", "cannot change a single job"),
        ("RUNNER__LOCK", "names no key"),
        ("RUNNER__LOCK__", "names no key"),
        ("RUNNER__LOCK__URL[0]", "names no key"),
        ("RUNNER__DEFAULTS__TIMOUT", "unknown key"),
    ] {
        let problems = Desk::with(GOOD).set(name, "5s").problems();
        assert_eq!(problems.len(), 1, "{name}: {problems:?}");
        assert!(problems[0].message.contains(message), "{name}: {problems:?}");
        assert_eq!(problems[0].place, variable(name));
    }
}

#[test]
fn two_variables_for_one_key_are_refused() {
    let problems = Desk::with(GOOD).set("RUNNER__LOCK__TTL", "5s").set("RUNNER__lock__ttl", "6s").problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].message.contains("sets the same key"), "{problems:?}");
}

#[test]
fn a_variable_with_single_underscores_draws_a_warning() {
    let config = Desk::with(GOOD).set("RUNNER_LOCK_TTL", "5s").set("RUNNER_OS", "Linux").config();
    assert_eq!(config.lock.ttl, Duration::from_secs(30));
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    assert!(config.warnings[0].to_string().contains("RUNNER__LOCK__TTL"), "{}", config.warnings[0]);
}

#[test]
fn a_job_has_the_last_word_over_the_defaults() {
    let text = format!(
        "[lock]\nttl = \"20s\"\n[defaults]\nttl = \"40s\"\ntimezone = \"Asia/Shanghai\"\nmax_attempts = 3\n{}{}",
        job_with("ttl = \"9s\"\ntimezone = \"Europe/Berlin\""),
        job_with("").replace("jobs.a", "jobs.b"),
    );
    let config = Desk::with(&text).config();
    let (a, b) = (config.job("a").expect("a"), config.job("b").expect("b"));
    assert_eq!(
        (a.budget.ttl, a.timezone, a.max_attempts),
        (Duration::from_secs(9), chrono_tz::Europe::Berlin, 3)
    );
    assert_eq!(
        (b.budget.ttl, b.timezone, b.max_attempts),
        (Duration::from_secs(40), chrono_tz::Asia::Shanghai, 3)
    );
}

#[test]
fn a_jobs_own_rule_replaces_that_of_the_defaults_whatever_its_key() {
    let text = format!(
        "[defaults]\nschedule = \"0 3 * * *\"\n{}{}",
        job_with(""),
        job_with("").replace("jobs.a", "jobs.b").replace("every = \"5s\"\n", "")
    );
    let config = Desk::with(&text).config();
    assert_eq!(config.job("a").expect("a").schedule_text, "every 5s");
    assert_eq!(config.job("b").expect("b").schedule_text, "0 3 * * *");
}

#[test]
fn a_mistake_that_a_variable_puts_into_the_defaults_names_the_variable() {
    let problems = Desk::with(GOOD).set("RUNNER__DEFAULTS__TIMEOUT", "5").problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].place, variable("RUNNER__DEFAULTS__TIMEOUT"));
}

fn variable(name: &str) -> Place {
    let problem = Desk::with(GOOD).set("RUNNER__LOG__LEVEL", "loud").problems().remove(0);
    match problem.place {
        Place::Variable { .. } => {}
        other => panic!("{other:?}"),
    }
    // The type cannot be built from outside; take one and put the name in.
    let mut place = problem.place;
    if let Place::Variable { name: found } = &mut place {
        *found = name.to_owned();
    }
    place
}
