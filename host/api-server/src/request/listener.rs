//! The server on a loopback address, for kubectl and for controllers in other processes.
//!
//! Never listens on any other address, lets nobody in without the token, and has so many connections at one time and no
//! more. kubectl sends no credentials over plain HTTP, so the token may also stand as the first step of the path: the
//! kubeconfig has it there.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::Service as _;

use crate::api_server::ApiServer;
use crate::request::answer::answer_status;
use crate::status::StatusError;

/// Connections at one time; more wait in the kernel until one closes. Each watch has one, so that a controller has
/// dozens, and all of them are fewer than the files that a process may usually have open.
const CONNECTIONS_MAX: usize = 512;

/// Pause after a connection that could not be accepted, such as for want of files.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves until dropped. Refuses a listener that other machines could reach.
pub async fn serve(server: ApiServer, listener: TcpListener, token: String) -> io::Result<()> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "the simulated API server listens on loopback addresses only, not on {address}"
            ),
        ));
    }
    serve_within(CONNECTIONS_MAX, server, listener, token.into()).await
}

async fn serve_within(
    connections_max: usize,
    server: ApiServer,
    listener: TcpListener,
    token: Arc<str>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(connections_max));
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let place = place.map_err(io::Error::other)?;
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a connection was not accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // Watches send small lines that somebody waits for; without this they linger in the kernel.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
        let (server, token) = (server.clone(), token.clone());
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let mut server = server.clone();
                let admitted = admit(request, &token);
                async move {
                    match admitted {
                        Some(request) => server.call(request).await,
                        None => Ok(answer_status(&StatusError::unauthorized())),
                    }
                }
            });
            let connection = auto::Builder::new(TokioExecutor::new());
            if let Err(error) = connection
                .serve_connection(TokioIo::new(stream), service)
                .await
            {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
}

/// What stood before the API's own path; links in answers must repeat it.
#[derive(Debug, Clone)]
pub(crate) struct PathPrefix(pub(crate) String);

/// The request as the API sees it, if it carries the token in its path or its header.
fn admit<B>(mut request: Request<B>, token: &str) -> Option<Request<B>> {
    let path = request.uri().path_and_query().map_or("/", |p| p.as_str());
    if let Some((first, rest)) = path.trim_start_matches('/').split_once('/')
        && is_same(first, token)
    {
        let inner: http::Uri = format!("/{rest}").parse().ok()?;
        *request.uri_mut() = inner;
        request
            .extensions_mut()
            .insert(PathPrefix(format!("/{token}")));
        return Some(request);
    }
    // As in a cluster, anybody may ask whether the server is there.
    if matches!(
        request.uri().path(),
        "/healthz" | "/livez" | "/readyz" | "/version"
    ) {
        return Some(request);
    }
    let given = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|v| v.to_str().ok());
    let is_bearer = given
        .and_then(|g| g.strip_prefix("Bearer "))
        .is_some_and(|g| is_same(g, token));
    is_bearer.then_some(request)
}

/// Compares all bytes whatever the first difference, so that time tells nothing of the token.
fn is_same(given: &str, token: &str) -> bool {
    given.len() == token.len()
        && given
            .bytes()
            .zip(token.bytes())
            .fold(0, |acc, (a, b)| acc | (a ^ b))
            == 0
}

/// A kubeconfig that leads to the listener.
pub fn kubeconfig(address: SocketAddr, token: &str) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: mortise\n\
         \x20 cluster:\n\
         \x20   server: http://{address}/{token}\n\
         users:\n\
         - name: mortise\n\
         \x20 user:\n\
         \x20   token: {token}\n\
         contexts:\n\
         - name: mortise\n\
         \x20 context:\n\
         \x20   cluster: mortise\n\
         \x20   user: mortise\n\
         \x20   namespace: default\n\
         current-context: mortise\n"
    )
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn who_finds_no_place_waits_until_somebody_goes() {
        let server = ApiServer::new(7, Arc::new(|| Timestamp::UNIX_EPOCH));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(serve_within(1, server, listener, "secret".into()));
        let first = TcpStream::connect(address).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        let request = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        second.write_all(request).await.unwrap();
        let mut answer = String::new();
        let early = second.read_to_string(&mut answer);
        let early = tokio::time::timeout(Duration::from_millis(200), early).await;
        assert!(early.is_err(), "one at a time: {answer}");
        drop(first);
        second.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        serving.abort();
    }
}
