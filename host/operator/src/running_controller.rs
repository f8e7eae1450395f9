//! Asking a running controller what it serves beside its metrics: directly, or through the API server.

use std::path::Path;

use anyhow::{Context as _, bail};
use authoring::ControllerAddress;
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::policies::records::RECORDS_PATH;

/// The end of the recording that it makes.
pub(crate) fn recording(address: &ControllerAddress, bytes: u32) -> anyhow::Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(ask(address, &format!("{RECORDS_PATH}?last={bytes}")))
}

/// What stands under a path.
pub(crate) async fn ask(address: &ControllerAddress, path: &str) -> anyhow::Result<Vec<u8>> {
    let ControllerAddress {
        server,
        kubeconfig,
        service,
    } = address;
    match kubeconfig {
        Some(file) => through_api(file, service, path).await,
        None => directly(server, path).await,
    }
}

/// One request of HTTP/1.0, which ends with the connection.
async fn directly(server: &str, path: &str) -> anyhow::Result<Vec<u8>> {
    let server = server.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(server).await.with_context(|| {
        format!("no controller answers at {server}; name its metrics port with --server, or use --kubeconfig")
    })?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {server}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n");
    let body = answer.split_off(end.context("the answer is not HTTP")? + 4);
    let head = String::from_utf8_lossy(&answer);
    let status = head.lines().next().unwrap_or_default();
    if !status.contains(" 200 ") {
        let message = String::from_utf8_lossy(&body);
        bail!("{server} answered {status}: {}", message.trim());
    }
    Ok(body)
}

async fn through_api(file: &Path, service: &str, path: &str) -> anyhow::Result<Vec<u8>> {
    let Some((namespace, service)) = service.split_once('/') else {
        bail!("--service {service}: write NAMESPACE/NAME:PORT");
    };
    let read = kube::config::Kubeconfig::read_from(file)?;
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(read, &options).await?;
    let client = kube::Client::try_from(config)?;
    let uri = format!("/api/v1/namespaces/{namespace}/services/{service}/proxy{path}");
    let request = http::Request::get(uri).body(Body::empty())?;
    let asking = || format!("asking service {namespace}/{service} through the API server");
    let answer = client.send(request).await.with_context(asking)?;
    let status = answer.status();
    let body = answer
        .into_body()
        .collect()
        .await
        .with_context(asking)?
        .to_bytes();
    if !status.is_success() {
        let message = String::from_utf8_lossy(&body);
        bail!(
            "service {namespace}/{service} answered {status}: {}",
            message.trim()
        );
    }
    Ok(body.to_vec())
}
