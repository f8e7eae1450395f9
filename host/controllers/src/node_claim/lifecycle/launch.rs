//! Launches the instance of a claim: asks the ranking policy for the order of offerings, then the provider.
//!
//! What may be bought and how it is bought are not decided here. Answers to
//! `pkg/controllers/nodeclaim/lifecycle/launch.go`.

mod claim_record;
mod decision;
pub(crate) mod failure;
mod instance;
pub(crate) mod launching;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use apis::conditions::{self, ConditionUpdate, Conditioned, Status};
use apis::{NodeClaim, NodePool};
use cloudprovider::{
    CloudProvider, CloudProviderError, LISTED_AFTER, LaunchAttempt, LaunchRequest, Launched,
    check_ready,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use locks::lock;
use planning::provisioning::PoolTypes;
use scheduling::pod::Pod;
use scheduling::ranking::{Exclusions, LaunchRanking, RankHook, RankedLaunch, rank_for_launch};
use tracing::debug;

use self::claim_record::ClaimRecord;
use self::decision::{LaunchVerdict, decide};
use self::failure::LaunchFailure;
use self::instance::{InstanceWriter, ranked_by};
use self::launching::Launching;
use crate::node_claim::entries::launch::{ClaimLaunched, LaunchFailed, LaunchGivenUp};
use crate::node_claim::lifecycle::liveness::{LAUNCH_TIMEOUT, TimeLimit};
use crate::node_claim::pods_of_claims::PodsOfClaims;
use crate::node_claim::{remaining, uid};
use crate::shell::Shell;
use crate::shell::error::{ErrorClass, ReconcileError, ignore_not_found};
use crate::shell::journal::references;
use crate::shell::runtime::action::Action;

/// Times that a claim is written again after a conflict.
const WRITES_MAX: usize = 3;

/// The launching part of the lifecycle controller.
pub(crate) struct Launcher {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    rank: Arc<dyn RankHook>,
    launching: Arc<Launching>,
    pods_of_claims: Arc<PodsOfClaims>,
    writer: InstanceWriter,
    /// By UID of the claim.
    unwritten: Mutex<BTreeMap<String, UnwrittenLaunch>>,
}

/// An instance that runs and of which its claim could not be told yet. It would be found again by its token; this
/// spares the cloud the question.
struct UnwrittenLaunch {
    launched: Launched,
    ranked: RankedLaunch,
    at: Timestamp,
}

/// Counts how often a claim was written again because somebody else had been faster.
#[derive(Default)]
struct WriteTries(usize);

impl WriteTries {
    /// Whether the claim is to be read anew and written once more.
    fn has_another<T>(&mut self, result: &Result<T, ReconcileError>) -> bool {
        self.0 += 1;
        let is_late = matches!(result, Err(error) if error.class() == ErrorClass::Retry);
        is_late && self.0 <= WRITES_MAX
    }
}

impl Launcher {
    pub(crate) fn new(
        shell: Arc<Shell>,
        provider: Arc<dyn CloudProvider>,
        rank: Arc<dyn RankHook>,
        launching: Arc<Launching>,
        pods_of_claims: Arc<PodsOfClaims>,
    ) -> Self {
        Self {
            writer: InstanceWriter {
                shell: Arc::clone(&shell),
                provider: Arc::clone(&provider),
            },
            shell,
            provider,
            rank,
            launching,
            pods_of_claims,
            unwritten: Mutex::default(),
        }
    }

    pub(crate) async fn launch(&self, claim: &Arc<NodeClaim>) -> Result<Action, ReconcileError> {
        let unwritten = self.unwritten().remove(&uid(claim));
        let record = ClaimRecord::new(Arc::clone(&self.shell), Arc::clone(claim));
        let record = Arc::new(record);
        let (answer, ranked) = match unwritten {
            Some(UnwrittenLaunch {
                launched, ranked, ..
            }) => (Ok(launched), ranked),
            None => self.ask(claim, &record).await?,
        };
        let verdict = decide(answer);
        let applied = self.apply(&record.claim(), verdict, &ranked).await;
        // From here on the claim says itself what it is, or that it is not.
        self.launching.settle(&claim.name_any());
        applied
    }

    fn unwritten(&self) -> MutexGuard<'_, BTreeMap<String, UnwrittenLaunch>> {
        lock(&self.unwritten)
    }

    fn remember(&self, claim: &NodeClaim, launched: Launched, ranked: RankedLaunch) {
        let at = self.shell.now();
        // Claims older than that are given up, with or without an instance.
        let may_matter =
            |it: &UnwrittenLaunch| at.duration_since(it.at).unsigned_abs() <= LAUNCH_TIMEOUT;
        let mut unwritten = self.unwritten();
        unwritten.retain(|_, it| may_matter(it));
        let launch = UnwrittenLaunch {
            launched,
            ranked,
            at,
        };
        unwritten.insert(uid(claim), launch);
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
            let message = nothing_left(&ranked.exclusions);
            let error = CloudProviderError::InsufficientCapacity(message);
            return Ok((Err(error), ranked));
        }
        let left = TimeLimit::Launch.left(claim, self.shell.now());
        let limit = left.max(Duration::from_secs(1));
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
        check_ready(&node_class)?;
        let pool = claim.pool_name();
        let pool = pool.and_then(|it| self.shell.model.node_pool(it));
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
            offerings: Arc::clone(&ranked.offerings),
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
        let keys = self.pods_of_claims.get(&name);
        let pods = keys.iter().filter_map(|it| snapshot.pod(it).cloned());
        let pods: Vec<Arc<Pod>> = pods.collect();
        let owners = snapshot.owners(pods.iter());
        let mut usage = snapshot.usage();
        drop(snapshot);
        self.launching.add_to(&mut usage, &name);
        let settings = &self.shell.settings;
        let (now, seed) = (self.shell.now(), self.shell.seed_for(&name));
        let (cluster, premium_max) = (
            settings.cluster_name.clone(),
            settings.solving.policy_max_premium,
        );
        let rank = Arc::clone(&self.rank);
        let (claim, pool) = (Arc::clone(claim), pool.clone());
        let pool_name = claim.pool_name().unwrap_or_default().to_owned();
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
            self.launching.chose(&name, &pool_name, best);
        }
        Ok(ranked)
    }

    /// The pods that the failed claim was made for and that still wait for a node.
    fn pods_left_waiting(&self, claim: &NodeClaim) -> Vec<ObjectReference> {
        let keys = self.pods_of_claims.settle(&claim.name_any());
        let snapshot = self.shell.model.snapshot();
        let pods = keys.iter().filter_map(|key| snapshot.pod(key));
        let waiting = pods.filter(|it| it.node_name.is_none() && !it.is_terminating());
        waiting
            .map(|pod| references::pod(&pod.key, &pod.uid))
            .collect()
    }

    async fn apply(
        &self,
        claim: &NodeClaim,
        verdict: LaunchVerdict,
        ranked: &RankedLaunch,
    ) -> Result<Action, ReconcileError> {
        match verdict {
            LaunchVerdict::Launched(launched) => {
                let launched = Box::new(ranked_by(*launched, ranked));
                let after = match self.writer.persist(claim, &launched).await {
                    Ok(Some(after)) => after,
                    Ok(None) => return Ok(Action::Await),
                    Err(error) => {
                        if matches!(error, ReconcileError::Kube(_)) {
                            self.remember(claim, *launched, ranked.clone());
                        }
                        return Err(error);
                    }
                };
                self.shell.journal.write(&after, &ClaimLaunched { ranked });
                Ok(Action::NOW)
            }
            LaunchVerdict::Delete { cause, message } => {
                ignore_not_found(self.shell.writer.delete(claim).await)?;
                let pods = match cause {
                    LaunchFailure::InsufficientCapacity => self.pods_left_waiting(claim),
                    LaunchFailure::NodeClassNotReady => Vec::new(),
                };
                let entry = LaunchGivenUp {
                    cause,
                    message: &message,
                    ranked,
                    pods,
                };
                self.shell.journal.write(claim, &entry);
                Ok(Action::Await)
            }
            LaunchVerdict::Retry {
                reason,
                message,
                error,
            } => {
                let launched = ConditionUpdate {
                    condition_type: conditions::LAUNCHED,
                    status: Status::Unknown,
                    reason: &reason,
                    message: &message,
                };
                let now = self.shell.now();
                let after = claim.with_condition(launched, now);
                self.shell.writer.write_claim_status(claim, &after).await?;
                let entry = LaunchFailed {
                    message: &message,
                    ranked,
                };
                self.shell.journal.write(claim, &entry);
                Err(error.into())
            }
            LaunchVerdict::Drop(why) => {
                debug!(NodeClaim = %claim.name_any(), why, "the launch is dropped");
                Ok(Action::Await)
            }
        }
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

/// Whether the cloud must know the claim's instance by now, so that "not found" means that it is gone.
pub(crate) fn is_listed_by_now(claim: &NodeClaim, now: Timestamp) -> bool {
    let since = claim.condition_since(conditions::LAUNCHED);
    remaining(since, LISTED_AFTER.unsigned_abs(), now).is_zero()
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
