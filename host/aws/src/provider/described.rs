//! An instance as the port tells of it.
//!
//! Adds nothing that EC2 did not tell of the instance or its tags. Answers to `instanceToNodeClaim` in
//! `pkg/cloudprovider/cloudprovider.go` of the AWS provider.

use std::collections::BTreeMap;

use apis::ec2nodeclass::CapacityReservationType;
use apis::labels;
use apis::resources::Resources;
use cloudprovider::Launched;

use crate::instance::Instance;

/// An instance as far as EC2 alone can tell.
pub(super) fn described(instance: &Instance) -> Launched {
    let tag = |key: &str| instance.tags.get(key).cloned();
    let mut node_labels = BTreeMap::from([
        (
            labels::INSTANCE_TYPE.to_owned(),
            instance.instance_type.clone(),
        ),
        (labels::TOPOLOGY_ZONE.to_owned(), instance.zone.clone()),
        (
            labels::CAPACITY_TYPE.to_owned(),
            instance.capacity_type.to_string(),
        ),
    ]);
    let carried = [labels::NODEPOOL, labels::EC2_NODE_CLASS];
    node_labels.extend(
        carried
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), tag(key)?))),
    );
    if let Some(id) = &instance.placement_group_id {
        node_labels.insert(labels::PLACEMENT_GROUP_ID.to_owned(), id.clone());
    }
    if let Some(id) = instance.reservation() {
        node_labels.insert(labels::CAPACITY_RESERVATION_ID.to_owned(), id.to_owned());
        let kind = if instance.is_capacity_block {
            CapacityReservationType::CapacityBlock
        } else {
            CapacityReservationType::Default
        };
        let key = labels::CAPACITY_RESERVATION_TYPE.to_owned();
        node_labels.insert(key, kind.as_str().to_owned());
        let key = labels::CAPACITY_RESERVATION_INTERRUPTIBLE.to_owned();
        node_labels.insert(key, instance.is_interruptible.to_string());
    }
    Launched {
        provider_id: instance.provider_id(),
        image_id: instance.image_id.clone(),
        node_claim_name: tag(labels::NODECLAIM_TAG),
        launch_token: tag(labels::LAUNCH_TAG),
        node_pool_name: tag(labels::NODEPOOL),
        labels: node_labels,
        annotations: BTreeMap::new(),
        capacity: Resources::new(),
        allocatable: Resources::new(),
        launched_at: instance.launched_at,
        life: instance.life,
    }
}
