//! CustomResourceDefinitions of every kind, made from the Rust types.
//!
//! Answers to Karpenter's `pkg/apis/crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;

use crate::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};

/// Every definition, by name.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        CapacityBuffer::crd(),
        Ec2NodeClass::crd(),
        NodeClaim::crd(),
        NodeOverlay::crd(),
        NodePool::crd(),
    ]
}
