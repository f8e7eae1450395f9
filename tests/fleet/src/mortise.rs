//! The binary under test: what it plans, and what an offering costs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, bail};
use apis::labels;
use serde::Serialize;
use serde_json::{Value, json};

use crate::asked::Asked;
use crate::manifests::Fleet;

/// One solve of all pods, at the prices of the world.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    pub(crate) nodes: u64,
    pub(crate) price_per_hour: f64,
    /// What no plan undercuts.
    pub(crate) lower_bound_per_hour: f64,
}

/// What is sold: instance type, zone and capacity type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offering {
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) capacity_type: String,
}

pub(crate) fn plan(asked: &Asked, fleet: &Fleet) -> anyhow::Result<Plan> {
    let answer = simulate(asked, fleet)?;
    let errors = answer["errors"].as_u64().unwrap_or_default();
    if errors > 0 {
        bail!("{errors} pods have no place: {}", answer["podErrors"]);
    }
    Ok(Plan {
        nodes: answer["nodes"].as_u64().context("no nodes")?,
        price_per_hour: number(&answer, "pricePerHour"),
        lower_bound_per_hour: number(&answer, "lowerBoundPerHour"),
    })
}

fn simulate(asked: &Asked, fleet: &Fleet) -> anyhow::Result<Value> {
    let seed = fleet.seed.to_string();
    let words = ["simulate", "-o", "json", "--seed", &seed, "-f"].map(OsStr::new);
    json_of(asked, words.into_iter().chain([fleet.file.as_os_str()]))
}

/// What offerings cost: a pod that may go nowhere else is planned for each.
pub(crate) fn prices(
    asked: &Asked,
    fleet: &Fleet,
    offerings: impl IntoIterator<Item = Offering>,
) -> anyhow::Result<BTreeMap<Offering, f64>> {
    let manifests: Value = serde_json::from_slice(&fs::read(&fleet.file)?)?;
    let items = manifests["items"].as_array().into_iter().flatten();
    let mut items: Vec<Value> = items
        .filter(|it| it["kind"] != "Deployment")
        .cloned()
        .collect();
    let numbered = offerings.into_iter().enumerate();
    items.extend(numbered.map(|(number, offering)| pod(number, &offering)));
    let file = fleet.file.with_extension("prices.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    fs::write(&file, list.to_string())?;
    let seed = fleet.seed.to_string();
    let words = ["simulate", "-o", "json", "--seed", &seed, "-f"].map(OsStr::new);
    let answer = json_of(asked, words.into_iter().chain([file.as_os_str()]));
    fs::remove_file(&file)?;
    let answer = answer?;
    let claims = answer["claims"].as_array().into_iter().flatten();
    let text = |claim: &Value, key: &str| claim[key].as_str().unwrap_or_default().to_owned();
    let price = |claim: &Value| {
        let offering = Offering {
            instance_type: text(claim, "instanceType"),
            zone: text(claim, "zone"),
            capacity_type: text(claim, "capacityType"),
        };
        (offering, number(claim, "pricePerHour"))
    };
    Ok(claims.map(price).collect())
}

fn pod(number: usize, offering: &Offering) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("p{number}"), "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "10m"}}}],
            "nodeSelector": {
                labels::INSTANCE_TYPE: offering.instance_type,
                labels::TOPOLOGY_ZONE: offering.zone,
                labels::CAPACITY_TYPE: offering.capacity_type,
            },
        },
    })
}

/// What the binary prints, as JSON.
pub(crate) fn json_of<S: AsRef<OsStr>>(
    asked: &Asked,
    words: impl IntoIterator<Item = S>,
) -> anyhow::Result<Value> {
    let mut command = Command::new(&asked.mortise);
    let output = command.args(words).output()?;
    serde_json::from_slice(&output.stdout).with_context(|| {
        let told = String::from_utf8_lossy(&output.stderr);
        format!("{command:?} printed no JSON: {told}")
    })
}

pub(crate) fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or(f64::NAN)
}
