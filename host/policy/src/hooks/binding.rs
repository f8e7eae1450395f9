//! The port by which those who watch ConfigMaps bind policies.
//!
//! Only hands on to [`PolicyHost`].

use apis::ObjectKey;
use hooks::binding::{
    BindingListener, BindingSource, BindingStatus, NodePoolLabels, PolicyRegistry,
};

use crate::binding;
use crate::host::PolicyHost;

impl PolicyRegistry for PolicyHost {
    fn apply(&self, source: &BindingSource) -> BindingStatus {
        Self::apply(self, source)
    }

    fn remove(&self, key: &ObjectKey) {
        self.remove_binding(key);
    }

    fn references(&self, source: &BindingSource) -> Vec<String> {
        binding::references(source)
    }

    fn set_node_pools(&self, pools: NodePoolLabels) {
        Self::set_node_pools(self, pools);
    }

    fn status(&self, key: &ObjectKey) -> Option<BindingStatus> {
        Self::status(self, key)
    }

    fn take_failures(&self, key: &ObjectKey) -> Vec<String> {
        let events = self.drain_events_of(key).into_iter();
        events
            .map(|event| format!("{}: {}", event.reason, event.message))
            .collect()
    }

    fn listen(&self, listener: BindingListener) {
        self.set_listener(listener);
    }
}
