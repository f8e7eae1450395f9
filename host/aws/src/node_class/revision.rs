//! Names one revision of a class. Knows nothing of what the class resolves to.

use apis::Ec2NodeClass;

/// Names one revision of a class, for caches of what it was resolved to.
pub(crate) fn revision_key(node_class: &Ec2NodeClass) -> String {
    let uid = node_class
        .metadata
        .uid
        .as_deref()
        .or(node_class.metadata.name.as_deref());
    format!(
        "{}-{}",
        uid.unwrap_or_default(),
        node_class.metadata.generation.unwrap_or(0)
    )
}
