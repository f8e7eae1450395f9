//! What the cloud calls an instance.
//!
//! Which form it has is the provider's own matter: `aws:///zone/i-0123`, or another one in tests and simulations.

use std::borrow::Borrow;
use std::fmt;

/// The `providerID` of a Node or a NodeClaim; never empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderId(String);

impl ProviderId {
    /// Of the field of an object, which is absent or empty until there is an instance.
    pub fn parse(field: Option<&str>) -> Option<Self> {
        field
            .filter(|it| !it.is_empty())
            .map(|it| Self(it.to_owned()))
    }

    /// Of an instance of EC2, as AWS's cloud provider for Kubernetes writes it: `aws:///zone/instance`.
    pub fn of_instance(zone: &str, instance_id: &str) -> Self {
        Self(format!("aws:///{zone}/{instance_id}"))
    }

    /// As objects have it.
    pub fn as_str(&self) -> &str {
        &self.0
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
