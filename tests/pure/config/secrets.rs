//! Where secrets come from, and that nothing prints them.

use super::desk::{Desk, GOOD, job_with};

const SECRET: &str = "S3CRET-hunter2";

/// Asserts that nothing that can be printed of a load holds the secret.
#[track_caller]
fn silent(desk: &Desk) {
    match desk.load() {
        Ok(config) => {
            let warnings: String = config.warnings.iter().map(ToString::to_string).collect();
            for printed in [format!("{config:?}"), format!("{config:#?}"), warnings] {
                assert!(!printed.contains(SECRET), "{printed}");
            }
        }
        Err(errors) => {
            for printed in [errors.to_string(), format!("{errors:?}")] {
                assert!(!printed.contains(SECRET), "{printed}");
            }
        }
    }
}

#[test]
fn a_secret_is_plain_text_or_a_variable_or_a_file() {
    let url = format!("redis://:{SECRET}@h");
    let desks = [
        Desk::with(&format!("[lock]\nurl = \"{url}\"\n{GOOD}")),
        Desk::with(&format!("[lock]\nurl = {{ env = \"WHERE\" }}\n{GOOD}")).set("WHERE", &url),
        Desk::with(&format!("[lock]\nurl = {{ file = \"where\" }}\n{GOOD}"))
            .put("where", &format!("{url}\n")),
        Desk::with(GOOD).set("RUNNER__LOCK__URL", &url),
    ];
    for desk in desks {
        assert_eq!(desk.config().lock.url.expect("an address").expose(), url);
        silent(&desk);
    }
}

#[test]
fn one_line_end_at_the_end_of_a_secret_is_dropped_wherever_it_comes_from() {
    let url = "redis://cache.internal/1";
    let desks = [
        Desk::with(&format!("[lock]\nurl = \"\"\"{url}\n\"\"\"\n{GOOD}")),
        Desk::with(&format!("[lock]\nurl = {{ env = \"WHERE\" }}\n{GOOD}")).set("WHERE", &format!("{url}\n")),
        Desk::with(&format!("[lock]\nurl = {{ file = \"where\" }}\n{GOOD}"))
            .put("where", &format!("{url}\r\n")),
        Desk::with(GOOD).set("RUNNER__LOCK__URL", &format!("{url}\n")),
    ];
    for desk in desks {
        assert_eq!(desk.config().lock.url.expect("an address").expose(), url);
    }
    let job =
        job_with("").replace("argv =", "env = { A = { env = \"TOKEN\" }, B = { file = \"b\" } }, argv =");
    let config = Desk::with(&job).set("TOKEN", "two\n\n").put("b", "one\n").config();
    let env = &config.jobs[0].params.table()["env"];
    assert_eq!((env["A"].as_str(), env["B"].as_str()), (Some("two\n"), Some("one")));
}

#[test]
fn a_secret_that_is_not_there_is_named() {
    for (value, key, message) in [
        ("{ env = \"NOT_SET\" }", "lock.url.env", "the environment variable NOT_SET is not set"),
        ("{ env = \"EMPTY\" }", "lock.url.env", "the environment variable EMPTY is empty"),
        ("{ file = \"nothing\" }", "lock.url.file", "nothing: No such file"),
        ("{ file = \"blank\" }", "lock.url.file", "blank is empty"),
        ("{ env = \"A\", file = \"b\" }", "lock.url", "expected text, { env"),
        ("{ url = \"A\" }", "lock.url", "expected text, { env"),
        ("\"\"", "lock.url", "this is empty"),
    ] {
        let desk = Desk::with(&format!("[lock]\nurl = {value}\n{GOOD}")).set("EMPTY", "").put("blank", "\n");
        let problems = desk.problems();
        assert_eq!(problems.len(), 1, "{value}: {problems:?}");
        assert_eq!(problems[0].key, key, "{value}");
        assert!(problems[0].message.contains(message), "{value}: {problems:?}");
    }
}

#[test]
fn params_take_secrets_wherever_they_take_text() {
    let job = "[jobs.a]\nevery = \"5s\"\nkind = \"report\"\n[jobs.a.params]\nfile = \"plain.sql\"\n\
               headers = { Authorization = { env = \"BEARER\" } }\nlist = [{ file = \"item\" }]\nenv = { A = \"x\", B = \"y\" }\n";
    let desk = Desk::with(job).set("BEARER", SECRET).put("item", SECRET);
    let config = desk.config();
    let params = config.jobs[0].params.table();
    // The params themselves are no reference: a kind may have a key called file.
    assert_eq!(params["file"].as_str(), Some("plain.sql"));
    assert_eq!(params["headers"]["Authorization"].as_str(), Some(SECRET));
    assert_eq!(params["list"][0].as_str(), Some(SECRET));
    assert_eq!(params["env"]["B"].as_str(), Some("y"));
    silent(&desk);
}

#[test]
fn commands_must_not_inherit_the_variables_that_hold_secrets() {
    let job = job_with("").replace("argv =", "env = { T = { env = \"TOKEN\" } }, argv =");
    let config = Desk::with(&format!("[lock]\nurl = {{ env = \"REDIS_URL\" }}\n{job}"))
        .set("REDIS_URL", "redis://h")
        .set("TOKEN", SECRET)
        .set("RUNNER__LOG__LEVEL", "debug")
        .set("HOME", "/root")
        .config();
    let names: Vec<&str> = config.secret_env.iter().map(String::as_str).collect();
    assert_eq!(names, ["REDIS_URL", "RUNNER__LOG__LEVEL", "TOKEN"]);
}

#[test]
fn no_problem_shows_a_secret_that_stands_near_it() {
    let env = |rest: &str| job_with("").replace("argv = [\"/bin/true\"]", rest);
    for text in [
        format!("[lock]\nurl = \"redis://:{SECRET}@h:x\"\n{GOOD}"),
        format!("[lock]\nurl = \"{SECRET}\"\n{GOOD}"),
        format!("[ledger]\nurl = \"postgres:{SECRET}\"\n{GOOD}"),
        format!("[ledger]\nurl = \"mysql://u:{SECRET}@h/d\"\n{GOOD}"),
        format!("[ledger]\nurl = \"postgres://u:p?sslmode={SECRET}@h/d\"\n{GOOD}"),
        format!("lock = {{ url = \"redis://:{SECRET}@h\", ttl = 5 }}\n{GOOD}"),
        format!("lock = {{ ttl = 5, url = \"redis://:{SECRET}@h\" }} # end\n{GOOD}"),
        format!("[lock]\npassword = \"{SECRET}\"\n{GOOD}"),
        format!("[lock]\nttl = \"redis://u:{SECRET}@h\"\n{GOOD}"),
        format!("[admin]\nlisten = 5\ntoken = \"{SECRET}\"\n{GOOD}"),
        format!("[admin]\ntoken = [\"{SECRET}\"]\n{GOOD}"),
        env(&format!("argv = [5], env = {{ A = \"{SECRET}\" }}")),
        env(&format!("argvv = [\"x\"], headers = {{ A = \"{SECRET}\" }}")),
        env(&format!("argv = \"redis://u:{SECRET}@h\"")),
        env(&format!("argv = [\"x\"], limit = \"--password={SECRET}\"")),
        env(&format!("argv = [\"x\"], env = {{ A = [\"{SECRET}\"] }}")),
        // Lines that are no TOML.
        format!("[lock]\nurl = \"redis://:{SECRET}@h\n{GOOD}"),
        format!("[lock]\nurl = redis://:{SECRET}@h\n{GOOD}"),
        format!("[lock]\nurl = \"redis://:{SECRET}@h\" x\n{GOOD}"),
        format!("[lock]\nurl \"redis://:{SECRET}@h\"\n{GOOD}"),
        format!("[lock]\nurl = '''\nredis://:{SECRET}@h\n{GOOD}"),
        env(&format!("argv = [\"x\"], headers = {{ A = \"{SECRET} }}")),
        format!("[lock]\nurl = \"redis://:{SECRET}@h\"\nurl = \"redis://:{SECRET}@i\"\n{GOOD}"),
    ] {
        let desk = Desk::with(&text);
        assert!(desk.load().is_err(), "{text}");
        silent(&desk);
    }
}

#[test]
fn no_problem_shows_a_secret_that_came_from_elsewhere() {
    let job = job_with("").replace("argv = [\"/bin/true\"]", "argv = { env = \"WHAT\" }");
    let desk = Desk::with(&job).set("WHAT", SECRET);
    // The kind complains about the very text: it wanted a list.
    let problems = desk.problems();
    assert!(problems[0].message.contains("***"), "{problems:?}");
    silent(&desk);
    silent(&Desk::with(GOOD).set("RUNNER__LOCK__URL", SECRET));
    silent(&Desk::with(GOOD).set("RUNNER__LOCK__TTL", &format!("redis://u:{SECRET}@h")));
    silent(&Desk::with(GOOD).set("RUNNER__LEDGER__URL", &format!("mysql://u:{SECRET}@h")));
    silent(&Desk::with(GOOD).set("RUNNER__LEDGER__PASSWORD", SECRET));
}

#[test]
fn a_problem_that_is_found_after_the_load_shows_no_secret_either() {
    let job =
        job_with("").replace("argv =", "env = { T = { env = \"TOKEN\" }, U = \"plain-secret\" }, argv =");
    let config = Desk::with(&job).set("TOKEN", SECRET).config();
    let problem = config.problem_at("jobs.a.params.argv", format!("refused {SECRET} and plain-secret"), None);
    assert_eq!(problem.message, "refused *** and ***");
    assert!(problem.to_string().contains("U = ***"), "{problem}");
}
