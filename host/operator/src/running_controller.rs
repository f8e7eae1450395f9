//! Asking a running controller what it serves beside its metrics: directly, or through the API server.

use std::io;
use std::path::Path;

use anyhow::{Context as _, bail};
use authoring::ControllerAddress;
use http_body_util::BodyExt as _;
use kube::client::Body;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::policies::records::RECORDS_PATH;

/// The end of the recording that it makes.
pub(crate) fn recording(address: &ControllerAddress, bytes: u32) -> anyhow::Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(ask(address, &format!("{RECORDS_PATH}?last={bytes}")))
}

/// Body that stands under a path of the metrics port.
pub(crate) async fn ask(address: &ControllerAddress, path: &str) -> anyhow::Result<Vec<u8>> {
    let Destination {
        config,
        prefix,
        name,
    } = match &address.kubeconfig {
        Some(file) => through_api(file, &address.service).await?,
        None => directly(address)?,
    };
    let request = http::Request::get(format!("{prefix}{path}")).body(Body::empty())?;
    let asked = kube::Client::try_from(config)?.send(request).await;
    let answer = asked.with_context(|| {
        format!("{name} does not answer; name the controller's metrics port with --server, or use --kubeconfig")
    })?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    if !status.is_success() {
        let message = String::from_utf8_lossy(&body);
        bail!("{name} answered {status}: {}", message.trim());
    }
    Ok(body.to_vec())
}

/// Where to ask, and what comes before the path there.
struct Destination {
    config: kube::Config,
    prefix: String,
    /// Name of the address, for people.
    name: String,
}

fn directly(address: &ControllerAddress) -> anyhow::Result<Destination> {
    let ControllerAddress {
        server,
        token,
        certificate_authority,
        insecure_skip_tls_verify,
        kubeconfig: _,
        service: _,
    } = address;
    let server = server.trim_end_matches('/');
    let url = match server.split_once("://") {
        Some(_) => server.to_owned(),
        None => format!("http://{server}"),
    };
    let url = url
        .parse()
        .with_context(|| format!("--server {server} is no address"))?;
    let mut config = kube::Config::new(url);
    config.default_retry = false;
    config.accept_invalid_certs = *insecure_skip_tls_verify;
    config.auth_info.token = token.clone().map(Into::into);
    if let Some(file) = certificate_authority {
        let certificates = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
        let certificates: Vec<CertificateDer<'_>> =
            certificates.map_err(io::Error::other).with_context(|| {
                format!("--certificate-authority {} cannot be used", file.display())
            })?;
        config.root_cert = Some(certificates.iter().map(|it| it.to_vec()).collect());
    }
    Ok(Destination {
        config,
        prefix: String::new(),
        name: server.to_owned(),
    })
}

async fn through_api(file: &Path, service: &str) -> anyhow::Result<Destination> {
    let Some((namespace, name)) = service.split_once('/') else {
        bail!("--service {service}: write NAMESPACE/NAME:PORT");
    };
    let read = kube::config::Kubeconfig::read_from(file)?;
    let options = kube::config::KubeConfigOptions::default();
    Ok(Destination {
        config: kube::Config::from_custom_kubeconfig(read, &options).await?,
        prefix: format!("/api/v1/namespaces/{namespace}/services/{name}/proxy"),
        name: format!("service {service}, through the API server,"),
    })
}
