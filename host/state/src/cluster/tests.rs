//! The model's rules, told as events and what follows from them.

#![expect(
    clippy::needless_pass_by_value,
    reason = "JSON literals read better as values than as references"
)]

use std::sync::Arc;

use apis::{NodeClaim, NodeRef, ObjectKey, labels};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet as ApiDaemonSet;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};

use super::*;
use crate::pod_disruption_budget::PdbVerdict;
use crate::snapshot::Snapshot;

mod listed;
mod successors;
mod workload_facts;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    base.remove(key);
                } else {
                    merge(base.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

fn pod(name: &str, over: Value) -> Event {
    let mut value = json!({
        "metadata": {"namespace": "default", "name": name, "uid": name, "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true}]},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
        "status": {"phase": "Pending"}
    });
    merge(&mut value, &over);
    Event::applied::<v1::Pod>(object(value))
}

fn bound(name: &str, node: &str) -> Event {
    pod(
        name,
        json!({"spec": {"nodeName": node}, "status": {"phase": "Running"}}),
    )
}

fn pending(name: &str, over: Value) -> Event {
    let mut value = json!({"status": {"conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}});
    merge(&mut value, &over);
    pod(name, value)
}

fn node(name: &str, over: Value) -> Event {
    let mut value = json!({
        "metadata": {"name": name, "uid": name, "labels": {
            "karpenter.sh/nodepool": "web", "node.kubernetes.io/instance-type": "m5.large",
            "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}},
        "spec": {"providerID": format!("aws:///a/{name}")},
        "status": {"capacity": {"cpu": "2", "memory": "8Gi", "pods": "29"},
            "allocatable": {"cpu": "1930m", "memory": "7Gi", "pods": "29"},
            "conditions": [{"type": "Ready", "status": "True"}]}
    });
    merge(&mut value, &over);
    Event::applied::<v1::Node>(object(value))
}

fn claim(name: &str, provider_id: &str, over: Value) -> Event {
    let mut value = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "uid": name, "labels": {"karpenter.sh/nodepool": "web"}},
        "spec": {"requirements": [], "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "startupTaints": [{"key": "example.com/agent", "effect": "NoSchedule"}]},
        "status": {"providerID": provider_id,
            "capacity": {"cpu": "2", "nvidia.com/gpu": "1"}, "allocatable": {"cpu": "1900m", "nvidia.com/gpu": "1"}}
    });
    merge(&mut value, &over);
    Event::applied::<NodeClaim>(object(value))
}

fn cluster(events: impl IntoIterator<Item = Event>) -> Cluster {
    let mut cluster = Cluster::new();
    for event in events {
        cluster.apply(at(0), event).unwrap();
    }
    cluster
}

#[test]
fn a_node_is_what_its_claim_says_until_it_registers() {
    let young = json!({"metadata": {"labels": {"karpenter.sh/registered": null, "karpenter.sh/initialized": null}},
        "spec": {"taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]},
        "status": {"allocatable": {"cpu": "0"}}});
    let model = cluster([claim("web-1", "aws:///a/n1", json!({})), node("n1", young)]);
    let snapshot = model.snapshot();
    let it = snapshot.node("n1").unwrap();
    assert!(it.is_managed() && !it.is_registered() && !it.is_initialized());
    assert_eq!(it.name(), "web-1");
    assert!(it.taints().is_empty());
    let allocatable = it.allocatable();
    assert_eq!(
        allocatable.get("cpu"),
        1900,
        "the claim fills in what the node does not know"
    );
    assert_eq!(allocatable.get("nvidia.com/gpu"), 1000);
    assert_eq!(allocatable.get("pods"), 29_000);
    assert_eq!(it.capacity().get(labels::RESOURCE_NODES), 1000);
}

#[test]
fn an_answer_to_a_write_that_comes_late_takes_nothing_back() {
    let node = |version: &str, taints: Value| {
        object::<v1::Node>(json!({
            "metadata": {"name": "n", "resourceVersion": version},
            "spec": {"providerID": "aws:///a/n", "taints": taints},
        }))
    };
    let tainted = |version| {
        node(
            version,
            json!([{"key": "example.com/a", "effect": "NoSchedule"}]),
        )
    };
    let free = |version| node(version, json!([]));
    let taints = |model: &Cluster| {
        let snapshot = model.snapshot();
        snapshot.node("n").map(|it| it.node().unwrap().taints.len())
    };
    let mut model = cluster([Event::applied(tainted("9")), Event::applied(free("11"))]);
    let mut after = |event| {
        model.apply(at(0), event).unwrap();
        taints(&model)
    };
    assert_eq!(after(Event::written(tainted("10"))), Some(0));
    assert_eq!(after(Event::written(tainted("12"))), Some(1));
    let gone = Event::deleted::<v1::Node>(ObjectKey::cluster("n"));
    assert_eq!(after(gone), None);
    assert_eq!(after(Event::written(tainted("13"))), None);

    let pool = |version: &str, weight: i32| {
        object::<NodePool>(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": "web", "resourceVersion": version},
            "spec": {"weight": weight, "template": {"spec": {"requirements": [],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}},
        }))
    };
    let mut model = cluster([Event::applied(pool("11", 2))]);
    let mut after = |event| {
        model.apply(at(0), event).unwrap();
        model
            .snapshot()
            .node_pool("web")
            .and_then(|it| it.spec.weight)
    };
    assert_eq!(after(Event::written(pool("10", 1))), Some(2));
    assert_eq!(after(Event::written(pool("12", 3))), Some(3));
    let gone = Event::deleted::<NodePool>(ObjectKey::cluster("web"));
    assert_eq!(after(gone), None);
    assert_eq!(after(Event::written(pool("13", 4))), None);
}

#[test]
fn an_answer_to_a_write_that_comes_late_brings_no_claim_back() {
    for provider_id in [Value::Null, json!("aws:///a/n1")] {
        let told = |version: &str| {
            object::<NodeClaim>(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {"name": "web-1", "uid": "u", "resourceVersion": version},
                "spec": {"requirements": [],
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
                "status": {"providerID": provider_id},
            }))
        };
        let model = cluster([
            Event::applied(told("1")),
            Event::deleted::<NodeClaim>(ObjectKey::cluster("web-1")),
            Event::written(told("2")),
        ]);
        assert!(!model.snapshot().has_claim("web-1"), "{provider_id}");
        assert!(model.is_every_claim_launched(), "{provider_id}");
        assert!(model.recent_claim("web-1").is_none(), "{provider_id}");
    }
}

#[test]
fn a_pod_with_another_uid_is_gone_and_born() {
    let mut model = cluster([pod("a", json!({}))]);
    let other = json!({"metadata": {"uid": "a-2",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-2", "controller": true}]}});
    let changes = model.apply(at(5), pod("a", other)).unwrap();
    let [
        Change::PodGone { before, .. },
        Change::Pod {
            before: None,
            after,
            ..
        },
    ] = &changes[..]
    else {
        panic!("{changes:?}");
    };
    assert_eq!((before.uid.as_str(), after.uid.as_str()), ("a", "a-2"));
    assert_eq!(model.snapshot().last_birth_at(), Some(at(5)));
    assert_eq!(model.data.owned.keys().collect::<Vec<_>>(), ["rs-2"]);

    let adopted = json!({"metadata": {"uid": "a-2",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-3", "controller": true}]}});
    model.apply(at(9), pod("a", adopted)).unwrap();
    assert_eq!(model.snapshot().last_birth_at(), Some(at(5)));
    assert_eq!(model.data.owned.keys().collect::<Vec<_>>(), ["rs-3"]);
}

#[test]
fn startup_and_ephemeral_taints_count_only_once_initialized() {
    let taints = json!([
        {"key": "example.com/agent", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
        {"key": "team", "value": "a", "effect": "NoSchedule"}]);
    for (initialized, expected) in [("false", 1), ("true", 3)] {
        let over = json!({"metadata": {"labels": {"karpenter.sh/initialized": initialized}}, "spec": {"taints": taints}});
        let model = cluster([claim("web-1", "aws:///a/n1", json!({})), node("n1", over)]);
        assert_eq!(
            model.snapshot().node("n1").unwrap().taints().len(),
            expected,
            "{initialized}"
        );
    }
}

#[test]
fn a_claim_is_launched_once_its_instance_was_seen() {
    let mut model = cluster([claim("web-1", "", json!({"status": {"providerID": null}}))]);
    assert!(!model.is_every_claim_launched());
    assert_eq!(model.unlaunched_claims().collect::<Vec<_>>(), ["web-1"]);
    model
        .apply(at(1), claim("web-1", "aws:///a/n1", json!({})))
        .unwrap();
    assert!(model.is_every_claim_launched());
    // A watch that lags behind the creator's own write.
    model
        .apply(
            at(2),
            claim("web-1", "", json!({"status": {"providerID": null}})),
        )
        .unwrap();
    assert!(model.is_every_claim_launched());
    model
        .apply(
            at(3),
            Event::deleted::<NodeClaim>(ObjectKey::cluster("web-1")),
        )
        .unwrap();
    assert_eq!(model.snapshot().nodes().len(), 0);
}

#[test]
fn managed_nodes_wait_for_what_identifies_them() {
    for (over, tracked) in [
        (json!({"spec": {"providerID": null}}), false),
        (
            json!({"spec": {"providerID": null}, "metadata": {"labels": {"karpenter.sh/nodepool": ""}}}),
            true,
        ),
        (
            json!({"metadata": {"labels": {"node.kubernetes.io/instance-type": null, "karpenter.sh/initialized": null}}}),
            false,
        ),
    ] {
        let event = node("n1", over.clone());
        assert_eq!(
            cluster([event]).snapshot().node("n1").is_some(),
            tracked,
            "{over}"
        );
    }
}

#[test]
fn sums_follow_pods_as_they_come_move_and_end() {
    let mut model = cluster([
        claim("web-1", "aws:///a/n1", json!({})),
        node("n1", json!({})),
        bound("a", "n1"),
        bound("b", "n1"),
        bound("late", "unseen"),
    ]);
    let cpu = |model: &Cluster| {
        let snapshot = model.snapshot();
        snapshot
            .available(snapshot.node("n1").unwrap())
            .cpu_millis()
    };
    assert_eq!(cpu(&model), 930);
    let before = model.snapshot();
    model
        .apply(
            at(1),
            pod(
                "a",
                json!({"spec": {"nodeName": "n1"}, "status": {"phase": "Succeeded"}}),
            ),
        )
        .unwrap();
    assert_eq!(cpu(&model), 1430);
    model
        .apply(
            at(2),
            Event::deleted::<v1::Pod>(PodKey::new("default", "b")),
        )
        .unwrap();
    assert_eq!(cpu(&model), 1930);
    assert_eq!(before.bound_to("n1").len(), 2, "a snapshot does not change");
    assert_eq!(model.snapshot().bound_to("unseen").len(), 1);
    assert_eq!(model.shapes(), 1, "equal pods share one shape");
}

#[test]
fn marks_and_nominations_hold_by_either_name() {
    let mut model = cluster([
        claim("web-1", "aws:///a/n1", json!({})),
        node("n1", json!({})),
    ]);
    model
        .apply(
            at(0),
            Event::Nominated {
                node: NodeRef::claim("web-1"),
                until: at(10),
            },
        )
        .unwrap();
    model
        .apply(
            at(0),
            Event::Nominated {
                node: NodeRef::node("n1"),
                until: at(5),
            },
        )
        .unwrap();
    let snapshot = model.snapshot();
    assert!(
        snapshot.node("web-1").is_none(),
        "a claim's name is no Node's"
    );
    assert!(snapshot.node("n1").unwrap().is_nominated(at(9)));
    assert!(!snapshot.node("n1").unwrap().is_nominated(at(10)));
    assert_eq!(
        snapshot.pool_resources("web").get(labels::RESOURCE_NODES),
        1000
    );
    model
        .apply(at(1), Event::MarkedForDeletion(vec![NodeRef::node("n1")]))
        .unwrap();
    assert!(
        model
            .snapshot()
            .node_of_claim("web-1")
            .unwrap()
            .is_marked_for_deletion()
    );
    assert_eq!(
        model
            .snapshot()
            .pool_resources("web")
            .get(labels::RESOURCE_NODES),
        0
    );
    model
        .apply(
            at(2),
            Event::UnmarkedForDeletion(vec![NodeRef::claim("web-1")]),
        )
        .unwrap();
    assert!(
        !model
            .snapshot()
            .node("n1")
            .unwrap()
            .is_marked_for_deletion()
    );
}

#[test]
fn what_is_supposed_is_seen_by_nobody_else() {
    let model = cluster([
        claim("web-1", "aws:///a/n1", json!({})),
        node("n1", json!({})),
        claim("web-2", "aws:///a/n2", json!({})),
        node("n2", json!({})),
    ]);
    let real = model.snapshot();
    let leaving = vec![NodeRef::claim("web-1"), NodeRef::node("gone")];
    let expecting = vec![NodeRef::node("n2"), NodeRef::claim("gone")];
    let supposed = real.supposing(at(1), leaving, expecting, at(10));
    let marks = |it: &Snapshot| {
        let marked = |name| it.node(name).unwrap().is_marked_for_deletion();
        let nominated = |name| it.node(name).unwrap().is_nominated(at(9));
        (marked("n1"), nominated("n1"), marked("n2"), nominated("n2"))
    };
    assert_eq!(marks(&supposed), (true, false, false, true));
    assert_eq!(marks(&real), (false, false, false, false));
    assert_eq!(marks(&model.snapshot()), (false, false, false, false));
    assert_ne!(
        supposed.consolidation_state(at(1)),
        real.consolidation_state(at(1)),
        "a method that found nothing among these looks again"
    );
}

#[test]
fn only_what_matters_bumps_the_consolidation_state() {
    let mut model = cluster([
        claim("web-1", "aws:///a/n1", json!({})),
        node("n1", json!({})),
        bound("a", "n1"),
    ]);
    let state = |model: &Cluster| model.snapshot().consolidation_state(at(10)).sequence;
    let mut last = state(&model);
    for (event, bumps) in [
        (bound("a", "n1"), false),
        (
            node("n1", json!({"metadata": {"labels": {"x": "y"}}})),
            false,
        ),
        (bound("b", "n1"), true),
        (pending("c", json!({})), false),
        (Event::deleted::<v1::Pod>(PodKey::new("default", "b")), true),
        (Event::MarkedForDeletion(vec![NodeRef::node("n1")]), true),
        (Event::OfferingsChanged, true),
    ] {
        let text = format!("{event:?}");
        model.apply(at(10), event).unwrap();
        assert_eq!(
            state(&model) > last,
            bumps,
            "{}",
            text.get(..80).unwrap_or(&text)
        );
        last = state(&model);
    }
    let (young, old) = (
        model.snapshot().consolidation_state(at(309)),
        model.snapshot().consolidation_state(at(310)),
    );
    assert_ne!(young, old, "grows old by itself");
    assert_eq!(old, model.snapshot().consolidation_state(at(500)));
}

/// A budget of the pods of an app, which lets so many go.
fn pdb(name: &str, spec: Value, allowed: i32) -> Event {
    let mut value = json!({"metadata": {"namespace": "default", "name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}});
    merge(&mut value["spec"], &spec);
    Event::applied::<PodDisruptionBudget>(object(value))
}

#[test]
fn pdbs_tell_free_blocked_and_many() {
    let blocked = || PdbVerdict::Blocked("default/one".into());
    for (pdbs, verdict, never, evictions) in [
        (vec![], PdbVerdict::Free, false, None),
        (
            vec![pdb("one", json!({"maxUnavailable": 1}), 1)],
            PdbVerdict::Free,
            false,
            Some(1),
        ),
        (
            vec![pdb("one", json!({"maxUnavailable": 1}), 0)],
            blocked(),
            false,
            Some(0),
        ),
        (
            vec![pdb("one", json!({"maxUnavailable": 0}), 0)],
            blocked(),
            true,
            Some(0),
        ),
        (
            vec![pdb("one", json!({"minAvailable": "100%"}), 0)],
            blocked(),
            true,
            Some(0),
        ),
        (
            vec![
                pdb("one", json!({"maxUnavailable": 1}), 1),
                pdb("two", json!({"maxUnavailable": 1}), 1),
            ],
            PdbVerdict::Many(vec!["default/one".into(), "default/two".into()]),
            true,
            Some(0),
        ),
        (
            vec![pdb(
                "one",
                json!({"maxUnavailable": 0, "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
                0,
            )],
            PdbVerdict::Free,
            false,
            Some(0),
        ),
        (
            vec![pdb(
                "one",
                json!({"maxUnavailable": 0, "selector": {"matchLabels": {"app": "api"}}}),
                0,
            )],
            PdbVerdict::Free,
            false,
            None,
        ),
    ] {
        let mut model = cluster(pdbs);
        model.apply(at(0), bound("a", "n1")).unwrap();
        let snapshot = model.snapshot();
        let pod = snapshot.pods().next().unwrap();
        assert_eq!(snapshot.pdbs().verdict(pod), verdict);
        assert_eq!(snapshot.pdbs().can_never_evict(pod), never, "{verdict:?}");
        assert_eq!(snapshot.pdbs().evictions_allowed(pod), evictions);
    }
}

#[test]
fn a_namespace_without_volume_claims_is_forgotten() {
    let claim = |name: &str| {
        Event::applied::<v1::PersistentVolumeClaim>(object(
            json!({"metadata": {"namespace": "gone", "name": name}, "spec": {}}),
        ))
    };
    let mut model = cluster([claim("a"), claim("b")]);
    for (name, namespaces) in [("a", 1), ("b", 0)] {
        let key = ObjectKey::new("gone", name);
        let gone = Event::deleted::<v1::PersistentVolumeClaim>(key);
        model.apply(at(0), gone).unwrap();
        assert_eq!(model.data.volumes.claims.len(), namespaces);
    }
}

#[test]
fn volumes_become_alternatives_of_the_node() {
    let zone = |values: Value| json!({"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": values}]});
    let claim_of = |name: &str, spec: Value| {
        Event::applied::<v1::PersistentVolumeClaim>(object(json!({
            "metadata": {"namespace": "default", "name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": spec})))
    };
    let model = cluster([
        claim_of("bound", json!({"volumeName": "pv"})),
        claim_of("free", json!({"storageClassName": "gp3"})),
        claim_of("now", json!({"storageClassName": "immediate"})),
        Event::applied::<v1::PersistentVolume>(object(
            json!({"metadata": {"name": "pv"}, "spec": {
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [zone(json!(["a"]))]}}}}),
        )),
        Event::applied::<StorageClass>(object(
            json!({"metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["a", "b"]}]}]}),
        )),
        Event::applied::<StorageClass>(object(
            json!({"metadata": {"name": "immediate"}, "provisioner": "ebs.csi.aws.com"}),
        )),
    ]);
    let snapshot = model.snapshot();
    for (claims, zones, error) in [
        (vec!["bound"], vec!["a"], None),
        (vec!["bound", "free"], vec!["a"], None),
        (vec!["free"], vec!["a", "b"], None),
        (
            vec!["now"],
            vec![],
            Some(
                "persistentvolumeclaim \"now\" is unbound and its storage class binds immediately",
            ),
        ),
    ] {
        let volumes: Vec<Value> = claims
            .iter()
            .map(|it| json!({"name": it, "persistentVolumeClaim": {"claimName": it}}))
            .collect();
        let other = cluster([pending("p", json!({"spec": {"volumes": volumes}}))]).snapshot();
        let resolved = snapshot.volumes().resolve(other.pods().next().unwrap());
        assert_eq!(resolved.error.as_deref(), error, "{claims:?}");
        let got: Vec<_> = resolved
            .alternatives
            .iter()
            .flat_map(|it| {
                it.get(labels::TOPOLOGY_ZONE)
                    .values()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(got, zones, "{claims:?}");
    }
}

#[test]
fn a_daemon_set_is_known_by_its_newest_pod() {
    let daemon_set = Event::applied::<ApiDaemonSet>(object(json!({
        "metadata": {"namespace": "kube-system", "name": "agent", "uid": "ds"},
        "spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]}}}})));
    let live = |name: &str, created: &str, cpu: &str| {
        pod(
            name,
            json!({"metadata": {"creationTimestamp": created,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds", "controller": true}]},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
            "status": {"phase": "Running"}}),
        )
    };
    let cpu = |model: &Cluster| {
        model.snapshot().daemon_pods()[0]
            .shape
            .requests
            .cpu_millis()
    };
    let mut model = cluster([daemon_set]);
    assert_eq!(cpu(&model), 100);
    model
        .apply(at(1), live("agent-2", "2026-01-02T00:00:00Z", "300m"))
        .unwrap();
    model
        .apply(at(1), live("agent-1", "2026-01-01T00:00:00Z", "200m"))
        .unwrap();
    assert_eq!(cpu(&model), 300);
    model
        .apply(
            at(2),
            Event::deleted::<v1::Pod>(PodKey::new("default", "agent-2")),
        )
        .unwrap();
    assert_eq!(cpu(&model), 200);
}

#[test]
fn a_pod_that_does_not_parse_is_named_and_forgotten() {
    let mut model = cluster([bound("a", "n1")]);
    let bad = pod(
        "a",
        json!({"spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "lots"}}}]}}),
    );
    let error = model.apply(at(1), bad).unwrap_err().to_string();
    assert!(error.contains("default/a"), "{error}");
    assert_eq!(model.snapshot().pods().len(), 0);
    assert_eq!(model.snapshot().bound_to("n1").len(), 0);
}
