//! Kubelets, the pod garbage collector and a scheduler, as far as stories need them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api_server::{ApiServer, DeleteOptions, NamespacedName, ObjectPart, Resource, Selection};
use cloudprovider::InstanceLife;
use serde_json::{Value, json};
use sim::SimulatedClock;

use super::{Kept, pod};
use crate::cloud::Cloud;

const BOOT_SECONDS: i64 = 20;
const READY_SECONDS: i64 = 30;

/// Boots instances, takes terminating pods away, and binds pods to nodes, once a second.
pub(super) async fn machines(
    api: ApiServer,
    cloud: Cloud,
    clock: SimulatedClock,
    boots: Arc<Mutex<bool>>,
    kept: Kept,
) {
    let mut serial = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if *boots.lock().unwrap() {
            boot(&api, &cloud, clock);
        }
        boot_anew(&api, &cloud, clock);
        let everything = Selection::everything();
        let (wanted, cpu) = kept.lock().unwrap().clone();
        let is_alive = |pod: &Arc<Value>| {
            !pod["metadata"]["deletionTimestamp"].is_string()
                && pod["metadata"]["labels"]["app"] == "kept"
        };
        let alive = api.list(&Resource::PODS, &everything);
        for _ in alive.iter().filter(|it| is_alive(it)).count()..wanted {
            serial += 1;
            let extra = json!({"metadata": {"labels": {"app": "kept"}}});
            let pod = pod(&format!("kept-{serial}"), &cpu, &extra);
            api.create(&Resource::PODS, "default", pod).unwrap();
        }
        for pod in api.list(&Resource::PODS, &everything) {
            let name = pod["metadata"]["name"].as_str().unwrap();
            if pod["metadata"]["deletionTimestamp"].is_string() {
                api.delete(&Resource::PODS, "default", name, &DeleteOptions::now())
                    .ok();
            } else if is_lost(&api, &pod) {
                // What the pod garbage collector does.
                api.delete(&Resource::PODS, "default", name, &DeleteOptions::now())
                    .ok();
            } else if !pod["spec"]["nodeName"].is_string() {
                schedule(&api, clock, &pod, name);
            }
        }
    }
}

/// Bound to a node that is no more.
fn is_lost(api: &ApiServer, pod: &Value) -> bool {
    let node = pod["spec"]["nodeName"].as_str();
    node.is_some_and(|it| api.get(&Resource::NODES, "", it).is_err())
}

fn node_info() -> Value {
    let names = [
        "architecture",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ];
    let mut info = json!({"bootID": "boot-0"});
    for name in names {
        info[name] = json!("");
    }
    info
}

fn boot(api: &ApiServer, cloud: &Cloud, clock: SimulatedClock) {
    let instances = cloud.with(|state| state.instances.clone());
    for (id, instance) in instances
        .iter()
        .filter(|(_, it)| it.life != InstanceLife::Ends)
    {
        let name = id.instance_id();
        let age = clock
            .now()
            .duration_since(instance.launched_at.unwrap())
            .as_secs();
        let key = NamespacedName::new("", name);
        if age == BOOT_SECONDS && api.get(&Resource::NODES, "", name).is_err() {
            let resources = json!(instance.allocatable.to_list());
            let mut labels = json!(instance.labels);
            labels["kubernetes.io/hostname"] = json!(name);
            let node = json!({
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
                "spec": {
                    "providerID": id.as_str(),
                    "taints": [
                        {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
                        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                    ],
                },
            });
            api.create(&Resource::NODES, "", node).unwrap();
            let status = json!({"status": {"capacity": resources, "allocatable": resources,
                "nodeInfo": node_info()}});
            api.patch_merge_status(&Resource::NODES, "", name, status)
                .unwrap();
        } else if age == READY_SECONDS {
            let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
            if api
                .patch_merge_status(&Resource::NODES, "", name, ready)
                .is_ok()
            {
                api.modify(&Resource::NODES, &key, |node| {
                    let taints = node["spec"]["taints"].as_array_mut().unwrap();
                    taints.retain(|taint| taint["key"] != "node.kubernetes.io/not-ready");
                })
                .unwrap();
            }
        }
    }
}

/// Machines that were told to reboot go down at once and are back after a while, in another boot.
fn boot_anew(api: &ApiServer, cloud: &Cloud, clock: SimulatedClock) {
    let (reboots, stays_away) = cloud.with(|it| (it.reboots.clone(), it.stays_away));
    for (number, (id, at)) in reboots.iter().enumerate() {
        let name = id.instance_id();
        let seconds = clock.now().duration_since(*at).as_secs();
        let (is_back, is_down) = (seconds == READY_SECONDS && !stays_away, seconds <= 1);
        if !is_back && !is_down {
            continue;
        }
        let key = NamespacedName::new("", name);
        api.modify_part(&Resource::NODES, &key, ObjectPart::Status, |node| {
            let ready = if is_back { "True" } else { "False" };
            // What was wrong with it is mended.
            node["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
            if is_back {
                node["status"]["nodeInfo"]["bootID"] = json!(format!("boot-{}", number + 1));
            }
        })
        .ok();
    }
}

/// Tries a pod; one whose name begins with `overlooked` is never bound.
fn schedule(api: &ApiServer, clock: SimulatedClock, pod: &Value, name: &str) {
    let cpu = |pod: &Value| {
        let text = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            .as_str()
            .unwrap();
        apis::quantity::parse_millis(text).unwrap()
    };
    let pods = api.list(&Resource::PODS, &Selection::everything());
    let mut nodes = api.list(&Resource::NODES, &Selection::everything());
    let nominated = &pod["status"]["nominatedNodeName"];
    nodes.sort_by_key(|node| node["metadata"]["name"] != *nominated);
    for node in nodes {
        let node_name = node["metadata"]["name"].as_str().unwrap();
        let conditions = node["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let is_open = node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
            && !node["metadata"]["deletionTimestamp"].is_string()
            && conditions
                .iter()
                .any(|it| it["type"] == "Ready" && it["status"] == "True");
        let used: i64 = pods
            .iter()
            .filter(|it| it["spec"]["nodeName"] == node_name)
            .map(|it| cpu(it))
            .sum();
        let allocatable = node["status"]["allocatable"]["cpu"].as_str().unwrap_or("0");
        if !name.starts_with("overlooked")
            && is_open
            && used + cpu(pod) <= apis::quantity::parse_millis(allocatable).unwrap()
        {
            api.bind("default", name, node_name).unwrap();
            let started = clock.now().to_string();
            let running = json!({"status": {"phase": "Running", "startTime": started}});
            api.patch_merge_status(&Resource::PODS, "default", name, running)
                .unwrap();
            return;
        }
    }
    if pod["status"]["conditions"]
        .as_array()
        .is_none_or(Vec::is_empty)
    {
        let key = NamespacedName::new("default", name);
        api.modify_part(&Resource::PODS, &key, ObjectPart::Status, |pod| {
            pod["status"]["phase"] = json!("Pending");
            pod["status"]["conditions"] = json!([
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no nodes"}
            ]);
        })
        .unwrap();
    }
}
