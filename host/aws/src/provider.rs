//! [`AwsProvider`]: the port to EC2, put together from the providers of its parts.
//!
//! Each method gathers, asks the part that decides, and returns; no rule lives here. Answers to Karpenter's
//! `pkg/cloudprovider/cloudprovider.go` of the AWS provider.

mod described;
mod drifted;
mod shifts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use apis::{Ec2NodeClass, InstanceName, NodeClaim, NodePool, ProviderId, RepairPolicy, labels};
use async_trait::async_trait;
use cloudprovider::{
    Clock, CloudProvider, CloudProviderError, Impairment, InstanceLife, LaunchRequest, Launched,
    NodeClassStatus, RebootError, RegisteredNode, Registrable,
};
use jiff::Timestamp;
use locks::{read, write};
use scheduling::instance_type::InstanceType;

use crate::ami::{AmiProvider, is_current};
use crate::capacity_reservation::{CapacityReservationProvider, ReservationId};
use crate::error::call_failure;
use crate::instance::{Instance, InstanceProvider};
use crate::instance_profile::InstanceProfileProvider;
use crate::instance_type::InstanceTypeProvider;
use crate::interruption_history::{Interrupted, InterruptionHistory};
use crate::launch::{DryRun, InstanceLauncher, LaunchContext, probe};
use crate::launch_template::LaunchTemplateProvider;
use crate::metrics::{AwsMetrics, FailurePlace};
use crate::node_class::dry_runs::DryRuns;
use crate::node_class::{Outcome, Resolvers};
use crate::offering::OfferingSources;
use crate::options::AwsOptions;
use crate::placement_group::{
    PlacementGroup, PlacementGroupProvider, awaits_partition, registrable,
};
use crate::pricing::PricingProvider;
use crate::provider::described::described;
use crate::repair::repair_policies;
use crate::seam::{Ec2Api, IamApi, PricingApi, SsmApi, ZonalShiftApi};
use crate::security_group::SecurityGroupProvider;
use crate::subnet::SubnetProvider;
use crate::unavailable_offerings::{OfferingName, UnavailableOfferings};

/// The services behind the seam.
#[derive(Clone)]
pub struct AwsApis {
    /// Calls of EC2.
    pub ec2: Arc<dyn Ec2Api>,
    /// Calls of IAM.
    pub iam: Arc<dyn IamApi>,
    /// Calls of SSM.
    pub ssm: Arc<dyn SsmApi>,
    /// Calls of the price list.
    pub pricing: Arc<dyn PricingApi>,
    /// Calls of ARC's zonal shift.
    pub zonal_shift: Arc<dyn ZonalShiftApi>,
}

impl AwsApis {
    /// One implementor of all services.
    pub fn of<T>(services: Arc<T>) -> Self
    where
        T: Ec2Api + IamApi + SsmApi + PricingApi + ZonalShiftApi + 'static,
    {
        Self {
            ec2: Arc::<T>::clone(&services) as _,
            iam: Arc::<T>::clone(&services) as _,
            ssm: Arc::<T>::clone(&services) as _,
            pricing: Arc::<T>::clone(&services) as _,
            zonal_shift: services,
        }
    }
}

/// Provider of EC2 instances for the controllers.
pub struct AwsProvider {
    options: RwLock<Arc<AwsOptions>>,
    clock: Arc<dyn Clock>,
    subnets: SubnetProvider,
    security_groups: SecurityGroupProvider,
    amis: AmiProvider,
    profiles: InstanceProfileProvider,
    reservations: CapacityReservationProvider,
    placement_groups: PlacementGroupProvider,
    instance_types: InstanceTypeProvider,
    pricing: PricingProvider,
    knows_prices: AtomicBool,
    unavailable: UnavailableOfferings,
    interruptions: InterruptionHistory,
    templates: LaunchTemplateProvider,
    instances: InstanceProvider,
    launcher: InstanceLauncher,
    dry_runs: DryRuns,
    repair_policies: Vec<RepairPolicy>,
    zonal_shift: Arc<dyn ZonalShiftApi>,
    metrics: AwsMetrics,
}

impl AwsProvider {
    /// Asks nothing of AWS until it is used.
    pub fn new(options: AwsOptions, apis: &AwsApis, clock: Arc<dyn Clock>) -> Self {
        let AwsApis {
            ec2,
            iam,
            ssm,
            pricing,
            zonal_shift,
        } = apis;
        let ec2 = || Arc::clone(ec2);
        let metrics = AwsMetrics::default();
        Self {
            subnets: SubnetProvider::new(ec2(), options.subnet_refresh_interval),
            security_groups: SecurityGroupProvider::new(ec2()),
            amis: AmiProvider::new(ec2(), Arc::clone(ssm), options.ami_refresh_interval),
            profiles: InstanceProfileProvider::new(Arc::clone(iam)),
            reservations: CapacityReservationProvider::new(ec2()),
            placement_groups: PlacementGroupProvider::new(ec2()),
            instance_types: InstanceTypeProvider::new(ec2()),
            pricing: PricingProvider::new(
                ec2(),
                Arc::clone(pricing),
                &options.region,
                options.isolated_vpc,
            ),
            knows_prices: AtomicBool::default(),
            unavailable: UnavailableOfferings::default(),
            interruptions: InterruptionHistory::default(),
            templates: LaunchTemplateProvider::new(ec2(), &metrics),
            instances: InstanceProvider::new(
                ec2(),
                &options.cluster_name,
                options.reserved_capacity,
                &metrics,
            ),
            launcher: InstanceLauncher::new(ec2(), &metrics),
            dry_runs: DryRuns::default(),
            repair_policies: repair_policies(),
            zonal_shift: Arc::clone(zonal_shift),
            metrics,
            options: RwLock::new(Arc::new(options)),
            clock,
        }
    }

    /// Repairs nodes by these policies, too, beside those of EC2.
    #[must_use]
    pub fn with_repair_policies(mut self, more: impl IntoIterator<Item = RepairPolicy>) -> Self {
        self.repair_policies.extend(more);
        self
    }

    /// Loads what a controller needs before its first decision: types (required), prices and the cluster's
    /// launch templates (advisable).
    pub async fn hydrate(&self) -> Result<(), CloudProviderError> {
        self.instance_types.refresh().await?;
        if let Err(error) = self.refresh_prices().await {
            tracing::warn!(%error, "could not read all prices; the built-in ones are used");
        }
        if let Err(error) = self
            .templates
            .hydrate(&self.options().cluster_name, self.clock.now())
            .await
        {
            tracing::warn!(%error, "could not list the cluster's launch templates");
        }
        Ok(())
    }

    /// Reads prices anew; old ones stay where that fails. Called every 12 hours.
    pub async fn refresh_prices(&self) -> Result<(), CloudProviderError> {
        let outcome = self.pricing.refresh(self.clock.now()).await;
        self.knows_prices.store(outcome.is_ok(), Ordering::Relaxed);
        outcome
    }

    /// Whether all prices were read the last time.
    pub fn knows_prices(&self) -> bool {
        self.knows_prices.load(Ordering::Relaxed)
    }

    /// Reads types and their zones anew. Called every 12 hours.
    pub async fn refresh_instance_types(&self) -> Result<(), CloudProviderError> {
        self.instance_types.refresh().await
    }

    /// Deletes launch templates that no launch has used for a minute. Called every minute.
    pub async fn sweep_launch_templates(&self) {
        let (options, now) = (self.options(), self.clock.now());
        self.templates.sweep(&options.cluster_name, now).await;
    }

    /// Notes that an offering cannot be had for now.
    pub(crate) fn mark_unavailable(&self, offered: OfferingName<'_>) {
        self.unavailable.mark(offered, None, self.clock.now());
    }

    /// Counts a spot instance that is taken back.
    pub(crate) fn count_interruption(&self, instance: Interrupted<'_>) {
        self.interruptions
            .note_interruption(instance, self.clock.now());
    }

    /// Notes that a reservation has no slot left.
    pub(crate) fn empty_reservation(&self, id: &str) {
        self.reservations.set(id, 0, self.clock.now());
    }

    /// Metrics of the provider, for the registry.
    pub fn metrics(&self) -> &AwsMetrics {
        &self.metrics
    }

    /// The settings in use, with what is known of the cluster.
    pub fn options(&self) -> Arc<AwsOptions> {
        Arc::clone(&read(&self.options))
    }

    /// Takes over what was found out of the cluster; launches and classes go by it from now on.
    pub fn set_discovered_options(&self, change: impl FnOnce(&mut AwsOptions)) {
        let mut options = write(&self.options);
        change(Arc::make_mut(&mut options));
    }

    /// The instance of a provider id. EC2 does not know those of another region, which is no sign that they are gone:
    /// it is this controller that looks in the wrong place.
    fn instance_id<'a>(&self, provider_id: &'a ProviderId) -> Result<&'a str, CloudProviderError> {
        let Some(InstanceName { zone, id }) = provider_id.instance() else {
            let message = format!(
                "{:?} is no provider id of an instance",
                provider_id.as_str()
            );
            return Err(CloudProviderError::Other(message));
        };
        let region = &self.options().region;
        // Names of zones, local ones too, begin with that of their region.
        if zone.starts_with(region.as_str()) {
            return Ok(id);
        }
        Err(CloudProviderError::Other(format!(
            "instance {id} is in zone {zone:?}, which is not of region {region:?}: set AWS_REGION to the one of the cluster"
        )))
    }

    /// The instance of a launched claim.
    fn instance_id_of(&self, claim: &NodeClaim) -> Result<String, CloudProviderError> {
        let Some(provider_id) = claim.provider_id() else {
            let why = "the claim has no provider id in its status, so no instance".to_owned();
            return Err(CloudProviderError::Other(why));
        };
        self.instance_id(&provider_id).map(str::to_owned)
    }

    async fn placement_group(
        &self,
        node_class: &Ec2NodeClass,
        now: Timestamp,
    ) -> Result<Option<PlacementGroup>, CloudProviderError> {
        let group = self.placement_groups.get_or_last(node_class, now).await;
        group.map_err(|error| call_failure("describing the placement group", &error))
    }

    async fn types_of(
        &self,
        node_class: &Ec2NodeClass,
    ) -> Result<Arc<[Arc<InstanceType>]>, CloudProviderError> {
        let now = self.clock.now();
        // Its condition says what is wrong with it, and keeps launches from the class meanwhile.
        let placement_group = self.placement_group(node_class, now).await.ok().flatten();
        let sources = OfferingSources {
            pricing: &self.pricing,
            unavailable: &self.unavailable,
            reservations: &self.reservations,
            interruptions: &self.interruptions,
            now,
        };
        self.instance_types
            .list(
                node_class,
                placement_group.as_ref(),
                &self.options(),
                &sources,
            )
            .await
    }

    async fn launch_context<'a>(
        &'a self,
        request: &'a LaunchRequest,
        options: &'a AwsOptions,
        now: Timestamp,
    ) -> Result<LaunchContext<'a>, CloudProviderError> {
        Ok(LaunchContext {
            request,
            options,
            subnets: &self.subnets,
            templates: &self.templates,
            instances: &self.instances,
            reservations: &self.reservations,
            unavailable: &self.unavailable,
            instance_types: &self.instance_types,
            placement_group: self.placement_group(&request.node_class, now).await?,
            now,
        })
    }

    /// The first instance type on which an expression in the kubelet's settings comes to nothing.
    async fn kubelet_fault(
        &self,
        node_class: &Ec2NodeClass,
        options: &AwsOptions,
    ) -> Option<Outcome> {
        let types = &self.instance_types;
        match types.settled_kubelets(node_class, options, |_| true).await {
            Ok(settled) => {
                let fault = settled.into_values().find_map(Result::err);
                fault.map(Outcome::expression_failed)
            }
            Err(error) => Some(Outcome::unasked(error)),
        }
    }

    /// What EC2 says of launches from a class whose parts are sound, unless it has said so lately.
    async fn try_out(
        &self,
        node_class: &Ec2NodeClass,
        node_pools: &[Arc<NodePool>],
        now: Timestamp,
    ) -> Outcome {
        if let Some(outcome) = self.dry_runs.remembered(node_class, now) {
            return outcome;
        }
        let answer = match self.dry_run(node_class, node_pools, now).await {
            Ok(answer) => answer,
            Err(error) => DryRun::Unasked(error),
        };
        self.dry_runs.outcome(node_class, answer, now)
    }

    async fn dry_run(
        &self,
        node_class: &Ec2NodeClass,
        node_pools: &[Arc<NodePool>],
        now: Timestamp,
    ) -> Result<DryRun, CloudProviderError> {
        let types = self.types_of(node_class).await?;
        let Some(request) = probe(node_class, node_pools, &types) else {
            return Err(CloudProviderError::Other(
                "no image of the class boots any instance type".to_owned(),
            ));
        };
        let options = self.options();
        let context = self.launch_context(&request, &options, now).await?;
        Ok(self.launcher.try_out(&context).await)
    }

    async fn instance_type_of(
        &self,
        claim: &NodeClaim,
        node_class: &Ec2NodeClass,
    ) -> Result<Arc<InstanceType>, CloudProviderError> {
        let labels = claim.metadata.labels.as_ref();
        let name = labels
            .and_then(|labels| labels.get(labels::INSTANCE_TYPE))
            .map_or("", String::as_str);
        let types = self.types_of(node_class).await?;
        named(&types, name).map(Arc::clone).ok_or_else(|| {
            CloudProviderError::Other(format!("the claim's instance type {name:?} is not known"))
        })
    }
}

#[async_trait]
impl CloudProvider for AwsProvider {
    async fn create(&self, request: LaunchRequest) -> Result<Launched, CloudProviderError> {
        let (options, now) = (self.options(), self.clock.now());
        let context = self.launch_context(&request, &options, now).await?;
        self.launcher.launch(&context).await
    }

    async fn delete(&self, provider_id: &ProviderId) -> Result<(), CloudProviderError> {
        let id = self.instance_id(provider_id)?;
        let instance = match self.instance(id).await {
            Err(error) if error.is_not_found() => {
                self.reservations.note_gone(id, self.clock.now());
                return Err(error);
            }
            instance => self.changeable(instance?)?,
        };
        if let Some(reservation) = instance.reservation() {
            let reservation = ReservationId(reservation);
            self.reservations.leaves(id, reservation, self.clock.now());
        }
        if instance.life == InstanceLife::Ends {
            return Ok(());
        }
        if let Err(error) = self.instances.terminate(id).await {
            // EC2 tells no id of the zone with an instance.
            let place = FailurePlace {
                zone: &instance.zone,
                zone_id: "",
            };
            self.metrics.count_failed_termination(place);
            return Err(error);
        }
        Ok(())
    }

    async fn reboot(&self, provider_id: &ProviderId) -> Result<(), RebootError> {
        let id = self.instance_id(provider_id);
        let id = id.map_err(|error| RebootError::Terminal(error.to_string()))?;
        self.instances.reboot(id).await
    }

    async fn impairments(&self) -> Result<Vec<Impairment>, CloudProviderError> {
        self.instances.impairments(self.clock.now()).await
    }

    async fn get(&self, provider_id: &ProviderId) -> Result<Launched, CloudProviderError> {
        let instance = self.instance(self.instance_id(provider_id)?).await?;
        Ok(described(&instance))
    }

    async fn list(&self) -> Result<Vec<Launched>, CloudProviderError> {
        let instances = self.instances.list(&self.shifted()).await?;
        let running = instances.iter().filter_map(Instance::exposed);
        self.interruptions.note_running(running, self.clock.now());
        Ok(instances.iter().map(described).collect())
    }

    async fn instance_types(
        &self,
        _node_pool: &NodePool,
        node_class: &Ec2NodeClass,
    ) -> Result<Arc<[Arc<InstanceType>]>, CloudProviderError> {
        self.types_of(node_class).await
    }

    /// Asks EC2 for nothing: what was told of the class's subnets when it was resolved, less what launches took since.
    async fn free_addresses(&self, node_class: &Ec2NodeClass) -> BTreeMap<String, u32> {
        let status = node_class.status.as_ref();
        let subnets = status.map(|it| it.subnets.as_slice()).unwrap_or_default();
        self.subnets.free_by_zone(subnets, self.clock.now())
    }

    async fn registrable(&self, node_claim: &NodeClaim) -> Result<Registrable, CloudProviderError> {
        if !awaits_partition(node_claim) {
            return Ok(Registrable::Ready(BTreeMap::new()));
        }
        let id = self.instance_id_of(node_claim)?;
        Ok(registrable(self.instances.get(&id).await?.partition))
    }

    async fn is_drifted(
        &self,
        node_claim: &NodeClaim,
        node_class: &Ec2NodeClass,
    ) -> Result<Option<String>, CloudProviderError> {
        let reason = self.drift(node_claim, node_class).await?;
        Ok(reason.map(str::to_owned))
    }

    async fn resolve_node_class(
        &self,
        node_class: &Ec2NodeClass,
        node_pools: &[Arc<NodePool>],
    ) -> Result<NodeClassStatus, CloudProviderError> {
        let (options, now) = (self.options(), self.clock.now());
        let resolvers = Resolvers {
            subnets: &self.subnets,
            security_groups: &self.security_groups,
            amis: &self.amis,
            profiles: &self.profiles,
            reservations: &self.reservations,
            placement_groups: &self.placement_groups,
            options: &options,
        };
        let parts = resolvers.resolve(node_class, now).await;
        let asked = if !parts.is_sound() {
            Outcome::ready_for_good()
        } else if let Some(fault) = self.kubelet_fault(&parts.node_class, &options).await {
            fault
        } else if options.disable_dry_run {
            Outcome::ready_for_good()
        } else {
            self.try_out(&parts.node_class, node_pools, now).await
        };
        Ok(parts.conclude(asked, &options, now))
    }

    async fn release_node_class(
        &self,
        node_class: &Ec2NodeClass,
    ) -> Result<(), CloudProviderError> {
        let options = self.options();
        if !options.isolated_vpc {
            self.profiles.release(node_class, &options).await?;
        }
        self.templates
            .release(node_class, &options.cluster_name)
            .await
    }

    async fn release_unused(&self, profiles: &BTreeSet<String>) -> Result<(), CloudProviderError> {
        let options = self.options();
        if options.isolated_vpc {
            return Ok(());
        }
        let now = self.clock.now();
        self.profiles.release_unused(profiles, &options, now).await
    }

    async fn expiring_reservations(
        &self,
        ids: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, CloudProviderError> {
        self.reservations.expiring(ids, self.clock.now()).await
    }

    async fn learn(&self, node: RegisteredNode<'_>, node_class: &Ec2NodeClass) {
        let noted = async {
            let types = self.types_of(node_class).await?;
            let status = node_class.status.as_ref();
            let amis = status.map(|it| it.amis.as_slice()).unwrap_or_default();
            let instance_type = named(&types, node.instance_type);
            // What a node of an outdated image keeps for itself says nothing of those to come.
            if !instance_type.is_some_and(|it| is_current(amis, it, node.image_id)) {
                return Ok(());
            }
            let now = self.clock.now();
            self.instance_types
                .note_memory(&node, node_class, now)
                .await
        };
        if let Err(error) = noted.await {
            tracing::debug!(%error, "could not take down what a node reports");
        }
    }

    async fn tag(&self, node_claim: &NodeClaim) -> Result<(), CloudProviderError> {
        let id = self.instance_id_of(node_claim)?;
        let instance = self.changeable(self.instance(&id).await?)?;
        let tags = instance.missing_tags(node_claim, &self.options().cluster_name);
        if tags.is_empty() {
            return Ok(());
        }
        self.instances.create_tags(&instance.id, &tags).await
    }

    async fn shifted_zones(&self) -> Result<BTreeSet<String>, CloudProviderError> {
        self.ask_shifted_zones().await
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.repair_policies.clone()
    }

    fn name(&self) -> &'static str {
        "aws"
    }
}

/// The type of a name; they are in that order.
fn named<'a>(types: &'a [Arc<InstanceType>], name: &str) -> Option<&'a Arc<InstanceType>> {
    let found = types.binary_search_by(|it| it.name.as_str().cmp(name));
    types.get(found.ok()?)
}
