//! Instance types from the built-in EC2 catalogue, through the production AWS provider over the simulated EC2.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::Ec2NodeClass;
use apis::conditions::{self, reason};
use cloudprovider::{Clock, CloudProvider as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use problem_file::{FileWorld, TypeList};
use sim::SimulatedClock;
use sim::ec2::{Ec2Config, SimulatedEc2};

use super::{CLUSTER_NAME, Pools};
use crate::cli::SimulateArguments;
use authoring::manifests::{Manifests, variables};

/// A class may need another look once the first filled in its status.
const LOOKS: usize = 3;

/// Pools that may open nodes with what they may buy, and why the others may not.
pub(super) async fn pools(
    world: &mut FileWorld,
    arguments: &SimulateArguments,
) -> anyhow::Result<Pools> {
    let clock = SimulatedClock::virtual_time();
    let version = format!("1.{}", arguments.kubernetes_version);
    let ec2 = SimulatedEc2::new(
        Ec2Config {
            seed: arguments.seed,
            cluster_name: CLUSTER_NAME.to_owned(),
            kubernetes_version: version.clone(),
            ..Ec2Config::default()
        },
        clock,
    );
    let clock: Arc<dyn Clock> = Arc::new(clock);
    let provider = crate::stack::simulated_provider(&ec2, CLUSTER_NAME, clock);
    provider.set_discovered_options(|it| it.kubernetes_version = version);
    provider.hydrate().await?;
    let mut classes = BTreeMap::new();
    for class in &world.node_classes {
        let name = class.metadata.name.clone().unwrap_or_default();
        classes.insert(name, resolve(&provider, class).await);
    }
    let snapshot = world.snapshot();
    let mut found: BTreeMap<String, Result<TypeList, String>> = BTreeMap::new();
    for pool in snapshot.node_pools() {
        let name = pool.metadata.name.clone().unwrap_or_default();
        let wanted = &pool.spec.template.spec.node_class_ref.name;
        if world.node_classes.is_empty() && !classes.contains_key(wanted) {
            let warning = format!(
                "no EC2NodeClass was given: for {wanted:?} the one of `mortise demo` stands in"
            );
            world.warnings.push(warning);
            let class = default_class(wanted)?;
            classes.insert(wanted.clone(), resolve(&provider, &class).await);
        }
        let types = match classes.get(wanted) {
            None => Err(format!("its EC2NodeClass {wanted:?} does not exist")),
            Some(Err(reason)) => Err(format!(
                "its EC2NodeClass {wanted:?} is not ready: {reason}"
            )),
            Some(Ok(class)) => {
                let types = provider.instance_types(pool, class).await;
                types.map_err(|it| it.to_string())
            }
        };
        found.insert(name, types);
    }
    let (pools, errors) = world.pools(&mut |pool| {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        found
            .get(name)
            .cloned()
            .unwrap_or_else(|| Ok(Arc::default()))
    });
    let types = found.into_iter();
    Ok(Pools {
        pools,
        errors,
        types: types
            .filter_map(|(name, it)| Some((name, it.ok()?)))
            .collect(),
    })
}

/// The class with its status, or why it is not ready.
async fn resolve(
    provider: &aws::AwsProvider,
    class: &Ec2NodeClass,
) -> Result<Ec2NodeClass, String> {
    let mut class = class.clone();
    let mut told = String::new();
    for _ in 0..LOOKS {
        let found = provider.resolve_node_class(&class, &[]).await;
        let found = found.map_err(|it| it.to_string())?;
        class
            .metadata
            .annotations
            .get_or_insert_default()
            .extend(found.annotations);
        let is_ready = conditions::is_true(&found.status.conditions, conditions::READY);
        told = told_against(&found.status.conditions);
        class.status = Some(found.status);
        if is_ready {
            return Ok(class);
        }
    }
    Err(told)
}

/// What the conditions say against a class.
fn told_against(conditions: &[Condition]) -> String {
    let is_cause = |it: &&Condition| it.status != "True" && it.type_ != "Ready";
    let causes = conditions.iter().filter(is_cause);
    // What waits for another condition only says so.
    let causes = causes.filter(|it| it.reason != reason::DEPENDENCIES_NOT_READY);
    let causes = causes.map(|it| format!("{} ({})", it.type_, it.message));
    causes.collect::<Vec<_>>().join(", ")
}

fn default_class(name: &str) -> anyhow::Result<Ec2NodeClass> {
    let variables = variables(CLUSTER_NAME);
    let mut manifests = Manifests::default();
    manifests.read_text("the default capacity", crate::demo::CAPACITY, &variables);
    let class = manifests
        .documents
        .into_iter()
        .find(|it| it.object["kind"] == "EC2NodeClass")
        .ok_or_else(|| anyhow::anyhow!("the default capacity has no EC2NodeClass"))?;
    let mut class: Ec2NodeClass = serde_json::from_value(class.object)?;
    class.metadata.name = Some(name.to_owned());
    Ok(class)
}
