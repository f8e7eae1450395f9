//! Asking a running controller what it serves beside its metrics: directly, or through the API server.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Where a controller is.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunningController {
    /// Address of the controller's metrics port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    server: String,

    /// Ask through the API server of this kubeconfig instead, at the controller's service
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Namespace and name of the controller's service, and its metrics port
    #[arg(
        long,
        value_name = "NAMESPACE/NAME:PORT",
        default_value = "kube-system/karpenter:http-metrics"
    )]
    service: String,
}

impl RunningController {
    /// What stands under a path.
    pub(crate) async fn ask(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        match &self.kubeconfig {
            Some(file) => through_api(file, &self.service, path).await,
            None => directly(&self.server, path).await,
        }
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
        let told = String::from_utf8_lossy(&body);
        bail!("{server} answered {status}: {}", told.trim());
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
        let told = String::from_utf8_lossy(&body);
        bail!(
            "service {namespace}/{service} answered {status}: {}",
            told.trim()
        );
    }
    Ok(body.to_vec())
}
