//! Both layers behind TLS, each behind a certificate of a private authority.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::{Deployment, PrivatePostgres, PrivateRedis, wait_until_blocking};

use crate::program;

const PATIENCE: Duration = Duration::from_secs(30);

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tls").join(name).canonicalize().unwrap()
}

/// A certificate and its key where a server can read them: each insists on who owns its key.
struct Papers {
    _dir: tempfile::TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

impl Papers {
    fn for_owner_of(server: &Path) -> Self {
        let owner = fs::metadata(server).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let [certificate, key] = ["server.pem", "server.key"].map(|name| {
            let path = dir.path().join(name);
            fs::copy(data(name), &path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
            path
        });
        chown(dir.path(), Some(owner.uid()), Some(owner.gid())).unwrap();
        Self { _dir: dir, certificate, key }
    }
}

/// A Redis that also listens behind TLS, and how to reach that.
fn redis() -> (PrivateRedis, Papers, String) {
    let redis = PrivateRedis::start();
    let papers = Papers::for_owner_of(&PathBuf::from(format!("/proc/{}", std::process::id())));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (certificate, key, ca) = (text(&papers.certificate), text(&papers.key), text(&data("ca.pem")));
    // Below the ephemeral ports, like the plain one.
    let port = (redis.addr().port() - 11_000 + 10_000) % 20_000 + 11_000;
    let mut settings = vec!["CONFIG", "SET", "tls-auth-clients", "no", "tls-cert-file", &certificate];
    let port = port.to_string();
    settings.extend(["tls-key-file", &key, "tls-ca-cert-file", &ca, "tls-port", &port]);
    redis.call(&settings);
    let url = format!("rediss://localhost:{port}/0");
    (redis, papers, url)
}

/// A PostgreSQL that takes TLS, and a database of it that is asked for with it.
fn postgres() -> (PrivatePostgres, Papers, String) {
    let postgres = PrivatePostgres::start();
    let papers = Papers::for_owner_of(postgres.socket_dir());
    for (setting, value) in [
        ("ssl_cert_file", papers.certificate.to_str()),
        ("ssl_key_file", papers.key.to_str()),
        ("ssl", Some("on")),
    ] {
        // Each alone: these statements run in no transaction.
        postgres.sql(&format!("ALTER SYSTEM SET {setting} = '{}'", value.unwrap()));
    }
    postgres.sql("SELECT pg_reload_conf()");
    wait_until_blocking(PATIENCE, || match postgres.sql("SHOW ssl").trim() {
        "on" => Ok(()),
        other => Err(format!("ssl is {other}")),
    });
    let url = postgres.create_database().replace("127.0.0.1", "localhost");
    (postgres, papers, format!("{url}?sslmode=verify-full"))
}

/// Runs a command beside a job that needs both layers, trusting `authority` alone.
fn run(args: &[&str], redis: &str, ledger: &str, authority: &str) -> (bool, String) {
    let job = "[jobs.a]\nkind = \"command\"\nevery = \"1h\"\nparams = { argv = [\"true\"] }\non_unavailable = \"skip\"";
    let deployment = Deployment::new(program()).redis(redis).ledger(ledger).jobs(job);
    let done = std::process::Command::new(program())
        .arg("--config")
        .arg(deployment.config())
        .args(args)
        .env("SSL_CERT_DIR", "")
        .env("SSL_CERT_FILE", data(authority))
        .output()
        .unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn a_firing_walks_through_both_layers_behind_tls() {
    let ((_redis, _papers, lock), (_postgres, _more_papers, ledger)) = (redis(), postgres());
    let (done, said) = run(&["exec", "a"], &lock, &ledger, "ca.pem");
    assert!(done, "{said}");
}

#[test]
fn a_ledger_that_nobody_known_vouches_for_is_not_used() {
    let (plain, (_postgres, _papers, ledger)) = (PrivateRedis::start(), postgres());
    let (done, said) = run(&["migrate"], &plain.url(), &ledger, "other-ca.pem");
    assert!(!done && said.contains("UnknownIssuer"), "{said}");
}

#[test]
fn a_lock_that_nobody_known_vouches_for_is_not_taken() {
    let ((_redis, _papers, lock), plain) = (redis(), PrivatePostgres::start());
    let (done, said) = run(&["exec", "a"], &lock, &plain.create_database(), "other-ca.pem");
    assert!(!done && said.contains("UnknownIssuer"), "{said}");
}

#[test]
fn a_connection_behind_tls_that_breaks_is_made_again_for_the_next_firing() {
    let ((redis, _papers, lock), plain) = (redis(), PrivatePostgres::start());
    let deployment = Deployment::new(program()).redis(lock).ledger(plain.create_database()).job(
        "strict",
        Duration::from_millis(50),
        "every = \"1s\"\non_unavailable = \"skip\"",
    );
    let mut replica =
        deployment.replica().env("SSL_CERT_DIR", "").env("SSL_CERT_FILE", data("ca.pem")).spawn();
    let started = || deployment.effects().instants("strict").len();
    for _ in 0..3 {
        let before = started();
        wait_until_blocking(PATIENCE, || {
            if started() > before { Ok(()) } else { Err("nothing has fired".into()) }
        });
        redis.call(&["CLIENT", "KILL", "TYPE", "normal"]);
    }
    let before = started();
    wait_until_blocking(
        PATIENCE,
        || if started() > before { Ok(()) } else { Err("nothing has fired".into()) },
    );
    replica.terminate();
    assert!(replica.wait_exit(PATIENCE).success());
    let rows = deployment.history("strict");
    assert!(rows.len() >= 4 && rows.iter().all(|row| row["state"] == "succeeded"), "{rows:#?}");
}
