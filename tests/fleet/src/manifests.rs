//! A fleet as manifests: one NodePool that consolidates as fast as it may, its class, the namespaces, and the
//! Deployments.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::families::{self, Family};

/// A fleet in a file, which goes with it.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) family: String,
    /// Those with GPUs, of which the generator makes a few, are left out.
    pub(crate) pods: u64,
    pub(crate) deployments: usize,
    pub(crate) seed: u64,
    /// The manifests.
    pub(crate) file: PathBuf,
    /// Where the pods live.
    pub(crate) namespaces: BTreeSet<String>,
}

impl Fleet {
    pub(crate) fn write(family: &str, asked: usize, seed: u64) -> anyhow::Result<Self> {
        let kind = Family::parse(family).with_context(|| format!("no family {family}"))?;
        let needs_gpu = |it: &Value| it.to_string().contains("nvidia.com/gpu");
        let all = families::deployments(kind, seed, asked).into_iter();
        let deployments: Vec<Value> = all.filter(|it| !needs_gpu(it)).collect();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let namespaces = deployments
            .iter()
            .filter_map(|it| text(&it["metadata"]["namespace"]));
        let replicas = deployments
            .iter()
            .filter_map(|it| it["spec"]["replicas"].as_u64());
        let name = format!(
            "mortise-{family}-{asked}-{seed}-{}.json",
            std::process::id()
        );
        let fleet = Self {
            family: family.to_owned(),
            pods: replicas.sum(),
            deployments: deployments.len(),
            seed,
            file: std::env::temp_dir().join(name),
            namespaces: namespaces.collect(),
        };
        fs::write(&fleet.file, fleet.list(kind, deployments)?.to_string())?;
        Ok(fleet)
    }

    fn list(&self, kind: Family, deployments: Vec<Value>) -> anyhow::Result<Value> {
        let namespace = |name: &String| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let own = self.namespaces.iter().filter(|it| *it != "default");
        let mut items: Vec<Value> = own.map(namespace).collect();
        items.extend([node_class(), node_pool(kind)?]);
        items.extend(deployments);
        Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // One that stays behind in the temporary folder harms nobody.
        let _ = fs::remove_file(&self.file);
    }
}

fn node_pool(kind: Family) -> anyhow::Result<Value> {
    let pools = families::node_pools(kind);
    let mut pool = serde_json::to_value(pools.first().context("the family has no pool")?)?;
    pool["metadata"] = json!({"name": "default"});
    pool["spec"]["disruption"] = json!({
        "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "15s",
        "budgets": [{"nodes": "100%"}],
    });
    Ok(pool)
}

/// As the demo's own, by whose tags the simulated account is found.
fn node_class() -> Value {
    let discovery = json!([{"tags": {"karpenter.sh/discovery": "${CLUSTER_NAME}"}}]);
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "role": "KarpenterNodeRole-${CLUSTER_NAME}",
            "subnetSelectorTerms": discovery, "securityGroupSelectorTerms": discovery,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_holds_what_was_asked_and_goes_with_its_file() {
        for family in ["fleet", "diverse", "plain"] {
            let fleet = Fleet::write(family, 300, 1).unwrap();
            let list: Value = serde_json::from_slice(&fs::read(&fleet.file).unwrap()).unwrap();
            let items = list["items"].as_array().unwrap();
            let of = |kind: &str| items.iter().filter(|it| it["kind"] == kind).count();
            assert_eq!(of("Deployment"), fleet.deployments);
            assert_eq!((of("NodePool"), of("EC2NodeClass")), (1, 1));
            assert!(
                fleet.pods > 290 && fleet.pods <= 300,
                "{family}: {}",
                fleet.pods
            );
            let file = fleet.file.clone();
            drop(fleet);
            assert!(!file.exists());
        }
    }
}
