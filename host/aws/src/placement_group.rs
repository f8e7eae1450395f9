//! The placement group that a class names, and the partition of it that a node turns out to be in.
//!
//! Never makes a group. Answers to Karpenter's `pkg/providers/placementgroup/provider.go` and to the hook of
//! registration beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ec2nodeclass::PlacementGroupSelector;
use apis::{Ec2NodeClass, NodeClaim, labels};
use aws_sdk_ec2::operation::describe_placement_groups::DescribePlacementGroupsInput;
use aws_sdk_ec2::types::PlacementStrategy;
use cloudprovider::Registrable;
use jiff::{SignedDuration, Timestamp};
use scheduling::requirements::Requirements;

use crate::cache::{DEFAULT_TTL, TtlCache};
use crate::error::unbuilt;
use crate::node_class::revision::revision_key;
use crate::seam::{ApiError, Ec2Api};
use crate::tags::filter;

/// A placement group of EC2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacementGroup {
    /// Such as `pg-0123`.
    pub(crate) id: String,
    /// `cluster`, `partition` or `spread`.
    pub(crate) strategy: String,
    /// Partitions of a partition group; 0 of the others.
    pub(crate) partitions: u32,
}

impl PlacementGroup {
    /// The values of the partition label: numbers from 1.
    pub(crate) fn partition_names(&self) -> impl Iterator<Item = String> {
        (1..=self.partitions).map(|it| it.to_string())
    }

    /// The partition that a launch for the claim is pinned to: EC2 takes one, so of several the first by string
    /// order, as in Karpenter. `None`, where every one will do, leaves the choice to EC2, which fills them evenly.
    pub(crate) fn partition_for(&self, node_claim: &NodeClaim) -> Option<i32> {
        let wanted = Requirements::from_node_selector_requirements(&node_claim.spec.requirements);
        let wanted = wanted.find(labels::PLACEMENT_GROUP_PARTITION)?;
        let (allowed, others): (Vec<String>, Vec<String>) =
            self.partition_names().partition(|it| wanted.has(it));
        if others.is_empty() {
            return None;
        }
        allowed.into_iter().min()?.parse().ok()
    }
}

/// Whether EC2 chooses the partition of the claim's instance, which its node is to bear.
pub(crate) fn awaits_partition(node_claim: &NodeClaim) -> bool {
    let node_labels = node_claim.metadata.labels.as_ref();
    let label = |key: &str| node_labels.and_then(|it| it.get(key)).map(String::as_str);
    label(labels::PLACEMENT_GROUP_ID).is_some()
        && label(labels::PLACEMENT_GROUP_PARTITION) == Some("")
}

/// What registers once the partition is known.
pub(crate) fn registrable(partition: Option<i32>) -> Registrable {
    let Some(partition) = partition else {
        return Registrable::Pending(REGISTRATION_HOOK);
    };
    let key = labels::PLACEMENT_GROUP_PARTITION.to_owned();
    Registrable::Ready(BTreeMap::from([(key, partition.to_string())]))
}

/// Finds placement groups.
pub(crate) struct PlacementGroupProvider {
    ec2: Arc<dyn Ec2Api>,
    cache: TtlCache<String, Option<PlacementGroup>>,
    /// What was found last, by selector, for when EC2 cannot be asked.
    last: TtlCache<String, PlacementGroup>,
}

/// The hook of Karpenter's that waits for the partition of an instance, as its conditions name it.
const REGISTRATION_HOOK: &str = "PlacementGroupRegistrationHook";
/// How long a group is believed to be there while EC2 cannot be asked.
const LAST_TTL: SignedDuration = SignedDuration::from_hours(24);
/// EC2's codes for a group that is not there.
const UNKNOWN: [&str; 2] = [
    "InvalidPlacementGroup.Unknown",
    "InvalidPlacementGroupId.NotFound",
];

impl PlacementGroupProvider {
    /// With an empty cache.
    pub(crate) fn new(ec2: Arc<dyn Ec2Api>) -> Self {
        Self {
            ec2,
            cache: TtlCache::new(DEFAULT_TTL),
            last: TtlCache::new(LAST_TTL),
        }
    }

    /// The group of a class; `None` if it names none or there is none by that name.
    pub(crate) async fn get(
        &self,
        node_class: &Ec2NodeClass,
        now: Timestamp,
    ) -> Result<Option<PlacementGroup>, ApiError> {
        let Some(selector) = &node_class.spec.placement_group_selector else {
            return Ok(None);
        };
        let key = revision_key(node_class);
        if let Some(group) = self.cache.get(&key, now) {
            return Ok(group);
        }
        let input = DescribePlacementGroupsInput::builder()
            .set_group_ids(selector.id.clone().map(|id| vec![id]))
            .set_group_names(selector.name.clone().map(|name| vec![name]))
            .filters(filter("state", ["available"]))
            .build()
            .map_err(unbuilt)?;
        let group = match self.ec2.describe_placement_groups(input).await {
            Err(error) if UNKNOWN.contains(&error.code.as_str()) => None,
            answer => answer?.placement_groups().first().and_then(of_ec2),
        };
        if let Some(group) = &group {
            self.last.insert(selector_key(selector), group.clone(), now);
        }
        self.cache.insert(key, group.clone(), now);
        Ok(group)
    }

    /// The placement group of a class, or what it was within a day where EC2 cannot be asked.
    pub(crate) async fn get_or_last(
        &self,
        node_class: &Ec2NodeClass,
        now: Timestamp,
    ) -> Result<Option<PlacementGroup>, ApiError> {
        let error = match self.get(node_class, now).await {
            Ok(group) => return Ok(group),
            Err(error) => error,
        };
        let selector = node_class.spec.placement_group_selector.as_ref();
        let last = selector.and_then(|it| self.last.get(&selector_key(it), now));
        let Some(group) = last else {
            return Err(error);
        };
        tracing::warn!(%error, group = group.id, "the placement group is taken to be as it was");
        Ok(Some(group))
    }
}

fn selector_key(selector: &PlacementGroupSelector) -> String {
    format!("{selector:?}")
}

fn of_ec2(group: &aws_sdk_ec2::types::PlacementGroup) -> Option<PlacementGroup> {
    Some(PlacementGroup {
        id: group.group_id()?.to_owned(),
        strategy: group.strategy()?.as_str().to_owned(),
        partitions: match group.strategy()? {
            PlacementStrategy::Partition => {
                u32::try_from(group.partition_count().unwrap_or_default()).ok()?
            }
            _ => 0,
        },
    })
}
