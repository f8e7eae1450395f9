//! Drift hashes of NodePool and EC2NodeClass, bit for bit those of Karpenter, so that taking over a cluster
//! drifts no node.
//!
//! Every field of a hashed struct is named here, hashed or not: a new one must not slip in. Answers to Karpenter's
//! `pkg/apis/v1/nodepool.go` (Hash) and the AWS provider's `pkg/apis/v1/ec2nodeclass.go` (Hash), which go through
//! `mitchellh/hashstructure` format 2 with slices as sets and zero values left out.

use crate::NodePool;
use crate::ec2nodeclass::Ec2NodeClass;

mod ec2nodeclass;
mod nodepool;
mod structure;
#[cfg(test)]
mod tests;

/// Version of [`node_pool`]. Changes when a hashed field's default changes, or when a field joins or leaves the
/// hash.
pub const NODE_POOL_HASH_VERSION: &str = "v3";

/// Version of [`ec2_node_class`].
pub const EC2_NODE_CLASS_HASH_VERSION: &str = "v6";

/// Hash of a text alone, of which Karpenter makes names.
pub fn text(value: &str) -> u64 {
    structure::text(value)
}

/// Hash of what a pool's nodes are made from: the template without its requirements.
pub fn node_pool(node_pool: &NodePool) -> String {
    nodepool::template(&node_pool.spec.template).to_string()
}

/// Hash of what of a class cannot change on a running instance. `ca_bundle` goes into the user data.
pub fn ec2_node_class(node_class: &Ec2NodeClass, ca_bundle: Option<&str>) -> String {
    ec2nodeclass::node_class(node_class, ca_bundle.unwrap_or("")).to_string()
}
