//! Launches of which nobody knows how they ended: each claim gets the instance that is there, and only one.

use std::sync::Arc;

use apis::{CapacityType, NodeSelectorRequirementWithMinValues, Operator, ProviderId, labels};
use aws_sdk_ec2::types::Tag;
use cloudprovider::{
    CloudProvider, CloudProviderError, FleetingRecord, LaunchAttempt, LaunchRequest, Launched,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::catalogue::infos;
use super::launch::{m5_on_demand, offering, request};
use super::{Rig, class};
use crate::seam::ApiError;

fn lost() -> ApiError {
    ApiError::unanswered("cut")
}

/// Claims with their records, which outlive the process.
struct Claims {
    rig: Rig,
    requests: Vec<(LaunchRequest, Arc<FleetingRecord>)>,
}

impl Claims {
    async fn new(names: &[&str]) -> Self {
        let rig = Rig::new(infos(&["m5.large", "c5.large"]));
        rig.aws.edit(|state| state.keeps_tokens = true);
        let mut claims = Self {
            rig,
            requests: Vec::new(),
        };
        for name in names {
            claims.add(name).await;
        }
        claims
    }

    async fn add(&mut self, name: &str) {
        let class = self.rig.resolve(class()).await;
        let offerings = m5_on_demand();
        let mut request = request(&self.rig, &class, name, offerings).await;
        let record = Arc::<FleetingRecord>::default();
        request.record = Arc::<FleetingRecord>::clone(&record) as _;
        self.requests.push((request, record));
    }

    /// Every claim as its record has left it.
    async fn launch(&self) -> Vec<Result<Launched, CloudProviderError>> {
        let launches = self.requests.iter().map(|(request, record)| {
            let mut request = request.clone();
            let mut claim = request.node_claim.as_ref().clone();
            let begun = record.attempt().map(|it| it.to_annotation());
            let begun = begun.map(|it| (labels::LAUNCH_ANNOTATION.to_owned(), it));
            claim.metadata.annotations = Some(begun.into_iter().collect());
            request.node_claim = Arc::new(claim);
            self.rig.provider.create(request)
        });
        futures::future::join_all(launches).await
    }

    /// As a Karpenter leaves them that died before EC2 answered: nobody wrote down whose instance is whose.
    fn forget_launches(&mut self) {
        for (request, record) in &mut self.requests {
            let claim = Arc::make_mut(&mut request.node_claim);
            claim.metadata.creation_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
            *record = Arc::default();
            request.record = Arc::<FleetingRecord>::clone(record) as _;
        }
        self.rig.aws.edit(|state| {
            // It asked under tokens of its own.
            state.answered.clear();
            let tags = state
                .instances
                .values_mut()
                .filter_map(|it| it.tags.as_mut());
            tags.for_each(|tags| tags.retain(|tag| tag.key() != Some(labels::LAUNCH_TAG)));
        });
        self.rig.restart();
    }

    /// Free addresses of the two zones that launches here may go to.
    async fn free(&self) -> [u32; 2] {
        let class = &self.requests[0].0.node_class;
        let free = self.rig.provider.free_addresses(class).await;
        ["us-east-1a", "us-east-1b"].map(|zone| free[zone])
    }

    fn instances(&self) -> usize {
        self.rig.aws.edit(|state| state.instances.len())
    }
}

fn ids(launched: Vec<Result<Launched, CloudProviderError>>) -> Vec<ProviderId> {
    let mut ids: Vec<ProviderId> = launched
        .into_iter()
        .map(|it| it.unwrap().provider_id)
        .collect();
    ids.sort();
    ids.dedup();
    ids
}

#[tokio::test(start_paused = true)]
async fn claims_whose_shared_answer_was_lost_find_their_instances_whoever_joins_them() {
    let mut claims = Claims::new(&["one", "two", "three"]).await;
    claims
        .rig
        .aws
        .edit(|state| state.lost_answers.push_back(lost()));
    assert!(claims.launch().await.iter().all(Result::is_err));
    claims.add("four").await;
    assert_eq!(ids(claims.launch().await).len(), 4);
    assert_eq!(claims.instances(), 4);
}

#[tokio::test(start_paused = true)]
async fn another_process_finds_what_was_launched_under_the_token() {
    let mut claims = Claims::new(&["one", "two"]).await;
    let first = ids(claims.launch().await);
    claims.rig.restart();
    assert_eq!(ids(claims.launch().await), first);
    assert_eq!((first.len(), claims.instances()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn claims_that_a_karpenter_left_get_the_instances_that_it_left() {
    let mut claims = Claims::new(&["one", "two"]).await;
    let left = ids(claims.launch().await);
    claims.forget_launches();
    for _ in 0..2 {
        assert_eq!(ids(claims.launch().await), left);
    }
    claims.add("three").await;
    assert_eq!(ids(claims.launch().await).len(), 3);
    assert_eq!(claims.instances(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_bears_the_name_of_a_claim_is_left_to_it() {
    let mut claims = Claims::new(&["one"]).await;
    ids(claims.launch().await);
    claims.forget_launches();
    let named = Tag::builder().key(labels::NODECLAIM_TAG).value("other");
    claims.rig.aws.edit(|state| {
        let tags = state
            .instances
            .values_mut()
            .filter_map(|it| it.tags.as_mut());
        tags.for_each(|tags| tags.push(named.clone().build()));
    });
    ids(claims.launch().await);
    assert_eq!(claims.instances(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_stands_for_another_request_buys_nothing_more() {
    let mut claims = Claims::new(&["one", "two"]).await;
    ids(claims.launch().await);
    // EC2 does not list them yet, and one of the claims is gone.
    let hidden = claims
        .rig
        .aws
        .edit(|state| std::mem::take(&mut state.instances));
    claims.requests.pop();
    claims.rig.restart();
    for _ in 0..2 {
        let CloudProviderError::Create { reason, .. } =
            claims.launch().await.remove(0).unwrap_err()
        else {
            panic!("the launch is tried again");
        };
        assert_eq!(reason, "LaunchUnlisted");
    }
    assert_eq!(claims.rig.aws.calls("CreateFleet"), 2);
    claims.rig.aws.edit(|state| state.instances = hidden);
    ids(claims.launch().await);
    assert_eq!(claims.instances(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_type_that_was_not_asked_for_is_adopted_or_ended() {
    for (allowed, is_adopted) in [(["m5.large", "c5.large"], true), (["m5.large", "x"], false)] {
        let mut claims = Claims::new(&["one"]).await;
        claims
            .rig
            .aws
            .edit(|state| state.surprise = Some("c5.large".to_owned()));
        let types = NodeSelectorRequirementWithMinValues::new(
            labels::INSTANCE_TYPE,
            Operator::In,
            allowed.map(str::to_owned),
        );
        let request = &mut claims.requests[0].0;
        Arc::make_mut(&mut request.node_claim).spec.requirements = vec![types];
        let launched = claims.launch().await.remove(0);
        let kind = launched.map(|it| it.labels[labels::INSTANCE_TYPE].clone());
        assert_eq!(kind.as_deref().ok(), is_adopted.then_some("c5.large"));
        let ended = claims.rig.aws.calls("TerminateInstances");
        assert_eq!(ended, usize::from(!is_adopted));
    }
}

#[tokio::test(start_paused = true)]
async fn addresses_are_given_back_once_it_is_known_what_a_launch_took() {
    // Addresses of an m5.large.
    const TAKEN: u32 = 29;
    let refused = || ApiError::client("InvalidParameterValue", "no");
    // What EC2 fails with, whether it launches all the same, and what is free until it is asked again.
    for (failure, is_launched, then) in [
        (lost(), true, [1000 - TAKEN; 2]),
        (lost(), false, [1000 - TAKEN; 2]),
        (refused(), false, [1000; 2]),
    ] {
        let mut claims = Claims::new(&["one"]).await;
        let in_both = ["us-east-1a", "us-east-1b"]
            .map(|zone| offering("m5.large", zone, CapacityType::OnDemand, 0.096));
        claims.requests[0].0.offerings = in_both.into();
        assert_eq!(claims.free().await, [1000, 1000]);
        claims.rig.aws.edit(|state| {
            let failures = if is_launched {
                &mut state.lost_answers
            } else {
                &mut state.fleet_failures
            };
            failures.push_back(failure.clone());
        });
        claims.launch().await.remove(0).unwrap_err();
        assert_eq!(claims.free().await, then, "{failure:?}");
        ids(claims.launch().await);
        assert_eq!(claims.free().await, [1000 - TAKEN, 1000], "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_attempt_is_followed_by_another() {
    let claims = Claims::new(&["one"]).await;
    let refused = ApiError::client("InvalidParameterValue", "no");
    claims
        .rig
        .aws
        .edit(|state| state.fleet_failures.push_back(refused));
    claims.launch().await.remove(0).unwrap_err();
    ids(claims.launch().await);
    let second = LaunchAttempt {
        number: 1,
        token: "uid-one-1".to_owned(),
    };
    assert_eq!(claims.requests[0].1.attempt(), Some(second));
}

#[tokio::test(start_paused = true)]
async fn a_throttled_repetition_does_not_end_the_launch_that_it_repeats() {
    let mut claims = Claims::new(&["one"]).await;
    ids(claims.launch().await);
    let hidden = claims
        .rig
        .aws
        .edit(|state| std::mem::take(&mut state.instances));
    claims.rig.restart();
    let throttled = ApiError::client("RequestLimitExceeded", "slow down");
    claims
        .rig
        .aws
        .edit(|state| state.fleet_failures.push_back(throttled));
    claims.launch().await.remove(0).unwrap_err();
    claims.rig.aws.edit(|state| state.instances = hidden);
    ids(claims.launch().await);
    assert_eq!(claims.instances(), 1);
}

#[tokio::test(start_paused = true)]
async fn look_ups_that_ec2_throttles_are_not_made_one_by_one() {
    let claims = Claims::new(&["one", "two"]).await;
    let ids = ids(claims.launch().await);
    let rig = &claims.rig;
    for (failure, calls) in [
        (ApiError::client("RequestLimitExceeded", "slow down"), 1),
        (lost(), 1),
        (ApiError::client("InvalidInstanceID.NotFound", "another"), 3),
    ] {
        let before = rig.aws.calls("DescribeInstances");
        let told = format!("{failure:?}");
        rig.aws
            .edit(|state| state.describe_failures.push_back(failure));
        let found = futures::future::join_all(ids.iter().map(|id| rig.provider.get(id))).await;
        let made = rig.aws.calls("DescribeInstances") - before;
        assert_eq!((made, found[0].is_err()), (calls, calls == 1), "{told}");
    }
}
