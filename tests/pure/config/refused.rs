//! Every bad configuration is refused, with its place and a word on what would do.

use runner::internal::config::{Config, Environment, Place};
use runner::internal::ledger::check_url;

use super::desk::{Desk, GOOD, Shop, job_with, only_problem};

/// Asserts that a job with these keys is refused for one reason.
#[track_caller]
fn refused(keys: &str, key: &str, message: &str, hint: &str) {
    let (found_key, found_message, found_hint) = only_problem(&job_with(keys));
    assert_eq!(found_key, key);
    assert!(found_message.contains(message), "{found_message:?} does not say {message:?}");
    assert!(found_hint.contains(hint), "{found_hint:?} does not say {hint:?}");
}

/// A job with this rule instead of its usual one.
fn ruled(rule: &str) -> String {
    job_with("").replace("every = \"5s\"", rule)
}

#[test]
fn a_slip_in_a_key_is_answered_with_the_key_that_was_meant() {
    refused("timout = \"1m\"", "jobs.a.timout", "unknown key", "did you mean timeout?");
    refused("colour = 1", "jobs.a.colour", "unknown key", "the keys are description, schedule");
}

#[test]
fn words_of_other_schedulers_are_answered_with_ours() {
    for (key, ours) in [
        ("concurrencyPolicy", "overlap"),
        ("startingDeadlineSeconds", "start_deadline"),
        ("suspend", "enabled"),
        ("cron", "schedule"),
        ("cronExpression", "schedule"),
        ("lockAtMostFor", "ttl"),
        ("lockAtLeastFor", "the ledger keeps"),
        ("activeDeadlineSeconds", "timeout"),
        ("backoffLimit", "max_attempts"),
        ("command", "argv"),
    ] {
        refused(&format!("{key} = 1"), &format!("jobs.a.{key}"), "unknown key", ours);
    }
}

#[test]
fn words_for_a_choice_are_listed_and_the_nearest_is_named() {
    refused(
        "overlap = \"Forbid\"",
        "jobs.a.overlap",
        "is not one of skip, queue, replace, allow",
        "\"skip\"",
    );
    refused("misfire = \"lates\"", "jobs.a.misfire", "is not one of latest, all, skip", "\"latest\"");
    refused("delivery = \"exactly_once\"", "jobs.a.delivery", "at_least_once, at_most_once", "");
    refused("on_unavailable = \"fail\"", "jobs.a.on_unavailable", "ledger_only, skip", "\"skip\"");
    refused("guard = true", "jobs.a.guard", "expected text in quotes, found a boolean", "");
}

#[test]
fn a_job_without_a_rule_or_with_two_is_refused() {
    let (key, message, hint) = only_problem(&ruled(""));
    assert_eq!((key.as_str(), message.as_str()), ("jobs.a", "the job has no schedule"));
    assert!(hint.contains("every = \"30s\""), "{hint}");
    refused("schedule = \"* * * * *\"", "jobs.a.every", "schedule and every exclude each other", "keep one");
    refused("at = 2026-06-01T00:00:00Z", "jobs.a.at", "every and at exclude each other", "keep one");
}

#[test]
fn a_bad_cron_expression_is_refused_where_it_stands() {
    for bad in [
        "61 * * * *",
        "*/5 * * * * * *",
        "0 0 12 * * ? 2030",
        "0 0 12 *",
        "",
        "*/500 * * * *",
        "*/60 * * * *",
        "*/0 * * * *",
        "41-59/24 5 * * 5",
        "0 0 31 2 *",
        "* * 31 11 *",
        "every day",
    ] {
        let (key, message, _) = only_problem(&ruled(&format!("schedule = \"{bad}\"")));
        assert_eq!(key, "jobs.a.schedule", "{bad}");
        assert!(!message.is_empty(), "{bad}");
    }
}

#[test]
fn a_zone_that_is_none_is_refused_and_never_taken_for_utc() {
    for (zone, hint) in [
        ("Europe/Berln", "did you mean \"Europe/Berlin\"?"),
        ("europe/berlin", "did you mean \"Europe/Berlin\"?"),
        ("Mars/Base", "IANA"),
        ("", "IANA"),
        ("+02:00", "IANA"),
    ] {
        refused(&format!("timezone = \"{zone}\""), "jobs.a.timezone", "time zone", hint);
    }
}

#[test]
fn durations_without_a_unit_or_with_a_strange_one_are_refused() {
    refused("timeout = 30", "jobs.a.timeout", "needs a unit", "write \"30s\"");
    refused("timeout = \"30\"", "jobs.a.timeout", "needs a unit", "write \"30s\"");
    refused("timeout = \"4hrs\"", "jobs.a.timeout", "unknown unit \"hrs\"", "write \"4h\"");
    refused("timeout = \"-5s\"", "jobs.a.timeout", "negative", "");
    refused("timeout = \"\"", "jobs.a.timeout", "empty", "");
    refused("timeout = \"0s\"", "jobs.a.timeout", "too short", "");
    refused("ttl = \"10ms\"", "jobs.a.ttl", "too short", "write \"1s\" or more");
    refused("ttl = \"2d\"", "jobs.a.ttl", "at most a day", "timeout");
    refused("start_deadline = \"0s\"", "jobs.a.start_deadline", "too late", "");
    refused("jitter = true", "jobs.a.jitter", "expected a duration", "");
}

#[test]
fn text_without_quotes_is_answered_with_quotes() {
    let (key, message, hint) = only_problem(&ruled("every = 30s"));
    assert_eq!(key, "jobs.a.every");
    assert_eq!(message, "text needs quotes");
    assert_eq!(hint, "write \"30s\"");
}

#[test]
fn a_point_in_time_needs_its_offset() {
    for bad in ["2026-06-01", "2026-06-01T00:00:00", "\"tomorrow\""] {
        let (key, message, _) = only_problem(&ruled(&format!("at = {bad}")));
        assert_eq!(key, "jobs.a.at");
        assert!(message.contains("offset"), "{message}");
    }
}

#[test]
fn an_unknown_kind_and_a_wrong_param_are_refused_with_their_place() {
    let text = job_with("").replace("\"command\"", "\"comand\"");
    let (key, message, hint) = only_problem(&text);
    assert_eq!((key.as_str(), message.as_str()), ("jobs.a.kind", "unknown kind \"comand\""));
    assert_eq!(hint, "did you mean \"command\"?");

    let text = job_with("").replace("argv =", "args =");
    let (key, message, _) = only_problem(&text);
    assert_eq!(key, "jobs.a.params.args");
    assert!(message.contains("unknown key"), "{message}");

    let text = job_with("").replace("[\"/bin/true\"]", "[\"/bin/true\", 5]");
    let problems = Desk::with(&text).problems();
    assert_eq!(problems[0].key, "jobs.a.params.argv.1");
    assert!(matches!(problems[0].place, Place::Line { line: 4, column: 33, .. }), "{problems:?}");

    let (key, message, _) = only_problem("[jobs.a]\nevery = \"5s\"\nkind = \"command\"\n");
    assert_eq!((key.as_str(), message.as_str()), ("jobs.a", "argv is missing"));
}

#[test]
fn a_job_that_stands_there_twice_is_refused_with_both_lines() {
    let text = format!("{GOOD}\n{GOOD}");
    let problems = Desk::with(&text).problems();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert_eq!(problems[0].message, "the job \"good\" is declared twice, first on line 1");
    assert!(matches!(problems[0].place, Place::Line { line: 6, column: 7, .. }), "{problems:?}");

    let (key, message, _) = only_problem(&job_with("timeout = \"1m\"\ntimeout = \"2m\""));
    assert_eq!((key.as_str(), message.as_str()), ("jobs.a.timeout", "timeout is set twice, first on line 5"));
}

#[test]
fn names_that_would_be_confused_with_one_another_are_refused() {
    let long = "x".repeat(101);
    for name in
        ["Bar", "\"bar \"", "\"é\"", "\"e\u{301}\"", "\"a.b\"", "\"\"", "-a", "\"a/b\"", long.as_str()]
    {
        let text = GOOD.replace("good", name);
        let problems = Desk::with(&text).problems();
        assert!(problems[0].message.contains("a job's name is lower case letters"), "{name}: {problems:?}");
        assert_eq!(problems.len(), 1, "{name}: {problems:?}");
    }
}

#[test]
fn a_timeout_that_the_lock_cannot_cover_is_refused_with_the_cap_that_would_do() {
    refused(
        "timeout = \"5m\"\nmax_renewals = 1",
        "jobs.a.timeout",
        "with ttl 30s and 1 renewals a run has 34s 695ms at most",
        "write max_renewals = 28",
    );
    assert_eq!(
        Desk::with(&job_with("timeout = \"5m\"\nmax_renewals = 28")).config().jobs[0].budget.max_renewals,
        28
    );
    refused(
        "ttl = \"1s\"\ntimeout = \"100d\"",
        "jobs.a.timeout",
        "the lock cannot cover the timeout",
        "raise the ttl",
    );
    refused(
        "kill_grace = \"11s\"",
        "jobs.a.kill_grace",
        "at most a third of the ttl, which is 30s",
        "write \"10s\"",
    );
}

#[test]
fn settings_that_contradict_one_another_are_refused() {
    refused(
        "delivery = \"at_most_once\"\nmax_attempts = 2",
        "jobs.a.max_attempts",
        "at_most_once\" excludes max_attempts = 2",
        "max_attempts = 1",
    );
    refused(
        "start_deadline = \"60d\"",
        "jobs.a.start_deadline",
        "its row is kept for 30d only",
        "ledger.retention",
    );
    refused("backoff = { initial = \"9m\" }", "jobs.a.backoff.initial", "max is shorter", "");
    refused("backoff = { max = \"1ms\" }", "jobs.a.backoff.max", "max is shorter", "");
    refused("backoff = { factor = 0.5 }", "jobs.a.backoff.factor", "from 1 to 100", "");
    refused("backoff = { initial = \"0s\" }", "jobs.a.backoff.initial", "hot loop", "");
    refused("backoff = { maxx = \"1s\" }", "jobs.a.backoff.maxx", "unknown key", "did you mean max?");
}

#[test]
fn numbers_out_of_range_and_of_the_wrong_type_are_refused() {
    refused("max_attempts = 0", "jobs.a.max_attempts", "from 1 to 1000, found 0", "");
    refused("max_catchup = 0", "jobs.a.max_catchup", "from 1 to 10000, found 0", "");
    refused("max_crashes = -1", "jobs.a.max_crashes", "found -1", "");
    refused("max_attempts = \"3\"", "jobs.a.max_attempts", "expected a whole number, found text", "");
    refused("max_attempts = 2.5", "jobs.a.max_attempts", "expected a whole number, found a number", "");
    refused("max_renewals = 99999999999999999999", "jobs.a.max_renewals", "too large", "");
    refused("enabled = \"no\"", "jobs.a.enabled", "expected a boolean (true or false), found text", "");
    refused("description = 5", "jobs.a.description", "expected text", "");
}

#[test]
fn what_is_not_built_yet_says_so_and_its_default_is_accepted() {
    for (bad, good) in [
        ("overlap = \"queue\"", "overlap = \"skip\""),
        ("overlap = \"replace\"", "overlap = \"allow\""),
        ("shards = 8", "shards = 1"),
        ("guard = \"lock\"", "guard = \"both\""),
        ("guard = \"none\"", "guard = \"ledger\""),
    ] {
        let key = bad.split(' ').next().unwrap_or_default();
        refused(bad, &format!("jobs.a.{key}"), "is not built yet", "leave it out, or write");
        Desk::with(&job_with(good)).config();
    }
    let admin = "[admin]\nlisten = \"127.0.0.1:8080\"";
    let (key, message, hint) = only_problem(&format!("{admin}\ntoken = \"a-long-secret\"\n{GOOD}"));
    assert_eq!((key.as_str(), hint.as_str()), ("admin.token", "leave it out"));
    assert!(message.starts_with("admin.token is not built yet: "), "{message}");
    Desk::with(&format!("{admin}\n{GOOD}")).config();
}

#[test]
fn sections_that_are_none_are_refused() {
    for (section, hint) in [
        ("runer", "did you mean [runner]?"),
        ("redis", "did you mean [lock]?"),
        ("database", "did you mean [ledger]?"),
        ("job", "[jobs.NAME]"),
        ("colours", "the sections are"),
    ] {
        let (key, message, found) = only_problem(&format!("[{section}]\nx = 1\n{GOOD}"));
        assert_eq!(key, section);
        assert!(message.contains("unknown section"), "{message}");
        assert!(found.contains(hint), "{found:?}");
    }
    let (key, message, _) = only_problem(&format!("lock = 5\n{GOOD}"));
    assert_eq!(key, "lock");
    assert!(message.contains("expected the section [lock]"), "{message}");
}

#[test]
fn keys_of_a_section_are_checked_like_those_of_a_job() {
    for (text, key, message) in [
        ("[lock]\nurll = \"redis://h\"", "lock.urll", "unknown key"),
        ("[lock]\nurl = \"postgres://h/d\"", "lock.url", "scheme"),
        ("[lock]\nurl = 5", "lock.url", "found a whole number"),
        ("[lock]\nttl = \"1ms\"", "lock.ttl", "too short"),
        ("[ledger]\nurl = \"mysql://h/d\"", "ledger.url", "scheme"),
        ("[ledger]\nurl = \"sqlite::memory:\"", "ledger.url", "memory"),
        ("[ledger]\nurl = \"sqlite:\"", "ledger.url", "needs a path"),
        ("[ledger]\nurl = \"sqlite:x.db?mode=rwc\"", "ledger.url", "without parameters"),
        ("[ledger]\nurl = \"postgres://h:no/d\"", "ledger.url", "port"),
        ("[ledger]\nurl = \"postgres://h/d?sslmode=maybe\"", "ledger.url", "ssl_mode"),
        ("[ledger]\nretention = \"1m\"", "ledger.retention", "too short"),
        ("[ledger]\npooler = 1", "ledger.pooler", "true or false"),
        ("[runner]\nnamespace = \"a/b\"", "runner.namespace", "is not a namespace"),
        ("[runner]\nmax_concurrent = 0", "runner.max_concurrent", "from 1"),
        ("[admin]\nlisten = \"8080\"", "admin.listen", "is not an address and a port"),
        ("[admin]\nlisten = \"localhost:8080\"", "admin.listen", "is not an address and a port"),
        ("[admin]", "admin", "listen is missing"),
        ("[log]\nlevel = \"loud\"", "log.level", "trace, debug, info, warn, error, off"),
        ("[log]\nformat = \"yaml\"", "log.format", "text, json"),
    ] {
        let (found_key, found, _) = only_problem(&format!("{text}\n{GOOD}"));
        assert_eq!(found_key, key);
        assert!(found.contains(message), "{found:?} does not say {message:?}");
    }
}

#[test]
fn a_mistake_in_the_defaults_is_found_once_and_where_it_stands() {
    let jobs = format!("{GOOD}{}{}", job_with(""), job_with("").replace("jobs.a", "jobs.b"));
    let (key, _, _) = only_problem(&format!("[defaults]\nttl = 5\n{jobs}"));
    assert_eq!(key, "defaults.ttl");
    let (key, _, hint) = only_problem(&format!("[defaults]\ntimout = \"5s\"\n{jobs}"));
    assert_eq!((key.as_str(), hint.as_str()), ("defaults.timout", "did you mean timeout?"));
    // Even where every job overrides it.
    let text = format!("[defaults]\nmisfire = \"nope\"\n{}", job_with("misfire = \"latest\""));
    assert_eq!(only_problem(&text).0, "defaults.misfire");
}

#[test]
fn params_of_the_defaults_are_refused_where_they_stand() {
    let job = "[jobs.a]\nevery = \"5s\"\nkind = \"command\"\n";
    for (params, key) in [
        ("{ argv = [\"/bin/true\"], limit = \"x\" }", "defaults.params.limit"),
        ("{ argv = [\"/bin/true\"], argvv = [] }", "defaults.params.argvv"),
        ("{ env = { A = \"x\" } }", "defaults.params"),
    ] {
        let problems = Desk::with(&format!("[defaults]\nparams = {params}\n{job}")).problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].key, key);
        assert!(matches!(problems[0].place, Place::Line { line: 2, .. }), "{problems:?}");
    }
}

#[test]
fn an_empty_file_and_one_without_jobs_are_refused() {
    for (text, message) in [
        ("", "the file is empty: there is no job to run"),
        ("\n# nothing\n  \n", "the file is empty: there is no job to run"),
        ("[runner]\n", "no job is declared: there is nothing to run"),
        ("[jobs]\n", "[jobs] is empty: there is nothing to run"),
    ] {
        let (_, found, hint) = only_problem(text);
        assert_eq!(found, message);
        assert!(hint.contains("[jobs.hello]"), "{hint}");
    }
}

#[test]
fn what_stands_under_jobs_must_be_a_table() {
    for text in ["jobs = 5", "[[jobs]]\nname = \"a\"", "[jobs]\na = \"x\""] {
        let (_, message, hint) = only_problem(text);
        assert!(message.contains("expected a job's table"), "{message}");
        assert!(hint.contains("[jobs.NAME]"), "{hint}");
    }
}

#[test]
fn a_file_that_is_not_there_or_not_text_is_refused() {
    let desk = Desk::with(GOOD);
    let missing = desk.path().with_file_name("other.toml");
    let errors = Config::load(&missing, &Environment::default(), &Shop, &check_url).expect_err("refused");
    let text = errors.to_string();
    assert!(text.contains("No such file") && text.contains("--config"), "{text}");

    std::fs::write(desk.path(), b"[jobs.a]\nx = \"\xff\"\n").expect("written");
    let problems = desk.problems();
    assert_eq!(problems[0].message, "line 2 is not UTF-8 text");
}

#[test]
fn a_file_that_is_no_toml_names_every_broken_line_and_nothing_else() {
    let problems = Desk::with("[jobs.a\nevery = \"5s\"\nx = = 5\n[jobs.b]\ny = \"abc\n").problems();
    let lines: Vec<usize> = problems
        .iter()
        .map(|problem| match problem.place {
            Place::Line { line, .. } => line,
            _ => 0,
        })
        .collect();
    assert_eq!(lines, [1, 3, 5], "{problems:#?}");
    assert!(
        problems.iter().all(|problem| problem.message.starts_with("this is not TOML: ")),
        "{problems:#?}"
    );
}

#[test]
fn everything_that_is_wrong_is_found_at_once() {
    let text = "\
[lock]
url = \"redis://h:port\"
ttl = 30
[ledger]
url = \"sqlite:runner.db?mode=ro\"
[jobs.a]
schedule = \"61 * * * *\"
timezone = \"Mars/Base\"
kind = \"comand\"
params = { argv = [{ env = \"NOT_SET\" }] }
overlap = \"forbid\"
timout = \"1m\"
[jobs.b]
every = \"1h\"
kind = \"command\"
params = { args = [] }
delivery = \"at_most_once\"
max_attempts = 3
[jobs.Bad]
every = \"1h\"
kind = \"report\"
";
    let problems = Desk::with(text).set("RUNNER__LOG__LEVEL", "loud").problems();
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    let expected = [
        "lock.url",
        "lock.ttl",
        "ledger.url",
        "jobs.a.schedule",
        "jobs.a.timezone",
        "jobs.a.kind",
        "jobs.a.params.argv.0.env",
        "jobs.a.overlap",
        "jobs.a.timout",
        "jobs.b.params.args",
        "jobs.b.max_attempts",
        "jobs.Bad",
        "log.level",
    ];
    assert_eq!(keys, expected);
}
