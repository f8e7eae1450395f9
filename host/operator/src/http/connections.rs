//! Connections of a server: so many at one time and no more, and none that asks for nothing, or reads nothing of its
//! answer, for long.
//!
//! Whoever reaches a port may open connections and leave them; each would cost the controller a file and memory. What
//! is asked and answered is no business of this file.

mod impatient;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use self::impatient::ImpatientStream;

/// Pause after a connection that could not be accepted, such as for want of files.
const PAUSE: Duration = Duration::from_secs(1);

/// What a server keeps to.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// Connections at one time; more wait in the kernel until one closes.
    pub(super) at_once: usize,
    /// How long the head of a request may take to come, and TLS before it, how long a connection may be idle, and how
    /// long the other side may take nothing of an answer.
    pub(super) patience: Duration,
}

impl ConnectionLimits {
    /// Probes, scrapes and people with a port-forward are a handful; who scrapes every minute keeps its connection.
    pub(super) const USUAL: Self = Self {
        at_once: 64,
        patience: Duration::from_secs(90),
    };
}

/// Serves for ever, by TLS where there is some.
pub(super) async fn serve_within(
    limits: ConnectionLimits,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(limits.at_once));
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let place = place.map_err(io::Error::other)?;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "a connection was not accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let (tls, router) = (tls.clone(), router.clone());
        tokio::spawn(async move {
            let served = match tls {
                None => answer(limits, stream, router).await,
                Some(tls) => {
                    match tokio::time::timeout(limits.patience, tls.accept(stream)).await {
                        Ok(Ok(stream)) => answer(limits, stream, router).await,
                        Ok(Err(error)) => Err(error),
                        Err(late) => Err(late.into()),
                    }
                }
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
}

/// Answers until the other side has no more to ask.
async fn answer<S>(limits: ConnectionLimits, stream: S, router: Router) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = TowerToHyperService::new(router);
    // What tells HTTP/1 from HTTP/2 waits for ever for the first bytes, and nobody who scrapes or probes needs HTTP/2.
    let mut server = auto::Builder::new(TokioExecutor::new()).http1_only();
    let timer = TokioTimer::new();
    server
        .http1()
        .timer(timer)
        .header_read_timeout(limits.patience);
    let stream = TokioIo::new(ImpatientStream::new(stream, limits.patience));
    let served = server.serve_connection(stream, service).await;
    served.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Instant;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn who_says_or_reads_nothing_makes_way_for_who_asks() {
        let limits = ConnectionLimits {
            at_once: 1,
            patience: Duration::from_millis(200),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        // More than the kernel holds for who does not read.
        let large = get(|| async { vec![b'x'; 1 << 26] });
        let router = Router::new()
            .route("/", get(|| async { "here" }))
            .route("/large", large);
        let server = tokio::spawn(serve_within(limits, listener, None, router));
        for head in [
            "",
            "GET / HTTP/1.1\r\nHost: a\r\n",
            "GET /large HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            let started = Instant::now();
            let mut silent = TcpStream::connect(address).await.unwrap();
            silent.write_all(head.as_bytes()).await.unwrap();
            let mut asking = TcpStream::connect(address).await.unwrap();
            let whole = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            asking.write_all(whole.as_bytes()).await.unwrap();
            let mut answer = String::new();
            asking.read_to_string(&mut answer).await.unwrap();
            assert!(
                answer.starts_with("HTTP/1.1 200") && answer.ends_with("here"),
                "{answer}"
            );
            assert!(started.elapsed() >= limits.patience, "one at a time");
        }
        server.abort();
    }
}
