//! Which object of a table.

use serde_json::Value;

/// Namespace (empty for cluster-wide kinds) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamespacedName {
    /// Empty for objects outside namespaces.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl NamespacedName {
    /// A key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key an object's metadata spells.
    pub fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        Self {
            namespace: text("namespace"),
            name: text("name"),
        }
    }
}
