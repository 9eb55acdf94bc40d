//! Who is trusted, with a private authority and a server that it vouches for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use testbed::Deployment;

use super::receiver::{Receiver, answer};
use super::stage::{failure, http, outcome};
use crate::program;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tls").join(name)
}

fn pem(name: &str) -> String {
    std::fs::read_to_string(data(name)).unwrap()
}

/// A receiver that proves to be `localhost`, by the word of `ca.pem`.
fn receiver() -> Receiver {
    let certificates =
        CertificateDer::pem_file_iter(data("server.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(data("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    Receiver::start_with(Some(Arc::new(config)), |_| answer("200 OK", "in confidence"))
}

/// What jobs.toml says of a request to `host`.
fn params(receiver: &Receiver, host: &str, more: &str) -> String {
    format!("url = \"https://{host}:{}/v1/payouts\"\n{more}", receiver.port())
}

fn trusting(ca: &str) -> String {
    format!("ca = '''\n{}'''", pem(ca))
}

#[test]
fn a_receiver_that_a_known_authority_vouches_for_is_sent_the_request() {
    let receiver = receiver();
    let (result, output) = outcome(&http(&params(&receiver, "localhost", &trusting("ca.pem"))));
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(output.unwrap(), "in confidence");
    assert_eq!(receiver.only().header("host"), format!("localhost:{}", receiver.port()));
}

#[test]
fn a_receiver_that_nobody_known_vouches_for_is_sent_nothing() {
    let receiver = receiver();
    for (host, ca, words) in [
        ("localhost", "", "UnknownIssuer"),
        ("localhost", &*trusting("other-ca.pem"), "UnknownIssuer"),
        ("127.0.0.1", &*trusting("ca.pem"), "not valid for name"),
    ] {
        let (retry, error) = failure(&http(&params(&receiver, host, ca)));
        assert!(retry, "{error}");
        let begin = format!("cannot connect to https://{host}:{}: invalid peer certificate", receiver.port());
        assert!(error.starts_with(&begin) && error.contains(words), "{error}");
    }
    assert!(receiver.seen().is_empty());
}

#[test]
fn a_receiver_that_speaks_no_tls_is_an_error_and_not_a_fallback() {
    let plain = Receiver::start(|_| answer("200 OK", ""));
    let (retry, error) = failure(&http(&params(&plain, "localhost", &trusting("ca.pem"))));
    assert!(retry && error.starts_with("cannot connect to https://localhost"), "{error}");
    assert!(plain.seen().is_empty());
}

/// Runs one firing with `SSL_CERT_FILE` set.
fn exec(receiver: &Receiver, authorities: &Path) -> (bool, String) {
    let deployment = Deployment::new(program()).jobs(&format!(
        "[jobs.pay]\nkind = \"http\"\nevery = \"1h\"\nparams = {{ url = \"https://localhost:{}/\" }}",
        receiver.port()
    ));
    // A directory of certificates that this machine names would count as well.
    let done = Command::new(program())
        .arg("--config")
        .arg(deployment.config())
        .args(["exec", "pay"])
        .env("SSL_CERT_DIR", "")
        .env("SSL_CERT_FILE", authorities)
        .output()
        .unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn the_systems_authorities_can_be_named_in_the_environment() {
    let receiver = receiver();
    let (done, said) = exec(&receiver, &data("ca.pem"));
    assert!(done, "{said}");
    let (done, said) = exec(&receiver, &data("other-ca.pem"));
    assert!(!done && said.contains("UnknownIssuer"), "{said}");
    assert_eq!(receiver.seen().len(), 1);
}

#[test]
fn a_system_without_authorities_is_told_before_anything_runs() {
    let receiver = receiver();
    let (done, said) = exec(&receiver, Path::new("/no/such/file.pem"));
    assert!(!done && said.contains("this system has none") && said.contains("ca-certificates"), "{said}");
}
