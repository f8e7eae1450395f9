//! The CreateFleet call: equal requests share one.
//!
//! Each caller asks for one instance and gets one, or the errors. Nothing is asked of EC2 before every claim of the
//! call bears its token. Answers to Karpenter's `pkg/batcher/createfleet.go`.

use std::sync::Arc;
use std::time::Duration;

use apis::{ProviderId, labels};
use async_trait::async_trait;
use aws_sdk_ec2::operation::create_fleet::{CreateFleetInput, CreateFleetOutput};
use aws_sdk_ec2::types::{CreateFleetError, CreateFleetInstance, Tag};
use cloudprovider::{AttemptError, AttemptRecord, CloudProviderError, LaunchAttempt};
use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;

use super::claim::ClaimUid;
use super::shared_launches::SharedLaunches;
use crate::batcher::{BatchCall, BatchWindow};
use crate::cache::fingerprint;
use crate::error::TOKEN_REUSED;
use crate::seam::{ApiError, Ec2Api, ErrorFault};

/// For how long equal requests are gathered for one call, and how many.
pub(super) const WINDOW: BatchWindow = BatchWindow {
    idle: Duration::from_millis(35),
    max: Duration::from_secs(1),
    items_max: 1000,
};
/// Claims that are written at once before their call.
const WRITES_AT_ONCE: usize = 100;

/// A request for one instance.
pub(super) struct FleetRequest {
    /// Without token, and of capacity one.
    pub(super) input: Arc<CreateFleetInput>,
    /// UID of the claim.
    pub(super) uid: ClaimUid,
    /// Whether EC2 was asked for it before.
    pub(super) asked: FleetAttempt,
    /// Where the token is written before the call.
    pub(super) record: Arc<dyn AttemptRecord>,
    pub(super) now: Timestamp,
}

/// Whether the claim bears a token already.
#[derive(Debug, Clone)]
pub(super) enum FleetAttempt {
    /// Not for this attempt, which has this number.
    First(u32),
    /// Nobody knows what came of it.
    Again(LaunchAttempt),
}

impl FleetAttempt {
    pub(super) fn number(&self) -> u32 {
        match self {
            Self::First(number) => *number,
            Self::Again(attempt) => attempt.number,
        }
    }
}

/// Answer for one caller.
pub(super) type FleetAnswer = Result<FleetOutcome, FleetFailure>;

/// Why a caller gets nothing.
#[derive(Debug, Clone)]
pub(super) enum FleetFailure {
    /// EC2 was not asked: the claim could not be written.
    Unwritten(CloudProviderError),
    /// Who asked for all is gone, and whether EC2 was asked nobody knows.
    CutOff,
    /// EC2 knows the token from another request.
    Spent,
    /// EC2 refused, or did not answer.
    Call(ApiError),
}

/// What a fleet gave one caller.
#[derive(Debug, Clone)]
pub(super) struct FleetOutcome {
    /// None where the fleet had fewer than were asked for.
    pub(super) instance: Option<FleetInstance>,
    /// Those of the whole fleet.
    pub(super) errors: Arc<[FleetError]>,
    /// Whether this caller is the one to act on the errors of the whole fleet.
    pub(super) is_first: bool,
}

/// An instance of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FleetInstance {
    pub(super) id: String,
    pub(super) instance_type: String,
    /// Name of the zone, where EC2 tells it.
    pub(super) zone: Option<String>,
    /// Where EC2 tells it.
    pub(super) subnet_id: Option<String>,
    /// Where EC2 tells it.
    pub(super) image_id: Option<String>,
}

/// An offering that a fleet could not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FleetError {
    /// EC2's, such as `InsufficientInstanceCapacity`.
    pub(super) code: String,
    pub(super) message: String,
    pub(super) instance_type: Option<String>,
    pub(super) zone: Option<String>,
    pub(super) subnet_id: Option<String>,
}

/// The call behind the batcher.
pub(super) struct FleetCall {
    ec2: Arc<dyn Ec2Api>,
    launches: Arc<SharedLaunches>,
}

impl FleetCall {
    pub(super) fn new(ec2: Arc<dyn Ec2Api>, launches: Arc<SharedLaunches>) -> Self {
        Self { ec2, launches }
    }

    /// Asks for an instance for each of the requests, whose claims bear the token.
    async fn ask(&self, token: &str, requests: &[&FleetRequest]) -> Vec<FleetAnswer> {
        let Some(first) = requests.first() else {
            return Vec::new();
        };
        let input = input_of(&first.input, token, requests.len());
        match self.ec2.create_fleet(input).await {
            Ok(output) => {
                self.launches.note_answer(token, first.now);
                self.assign(token, requests, output)
            }
            Err(error) if error.code == TOKEN_REUSED => {
                self.launches.spent(token, first.now);
                vec![Err(FleetFailure::Spent); requests.len()]
            }
            Err(error) => {
                let is_first = matches!(first.asked, FleetAttempt::First(_));
                if is_first && error.fault == ErrorFault::Client {
                    // Refused as a whole. Of a call before this one, which may have been answered, it says nothing.
                    self.launches.note_answer(token, first.now);
                }
                vec![Err(FleetFailure::Call(error)); requests.len()]
            }
        }
    }

    /// Gives each claim its instance of those that EC2 answered with.
    fn assign(
        &self,
        token: &str,
        requests: &[&FleetRequest],
        output: CreateFleetOutput,
    ) -> Vec<FleetAnswer> {
        let errors: Arc<[FleetError]> = output
            .errors
            .unwrap_or_default()
            .into_iter()
            .map(fleet_error)
            .collect();
        let told = output.instances.unwrap_or_default();
        let instances: Vec<FleetInstance> = told.into_iter().flat_map(fleet_instances).collect();
        let outcome = |(index, request): (usize, &&FleetRequest)| {
            // What is asked for again may be told again, of claims that have it long since.
            let is_free = |it: &&FleetInstance| match (&request.asked, &it.zone) {
                (FleetAttempt::Again(_), Some(zone)) => {
                    let provider_id = ProviderId::of_instance(zone, &it.id);
                    !request.record.is_owned(&provider_id)
                }
                (FleetAttempt::First(_), _) | (FleetAttempt::Again(_), None) => true,
            };
            let free = instances.iter().filter(is_free).map(|it| it.id.clone());
            if let FleetAttempt::First(_) = request.asked {
                self.launches.forget(token, &request.uid, request.now);
            }
            let id = self.launches.assign(token, &request.uid, request.now, free);
            let instance = id.and_then(|id| instances.iter().find(|it| it.id == id));
            Ok(FleetOutcome {
                instance: instance.cloned(),
                errors: Arc::clone(&errors),
                is_first: index == 0,
            })
        };
        requests.iter().enumerate().map(outcome).collect()
    }
}

/// The request for so many instances, which bear the token as a tag.
fn input_of(input: &CreateFleetInput, token: &str, count: usize) -> CreateFleetInput {
    let mut input = input.clone();
    input.client_token = Some(token.to_owned());
    if let Some(target) = input.target_capacity_specification.as_mut() {
        target.total_target_capacity = i32::try_from(count).ok();
    }
    for specification in input.tag_specifications.iter_mut().flatten() {
        let tag = Tag::builder().key(labels::LAUNCH_TAG).value(token).build();
        specification.tags.get_or_insert_default().push(tag);
    }
    input
}

/// Writes the attempt on every claim, and answers its token. It is made of the first claim's UID and count, so that
/// claim is written before the others: it would make the same token again if it forgot this one.
async fn begin(requests: &[FleetRequest]) -> (String, Vec<Result<(), AttemptError>>) {
    let mut written = Vec::with_capacity(requests.len());
    let mut token = String::new();
    let mut rest = requests.iter();
    for request in rest.by_ref() {
        token = match &request.asked {
            FleetAttempt::First(number) => format!("{}-{number}", request.uid),
            FleetAttempt::Again(attempt) => attempt.token.clone(),
        };
        let result = request.begin(&token).await;
        let is_begun = result.is_ok();
        written.push(result);
        if is_begun {
            break;
        }
    }
    let others: Vec<_> = rest.map(|request| request.begin(&token)).collect();
    let others: Vec<_> = stream::iter(others)
        .buffered(WRITES_AT_ONCE)
        .collect()
        .await;
    written.extend(others);
    (token, written)
}

impl FleetRequest {
    async fn begin(&self, token: &str) -> Result<(), AttemptError> {
        let FleetAttempt::First(number) = self.asked else {
            return Ok(());
        };
        let attempt = LaunchAttempt {
            number,
            token: token.to_owned(),
        };
        self.record.begin(&attempt).await
    }
}

#[async_trait]
impl BatchCall for FleetCall {
    type In = FleetRequest;
    type Out = FleetAnswer;

    fn bucket(&self, request: &FleetRequest) -> String {
        let token = match &request.asked {
            FleetAttempt::First(_) => "",
            FleetAttempt::Again(attempt) => &attempt.token,
        };
        fingerprint([token, format!("{:?}", request.input).as_str()]).to_string()
    }

    /// A request names every type and zone, and hundreds can wait that all say the same.
    fn share(&self, first: &FleetRequest, request: &mut FleetRequest) {
        request.input = Arc::clone(&first.input);
    }

    async fn call(&self, requests: Vec<FleetRequest>) -> Vec<FleetAnswer> {
        let (token, written) = begin(&requests).await;
        let both = requests.iter().zip(&written);
        let begun = both.filter(|(_, written)| written.is_ok());
        let begun: Vec<&FleetRequest> = begun.map(|(request, _)| request).collect();
        let mut answers = self.ask(&token, &begun).await.into_iter();
        let answer = |written: Result<(), AttemptError>| match written {
            Ok(()) => answers.next().unwrap_or(Err(FleetFailure::CutOff)),
            Err(error) => Err(FleetFailure::Unwritten(error.into())),
        };
        written.into_iter().map(answer).collect()
    }
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
