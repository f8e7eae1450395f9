//! The simulated API server alone, for trying kubectl on it: `api_server KUBECONFIG_OUT [ADDRESS]`.
//!
//! Nothing runs in it: no scheduler, no kubelets, no controllers.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use api_server::{ApiServer, kubeconfig, serve};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: api_server KUBECONFIG_OUT [ADDRESS]")?;
    let address: SocketAddr = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:0".to_owned())
        .parse()?;
    let listener = TcpListener::bind(address).await?;
    let token = "example";
    std::fs::write(&path, kubeconfig(listener.local_addr()?, token))?;
    eprintln!(
        "listening on {}; kubectl --kubeconfig {path} get nodes",
        listener.local_addr()?
    );
    let server = ApiServer::new(1, Arc::new(jiff::Timestamp::now));
    serve(server, listener, token.to_owned()).await?;
    Ok(())
}
