//! Condition types and reasons, and the rules by which the conditions of an object move.
//!
//! Pure: the moment is an argument. Names are wire format. Answers to `awslabs/operatorpkg/status` and to the
//! condition constants of Karpenter's `pkg/apis/v1/*_status.go` and the AWS provider's `ec2nodeclass_status.go`.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_core::Resource;

use crate::{Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};
pub use editor::{ConditionEditor, whole_seconds};

/// Root condition of every kind.
pub const READY: &str = "Ready";

/// NodePool, NodeOverlay, EC2NodeClass: runtime validation passed.
pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
/// NodePool: its NodeClass is ready.
pub const NODE_CLASS_READY: &str = "NodeClassReady";
/// NodePool: recent launches and registrations went well.
pub const NODE_REGISTRATION_HEALTHY: &str = "NodeRegistrationHealthy";

/// NodeClaim: the cloud has the instance.
pub const LAUNCHED: &str = "Launched";
/// NodeClaim: the node has joined.
pub const REGISTERED: &str = "Registered";
/// NodeClaim: the node takes pods.
pub const INITIALIZED: &str = "Initialized";
/// NodeClaim: long enough without pod events to be consolidated.
pub const CONSOLIDATABLE: &str = "Consolidatable";
/// NodeClaim: not what its pool or class asks for any more.
pub const DRIFTED: &str = "Drifted";
/// NodeClaim: the consistency checks are clean.
pub const CONSISTENT_STATE_FOUND: &str = "ConsistentStateFound";
/// NodeClaim: part of a running disruption command.
pub const DISRUPTION_REASON: &str = "DisruptionReason";
/// NodeClaim: drain finished.
pub const DRAINED: &str = "Drained";
/// NodeClaim: no volume holds the node.
pub const VOLUMES_DETACHED: &str = "VolumesDetached";
/// NodeClaim: the cloud is taking the instance away.
pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
/// NodeClaim: an in-place reboot runs or ran.
pub const REBOOTING: &str = "Rebooting";

/// EC2NodeClass: images found.
pub const AMIS_READY: &str = "AMIsReady";
/// EC2NodeClass: subnets found.
pub const SUBNETS_READY: &str = "SubnetsReady";
/// EC2NodeClass: security groups found.
pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
/// EC2NodeClass: instance profile resolved.
pub const INSTANCE_PROFILE_READY: &str = "InstanceProfileReady";
/// EC2NodeClass: capacity reservations resolved.
pub const CAPACITY_RESERVATIONS_READY: &str = "CapacityReservationsReady";
/// EC2NodeClass: placement group resolved.
pub const PLACEMENT_GROUP_READY: &str = "PlacementGroupReady";

/// CapacityBuffer: the buffer is understood.
pub const READY_FOR_PROVISIONING: &str = "ReadyForProvisioning";
/// CapacityBuffer: the room is there, or is being made.
pub const PROVISIONING: &str = "Provisioning";

mod editor;
pub mod reason;

/// Conditions of a NodeClaim whose node is there and at rest, as they came about at a moment: what stands in for a
/// cluster where none runs.
pub fn of_ready_claim(since: Timestamp) -> Vec<Condition> {
    let kinds = [LAUNCHED, REGISTERED, INITIALIZED, CONSOLIDATABLE];
    let condition = |kind: &str| Condition {
        type_: kind.to_owned(),
        status: Status::True.as_str().to_owned(),
        reason: kind.to_owned(),
        message: String::new(),
        last_transition_time: Time(since),
        observed_generation: None,
    };
    kinds.map(condition).to_vec()
}

/// The three statuses of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Nobody knows yet whether it holds.
    Unknown,
}

impl Status {
    /// Status of a condition, if it is one of the three words.
    pub fn of(condition: &Condition) -> Option<Self> {
        Self::parse(&condition.status)
    }

    /// Reads the word on the wire.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::True, Self::False, Self::Unknown];
        all.into_iter().find(|it| it.as_str() == word)
    }

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A condition as it is to be written.
#[derive(Debug, Clone, Copy)]
pub struct ConditionUpdate<'a> {
    pub condition_type: &'a str,
    pub status: Status,
    pub reason: &'a str,
    /// Empty where the reason says all.
    pub message: &'a str,
}

/// Which conditions make up the root condition of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionSet {
    /// True only when every dependent is.
    pub root: &'static str,
    /// Always present, never removed.
    pub dependents: &'static [&'static str],
}

/// Conditions of NodePool.
pub const NODE_POOL: ConditionSet = ConditionSet {
    root: READY,
    dependents: &[VALIDATION_SUCCEEDED, NODE_CLASS_READY],
};
/// Conditions of NodeClaim.
const NODE_CLAIM: ConditionSet = ConditionSet {
    root: READY,
    dependents: &[LAUNCHED, REGISTERED, INITIALIZED],
};
/// Conditions of NodeOverlay.
const NODE_OVERLAY: ConditionSet = ConditionSet {
    root: READY,
    dependents: &[VALIDATION_SUCCEEDED],
};
/// Conditions of EC2NodeClass.
pub const EC2_NODE_CLASS: ConditionSet = ConditionSet {
    root: READY,
    dependents: &[
        AMIS_READY,
        SUBNETS_READY,
        SECURITY_GROUPS_READY,
        INSTANCE_PROFILE_READY,
        VALIDATION_SUCCEEDED,
        PLACEMENT_GROUP_READY,
    ],
};
/// Conditions of EC2NodeClass when the gate ReservedCapacity is on.
pub const EC2_NODE_CLASS_RESERVED_CAPACITY: ConditionSet = ConditionSet {
    root: READY,
    dependents: &[
        AMIS_READY,
        SUBNETS_READY,
        SECURITY_GROUPS_READY,
        INSTANCE_PROFILE_READY,
        VALIDATION_SUCCEEDED,
        PLACEMENT_GROUP_READY,
        CAPACITY_RESERVATIONS_READY,
    ],
};

/// The condition of that type.
pub fn get<'a>(conditions: &'a [Condition], condition_type: &str) -> Option<&'a Condition> {
    conditions
        .iter()
        .find(|condition| condition.type_ == condition_type)
}

/// The condition of that type, where it has this status.
pub fn with_status<'a>(
    conditions: &'a [Condition],
    condition_type: &str,
    status: Status,
) -> Option<&'a Condition> {
    get(conditions, condition_type).filter(|it| Status::of(it) == Some(status))
}

/// Whether the condition is there and True.
pub fn is_true(conditions: &[Condition], condition_type: &str) -> bool {
    with_status(conditions, condition_type, Status::True).is_some()
}

/// Whether the condition is there and False.
pub fn is_false(conditions: &[Condition], condition_type: &str) -> bool {
    with_status(conditions, condition_type, Status::False).is_some()
}

/// A kind with conditions.
pub trait Conditioned: Resource<DynamicType = ()> {
    /// The rules of its conditions.
    const CONDITIONS: ConditionSet;

    /// Its conditions; none when it has no status.
    fn conditions(&self) -> &[Condition];

    /// Its conditions to change, made when it has no status.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;

    /// The condition of that type.
    fn condition(&self, condition_type: &str) -> Option<&Condition> {
        get(self.conditions(), condition_type)
    }

    /// Whether the condition is there and True.
    fn is_condition_true(&self, condition_type: &str) -> bool {
        is_true(self.conditions(), condition_type)
    }

    /// Whether the root condition is True.
    fn is_ready(&self) -> bool {
        self.is_condition_true(Self::CONDITIONS.root)
    }

    /// When the condition got its status; a condition never written counts from the object's creation.
    fn condition_since(&self, condition_type: &str) -> Timestamp {
        let written = self
            .condition(condition_type)
            .map(|known| known.last_transition_time.0);
        let created = self.meta().creation_timestamp.as_ref();
        let created = created.map(|time| time.0);
        written.or(created).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// A copy with the condition set.
    #[must_use]
    fn with_condition(&self, condition: ConditionUpdate<'_>, now: Timestamp) -> Self
    where
        Self: Clone,
    {
        let ConditionUpdate {
            condition_type,
            status,
            reason,
            message,
        } = condition;
        let mut after = self.clone();
        after.edit_conditions(now, |conditions| {
            conditions.set(condition_type, status, reason, message);
        });
        after
    }

    /// A copy with the condition True, with its own type as the reason.
    #[must_use]
    fn with_condition_true(&self, condition_type: &str, now: Timestamp) -> Self
    where
        Self: Clone,
    {
        let mut after = self.clone();
        after.edit_conditions(now, |conditions| {
            conditions.set_true(condition_type);
        });
        after
    }

    /// A copy without the condition.
    #[must_use]
    fn without_condition(&self, condition_type: &str, now: Timestamp) -> Self
    where
        Self: Clone,
    {
        let mut after = self.clone();
        if after.condition(condition_type).is_some() {
            after.edit_conditions(now, |conditions| {
                conditions.clear(condition_type);
            });
        }
        after
    }

    /// Changes the conditions by the kind's rules; returns whether anything changed.
    fn edit_conditions(
        &mut self,
        now: Timestamp,
        edit: impl FnOnce(&mut ConditionEditor<'_>),
    ) -> bool {
        let mut conditions = std::mem::take(self.conditions_mut());
        let mut editor = Self::CONDITIONS.edit(self.meta(), &mut conditions, now);
        edit(&mut editor);
        let changed = editor.changed();
        *self.conditions_mut() = conditions;
        changed
    }
}

/// Whether the kubelet says that a Node is Ready (core/v1 `NodeCondition`).
pub fn is_node_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .iter()
        .flat_map(|it| it.conditions.iter().flatten());
    let mut conditions = conditions.filter(|it| it.type_ == READY);
    conditions.any(|it| Status::parse(&it.status) == Some(Status::True))
}

macro_rules! conditioned {
    ($($kind:ty = $set:expr),+ $(,)?) => {$(
        impl Conditioned for $kind {
            const CONDITIONS: ConditionSet = $set;

            fn conditions(&self) -> &[Condition] {
                self.status.as_ref().map_or(&[], |status| &status.conditions)
            }

            fn conditions_mut(&mut self) -> &mut Vec<Condition> {
                &mut self.status.get_or_insert_default().conditions
            }
        }
    )+};
}

conditioned! {
    NodePool = NODE_POOL,
    NodeClaim = NODE_CLAIM,
    NodeOverlay = NODE_OVERLAY,
    Ec2NodeClass = EC2_NODE_CLASS,
}

#[cfg(test)]
mod tests;
