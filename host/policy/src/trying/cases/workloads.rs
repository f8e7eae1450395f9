//! Pods by owner, for cases of ranking and consolidation policies.

use std::collections::BTreeMap;

use hooks::ranking::{Symbols, WorkloadTable};
use serde::Deserialize;

use super::NEVER;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct WorkloadRow {
    /// Name of the node, for consolidation.
    node: String,
    namespace: String,
    owner_kind: String,
    owner_name: String,
    priority_class: String,
    priority: i32,
    labels: BTreeMap<String, String>,
    pods: u32,
    do_not_disrupt: u32,
    cpu_milli: u32,
    memory_mib: u32,
    gpus: u32,
    replicas: u32,
    disruptions_allowed: u32,
    oldest_wait: u32,
}

impl Default for WorkloadRow {
    fn default() -> Self {
        Self {
            node: "node".to_owned(),
            namespace: "default".to_owned(),
            owner_kind: "Deployment".to_owned(),
            owner_name: "web".to_owned(),
            priority_class: String::new(),
            priority: 0,
            labels: BTreeMap::new(),
            pods: 1,
            do_not_disrupt: 0,
            cpu_milli: 100,
            memory_mib: 128,
            gpus: 0,
            replicas: 1,
            disruptions_allowed: NEVER,
            oldest_wait: 0,
        }
    }
}

impl WorkloadRow {
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// Adds the row; `of` is the position of the claim or node.
    pub(super) fn push(&self, of: u32, table: &mut WorkloadTable, symbols: &mut Symbols) {
        table.of.push(of);
        table.namespace.push(symbols.intern(&self.namespace));
        table.owner_kind.push(symbols.intern(&self.owner_kind));
        table.owner_name.push(symbols.intern(&self.owner_name));
        let class = symbols.intern(&self.priority_class);
        table.priority_class.push(class);
        table.priority.push(self.priority);
        table.labels.push(symbols.pairs(&self.labels));
        table.pods.push(self.pods);
        table.do_not_disrupt.push(self.do_not_disrupt);
        table.cpu_milli.push(self.cpu_milli);
        table.memory_mib.push(self.memory_mib);
        table.gpus.push(self.gpus);
        table.replicas.push(self.replicas);
        table.disruptions_allowed.push(self.disruptions_allowed);
        table.oldest_wait.push(self.oldest_wait);
    }
}
