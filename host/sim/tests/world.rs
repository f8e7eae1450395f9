//! How the simulated cluster behaves: workloads become pods, pods find nodes, nodes come and go with instances.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its world has failed"
)]

use std::sync::Arc;

use api_server::{DeleteOptions, Resource, Selection};
use aws::seam::{Ec2Api, SsmApi};
use aws_sdk_ec2::operation::create_fleet::CreateFleetInput;
use aws_sdk_ec2::operation::create_launch_template::CreateLaunchTemplateInput;
use aws_sdk_ec2::operation::describe_subnets::DescribeSubnetsInput;
use aws_sdk_ec2::operation::terminate_instances::TerminateInstancesInput;
use aws_sdk_ec2::types::{
    FleetLaunchTemplateConfigRequest, FleetLaunchTemplateOverridesRequest,
    FleetLaunchTemplateSpecificationRequest, FleetType, InstanceType, RequestLaunchTemplateData,
    TargetCapacitySpecificationRequest,
};
use aws_sdk_ssm::operation::get_parameter::GetParameterInput;
use base64::Engine as _;
use serde_json::{Value, json};
use sim::ec2::{Ec2Config, Ec2Faults, InstanceState};
use sim::{SimulatedWorld, WorldConfig};
use tokio::time::{Duration, sleep};

fn world(seed: u64) -> Arc<SimulatedWorld> {
    let faults = Ec2Faults {
        on_demand_pools_dry: 0.0,
        ..Ec2Faults::default()
    };
    let ec2 = Ec2Config {
        faults,
        ..Ec2Config::default()
    };
    let world = SimulatedWorld::new(WorldConfig {
        seed,
        ec2,
        ..WorldConfig::default()
    });
    tokio::spawn(Arc::clone(&world).run());
    world
}

async fn settle(world: &SimulatedWorld) {
    for _ in 0..600 {
        sleep(Duration::from_secs(1)).await;
        if world.is_settled() {
            return;
        }
    }
    panic!("the world did not settle: {:?}", world.statistics());
}

/// One instance in each of the first `zones` zones; `user_data` as the kubelet's flags.
async fn launch(
    world: &SimulatedWorld,
    zones: usize,
    instance_type: &str,
    user_data: &str,
) -> Vec<String> {
    let ec2 = world.ec2();
    let path = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id";
    let parameter = ec2
        .get_parameter(GetParameterInput::builder().name(path).build().unwrap())
        .await
        .unwrap();
    let data = RequestLaunchTemplateData::builder()
        .image_id(parameter.parameter.unwrap().value.unwrap())
        .user_data(base64::engine::general_purpose::STANDARD.encode(user_data))
        .build();
    let name = format!("lt-{}", ec2.launches());
    let template = CreateLaunchTemplateInput::builder()
        .launch_template_name(&name)
        .launch_template_data(data);
    ec2.create_launch_template(template.build().unwrap())
        .await
        .unwrap();
    let subnets = ec2
        .describe_subnets(DescribeSubnetsInput::builder().build().unwrap())
        .await
        .unwrap();
    let mut ids = Vec::new();
    for subnet in subnets.subnets().iter().take(zones) {
        let request = FleetLaunchTemplateOverridesRequest::builder()
            .instance_type(InstanceType::from(instance_type))
            .set_subnet_id(subnet.subnet_id.clone());
        let specification =
            FleetLaunchTemplateSpecificationRequest::builder().launch_template_name(&name);
        let config = FleetLaunchTemplateConfigRequest::builder()
            .launch_template_specification(specification.build())
            .overrides(request.build());
        let target = TargetCapacitySpecificationRequest::builder()
            .total_target_capacity(1)
            .build();
        let input = CreateFleetInput::builder()
            .r#type(FleetType::Instant)
            .launch_template_configs(config.build())
            .target_capacity_specification(target);
        let answer = ec2.create_fleet(input.build().unwrap()).await.unwrap();
        ids.push(answer.instances()[0].instance_ids()[0].clone());
    }
    ids
}

fn pod_template(labels: &Value, cpu: &str) -> Value {
    json!({
        "metadata": { "labels": labels },
        "spec": { "containers": [{
            "name": "main", "image": "nginx", "resources": { "requests": { "cpu": cpu, "memory": "64Mi" } },
        }]},
    })
}

fn workload(kind: &str, name: &str, spec: &Value) -> Value {
    let labels = json!({ "app": name });
    let mut object = json!({
        "apiVersion": if kind == "Job" { "batch/v1" } else { "apps/v1" }, "kind": kind,
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "template": pod_template(&labels, "100m") },
    });
    if kind != "Job" {
        object["spec"]["selector"] = json!({ "matchLabels": labels });
    }
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

fn pods(world: &SimulatedWorld) -> Vec<Arc<Value>> {
    world.api().list(&Resource::PODS, &Selection::default())
}

fn get(world: &SimulatedWorld, resource: &Resource, name: &str) -> Arc<Value> {
    world.api().get(resource, "default", name).unwrap()
}

#[tokio::test(start_paused = true)]
async fn pods_wait_for_a_node_and_run_once_it_is_ready() {
    let world = world(1);
    let deployment = workload("Deployment", "web", &json!({ "replicas": 3 }));
    world
        .api()
        .create(&Resource::DEPLOYMENTS, "default", deployment)
        .unwrap();
    settle(&world).await;
    assert_eq!(world.statistics().pods_unschedulable, 3);
    let condition = &pods(&world)[0]["status"]["conditions"][0];
    assert_eq!(condition["reason"], "Unschedulable");
    assert_eq!(condition["message"], "no nodes available to schedule pods");
    launch(&world, 1, "m5.large", "").await;
    settle(&world).await;
    let web = get(&world, &Resource::DEPLOYMENTS, "web");
    assert_eq!(web["status"]["availableReplicas"], 3);
    assert_eq!(web["status"]["conditions"][0]["status"], "True");
    let pod = &pods(&world)[0];
    assert_eq!(pod["status"]["phase"], "Running");
    assert!(pod["status"]["podIP"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_node_registers_with_what_its_user_data_say() {
    let world = world(1);
    let flags = concat!(
        "/etc/eks/bootstrap.sh x --kubelet-extra-args '--node-labels=\"karpenter.sh/nodepool=default\" ",
        "--register-with-taints=\"karpenter.sh/unregistered=:NoExecute\" --max-pods=12'"
    );
    let ids = launch(&world, 1, "m5.large", flags).await;
    sleep(Duration::from_secs(90)).await;
    let node = &world.api().list(&Resource::NODES, &Selection::default())[0];
    let labels = &node["metadata"]["labels"];
    assert_eq!(labels["karpenter.sh/nodepool"], "default");
    assert_eq!(labels["node.kubernetes.io/instance-type"], "m5.large");
    assert_eq!(labels["topology.kubernetes.io/zone"], "us-east-1a");
    assert_eq!(
        node["spec"]["providerID"],
        format!("aws:///us-east-1a/{}", ids[0])
    );
    let taints = node["spec"]["taints"].as_array().unwrap();
    assert_eq!(taints.len(), 1, "not-ready has gone: {taints:?}");
    assert_eq!(taints[0]["key"], "karpenter.sh/unregistered");
    assert_eq!(node["status"]["capacity"]["cpu"], "2");
    assert_eq!(node["status"]["allocatable"]["cpu"], "1930m");
    assert_eq!(node["status"]["allocatable"]["pods"], "12");
    let memory = node["status"]["allocatable"]["memory"].as_str().unwrap();
    let kib: i64 = memory.strip_suffix("Ki").unwrap().parse().unwrap();
    // The provider predicts 6903 MiB: a real machine has a little more, never less.
    assert!((6903..7200).contains(&(kib / 1024)), "{memory}");
}

#[tokio::test(start_paused = true)]
async fn nodes_run_the_kubelet_of_their_clusters_version() {
    let world = world(1);
    launch(&world, 1, "m5.large", "").await;
    world.ec2().upgrade_cluster("1.36");
    launch(&world, 1, "m5.large", "").await;
    sleep(Duration::from_secs(90)).await;
    let nodes = world.api().list(&Resource::NODES, &Selection::default());
    let kubelet = |node: &Value| node["status"]["nodeInfo"]["kubeletVersion"].clone();
    let mut kubelets: Vec<Value> = nodes.iter().map(|it| kubelet(it)).collect();
    kubelets.sort_by_key(ToString::to_string);
    assert_eq!(kubelets, ["v1.35.5-eks-simulated", "v1.36.5-eks-simulated"]);
}

#[tokio::test(start_paused = true)]
async fn hard_spread_over_zones_leaves_the_surplus_pending() {
    let world = world(1);
    launch(&world, 2, "m5.large", "").await;
    let labels = json!({ "app": "web" });
    let mut template = pod_template(&labels, "100m");
    template["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": { "matchLabels": labels },
    }]);
    template["spec"]["affinity"] = json!({ "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": labels },
        }],
    }});
    let deployment = workload(
        "Deployment",
        "web",
        &json!({ "replicas": 3, "template": template }),
    );
    world
        .api()
        .create(&Resource::DEPLOYMENTS, "default", deployment)
        .unwrap();
    settle(&world).await;
    let statistics = world.statistics();
    assert_eq!(
        (statistics.pods_running, statistics.pods_unschedulable),
        (2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_runs_on_every_node_and_its_pods_end_with_the_instance() {
    let world = world(1);
    let ids = launch(&world, 3, "m5.large", "").await;
    let daemon = workload("DaemonSet", "agent", &json!({}));
    world
        .api()
        .create(&Resource::DAEMON_SETS, "default", daemon)
        .unwrap();
    settle(&world).await;
    assert_eq!(
        get(&world, &Resource::DAEMON_SETS, "agent")["status"]["numberReady"],
        3
    );
    let input = TerminateInstancesInput::builder()
        .instance_ids(&ids[0])
        .build()
        .unwrap();
    world.ec2().terminate_instances(input).await.unwrap();
    settle(&world).await;
    assert_eq!(
        get(&world, &Resource::DAEMON_SETS, "agent")["status"]["numberReady"],
        2
    );
    assert_eq!((world.statistics().nodes, pods(&world).len()), (2, 2));
    let leaks = |v: &sim::Violation| matches!(v, sim::Violation::LeakedInstance { .. });
    assert!(
        world.check_settled().iter().all(leaks),
        "{:?}",
        world.check_settled()
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_set_for_a_node_that_is_gone_keeps_the_world_from_settling_no_longer() {
    let world = world(1);
    let ids = launch(&world, 1, "m5.large", "").await;
    settle(&world).await;
    let terminate = TerminateInstancesInput::builder().set_instance_ids(Some(ids.clone()));
    world
        .ec2()
        .terminate_instances(terminate.build().unwrap())
        .await
        .unwrap();
    let nodes = world.api().list(&Resource::NODES, &Selection::default());
    let name = nodes[0]["metadata"]["name"].as_str().unwrap();
    world
        .api()
        .delete(&Resource::NODES, "", name, &DeleteOptions::default())
        .unwrap();
    let began = world.clock().elapsed();
    settle(&world).await;
    // Before any kubelet is called silent (40 s), and before the cloud takes the Node.
    let gone = world.ec2().instance(&ids[0]).unwrap();
    let took = world.clock().elapsed().saturating_sub(began);
    assert_eq!(gone.state(world.clock().now()), InstanceState::Terminated);
    assert!(took < Duration::from_secs(37), "{took:?}");
}

/// Deletes the only node, which a finalizer holds; answers its name.
fn begin_deleting_the_node(world: &SimulatedWorld) -> String {
    let api = world.api();
    let nodes = api.list(&Resource::NODES, &Selection::default());
    let node = nodes[0]["metadata"]["name"].as_str().unwrap();
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    api.patch_merge(&Resource::NODES, "", node, held).unwrap();
    api.delete(&Resource::NODES, "", node, &DeleteOptions::default())
        .unwrap();
    node.to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_stuck_once_nothing_holds_it_any_more_and_not_before() {
    let world = world(1);
    launch(&world, 1, "m5.large", "").await;
    let deployment = workload("Deployment", "web", &json!({ "replicas": 1 }));
    world
        .api()
        .create(&Resource::DEPLOYMENTS, "default", deployment)
        .unwrap();
    settle(&world).await;
    let node = begin_deleting_the_node(&world);
    sleep(Duration::from_secs(1)).await;
    let stuck = sim::Violation::StuckDeletion {
        object: format!("Node {node}"),
    };
    assert!(world.check_settled().contains(&stuck));
    sleep(Duration::from_mins(20)).await;
    assert!(!world.check_midway().contains(&stuck), "it drains");
    let none = json!({"spec": {"replicas": 0}});
    world
        .api()
        .patch_merge(&Resource::DEPLOYMENTS, "default", "web", none)
        .unwrap();
    settle(&world).await;
    assert!(world.check_midway().contains(&stuck));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_under_way_is_not_stuck() {
    let world = world(1);
    launch(&world, 1, "m5.large", "").await;
    settle(&world).await;
    begin_deleting_the_node(&world);
    let is_stuck = |it: &sim::Violation| matches!(it, sim::Violation::StuckDeletion { .. });
    sleep(Duration::from_mins(9)).await;
    assert!(!world.check_midway().iter().any(is_stuck));
    sleep(Duration::from_mins(2)).await;
    assert!(world.check_midway().iter().any(is_stuck));
}

#[tokio::test(start_paused = true)]
async fn a_stateful_sets_volumes_keep_its_pods_in_their_zone() {
    let world = world(1);
    let claims = json!([{
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "10Gi" } } },
    }]);
    let spec = json!({ "replicas": 2, "serviceName": "db", "volumeClaimTemplates": claims });
    world
        .api()
        .create(
            &Resource::STATEFUL_SETS,
            "default",
            workload("StatefulSet", "db", &spec),
        )
        .unwrap();
    let first = launch(&world, 1, "m5.large", "").await;
    settle(&world).await;
    assert_eq!(
        get(&world, &Resource::STATEFUL_SETS, "db")["status"]["readyReplicas"],
        2
    );
    let claim = get(&world, &Resource::PERSISTENT_VOLUME_CLAIMS, "data-db-0");
    assert_eq!(claim["status"]["phase"], "Bound");
    launch(&world, 3, "m5.large", "").await;
    settle(&world).await;
    let input = TerminateInstancesInput::builder()
        .instance_ids(&first[0])
        .build()
        .unwrap();
    world.ec2().terminate_instances(input).await.unwrap();
    settle(&world).await;
    for pod in pods(&world) {
        let node = pod["spec"]["nodeName"].as_str().unwrap();
        let node = world.api().get(&Resource::NODES, "", node).unwrap();
        assert_eq!(
            node["metadata"]["labels"]["topology.kubernetes.io/zone"],
            "us-east-1a"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_its_completions_and_ends() {
    let world = world(1);
    launch(&world, 1, "m5.large", "").await;
    let mut spec = json!({ "completions": 5, "parallelism": 2 });
    spec["template"] = pod_template(&json!({ "app": "batch" }), "100m");
    spec["template"]["spec"]["restartPolicy"] = "Never".into();
    world
        .api()
        .create(&Resource::JOBS, "default", workload("Job", "batch", &spec))
        .unwrap();
    sleep(Duration::from_mins(10)).await;
    let job = get(&world, &Resource::JOBS, "batch");
    assert_eq!(job["status"]["succeeded"], 5);
    assert_eq!(job["status"]["conditions"][0]["type"], "Complete");
    assert_eq!(world.statistics().pods_finished, 5);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_waits_for_its_node_to_be_ready_unless_it_says_otherwise() {
    let world = world(1);
    let mut hardy = workload("DaemonSet", "network", &json!({}));
    hardy["spec"]["template"]["spec"]["tolerations"] = json!([{ "operator": "Exists" }]);
    for daemon in [hardy, workload("DaemonSet", "agent", &json!({}))] {
        world
            .api()
            .create(&Resource::DAEMON_SETS, "default", daemon)
            .unwrap();
    }
    launch(&world, 1, "m5.large", "").await;
    let mut came = Vec::new();
    for _ in 0..120 {
        sleep(Duration::from_secs(1)).await;
        let apps = pods(&world);
        let apps = apps
            .iter()
            .map(|it| it["metadata"]["labels"]["app"].clone());
        let apps: Vec<Value> = apps.collect();
        came.extend(
            apps.into_iter()
                .filter(|it| !came.contains(it))
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(came, ["network", "agent"]);
}

#[tokio::test(start_paused = true)]
async fn a_budget_holds_evictions_back_until_the_replacement_runs() {
    let world = world(1);
    launch(&world, 2, "m5.large", "").await;
    let deployment = workload("Deployment", "web", &json!({ "replicas": 2 }));
    world
        .api()
        .create(&Resource::DEPLOYMENTS, "default", deployment)
        .unwrap();
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "web" } } },
    });
    world
        .api()
        .create(&Resource::POD_DISRUPTION_BUDGETS, "default", budget)
        .unwrap();
    settle(&world).await;
    assert_eq!(
        get(&world, &Resource::POD_DISRUPTION_BUDGETS, "web")["status"]["disruptionsAllowed"],
        1
    );
    let names: Vec<String> = pods(&world)
        .iter()
        .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    let evict = |name: &str| {
        world
            .api()
            .evict("default", name, &DeleteOptions::default())
    };
    evict(&names[0]).unwrap();
    assert!(evict(&names[1]).is_err());
    settle(&world).await;
    evict(&names[1]).unwrap();
    settle(&world).await;
    assert_eq!(world.statistics().pods_running, 2);
}

#[tokio::test(start_paused = true)]
async fn a_changed_template_rolls_over_without_falling_below_its_minimum() {
    let world = world(1);
    launch(&world, 2, "m5.large", "").await;
    let deployment = workload("Deployment", "web", &json!({ "replicas": 4 }));
    world
        .api()
        .create(&Resource::DEPLOYMENTS, "default", deployment)
        .unwrap();
    settle(&world).await;
    let image = json!({ "spec": { "template": { "metadata": { "annotations": { "v": "2" } } } } });
    world
        .api()
        .patch_merge(&Resource::DEPLOYMENTS, "default", "web", image)
        .unwrap();
    settle(&world).await;
    let web = get(&world, &Resource::DEPLOYMENTS, "web");
    assert_eq!(web["status"]["updatedReplicas"], 4);
    assert_eq!(web["status"]["replicas"], 4);
    let sets = world
        .api()
        .list(&Resource::REPLICA_SETS, &Selection::default());
    assert_eq!(sets.len(), 2);
    assert_eq!(
        web["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "2"
    );
    world
        .api()
        .delete(
            &Resource::DEPLOYMENTS,
            "default",
            "web",
            &DeleteOptions::default(),
        )
        .unwrap();
    settle(&world).await;
    assert!(pods(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn fewer_replicas_are_left_where_few_of_their_kind_are() {
    let world = world(1);
    launch(&world, 1, "m5.large", "").await;
    let deployment = workload("Deployment", "web", &json!({ "replicas": 4 }));
    let api = world.api();
    let deployments = &Resource::DEPLOYMENTS;
    api.create(deployments, "default", deployment).unwrap();
    settle(&world).await;
    launch(&world, 1, "m5.large", "").await;
    settle(&world).await;
    api.scale(deployments, "default", "web", 5).unwrap();
    settle(&world).await;
    let node = |pod: &Arc<Value>| pod["spec"]["nodeName"].as_str().map(ToOwned::to_owned);
    let before: Vec<_> = pods(&world).iter().map(node).collect();
    let lonely = |it: &&Option<String>| before.iter().filter(|other| other == it).count() == 1;
    let lonely = before.iter().find(lonely).unwrap();
    api.scale(deployments, "default", "web", 1).unwrap();
    settle(&world).await;
    let left: Vec<_> = pods(&world).iter().map(node).collect();
    assert_eq!(left, std::slice::from_ref(lonely), "the youngest of all");
}

#[tokio::test(start_paused = true)]
async fn a_no_execute_taint_drives_away_what_does_not_tolerate_it() {
    let world = world(1);
    launch(&world, 1, "m5.large", "").await;
    world
        .api()
        .create(
            &Resource::DEPLOYMENTS,
            "default",
            workload("Deployment", "web", &json!({})),
        )
        .unwrap();
    settle(&world).await;
    let node = world.api().list(&Resource::NODES, &Selection::default())[0].clone();
    let name = node["metadata"]["name"].as_str().unwrap();
    let taint = json!({ "spec": { "taints": [{ "key": "k", "effect": "NoExecute" }] } });
    world
        .api()
        .patch_merge(&Resource::NODES, "", name, taint)
        .unwrap();
    settle(&world).await;
    let statistics = world.statistics();
    assert_eq!(
        (statistics.pods_running, statistics.pods_unschedulable),
        (0, 1)
    );
    let pod = &pods(&world)[0];
    let message = pod["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("0/1 nodes are available: 1 node(s) had untolerated taint {k: }"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_worlds_numbers_are_those_of_its_instances_pods_and_claims() {
    let world = world(1);
    world.install_crds().unwrap();
    let ids = launch(&world, 2, "m5.large", "").await;
    let deployment = workload("Deployment", "web", &json!({ "replicas": 2 }));
    let too_large = json!({ "template": pod_template(&json!({ "app": "large" }), "64") });
    for workload in [deployment, workload("Deployment", "large", &too_large)] {
        let deployments = Resource::DEPLOYMENTS;
        let created = world.api().create(&deployments, "default", workload);
        created.unwrap();
    }
    settle(&world).await;
    let told = world.statistics();
    assert_eq!(told.instances.get("running"), Some(&2));
    assert_eq!((told.launches, told.terminations, told.nodes), (2, 0, 2));
    assert_eq!((told.pods_running, told.pods_pending), (2, 1));
    assert_eq!(told.pods_unschedulable, 1);
    assert!((told.price_per_hour - 0.192).abs() < 1e-9, "{told:?}");
    assert_eq!(told.leaked_instances.len(), 2, "no NodeClaim names them");
    let pulse = world.pulse();
    assert_eq!((pulse.launches, pulse.terminations), (2, 0));
    assert_eq!((pulse.pods_running, pulse.pods_pending), (2, 1));
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "named" },
        "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "requirements": [],
        },
    });
    let (api, claims) = (world.api(), Resource::NODE_CLAIMS);
    api.create(&claims, "", claim).unwrap();
    let named = json!({ "status": { "providerID": format!("aws:///us-east-1a/{}", ids[0]) } });
    api.patch_merge_status(&claims, "", "named", named).unwrap();
    settle(&world).await;
    assert_eq!(world.statistics().leaked_instances, [ids[1].clone()]);
    let input = TerminateInstancesInput::builder().instance_ids(&ids[1]);
    let ended = world.ec2().terminate_instances(input.build().unwrap());
    ended.await.unwrap();
    settle(&world).await;
    let told = world.statistics();
    assert_eq!((told.terminations, told.nodes), (1, 1));
    assert!(told.leaked_instances.is_empty(), "{told:?}");
    assert!((told.price_per_hour - 0.096).abs() < 1e-9, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_tells_the_same_story() {
    async fn story(seed: u64) -> (Vec<String>, Vec<String>) {
        let world = world(seed);
        launch(&world, 3, "m5.large", "").await;
        let deployment = workload("Deployment", "web", &json!({ "replicas": 9 }));
        world
            .api()
            .create(&Resource::DEPLOYMENTS, "default", deployment)
            .unwrap();
        settle(&world).await;
        let text = |object: &Arc<Value>| object.to_string();
        let nodes = world.api().list(&Resource::NODES, &Selection::default());
        (
            pods(&world).iter().map(text).collect(),
            nodes.iter().map(text).collect(),
        )
    }
    let (first, again, other) = (story(7).await, story(7).await, story(8).await);
    assert_eq!(first, again);
    assert_ne!(first, other);
}
