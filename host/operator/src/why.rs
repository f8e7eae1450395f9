//! `mortise why`: asks the ledger of a running controller about one object.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use state::ledger::{Subject, Why};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cli::{Output, WhyArguments};
use crate::http::LEDGER_PATH;

pub(crate) fn run(arguments: &WhyArguments) -> anyhow::Result<ExitCode> {
    if Subject::parse(&arguments.kind, &arguments.name).is_none() {
        bail!(
            "`{}` is none of node, pod, claim or nodepool",
            arguments.kind
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let path = format!(
        "{LEDGER_PATH}?kind={}&name={}",
        arguments.kind,
        arguments.name.replace('/', "%2F")
    );
    let json = runtime.block_on(async {
        match &arguments.kubeconfig {
            Some(file) => through_api(file, &arguments.service, &path).await,
            None => directly(&arguments.server, &path).await,
        }
    })?;
    let why: Why = serde_json::from_str(&json)
        .with_context(|| format!("the controller answered something else: {json}"))?;
    print(arguments.output, &why)?;
    Ok(if why.steps.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

#[expect(clippy::print_stdout, reason = "the answer is the output")]
fn print(output: Output, why: &Why) -> anyhow::Result<()> {
    match output {
        Output::Json => println!("{}", serde_json::to_string_pretty(why)?),
        Output::Text => print!("{why}"),
    }
    Ok(())
}

/// One request of HTTP/1.0, which ends with the connection.
async fn directly(server: &str, path: &str) -> anyhow::Result<String> {
    let server = server.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(server).await.with_context(|| {
        format!("no controller answers at {server}; name its metrics port with --server, or use --kubeconfig")
    })?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {server}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("the answer is not HTTP")?;
    let status = head.lines().next().unwrap_or_default();
    if !status.contains(" 200 ") {
        bail!("{server} answered {status}: {}", body.trim());
    }
    Ok(body.to_owned())
}

async fn through_api(file: &Path, service: &str, path: &str) -> anyhow::Result<String> {
    let Some((namespace, service)) = service.split_once('/') else {
        bail!("--service {service}: write NAMESPACE/NAME:PORT");
    };
    let read = kube::config::Kubeconfig::read_from(file)?;
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(read, &options).await?;
    let client = kube::Client::try_from(config)?;
    let uri = format!("/api/v1/namespaces/{namespace}/services/{service}/proxy{path}");
    let request = http::Request::get(uri).body(Vec::new())?;
    let answer = client.request_text(request).await;
    answer.with_context(|| format!("asking service {namespace}/{service} through the API server"))
}
