//! From instance to Node and back: registration, readiness, loss and removal.
//!
//! Answers to the kubelet's registration, cloud-controller-manager's node lifecycle and kube-controller-manager's
//! node-lifecycle controller. Never launches or ends an instance: it follows what EC2 tells.

mod taint_eviction;

use api_server::{DeleteOptions, NamespacedName, ObjectPart, Resource, time_text};
use apis::labels;
use apis::names::EBS_DRIVER;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cluster::SimulatedCluster;
use crate::cluster::timers::Timer;
use crate::ec2::{InstanceEvent, SimulatedInstance};
use crate::node::{KubeletWord, conditions, node_object};
use crate::status::{SimulatedEvent, set_condition, write_event};

/// How long a silent kubelet is believed.
const NODE_MONITOR_GRACE: SignedDuration = SignedDuration::from_secs(40);
/// How long a machine takes to boot anew.
const REBOOT: SignedDuration = SignedDuration::from_secs(40);
/// How soon the cloud's controller notices that an instance is gone.
const CLOUD_NODE_SYNC: SignedDuration = SignedDuration::from_secs(5);
/// How long pods of a node that is gone are kept.
const ORPHAN_QUARANTINE: SignedDuration = SignedDuration::from_secs(5);
/// How often kubelets renew their leases here: rarely, since nobody counts them.
pub(crate) const HEARTBEAT: SignedDuration = SignedDuration::from_mins(5);

const LEASE_NAMESPACE: &str = "kube-node-lease";
/// EBS volumes that a node takes, as the CSI driver says it.
const EBS_VOLUMES_MAX: i64 = 26;

impl SimulatedCluster {
    /// EC2 told of an instance.
    pub(crate) fn apply_instance(&mut self, event: &InstanceEvent) {
        match event {
            InstanceEvent::Launched(id) => {
                let Some(instance) = self.ec2.instance(id) else {
                    return;
                };
                self.timers
                    .set(instance.registers_at, Timer::Register(id.clone()));
                if let Some(at) = instance.notice_at {
                    self.look_at_ec2(at);
                }
            }
            InstanceEvent::ShuttingDown(id) => {
                let Some(instance) = self.ec2.instance(id) else {
                    return;
                };
                let now = self.clock.now();
                self.timers
                    .set(later(now, NODE_MONITOR_GRACE), Timer::NodeLost(id.clone()));
                let gone = instance.terminated_at.unwrap_or(now);
                self.look_at_ec2(gone);
                self.timers
                    .set(later(gone, CLOUD_NODE_SYNC), Timer::NodeGone(id.clone()));
            }
            // The record said when.
            InstanceEvent::Terminated(_) => {}
            InstanceEvent::Rebooted(id) => self.node_reboots(id),
            InstanceEvent::SpotInterruptionWarning(id) => {
                let at = self
                    .ec2
                    .instance(id)
                    .and_then(|instance| instance.interruption_at);
                if let Some(at) = at {
                    self.look_at_ec2(at);
                }
            }
        }
    }

    /// Lets happen in EC2 what is due, then and whenever more is due.
    pub(crate) fn look_at_ec2(&mut self, at: Timestamp) {
        if self.ec2_due_at.is_none_or(|due| at < due) {
            self.ec2_due_at = Some(at);
            self.timers.set(at, Timer::Ec2);
        }
    }

    /// The moment has come, or had come before.
    pub(crate) fn ec2_is_due(&mut self) {
        let now = self.clock.now();
        self.ec2_due_at = self.ec2_due_at.filter(|due| *due > now);
        if let Some(at) = self.ec2.advance() {
            self.look_at_ec2(at);
        }
    }

    /// The kubelet says goodbye before the machine goes down; pods stay bound and start again with it.
    fn node_reboots(&mut self, id: &str) {
        let Some(instance) = self.living(id) else {
            return;
        };
        let now = self.clock.now_seconds();
        let key = NamespacedName::new("", instance.private_dns_name(&self.region));
        let condition = json!({
            "type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "node is shutting down",
        });
        self.note_refusal(self.api.modify_part(
            &Resource::NODES,
            &key,
            ObjectPart::Whole,
            |node| {
                set_condition(&mut node["status"], condition.clone(), now);
            },
        ));
        self.timers.set(
            later(self.clock.now(), REBOOT),
            Timer::Rebooted(id.to_owned()),
        );
    }

    /// It booted anew and is as it was.
    pub(crate) fn node_is_back(&mut self, id: &str) {
        let Some(instance) = self.living(id) else {
            return;
        };
        let now = self.clock.now_seconds();
        let key = NamespacedName::new("", instance.private_dns_name(&self.region));
        let ready = serde_json::to_value(conditions(KubeletWord::Ready, now)).unwrap_or_default();
        self.note_refusal(self.api.modify_part(
            &Resource::NODES,
            &key,
            ObjectPart::Whole,
            |node| {
                node["status"]["conditions"] = ready.clone();
                node["status"]["nodeInfo"]["bootID"] = instance.boot_id().into();
            },
        ));
    }

    fn living(&self, id: &str) -> Option<SimulatedInstance> {
        self.ec2
            .instance(id)
            .filter(|instance| instance.shutting_down_at.is_none())
    }

    /// The Node that stands for an instance, by name, while there is one.
    pub(crate) fn node_of(&self, id: &str) -> Option<String> {
        let name = self.ec2.instance(id)?.private_dns_name(&self.region);
        let node = self.nodes.get(&name)?;
        // Addresses come back, with another instance.
        (node.instance_id.as_deref() == Some(id)).then_some(name)
    }

    pub(crate) fn register_node(&mut self, id: &str) {
        let Some(instance) = self.living(id) else {
            return;
        };
        let node = node_object(&instance, &self.region, None);
        let name = node.metadata.name.clone().unwrap_or_default();
        // Nodes are cluster-wide and typed objects carry no kind here.
        let mut node = serde_json::to_value(&node).unwrap_or_default();
        node["apiVersion"] = "v1".into();
        node["kind"] = "Node".into();
        let created = self.api.create(&Resource::NODES, "", node);
        if let Some(node) = self.note_refusal(created) {
            let message = format!("Node {name} event: Registered Node {name} in Controller");
            let now = self.clock.now_seconds();
            let registered = SimulatedEvent::RegisteredNode;
            self.note_refusal(write_event(&self.api, &node, registered, &message, now));
        }
        self.timers
            .set(instance.ready_at, Timer::Ready(id.to_owned()));
    }

    pub(crate) fn ready_node(&mut self, id: &str) {
        let Some(instance) = self.living(id) else {
            return;
        };
        let name = instance.private_dns_name(&self.region);
        let now = self.clock.now_seconds();
        let ready = serde_json::to_value(conditions(KubeletWord::Ready, now)).unwrap_or_default();
        let change = |node: &mut Value| {
            node["status"]["conditions"] = ready;
            drop_taint(node, "node.kubernetes.io/not-ready");
        };
        let key = NamespacedName::new("", name.clone());
        let written = self
            .api
            .modify_part(&Resource::NODES, &key, ObjectPart::Whole, change);
        let Some(node) = self.note_refusal(written) else {
            return;
        };
        let owner = json!([{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"] }]);
        self.write_lease(&name, &owner, now);
        let csi_node = json!({
            "metadata": { "name": name, "ownerReferences": owner },
            "spec": { "drivers": [{
                "name": EBS_DRIVER, "nodeID": id,
                "topologyKeys": ["kubernetes.io/os", "topology.kubernetes.io/zone"],
                "allocatable": { "count": EBS_VOLUMES_MAX },
            }]},
        });
        self.note_refusal(self.api.create(&Resource::CSI_NODES, "", csi_node));
    }

    /// Starts the pods of nodes that became ready, once the view knows that they are.
    pub(crate) fn start_ready_nodes(&mut self) {
        for name in std::mem::take(&mut self.ready) {
            self.start_pods_of(&name);
        }
    }

    fn write_lease(&self, name: &str, owner: &Value, now: Timestamp) {
        let lease = json!({
            "metadata": { "name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": owner },
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": HEARTBEAT.as_secs() * 2,
                "renewTime": micro_time(now),
            },
        });
        self.note_refusal(self.api.create(&Resource::LEASES, LEASE_NAMESPACE, lease));
    }

    /// Kubelets that live renew their leases.
    pub(crate) fn heartbeat(&mut self) {
        let now = self.clock.now_seconds();
        for node in self.nodes.values().filter(|node| node.ready) {
            let lives = node
                .instance_id
                .as_ref()
                .is_some_and(|id| self.living(id).is_some());
            if lives {
                let key = NamespacedName::new(LEASE_NAMESPACE, node.name.clone());
                self.note_refusal(self.api.modify(&Resource::LEASES, &key, |lease| {
                    lease["spec"]["renewTime"] = micro_time(now).into();
                }));
            }
        }
        self.timers.set(later(now, HEARTBEAT), Timer::Heartbeat);
    }

    /// A kubelet has been silent for too long.
    pub(crate) fn lose_node(&mut self, id: &str) {
        let Some(name) = self.node_of(id) else {
            return;
        };
        let key = NamespacedName::new("", name);
        let now = self.clock.now_seconds();
        self.note_refusal(self.api.modify_part(&Resource::NODES, &key, ObjectPart::Whole, |node| {
            let condition = json!({
                "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastHeartbeatTime": time_text(now),
            });
            set_condition(&mut node["status"], condition, now);
            for effect in [labels::NO_SCHEDULE, labels::NO_EXECUTE] {
                let taint = json!({
                    "key": "node.kubernetes.io/unreachable", "effect": effect, "timeAdded": time_text(now),
                });
                match node["spec"]["taints"].as_array_mut() {
                    Some(taints) => taints.push(taint),
                    None => node["spec"]["taints"] = json!([taint]),
                }
            }
        }));
        let Some(node) = self.nodes.get(&key.name) else {
            return;
        };
        for pod in node.pods.clone() {
            self.note_refusal(self.api.modify_status(&Resource::PODS, &pod, |pod| {
                let condition =
                    json!({ "type": "Ready", "status": "False", "reason": "NodeNotReady" });
                set_condition(&mut pod["status"], condition, now);
            }));
        }
    }

    /// The cloud says that the instance of a node is gone.
    pub(crate) fn remove_node(&mut self, id: &str) {
        if let Some(name) = self.node_of(id) {
            self.note_refusal(self.api.delete(
                &Resource::NODES,
                "",
                &name,
                &DeleteOptions::default(),
            ));
        }
    }

    /// Pods may stand on a node that is not there.
    pub(crate) fn reconcile_orphans(&mut self, node: &str) {
        let mut pods = self.pods.values();
        if !self.nodes.contains_key(node) && pods.any(|pod| pod.node.as_deref() == Some(node)) {
            let at = later(self.clock.now(), ORPHAN_QUARANTINE);
            self.timers.set(at, Timer::CollectPods(node.to_owned()));
        }
    }
}

fn drop_taint(node: &mut Value, key: &str) {
    if let Some(taints) = node["spec"]["taints"].as_array_mut() {
        taints.retain(|taint| taint["key"] != key);
    }
}

pub(crate) fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(at)
}

fn micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string()
}
