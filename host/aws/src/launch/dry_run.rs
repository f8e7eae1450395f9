//! Dry runs of launches from a class, before any claim depends on it.
//!
//! It makes a launch template, as nothing else shows what EC2 holds against one, which is swept like any other, and
//! starts nothing. Answers to Karpenter's `pkg/controllers/nodeclass/validation.go` (steps that ask EC2).

use std::sync::Arc;

use apis::{
    AmiFamily, CapacityType, Ec2NodeClass, NodeClaim, NodePool,
    NodeSelectorRequirementWithMinValues, labels,
};
use aws_sdk_ec2::operation::run_instances::RunInstancesInput;
use aws_sdk_ec2::types::{
    FleetLaunchTemplateOverridesRequest, InstanceNetworkInterfaceSpecification,
    LaunchTemplateSpecification, ResourceType,
};
use cloudprovider::{CloudProviderError, FleetingRecord, LaunchRequest};
use scheduling::instance_type::InstanceType;
use scheduling::ranking::RankedOffering;
use scheduling::requirements::Requirements;

use super::filter::is_exotic;
use super::plan::LaunchPlan;
use super::request::fleet_input;
use super::template::{LaunchTemplate, templates};
use super::{InstanceLauncher, LaunchContext};
use crate::ami::ami_for;
use crate::error::{
    call_failure, explained, invalid, is_dry_run, is_profile_unknown, is_unauthorized,
    is_user_data_too_large,
};
use crate::seam::ApiError;
use crate::tags::{launch_tags, specification};

/// Types of which every account has the one or the other, for classes that no NodePool says anything of.
const COMMON_TYPES: [&str; 2] = ["m5.large", "m6g.large"];

/// Result of the dry runs of a class.
#[derive(Debug)]
pub(crate) enum DryRun {
    /// EC2 would launch.
    Passed,
    /// It would not, until somebody changes something.
    Refused {
        reason: &'static str,
        message: String,
    },
    /// It does not know the instance profile, perhaps not yet.
    ProfileUnknown,
    /// It said nothing of it.
    Unasked(CloudProviderError),
}

/// Call that EC2 may refuse, and the permission that it takes.
struct DryRunStep {
    reason: &'static str,
    permission: &'static str,
}

const TEMPLATE: DryRunStep = DryRunStep {
    reason: "CreateLaunchTemplateAuthCheckFailed",
    permission: "ec2:DescribeLaunchTemplates or ec2:CreateLaunchTemplate",
};
const FLEET: DryRunStep = DryRunStep {
    reason: "CreateFleetAuthCheckFailed",
    permission: "ec2:CreateFleet",
};
const INSTANCES: DryRunStep = DryRunStep {
    reason: "RunInstancesAuthCheckFailed",
    permission: "ec2:RunInstances",
};

/// A launch that the class and its NodePools allow, if any image boots any of the types.
pub(crate) fn probe(
    node_class: &Ec2NodeClass,
    node_pools: &[Arc<NodePool>],
    types: &[Arc<InstanceType>],
) -> Option<LaunchRequest> {
    let chosen = probe_type(node_class, node_pools, types)?;
    let status = node_class.status.as_ref()?;
    let offering = |zone: &String| RankedOffering {
        instance_type: chosen.name.as_str().into(),
        zone: zone.as_str().into(),
        capacity_type: CapacityType::OnDemand,
        price_per_hour: 0.0,
        effective_cost_per_hour: 0.0,
    };
    let mut node_claim = NodeClaim::default();
    let is_dedicated = |pool: &Arc<NodePool>| {
        let tenancy = Requirements::from_template(&pool.spec.template)
            .find(labels::INSTANCE_TENANCY)
            .cloned();
        tenancy.is_some_and(|it| it.has("dedicated"))
    };
    if node_pools.iter().any(is_dedicated) {
        let tenancy = NodeSelectorRequirementWithMinValues::new(
            labels::INSTANCE_TENANCY,
            apis::Operator::In,
            ["dedicated".to_owned()],
        );
        node_claim.spec.requirements.push(tenancy);
    }
    Some(LaunchRequest {
        node_claim: Arc::new(node_claim),
        record: Arc::new(FleetingRecord::default()),
        offerings: status.subnets.iter().map(|it| offering(&it.zone)).collect(),
        order_differs_from_price: false,
        instance_types: Arc::new([Arc::clone(chosen)]),
        node_class: Arc::new(node_class.clone()),
    })
}

/// The cheapest type that a NodePool of the class allows and an image boots, one without accelerators if there is any:
/// the images for those may be too large for the class's volumes.
fn probe_type<'t>(
    node_class: &Ec2NodeClass,
    node_pools: &[Arc<NodePool>],
    types: &'t [Arc<InstanceType>],
) -> Option<&'t Arc<InstanceType>> {
    let amis = node_class.status.as_ref()?.amis.as_slice();
    let pools: Vec<Requirements> = node_pools
        .iter()
        .map(|it| Requirements::from_template(&it.spec.template))
        .collect();
    let boots = |it: &&Arc<InstanceType>| ami_for(amis, it).is_some();
    let is_allowed = |it: &&Arc<InstanceType>| {
        let mut pools = pools.iter();
        pools.any(|pool| it.requirements.intersects(pool).is_ok())
    };
    let is_windows = matches!(
        node_class.ami_family(),
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025
    );
    let allowed = types.iter().filter(|it| !is_windows && is_allowed(it));
    let common = types
        .iter()
        .filter(|it| COMMON_TYPES.contains(&it.name.as_str()));
    best(allowed.filter(boots))
        .or_else(|| best(common.filter(boots)))
        .or_else(|| best(types.iter().filter(boots)))
}

fn best<'t>(types: impl Iterator<Item = &'t Arc<InstanceType>>) -> Option<&'t Arc<InstanceType>> {
    let price = |it: &InstanceType| {
        let prices = it.offerings.iter().filter(|it| it.is_available());
        let on_demand = prices.filter(|it| it.capacity_type() == Some(CapacityType::OnDemand));
        on_demand
            .map(|it| it.price_per_hour)
            .fold(f64::INFINITY, f64::min)
    };
    types.min_by(|a, b| {
        let (exotic, prices) = ((is_exotic(a), is_exotic(b)), (price(a), price(b)));
        let by_price = prices.0.total_cmp(&prices.1);
        exotic
            .0
            .cmp(&exotic.1)
            .then(by_price)
            .then(a.name.cmp(&b.name))
    })
}

impl InstanceLauncher {
    /// Asks EC2 what it would say of the launch.
    pub(crate) async fn try_out(&self, context: &LaunchContext<'_>) -> DryRun {
        let (plan, template) = match planned(context).await {
            Ok(planned) => planned,
            Err(CloudProviderError::Create { message, .. }) => {
                let reason = "UserDataInvalid";
                return DryRun::Refused { reason, message };
            }
            Err(error) => return DryRun::Unasked(error),
        };
        let made = context.templates.ensure(&template.parameters, context.now);
        let name = match made.await {
            Ok(name) => name,
            Err(error) => return verdict(&error, &TEMPLATE),
        };
        if let Err(verdict) = self.try_fleet(context, &plan, &name).await {
            return verdict;
        }
        self.try_instances(context, &plan, &name).await
    }

    async fn try_fleet(
        &self,
        context: &LaunchContext<'_>,
        plan: &LaunchPlan,
        template: &str,
    ) -> Result<(), DryRun> {
        let class = &context.request.node_class;
        let subnets = class.status.iter().flat_map(|status| &status.subnets);
        let overrides = subnets.flat_map(|subnet| {
            plan.instance_type_names().map(|name| {
                FleetLaunchTemplateOverridesRequest::builder()
                    .instance_type(name.into())
                    .subnet_id(&subnet.id)
                    .build()
            })
        });
        let configs = vec![(template.to_owned(), overrides.collect())];
        let mut input = fleet_input(plan, context, configs).map_err(DryRun::Unasked)?;
        input.dry_run = Some(true);
        match self.ec2.create_fleet(input).await {
            Err(error) if !is_dry_run(&error) => Err(verdict(&error, &FLEET)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// One subnet in which it would go is enough; else what was said of the first of them counts.
    async fn try_instances(
        &self,
        context: &LaunchContext<'_>,
        plan: &LaunchPlan,
        template: &str,
    ) -> DryRun {
        let class = &context.request.node_class;
        let mut first = None;
        for subnet in class.status.iter().flat_map(|status| &status.subnets) {
            let input = match instances_input(context, plan, template, &subnet.id) {
                Ok(input) => input,
                Err(error) => return DryRun::Unasked(error),
            };
            match self.ec2.run_instances(input).await {
                Err(error) if !is_dry_run(&error) => drop(first.get_or_insert(error)),
                Ok(_) | Err(_) => return DryRun::Passed,
            }
        }
        first.map_or(DryRun::Passed, |error| verdict(&error, &INSTANCES))
    }
}

async fn planned(
    context: &LaunchContext<'_>,
) -> Result<(LaunchPlan, LaunchTemplate), CloudProviderError> {
    let plan = LaunchPlan::of(context)?;
    let template = templates(&plan, context).await?.into_iter().next();
    let template = template.ok_or_else(|| {
        CloudProviderError::Other("no launch template suits the class".to_owned())
    })?;
    Ok((plan, template))
}

fn instances_input(
    context: &LaunchContext<'_>,
    plan: &LaunchPlan,
    template: &str,
    subnet_id: &str,
) -> Result<RunInstancesInput, CloudProviderError> {
    let class = &context.request.node_class;
    let tags = launch_tags(class, &context.options.cluster_name, "");
    let kinds = [
        ResourceType::Instance,
        ResourceType::Volume,
        ResourceType::NetworkInterface,
    ];
    let template = LaunchTemplateSpecification::builder()
        .launch_template_name(template)
        .version("$Latest")
        .build();
    RunInstancesInput::builder()
        .dry_run(true)
        .min_count(1)
        .max_count(1)
        .set_instance_type(plan.instance_type_names().next().map(Into::into))
        .launch_template(template)
        .set_network_interfaces(Some(interfaces(class, subnet_id)))
        .set_tag_specifications(Some(kinds.map(|kind| specification(kind, &tags)).to_vec()))
        .build()
        .map_err(invalid)
}

/// A request that names a subnet has to name all interfaces.
fn interfaces(
    node_class: &Ec2NodeClass,
    subnet_id: &str,
) -> Vec<InstanceNetworkInterfaceSpecification> {
    let interface = || InstanceNetworkInterfaceSpecification::builder().subnet_id(subnet_id);
    let own = &node_class.spec.network_interfaces;
    if own.is_empty() {
        return vec![interface().device_index(0).build()];
    }
    let of_class = own.iter().map(|it| {
        interface()
            .network_card_index(it.network_card_index)
            .device_index(it.device_index)
            .interface_type(it.interface_type.as_str())
            .build()
    });
    of_class.collect()
}

/// What an error says that is not the one of a dry run that would have been done.
fn verdict(error: &ApiError, step: &DryRunStep) -> DryRun {
    let DryRunStep { reason, permission } = step;
    if is_profile_unknown(error) {
        return DryRun::ProfileUnknown;
    }
    if is_user_data_too_large(error) {
        return DryRun::Refused {
            reason: "UserDataSizeLimitExceeded",
            message: explained(error),
        };
    }
    if is_unauthorized(error) {
        return DryRun::Refused {
            reason,
            message: format!(
                "the controller's role may not do {permission}: {}",
                explained(error)
            ),
        };
    }
    DryRun::Unasked(call_failure(&format!("trying {permission}"), error))
}
