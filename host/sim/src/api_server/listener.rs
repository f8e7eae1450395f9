//! The server on a loopback address, for kubectl and for controllers in other processes.
//!
//! Never listens on any other address, and lets nobody in without the token.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tower::Service as _;

use super::direct::ApiServer;
use super::service::answer_status;
use super::status::Status;

/// Serves until dropped. Refuses a listener that other machines could reach.
pub async fn serve(server: ApiServer, listener: TcpListener, token: String) -> io::Result<()> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("the simulated API server listens on loopback addresses only, not on {address}"),
        ));
    }
    let expected: Arc<str> = format!("Bearer {token}").into();
    loop {
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            // A connection that broke before it was accepted is the client's affair.
            Err(error) => {
                tracing::debug!(%error, "a connection was not accepted");
                continue;
            }
        };
        let (server, expected) = (server.clone(), expected.clone());
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let mut server = server.clone();
                let is_allowed = is_authorized(&request, &expected);
                async move {
                    if is_allowed {
                        server.call(request).await
                    } else {
                        Ok(answer_status(&Status::unauthorized()))
                    }
                }
            });
            let connection = auto::Builder::new(TokioExecutor::new());
            if let Err(error) = connection.serve_connection(TokioIo::new(stream), service).await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
}

fn is_authorized<B>(request: &Request<B>, expected: &str) -> bool {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
    // Compare all bytes whatever the first difference, so that time tells nothing of the token.
    given.is_some_and(|given| {
        given.len() == expected.len()
            && given.bytes().zip(expected.bytes()).fold(0, |acc, (a, b)| acc | (a ^ b)) == 0
    })
}

/// A kubeconfig that leads to the listener.
pub fn kubeconfig(address: SocketAddr, token: &str) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: mortise\n\
         \x20 cluster:\n\
         \x20   server: http://{address}\n\
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
