//! Whole replicas: one request for each firing, and what a receiver sees when they fail.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use testbed::{Deployment, PrivatePostgres, PrivateRedis, Replica, wait_until_blocking};

use super::PATIENCE;
use super::receiver::{Receiver, Reply, answer};
use crate::embedded;

/// A job that sends its firings to `receiver`, with these other keys.
fn job(receiver: &Receiver, lines: &str) -> String {
    format!("[jobs.pay]\nkind = \"http\"\nparams = {{ url = {:?} }}\n{lines}\n", receiver.url("/pay"))
}

/// One firing in three seconds.
fn soon() -> String {
    let at = chrono::Utc::now() + chrono::TimeDelta::seconds(3);
    format!("at = {}", at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}

/// The one row of the job, once it is in `state`. Only after a first request: a ledger may have to be made.
#[track_caller]
fn wait_for_one_row(deployment: &Deployment, state: &str) -> Value {
    wait_until_blocking(PATIENCE, || match deployment.history("pay").as_slice() {
        [row] if row["state"] == state => Ok(row.clone()),
        rows => Err(format!("{rows:?}")),
    })
}

#[track_caller]
fn end(replicas: Vec<Replica>) {
    for mut replica in replicas {
        replica.terminate();
        let status = replica.wait_exit(PATIENCE);
        assert!(status.success(), "{status}: {}", replica.lines().tail());
    }
}

#[test]
fn three_replicas_send_one_request_for_each_firing() {
    let (redis, postgres) = (PrivateRedis::start(), PrivatePostgres::start());
    let receiver = Receiver::start(|_| answer("200 OK", "paid"));
    let deployment = embedded()
        .redis(redis.url())
        .ledger(postgres.create_database())
        .jobs(&job(&receiver, "every = \"1s\""));
    let replicas = deployment.start(3);
    receiver.wait_for(12);
    end(replicas);
    let requests = receiver.seen();
    let keys: BTreeSet<_> = requests.iter().map(|request| request.header("idempotency-key")).collect();
    assert_eq!(keys.len(), requests.len(), "a firing was sent twice");
    let rows = deployment.history("pay");
    let sent: BTreeSet<_> = requests.iter().map(|request| request.header("x-runner-scheduled-at")).collect();
    let recorded: BTreeSet<_> = rows.iter().map(|row| row["scheduled_at"].as_str().unwrap()).collect();
    assert_eq!(sent, recorded);
    for row in &rows {
        assert_eq!((&row["state"], &row["output"]), (&"succeeded".into(), &"paid".into()), "{row}");
    }
}

#[test]
fn another_attempt_has_the_same_key_and_a_higher_fence() {
    let first = AtomicBool::new(true);
    let receiver = Receiver::start(move |_| match first.swap(false, Ordering::SeqCst) {
        true => answer("503 Service Unavailable", "not now"),
        false => answer("200 OK", "now"),
    });
    let lines = format!("{}\nmax_attempts = 3\nbackoff = {{ initial = \"100ms\" }}", soon());
    let deployment = embedded().jobs(&job(&receiver, &lines));
    let replicas = deployment.start(1);
    receiver.wait_for(1);
    let row = wait_for_one_row(&deployment, "succeeded");
    assert_eq!((&row["attempt"], &row["output"]), (&2.into(), &"now".into()), "{row}");
    end(replicas);
    assert_same_firing(&receiver, 2);
}

/// `count` attempts of one firing.
#[track_caller]
fn assert_same_firing(receiver: &Receiver, count: usize) {
    let requests = receiver.seen();
    assert_eq!(requests.len(), count, "{requests:#?}");
    for (pair, attempt) in requests.windows(2).zip(1..) {
        let [before, after] = pair else { unreachable!("windows of two") };
        assert_eq!(before.header("idempotency-key"), after.header("idempotency-key"));
        assert!(after.fence() > before.fence(), "{requests:#?}");
        assert_eq!(before.header("x-runner-attempt"), attempt.to_string());
        assert_eq!(after.header("x-runner-attempt"), (attempt + 1).to_string());
        let (trace, next) = (before.header("traceparent"), after.header("traceparent"));
        assert!(trace[..35] == next[..35] && trace != next, "one trace, two spans: {trace} {next}");
    }
}

#[test]
fn a_firing_whose_answer_says_no_is_not_sent_again() {
    let receiver = Receiver::start(|_| answer("400 Bad Request", "no such account"));
    let lines = format!("{}\nmax_attempts = 3\nbackoff = {{ initial = \"100ms\" }}", soon());
    let deployment = embedded().jobs(&job(&receiver, &lines));
    let replicas = deployment.start(1);
    receiver.wait_for(1);
    let row = wait_for_one_row(&deployment, "failed");
    end(replicas);
    assert_eq!(receiver.seen().len(), 1);
    assert!(row["error"].as_str().unwrap().ends_with("answered 400 Bad Request"), "{row}");
    assert_eq!(row["output"], "no such account");
}

#[test]
fn a_run_that_reaches_its_timeout_closes_the_connection() {
    let receiver = Receiver::start(|_| Reply::Hang(String::new()));
    let deployment = embedded().jobs(&job(&receiver, &format!("{}\ntimeout = \"1s\"", soon())));
    let replicas = deployment.start(1);
    receiver.wait_until_left(1);
    let row = wait_for_one_row(&deployment, "failed");
    assert_eq!(row["reason"], "timeout", "{row}");
    end(replicas);
    assert_eq!(receiver.seen().len(), 1);
}

#[test]
fn a_proxy_that_the_environment_names_gets_nothing() {
    let receiver = Receiver::start(|_| answer("200 OK", ""));
    let proxy = Receiver::start(|_| answer("200 OK", ""));
    let deployment = embedded().jobs(&job(&receiver, "every = \"1h\""));
    let mut run = deployment.replica().arg("exec").arg("pay");
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
        run = run.env(name, proxy.url(""));
    }
    let mut run = run.spawn();
    let status = run.wait_exit(PATIENCE);
    assert!(status.success(), "{}", run.lines().tail());
    assert_eq!((receiver.seen().len(), proxy.seen().len()), (1, 0));
}

/// Two replicas, and the one that sent the first request; the receiver leaves that unanswered.
fn in_mid_request(deployment: &Deployment, receiver: &Receiver) -> (Replica, Replica) {
    let mut replicas = deployment.start(2);
    receiver.wait_for(1);
    let is_owner = |replica: &Replica| {
        replica.lines().since(0).iter().any(|line| line.contains("started") && line.contains("pay"))
    };
    let owner = wait_until_blocking(PATIENCE, || {
        replicas.iter().position(is_owner).ok_or_else(|| "no replica says that it started the run".to_owned())
    });
    let owner = replicas.swap_remove(owner);
    (owner, replicas.remove(0))
}

/// Leaves the first request without an answer.
fn deaf_at_first() -> Receiver {
    let first = AtomicBool::new(true);
    Receiver::start(move |_| match first.swap(false, Ordering::SeqCst) {
        true => Reply::Hang(String::new()),
        false => answer("200 OK", "paid"),
    })
}

fn cluster(receiver: &Receiver) -> (PrivateRedis, PrivatePostgres, Deployment) {
    let (redis, postgres) = (PrivateRedis::start(), PrivatePostgres::start());
    let lines = format!("{}\ntimeout = \"20s\"", soon());
    let deployment = embedded().redis(redis.url()).ledger(postgres.create_database()).ttl("2s");
    let deployment = deployment.jobs(&job(receiver, &lines));
    (redis, postgres, deployment)
}

#[test]
fn after_a_kill_in_mid_request_another_sends_the_same_key_under_a_higher_fence() {
    let receiver = deaf_at_first();
    let (_redis, _postgres, deployment) = cluster(&receiver);
    let (mut owner, other) = in_mid_request(&deployment, &receiver);
    owner.kill9();
    receiver.wait_until_left(1);
    let row = wait_for_one_row(&deployment, "succeeded");
    assert_eq!(row["attempt"], 2);
    assert_eq!(row["fence"].as_i64().unwrap(), receiver.seen()[1].fence());
    assert_same_firing(&receiver, 2);
    end(vec![other]);
}

#[test]
fn an_owner_that_wakes_from_a_freeze_closes_its_connection_and_sends_nothing_more() {
    let receiver = deaf_at_first();
    let (_redis, _postgres, deployment) = cluster(&receiver);
    let (mut owner, other) = in_mid_request(&deployment, &receiver);
    owner.stop();
    let row = wait_for_one_row(&deployment, "succeeded");
    owner.cont();
    receiver.wait_until_left(1);
    owner.wait_for_line(Duration::from_secs(10), |line| line.contains("its result is void"));
    assert_same_firing(&receiver, 2);
    assert_eq!(wait_for_one_row(&deployment, "succeeded"), row);
    end(vec![owner, other]);
}
