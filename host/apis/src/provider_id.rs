//! Provider ids, by which the cloud knows an instance.
//!
//! Which form it has is the provider's own matter: `aws:///zone/i-0123`, or another one in tests and simulations.

use std::borrow::Borrow;
use std::fmt;

/// The `providerID` of a Node or a NodeClaim; never empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderId(String);

/// Parts of a provider id that name its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceName<'a> {
    pub zone: &'a str,
    pub id: &'a str,
}

impl ProviderId {
    /// Of the field of an object, which is absent or empty until there is an instance.
    pub fn parse(field: Option<&str>) -> Option<Self> {
        field
            .filter(|it| !it.is_empty())
            .map(|it| Self(it.to_owned()))
    }

    /// Of a Node, once its cloud provider or kubelet wrote it.
    #[cfg(feature = "objects")]
    pub fn of_node(node: &k8s_openapi::api::core::v1::Node) -> Option<Self> {
        Self::parse(node.spec.as_ref()?.provider_id.as_deref())
    }

    /// Of an instance of EC2, as AWS's cloud provider for Kubernetes writes it: `aws:///zone/instance`.
    pub fn of_instance(zone: &str, instance_id: &str) -> Self {
        Self(format!("aws:///{zone}/{instance_id}"))
    }

    /// As objects have it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The instance that it names as a cloud provider for Kubernetes does: `PROVIDER:///ZONE/INSTANCE`. Answers to
    /// `utils/utils.go` of the AWS provider (`ParseInstanceID`).
    pub fn instance(&self) -> Option<InstanceName<'_>> {
        let (_, path) = self.0.split_once(":///")?;
        let (zone, id) = path.rsplit_once('/')?;
        (!id.is_empty()).then_some(InstanceName { zone, id })
    }

    /// The last part of it, such as `i-0123`.
    pub fn instance_id(&self) -> &str {
        self.0.rsplit_once('/').map_or(&*self.0, |(_, id)| id)
    }
}

/// Maps by it are asked with the text, in whose order it is.
impl Borrow<str> for ProviderId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_ids_name_zone_and_instance() {
        let id = ProviderId::of_instance("us-east-1a", "i-1");
        assert_eq!(id.as_str(), "aws:///us-east-1a/i-1");
        let name = InstanceName {
            zone: "us-east-1a",
            id: "i-1",
        };
        assert_eq!(id.instance(), Some(name));
        for wrong in ["i-1", "aws:///us-east-1a/", "kind://a/b"] {
            let id = ProviderId::parse(Some(wrong)).unwrap();
            assert_eq!(id.instance(), None, "{wrong}");
        }
    }

    #[test]
    fn an_absent_or_empty_field_is_none_and_the_last_part_names_the_instance() {
        assert_eq!(ProviderId::parse(None), None);
        assert_eq!(ProviderId::parse(Some("")), None);
        for (field, instance_id) in [("aws:///zone-a/i-1", "i-1"), ("i-1", "i-1")] {
            let parsed = ProviderId::parse(Some(field)).unwrap();
            assert_eq!(
                (parsed.as_str(), parsed.instance_id()),
                (field, instance_id)
            );
        }
    }
}
