//! What a fleet request may become: one override of one template, and how it is told in an answer.

use super::super::bootstrap::KubeletSettings;
use super::super::market::CapacityPool;
use crate::catalogue::CatalogueEntry;
use aws_sdk_ec2::types::{
    CreateFleetError, FleetLaunchTemplateOverrides, FleetLaunchTemplateSpecification,
    InstanceLifecycle, InstanceType as Ec2InstanceType, LaunchTemplateAndOverridesResponse,
    RequestLaunchTemplateData,
};
use std::sync::Arc;

/// One override that may give instances.
#[derive(Debug, Clone)]
pub(super) struct PossibleOverride {
    pub(super) instance_type: Option<&'static CatalogueEntry>,
    pub(super) type_name: String,
    pub(super) zone: String,
    pub(super) subnet: Option<usize>,
    pub(super) image_id: String,
    pub(super) price: Option<f64>,
    pub(super) priority: f64,
    pub(super) pool: CapacityPool,
    pub(super) template: FleetTemplate,
    pub(super) order: usize,
}

#[derive(Debug, Clone)]
pub(super) struct FleetTemplate {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) data: Arc<RequestLaunchTemplateData>,
    pub(super) bootstrap: Arc<KubeletSettings>,
}

pub(super) fn lifecycle(candidate: &PossibleOverride) -> InstanceLifecycle {
    if candidate.pool.is_spot() {
        InstanceLifecycle::Spot
    } else {
        InstanceLifecycle::OnDemand
    }
}

pub(super) fn error(candidate: &PossibleOverride, code: &str, message: &str) -> CreateFleetError {
    CreateFleetError::builder()
        .launch_template_and_overrides(response(candidate))
        .lifecycle(lifecycle(candidate))
        .error_code(code)
        .error_message(message)
        .build()
}

pub(super) fn response(candidate: &PossibleOverride) -> LaunchTemplateAndOverridesResponse {
    let specification = FleetLaunchTemplateSpecification::builder()
        .launch_template_id(&candidate.template.id)
        .version("1");
    debug_assert!(!candidate.template.name.is_empty(), "a template has a name");
    let overrides = FleetLaunchTemplateOverrides::builder()
        .instance_type(Ec2InstanceType::from(candidate.type_name.as_str()))
        .availability_zone(&candidate.zone)
        .image_id(&candidate.image_id)
        .set_priority((candidate.priority < f64::MAX).then_some(candidate.priority));
    LaunchTemplateAndOverridesResponse::builder()
        .launch_template_specification(specification.build())
        .overrides(overrides.build())
        .build()
}
