//! A configuration that cannot be meant starts nothing, seen from outside: exit code 78, every
//! problem with its place, no secret printed.

use std::path::Path;
use std::time::Duration;

use testbed::{Deployment, Finished, Replica};

use crate::program;

const PASSWORD: &str = "correct-horse-battery";

/// `runner --config FILE ARGS`.
fn run(text: &str, args: &[&str]) -> Finished {
    Deployment::new(program()).file(text).run(args)
}

/// A whole file around one job whose keys are `lines`; the first of them is in line 4.
fn job(lines: &str) -> String {
    format!("[defaults]\nkind = \"command\"\n[jobs.reconcile]\n{lines}\n")
}

/// A job that would do, but for what is said about it in line 6.
fn job_with(line: &str) -> String {
    job(&format!("every = \"30s\"\nparams = {{ argv = [\"true\"] }}\n{line}"))
}

/// Neither a start nor `check` accepts it, and each of `places` (a line, a word that has to be said)
/// is named.
#[track_caller]
fn refuses(text: &str, places: &[(usize, &str)]) {
    for args in [&[] as &[&str], &["check"]] {
        let done = run(text, args);
        assert_eq!(done.status.code(), Some(78), "{args:?}\n{text}\n{done:?}");
        for (line, word) in places {
            let place = format!("jobs.toml:{line}:");
            let said =
                done.stderr.contains(&place) && done.stderr.contains(word) && done.stderr.contains('^');
            assert!(said, "{place} or {word} is missing for\n{text}\n{}", done.stderr);
        }
        let shown = done.stderr.contains(PASSWORD) || done.stdout.contains(PASSWORD);
        assert!(!shown, "a secret is shown for\n{text}\n{done:?}");
    }
}

#[test]
fn an_address_that_only_a_client_can_judge_is_refused_before_anything_starts() {
    let with = |section: &str, url: &str| {
        format!(
            "{section}\nurl = \"{url}\"\n[jobs.reconcile]\nkind = \"command\"\nevery = \"30s\"\nparams = {{ argv = [\"true\"] }}\n"
        )
    };
    let ledger = |rest: &str| with("[ledger]", &format!("postgres://runner:{PASSWORD}@{rest}"));
    refuses(&ledger("db/runner?sslmode=maybe"), &[(2, "ssl_mode")]);
    refuses(&ledger("d b/runner"), &[(2, "ledger.url")]);
    refuses(&with("[ledger]", "sqlite:runner.db?mode=ro"), &[(2, "without parameters")]);
    refuses(&with("[lock]", &format!("redis://:{PASSWORD}@cache/0?protocol=resp9")), &[(2, "lock.url")]);
}

#[test]
fn every_mistake_is_refused_with_its_line_and_its_key() {
    let params = "params = { argv = [\"true\"] }";
    refuses(&job_with("timout = \"1m\""), &[(6, "jobs.reconcile.timout")]);
    refuses(&job_with("concurrencyPolicy = \"Forbid\""), &[(6, "overlap")]);
    refuses(&job(&format!("schedule = \"61 * * * *\"\n{params}")), &[(4, "jobs.reconcile.schedule")]);
    refuses(&job(&format!("schedule = \"0 0 31 2 *\"\n{params}")), &[(4, "jobs.reconcile.schedule")]);
    refuses(&job_with("timezone = \"Europe/Atlantis\""), &[(6, "jobs.reconcile.timezone")]);
    refuses(&job_with("timeout = \"30\""), &[(6, "jobs.reconcile.timeout")]);
    refuses(&job_with("kind = \"comand\""), &[(6, "jobs.reconcile.kind")]);
    refuses(&job("every = \"30s\"\nparams = { argv = [\"true\"], agrv = [] }"), &[(5, "agrv")]);
    refuses(&job_with("[jobs.reconcile]\nevery = \"1m\""), &[(6, "reconcile")]);
    refuses(&job_with("timeout = \"10m\"\nttl = \"30s\"\nmax_renewals = 3"), &[(6, "max_renewals = 58")]);
    refuses(&job_with("timeout = \"1m"), &[(6, "")]);
}

#[test]
fn two_problems_are_told_at_once() {
    refuses(
        &job_with("timezone = \"Nowhere\"\noverlap = \"maybe\"\nretries = 3"),
        &[(6, "jobs.reconcile.timezone"), (7, "jobs.reconcile.overlap"), (8, "jobs.reconcile.retries")],
    );
}

#[test]
fn a_variable_that_is_not_set_is_refused_by_name() {
    let text = format!("[ledger]\nurl = {{ env = \"NO_SUCH_VARIABLE_HERE\" }}\n{}", job_with(""));
    refuses(&text, &[(2, "NO_SUCH_VARIABLE_HERE")]);
}

#[test]
fn a_file_that_is_empty_or_not_there_is_refused() {
    refuses("", &[]);
    refuses("[runner]\nnamespace = \"shop\"\n", &[]);
    let mut replica = Replica::builder(program()).config(Path::new("/nowhere/jobs.toml")).spawn();
    replica.wait_for_line(Duration::from_secs(10), |line| line.contains("/nowhere/jobs.toml"));
    assert_eq!(replica.wait_exit(Duration::from_secs(10)).code(), Some(78));
}

#[test]
fn no_secret_is_shown_by_a_refusal() {
    let lock = format!("[lock]\nurl = \"redis://:{PASSWORD}@127.0.0.1:6379/0/1/2\"\n{}", job_with(""));
    refuses(&lock, &[(2, "lock.url")]);
    let ledger = format!("[ledger]\nurl = \"postgras://me:{PASSWORD}@host/db\"\n{}", job_with(""));
    refuses(&ledger, &[(2, "ledger.url")]);
    refuses(&format!("[ledger]\nurl = \"postgres://me:{PASSWORD}@host/db\n"), &[(2, "")]);
}

#[test]
fn statements_that_cannot_be_meant_are_refused_with_their_line() {
    let job =
        |params: &str| format!("[jobs.nightly]\nevery = \"1h\"\nkind = \"sql\"\nparams = {{ {params} }}\n");
    let key = "jobs.nightly.params";
    refuses(&job("statement = \"SELECT :jbo\""), &[(4, ":jbo"), (4, &format!("{key}.statement"))]);
    refuses(&job("statement = \"SELECT 1; COMMIT\""), &[(4, "one transaction already")]);
    refuses(&job("statement = \"SELECT 'a\""), &[(4, "is never closed")]);
    refuses(&job("file = \"nowhere.sql\""), &[(4, "nowhere.sql"), (4, &format!("{key}.file"))]);
    refuses(&job("statement = \"SELECT 1\", file = \"a.sql\""), &[(4, "a.sql")]);
    refuses(&job("statment = \"SELECT 1\""), &[(4, "did you mean statement?")]);
    refuses(&job(""), &[(4, "nothing to run")]);
}
