//! What the world beside is made of: its account, the simulated cluster, and the production controllers on it.

use super::super::arguments::{CLUSTER_NAME, ShadowArguments};
use crate::clock::wall_now;
use crate::controller;
use crate::demo::SYSTEM_NAMESPACE;
use crate::stack::{Stack, StackConfig, simulated_provider};
use aws::SqsInterruptionQueue;
use controllers::Settings;
use shadow::{Account, Gathered, ZoneMarket};
use sim::catalogue::Catalogue;
use sim::ec2::{Ec2Config, Ec2Faults, SimulatedQueue, zone_id};
use sim::{SimulatedWorld, Time, WorldConfig};
use std::sync::Arc;

pub(super) fn account(gathered: &Gathered) -> Account {
    let market = ZoneMarket {
        is_sold_in: &|zone| {
            Catalogue::embedded()
                .iter()
                .any(|it| it.is_offered_in(zone))
        },
        zone_id: &|region, zone| zone_id(region, zone),
    };
    Account::of(gathered, &market)
}

pub(super) fn world(
    arguments: &ShadowArguments,
    kubernetes_minor: u32,
    account: &Account,
) -> Arc<SimulatedWorld> {
    SimulatedWorld::new(WorldConfig {
        seed: arguments.seed,
        time: Time::Real(wall_now()),
        kubernetes_minor,
        pods_per_second: None,
        ec2: Ec2Config {
            region: account.region.clone(),
            zones: account.zones.clone(),
            cluster_name: CLUSTER_NAME.to_owned(),
            // Nothing goes wrong in the shadow that has not in the cluster.
            faults: Ec2Faults::calm(),
            ..Ec2Config::default()
        },
    })
}

pub(super) fn stack(
    arguments: &ShadowArguments,
    kubernetes_minor: u32,
    world: &Arc<SimulatedWorld>,
    client: kube::Client,
) -> anyhow::Result<Stack> {
    let (ec2, clock) = (world.ec2(), world.clock());
    let provider = simulated_provider(ec2, CLUSTER_NAME, Arc::new(clock));
    let queue = SimulatedQueue::new(CLUSTER_NAME, ec2, clock);
    let notices = SqsInterruptionQueue::new(Arc::new(queue), CLUSTER_NAME, Arc::clone(&provider));
    Stack::new(StackConfig {
        client,
        provider,
        clock: Arc::new(clock),
        settings: Settings {
            policy_namespace: SYSTEM_NAMESPACE.to_owned(),
            cluster_name: CLUSTER_NAME.to_owned(),
            ..controller::settings(&arguments.settings, kubernetes_minor)
        },
        interruptions: Some(Arc::new(notices)),
        // Nothing that a policy could disrupt here is anybody's.
        policy_limits: policy::Limits {
            may_replace_budgets: true,
            ..policy::Limits::default()
        },
        stands_by: false,
    })
}
