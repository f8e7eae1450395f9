//! The CreateFleet call: equal requests share one.
//!
//! Each caller asks for one instance and gets one, or the errors. Answers to Karpenter's
//! `pkg/batcher/createfleet.go`.

use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_ec2::operation::create_fleet::{CreateFleetInput, CreateFleetOutput};
use aws_sdk_ec2::types::{CreateFleetError, CreateFleetInstance};

use crate::batcher::BatchCall;
use crate::cache::fingerprint;
use crate::seam::{ApiResult, Ec2Api};

/// A request for one instance.
pub(super) struct FleetRequest {
    /// Without token, and of capacity one.
    pub(super) input: Arc<CreateFleetInput>,
    pub(super) token: String,
}

/// What one caller gets.
pub(super) type FleetAnswer = ApiResult<FleetOutcome>;

#[derive(Debug, Clone)]
pub(super) struct FleetOutcome {
    pub(super) instance: Option<FleetInstance>,
    pub(super) errors: Arc<[FleetError]>,
    /// Whether this caller is the one to act on the errors of the whole fleet.
    pub(super) is_first: bool,
}

/// An instance of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FleetInstance {
    pub(super) id: String,
    pub(super) instance_type: String,
    pub(super) zone: Option<String>,
    pub(super) subnet_id: Option<String>,
    pub(super) image_id: Option<String>,
}

/// An offering that a fleet could not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FleetError {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) instance_type: Option<String>,
    pub(super) zone: Option<String>,
    pub(super) subnet_id: Option<String>,
}

/// The call behind the batcher.
pub(super) struct FleetCall {
    ec2: Arc<dyn Ec2Api>,
}

impl FleetCall {
    pub(super) fn new(ec2: Arc<dyn Ec2Api>) -> Self {
        Self { ec2 }
    }
}

#[async_trait]
impl BatchCall for FleetCall {
    type In = FleetRequest;
    type Out = FleetAnswer;

    fn bucket(&self, request: &FleetRequest) -> String {
        fingerprint([format!("{:?}", request.input).as_str()]).to_string()
    }

    /// A request names every type and zone, and hundreds can wait that all say the same.
    fn share(&self, first: &FleetRequest, request: &mut FleetRequest) {
        request.input = Arc::clone(&first.input);
    }

    async fn call(&self, requests: Vec<FleetRequest>) -> Vec<FleetAnswer> {
        let count = requests.len();
        let Some(first) = requests.first() else {
            return Vec::new();
        };
        let mut input = CreateFleetInput::clone(&first.input);
        input.client_token = Some(client_token(&requests));
        if let Some(target) = input.target_capacity_specification.as_mut() {
            target.total_target_capacity = i32::try_from(count).ok();
        }
        match self.ec2.create_fleet(input).await {
            Ok(output) => deal(output, count),
            Err(error) => vec![Err(error); count],
        }
    }
}

/// One caller's own token, or one made of all callers'.
fn client_token(requests: &[FleetRequest]) -> String {
    if let [request] = requests {
        return request.token.clone();
    }
    let mut tokens: Vec<&str> = requests
        .iter()
        .map(|request| request.token.as_str())
        .collect();
    tokens.sort_unstable();
    format!("batch-{:016x}", fingerprint(tokens))
}

fn deal(output: CreateFleetOutput, count: usize) -> Vec<FleetAnswer> {
    let errors: Arc<[FleetError]> = output
        .errors
        .unwrap_or_default()
        .into_iter()
        .map(fleet_error)
        .collect();
    let mut instances = output
        .instances
        .unwrap_or_default()
        .into_iter()
        .flat_map(fleet_instances);
    (0..count)
        .map(|index| {
            let instance = instances.next();
            Ok(FleetOutcome {
                instance,
                errors: Arc::clone(&errors),
                is_first: index == 0,
            })
        })
        .collect()
}

fn fleet_instances(instance: CreateFleetInstance) -> Vec<FleetInstance> {
    let overrides = instance
        .launch_template_and_overrides
        .and_then(|template| template.overrides);
    let told = overrides.as_ref();
    let instance_type = instance
        .instance_type
        .or_else(|| told?.instance_type.clone());
    let zone = instance
        .availability_zone
        .or_else(|| told?.availability_zone.clone());
    let subnet_id = instance.subnet_id.or_else(|| told?.subnet_id.clone());
    let image_id = told.and_then(|told| told.image_id.clone());
    let template = FleetInstance {
        id: String::new(),
        instance_type: instance_type
            .map(|kind| kind.as_str().to_owned())
            .unwrap_or_default(),
        zone,
        subnet_id,
        image_id,
    };
    let ids = instance.instance_ids.unwrap_or_default();
    ids.into_iter()
        .map(|id| FleetInstance {
            id,
            ..template.clone()
        })
        .collect()
}

fn fleet_error(error: CreateFleetError) -> FleetError {
    let overrides = error
        .launch_template_and_overrides
        .and_then(|template| template.overrides);
    let told = overrides.as_ref();
    FleetError {
        code: error.error_code.unwrap_or_default(),
        message: error.error_message.unwrap_or_default(),
        instance_type: told.and_then(|told| Some(told.instance_type.as_ref()?.as_str().to_owned())),
        zone: told.and_then(|told| told.availability_zone.clone()),
        subnet_id: told.and_then(|told| told.subnet_id.clone()),
    }
}
