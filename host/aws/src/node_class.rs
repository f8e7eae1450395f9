//! The status of an EC2NodeClass: what its selectors resolve to, and whether nodes can be made from it.
//!
//! A query that fails leaves its part of the status as it was, or says why nothing is known of it yet, and has the
//! class looked at again soon. Nothing is written here. Answers to Karpenter's `pkg/controllers/nodeclass` of the AWS
//! provider.

pub(crate) mod dry_runs;
pub(crate) mod revision;
mod validation;

use std::time::Duration;

use apis::conditions::{
    AMIS_READY, CAPACITY_RESERVATIONS_READY, ConditionEditor, ConditionSet, EC2_NODE_CLASS,
    EC2_NODE_CLASS_RESERVED_CAPACITY, INSTANCE_PROFILE_READY, PLACEMENT_GROUP_READY,
    SECURITY_GROUPS_READY, SUBNETS_READY, Status, VALIDATION_SUCCEEDED, reason,
};
use apis::{Ec2NodeClass, Ec2NodeClassStatus};
use cloudprovider::{CloudProviderError, NodeClassStatus};
use jiff::Timestamp;

use crate::ami::{self, AmiProvider, unsupported_alias};
use crate::capacity_reservation::CapacityReservationProvider;
use crate::error::without_encoded_part;
use crate::hash::hash_annotations;
use crate::instance_profile::InstanceProfileProvider;
use crate::options::AwsOptions;
use crate::placement_group::PlacementGroupProvider;
use crate::security_group::SecurityGroupProvider;
use crate::subnet::{self, SubnetProvider};

/// Reason when EC2 could not be asked for the placement group.
const PLACEMENT_GROUP_RESOLUTION_FAILED: &str = "PlacementGroupResolutionFailed";
/// Reason when an expression comes to nothing on some instance type.
const KUBELET_EXPRESSION_FAILED: &str = "KubeletExpressionEvaluationFailed";
/// Looked at again so soon: what is missing may be there by now, and addresses of subnets run out.
const MINUTE: Duration = Duration::from_mins(1);
/// What was found stays believed for so long where nothing is counted of it.
const FOUND: Duration = Duration::from_mins(5);
/// Not even what ends this moment is looked at again sooner.
const SOONEST: Duration = Duration::from_secs(1);
/// Nobody answered, and is asked again so soon.
const FAILED: Duration = Duration::from_secs(10);

/// Who resolves the parts of a class.
pub(crate) struct Resolvers<'a> {
    pub(crate) subnets: &'a SubnetProvider,
    pub(crate) security_groups: &'a SecurityGroupProvider,
    pub(crate) amis: &'a AmiProvider,
    pub(crate) profiles: &'a InstanceProfileProvider,
    pub(crate) reservations: &'a CapacityReservationProvider,
    pub(crate) placement_groups: &'a PlacementGroupProvider,
    pub(crate) options: &'a AwsOptions,
}

/// A class with what its selectors resolve to; whether nodes can be made from it is still to be concluded.
pub(crate) struct Parts {
    /// With the status so far.
    pub(crate) node_class: Ec2NodeClass,
    /// Fault that keeps it from being asked about at all.
    fault: Option<Outcome>,
    requeue_after: Duration,
    set: ConditionSet,
}

/// Result of resolving one part of a class.
#[derive(Debug)]
pub(crate) struct Outcome {
    verdict: PartCondition,
    /// None until something about the class changes.
    requeue_after: Option<Duration>,
}

/// The condition of one part.
#[derive(Debug)]
enum PartCondition {
    True,
    False {
        reason: &'static str,
        message: String,
    },
    Unknown {
        reason: &'static str,
        message: String,
    },
    /// Nobody could be asked: what the condition knows stays.
    Unasked(CloudProviderError),
}

impl Outcome {
    /// All is well, and is looked at again after a while.
    pub(crate) fn ready(requeue_after: Duration) -> Self {
        Self {
            verdict: PartCondition::True,
            requeue_after: Some(requeue_after),
        }
    }

    /// Nothing but the class itself can change it.
    pub(crate) fn ready_for_good() -> Self {
        Self {
            verdict: PartCondition::True,
            requeue_after: None,
        }
    }

    fn not_ready(
        reason: &'static str,
        message: impl Into<String>,
        requeue_after: Duration,
    ) -> Self {
        Self {
            verdict: PartCondition::False {
                reason,
                message: message.into(),
            },
            requeue_after: Some(requeue_after),
        }
    }

    /// What the class says is at fault, so that nothing else can change it.
    fn wrong(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            verdict: PartCondition::False {
                reason,
                message: message.into(),
            },
            requeue_after: None,
        }
    }

    /// The sooner of this one's time to look again and another.
    fn sooner(&self, other: Duration) -> Duration {
        self.requeue_after.unwrap_or(Duration::MAX).min(other)
    }

    /// An expression in the kubelet's settings comes to nothing on some instance type.
    pub(crate) fn expression_failed(message: String) -> Self {
        Self::wrong(KUBELET_EXPRESSION_FAILED, message)
    }

    /// Nobody could be asked.
    pub(crate) fn unasked(error: CloudProviderError) -> Self {
        Self {
            verdict: PartCondition::Unasked(error),
            requeue_after: Some(FAILED),
        }
    }
}

impl Parts {
    /// Whether EC2 may be asked what it would say of launches.
    pub(crate) fn is_sound(&self) -> bool {
        self.fault.is_none()
    }

    /// The whole status, where `asked` is what EC2 says of launches, if it was asked.
    pub(crate) fn conclude(
        self,
        asked: Outcome,
        options: &AwsOptions,
        now: Timestamp,
    ) -> NodeClassStatus {
        let Self {
            node_class,
            fault,
            requeue_after,
            set,
        } = self;
        let outcome = fault.unwrap_or(asked);
        let requeue_after = outcome.sooner(requeue_after);
        let mut status = node_class.status.clone().unwrap_or_default();
        let mut editor = set.edit(&node_class.metadata, &mut status.conditions, now);
        apply(
            &mut editor,
            &node_class,
            VALIDATION_SUCCEEDED,
            outcome.verdict,
        );
        NodeClassStatus {
            status,
            annotations: hash_annotations(&node_class, options),
            requeue_after,
        }
    }
}

impl Resolvers<'_> {
    /// What the selectors of a class come to at `now`, and whether that makes sense.
    pub(crate) async fn resolve(&self, node_class: &Ec2NodeClass, now: Timestamp) -> Parts {
        let mut status = node_class.status.clone().unwrap_or_default();
        let mut conditions = std::mem::take(&mut status.conditions);
        let set = if self.options.reserved_capacity {
            EC2_NODE_CLASS_RESERVED_CAPACITY
        } else {
            EC2_NODE_CLASS
        };
        let mut parts = vec![(AMIS_READY, self.amis(node_class, &mut status, now).await)];
        if self.options.reserved_capacity {
            let outcome = self.reservations(node_class, &mut status, now).await;
            parts.push((CAPACITY_RESERVATIONS_READY, outcome));
        }
        parts.push((
            PLACEMENT_GROUP_READY,
            self.placement_group(node_class, now).await,
        ));
        parts.push((
            SUBNETS_READY,
            self.subnets(node_class, &mut status, now).await,
        ));
        parts.push((
            SECURITY_GROUPS_READY,
            self.security_groups(node_class, &mut status, now).await,
        ));
        parts.push((
            INSTANCE_PROFILE_READY,
            self.instance_profile(node_class, &mut status, now).await,
        ));
        let mut requeue_after = Duration::MAX;
        for (condition_type, outcome) in parts {
            requeue_after = outcome.sooner(requeue_after);
            let mut editor = set.edit(&node_class.metadata, &mut conditions, now);
            apply(&mut editor, node_class, condition_type, outcome.verdict);
        }
        let fault = validation::fault(node_class, &conditions, self.options);
        status.conditions = conditions;
        let mut node_class = node_class.clone();
        node_class.status = Some(status);
        Parts {
            node_class,
            fault,
            requeue_after,
            set,
        }
    }

    async fn amis(
        &self,
        node_class: &Ec2NodeClass,
        status: &mut Ec2NodeClassStatus,
        now: Timestamp,
    ) -> Outcome {
        let alias = node_class.alias();
        if let Some(text) =
            alias.and_then(|alias| unsupported_alias(&alias, self.options.kubernetes_minor()))
        {
            return Outcome::wrong(reason::UNSUPPORTED_ALIAS, text);
        }
        match self.amis.list(node_class, self.options, now).await {
            Err(error) => Outcome::unasked(error),
            Ok(images) => {
                status.amis = ami::to_status(&images);
                if images.is_empty() {
                    let message = "spec.amiSelectorTerms matches no image";
                    return Outcome::not_ready(reason::AMI_NOT_FOUND, message, MINUTE);
                }
                Outcome::ready(FOUND)
            }
        }
    }

    async fn subnets(
        &self,
        node_class: &Ec2NodeClass,
        status: &mut Ec2NodeClassStatus,
        now: Timestamp,
    ) -> Outcome {
        match self.subnets.list(node_class, now).await {
            Err(error) => Outcome::unasked(error),
            Ok(subnets) => {
                status.subnets = subnet::to_status(&subnets);
                if subnets.is_empty() {
                    let message = "spec.subnetSelectorTerms matches no subnet";
                    return Outcome::not_ready(reason::SUBNETS_NOT_FOUND, message, MINUTE);
                }
                Outcome::ready(MINUTE)
            }
        }
    }

    async fn security_groups(
        &self,
        node_class: &Ec2NodeClass,
        status: &mut Ec2NodeClassStatus,
        now: Timestamp,
    ) -> Outcome {
        match self.security_groups.list(node_class, now).await {
            Err(error) => Outcome::unasked(error),
            Ok(groups) => {
                let is_empty = groups.is_empty();
                status.security_groups = groups;
                if is_empty {
                    let message = "spec.securityGroupSelectorTerms matches no security group";
                    return Outcome::not_ready(reason::SECURITY_GROUPS_NOT_FOUND, message, MINUTE);
                }
                Outcome::ready(FOUND)
            }
        }
    }

    async fn instance_profile(
        &self,
        node_class: &Ec2NodeClass,
        status: &mut Ec2NodeClassStatus,
        now: Timestamp,
    ) -> Outcome {
        match self.profiles.resolve(node_class, self.options, now).await {
            Err(error) => Outcome::unasked(error),
            Ok(profile) => {
                status.instance_profile = Some(profile);
                Outcome::ready_for_good()
            }
        }
    }

    async fn reservations(
        &self,
        node_class: &Ec2NodeClass,
        status: &mut Ec2NodeClassStatus,
        now: Timestamp,
    ) -> Outcome {
        match self.reservations.list(node_class, now).await {
            Err(error) => Outcome::unasked(error),
            Ok(reservations) => {
                let ends = reservations.iter().filter_map(|it| it.end_time.as_ref());
                let next_end = ends.map(|end| end.0.duration_since(now).as_secs()).min();
                let next_end = next_end.map_or(Duration::MAX, |seconds| {
                    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
                });
                status.capacity_reservations = reservations;
                Outcome::ready(next_end.clamp(SOONEST, MINUTE))
            }
        }
    }

    async fn placement_group(&self, node_class: &Ec2NodeClass, now: Timestamp) -> Outcome {
        if node_class.spec.placement_group_selector.is_none() {
            return Outcome::ready_for_good();
        }
        match self.placement_groups.get(node_class, now).await {
            Ok(Some(_)) => Outcome::ready(MINUTE),
            Ok(None) => {
                let message = "spec.placementGroupSelector matches no available placement group";
                Outcome::not_ready(reason::PLACEMENT_GROUP_NOT_FOUND, message, MINUTE)
            }
            Err(error) => {
                Outcome::not_ready(PLACEMENT_GROUP_RESOLUTION_FAILED, error.to_string(), FAILED)
            }
        }
    }
}

fn apply(
    editor: &mut ConditionEditor<'_>,
    node_class: &Ec2NodeClass,
    condition_type: &str,
    verdict: PartCondition,
) {
    match verdict {
        PartCondition::True => {
            editor.set_true(condition_type);
        }
        PartCondition::False { reason, message } => {
            editor.set(condition_type, Status::False, reason, &message);
        }
        PartCondition::Unknown { reason, message } => {
            editor.set(condition_type, Status::Unknown, reason, &message);
        }
        PartCondition::Unasked(error) => {
            let name = node_class.metadata.name.as_deref().unwrap_or_default();
            tracing::warn!(ec2nodeclass = name, condition = condition_type, %error, "could not resolve");
            if editor.is_unknown(condition_type) {
                let message = error.to_string();
                let message = without_encoded_part(&message);
                let reason = reason::AWAITING_RECONCILIATION;
                editor.set(condition_type, Status::Unknown, reason, message);
            }
        }
    }
}
