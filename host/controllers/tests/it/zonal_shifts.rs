//! Zones that traffic is shifted away from, as NodePools are told of them.

use apis::ec2nodeclass::Subnet;
use serde_json::json;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_pool_is_told_of_a_shift_of_its_zones_and_of_its_end() {
    let mut world = World::new();
    let subnets = [("us-east-1a", "use1-az4"), ("us-east-1b", "use1-az6")];
    let subnets = subnets.map(|(zone, zone_id)| Subnet {
        id: format!("subnet-{zone_id}"),
        zone: zone.to_owned(),
        zone_id: Some(zone_id.to_owned()),
    });
    world.cloud.with(|state| state.subnets = subnets.to_vec());
    let only =
        json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}]);
    world.change_pool(json!({"spec": {"template": {"spec": {"requirements": only}}}}));
    world.settle(70).await;
    for zone_id in ["use1-az4", "use1-az6"] {
        world
            .cloud
            .with(|state| state.shifted.insert(zone_id.to_owned()));
    }
    world.settle(40).await;
    let told = |reason: &str| world.event_messages("NodePool", reason);
    let away = "Traffic is shifted away from zone us-east-1a (use1-az4): nothing is launched or ended there";
    assert_eq!(told("ZonalShiftActive"), [away]);
    assert!(told("ZonalShiftCleared").is_empty());
    world.cloud.with(|state| state.shifted.clear());
    world.settle(40).await;
    let back = "The zonal shift away from zone us-east-1a (use1-az4) is over";
    let told = |reason: &str| world.event_messages("NodePool", reason);
    assert_eq!(told("ZonalShiftCleared"), [back]);
}
