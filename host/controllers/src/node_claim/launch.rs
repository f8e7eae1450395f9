//! Launches the instance of a claim: asks the ranking policy for the order of offerings, then the provider.
//!
//! Answers to `pkg/controllers/nodeclaim/lifecycle/launch.go`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use apis::conditions::{self, Conditioned as _, Status, reason};
use apis::{Ec2NodeClass, NodeClaim, NodePool, labels};
use cloudprovider::{
    CloudProvider, CloudProviderError, LaunchAttempt, LaunchRecord, LaunchRequest, Launched,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use scheduling::pod::Pod;
use scheduling::ranking::{Exclusions, LaunchRanking, RankedLaunch, rank_for_launch};
use state::provisioning::PoolTypes;

use crate::error::{ErrorClass, ReconcileError, ignore_not_found};
use crate::node_claim::entries::{ClaimEntry, LaunchFailure};
use crate::node_claim::{LAUNCH_TIMEOUT, NodeClaimExt, remaining, uid};
use crate::recorder::shorten;
use crate::references;
use crate::runtime::Action;
use crate::shell::Shell;

/// A condition message of a failed launch is cut here.
const MESSAGE_BYTES_MAX: usize = 300;
/// Times that a launched claim is written again after a conflict.
const WRITES_MAX: usize = 3;

/// The cloud lists an instance this long after its launch at the latest.
const LISTED_AFTER: Duration = Duration::from_mins(2);

/// The launching part of the lifecycle controller.
pub(crate) struct Launcher {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    /// By UID of the claim.
    untold: Mutex<BTreeMap<String, Untold>>,
}

/// An instance that runs and of which its claim could not be told yet. It would be found again by its token; this
/// spares the cloud the question.
struct Untold {
    launched: Launched,
    ranked: RankedLaunch,
    at: Timestamp,
}

/// What the answer of the provider means for the claim.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// The instance runs.
    Launched(Box<Launched>),
    /// The claim cannot be launched: it is deleted and its pods are solved again.
    Delete {
        cause: LaunchFailure,
        message: String,
    },
    /// The launch is tried again.
    Retry {
        reason: String,
        message: String,
        error: CloudProviderError,
    },
}

/// A claim that bears the attempt to launch its instance, for whoever comes after this process.
struct ClaimRecord {
    shell: Arc<Shell>,
    /// As last written.
    claim: Mutex<Arc<NodeClaim>>,
}

impl fmt::Debug for ClaimRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.claim().name_any();
        f.debug_tuple("ClaimRecord").field(&name).finish()
    }
}

impl ClaimRecord {
    fn claim(&self) -> Arc<NodeClaim> {
        let claim = self.claim.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&claim)
    }

    async fn write(
        &self,
        before: &NodeClaim,
        attempt: &LaunchAttempt,
    ) -> Result<(), ReconcileError> {
        let mut after = before.clone();
        let key = labels::LAUNCH_ANNOTATION.to_owned();
        after.annotations_mut().insert(key, attempt.to_annotation());
        let written = self.shell.writer.write_claim(before, &after).await?;
        let is_going = written.metadata.deletion_timestamp.is_some();
        *self.claim.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(written);
        if is_going {
            let message = "the nodeclaim is being deleted".to_owned();
            return Err(ReconcileError::Terminal(message));
        }
        Ok(())
    }

    /// The claim as it is now, if it still is what this launch began with.
    async fn fresh(&self, before: &NodeClaim) -> Result<NodeClaim, ReconcileError> {
        let claims = self.shell.writer.api::<NodeClaim>();
        let fresh = claims.get_opt(&before.name_any()).await?;
        let is_same = |it: &NodeClaim| {
            it.metadata.uid == before.metadata.uid
                && it.provider_id().is_none()
                && LaunchAttempt::of(it) == LaunchAttempt::of(before)
        };
        fresh.filter(is_same).ok_or_else(|| {
            ReconcileError::Terminal("the nodeclaim was launched by somebody else".to_owned())
        })
    }
}

#[async_trait::async_trait]
impl LaunchRecord for ClaimRecord {
    async fn begin(&self, attempt: &LaunchAttempt) -> Result<(), CloudProviderError> {
        let mut before = self.claim();
        let mut result = self.write(&before, attempt).await;
        for _ in 0..WRITES_MAX {
            if !matches!(&result, Err(error) if error.class() == ErrorClass::Retry) {
                break;
            }
            result = match self.fresh(&before).await {
                Ok(fresh) => {
                    before = Arc::new(fresh);
                    self.write(&before, attempt).await
                }
                Err(error) => Err(error),
            };
        }
        result.map_err(|error| {
            CloudProviderError::Other(format!("the launch could not be written down: {error}"))
        })
    }

    fn is_owned(&self, provider_id: &str) -> bool {
        let snapshot = self.shell.model.snapshot();
        let known = snapshot.node_by_provider_id(provider_id);
        known.is_some_and(|it| it.claim.is_some())
    }
}

impl Launcher {
    pub(crate) fn new(shell: Arc<Shell>, provider: Arc<dyn CloudProvider>) -> Self {
        Self {
            shell,
            provider,
            untold: Mutex::default(),
        }
    }

    pub(crate) async fn launch(&self, claim: &Arc<NodeClaim>) -> Result<Action, ReconcileError> {
        let untold = self.untold().remove(&uid(claim));
        let record = Arc::new(ClaimRecord {
            shell: Arc::clone(&self.shell),
            claim: Mutex::new(Arc::clone(claim)),
        });
        let (answer, ranked) = match untold {
            Some(Untold {
                launched, ranked, ..
            }) => (Ok(launched), ranked),
            None => self.ask(claim, &record).await?,
        };
        let verdict = decide(answer);
        let applied = self.apply(&record.claim(), verdict, &ranked).await;
        // From here on the claim says itself what it is, or that it is not.
        self.shell.launching.settled(&claim.name_any());
        applied
    }

    fn untold(&self) -> MutexGuard<'_, BTreeMap<String, Untold>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, claim: &NodeClaim, launched: Launched, ranked: RankedLaunch) {
        let at = self.shell.now();
        // Claims older than that are given up, with or without an instance.
        let may_matter = |it: &Untold| at.duration_since(it.at).unsigned_abs() <= LAUNCH_TIMEOUT;
        let mut untold = self.untold();
        untold.retain(|_, it| may_matter(it));
        let it = Untold {
            launched,
            ranked,
            at,
        };
        untold.insert(uid(claim), it);
    }

    /// Never waits longer than the claim may still take to launch. It fails where the cloud was not even asked and
    /// nothing is known of the claim that was not known before.
    async fn ask(
        &self,
        claim: &Arc<NodeClaim>,
        record: &Arc<ClaimRecord>,
    ) -> Result<(Result<Launched, CloudProviderError>, RankedLaunch), ReconcileError> {
        let (request, ranked) = match self.request(claim, record).await {
            Ok(found) => found,
            Err(ReconcileError::Provider(error)) => {
                return Ok((Err(error), RankedLaunch::default()));
            }
            Err(error) => return Err(error),
        };
        // What was launched before is there whatever can be bought now.
        if ranked.offerings.is_empty() && LaunchAttempt::of(claim).is_none() {
            let message = nothing_left(&ranked.exclusions());
            let error = CloudProviderError::InsufficientCapacity(message);
            return Ok((Err(error), ranked));
        }
        let since = claim.condition_since(conditions::LAUNCHED);
        let limit = remaining(since, LAUNCH_TIMEOUT, self.shell.now());
        let limit = limit.max(Duration::from_secs(1));
        let answer = tokio::time::timeout(limit, self.provider.create(request)).await;
        let slow = || {
            Err(CloudProviderError::Other(
                "the cloud did not answer in time".to_owned(),
            ))
        };
        Ok((answer.unwrap_or_else(|_| slow()), ranked))
    }

    async fn request(
        &self,
        claim: &Arc<NodeClaim>,
        record: &Arc<ClaimRecord>,
    ) -> Result<(LaunchRequest, RankedLaunch), ReconcileError> {
        let name = &claim.spec.node_class_ref.name;
        let node_class = self
            .shell
            .model
            .node_class(name)
            .filter(|class| class.metadata.deletion_timestamp.is_none())
            .ok_or_else(|| {
                CloudProviderError::NodeClassNotReady(format!("{name} does not exist"))
            })?;
        check_ready(&node_class, name)?;
        let pool = self.shell.model.node_pool(claim.pool_name());
        let pool = pool.unwrap_or_else(|| Arc::new(pool_of_standalone(claim)));
        let instance_types = self.provider.instance_types(&pool, &node_class).await?;
        let types = PoolTypes {
            free_addresses: self.provider.free_addresses(&node_class).await,
            node_pool: pool,
            instance_types: Arc::clone(&instance_types),
        };
        let ranked = self.rank(claim, &types).await?;
        let request = LaunchRequest {
            node_claim: Arc::clone(claim),
            record: Arc::<ClaimRecord>::clone(record) as _,
            node_class,
            offerings: ranked.offerings.clone(),
            order_differs_from_price: ranked.order_differs_from_price,
            instance_types,
        };
        Ok((request, ranked))
    }

    /// Asks the ranking policy in which order the offerings of a claim are to be tried.
    async fn rank(
        &self,
        claim: &Arc<NodeClaim>,
        pool: &PoolTypes,
    ) -> Result<RankedLaunch, ReconcileError> {
        let name = claim.name_any();
        let snapshot = self.shell.model.snapshot();
        let keys = self.shell.pods.pods_for(&name);
        let pods = keys.iter().filter_map(|it| snapshot.pod(it).cloned());
        let pods: Vec<Arc<Pod>> = pods.collect();
        let owners = snapshot.owners(pods.iter());
        let mut usage = snapshot.usage();
        drop(snapshot);
        self.shell.launching.add_to(&mut usage, &name);
        let settings = &self.shell.settings;
        let (now, seed) = (self.shell.now(), self.shell.seed_for(&name));
        let (cluster, premium_max) = (settings.cluster_name.clone(), settings.policy_max_premium);
        let rank = Arc::clone(&self.shell.rank);
        let (claim, pool) = (Arc::clone(claim), pool.clone());
        let pool_name = claim.pool_name().to_owned();
        let work = move || {
            let launch = LaunchRanking {
                node_claim: &claim,
                node_pool: &pool.node_pool,
                instance_types: &pool.instance_types,
                pods: &pods,
                owners: &owners,
                usage: &usage,
                free_addresses: &pool.free_addresses,
                now,
                cluster: &cluster,
                seed,
                premium_max,
            };
            rank_for_launch(&launch, rank.as_ref())
        };
        let ranked = self.shell.compute(work).await?;
        if let Some(best) = ranked.offerings.first() {
            self.shell.launching.chose(&name, &pool_name, best);
        }
        Ok(ranked)
    }

    /// The pods that the failed claim was made for and that still wait for a node.
    fn pods_left_waiting(&self, claim: &NodeClaim) -> Vec<ObjectReference> {
        let keys = self.shell.pods.settle_claim(&claim.name_any());
        let snapshot = self.shell.model.snapshot();
        let pods = keys.iter().filter_map(|key| snapshot.pod(key));
        let waiting = pods.filter(|it| it.node_name.is_none() && !it.is_terminating());
        waiting
            .map(|pod| references::pod(&pod.key, &pod.uid))
            .collect()
    }

    /// Writes what the instance turned out to be. A claim that was changed or deleted meanwhile must still learn of
    /// its instance, or nobody would take it away before garbage collection does.
    async fn persist(
        &self,
        claim: &NodeClaim,
        launched: &Launched,
    ) -> Result<NodeClaim, ReconcileError> {
        let mut result = self.write(claim, launched).await;
        for _ in 0..WRITES_MAX {
            if !matches!(&result, Err(error) if error.class() == ErrorClass::Retry) {
                break;
            }
            // Not what is at hand: that is what was out of date.
            let claims = self.shell.writer.api::<NodeClaim>();
            let fresh = claims.get_opt(&claim.name_any()).await?;
            let Some(fresh) = fresh.filter(|it| it.metadata.uid == claim.metadata.uid) else {
                return self.abandon(claim, launched).await;
            };
            result = self.write(&fresh, launched).await;
        }
        match result {
            Err(error) if error.class() == ErrorClass::Gone => self.abandon(claim, launched).await,
            result => result,
        }
    }

    async fn write(
        &self,
        claim: &NodeClaim,
        launched: &Launched,
    ) -> Result<NodeClaim, ReconcileError> {
        let hydrated = with_metadata(claim, launched);
        let written = self.shell.writer.write_claim(claim, &hydrated).await?;
        let after = with_status(&written, launched, self.shell.now());
        self.shell.writer.write_claim_status(&written, &after).await
    }

    /// The claim is gone, so its instance goes.
    async fn abandon(
        &self,
        claim: &NodeClaim,
        launched: &Launched,
    ) -> Result<NodeClaim, ReconcileError> {
        let provider_id = &launched.provider_id;
        let entry = ClaimEntry::GoneMeanwhile { provider_id };
        self.shell.journal.write(claim, &entry);
        match self.provider.delete(provider_id).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            Ok(()) | Err(_) => Err(ReconcileError::Terminal(format!(
                "nodeclaim {} is gone",
                claim.name_any()
            ))),
        }
    }

    async fn apply(
        &self,
        claim: &NodeClaim,
        verdict: Verdict,
        ranked: &RankedLaunch,
    ) -> Result<Action, ReconcileError> {
        match verdict {
            Verdict::Launched(launched) => {
                let launched = Box::new(ranked_by(*launched, ranked));
                let after = match self.persist(claim, &launched).await {
                    Ok(after) => after,
                    Err(error) => {
                        if matches!(error, ReconcileError::Kube(_)) {
                            self.remember(claim, *launched, ranked.clone());
                        }
                        return Err(error);
                    }
                };
                self.shell
                    .journal
                    .write(&after, &ClaimEntry::Launched { ranked });
                Ok(Action::RequeueAfter(Duration::ZERO))
            }
            Verdict::Delete { cause, message } => {
                ignore_not_found(self.shell.writer.delete(claim).await)?;
                let pods = match cause {
                    LaunchFailure::InsufficientCapacity => self.pods_left_waiting(claim),
                    LaunchFailure::NodeClassNotReady => Vec::new(),
                };
                let entry = ClaimEntry::LaunchGivenUp {
                    cause,
                    message: &message,
                    ranked,
                    pods,
                };
                self.shell.journal.write(claim, &entry);
                Ok(Action::Await)
            }
            Verdict::Retry {
                reason,
                message,
                error,
            } => {
                let now = self.shell.now();
                let told = (Status::Unknown, reason.as_str(), message.as_str());
                let after = claim.with_condition(conditions::LAUNCHED, told, now);
                self.shell.writer.write_claim_status(claim, &after).await?;
                let entry = ClaimEntry::LaunchFailed {
                    message: &message,
                    ranked,
                };
                self.shell.journal.write(claim, &entry);
                Err(error.into())
            }
        }
    }
}

/// Leaves word on the claim of the policies that changed what was bought, and of what that costs.
fn ranked_by(mut launched: Launched, ranked: &RankedLaunch) -> Launched {
    if ranked.is_changed {
        let policies = ranked.uses.iter().filter(|it| it.outcome == "ok");
        let policies: Vec<String> = policies
            .map(|it| format!("{}@{}", it.name, it.digest))
            .collect();
        let premium = format!("{:.6}", ranked.premium_per_hour);
        for (key, value) in [
            (apis::labels::RANKED_BY_ANNOTATION, policies.join(",")),
            (apis::labels::PREMIUM_ANNOTATION, premium),
        ] {
            launched.annotations.insert(key.to_owned(), value);
        }
    }
    launched
}

fn decide(answer: Result<Launched, CloudProviderError>) -> Verdict {
    match answer {
        Ok(launched) => Verdict::Launched(Box::new(launched)),
        Err(CloudProviderError::InsufficientCapacity(message)) => Verdict::Delete {
            cause: LaunchFailure::InsufficientCapacity,
            message,
        },
        Err(CloudProviderError::NodeClassNotReady(message)) => Verdict::Delete {
            cause: LaunchFailure::NodeClassNotReady,
            message,
        },
        Err(error) => {
            let reason = match &error {
                CloudProviderError::Create { reason, .. } => reason.clone(),
                CloudProviderError::InsufficientCapacity(_)
                | CloudProviderError::NodeClassNotReady(_)
                | CloudProviderError::NotFound(_)
                | CloudProviderError::Other(_) => reason::LAUNCH_FAILED.to_owned(),
            };
            let message = shorten(&error.to_string(), MESSAGE_BYTES_MAX);
            Verdict::Retry {
                reason,
                message,
                error,
            }
        }
    }
}

/// A class that is faulty ends the claim; for one that nobody has looked at yet the claim waits.
fn check_ready(node_class: &Ec2NodeClass, name: &str) -> Result<(), CloudProviderError> {
    let ready = node_class.condition(conditions::READY);
    match ready.map(|ready| (ready.status.as_str(), &ready.message)) {
        Some(("True", _)) => Ok(()),
        Some(("False", message)) => Err(CloudProviderError::NodeClassNotReady(format!(
            "{name} is not ready: {message}"
        ))),
        _ => Err(CloudProviderError::Create {
            reason: reason::NODE_CLASS_READINESS_UNKNOWN.to_owned(),
            message: format!("whether {name} is ready is not known yet"),
        }),
    }
}

/// Why there is nothing to ask the cloud for: what is left was ruled out, or nothing was left.
fn nothing_left(exclusions: &Exclusions) -> String {
    if exclusions.total() > 0 {
        format!("the ranking policy excluded every offering left: {exclusions}")
    } else {
        "all requested instance types were unavailable during launch".to_owned()
    }
}

/// Labels of the claim win over the provider's, annotations of the provider over the claim's.
fn with_metadata(claim: &NodeClaim, launched: &Launched) -> NodeClaim {
    let mut after = claim.clone();
    let own = std::mem::take(after.labels_mut());
    let labels = after.labels_mut();
    labels.extend(launched.labels.clone());
    labels.extend(own);
    after.annotations_mut().extend(launched.annotations.clone());
    after
}

fn with_status(claim: &NodeClaim, launched: &Launched, now: Timestamp) -> NodeClaim {
    let mut after = claim.with_true(conditions::LAUNCHED, now);
    let status = after.status.get_or_insert_default();
    status.provider_id = Some(launched.provider_id.clone());
    status.image_id = Some(launched.image_id.clone());
    status.capacity = launched.capacity.to_list();
    status.allocatable = launched.allocatable.to_list();
    after
}

/// Whether the cloud must know the claim's instance by now, so that "not found" means that it is gone.
pub(crate) fn is_listed_by_now(claim: &NodeClaim, now: Timestamp) -> bool {
    let since = claim.condition_since(conditions::LAUNCHED);
    remaining(since, LISTED_AFTER, now).is_zero()
}

/// A claim that no pool made may buy whatever its own requirements allow.
fn pool_of_standalone(claim: &NodeClaim) -> NodePool {
    let mut pool = NodePool::default();
    let template = &mut pool.spec.template.spec;
    template.requirements.clone_from(&claim.spec.requirements);
    template.node_class_ref = claim.spec.node_class_ref.clone();
    template.taints.clone_from(&claim.spec.taints);
    pool
}
