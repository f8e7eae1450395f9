//! A registry that refuses every policy, for worlds without any.

use apis::ObjectKey;
use hooks::binding::{
    BindingListener, BindingSource, BindingStatus, NodePoolLabels, PolicyRegistry,
};

pub(crate) struct NoPolicies;

impl PolicyRegistry for NoPolicies {
    fn apply(&self, source: &BindingSource) -> BindingStatus {
        let message = "this process runs without policies".to_owned();
        BindingStatus::refused(source.key(), "NotSupported", message)
    }

    fn remove(&self, _key: &ObjectKey) {}

    fn references(&self, _source: &BindingSource) -> Vec<String> {
        Vec::new()
    }

    fn set_node_pools(&self, _pools: NodePoolLabels) {}

    fn status(&self, _key: &ObjectKey) -> Option<BindingStatus> {
        None
    }

    fn take_failures(&self, _key: &ObjectKey) -> Vec<String> {
        Vec::new()
    }

    fn listen(&self, _listener: BindingListener) {}
}
