//! Problem files and catalogues of instance types with something spoiled: what is read is read, what is not is named
//! with its place, and nothing panics on the way from the text to the report.

use std::collections::BTreeSet;

use problem_file::{AnswerReport, FileWorld, InstanceTypes, explain};
use proptest::collection::vec;
use proptest::prelude::*;
use scheduling::pod::PodKey;
use scheduling::problem::{Options, Packing};
use serde_json::{Value, json};

use crate::properties::{config, solve_by};
use crate::world::{World, worlds};

/// Which of the values, what to do with it, and how.
type Spoiling = (usize, u8, usize);

/// What nobody expects in its place.
fn odd(how: usize) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("-5"),
        json!("NaN"),
        json!("99999999999999999999Ei"),
        json!("1e99999"),
        json!("no/such/name \u{0} ä"),
        json!([]),
        json!({}),
        json!([null]),
        json!([[], {}]),
        json!({"": {"": ""}}),
    ];
    values[how % values.len()].clone()
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(map) => map.values().map(count).sum::<usize>(),
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The value at a position, counted from the top.
fn nth<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Object(map) => map.values_mut().find_map(|it| nth(it, at)),
        Value::Array(list) => list.iter_mut().find_map(|it| nth(it, at)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn spoil(whole: &mut Value, (which, what, how): Spoiling) {
    let mut at = which % count(whole);
    let Some(value) = nth(whole, &mut at) else {
        return;
    };
    match (what % 6, value) {
        (0, Value::Object(map)) => {
            let key = map.keys().nth(how % map.len().max(1)).cloned();
            map.remove(&key.unwrap_or_default());
        }
        (1, Value::Object(map)) => {
            let key = map.keys().nth(how % map.len().max(1)).cloned();
            let value = map.remove(key.as_deref().unwrap_or_default());
            map.insert("another".to_owned(), value.unwrap_or_default());
        }
        (0..=2, Value::Array(list)) => {
            if let Some(one) = list.first().cloned() {
                list.push(one);
            }
        }
        (3, Value::String(text)) => text.push_str(&"x".repeat(how % 70)),
        (4, Value::Number(number)) => *number = serde_json::Number::from(how as i64 - 100),
        (_, value) => *value = odd(how),
    }
}

/// The pods and pools of a world, with one of everything else that a file may hold.
fn file(world: &World) -> Value {
    let built = world.build();
    let pools = built.problem.pools.iter().map(|pool| &*pool.node_pool);
    let object = |kind: &str, name: &str| json!({"kind": kind, "metadata": {"name": name}});
    let mut node = object("Node", "node-0");
    node["metadata"]["labels"] = json!({"karpenter.sh/nodepool": "pool-0"});
    node["spec"] = json!({"providerID": "aws:///zone-a/i-0", "taints": [
        {"key": "dedicated", "value": "red", "effect": "NoSchedule"}]});
    let room = json!({"cpu": "8", "memory": "32Gi", "pods": "50"});
    node["status"] = json!({"capacity": room, "allocatable": room, "conditions": [
        {"type": "Ready", "status": "True"}]});
    let mut bound = json!(built.objects.values().next());
    bound["metadata"]["name"] = json!("bound");
    bound["spec"]["nodeName"] = json!("node-0");
    let mut claim = object("PersistentVolumeClaim", "data");
    claim["spec"] = json!({"storageClassName": "gp3", "volumeName": "pv-0"});
    let mut volume = object("PersistentVolume", "pv-0");
    volume["spec"] = json!({"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0"}});
    let mut class = object("StorageClass", "gp3");
    class["provisioner"] = json!("ebs.csi.aws.com");
    let mut daemon = object("DaemonSet", "agent");
    daemon["spec"] = json!({"selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "50m"}}}]}}});
    let mut budget = object("PodDisruptionBudget", "budget");
    budget["spec"] = json!({"maxUnavailable": "30%", "selector": {"matchLabels": {"a": "b"}}});
    let mut limits = object("CSINode", "node-0");
    limits["spec"] = json!({"drivers": [
        {"name": "ebs.csi.aws.com", "nodeID": "i-0", "allocatable": {"count": 3}}]});
    json!({
        "now": "2026-01-01T00:10:00Z",
        "pods": built.objects.values().collect::<Vec<_>>(),
        "nodePools": pools.collect::<Vec<_>>(),
        "nodes": [node], "boundPods": [bound], "daemonSets": [daemon],
        "persistentVolumeClaims": [claim], "persistentVolumes": [volume],
        "storageClasses": [class], "csiNodes": [limits], "podDisruptionBudgets": [budget],
        "namespaces": [object("Namespace", "other")],
    })
}

fn catalogue() -> Value {
    let zones = ["zone-a", "zone-b", "zone-c"];
    let sold = |capacity_type: &str, zone: &str, price: f64| {
        json!({"Price": price, "Available": true, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity_type]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},
        ]})
    };
    let types = (0_u32..6).map(|size| {
        let cpu = 1 << size;
        let price = 0.04 * f64::from(cpu);
        let spot = zones.iter().map(|zone| sold("spot", zone, price / 3.0));
        let offerings = spot.chain([sold("on-demand", zones[0], price)]);
        json!({
            "name": format!("t.{cpu}"), "architecture": "amd64", "operatingSystems": ["linux"],
            "resources": {"cpu": cpu.to_string(), "memory": format!("{}Gi", cpu * 4), "pods": "30"},
            "offerings": offerings.collect::<Vec<_>>(), "labels": {"team": "red"},
        })
    });
    types.collect()
}

/// From the text to the report; the pods that were accounted for, and those that were not.
fn through(text: &str, types: &str) -> Option<(BTreeSet<PodKey>, BTreeSet<PodKey>)> {
    let types = InstanceTypes::read(types).ok()?;
    let world = FileWorld::read(text).ok()?;
    for fault in types.faults.iter().chain(&world.faults) {
        assert!(
            !fault.place.is_empty() && !fault.message.is_empty(),
            "{fault:?}"
        );
    }
    let question = world.question(&types, Options::default());
    let mut solution = solve_by(&question.problem, Packing::Karpenter);
    assert!(serde_json::to_value(AnswerReport::new(&world, &question, &solution)).is_ok());
    solution = solve_by(&question.problem, Packing::Cost);
    assert!(serde_json::to_value(AnswerReport::new(&world, &question, &solution)).is_ok());
    assert!(serde_json::to_value(explain(&question, &solution)).is_ok());
    let asked = question.problem.pods.iter().map(|pod| pod.key.clone());
    let in_claims = solution.claims.iter().flat_map(|claim| &claim.pods);
    let on_nodes = solution.existing.iter().flat_map(|it| &it.pods);
    let found = in_claims.chain(on_nodes).chain(solution.pod_errors.keys());
    Some((asked.collect(), found.cloned().collect()))
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn a_spoiled_file_is_read_or_refused(
        world in worlds(),
        in_file in vec((any::<usize>(), 0_u8..6, 0_usize..300), 0..6),
        in_types in vec((any::<usize>(), 0_u8..6, 0_usize..300), 0..3),
        cut in prop::option::weighted(0.05, any::<prop::sample::Index>()),
    ) {
        let (mut file, mut types) = (file(&world), catalogue());
        for spoiling in in_file {
            spoil(&mut file, spoiling);
        }
        for spoiling in in_types {
            spoil(&mut types, spoiling);
        }
        let mut text = file.to_string();
        if let Some(cut) = cut {
            let at = cut.index(text.len());
            text.truncate((0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
        }
        if let Some((asked, found)) = through(&text, &types.to_string()) {
            prop_assert_eq!(asked, found);
        }
    }
}

#[test]
fn a_faultless_file_places_its_pods() {
    let world = World {
        types: crate::world::plain_types(),
        pools: vec![crate::world::plain_pool()],
        nodes: Vec::new(),
        daemons: Vec::new(),
        services: Vec::new(),
        options: (true, true, 0),
    };
    let mut file = file(&world);
    let pod = json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "resources": {"requests": {"cpu": "1"}}}]}});
    file["pods"] = json!([pod]);
    file["boundPods"] = json!([]);
    let (asked, found) = through(&file.to_string(), &catalogue().to_string()).unwrap();
    assert_eq!((asked.len(), &asked), (1, &found));
}
