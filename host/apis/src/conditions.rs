//! Condition types and reasons, and the rules by which the conditions of an object move.
//!
//! Pure: the moment is an argument. Names are wire format. Answers to `awslabs/operatorpkg/status` and to the
//! condition constants of Karpenter's `pkg/apis/v1/*_status.go` and the AWS provider's `ec2nodeclass_status.go`.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use kube_core::Resource;

use crate::{Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};

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

pub mod reason;

/// The three statuses of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Not known.
    Unknown,
}

impl Status {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
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
pub const NODE_CLAIM: ConditionSet = ConditionSet {
    root: READY,
    dependents: &[LAUNCHED, REGISTERED, INITIALIZED],
};
/// Conditions of NodeOverlay.
pub const NODE_OVERLAY: ConditionSet = ConditionSet {
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

/// Whether the condition is there and True.
pub fn is_true(conditions: &[Condition], condition_type: &str) -> bool {
    has_status(conditions, condition_type, Status::True)
}

/// Whether the condition is there and False.
pub fn is_false(conditions: &[Condition], condition_type: &str) -> bool {
    has_status(conditions, condition_type, Status::False)
}

/// Whether the condition is there and Unknown.
pub fn is_unknown(conditions: &[Condition], condition_type: &str) -> bool {
    has_status(conditions, condition_type, Status::Unknown)
}

fn has_status(conditions: &[Condition], condition_type: &str, status: Status) -> bool {
    get(conditions, condition_type).is_some_and(|condition| condition.status == status.as_str())
}

/// Changes the conditions of one object by the set's rules. Made by [`ConditionSet::edit`].
#[derive(Debug)]
pub struct ConditionEditor<'a> {
    set: ConditionSet,
    conditions: &'a mut Vec<Condition>,
    generation: i64,
    created_at: Timestamp,
    is_deleting: bool,
    now: Timestamp,
    changed: bool,
}

impl ConditionSet {
    /// Starts to change the conditions of the object that `meta` belongs to; root and dependents that are missing
    /// are added as Unknown, as old as the object.
    pub fn edit<'a>(
        self,
        meta: &ObjectMeta,
        conditions: &'a mut Vec<Condition>,
        now: Timestamp,
    ) -> ConditionEditor<'a> {
        let now = whole_seconds(now);
        let mut editor = ConditionEditor {
            set: self,
            conditions,
            generation: meta.generation.unwrap_or(0),
            created_at: meta.creation_timestamp.as_ref().map_or(now, |time| time.0),
            is_deleting: meta.deletion_timestamp.is_some(),
            now,
            changed: false,
        };
        for condition_type in std::iter::once(self.root).chain(self.dependents.iter().copied()) {
            if get(editor.conditions, condition_type).is_none() {
                editor.set_unknown(condition_type);
            }
        }
        editor
    }
}

/// The wire keeps whole seconds; finer times would differ from what is read back.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

impl ConditionEditor<'_> {
    /// Sets a condition; returns whether anything changed.
    pub fn set(
        &mut self,
        condition_type: &str,
        status: Status,
        reason: &str,
        message: &str,
    ) -> bool {
        let previous = get(self.conditions, condition_type);
        let last_transition_time = match previous {
            Some(previous) if previous.status == status.as_str() => {
                previous.last_transition_time.clone()
            }
            None if self.is_essential(condition_type) => Time(self.created_at),
            Some(_) | None => Time(self.now),
        };
        let condition = Condition {
            type_: condition_type.to_owned(),
            status: status.as_str().to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time,
            observed_generation: Some(self.generation),
        };
        if previous == Some(&condition) {
            return false;
        }
        self.changed = true;
        self.conditions
            .retain(|other| other.type_ != condition_type);
        if self.is_deleting {
            for other in self.conditions.iter_mut() {
                other.observed_generation = Some(self.generation);
            }
        }
        self.conditions.push(condition);
        let root = self.set.root;
        self.conditions
            .sort_by_key(|other| (other.type_ == root, other.last_transition_time.0));
        // One that sums nothing up stands for itself.
        if condition_type != root && !self.set.dependents.is_empty() {
            self.recompute_root();
        }
        true
    }

    /// Sets a condition True, with its own type as the reason.
    pub fn set_true(&mut self, condition_type: &str) -> bool {
        self.set(condition_type, Status::True, condition_type, "")
    }

    /// Sets a condition True for a reason.
    pub fn set_true_with_reason(
        &mut self,
        condition_type: &str,
        reason: &str,
        message: &str,
    ) -> bool {
        self.set(condition_type, Status::True, reason, message)
    }

    /// Sets a condition False for a reason.
    pub fn set_false(&mut self, condition_type: &str, reason: &str, message: &str) -> bool {
        self.set(condition_type, Status::False, reason, message)
    }

    /// Sets a condition Unknown, awaiting reconciliation.
    pub fn set_unknown(&mut self, condition_type: &str) -> bool {
        self.set_unknown_with_reason(
            condition_type,
            reason::AWAITING_RECONCILIATION,
            reason::AWAITING_RECONCILIATION_MESSAGE,
        )
    }

    /// Sets a condition Unknown for a reason.
    pub fn set_unknown_with_reason(
        &mut self,
        condition_type: &str,
        reason: &str,
        message: &str,
    ) -> bool {
        self.set(condition_type, Status::Unknown, reason, message)
    }

    /// Removes a condition; root and dependents stay. Returns whether anything changed.
    pub fn clear(&mut self, condition_type: &str) -> bool {
        if self.is_essential(condition_type) {
            return false;
        }
        let count = self.conditions.len();
        self.conditions
            .retain(|condition| condition.type_ != condition_type);
        let removed = self.conditions.len() != count;
        self.changed |= removed;
        removed
    }

    /// Whether anything changed since the editor was made, missing conditions added then included.
    pub const fn changed(&self) -> bool {
        self.changed
    }

    fn is_essential(&self, condition_type: &str) -> bool {
        condition_type == self.set.root || self.set.dependents.contains(&condition_type)
    }

    fn recompute_root(&mut self) {
        let mut unhealthy: Vec<&Condition> = self
            .conditions
            .iter()
            .filter(|condition| self.set.dependents.contains(&condition.type_.as_str()))
            .filter(|condition| {
                condition.status != Status::True.as_str()
                    || condition.observed_generation != Some(self.generation)
            })
            .collect();
        // While the set is first filled, a dependent that is not there yet keeps the root from being True.
        let is_complete = self
            .set
            .dependents
            .iter()
            .all(|dependent| get(self.conditions, dependent).is_some());
        if unhealthy.is_empty() && is_complete {
            self.set_true(self.set.root);
            return;
        }
        unhealthy.sort_by_key(|condition| std::cmp::Reverse(condition.last_transition_time.0));
        let is_false = unhealthy.iter().any(|condition| {
            condition.status == Status::False.as_str()
                && condition.observed_generation == Some(self.generation)
        });
        let message = unhealthy
            .iter()
            .map(|condition| format!("{}={}", condition.type_, condition.status))
            .collect::<Vec<_>>()
            .join(", ");
        let (status, reason) = if is_false {
            (Status::False, reason::UNHEALTHY_DEPENDENTS)
        } else {
            (Status::Unknown, reason::RECONCILING_DEPENDENTS)
        };
        self.set(self.set.root, status, reason, &message);
    }
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
    conditions.any(|it| it.status == "True")
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
