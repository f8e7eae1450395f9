//! Rights that the API server says are missing: told with what grants them, once a minute for each verb and resource.
//!
//! It stands in the client, so that whatever asks is covered: watches, reconciles, loops, Events and the lease.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use controllers::rbac::{DeniedRequest, RULES};
use http::StatusCode;
use kube::core::Status;
use locks::lock;
use tokio::time::Instant;

/// Whoever tries again every second does not say it every second.
const AT_MOST_EVERY: Duration = Duration::from_mins(1);
/// More verbs and resources than are asked for at all; beyond them all are forgotten.
const REMEMBERED_MAX: usize = 256;

/// What was told lately; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct MissingRights {
    logged: Arc<Mutex<BTreeMap<DeniedRequest, Instant>>>,
}

impl MissingRights {
    /// Says which right is missing, where this is an answer that one is.
    pub(super) fn note_answer(&self, status: StatusCode, body: &Bytes) {
        if status != StatusCode::FORBIDDEN {
            return;
        }
        let refusal = serde_json::from_slice::<Status>(body).ok();
        let denied = refusal.and_then(|it| DeniedRequest::parse(&it.message));
        if let Some(denied) = denied.filter(|it| self.is_news(it, Instant::now())) {
            tracing::error!(
                right = %denied,
                mend = denied.grant(&RULES),
                "the controller lacks a right on the API server"
            );
        }
    }

    /// Whether it was not told lately.
    fn is_news(&self, denied: &DeniedRequest, now: Instant) -> bool {
        let mut logged = lock(&self.logged);
        let last = logged.get(denied);
        if last.is_some_and(|last| now.duration_since(*last) < AT_MOST_EVERY) {
            return false;
        }
        if logged.len() >= REMEMBERED_MAX {
            logged.clear();
        }
        logged.insert(denied.clone(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(verb: &str) -> DeniedRequest {
        let message = format!(
            "nodes is forbidden: User \"u\" cannot {verb} resource \"nodes\" in API group \"\" at the cluster scope"
        );
        DeniedRequest::parse(&message).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn each_right_is_told_once_a_minute() {
        let rights = MissingRights::default();
        let logged = |verb: &str| rights.is_news(&denied(verb), Instant::now());
        assert!(logged("list") && logged("patch"), "each by itself");
        assert!(!logged("list") && !logged("patch"));
        tokio::time::advance(AT_MOST_EVERY / 2).await;
        assert!(!logged("list"));
        tokio::time::advance(AT_MOST_EVERY / 2).await;
        assert!(logged("list"));
        assert!(!rights.clone().is_news(&denied("list"), Instant::now()));
    }
}
