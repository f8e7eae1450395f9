//! TLS of the metrics port: the certificate of a folder, read again when it changes, or one that the process makes for
//! itself, which hides what is said and does not prove who says it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use std::{fs, io};

use anyhow::Context as _;
use locks::lock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::TlsAcceptor;

/// Names of the files, as Secrets of the type `kubernetes.io/tls` have them.
const FILES: [&str; 2] = ["tls.crt", "tls.key"];

/// Speaks TLS with the certificate of that folder, else with one of its own.
pub(super) fn acceptor(folder: Option<&Path>) -> anyhow::Result<TlsAcceptor> {
    let certificates: Arc<dyn ResolvesServerCert> = match folder {
        Some(folder) => Arc::new(CertificateFolder::read(folder)?),
        None => Arc::new(SingleCertAndKey::from(self_signed()?)),
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn self_signed() -> anyhow::Result<CertifiedKey> {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let names = [host.trim(), "localhost"]
        .into_iter()
        .filter(|it| !it.is_empty());
    let names: Vec<String> = names.map(str::to_owned).collect();
    let made = rcgen::generate_simple_self_signed(names)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    certified(vec![made.cert.into()], key.into())
}

/// Refuses a key that is of another certificate.
fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> anyhow::Result<CertifiedKey> {
    Ok(CertifiedKey::from_der(
        chain,
        key,
        &ring::default_provider(),
    )?)
}

/// A mounted Secret, whose files are replaced while they are in use.
#[derive(Debug)]
struct CertificateFolder {
    path: PathBuf,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    /// Of the files, when they were read.
    changed_at: [Option<SystemTime>; FILES.len()],
}

impl CertificateFolder {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let changed_at = changed_at(path);
        let current = Current {
            key: Arc::new(key_of(path)?),
            changed_at,
        };
        Ok(Self {
            path: path.to_owned(),
            current: Mutex::new(current),
        })
    }

    fn certificate(&self) -> Arc<CertifiedKey> {
        let mut current = lock(&self.current);
        let changed_at = changed_at(&self.path);
        if changed_at != current.changed_at {
            current.changed_at = changed_at;
            match key_of(&self.path) {
                Ok(key) => current.key = Arc::new(key),
                // Of the two files one may have come before the other, which is a change again.
                Err(error) => {
                    tracing::warn!(error = format!("{error:#}"), "the last certificate is kept");
                }
            }
        }
        Arc::clone(&current.key)
    }
}

impl ResolvesServerCert for CertificateFolder {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.certificate())
    }
}

fn changed_at(folder: &Path) -> [Option<SystemTime>; FILES.len()] {
    FILES.map(|file| {
        fs::metadata(folder.join(file))
            .and_then(|it| it.modified())
            .ok()
    })
}

fn key_of(folder: &Path) -> anyhow::Result<CertifiedKey> {
    let [chain, key] = FILES.map(|file| folder.join(file));
    let read = |path: &Path| {
        let text = fs::read(path);
        text.with_context(|| format!("--metrics-cert-dir: {} cannot be read", path.display()))
    };
    let certificates =
        CertificateDer::pem_slice_iter(&read(&chain)?).collect::<Result<Vec<_>, _>>();
    let no_pem = |path: &Path| format!("--metrics-cert-dir: {} is no PEM", path.display());
    let certificates = certificates
        .map_err(io::Error::other)
        .with_context(|| no_pem(&chain))?;
    let private = PrivateKeyDer::from_pem_slice(&read(&key)?).map_err(io::Error::other);
    let private = private.with_context(|| no_pem(&key))?;
    certified(certificates, private)
        .with_context(|| format!("--metrics-cert-dir: {} is of no use", folder.display()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base64::prelude::{BASE64_STANDARD, Engine as _};
    use rcgen::generate_simple_self_signed;

    use super::*;

    fn pem(what: &str, bytes: &[u8]) -> String {
        let text = BASE64_STANDARD.encode(bytes);
        format!("-----BEGIN {what}-----\n{text}\n-----END {what}-----\n")
    }

    /// Certificate and key.
    fn pair() -> [String; 2] {
        let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        [
            pem("CERTIFICATE", made.cert.der()),
            pem("PRIVATE KEY", &made.signing_key.serialize_der()),
        ]
    }

    /// Writes a file of a folder, so many seconds after another.
    fn write(folder: &Path, file: &str, text: &str, seconds: u64) {
        let path = folder.join(file);
        fs::write(&path, text).unwrap();
        let written = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(written)
            .unwrap();
    }

    #[test]
    fn a_certificate_is_read_again_when_it_changes() {
        let folder = std::env::temp_dir().join(format!("mortise-tls-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let told = |told: anyhow::Result<CertificateFolder>| format!("{:#}", told.unwrap_err());
        let missing = told(CertificateFolder::read(&folder));
        assert!(
            missing.contains("--metrics-cert-dir") && missing.contains("tls.crt"),
            "{missing}"
        );

        let ([first, first_key], [second, second_key]) = (pair(), pair());
        write(&folder, FILES[0], &first, 1);
        write(&folder, FILES[1], &second_key, 1);
        let foreign = told(CertificateFolder::read(&folder));
        assert!(foreign.contains("is of no use"), "{foreign}");
        write(&folder, FILES[1], "nothing", 1);
        let text = told(CertificateFolder::read(&folder));
        assert!(text.contains("tls.key is no PEM"), "{text}");

        write(&folder, FILES[1], &first_key, 1);
        let certificates = CertificateFolder::read(&folder).unwrap();
        let leaf = || {
            certificates
                .certificate()
                .end_entity_cert()
                .unwrap()
                .to_vec()
        };
        let old = leaf();
        write(&folder, FILES[0], &second, 2);
        assert_eq!(leaf(), old, "its key is still to come");
        write(&folder, FILES[1], &second_key, 3);
        assert_ne!(leaf(), old);
        fs::remove_dir_all(&folder).unwrap();
        assert_ne!(leaf(), old, "it goes on without the folder");
    }
}
