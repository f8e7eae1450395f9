//! Provider ids: how Kubernetes names an instance.
//!
//! Answers to `utils/utils.go` of the AWS provider (`ParseInstanceID`).

use apis::ProviderId;
use cloudprovider::CloudProviderError;

/// What a provider id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstanceName<'a> {
    pub(crate) zone: &'a str,
    pub(crate) id: &'a str,
}

/// The instance in a provider id.
pub(crate) fn parse_provider_id(
    provider_id: &ProviderId,
) -> Result<InstanceName<'_>, CloudProviderError> {
    let parsed = provider_id
        .as_str()
        .split_once(":///")
        .and_then(|(_, path)| path.rsplit_once('/'));
    let parsed = parsed.map(|(zone, id)| InstanceName { zone, id });
    parsed.filter(|it| !it.id.is_empty()).ok_or_else(|| {
        let id = provider_id.as_str();
        CloudProviderError::Other(format!("{id:?} is no provider id of an instance"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_ids_name_zone_and_instance() {
        let parsed = InstanceName {
            zone: "us-east-1a",
            id: "i-1",
        };
        let id = ProviderId::of_instance("us-east-1a", "i-1");
        assert_eq!(id.as_str(), "aws:///us-east-1a/i-1");
        assert_eq!(parse_provider_id(&id), Ok(parsed));
        for wrong in ["i-1", "aws:///us-east-1a/", "kind://a/b"] {
            let id = ProviderId::parse(Some(wrong)).unwrap();
            assert!(parse_provider_id(&id).is_err(), "{wrong}");
        }
    }
}
