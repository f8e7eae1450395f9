//! EC2NodeClasses in the shadow: the one that stands in, and the wait until the account's controllers resolved all.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use api_server::{Resource, Selection};
use apis::labels::EC2_NODE_CLASS_HASH_ANNOTATION;
use authoring::manifests::{Manifests, variables};
use serde_json::Value;
use sim::SimulatedWorld;
use tokio::time::{Instant, sleep};

use super::arguments::CLUSTER_NAME;
use crate::demo::CAPACITY;

/// How long classes may take; the account is simulated and answers at once.
const READY_WITHIN: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The class that stands in: that of the file, or the demo's.
pub(super) fn given(file: Option<&Path>) -> anyhow::Result<Value> {
    let variables = variables(CLUSTER_NAME);
    let manifests = if let Some(file) = file {
        Manifests::read(&[file.to_path_buf()], &variables)
    } else {
        let mut manifests = Manifests::default();
        manifests.read_text("the demo's capacity", CAPACITY, &variables);
        manifests
    };
    if let Some(fault) = manifests.faults.first() {
        bail!("--nodeclass: {fault}");
    }
    let objects = manifests.documents.into_iter().map(|it| it.object);
    let mut classes = objects.filter(|it| it["kind"] == "EC2NodeClass");
    classes
        .next()
        .context("--nodeclass: the file has no EC2NodeClass")
}

/// The classes with what they select, and sentences of those that select nothing.
pub(super) async fn resolved(world: &SimulatedWorld) -> (Vec<Value>, Vec<String>) {
    let until = Instant::now() + READY_WITHIN;
    loop {
        let classes = world
            .api()
            .list(&Resource::EC2_NODE_CLASSES, &Selection::everything());
        let missing: Vec<String> = classes.iter().filter_map(|class| fault(class)).collect();
        if missing.is_empty() || Instant::now() >= until {
            let classes = classes.iter().map(|class| (**class).clone());
            return (classes.collect(), missing);
        }
        sleep(LOOK_EVERY).await;
    }
}

/// What a class still lacks.
fn fault(class: &Value) -> Option<String> {
    let conditions = class["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|it| it["type"] == "Ready");
    let is_ready = ready.is_some_and(|it| it["status"] == "True");
    let is_hashed = class["metadata"]["annotations"][EC2_NODE_CLASS_HASH_ANNOTATION].is_string();
    if is_ready && is_hashed {
        return None;
    }
    let name = class["metadata"]["name"].as_str().unwrap_or_default();
    let why = ready
        .and_then(|it| it["message"].as_str())
        .unwrap_or_default();
    Some(format!(
        "EC2NodeClass {name} is not ready in the simulated account: {why}"
    ))
}
