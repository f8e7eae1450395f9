//! One launch: from ranked offerings to a running instance.
//!
//! The order is the caller's; this module narrows it as EC2 needs, sends one fleet request, and tells
//! everybody what EC2 refused. Answers to Karpenter's `pkg/providers/instance/instance.go` (Create).

mod filter;
mod fleet;
mod plan;
mod reserved;
mod template;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apis::conditions::{self, READY, Status, reason};
use apis::{Ec2NodeClass, labels};
use cloudprovider::{CloudProviderError, LaunchRequest, Launched};
use jiff::{SignedDuration, Timestamp};

use crate::batcher::{Batcher, Window};
use crate::cache::TtlCache;
use crate::capacity_reservation::CapacityReservationProvider;
use crate::error::{
    SPOT_ROLE_MISSING, SUBNET_FULL, TOKEN_REUSED, is_unfulfillable, launch_failure,
};
use crate::launch_template::{LaunchTemplateProvider, is_template_missing};
use crate::options::AwsOptions;
use crate::placement_group::PlacementGroup;
use crate::seam::{Ec2Api, Fault};
use crate::subnet::{SubnetProvider, ZonalSubnets};
use crate::tags::restricted_tag;
use crate::unavailable_offerings::{Offered, UnavailableOfferings};

use fleet::{FleetAnswer, FleetCall, FleetError, FleetInstance, FleetOutcome, FleetRequest};
use plan::Plan;
use template::templates;

const WINDOW: Window = Window {
    idle: Duration::from_millis(35),
    max: Duration::from_secs(1),
    items_max: 1000,
};
/// How long a token keeps its meaning for a claim; EC2 forgets tokens later than that.
const ATTEMPT_TTL: SignedDuration = SignedDuration::from_hours(6);
/// A launch is repeated at once only for errors that its repetition mends.
const TRIES_MAX: u32 = 2;
const SPREAD_LIMIT: &str = "limit of instances in this spread placement group";

/// Launches instances.
pub(crate) struct Launcher {
    fleets: Batcher<FleetCall>,
    /// How many times a claim's launch has ended without an instance, by UID.
    attempts: TtlCache<String, u32>,
}

/// Who takes part in a launch.
pub(crate) struct LaunchContext<'a> {
    pub(crate) request: &'a LaunchRequest,
    pub(crate) options: &'a AwsOptions,
    pub(crate) subnets: &'a SubnetProvider,
    pub(crate) templates: &'a LaunchTemplateProvider,
    pub(crate) reservations: &'a CapacityReservationProvider,
    pub(crate) unavailable: &'a UnavailableOfferings,
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
        can_repeat: bool,
    },
}

impl Launcher {
    pub(crate) fn new(ec2: Arc<dyn Ec2Api>) -> Self {
        let fleets = Batcher::new(Arc::new(FleetCall::new(ec2)), WINDOW);
        Self {
            fleets,
            attempts: TtlCache::new(ATTEMPT_TTL),
        }
    }

    /// Launches one instance for the request's claim.
    pub(crate) async fn launch(
        &self,
        context: &LaunchContext<'_>,
    ) -> Result<Launched, CloudProviderError> {
        check_class(&context.request.node_class)?;
        let mut tries = 1;
        loop {
            match self.attempt(context).await? {
                Attempt::Launched(launched) => return Ok(*launched),
                Attempt::Failed {
                    can_repeat: true, ..
                } if tries < TRIES_MAX => tries += 1,
                Attempt::Failed { error, .. } => return Err(error),
            }
        }
    }

    async fn attempt(&self, context: &LaunchContext<'_>) -> Result<Attempt, CloudProviderError> {
        let plan = Plan::of(context)?;
        let status = context.request.node_class.status.as_ref();
        let subnets = status.map(|status| status.subnets.as_slice());
        let zonal = context
            .subnets
            .zonal_for_launch(subnets.unwrap_or_default(), &plan.pods_by_zone());
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
        let (attempt, is_template_missing) = match answer {
            Ok(outcome) => self.conclude(&plan, context, &zonal, &outcome),
            Err(error) => {
                context.subnets.settle(&zonal, &[]);
                if error.fault == Fault::Client {
                    self.count_attempt(context);
                }
                let is_template_missing = is_template_missing(&error.code);
                let can_repeat = is_template_missing || error.code == TOKEN_REUSED;
                let error = launch_failure(&error.to_string());
                (Attempt::Failed { error, can_repeat }, is_template_missing)
            }
        };
        if is_template_missing {
            context.templates.invalidate(template_names);
        }
        Ok(attempt)
    }

    async fn send(
        &self,
        plan: &Plan,
        context: &LaunchContext<'_>,
        zonal: &ZonalSubnets,
    ) -> Result<Sent, CloudProviderError> {
        let templates = templates(plan, context)?;
        let wanted = templates
            .iter()
            .filter(|template| plan.offered(template, zonal).next().is_some());
        // A launch over many types needs several templates, and each takes EC2 a while.
        let made = wanted.map(|template| async move {
            let name = context.templates.ensure(&template.parameters, context.now);
            Ok::<_, CloudProviderError>((name.await?, template))
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
            .map(|(name, template)| (name, plan.overrides(template, zonal)));
        let input = Arc::new(plan.fleet_input(context, configs.collect())?);
        let token = self.token(context);
        let answer = self.fleets.submit(FleetRequest { input, token }).await;
        let answer = answer
            .ok_or_else(|| CloudProviderError::Other("the fleet request was cut off".to_owned()))?;
        Ok(Sent {
            answer,
            template_names,
        })
    }

    /// What came of an answered fleet, and whether it missed a template.
    fn conclude(
        &self,
        plan: &Plan,
        context: &LaunchContext<'_>,
        zonal: &ZonalSubnets,
        outcome: &FleetOutcome,
    ) -> (Attempt, bool) {
        if outcome.is_first {
            note_errors(plan, context, zonal, &outcome.errors);
        }
        let instance = outcome.instance.as_ref();
        let zone = instance.and_then(|instance| zone_of(instance, zonal));
        let used: Vec<&str> = zone.as_deref().into_iter().collect();
        context.subnets.settle(zonal, &used);
        let launched = instance
            .zip(zone.as_deref())
            .and_then(|(instance, zone)| plan.launched(context, instance, zone));
        if let Some(launched) = launched {
            return (Attempt::Launched(Box::new(launched)), false);
        }
        self.count_attempt(context);
        let can_repeat = outcome
            .errors
            .iter()
            .any(|error| is_template_missing(&error.code));
        (
            Attempt::Failed {
                error: combined(&outcome.errors),
                can_repeat,
            },
            can_repeat,
        )
    }

    /// The same for every repetition of a launch of which nobody knows how it ended.
    fn token(&self, context: &LaunchContext<'_>) -> String {
        let uid = claim_uid(context.request);
        let attempt = self.attempts.get(&uid, context.now).unwrap_or(0);
        format!("{uid}-{attempt}")
    }

    fn count_attempt(&self, context: &LaunchContext<'_>) {
        let uid = claim_uid(context.request);
        let attempt = self.attempts.get(&uid, context.now).unwrap_or(0);
        self.attempts.sweep(context.now);
        self.attempts.insert(uid, attempt + 1, context.now);
    }
}

fn claim_uid(request: &LaunchRequest) -> String {
    let meta = &request.node_claim.metadata;
    meta.uid
        .as_ref()
        .or(meta.name.as_ref())
        .cloned()
        .unwrap_or_default()
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
    let conditions = node_class
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice());
    let ready = conditions::get(conditions.unwrap_or_default(), READY);
    let is_current = ready.is_some_and(|ready| {
        ready
            .observed_generation
            .is_none_or(|seen| Some(seen) == node_class.metadata.generation)
    });
    match ready {
        Some(ready) if is_current && ready.status == Status::True.as_str() => Ok(()),
        Some(ready) if is_current && ready.status == Status::False.as_str() => Err(
            CloudProviderError::NodeClassNotReady(format!("{name}: {}", ready.message)),
        ),
        _ => Err(CloudProviderError::Create {
            reason: reason::NODE_CLASS_READINESS_UNKNOWN.to_owned(),
            message: format!("whether {name} is ready is not known yet"),
        }),
    }
}

fn zone_of(instance: &FleetInstance, zonal: &ZonalSubnets) -> Option<String> {
    let by_subnet = || Some(zonal.zone_of(instance.subnet_id.as_deref()?)?.zone.clone());
    instance.zone.clone().or_else(by_subnet)
}

/// Hides from the next solve what EC2 has just refused.
fn note_errors(
    plan: &Plan,
    context: &LaunchContext<'_>,
    zonal: &ZonalSubnets,
    errors: &[FleetError],
) {
    let placement_group = context
        .placement_group
        .as_ref()
        .map(|group| group.id.as_str());
    for error in errors {
        if error.code == SPOT_ROLE_MISSING {
            context
                .unavailable
                .mark_capacity_type(labels::CAPACITY_TYPE_SPOT, context.now);
            continue;
        }
        let by_subnet = || Some(zonal.zone_of(error.subnet_id.as_deref()?)?.zone.clone());
        let zone = error.zone.clone().or_else(by_subnet).unwrap_or_default();
        let mark = |instance_type: &str| {
            let offered = Offered {
                instance_type,
                zone: &zone,
                capacity_type: plan.capacity_type,
            };
            context
                .unavailable
                .mark(offered, placement_group, context.now);
        };
        if placement_group.is_some() && error.message.contains(SPREAD_LIMIT) {
            plan.instance_type_names().for_each(mark);
        }
        if !is_unfulfillable(&error.code) {
            continue;
        }
        match (
            plan.reservation_of(error.instance_type.as_deref(), &zone),
            error.instance_type.as_deref(),
        ) {
            (Some(reservation_id), _) => context.reservations.set(reservation_id, 0),
            (None, Some(instance_type)) => mark(instance_type),
            (None, None) => {}
        }
        if let Some(subnet_id) = error
            .subnet_id
            .as_deref()
            .filter(|_| error.code == SUBNET_FULL)
        {
            context.unavailable.mark_subnet(subnet_id, context.now);
            context.subnets.mark_full(subnet_id);
        }
    }
}

/// One error out of those of a fleet.
fn combined(errors: &[FleetError]) -> CloudProviderError {
    let distinct: BTreeSet<(&str, &str)> = errors
        .iter()
        .map(|error| (error.code.as_str(), error.message.as_str()))
        .collect();
    let texts: Vec<String> = distinct
        .iter()
        .map(|(code, message)| format!("{code}: {message}"))
        .collect();
    let text = texts.join("; ");
    let is_capacity =
        |error: &FleetError| is_unfulfillable(&error.code) || error.code == SPOT_ROLE_MISSING;
    if errors.iter().all(is_capacity) {
        let text = if text.is_empty() {
            "EC2 launched fewer instances than asked".to_owned()
        } else {
            text
        };
        return CloudProviderError::InsufficientCapacity(text);
    }
    launch_failure(&text)
}
