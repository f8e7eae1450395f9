//! Amazon Linux 2023: a NodeConfig document for nodeadm.
//!
//! On the node the later document wins, so ours comes last. Answers to Karpenter's
//! `pkg/providers/amifamily/bootstrap/nodeadm.go`.

use serde_json::{Value, json};

use super::flags::node_labels;
use super::mime::{self, MimePart};
use super::{BootstrapError, BootstrapOptions};

const NODE_CONFIG: &str = "application/node.eks.aws";
const SHELL_SCRIPT: &str = "text/x-shellscript; charset=\"us-ascii\"";

pub(super) fn render(bootstrap: &BootstrapOptions<'_>) -> Result<String, BootstrapError> {
    let mut parts = match bootstrap.custom {
        None | Some("") => Vec::new(),
        Some(custom) if mime::is_archive(custom) => mime::parse(custom)?,
        Some(custom) => vec![MimePart::new(content_type(custom), custom)],
    };
    for part in &mut parts {
        part.headers
            .retain(|(name, _)| name.eq_ignore_ascii_case("Content-Type"));
    }
    let config = node_config(bootstrap)?;
    let yaml = serde_saphyr::to_string(&config)
        .map_err(|error| BootstrapError::Custom(error.to_string()))?;
    parts.push(MimePart::new(
        NODE_CONFIG,
        format!("# generated, do not edit\n{yaml}"),
    ));
    Ok(mime::render(&parts))
}

/// A bare document is a NodeConfig if it is a YAML mapping, a script otherwise.
fn content_type(custom: &str) -> &'static str {
    let is_mapping = serde_saphyr::from_str::<Value>(custom).is_ok_and(|value| value.is_object());
    if is_mapping {
        NODE_CONFIG
    } else {
        SHELL_SCRIPT
    }
}

fn node_config(bootstrap: &BootstrapOptions<'_>) -> Result<Value, BootstrapError> {
    let cidr = bootstrap
        .cluster_cidr
        .ok_or(BootstrapError::NoClusterCidr)?;
    let mut cluster = json!({
        "name": bootstrap.cluster_name,
        "apiServerEndpoint": bootstrap.cluster_endpoint,
        "cidr": cidr,
    });
    if let Some(bundle) = bootstrap.cluster_ca_bundle {
        cluster["certificateAuthority"] = json!(bundle);
    }
    let local_storage = if bootstrap.is_raid0 {
        json!({"strategy": "RAID0"})
    } else {
        json!({})
    };
    let mut flags = Vec::new();
    if !bootstrap.labels.is_empty() {
        flags.push(node_labels(&bootstrap.labels));
    }
    Ok(json!({
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "metadata": {},
        "spec": {
            "cluster": cluster,
            "containerd": {},
            "instance": {"localStorage": local_storage},
            "kubelet": {"config": kubelet_config(bootstrap), "flags": flags},
        },
    }))
}

fn kubelet_config(bootstrap: &BootstrapOptions<'_>) -> Value {
    let mut config: serde_json::Map<String, Value> = bootstrap
        .kubelet
        .raw
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    config.insert("maxPods".to_owned(), json!(bootstrap.max_pods));
    if !bootstrap.cluster_dns.is_empty() {
        config.insert("clusterDNS".to_owned(), json!(bootstrap.cluster_dns));
    }
    if !bootstrap.taints.is_empty() {
        config.insert("registerWithTaints".to_owned(), json!(bootstrap.taints));
    }
    Value::Object(config)
}
