//! Leader election on a Lease, so that two replicas never decide at once.
//!
//! The times are those of client-go as Karpenter uses them: a lease of 15 s, renewed within 10 s, tried
//! every 2 s. Losing the lease ends the process, because a successor may already be deciding.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cloudprovider::Clock;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};

const LEASE_SECONDS: i32 = 15;
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// One candidate for the lease.
pub(crate) struct Election {
    pub(crate) leases: Api<Lease>,
    pub(crate) lease_name: String,
    pub(crate) identity: String,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Election {
    /// Returns once this process leads.
    pub(crate) async fn acquire(&self) {
        loop {
            match self.try_hold().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(lease = self.lease_name, %error, "the lease could not be read");
                }
            }
            tokio::time::sleep(RETRY_PERIOD).await;
        }
    }

    /// Renews until that fails for longer than the deadline.
    pub(crate) async fn keep(&self) -> anyhow::Result<()> {
        let mut renewed = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(RETRY_PERIOD).await;
            match self.try_hold().await {
                Ok(true) => renewed = tokio::time::Instant::now(),
                Ok(false) => bail!("the lease {} was taken by another replica", self.lease_name),
                Err(error) if renewed.elapsed() > RENEW_DEADLINE => {
                    return Err(error).with_context(|| {
                        format!("the lease {} could not be renewed", self.lease_name)
                    });
                }
                Err(error) => {
                    tracing::warn!(lease = self.lease_name, %error, "the lease was not renewed; trying again");
                }
            }
        }
    }

    /// Takes or renews the lease; false when another holds it.
    async fn try_hold(&self) -> anyhow::Result<bool> {
        let now = self.clock.now();
        let Some(lease) = self.leases.get_opt(&self.lease_name).await? else {
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some(self.lease_name.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(self.spec(None, now)),
            };
            return taken(self.leases.create(&PostParams::default(), &lease).await);
        };
        let held = lease.spec.clone().unwrap_or_default();
        if !may_take(&held, &self.identity, now) {
            return Ok(false);
        }
        let lease = Lease {
            spec: Some(self.spec(Some(&held), now)),
            ..lease
        };
        taken(
            self.leases
                .replace(&self.lease_name, &PostParams::default(), &lease)
                .await,
        )
    }

    fn spec(&self, held: Option<&LeaseSpec>, now: Timestamp) -> LeaseSpec {
        let is_ours = held
            .is_some_and(|held| held.holder_identity.as_deref() == Some(self.identity.as_str()));
        let transitions = held.and_then(|held| held.lease_transitions).unwrap_or(0);
        let acquired = held
            .and_then(|held| held.acquire_time.clone())
            .filter(|_| is_ours);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            acquire_time: acquired.or(Some(MicroTime(now))),
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(if is_ours || held.is_none() {
                transitions
            } else {
                transitions + 1
            }),
            ..LeaseSpec::default()
        }
    }
}

/// Whether the lease is ours, free or expired.
fn may_take(held: &LeaseSpec, identity: &str, now: Timestamp) -> bool {
    let holder = held.holder_identity.as_deref().unwrap_or_default();
    if holder.is_empty() || holder == identity {
        return true;
    }
    let seconds = i64::from(held.lease_duration_seconds.unwrap_or(LEASE_SECONDS));
    let renewed = held.renew_time.as_ref().map(|time| time.0);
    renewed.is_none_or(|renewed| now.duration_since(renewed) > SignedDuration::from_secs(seconds))
}

/// A conflict means that another replica was faster, which is an answer and no fault.
fn taken<T>(outcome: kube::Result<T>) -> anyhow::Result<bool> {
    match outcome {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_by(holder: &str, renewed_seconds: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            renew_time: Some(MicroTime(Timestamp::from_second(renewed_seconds).unwrap())),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_is_taken_when_free_ours_or_expired() {
        let now = Timestamp::from_second(100).unwrap();
        assert!(may_take(&LeaseSpec::default(), "a", now));
        assert!(may_take(&held_by("a", 99), "a", now));
        assert!(!may_take(&held_by("b", 99), "a", now));
        assert!(may_take(&held_by("b", 84), "a", now));
    }
}
