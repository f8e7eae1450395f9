//! One launch: from ranked offerings to a running instance.
//!
//! The order is the caller's; this module narrows it as EC2 needs, sends one fleet request, and tells
//! everybody what EC2 refused. A claim that bears a token gets what was launched under it before anything else is
//! launched for it, and one that a Karpenter left gets what that launched. Answers to Karpenter's
//! `pkg/providers/instance/instance.go` (Create).

mod claim;
mod dry_run;
mod filter;
mod fleet;
mod inherited;
mod launched;
mod plan;
mod refusals;
mod request;
mod reserved;
mod shared_launches;
mod template;

use std::sync::Arc;

use apis::Ec2NodeClass;
use cloudprovider::{
    CloudProviderError, InstanceLife, LaunchAttempt, LaunchRequest, Launched, check_ready,
};
use jiff::{SignedDuration, Timestamp};

use crate::batcher::CallBatcher;
use crate::cache::TtlCache;
use crate::capacity_reservation::CapacityReservationProvider;
use crate::error::launch_failure;
use crate::instance::{Instance, InstanceProvider};
use crate::instance_type::InstanceTypeProvider;
use crate::launch_template::{LaunchTemplateProvider, is_template_missing};
use crate::metrics::AwsMetrics;
use crate::options::AwsOptions;
use crate::placement_group::PlacementGroup;
use crate::seam::{ApiError, Ec2Api, ErrorFault};
use crate::subnet::{SubnetProvider, ZonalSubnets};
use crate::tags::restricted_tag;
use crate::unavailable_offerings::UnavailableOfferings;

pub(crate) use dry_run::{DryRun, probe};

use claim::ClaimUid;
use fleet::{
    FleetAnswer, FleetAttempt, FleetCall, FleetFailure, FleetInstance, FleetOutcome, FleetRequest,
    WINDOW,
};
use launched::Bought;
use plan::LaunchPlan;
use refusals::{combined, note_all};
use request::{fleet_input, offered, overrides};
use shared_launches::{SharedLaunches, TokenState};
use template::templates;

/// How long it is known which attempts of a claim are over; claims without instance are given up much sooner.
const ATTEMPT_TTL: SignedDuration = SignedDuration::from_hours(6);
/// A launch is repeated at once only for errors that its repetition mends.
const TRIES_MAX: u32 = 2;

/// Launches instances.
pub(crate) struct InstanceLauncher {
    ec2: Arc<dyn Ec2Api>,
    fleets: CallBatcher<FleetCall>,
    metrics: AwsMetrics,
    launches: Arc<SharedLaunches>,
    /// The last attempt of a claim that ended without an instance, by UID.
    ended: TtlCache<ClaimUid, u32>,
    /// Addresses that an attempt may take of which nobody knows how it ended, by UID of its claim.
    open_debits: TtlCache<ClaimUid, ZonalSubnets>,
}

/// Who takes part in a launch.
pub(crate) struct LaunchContext<'a> {
    /// The claim, and what may be bought for it.
    pub(crate) request: &'a LaunchRequest,
    pub(crate) options: &'a AwsOptions,
    pub(crate) subnets: &'a SubnetProvider,
    pub(crate) templates: &'a LaunchTemplateProvider,
    pub(crate) instances: &'a InstanceProvider,
    pub(crate) reservations: &'a CapacityReservationProvider,
    pub(crate) unavailable: &'a UnavailableOfferings,
    pub(crate) instance_types: &'a InstanceTypeProvider,
    /// Of the class, where it names one.
    pub(crate) placement_group: Option<PlacementGroup>,
    pub(crate) now: Timestamp,
}

impl LaunchContext<'_> {
    /// The partition that the launch is pinned to.
    fn partition(&self) -> Option<i32> {
        let group = self.placement_group.as_ref()?;
        group.partition_for(&self.request.node_claim)
    }
}

struct Sent {
    answer: FleetAnswer,
    template_names: Vec<String>,
}

enum Attempt {
    Launched(Box<Launched>),
    Failed {
        error: CloudProviderError,
        repeat: Repeat,
    },
}

/// Whether a launch that failed is repeated at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Never,
    /// A template that was taken to be there was not, and is made anew.
    TemplateMissing,
    /// Under another token: all is known of what was launched under the one before.
    Spent,
}

impl Repeat {
    /// What an error of EC2 asks for.
    fn after(code: &str) -> Self {
        if is_template_missing(code) {
            Self::TemplateMissing
        } else {
            Self::Never
        }
    }
}

impl Attempt {
    fn failed(error: CloudProviderError) -> Self {
        Self::Failed {
            error,
            repeat: Repeat::Never,
        }
    }
}

impl InstanceLauncher {
    /// With no launch known.
    pub(crate) fn new(ec2: Arc<dyn Ec2Api>, metrics: &AwsMetrics) -> Self {
        let launches = Arc::<SharedLaunches>::default();
        let call = FleetCall::new(Arc::clone(&ec2), Arc::clone(&launches));
        Self {
            ec2,
            fleets: CallBatcher::new(Arc::new(call), WINDOW, "create_fleet", metrics),
            metrics: metrics.clone(),
            launches,
            ended: TtlCache::new(ATTEMPT_TTL),
            open_debits: TtlCache::new(ATTEMPT_TTL),
        }
    }

    /// Launches one instance for the request's claim, unless there is one already.
    pub(crate) async fn launch(
        &self,
        context: &LaunchContext<'_>,
    ) -> Result<Launched, CloudProviderError> {
        let found = match self.asked(context) {
            FleetAttempt::Again(attempt) => self.find(context, &attempt).await?,
            FleetAttempt::First(0) => self.find_inherited(context).await?,
            FleetAttempt::First(_) => None,
        };
        // Either it is known now what the attempt before took, or it is asked for again and debited anew.
        self.settle_open(context, found.as_ref());
        if let Some(launched) = found {
            return Ok(launched);
        }
        check_class(&context.request.node_class)?;
        let mut tries = 1;
        loop {
            match self.attempt(context).await? {
                Attempt::Launched(launched) => return Ok(*launched),
                Attempt::Failed {
                    repeat: Repeat::TemplateMissing | Repeat::Spent,
                    ..
                } if tries < TRIES_MAX => tries += 1,
                Attempt::Failed { error, .. } => return Err(error),
            }
        }
    }

    /// Looks for the instance of an attempt that was begun, by this process or another.
    async fn find(
        &self,
        context: &LaunchContext<'_>,
        attempt: &LaunchAttempt,
    ) -> Result<Option<Launched>, CloudProviderError> {
        let LaunchContext { request, now, .. } = context;
        let uid = ClaimUid::of(&request.node_claim);
        let listed = context.instances.launched_under(&attempt.token).await?;
        let alive = listed.iter().filter(|it| it.life != InstanceLife::Ends);
        let free = alive.filter(|it| !request.record.is_owned(&it.provider_id()));
        let ids = free.map(|it| it.id.clone());
        let assigned = self.launches.assign(&attempt.token, &uid, *now, ids);
        let found = assigned.map(|id| listed.iter().find(|it| it.id == id));
        match found {
            Some(Some(instance)) if instance.life == InstanceLife::Ends => {}
            Some(Some(instance)) => return self.adopt(context, instance).await.map(Some),
            Some(None) => return Err(unlisted()),
            None => match self.launches.state(&attempt.token, *now) {
                TokenState::Open => return Ok(None),
                TokenState::Unlisted => return Err(unlisted()),
                TokenState::Over => {}
            },
        }
        self.end(context);
        Ok(None)
    }

    /// Gives the claim an instance that runs. One with which it cannot live is ended, so that it is not lost.
    async fn adopt(
        &self,
        context: &LaunchContext<'_>,
        instance: &Instance,
    ) -> Result<Launched, CloudProviderError> {
        let bought = Bought::from(instance);
        let launched = bought.launched(context).filter(|_| bought.suits(context));
        if let Some(launched) = launched {
            return Ok(launched);
        }
        let (id, kind) = (&instance.id, &instance.instance_type);
        tracing::warn!(instance = %id, instance_type = %kind, "ending an instance that its claim did not ask for");
        context.instances.terminate(id).await?;
        self.end(context);
        Err(launch_failure(&format!(
            "EC2 launched {id} of type {kind}, which was not asked for; it is ended"
        )))
    }

    async fn attempt(&self, context: &LaunchContext<'_>) -> Result<Attempt, CloudProviderError> {
        let plan = LaunchPlan::of(context)?;
        if let Some(types) = plan.falls_back_on(&context.request.node_claim) {
            tracing::warn!(
                types,
                "spot is allowed and none of it is for sale, and on demand there are few types to choose from"
            );
        }
        let status = context.request.node_class.status.as_ref();
        let subnets = status.map(|status| status.subnets.as_slice());
        let zonal = context.subnets.zonal_for_launch(
            subnets.unwrap_or_default(),
            &plan.pods_by_zone(),
            context.now,
        );
        let Sent {
            answer,
            template_names,
        } = match self.send(&plan, context, &zonal).await {
            Ok(sent) => sent,
            Err(error) => {
                context.subnets.settle(&zonal, &[]);
                return Err(error);
            }
        };
        let attempt = match answer {
            Ok(outcome) => self.conclude(&plan, context, &zonal, &outcome).await?,
            Err(failure) => self.fail(context, zonal, failure),
        };
        if let Attempt::Failed {
            repeat: Repeat::TemplateMissing,
            ..
        } = attempt
        {
            context.templates.invalidate(template_names);
        }
        Ok(attempt)
    }

    async fn send(
        &self,
        plan: &LaunchPlan,
        context: &LaunchContext<'_>,
        zonal: &ZonalSubnets,
    ) -> Result<Sent, CloudProviderError> {
        let templates = templates(plan, context).await?;
        let wanted = templates
            .iter()
            .filter(|template| offered(plan, template, zonal).next().is_some());
        // A launch over many types needs several templates, and each takes EC2 a while.
        let made = wanted.map(|template| async move {
            let name = context.templates.ensure(&template.parameters, context.now);
            let name = name
                .await
                .map_err(|error| launch_failure(&error.to_string()))?;
            Ok::<_, CloudProviderError>((name, template))
        });
        let made = futures::future::try_join_all(made).await?;
        if made.is_empty() {
            return Err(launch_failure(
                "no offering of the claim lies in a subnet of its class",
            ));
        }
        let template_names = made.iter().map(|(name, _)| name.clone()).collect();
        let configs = made
            .into_iter()
            .map(|(name, template)| (name, overrides(plan, template, zonal)));
        let uid = ClaimUid::of(&context.request.node_claim);
        let request = FleetRequest {
            input: Arc::new(fleet_input(plan, context, configs.collect())?),
            uid: uid.clone(),
            asked: self.asked(context),
            record: Arc::clone(&context.request.record),
            now: context.now,
        };
        let answer = self.fleets.submit(request).await;
        Ok(Sent {
            answer: answer.unwrap_or(Err(FleetFailure::CutOff)),
            template_names,
        })
    }

    /// No fleet came. What EC2 may have launched all the same keeps its addresses until that is known.
    fn fail(
        &self,
        context: &LaunchContext<'_>,
        zonal: ZonalSubnets,
        failure: FleetFailure,
    ) -> Attempt {
        let number = self.asked(context).number();
        let is_asked = !matches!(failure, FleetFailure::Unwritten(_));
        let uid = ClaimUid::of(&context.request.node_claim);
        let attempt = match failure {
            FleetFailure::Unwritten(error) => Attempt::failed(error),
            FleetFailure::CutOff => Attempt::failed(CloudProviderError::Other(format!(
                "the fleet request of claim {uid} was cut off; it is asked again"
            ))),
            FleetFailure::Spent => self.spent(context),
            FleetFailure::Call(error) => self.refused(context, &error),
        };
        let ended = self.ended.get(&uid, context.now);
        if is_asked && ended.is_none_or(|ended| ended < number) {
            self.open_debits.insert(uid, zonal, context.now);
        } else {
            context.subnets.settle(&zonal, &[]);
        }
        attempt
    }

    /// Gives back what the claim's last attempt was debited for zones in which it launched nothing.
    fn settle_open(&self, context: &LaunchContext<'_>, launched: Option<&Launched>) {
        let uid = ClaimUid::of(&context.request.node_claim);
        if let Some(debits) = self.open_debits.remove(&uid) {
            let zone = launched.and_then(|it| Some(it.provider_id.instance()?.zone));
            context.subnets.settle(&debits, zone.as_slice());
        }
    }

    /// What came of an answered fleet.
    async fn conclude(
        &self,
        plan: &LaunchPlan,
        context: &LaunchContext<'_>,
        zonal: &ZonalSubnets,
        outcome: &FleetOutcome,
    ) -> Result<Attempt, CloudProviderError> {
        if outcome.is_first {
            note_all(&outcome.errors, zonal, plan, context, &self.metrics);
        }
        if let Some(instance) = &outcome.instance {
            let uid = ClaimUid::of(&context.request.node_claim);
            self.open_debits.insert(uid, zonal.clone(), context.now);
            let launched = self.take_over(plan, context, zonal, instance).await?;
            self.settle_open(context, Some(&launched));
            return Ok(Attempt::Launched(Box::new(launched)));
        }
        context.subnets.settle(zonal, &[]);
        self.end(context);
        let mut repeats = outcome.errors.iter().map(|it| Repeat::after(&it.code));
        Ok(Attempt::Failed {
            error: combined(&outcome.errors),
            repeat: repeats
                .find(|it| *it != Repeat::Never)
                .unwrap_or(Repeat::Never),
        })
    }

    /// The instance that the fleet gave.
    async fn take_over(
        &self,
        plan: &LaunchPlan,
        context: &LaunchContext<'_>,
        zonal: &ZonalSubnets,
        instance: &FleetInstance,
    ) -> Result<Launched, CloudProviderError> {
        let zone = zone_of(instance, zonal);
        let bought = zone.and_then(|zone| planned(plan, instance, zone));
        let known = bought.and_then(|it| Some((it.launched(context)?, it.reservation_id)));
        if let Some((launched, reservation_id)) = known {
            if let Some(id) = reservation_id {
                context.reservations.take(id, context.now);
            }
            return Ok(launched);
        }
        // EC2 itself says what it is; the claim keeps its token until then.
        match context.instances.get(&instance.id).await {
            Ok(described) => self.adopt(context, &described).await,
            Err(error) if error.is_not_found() => Err(unlisted()),
            Err(error) => Err(error),
        }
    }

    /// The token stands for another request. What came of that is looked for, and only where all of it is known is
    /// there another attempt.
    fn spent(&self, context: &LaunchContext<'_>) -> Attempt {
        let FleetAttempt::Again(attempt) = self.asked(context) else {
            // The claim bears it by now, and looks for what is there when it is tried again.
            return Attempt::failed(unlisted());
        };
        if self.launches.state(&attempt.token, context.now) != TokenState::Over {
            return Attempt::failed(unlisted());
        }
        self.end(context);
        Attempt::Failed {
            error: unlisted(),
            repeat: Repeat::Spent,
        }
    }

    /// EC2 refused the call or did not answer.
    fn refused(&self, context: &LaunchContext<'_>, error: &ApiError) -> Attempt {
        // A throttled repetition says nothing of the call that it repeats.
        if error.fault == ErrorFault::Client
            && matches!(self.asked(context), FleetAttempt::First(_))
        {
            self.end(context);
        }
        Attempt::Failed {
            repeat: Repeat::after(&error.code),
            error: launch_failure(&error.to_string()),
        }
    }

    /// Which attempt is asked for: the one that the claim bears, for as long as nobody knows how it ended, or else the
    /// next.
    fn asked(&self, context: &LaunchContext<'_>) -> FleetAttempt {
        let claim = &context.request.node_claim;
        let begun = LaunchAttempt::of(claim);
        match (begun, self.ended.get(&ClaimUid::of(claim), context.now)) {
            (Some(begun), Some(ended)) if begun.number <= ended => FleetAttempt::First(ended + 1),
            (Some(begun), _) => FleetAttempt::Again(begun),
            (None, Some(ended)) => FleetAttempt::First(ended + 1),
            (None, None) => FleetAttempt::First(0),
        }
    }

    /// The attempt came to nothing, for sure.
    fn end(&self, context: &LaunchContext<'_>) {
        let number = self.asked(context).number();
        let uid = ClaimUid::of(&context.request.node_claim);
        self.ended.insert(uid, number, context.now);
    }
}

/// There is an instance, or may be, and EC2 does not list it yet.
fn unlisted() -> CloudProviderError {
    CloudProviderError::Create {
        reason: "LaunchUnlisted".to_owned(),
        message: "the instance was asked for before, and EC2 does not list it yet".to_owned(),
    }
}

/// The instance, if it is one of those that were asked for.
fn planned<'a>(
    plan: &'a LaunchPlan,
    instance: &'a FleetInstance,
    zone: &'a str,
) -> Option<Bought<'a>> {
    let mut names = plan.instance_type_names();
    names.find(|name| *name == instance.instance_type)?;
    Some(Bought {
        id: &instance.id,
        instance_type: &instance.instance_type,
        zone,
        capacity_type: plan.capacity_type,
        image_id: instance.image_id.clone(),
        reservation_id: plan.reservation_of(Some(&instance.instance_type), zone),
    })
}

/// Whether nodes may be made from the class now.
fn check_class(node_class: &Ec2NodeClass) -> Result<(), CloudProviderError> {
    let name = node_class.metadata.name.as_deref().unwrap_or_default();
    if node_class.metadata.deletion_timestamp.is_some() {
        return Err(CloudProviderError::NodeClassNotReady(format!(
            "{name} is being deleted"
        )));
    }
    if let Some(key) = restricted_tag(&node_class.spec.tags) {
        return Err(CloudProviderError::NodeClassNotReady(format!(
            "{name} sets the reserved tag {key:?}"
        )));
    }
    check_ready(node_class)
}

fn zone_of<'a>(instance: &'a FleetInstance, zonal: &'a ZonalSubnets) -> Option<&'a str> {
    let by_subnet = || Some(zonal.zone_of(instance.subnet_id.as_deref()?)?.zone.as_str());
    instance.zone.as_deref().or_else(by_subnet)
}
