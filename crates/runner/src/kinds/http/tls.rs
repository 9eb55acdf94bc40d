//! TLS: which certificate authorities to trust, and how a connection is encrypted.

use std::fmt::Display;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::config::hinted;

const ADVICE: &str = "install your system's package ca-certificates, set SSL_CERT_FILE, or give the job ca = { file = \"/path/to/ca.pem\" }";

/// Makes encrypted connections to a host that proves its name.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Trusts only the authorities in the PEM text `ca`; without it, those of the system.
    ///
    /// # Errors
    /// A message with a hint, where no certificate is found.
    pub(super) fn trusting(ca: Option<&str>) -> Result<Self, String> {
        match ca {
            Some(pem) => config(&pinned(pem)?).map(Self),
            None => Self::system(),
        }
    }

    /// The system's certificates are read once: there are hundreds of them, and there may be hundreds of jobs.
    fn system() -> Result<Self, String> {
        static SYSTEM: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
        SYSTEM.get_or_init(|| config(&of_system()?)).clone().map(Self)
    }

    /// Encrypts `stream` to `host`, which must prove its name.
    pub(super) async fn wrap(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        TlsConnector::from(self.0.clone()).connect(name, stream).await
    }
}

fn pinned(pem: &str) -> Result<RootCertStore, String> {
    let hint = "write ca = { file = \"/path/to/ca.pem\" }, a file with -----BEGIN CERTIFICATE-----";
    let bad = |error: &dyn Display| {
        hinted(format_args!("ca contains no certificate of an authority: {error}"), hint)
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| bad(&error))?;
        roots.add(certificate).map_err(|error| bad(&error))?;
    }
    if roots.is_empty() { Err(hinted("ca contains no certificate", hint)) } else { Ok(roots) }
}

fn of_system() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Such collections often contain old certificates that the parser does not accept. They are left out.
    roots.add_parsable_certificates(found.certs);
    if !roots.is_empty() {
        return Ok(roots);
    }
    let why = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
    Err(hinted(
        format_args!("https needs certificates of authorities, and this system has none{why}"),
        ADVICE,
    ))
}

/// Names the cryptography provider. The default of the process may be missing, and then rustls panics.
fn config(roots: &RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = builder.with_root_certificates(roots.clone()).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_a_certificate_is_refused_as_ca() {
        for pem in ["", "no pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let refusal = Tls::trusting(Some(pem)).err().unwrap();
            assert!(refusal.contains("ca contains no certificate"), "{pem}: {refusal}");
        }
    }
}
