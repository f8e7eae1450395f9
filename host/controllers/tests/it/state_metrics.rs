//! What `/metrics` shows of what there is: nodes, pods, NodePools, offerings, conditions, queues and passes.

use api_server::{NamespacedName, ObjectPart, Resource};
use serde_json::{Value, json};

use crate::world::World;

/// A world in which a pod of a core runs, with limits.
async fn with_a_pod() -> World {
    let mut world = World::new();
    let limits = json!({"spec": {"containers": [{
        "name": "c", "image": "i",
        "resources": {"requests": {"cpu": "900m"}, "limits": {"cpu": "2", "memory": "1Gi"}},
    }]}});
    world.create_pod("a", "900m", &limits);
    world.settle(60).await;
    assert_eq!(world.bound_pods(), 1);
    world
}

/// The kubelet finds the pod ready, or not.
fn set_ready(world: &World, pod: &str, status: &str) {
    let key = NamespacedName::new("default", pod);
    world
        .api
        .modify_part(&Resource::PODS, &key, ObjectPart::Status, |pod| {
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": status}]);
        })
        .unwrap();
}

fn only(values: &[f64]) -> f64 {
    assert_eq!(values.len(), 1, "{values:?}");
    values[0]
}

#[tokio::test(start_paused = true)]
async fn nodes_are_shown_with_what_pods_take_of_them_until_they_are_gone() {
    let mut world = with_a_pod().await;
    let node = world.names(&Resource::NODES)[0].clone();
    let of_node = format!("node_name=\"{node}\"");
    let of = |world: &World, name: &str, resource: &str| {
        let resource = format!("resource_type=\"{resource}\"");
        let labels = [
            of_node.as_str(),
            "nodepool=\"default\"",
            "managed=\"true\"",
            &resource,
        ];
        world.values(&format!("karpenter_nodes_{name}"), &labels)
    };
    let cores = only(&of(&world, "allocatable", "cpu"));
    assert!(cores >= 1.0, "{cores}");
    assert_eq!(of(&world, "total_pod_requests", "cpu"), [0.9]);
    assert_eq!(of(&world, "total_pod_requests", "pods"), [1.0]);
    assert_eq!(of(&world, "total_pod_limits", "cpu"), [2.0]);
    assert_eq!(of(&world, "total_pod_limits", "memory"), [1_073_741_824.0]);
    let daemons = of(&world, "total_daemon_requests", "cpu");
    assert!(daemons.iter().all(|it| *it <= 0.0), "{daemons:?}");
    assert_eq!(of(&world, "system_overhead", "cpu"), [0.0]);
    let age = only(&world.values("karpenter_nodes_current_lifetime_seconds", &[&of_node]));
    assert!((1.0..60.0).contains(&age), "{age}");
    let utilization = "karpenter_cluster_utilization_percent{resource_type=\"cpu\"}";
    let percent = world.series(utilization).unwrap();
    assert!((percent - 90.0 / cores).abs() < 1e-6, "{percent}");
    assert_eq!(
        world.series("karpenter_cluster_state_node_count{}"),
        Some(1.0)
    );
    assert_eq!(world.series("karpenter_cluster_state_synced{}"), Some(1.0));
    let unsynced = "karpenter_cluster_state_unsynced_time_seconds{}";
    assert_eq!(world.series(unsynced), Some(0.0));

    world.delete_pod("a");
    world.settle(120).await;
    assert!(world.names(&Resource::NODES).is_empty());
    assert!(of(&world, "allocatable", "cpu").is_empty());
    let took = "karpenter_nodes_termination_duration_seconds";
    let longest = only(&world.values(took, &["nodepool=\"default\"", "quantile=\"1\""]));
    assert!(longest > 0.0, "{longest}");
    let count = world.series(&format!("{took}_count{{nodepool=\"default\"}}"));
    assert_eq!(count, Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn the_first_decision_on_a_pod_that_finds_no_place_is_timed_once() {
    let mut world = World::new();
    world.settle(5).await;
    world.create_pod("huge", "64", &json!({}));
    world.settle(60).await;
    assert_eq!(world.bound_pods(), 0);
    let name = "karpenter_pods_scheduling_decision_duration_seconds_count";
    assert_eq!(world.values(name, &[]), [1.0]);
    let undecided = "karpenter_pods_provisioning_scheduling_undecided_time_seconds";
    assert!(world.values(undecided, &[]).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_shown_where_it_is_and_its_start_is_timed_once() {
    let mut world = World::new();
    world.create_pod("a", "900m", &json!({}));
    world.settle(5).await;
    let of_pod = ["name=\"a\"", "namespace=\"default\""];
    for name in [
        "unstarted_time",
        "unbound_time",
        "provisioning_unstarted_time",
        "provisioning_unbound_time",
    ] {
        let age = only(&world.values(&format!("karpenter_pods_{name}_seconds"), &of_pod));
        assert!((1.0..=5.0).contains(&age), "{name}: {age}");
    }
    let pending = [
        "name=\"a\"",
        "phase=\"Pending\"",
        "scheduled=\"false\"",
        "managed=\"false\"",
    ];
    assert_eq!(world.values("karpenter_pods_state", &pending), [1.0]);
    world.settle(55).await;
    assert!(
        world
            .values("karpenter_pods_unbound_time_seconds", &of_pod)
            .is_empty()
    );
    assert!(
        !world
            .values("karpenter_pods_unstarted_time_seconds", &of_pod)
            .is_empty()
    );
    set_ready(&world, "a", "True");
    world.settle(1).await;
    let running = [
        "name=\"a\"",
        "phase=\"Running\"",
        "ready=\"true\"",
        "scheduled=\"true\"",
        "nodepool=\"default\"",
        "owner=\"/apis/apps/v1/namespaces/default/replicasets/web\"",
        "capacity_type=\"on-demand\"",
    ];
    assert_eq!(world.values("karpenter_pods_state", &running), [1.0]);
    assert!(
        world
            .values("karpenter_pods_unstarted_time_seconds", &of_pod)
            .is_empty()
    );
    let bound = "karpenter_pods_bound_duration_seconds_count{dynamic_resources=\"false\"}";
    let started = "karpenter_pods_startup_duration_seconds_count{}";
    let counts = [
        bound,
        started,
        "karpenter_pods_provisioning_startup_duration_seconds_count{}",
    ];
    assert_eq!(counts.map(|it| world.series(it)), [Some(1.0); 3]);
    let median = only(&world.values(
        "karpenter_pods_startup_duration_seconds",
        &["quantile=\"0.5\""],
    ));
    assert!((60.0..62.0).contains(&median), "{median}");
    // It was ready once.
    set_ready(&world, "a", "False");
    world.settle(1).await;
    set_ready(&world, "a", "True");
    world.settle(1).await;
    assert_eq!(world.series(started), Some(1.0));
    world.delete_pod("a");
    world.settle(10).await;
    assert!(world.values("karpenter_pods_state", &of_pod).is_empty());
}

#[tokio::test(start_paused = true)]
async fn limits_and_costs_of_node_pools_go_with_them() {
    let mut world = with_a_pod().await;
    world.change_pool(json!({"spec": {"limits": {"cpu": "100"}}}));
    world.settle(15).await;
    let limit = "karpenter_nodepools_limit{resource_type=\"cpu\",nodepool=\"default\"}";
    let usage = "karpenter_nodepools_usage{resource_type=\"cpu\",nodepool=\"default\"}";
    let cost = "karpenter_nodepools_cost_total{nodepool=\"default\"}";
    assert_eq!(world.series(limit), Some(100.0));
    assert!(world.series(usage).unwrap() >= 1.0);
    assert!(world.series(cost).unwrap() > 0.0);
    world.change_pool(json!({"spec": {"limits": Value::Null}}));
    world.delete_pod("a");
    world.settle(120).await;
    assert_eq!(world.series(limit), None, "the limit is taken away");
    assert_eq!(
        (world.series(usage), world.series(cost)),
        (Some(0.0), Some(0.0))
    );
    world.delete(&Resource::NODE_POOLS, "default");
    world.settle(15).await;
    assert_eq!((world.series(usage), world.series(cost)), (None, None));
}

#[tokio::test(start_paused = true)]
async fn offerings_are_shown_with_their_price() {
    let mut world = World::new();
    world.settle(30).await;
    let available = world.values(
        "karpenter_cloudprovider_instance_type_offering_available",
        &["capacity_type=\"on-demand\""],
    );
    assert!(
        !available.is_empty() && available.contains(&1.0),
        "{available:?}"
    );
    let prices = world.values(
        "karpenter_cloudprovider_instance_type_offering_price_estimate",
        &["capacity_type=\"on-demand\""],
    );
    assert_eq!(prices.len(), available.len());
    assert!(prices.iter().all(|it| *it > 0.0), "{prices:?}");
}

#[tokio::test(start_paused = true)]
async fn conditions_are_shown_counted_and_told() {
    let mut world = with_a_pod().await;
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    let of_claim = format!("name=\"{claim}\"");
    let ready = [
        of_claim.as_str(),
        "type=\"Ready\"",
        "status=\"True\"",
        "karpenter_sh_nodepool=\"default\"",
    ];
    assert_eq!(
        world.values("operator_nodeclaim_status_condition_count", &ready),
        [1.0]
    );
    let deprecated = [
        of_claim.as_str(),
        "type=\"Ready\"",
        "group=\"karpenter.sh\"",
        "kind=\"NodeClaim\"",
    ];
    assert_eq!(
        world.values("operator_status_condition_count", &deprecated),
        [1.0]
    );
    let age = only(&world.values(
        "operator_nodeclaim_status_condition_current_status_seconds",
        &ready,
    ));
    assert!((0.0..60.0).contains(&age), "{age}");
    let launched = ["type=\"Launched\"", "status=\"True\""];
    let transitions = "operator_nodeclaim_status_condition_transitions_total";
    assert_eq!(world.values(transitions, &launched), [1.0]);
    for kind in ["nodepool", "ec2nodeclass", "node"] {
        let name = format!("operator_{kind}_status_condition_count");
        assert!(
            !world
                .values(&name, &["type=\"Ready\"", "status=\"True\""])
                .is_empty(),
            "{kind}"
        );
    }
    let told = world.event_messages("NodeClaim", "Registered");
    assert!(
        told.iter().any(|it| it.starts_with(
            "Status condition transitioned, Type: Registered, Status: Unknown -> True, Reason: "
        )),
        "{told:?}"
    );

    world.delete(&Resource::NODE_CLAIMS, &claim);
    world.settle(1).await;
    let going = "operator_nodeclaim_termination_current_time_seconds";
    only(&world.values(going, &[&of_claim]));
    world.delete_pod("a");
    world.settle(90).await;
    assert!(world.values(going, &[&of_claim]).is_empty());
    assert!(
        world
            .values("operator_nodeclaim_status_condition_count", &[&of_claim])
            .is_empty()
    );
    let took = "operator_nodeclaim_termination_duration_seconds_count";
    assert_eq!(
        world.values(took, &["karpenter_sh_nodepool=\"default\""]),
        [1.0]
    );
    let told = world.event_messages("NodeClaim", "Finalized");
    assert_eq!(told, ["Finalized karpenter.sh/termination"]);
}

#[tokio::test(start_paused = true)]
async fn times_of_transitions_say_what_was_left_and_what_came() {
    let world = with_a_pod().await;
    let left = [
        "type=\"Registered\"",
        "status=\"Unknown\"",
        "to_status=\"True\"",
    ];
    for prefix in ["operator_nodeclaim", "operator"] {
        let name = format!("{prefix}_status_condition_transition_seconds_count");
        assert_eq!(world.values(&name, &left), [1.0], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn queues_loops_and_passes_are_measured() {
    let world = with_a_pod().await;
    let lifecycle = [
        "name=\"nodeclaim.lifecycle\"",
        "controller=\"nodeclaim.lifecycle\"",
    ];
    for name in [
        "adds_total",
        "queue_duration_seconds_count",
        "work_duration_seconds_count",
    ] {
        let value = only(&world.values(&format!("workqueue_{name}"), &lifecycle));
        assert!(value >= 1.0, "{name}: {value}");
    }
    for name in [
        "depth",
        "unfinished_work_seconds",
        "longest_running_processor_seconds",
    ] {
        assert_eq!(
            world.values(&format!("workqueue_{name}"), &lifecycle),
            [0.0],
            "{name}"
        );
    }
    for controller in ["provisioner", "disruption", "nodeclaim.lifecycle"] {
        let labels = [format!("controller=\"{controller}\"")];
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let rounds = world.values("controller_runtime_reconcile_total", &labels);
        assert!(
            rounds.iter().sum::<f64>() >= 1.0,
            "{controller}: {rounds:?}"
        );
        let at_once = world.values("controller_runtime_max_concurrent_reconciles", &labels);
        assert!(only(&at_once) >= 1.0);
        for name in [
            "active_workers",
            "reconcile_panics_total",
            "terminal_reconcile_errors_total",
        ] {
            let value = world.values(&format!("controller_runtime_{name}"), &labels);
            assert_eq!(value, [0.0], "{controller} {name}");
        }
    }
    for controller in ["provisioner", "disruption"] {
        let labels = [format!("controller=\"{controller}\"")];
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        assert_eq!(
            world.values("karpenter_scheduler_queue_depth", &labels),
            [0.0]
        );
        let timed = world.values(
            "karpenter_scheduler_scheduling_duration_seconds_count",
            &labels,
        );
        assert!(only(&timed) >= 1.0, "{controller}");
        let at_work = world.values("karpenter_scheduler_unfinished_work_seconds", &labels);
        assert!(at_work.is_empty(), "no pass is under way");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_that_can_run_in_one_zone_alone_are_counted_for_it() {
    let mut world = World::new();
    let zone = json!({"spec": {"nodeSelector": {"topology.kubernetes.io/zone": "nowhere"}}});
    world.create_pod("bound-to-a-zone", "900m", &zone);
    world.create_pod("overlooked", "900m", &json!({}));
    world.settle(4).await;
    let pending = "karpenter_scheduler_pending_pods_by_effective_zone_count";
    for zone in ["nowhere", "flexible"] {
        let labels = format!("{{controller=\"provisioner\",zone=\"{zone}\"}}");
        assert_eq!(
            world.series(&format!("{pending}{labels}")),
            Some(1.0),
            "{zone}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_nothing_suits_is_told_so() {
    let mut world = World::new();
    let nothing = json!([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["none.such"]}]);
    world.change_pool(json!({"spec": {"template": {"spec": {"requirements": nothing}}}}));
    world.create_pod("a", "900m", &json!({}));
    world.settle(10).await;
    let told = world.event_messages("NodePool", "NoCompatibleInstanceTypes");
    let text = "NodePool requirements filtered out all compatible available instance types";
    assert_eq!(told, [text]);
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_no_observability_gets_none_of_single_objects() {
    let mut world = World::with_settings(|it| it.disable_cluster_state_observability = true);
    world.create_pod("a", "900m", &json!({}));
    world.settle(60).await;
    assert_eq!(world.bound_pods(), 1);
    for name in [
        "karpenter_nodes_allocatable",
        "karpenter_pods_state",
        "operator_node_status_condition_count",
    ] {
        assert!(world.values(name, &[]).is_empty(), "{name}");
    }
    assert_eq!(
        world.series("karpenter_cluster_state_node_count{}"),
        Some(1.0)
    );
}

#[tokio::test(start_paused = true)]
async fn who_stands_by_shows_nothing_that_whoever_leads_shows() {
    let world = World::standing_by();
    assert!(
        world
            .values("karpenter_cluster_state_synced", &[])
            .is_empty()
    );
    world.controllers.lead();
    assert_eq!(world.values("karpenter_cluster_state_synced", &[]).len(), 1);
}
