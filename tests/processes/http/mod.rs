//! Requests to receivers that count them.

#![expect(clippy::disallowed_methods, reason = "tests measure time and own their tasks")]

mod receiver;
mod replicas;
mod stage;
#[cfg(feature = "tls")]
mod tls;

use std::time::{Duration, Instant};

use runner::{Cause, Job as _};
use testbed::Deployment;

use crate::program;
use receiver::{Receiver, Reply, answer, answer_with, deserted_port};
use stage::{block_on, context, failure, http, outcome, to};

/// Longer than anything here takes on a busy machine; only a failure waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

fn fine() -> Receiver {
    Receiver::start(|_| answer("200 OK", "done"))
}

// What a receiver is handed.

#[test]
fn a_request_says_which_run_it_belongs_to_and_nothing_else() {
    let receiver = fine();
    assert!(outcome(&to(&receiver, "/v1/payouts?day=1", "")).0.is_ok());
    let request = receiver.only();
    assert_eq!(request.line, "POST /v1/payouts?day=1 HTTP/1.1");
    let host = format!("127.0.0.1:{}", receiver.port());
    let agent = format!("runner/{}", env!("CARGO_PKG_VERSION"));
    let trace = request.header("traceparent").to_owned();
    let expected = [
        ("accept", "*/*"),
        ("connection", "close"),
        ("content-length", "0"),
        ("host", &host),
        ("idempotency-key", "tests/payouts/2026-03-29T01:00:00Z/3"),
        ("traceparent", &trace),
        ("user-agent", &agent),
        ("x-runner-attempt", "2"),
        ("x-runner-fence", "41"),
        ("x-runner-job", "payouts"),
        ("x-runner-origin", "catch_up"),
        ("x-runner-scheduled-at", "2026-03-29T01:00:00Z"),
        ("x-runner-shard", "3"),
        ("x-runner-shards", "8"),
    ];
    let headers: Vec<_> =
        request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(headers, expected);
    assert_eq!(trace.split('-').map(str::len).collect::<Vec<_>>(), [2, 32, 16, 2], "{trace}");
}

#[test]
fn the_jobs_own_headers_are_sent_and_replace_the_usual_ones() {
    let receiver = fine();
    let own = "headers = { Authorization = 'Bearer x', User-Agent = 'payer', Content-Type = 'text/csv' }\nbody = 'a,b'";
    assert!(outcome(&to(&receiver, "/", own)).0.is_ok());
    let request = receiver.only();
    let values = ["authorization", "user-agent", "content-type"].map(|name| request.header(name));
    assert_eq!(values, ["Bearer x", "payer", "text/csv"]);
    assert_eq!(request.headers.iter().filter(|(name, _)| name == "content-type").count(), 1);
    assert_eq!(request.body, "a,b");
}

#[test]
fn a_body_is_text_or_a_table_as_json() {
    for (body, media_type, sent) in [
        ("'day=1'", "text/plain; charset=utf-8", "day=1"),
        ("{ day = 1, of = ['é', true] }", "application/json", r#"{"day":1,"of":["é",true]}"#),
        ("[1, {}]", "application/json", "[1,{}]"),
    ] {
        let receiver = fine();
        assert!(outcome(&to(&receiver, "/", &format!("body = {body}\nmethod = 'PUT'"))).0.is_ok());
        let request = receiver.only();
        assert_eq!(request.line, "PUT / HTTP/1.1");
        assert_eq!((request.header("content-type"), request.body.as_str()), (media_type, sent));
        assert_eq!(request.header("content-length"), sent.len().to_string());
    }
}

#[test]
fn a_request_without_a_body_says_nothing_of_one_where_none_is_expected() {
    for method in ["GET", "HEAD", "DELETE"] {
        let receiver = Receiver::start(|_| answer("204 No Content", ""));
        assert!(outcome(&to(&receiver, "/", &format!("method = '{method}'"))).0.is_ok());
        let request = receiver.only();
        assert_eq!(request.line, format!("{method} / HTTP/1.1"));
        assert!(!request.headers.iter().any(|(name, _)| name.starts_with("content-")), "{request:?}");
    }
}

// What its answer means.

#[test]
fn what_a_status_means_is_for_the_job_to_say() {
    for (status, expect, done) in [
        ("200 OK", "", true),
        ("204 No Content", "", true),
        ("202 Accepted", "expect_status = 200", false),
        ("404 Not Found", "expect_status = ['2xx', 404]", true),
        ("303 See Other", "expect_status = '3xx'", true),
        ("503 Service Unavailable", "expect_status = '500-503'", true),
        ("200 OK", "expect_status = 404", false),
    ] {
        let receiver = Receiver::start(move |_| answer(status, ""));
        let (result, _) = outcome(&to(&receiver, "/", expect));
        assert_eq!(result.is_ok(), done, "{status} {expect}: {result:?}");
    }
}

#[test]
fn only_an_answer_that_asks_for_patience_is_worth_another_attempt() {
    for (status, retry) in [
        ("400 Bad Request", false),
        ("401 Unauthorized", false),
        ("404 Not Found", false),
        ("408 Request Timeout", true),
        ("409 Conflict", true),
        ("410 Gone", false),
        ("422 Unprocessable Entity", false),
        ("425 Too Early", true),
        ("429 Too Many Requests", true),
        ("500 Internal Server Error", true),
        ("503 Service Unavailable", true),
        ("599 <none>", true),
    ] {
        let receiver = Receiver::start(move |_| answer(status, "the reason"));
        let target = receiver.url("");
        let (result, output) = outcome(&to(&receiver, "/S3CRET", ""));
        let error = result.unwrap_err();
        assert_eq!(error.is_retry(), retry, "{error}");
        let status = status.replace(" <none>", " <unknown status code>");
        assert_eq!(error.to_string(), format!("{target} answered {status}"));
        assert_eq!(output.unwrap(), "the reason");
    }
}

#[test]
fn a_receiver_that_says_when_to_come_back_is_quoted() {
    for (when, words) in [
        ("120", ", retry after 120"),
        ("Fri, 31 Dec 1999 23:59:59 GMT", ", retry after Fri, 31 Dec 1999 23:59:59 GMT"),
        (&*"x".repeat(5000), ""),
    ] {
        let header = format!("Retry-After: {when}\r\n");
        let receiver = Receiver::start(move |_| answer_with("503 Service Unavailable", &header, ""));
        let (retry, error) = failure(&to(&receiver, "/", ""));
        assert!(retry && error.ends_with(&format!("503 Service Unavailable{words}")), "{error}");
    }
}

#[test]
fn a_redirect_is_not_followed_and_only_its_host_is_told() {
    let other = fine();
    for (status, location) in [
        ("302 Found", other.url("/S3CRET")),
        ("307 Temporary Redirect", other.url("/?S3CRET")),
        ("301 Moved Permanently", "/S3CRET".into()),
    ] {
        let header = format!("Location: {location}\r\n");
        let receiver = Receiver::start(move |_| answer_with(status, &header, ""));
        let (retry, error) = failure(&to(&receiver, "/", "headers = { Authorization = 'S3CRET' }"));
        let to = if location.starts_with('/') { receiver.url("") } else { other.url("") };
        let words =
            format!("{} answered {status}: a redirect to {to}, which is not followed", receiver.url(""));
        assert_eq!((retry, error), (false, words));
        assert_eq!(receiver.seen().len(), 1);
    }
    assert!(other.seen().is_empty());
}

// What is kept of it.

#[test]
fn of_an_answer_without_an_end_the_beginning_is_kept_and_the_rest_is_not_read() {
    let receiver =
        Receiver::start(|_| Reply::SayForEver("HTTP/1.1 200 OK\r\n\r\n".into(), "0123456789abcdef"));
    let (result, output) = outcome(&to(&receiver, "/", "output_limit = '1KiB'"));
    assert!(result.is_ok(), "{result:?}");
    let expected =
        format!("{}\n[the rest was not read: output_limit is 1024 bytes]", "0123456789abcdef".repeat(64));
    assert_eq!(output.unwrap(), expected);
    receiver.wait_until_left(1);
}

#[test]
fn an_answer_in_chunks_is_kept_whole() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none \r\n4\r\ntwo.\r\n0\r\n\r\n";
    let receiver = Receiver::start(|_| Reply::Say(chunked.into()));
    assert_eq!(outcome(&to(&receiver, "/", "")).1.unwrap(), "one two.");
}

// No answer.

#[test]
fn where_nobody_listens_another_attempt_may_help() {
    let port = deserted_port();
    let (retry, error) = failure(&http(&format!("url = 'http://127.0.0.1:{port}/S3CRET'")));
    assert!(retry);
    let words = format!("cannot connect to http://127.0.0.1:{port}: Connection refused");
    assert!(error.starts_with(&words), "{error}");
}

#[test]
fn an_answer_that_is_none_or_breaks_off_is_worth_another_attempt() {
    for (said, words) in [
        ("", "no answer from http://127.0.0.1"),
        ("SSH-2.0-server\r\n", "no answer from http://127.0.0.1"),
        ("HTTP/1.1 200 OK\r\nContent-Le", "no answer from http://127.0.0.1"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "answered 200 OK, but its answer broke off"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
            "answered 200 OK, but its answer broke off",
        ),
    ] {
        let receiver = Receiver::start(|_| Reply::Say(said.into()));
        let (result, output) = outcome(&to(&receiver, "/", ""));
        let error = result.unwrap_err();
        assert!(error.is_retry() && error.to_string().contains(words), "{said:?}: {error}");
        assert_eq!(output.as_deref(), said.contains("half").then_some("half"), "{said:?}");
    }
}

#[test]
fn an_answer_with_a_head_without_an_end_is_none() {
    let receiver =
        Receiver::start(|_| Reply::SayForEver("HTTP/1.1 200 OK\r\n".into(), "X-More: 0123456789\r\n"));
    let (retry, error) = failure(&to(&receiver, "/", ""));
    assert!(retry && error.starts_with("no answer from "), "{error}");
    receiver.wait_until_left(1);
}

#[test]
fn a_receiver_that_is_too_slow_is_left() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    for (said, output) in [("", None), (head, Some("half"))] {
        let receiver = Receiver::start(|_| Reply::Hang(said.into()));
        let from = Instant::now();
        let (result, kept) = outcome(&to(&receiver, "/", "timeout = '300ms'"));
        let error = result.unwrap_err();
        assert!(error.is_retry());
        assert_eq!(error.to_string(), format!("no complete answer from {} within 300ms", receiver.url("")));
        assert_eq!(kept.as_deref(), output);
        assert!(from.elapsed() >= Duration::from_millis(300));
        receiver.wait_until_left(1);
    }
}

// How it is stopped.

#[test]
fn a_run_that_is_cancelled_closes_its_connection_at_once() {
    let receiver = Receiver::start(|_| Reply::Hang(String::new()));
    let request = to(&receiver, "/", "");
    block_on(async {
        let (context, levers) = context(PATIENCE);
        let run = tokio::spawn(async move { request.run(&context).await });
        receiver.wait_for(1);
        levers.cancel.cancel(Cause::Timeout);
        let error = run.await.unwrap().unwrap_err();
        assert!(error.is_retry());
        assert_eq!(error.to_string(), "asked to stop (timeout) before the answer came");
        receiver.wait_until_left(1);
    });
}

#[test]
fn a_run_that_is_dropped_closes_its_connection() {
    let receiver = Receiver::start(|_| Reply::Hang(String::new()));
    let request = to(&receiver, "/", "");
    block_on(async {
        let (context, _levers) = context(PATIENCE);
        let run = tokio::spawn(async move { request.run(&context).await });
        receiver.wait_for(1);
        run.abort();
        assert!(run.await.unwrap_err().is_cancelled());
        receiver.wait_until_left(1);
    });
}

#[test]
fn a_run_that_was_stopped_or_lost_its_licence_before_sends_nothing() {
    let receiver = fine();
    let request = to(&receiver, "/", "");
    block_on(async {
        let (stopped, levers) = context(PATIENCE);
        levers.cancel.cancel(Cause::Drain);
        let error = request.run(&stopped).await.unwrap_err();
        assert!(error.is_retry() && error.to_string().contains("before the request was sent"), "{error}");
        let (late, _levers) = context(Duration::ZERO);
        let error = request.run(&late).await.unwrap_err();
        assert!(error.is_retry() && error.to_string().contains("licence ended before"), "{error}");
    });
    assert!(receiver.seen().is_empty());
}

// What jobs.toml may say.

/// What `check` says of a job with these params.
fn check(params: &str) -> String {
    let job = format!("[jobs.pay]\nkind = \"http\"\nevery = \"1h\"\n\n[jobs.pay.params]\n{params}\n");
    let done = Deployment::new(program()).jobs(&job).run(&["check"]);
    format!("{}{}", done.stdout, done.stderr)
}

#[test]
fn a_bad_param_is_refused_at_its_line_with_a_hint_and_without_secrets() {
    for (params, key, message, hint) in [
        (
            "url = \"http://user:S3CRET@h/\"",
            "jobs.pay.params.url",
            "url contains a user or a password",
            "headers = { Authorization = { env = \"NAME\" } }",
        ),
        (
            "url = \"http://h\"\nmethod = \"FETCH\"",
            "jobs.pay.params.method",
            "\"FETCH\" is not a method",
            "the methods are GET",
        ),
        (
            "url = \"http://h\"\nheaders = { X-Runner-Fence = \"1\" }",
            "jobs.pay.params.headers",
            "set by the runner itself",
            "leave it out",
        ),
        ("url = \"http://h\"\nheaders = { A = 5 }", "jobs.pay.params.headers.A", "expected text", ""),
        (
            "url = \"http://h\"\ntimeout = 5",
            "jobs.pay.params.timeout",
            "a duration needs a unit",
            "write \"5s\"",
        ),
        ("url = \"http://h\"\nretries = 5", "jobs.pay.params.retries", "unknown key", "the keys are method"),
    ] {
        let said = check(params);
        for words in [key, message, hint, "jobs.toml:"] {
            assert!(said.contains(words), "{words:?} is missing in\n{said}");
        }
        assert!(!said.contains("S3CRET"), "{said}");
    }
}

#[test]
fn a_job_of_the_kind_http_is_fine() {
    let said = check("url = \"http://h/\"\nheaders = { A = \"b\" }\nbody = { at = 2026-06-01, n = [1.5] }");
    assert!(said.contains("is fine: 1 job"), "{said}");
}
