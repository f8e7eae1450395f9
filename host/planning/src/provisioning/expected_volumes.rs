//! How many volumes a young node will take, from its instance type, until its drivers say so themselves.

use std::collections::BTreeMap;

use apis::labels;
use scheduling::problem::ExistingNode;
use state::Snapshot;

use super::pools::PoolTypes;

/// Volume limits of types that have any, by pool and type.
pub(super) type ExpectedVolumes<'a> = BTreeMap<(&'a str, &'a str), &'a BTreeMap<String, u32>>;

pub(super) fn expected_volumes(pools: &[PoolTypes]) -> ExpectedVolumes<'_> {
    let mut expected = ExpectedVolumes::new();
    for pool in pools {
        let name = pool.node_pool.metadata.name.as_deref().unwrap_or_default();
        for it in pool.instance_types.iter() {
            if !it.volume_attachment_limits.is_empty() {
                expected.insert((name, it.name.as_str()), &it.volume_attachment_limits);
            }
        }
    }
    expected
}

/// The node with what its type says about drivers that are not published yet.
pub(super) fn expecting_volumes(
    mut node: ExistingNode,
    snapshot: &Snapshot,
    expected: &ExpectedVolumes<'_>,
) -> ExistingNode {
    let pool = node.pool.as_deref().unwrap_or_default();
    let of_type = node.labels.get(labels::INSTANCE_TYPE);
    let Some(limits) = of_type.and_then(|it| expected.get(&(pool, it.as_str()))) else {
        return node;
    };
    let name = node.node_ref.node_name();
    let published = name.and_then(|it| snapshot.volumes().published_limits(it));
    for (driver, limit) in *limits {
        if published.is_none_or(|it| !it.contains_key(driver)) {
            node.volume_limits.insert(driver.clone(), *limit);
        }
    }
    node
}
