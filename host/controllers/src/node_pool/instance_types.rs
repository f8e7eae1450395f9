//! What NodePools may buy, whoever asks.
//!
//! Reads, and changes nothing.

use cloudprovider::CloudProvider;
use kube::ResourceExt;
use planning::provisioning::TypesByPool;
use state::Snapshot;
use tracing::debug;

/// Instance types of every pool that can be asked for them, static and unready ones included; those that are known are
/// not asked again.
pub(crate) async fn types_of_all(
    provider: &dyn CloudProvider,
    snapshot: &Snapshot,
    known: TypesByPool,
) -> TypesByPool {
    let mut types = known;
    for pool in snapshot.node_pools() {
        let name = pool.name_any();
        let class = snapshot.class_of(pool);
        let Some(class) = class.filter(|_| !types.contains_key(&name)) else {
            continue;
        };
        match provider.instance_types(pool, class).await {
            Ok(found) => {
                types.insert(name, found);
            }
            Err(error) => debug!(NodePool = %name, %error, "no instance types"),
        }
    }
    types
}
