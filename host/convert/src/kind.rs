//! Which kind and generation an object is of.
//!
//! A table; what becomes of each stands in the module named after it.

use serde_json::Value;

use crate::documents::AWS;

/// Of objects of one name, that of the highest generation is taken.
pub(crate) const PRESENT: u8 = 3;
pub(crate) const BETA: u8 = 2;
pub(crate) const ALPHA: u8 = 1;
pub(crate) const GROUP: u8 = 0;

/// How old a Provisioner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Age {
    V1Alpha3,
    V1Alpha4,
    V1Alpha5,
}

/// Meaning of an object to the conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceKind {
    Provisioner(Age),
    AwsNodeTemplate,
    Machine,
    NodePoolBeta,
    NodeClaimBeta,
    Ec2NodeClassBeta,
    NodePool,
    NodeClaim,
    NodeOverlay,
    Ec2NodeClass,
    GlobalSettings,
    AutoScalingGroup,
    Nodegroup,
    /// Of Karpenter's groups, and nothing known.
    Unknown,
    /// Of a group that has nothing to do with Karpenter.
    Other,
}

impl SourceKind {
    pub(crate) fn of(object: &Value) -> Self {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        match (version, kind) {
            ("karpenter.sh/v1alpha3", "Provisioner") => Self::Provisioner(Age::V1Alpha3),
            ("karpenter.sh/v1alpha4", "Provisioner") => Self::Provisioner(Age::V1Alpha4),
            ("karpenter.sh/v1alpha5", "Provisioner") => Self::Provisioner(Age::V1Alpha5),
            ("karpenter.sh/v1alpha5", "Machine") => Self::Machine,
            ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate") => Self::AwsNodeTemplate,
            ("karpenter.sh/v1beta1", "NodePool") => Self::NodePoolBeta,
            ("karpenter.sh/v1beta1", "NodeClaim") => Self::NodeClaimBeta,
            ("karpenter.k8s.aws/v1beta1", "EC2NodeClass") => Self::Ec2NodeClassBeta,
            ("karpenter.sh/v1", "NodePool") => Self::NodePool,
            ("karpenter.sh/v1", "NodeClaim") => Self::NodeClaim,
            ("karpenter.sh/v1alpha1", "NodeOverlay") => Self::NodeOverlay,
            ("karpenter.k8s.aws/v1", "EC2NodeClass") => Self::Ec2NodeClass,
            ("v1", "ConfigMap") if object["metadata"]["name"] == "karpenter-global-settings" => {
                Self::GlobalSettings
            }
            (AWS, "AutoScalingGroup") => Self::AutoScalingGroup,
            (AWS, "Nodegroup") => Self::Nodegroup,
            (version, kind) if is_karpenters(version) || kind == "Provisioner" => Self::Unknown,
            _ => Self::Other,
        }
    }
}

fn is_karpenters(version: &str) -> bool {
    let group = version.split_once('/').map_or("", |(group, _)| group);
    [
        "karpenter.sh",
        "karpenter.k8s.aws",
        "extensions.karpenter.sh",
    ]
    .contains(&group)
}

/// Kind, namespace and name, as `Pod/shop/web`.
pub(crate) fn label(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"]
        .as_str()
        .unwrap_or("(without a name)");
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind}/{namespace}/{name}"),
        None => format!("{kind}/{name}"),
    }
}
