//! What the simulated controllers make of workloads that change. There is no node, so that no pod runs or ends.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its world has failed"
)]

use std::sync::Arc;

use api_server::{Resource, Selection};
use serde_json::{Value, json};
use sim::{SimulatedWorld, WorldConfig};
use tokio::time::{Duration, sleep};

fn world() -> Arc<SimulatedWorld> {
    let world = SimulatedWorld::new(WorldConfig::default());
    tokio::spawn(Arc::clone(&world).run());
    world
}

fn template(cpu: &str, restarts: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "x" } },
        "spec": { "restartPolicy": restarts, "containers": [{
            "name": "main", "image": "nginx", "resources": { "requests": { "cpu": cpu } },
        }]},
    })
}

/// Creates an object named `x`.
fn create(world: &SimulatedWorld, resource: &Resource, of: [&str; 2], spec: &Value) {
    let [version, kind] = of;
    let metadata = json!({ "name": "x", "namespace": "default" });
    let object = json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec });
    world.api().create(resource, "default", object).unwrap();
}

async fn change(world: &SimulatedWorld, resource: &Resource, spec: &Value) {
    let patch = json!({ "spec": spec });
    let patched = world.api().patch_merge(resource, "default", "x", patch);
    patched.unwrap();
    sleep(Duration::from_secs(30)).await;
}

/// Names of all objects of a kind.
fn names(world: &SimulatedWorld, resource: &Resource) -> Vec<String> {
    let all = world.api().list(resource, &Selection::default());
    let name = |it: &Value| it["metadata"]["name"].as_str().unwrap().to_owned();
    all.iter().map(|it| name(it)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_of_less_parallelism_ends_the_pods_that_are_too_many() {
    let world = world();
    let spec = json!({ "completions": 9, "parallelism": 4, "template": template("1", "Never") });
    create(&world, &Resource::JOBS, ["batch/v1", "Job"], &spec);
    for (parallelism, want) in [(4, 4), (1, 1), (3, 3), (0, 0), (20, 9)] {
        let parallelism = json!({ "parallelism": parallelism });
        change(&world, &Resource::JOBS, &parallelism).await;
        assert_eq!(names(&world, &Resource::PODS).len(), want, "{parallelism}");
        let job = world.api().get(&Resource::JOBS, "default", "x").unwrap();
        assert_eq!(job["status"]["active"], want, "{parallelism}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cron_jobs_policy_says_what_becomes_of_the_run_before() {
    for (policy, runs) in [("Allow", 3), ("Forbid", 1), ("Replace", 1)] {
        let world = world();
        let spec = json!({
            "schedule": "*/10 * * * *", "concurrencyPolicy": policy,
            "jobTemplate": { "spec": { "template": template("1", "Never") } },
        });
        create(&world, &Resource::CRON_JOBS, ["batch/v1", "CronJob"], &spec);
        sleep(Duration::from_mins(11)).await;
        let first = names(&world, &Resource::JOBS);
        sleep(Duration::from_mins(20)).await;
        let jobs = names(&world, &Resource::JOBS);
        let pods = names(&world, &Resource::PODS);
        assert_eq!(
            (first.len(), jobs.len(), pods.len()),
            (1, runs, runs),
            "{policy}"
        );
        assert_eq!(jobs.contains(&first[0]), policy != "Replace", "{policy}");
    }
}

/// A run that `Forbid` held back starts when the one before it has ended, unless it is too late by then.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_held_back_is_made_up_for() {
    for (deadline, runs) in [(json!(null), 2), (json!(600), 2), (json!(60), 1)] {
        let world = world();
        let spec = json!({
            "schedule": "*/10 * * * *", "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": deadline,
            "jobTemplate": { "spec": { "template": template("1", "Never") } },
        });
        create(&world, &Resource::CRON_JOBS, ["batch/v1", "CronJob"], &spec);
        let last = |world: &SimulatedWorld| {
            let cron = world.api().get(&Resource::CRON_JOBS, "default", "x");
            cron.unwrap()["status"]["lastScheduleTime"].clone()
        };
        sleep(Duration::from_mins(11)).await;
        let (first, before) = (names(&world, &Resource::JOBS), last(&world));
        assert_eq!(first.len(), 1, "{deadline}");
        sleep(Duration::from_mins(13)).await;
        assert_eq!(last(&world), before, "{deadline}: no run, no time of one");
        let ended = json!([{ "type": "Complete", "status": "True" }]);
        let ended = json!({ "status": { "conditions": ended } });
        let patched = world
            .api()
            .patch_merge_status(&Resource::JOBS, "default", &first[0], ended);
        patched.unwrap();
        sleep(Duration::from_mins(1)).await;
        assert_eq!(names(&world, &Resource::JOBS).len(), runs, "{deadline}");
        assert_eq!(last(&world) == before, runs == 1, "{deadline}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_scales_and_does_not_roll() {
    let world = world();
    let selector = json!({ "matchLabels": { "app": "x" } });
    let spec = json!({ "replicas": 2, "selector": selector, "template": template("1", "Always") });
    create(
        &world,
        &Resource::DEPLOYMENTS,
        ["apps/v1", "Deployment"],
        &spec,
    );
    sleep(Duration::from_secs(30)).await;
    let newer = || template("2", "Always");
    for spec in [
        json!({ "paused": true, "replicas": 5 }),
        json!({ "replicas": 3, "template": newer() }),
        json!({ "replicas": 0 }),
        json!({ "replicas": 4 }),
    ] {
        change(&world, &Resource::DEPLOYMENTS, &spec).await;
        let pods = names(&world, &Resource::PODS);
        assert_eq!(spec["replicas"], pods.len(), "{spec}");
        let sets = names(&world, &Resource::REPLICA_SETS);
        assert_eq!(sets.len(), 1, "{spec}");
    }
}
