//! What becomes of pods on nodes: when they start and end, what their status says, and what drives them away.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its world has failed"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use api_server::{DeleteOptions, Resource, Selection};
use serde_json::{Value, json};
use sim::{SimulatedWorld, WorldConfig};
use tokio::time::{Duration, Instant, sleep_until};

const NODE: &str = "n1";

/// A world with one node that nobody launched, and the moment of its beginning.
struct Played {
    world: Arc<SimulatedWorld>,
    start: Instant,
}

impl Played {
    fn new(is_ready: bool) -> Self {
        let world = SimulatedWorld::new(WorldConfig::default());
        tokio::spawn(Arc::clone(&world).run());
        let amounts = json!({"cpu": "64", "memory": "64Gi", "pods": "110"});
        let ready = if is_ready { "True" } else { "False" };
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
            "status": {
                "capacity": amounts, "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": ready}],
                "addresses": [
                    {"type": "Hostname", "address": NODE}, {"type": "InternalIP", "address": "10.1.2.3"},
                ],
            },
        });
        world.api().create(&Resource::NODES, "", node).unwrap();
        Self {
            world,
            start: Instant::now(),
        }
    }

    /// Creates a pod on the node, with more of its annotations and spec.
    fn pod(&self, name: &str, annotations: &Value, spec: &Value) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations},
            "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "nginx"}]},
        });
        for (field, value) in spec.as_object().unwrap() {
            pod["spec"][field] = value.clone();
        }
        let created = self.world.api().create(&Resource::PODS, "default", pod);
        created.unwrap();
    }

    fn delete_pod(&self, name: &str) {
        let (api, options) = (self.world.api(), DeleteOptions::default());
        let deleted = api.delete(&Resource::PODS, "default", name, &options);
        deleted.unwrap();
    }

    fn patch_node(&self, patch: Value) {
        let (api, nodes) = (self.world.api(), Resource::NODES);
        api.patch_merge(&nodes, "", NODE, patch).unwrap();
    }

    async fn at(&self, millis: u64) {
        sleep_until(self.start + Duration::from_millis(millis)).await;
    }

    fn status(&self, name: &str) -> Value {
        let pod = self.world.api().get(&Resource::PODS, "default", name);
        pod.unwrap()["status"].clone()
    }

    /// Phases by name; those that are gone are absent.
    fn phases(&self) -> BTreeMap<String, String> {
        let pods = self
            .world
            .api()
            .list(&Resource::PODS, &Selection::default());
        let text = |value: &Value| value.as_str().unwrap_or("Pending").to_owned();
        pods.iter()
            .map(|pod| {
                (
                    text(&pod["metadata"]["name"]),
                    text(&pod["status"]["phase"]),
                )
            })
            .collect()
    }

    fn names(&self) -> Vec<String> {
        self.phases().into_keys().collect()
    }
}

fn is_true(status: &Value, condition: &str) -> bool {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut own = conditions.filter(|it| it["type"] == condition);
    own.next().is_some_and(|it| it["status"] == "True")
}

#[tokio::test(start_paused = true)]
async fn pods_start_within_seconds_and_end_when_they_are_told_to() {
    let played = Played::new(true);
    let runs = |seconds: &str| json!({"sim.mortise.dev/run-seconds": seconds});
    played.pod("brief", &runs("5"), &json!({}));
    played.pod("lasting", &json!({}), &json!({}));
    played.pod("vague", &runs("soon"), &json!({}));
    let phases = |of_brief: &str, of_others: &str| {
        let phases = [
            ("brief", of_brief),
            ("lasting", of_others),
            ("vague", of_others),
        ];
        phases.map(|(name, phase)| (name.to_owned(), phase.to_owned()))
    };
    played.at(700).await;
    assert_eq!(
        played.phases(),
        BTreeMap::from(phases("Pending", "Pending"))
    );
    played.at(4_000).await;
    assert_eq!(
        played.phases(),
        BTreeMap::from(phases("Running", "Running"))
    );
    played.at(9_000).await;
    assert_eq!(
        played.phases(),
        BTreeMap::from(phases("Succeeded", "Running"))
    );
    played.at(600_000).await;
    assert_eq!(
        played.phases(),
        BTreeMap::from(phases("Succeeded", "Running"))
    );
    let (brief, lasting) = (played.status("brief"), played.status("lasting"));
    assert!(is_true(&lasting, "Ready") && !is_true(&brief, "Ready"));
    let ended = &brief["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["reason"], "Completed");
    assert_eq!(ended["startedAt"], brief["startTime"]);
    assert_eq!(lasting["containerStatuses"][0]["ready"], true);
}

#[tokio::test(start_paused = true)]
async fn sidecars_run_on_and_pods_of_the_hosts_network_have_its_address() {
    let played = Played::new(true);
    let init = json!([
        {"name": "setup", "image": "setup"},
        {"name": "mesh", "image": "mesh", "restartPolicy": "Always"},
    ]);
    played.pod("own", &json!({}), &json!({"initContainers": init}));
    played.pod("host", &json!({}), &json!({"hostNetwork": true}));
    played.at(4_000).await;
    let (own, host) = (played.status("own"), played.status("host"));
    let states = own["initContainerStatuses"].as_array().unwrap();
    assert!(states[0]["state"]["terminated"].is_object());
    assert!(states[1]["state"]["running"].is_object());
    assert_eq!(
        (&host["hostIP"], &host["podIP"]),
        (&json!("10.1.2.3"), &json!("10.1.2.3"))
    );
    assert_eq!(own["hostIP"], "10.1.2.3");
    let address = own["podIP"].as_str().unwrap();
    assert!(address.starts_with("100.64."), "{address}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_stops_when_it_wants_to_and_at_the_end_of_its_grace_at_the_latest() {
    let played = Played::new(true);
    let stops = |seconds: &str| json!({"sim.mortise.dev/stop-seconds": seconds});
    let grace = |seconds: i64| json!({"terminationGracePeriodSeconds": seconds});
    played.pod("never", &stops("1000"), &grace(30));
    played.pod("plain", &json!({}), &grace(30));
    played.pod("short", &stops("1000"), &grace(5));
    played.pod("slow", &stops("10"), &grace(30));
    played.at(5_000).await;
    for name in ["never", "plain", "short", "slow"] {
        played.delete_pod(name);
    }
    // Since the deletion: what is left.
    let cases: [(u64, &[&str]); 7] = [
        (200, &["never", "plain", "short", "slow"]),
        (2_500, &["never", "short", "slow"]),
        (4_700, &["never", "short", "slow"]),
        (5_500, &["never", "slow"]),
        (9_700, &["never", "slow"]),
        (10_500, &["never"]),
        (30_500, &[]),
    ];
    for (millis, left) in cases {
        played.at(5_000 + millis).await;
        assert_eq!(played.names(), left, "{millis} ms after the deletion");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_wait_for_a_node_that_is_not_ready_and_go_with_one_that_is_gone() {
    let played = Played::new(false);
    played.pod("early", &json!({}), &json!({}));
    played.at(60_000).await;
    assert_eq!(played.phases()["early"], "Pending");
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let (api, nodes) = (played.world.api(), Resource::NODES);
    api.patch_merge_status(&nodes, "", NODE, ready).unwrap();
    played.at(64_000).await;
    assert_eq!(played.phases()["early"], "Running");
    api.delete(&nodes, "", NODE, &DeleteOptions::default())
        .unwrap();
    played.at(68_500).await;
    assert_eq!(played.names(), ["early"], "it may come back");
    played.at(70_000).await;
    assert_eq!(played.names(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_tolerates_a_taint_for_a_while_leaves_once_that_is_over() {
    let played = Played::new(true);
    let tolerates = |seconds: &[Option<i64>]| {
        let toleration = |seconds: &Option<i64>| {
            let mut toleration = json!({"key": "k", "operator": "Exists", "effect": "NoExecute"});
            if let Some(seconds) = seconds {
                toleration["tolerationSeconds"] = (*seconds).into();
            }
            toleration
        };
        json!({"tolerations": seconds.iter().map(toleration).collect::<Vec<_>>()})
    };
    let nothing = json!({});
    played.pod("both", &nothing, &tolerates(&[Some(60), Some(20)]));
    played.pod("for-20", &nothing, &tolerates(&[Some(20)]));
    played.pod("forever", &nothing, &tolerates(&[None]));
    played.pod("not", &nothing, &nothing);
    played.at(10_000).await;
    // Nobody says since when, as those who write taints by hand do not.
    played.patch_node(json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}));
    played.at(13_000).await;
    assert_eq!(played.names(), ["both", "for-20", "forever"]);
    // A change of the node is no new taint.
    played.patch_node(json!({"metadata": {"labels": {"l": "v"}}}));
    played.at(29_000).await;
    assert_eq!(played.names(), ["both", "for-20", "forever"]);
    // Who comes later has as long as those who were there.
    played.pod("later", &nothing, &tolerates(&[Some(20)]));
    played.at(33_500).await;
    assert_eq!(played.names(), ["forever", "later"]);
    played.at(48_000).await;
    assert_eq!(played.names(), ["forever", "later"]);
    played.at(52_500).await;
    assert_eq!(played.names(), ["forever"]);
}
