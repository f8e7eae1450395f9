//! Leader election on a Lease, so that two replicas never decide at once.
//!
//! The times are those of client-go as Karpenter uses them: a lease of 15 s, renewed within 10 s, tried every 2 s.
//! Losing the lease ends the process, because a successor may already be deciding. No clock but the own monotonic one
//! is believed: another's lease is over when this process has seen no change of it for as long as it lasts, and the own
//! one 10 s after the last renewal was asked for, whether an answer comes or not. Answers to client-go's
//! `tools/leaderelection/leaderelection.go`.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context as _, bail};
use cloudprovider::Clock;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use locks::lock;
use prometheus_client::metrics::counter::Counter;
use tokio::time::{Instant, timeout, timeout_at};

use crate::fence::Fence;

const LEASE_SECONDS: i32 = 15;
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// How long a process that stops waits for the answer to its release.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// Where the lease is, and who wants it.
pub(crate) struct LeaderElector {
    /// By a client that no fence and no pace stands before.
    pub(crate) leases: Api<Lease>,
    pub(crate) lease_name: String,
    /// Unlike that of any other process, this one's predecessor in the same container included.
    pub(crate) identity: String,
    pub(crate) clock: Arc<dyn Clock>,
    /// Opened for as long as the lease is held.
    pub(crate) fence: Fence,
    /// Renewals for which the lease had to be read first, because it was not as it was left.
    pub(crate) slow_renewals: Counter,
}

/// One candidate for the lease, and what it knows of it.
pub(crate) struct Election {
    candidate: LeaderElector,
    seen: Mutex<Option<SeenLease>>,
}

/// The lease as it was read or written last.
#[derive(Clone)]
struct SeenLease {
    lease: Lease,
    /// When it was first seen to be so.
    since: Instant,
}

/// Result of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Try {
    Held,
    HeldByAnother,
    /// Somebody wrote the lease at the same time.
    Raced,
}

impl Election {
    pub(crate) fn new(candidate: LeaderElector) -> Self {
        Self {
            candidate,
            seen: Mutex::new(None),
        }
    }

    /// Name of the lease, for logs.
    pub(crate) fn lease_name(&self) -> &str {
        &self.candidate.lease_name
    }

    /// Returns once this process leads: until when, unless it renews.
    pub(crate) async fn acquire(&self) -> Instant {
        let lease = self.lease_name();
        loop {
            let asked = Instant::now();
            match timeout(RENEW_DEADLINE, self.try_hold()).await {
                Ok(Ok(Try::Held)) => return self.holds_since(asked),
                Ok(Ok(Try::HeldByAnother | Try::Raced)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(
                        lease,
                        error = format!("{error:#}"),
                        "the lease could not be taken; trying again"
                    );
                }
                Err(_) => tracing::warn!(lease, "the API server does not tell of the lease"),
            }
            tokio::time::sleep(RETRY_PERIOD).await;
        }
    }

    /// Renews what is held until then; ends when the lease is lost or may be.
    pub(crate) async fn keep(&self, mut until: Instant) -> anyhow::Result<()> {
        let lease = self.lease_name();
        loop {
            tokio::time::sleep_until(until.min(Instant::now() + RETRY_PERIOD)).await;
            let asked = Instant::now();
            if asked >= until {
                bail!("the lease {lease} was not renewed within {RENEW_DEADLINE:?}");
            }
            match timeout_at(until, self.try_hold()).await {
                Ok(Ok(Try::Held)) => until = self.holds_since(asked),
                Ok(Ok(Try::HeldByAnother)) => {
                    self.candidate.fence.close();
                    bail!("the lease {lease} was taken by another replica");
                }
                Ok(Ok(Try::Raced)) => {}
                Ok(Err(error)) => {
                    let error = format!("{error:#}");
                    tracing::warn!(lease, error, "the lease was not renewed; trying again");
                }
                Err(_) => tracing::warn!(lease, "the lease was not renewed; no answer in time"),
            }
        }
    }

    /// Gives the lease up, if it is held, so that nobody has to wait for its end. Nothing is changed from then on.
    pub(crate) async fn release(&self) {
        self.candidate.fence.close();
        let Some(SeenLease { mut lease, .. }) =
            self.lock_seen().clone().filter(|it| self.is_ours(it))
        else {
            return;
        };
        let now = Some(MicroTime(self.candidate.clock.now()));
        lease.spec = Some(LeaseSpec {
            holder_identity: None,
            // Zero is not allowed.
            lease_duration_seconds: Some(1),
            acquire_time: now.clone(),
            renew_time: now,
            ..lease.spec.unwrap_or_default()
        });
        let written = timeout(RELEASE_TIMEOUT, self.write(lease)).await;
        match written {
            Ok(Ok(Try::Held)) => tracing::info!(lease = self.lease_name(), "the lease is released"),
            Ok(Ok(Try::HeldByAnother | Try::Raced)) => {
                self.warn_of_release("it was written by another");
            }
            Ok(Err(error)) => self.warn_of_release(&format!("{error:#}")),
            Err(_) => self.warn_of_release("no answer in time"),
        }
    }

    fn warn_of_release(&self, error: &str) {
        let lease = self.lease_name();
        tracing::warn!(
            lease,
            error,
            "the lease was not released; others wait for its end"
        );
    }

    /// What is renewed lasts from when it was asked for: the answer may have taken its time.
    fn holds_since(&self, asked: Instant) -> Instant {
        let until = asked + RENEW_DEADLINE;
        self.candidate.fence.hold_until(until);
        until
    }

    /// Takes or renews the lease.
    async fn try_hold(&self) -> anyhow::Result<Try> {
        let known = self.lock_seen().clone().filter(|it| self.is_ours(it));
        if let Some(SeenLease { lease, .. }) = known
            && self.write(self.held(lease)).await? == Try::Held
        {
            return Ok(Try::Held);
        }
        let LeaderElector {
            leases, lease_name, ..
        } = &self.candidate;
        let read = leases.get_opt(lease_name).await;
        let Some(lease) = read.context("reading it")? else {
            let name = Some(lease_name.clone());
            return self.create(name).await;
        };
        let unchanged_for = self.note(&lease).elapsed();
        let spec = lease.spec.as_ref();
        if spec.is_some_and(|it| !may_take(it, &self.candidate.identity, unchanged_for)) {
            return Ok(Try::HeldByAnother);
        }
        let identity = Some(self.candidate.identity.as_str());
        if spec.is_some_and(|it| it.holder_identity.as_deref() == identity) {
            self.candidate.slow_renewals.inc();
        }
        self.write(self.held(lease)).await
    }

    async fn create(&self, name: Option<String>) -> anyhow::Result<Try> {
        let lease = self.held(Lease {
            metadata: ObjectMeta {
                name,
                ..ObjectMeta::default()
            },
            spec: None,
        });
        let leases = &self.candidate.leases;
        let created = leases.create(&PostParams::default(), &lease).await;
        match created {
            // What is to be made cannot be missing; what it is made in can.
            Err(kube::Error::Api(status)) if status.code == 404 => {
                bail!(no_namespace(leases.namespace().unwrap_or_default()))
            }
            known => self.written(known),
        }
    }

    /// Writes the lease unless somebody else has since.
    async fn write(&self, lease: Lease) -> anyhow::Result<Try> {
        let LeaderElector {
            leases, lease_name, ..
        } = &self.candidate;
        let params = PostParams::default();
        self.written(leases.replace(lease_name, &params, &lease).await)
    }

    /// A conflict means that another was faster, which is an answer and no fault.
    fn written(&self, outcome: kube::Result<Lease>) -> anyhow::Result<Try> {
        match outcome {
            Ok(lease) => {
                self.note(&lease);
                Ok(Try::Held)
            }
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {
                *self.lock_seen() = None;
                Ok(Try::Raced)
            }
            Err(error) => Err(error).context("writing it"),
        }
    }

    /// Keeps what was read or written; since when it is so.
    fn note(&self, lease: &Lease) -> Instant {
        let mut seen = self.lock_seen();
        let known = seen.as_ref().filter(|it| it.lease.spec == lease.spec);
        let since = known.map_or_else(Instant::now, |it| it.since);
        *seen = Some(SeenLease {
            lease: lease.clone(),
            since,
        });
        since
    }

    fn is_ours(&self, seen: &SeenLease) -> bool {
        let holder = seen
            .lease
            .spec
            .as_ref()
            .and_then(|it| it.holder_identity.as_deref());
        holder == Some(self.candidate.identity.as_str())
    }

    fn held(&self, lease: Lease) -> Lease {
        let LeaderElector {
            identity, clock, ..
        } = &self.candidate;
        Lease {
            spec: Some(spec(lease.spec.as_ref(), identity, clock.now())),
            ..lease
        }
    }

    fn lock_seen(&self) -> MutexGuard<'_, Option<SeenLease>> {
        lock(&self.seen)
    }
}

/// What is told where there is no place for the lease.
fn no_namespace(namespace: &str) -> String {
    format!(
        "the namespace {namespace} of the lease does not exist: make it with `kubectl create namespace {namespace}`, or \
         name another by --leader-election-namespace (LEADER_ELECTION_NAMESPACE), which is --system-namespace \
         (SYSTEM_NAMESPACE) where it is not given"
    )
}

/// The lease in the hands of `identity`, after what it was.
fn spec(before: Option<&LeaseSpec>, identity: &str, now: Timestamp) -> LeaseSpec {
    let is_ours = before.is_some_and(|it| it.holder_identity.as_deref() == Some(identity));
    let transitions = before.and_then(|it| it.lease_transitions).unwrap_or(0);
    let acquired = before.and_then(|it| it.acquire_time.clone());
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(LEASE_SECONDS),
        acquire_time: acquired.filter(|_| is_ours).or(Some(MicroTime(now))),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(transitions + i32::from(before.is_some() && !is_ours)),
        ..LeaseSpec::default()
    }
}

/// Whether the lease is ours, free, or over: nobody renewed it for as long as it lasts.
fn may_take(held: &LeaseSpec, identity: &str, unchanged_for: Duration) -> bool {
    let holder = held.holder_identity.as_deref().unwrap_or_default();
    let seconds = held.lease_duration_seconds.unwrap_or(LEASE_SECONDS);
    let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    holder.is_empty() || holder == identity || unchanged_for > lasts
}

#[cfg(test)]
mod tests;
