//! The provider's repair policies, ready to be asked.
//!
//! What they say of a node is not decided here.

use std::sync::Arc;

use apis::RepairPolicy;
use cloudprovider::CloudProvider;
use disruption::repair::RepairPolicies;

use crate::settings::Settings;

/// The provider's repair policies, while repair is a disruption method; what is wrong with them otherwise.
pub(crate) fn repair_policies(
    settings: &Settings,
    provider: &dyn CloudProvider,
) -> Result<Option<Arc<RepairPolicies>>, String> {
    if !settings.feature_gates.node_repair || settings.legacy_node_repair {
        return Ok(None);
    }
    compiled(provider.repair_policies()).map(|it| Some(Arc::new(it)))
}

/// A provider's repair policies, ready to be asked; otherwise all that is wrong with them.
pub fn compiled(policies: Vec<RepairPolicy>) -> Result<RepairPolicies, String> {
    RepairPolicies::new(policies).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        format!("RepairPolicies: {}", faults.join("; "))
    })
}
