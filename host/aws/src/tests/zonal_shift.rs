//! Zones that traffic is shifted away from: nothing is offered there, and nothing there is touched.

use std::collections::BTreeSet;

use apis::{CapacityType, Ec2NodeClass, NodeClaim, labels};
use aws_sdk_ec2::types::InstanceTypeInfo;
use cloudprovider::{Clock as _, CloudProvider as _, CloudProviderError};
use jiff::{SignedDuration, Timestamp};

use super::catalogue::infos;
use super::launch::{launch, offering};
use super::{Rig, class};
use crate::cache::after;
use crate::fake::ZONES;
use crate::seam::ZonalShift;

const SHIFTED: &str = "use1-az-a";

fn types() -> Vec<InstanceTypeInfo> {
    infos(&["m5.large"])
}

fn rig() -> Rig {
    Rig::with_options(types(), |options| {
        options.enable_zonal_shift = true;
        options.cluster_arn = Some("arn:aws:eks:us-east-1:111122223333:cluster/demo".to_owned());
    })
}

impl Rig {
    fn shift(&self, shifts: &[(&str, Option<Timestamp>)]) {
        let shifts = shifts.iter().map(|(zone, expires_at)| ZonalShift {
            away_from: (*zone).to_owned(),
            expires_at: *expires_at,
        });
        let shifts = shifts.collect();
        self.aws.edit(|state| state.shifts = shifts);
    }

    fn in_seconds(&self, seconds: i64) -> Timestamp {
        after(self.clock.now(), SignedDuration::from_secs(seconds))
    }

    async fn shifted(&self) -> Vec<String> {
        let zones = self.provider.shifted_zones().await.unwrap();
        zones.into_iter().collect()
    }

    /// Zones in which anything can be bought.
    async fn zones_on_offer(&self, class: &Ec2NodeClass) -> Vec<String> {
        let types = self.types(class).await;
        let offerings = types.iter().flat_map(|it| &it.offerings);
        let zones = offerings
            .filter(|it| it.is_available())
            .filter_map(|it| it.requirements.get(labels::TOPOLOGY_ZONE).any(0));
        let zones: BTreeSet<String> = zones.collect();
        zones.into_iter().collect()
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_offered_in_a_shifted_zone_until_the_shift_ends() {
    let rig = rig();
    let class = rig.resolve(class()).await;
    assert_eq!(rig.zones_on_offer(&class).await, ZONES);
    rig.shift(&[(SHIFTED, Some(rig.in_seconds(60)))]);
    assert_eq!(rig.shifted().await, [SHIFTED]);
    assert_eq!(rig.zones_on_offer(&class).await, ZONES[1..]);
    // Its end is known, whether or not ARC is asked again.
    rig.pass(60);
    assert_eq!(rig.zones_on_offer(&class).await, ZONES);
    // The later end of two counts, and one without an end lasts until ARC says otherwise.
    rig.shift(&[
        (SHIFTED, Some(rig.in_seconds(600))),
        (SHIFTED, Some(rig.in_seconds(30))),
    ]);
    rig.shifted().await;
    rig.pass(300);
    assert_eq!(rig.zones_on_offer(&class).await, ZONES[1..]);
    rig.shift(&[(SHIFTED, None)]);
    rig.shifted().await;
    rig.pass(900_000);
    assert_eq!(rig.zones_on_offer(&class).await, ZONES[1..]);
    rig.shift(&[]);
    assert!(rig.shifted().await.is_empty());
    assert_eq!(rig.zones_on_offer(&class).await, ZONES);
}

/// Karpenter keeps a shift that was cancelled among several until its own end.
#[tokio::test(start_paused = true)]
async fn a_shift_that_is_cancelled_beside_another_is_over() {
    let rig = rig();
    rig.shift(&[(SHIFTED, None), ("use1-az-b", None)]);
    assert_eq!(rig.shifted().await, [SHIFTED, "use1-az-b"]);
    rig.shift(&[("use1-az-b", None)]);
    assert_eq!(rig.shifted().await, ["use1-az-b"]);
}

#[tokio::test(start_paused = true)]
async fn what_runs_in_a_shifted_zone_stays_as_it_is() {
    let rig = rig();
    let offered = offering("m5.large", ZONES[0], CapacityType::OnDemand, 0.1);
    let launched = launch(&rig, vec![offered]).await.unwrap();
    rig.shift(&[(SHIFTED, None)]);
    rig.shifted().await;
    let id = &launched.provider_id;
    let told = rig.provider.list().await.unwrap();
    assert_eq!(told.len(), 1);
    // EC2 loses sight of the zone.
    let hidden = rig.aws.edit(|state| std::mem::take(&mut state.instances));
    assert!(rig.provider.list().await.unwrap().is_empty());
    assert_eq!(&rig.provider.get(id).await.unwrap().provider_id, id);
    let claim = NodeClaim {
        status: Some(apis::NodeClaimStatus {
            provider_id: Some(id.to_string()),
            ..apis::NodeClaimStatus::default()
        }),
        ..NodeClaim::default()
    };
    let refusals = [
        rig.provider.delete(id).await,
        rig.provider.tag(&claim).await,
    ];
    for refusal in refusals {
        let Err(CloudProviderError::Other(text)) = refusal else {
            panic!("{refusal:?}");
        };
        assert!(text.contains("us-east-1a (ARC zonal shift)"), "{text}");
    }
    rig.aws.edit(|state| state.instances = hidden);
    assert_eq!(rig.aws.calls("TerminateInstances"), 0);
    rig.shift(&[]);
    rig.shifted().await;
    rig.provider.delete(id).await.unwrap();
    assert_eq!(rig.aws.calls("TerminateInstances"), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_unless_it_is_switched_on_and_the_cluster_is_known() {
    let off = Rig::new(types());
    off.shift(&[(SHIFTED, None)]);
    assert!(off.shifted().await.is_empty());
    assert_eq!(off.aws.calls("GetManagedResource"), 0);
    let unknown = Rig::with_options(types(), |options| options.enable_zonal_shift = true);
    let error = unknown.provider.shifted_zones().await.unwrap_err();
    assert!(error.to_string().contains("eks:DescribeCluster"), "{error}");
}
