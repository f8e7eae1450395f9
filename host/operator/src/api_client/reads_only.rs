//! A client that only reads: what is no plain GET is refused before it is sent, and both are counted.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{Method, Request, header};

/// Why a request was not sent.
#[derive(Debug)]
pub(crate) struct NotRead;

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this client only reads: the request was not sent")
    }
}

impl Error for NotRead {}

#[derive(Debug, Default)]
struct ReadCounts {
    reads: AtomicU64,
    refused: AtomicU64,
}

/// The rule, and how often it held; clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadsOnly {
    counts: Arc<ReadCounts>,
}

impl ReadsOnly {
    /// Whether a request may be sent. A GET that asks for another protocol may do anything, as `kubectl exec` does.
    pub(super) fn admit<B>(&self, request: &Request<B>) -> Result<(), NotRead> {
        let is_read = request.method() == Method::GET;
        if is_read && !request.headers().contains_key(header::UPGRADE) {
            self.counts.reads.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        Err(NotRead)
    }

    /// Number of requests that were sent, and of those that were not.
    pub(crate) fn requests(&self) -> shadow::Requests {
        shadow::Requests {
            reads: self.counts.reads.load(Ordering::Relaxed),
            refused: self.counts.refused.load(Ordering::Relaxed),
        }
    }
}
