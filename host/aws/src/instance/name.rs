//! Provider ids: how Kubernetes names an instance.
//!
//! Answers to `utils/utils.go` of the AWS provider (`ParseInstanceID`).

use apis::NodeClaim;
use cloudprovider::CloudProviderError;

/// The provider id of an instance.
pub(crate) fn provider_id(zone: &str, instance_id: &str) -> String {
    format!("aws:///{zone}/{instance_id}")
}

/// The provider id of a launched claim; empty for another.
pub(crate) fn provider_id_of(node_claim: &NodeClaim) -> &str {
    let status = node_claim.status.as_ref();
    let provider_id = status.and_then(|it| it.provider_id.as_deref());
    provider_id.unwrap_or_default()
}

/// What a provider id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstanceName<'a> {
    pub(crate) zone: &'a str,
    pub(crate) id: &'a str,
}

/// The instance in a provider id.
pub(crate) fn parse_provider_id(provider_id: &str) -> Result<InstanceName<'_>, CloudProviderError> {
    let parsed = provider_id
        .split_once(":///")
        .and_then(|(_, path)| path.rsplit_once('/'));
    let parsed = parsed.map(|(zone, id)| InstanceName { zone, id });
    parsed.filter(|it| !it.id.is_empty()).ok_or_else(|| {
        CloudProviderError::Other(format!("{provider_id:?} is no provider id of an instance"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_ids_name_zone_and_instance() {
        assert_eq!(provider_id("us-east-1a", "i-1"), "aws:///us-east-1a/i-1");
        let parsed = InstanceName {
            zone: "us-east-1a",
            id: "i-1",
        };
        assert_eq!(parse_provider_id("aws:///us-east-1a/i-1"), Ok(parsed));
        for wrong in ["", "i-1", "aws:///us-east-1a/", "kind://a/b"] {
            assert!(parse_provider_id(wrong).is_err(), "{wrong}");
        }
    }
}
