//! The static hash of a class, by which nodes notice that their class has changed.
//!
//! Writes nothing and compares nothing. Answers to the hash controller of Karpenter's `pkg/controllers/nodeclass/hash`.

use std::collections::BTreeMap;

use apis::hash::{EC2_NODE_CLASS_HASH_VERSION, ec2_node_class};
use apis::{Ec2NodeClass, labels};

use crate::options::AwsOptions;

/// The annotations that carry the hash and its version.
pub(crate) fn hash_annotations(
    node_class: &Ec2NodeClass,
    options: &AwsOptions,
) -> BTreeMap<String, String> {
    let hash = ec2_node_class(node_class, options.cluster_ca_bundle.as_deref());
    let version = EC2_NODE_CLASS_HASH_VERSION.to_owned();
    BTreeMap::from([
        (labels::EC2_NODE_CLASS_HASH_ANNOTATION.to_owned(), hash),
        (
            labels::EC2_NODE_CLASS_HASH_VERSION_ANNOTATION.to_owned(),
            version,
        ),
    ])
}

/// Whether the annotation is one of them.
pub(crate) fn is_hash_annotation(key: &str) -> bool {
    [
        labels::EC2_NODE_CLASS_HASH_ANNOTATION,
        labels::EC2_NODE_CLASS_HASH_VERSION_ANNOTATION,
    ]
    .contains(&key)
}
