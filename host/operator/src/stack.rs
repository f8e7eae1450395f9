//! Puts the production parts together: provider, policies, controllers. The demo and the controller differ
//! only in what they hand in.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use apis::duration::GoDuration;
use apis::{RepairAction, RepairPolicy};
use aws::sdk::SdkClients;
use aws::{AwsApis, AwsOptions, AwsProvider};
use cloudprovider::{Clock, CloudProviderError, InterruptionQueue};
use controllers::{Controllers, ControllersConfig, ControllersHooks, Metrics, Settings};
use locks::lock;
use policy::{PolicyHost, ProviderFacts};
use prometheus_client::registry::Registry;
use sim::ec2::SimulatedEc2;
use state::ledger::Ledger;

use crate::http::PolicyParts;
use crate::policies::metrics::PolicyMetrics;
use crate::policies::parts;
use crate::policies::recorder::FileRecorder;

/// How often prices and types are read anew, as Karpenter does.
const CATALOGUE_REFRESH: Duration = Duration::from_hours(12);
/// How soon what could not be read is read again, the first time and at most.
const READ_RETRY: Duration = Duration::from_mins(1);
const READ_RETRY_MAX: Duration = Duration::from_hours(1);
/// How often launch templates that nothing uses are deleted.
const TEMPLATE_SWEEP: Duration = Duration::from_mins(1);
/// Pause after a start at which AWS did not answer.
const HYDRATION_RETRY: Duration = Duration::from_secs(5);

/// Settings in which one run differs from another.
pub(crate) struct StackConfig {
    pub(crate) client: kube::Client,
    pub(crate) provider: Arc<AwsProvider>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    /// Where the cloud says that it takes instances back.
    pub(crate) interruptions: Option<Arc<dyn InterruptionQueue>>,
    /// Limits on what policies may use up, and how far they reach.
    pub(crate) policy_limits: policy::Limits,
    /// Whether other replicas may lead.
    pub(crate) stands_by: bool,
}

/// The controllers with the policies they ask, the provider they launch with and the metrics they count.
pub(crate) struct Stack {
    pub(crate) controllers: Controllers,
    pub(crate) metrics: Arc<Metrics>,
    policies: PolicyHost,
    provider: Arc<AwsProvider>,
}

impl Stack {
    /// Loads the built-in policies and prepares the controllers; nothing runs yet.
    pub(crate) fn new(config: StackConfig) -> anyhow::Result<Self> {
        let StackConfig {
            client,
            provider,
            clock,
            settings,
            interruptions,
            policy_limits,
            stands_by,
        } = config;
        // EC2 tells free addresses; that spot was taken back is told by the queue alone.
        let policies = PolicyHost::new(policy_limits)?.provided_by(ProviderFacts {
            free_addresses: true,
            interruption_rate: interruptions.is_some(),
        });
        let metrics = Arc::new(Metrics::default());
        let config = ControllersConfig {
            client,
            provider: Arc::clone(&provider) as _,
            hooks: ControllersHooks {
                rank: Arc::new(policies.clone()),
                consolidation: Arc::new(policies.clone()),
                budgets: Arc::new(policies.clone()),
            },
            clock,
            settings,
            ledger: Arc::new(Mutex::new(Ledger::default())),
            metrics: Arc::clone(&metrics),
            policies: Arc::new(policies.clone()),
            interruptions,
            stands_by,
        };
        let controllers = Controllers::new(config)?;
        Ok(Self {
            controllers,
            metrics,
            policies,
            provider,
        })
    }

    /// Everything that runs, until it is dropped, a controller dies of a bug, or all is done after a stop.
    pub(crate) fn run(&self) -> impl Future<Output = ()> + Send + 'static {
        let controllers = self.controllers.clone();
        let provider = Arc::clone(&self.provider);
        async move {
            hydrate(&provider).await;
            tokio::select! {
                biased;
                () = controllers.run() => {}
                () = keep_fresh(&provider, &controllers) => {}
            }
        }
    }

    /// Identifies the run: the hash over every decision it recorded.
    pub(crate) fn ledger_hash(&self) -> String {
        lock(&self.controllers.ledger()).hash()
    }

    /// Keeps every call of a policy.
    pub(crate) fn record_policies(&self, recorder: &Arc<FileRecorder>) {
        self.policies.record_to(Arc::clone(recorder) as _);
    }

    /// Parts of policies in a decision, for who asks why.
    pub(crate) fn policy_parts(&self) -> PolicyParts {
        let host = self.policies.clone();
        Arc::new(move |decision_id| parts::of(&host, decision_id))
    }

    /// Shows to who scrapes what the controllers count, what there is, and what came of policies.
    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        self.provider.metrics().register(registry);
        registry.register_collector(Box::new(self.controllers.state_metrics()));
        registry.register_collector(Box::new(PolicyMetrics {
            host: self.policies.clone(),
        }));
    }

    /// What policies did, for who sums a run up.
    pub(crate) fn policies(&self) -> &PolicyHost {
        &self.policies
    }
}

/// The AWS provider over the simulated EC2: everything but HTTP is the real one.
pub(crate) fn simulated_provider(
    ec2: &SimulatedEc2,
    cluster_name: &str,
    clock: Arc<dyn Clock>,
) -> Arc<AwsProvider> {
    let options = AwsOptions {
        // The simulated account denies nothing.
        disable_dry_run: true,
        ..ec2.provider_options(cluster_name)
    };
    let apis = AwsApis::of(Arc::new(ec2.clone()));
    let provider = AwsProvider::new(options, &apis, clock);
    Arc::new(provider.with_repair_policies(simulated_faults()))
}

/// Conditions by which people make a node of a simulated account sick, to see it repaired: what stands for it elsewhere
/// is tolerated for half an hour. Answers to the policies of Karpenter's kwok provider.
fn simulated_faults() -> [RepairPolicy; 2] {
    let fault = |condition_type: &str, drain_seconds: i64, action| RepairPolicy {
        condition_type: condition_type.to_owned(),
        condition_status: "True".to_owned(),
        reason_regex: ".*".to_owned(),
        toleration: GoDuration::from_seconds(30),
        termination_grace_period: Some(GoDuration::from_seconds(drain_seconds)),
        priority: 0,
        action,
    };
    [
        fault("SimulatedUnhealthy", 45, RepairAction::Replace),
        fault("SimulatedRebootRequired", 60, RepairAction::Reboot),
    ]
}

/// The AWS provider over the SDK.
pub(crate) fn aws_provider(
    clients: SdkClients,
    options: AwsOptions,
    clock: Arc<dyn Clock>,
) -> Arc<AwsProvider> {
    Arc::new(AwsProvider::new(
        options,
        &AwsApis::of(Arc::new(clients)),
        clock,
    ))
}

/// Without instance types nothing can be decided, so the controllers wait for them.
async fn hydrate(provider: &AwsProvider) {
    while let Err(error) = provider.hydrate().await {
        tracing::error!(%error, "the instance types could not be read; trying again");
        tokio::time::sleep(HYDRATION_RETRY).await;
    }
}

async fn keep_fresh(provider: &AwsProvider, controllers: &Controllers) {
    let prices = async {
        let mut pause = Pause::after(provider.knows_prices());
        loop {
            tokio::time::sleep(pause.length).await;
            pause.next(&provider.refresh_prices().await, "prices");
        }
    };
    let types = async {
        let mut pause = Pause::after(true);
        loop {
            tokio::time::sleep(pause.length).await;
            pause.next(&provider.refresh_instance_types().await, "instance types");
        }
    };
    let templates = async {
        loop {
            tokio::time::sleep(TEMPLATE_SWEEP).await;
            if controllers.leads() {
                provider.sweep_launch_templates().await;
            }
        }
    };
    tokio::join!(prices, types, templates);
}

/// Until something is read again: half a day, and less after a failure.
struct Pause {
    length: Duration,
}

impl Pause {
    fn after(is_read: bool) -> Self {
        let length = if is_read {
            CATALOGUE_REFRESH
        } else {
            READ_RETRY
        };
        Self { length }
    }

    fn next(&mut self, outcome: &Result<(), CloudProviderError>, what: &str) {
        let Err(error) = outcome else {
            self.length = CATALOGUE_REFRESH;
            return;
        };
        self.length = match self.length {
            CATALOGUE_REFRESH => READ_RETRY,
            failed => (failed * 2).min(READ_RETRY_MAX),
        };
        let again_seconds = self.length.as_secs();
        tracing::warn!(%error, again_seconds, "{what} could not be read; the old ones stay");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_read_is_read_again_soon_and_then_less_often() {
        let failure = || Err(CloudProviderError::Other("no".to_owned()));
        let mut pause = Pause::after(true);
        let mut minutes = Vec::new();
        for _ in 0..8 {
            pause.next(&failure(), "prices");
            minutes.push(pause.length.as_secs() / 60);
        }
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
        pause.next(&Ok(()), "prices");
        assert_eq!(pause.length, CATALOGUE_REFRESH);
        assert_eq!(Pause::after(false).length, READ_RETRY);
    }
}
