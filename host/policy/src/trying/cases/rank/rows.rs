//! Rows of cases for ranking policies, as people write them, and what they have where nothing is written.

use std::collections::BTreeMap;

use apis::CapacityType;
use hooks::ranking::{ClaimOperator, RankStage};
use serde::Deserialize;

use super::super::NEVER;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct OfferingRow {
    /// By which `expect` names it; its type when left out.
    pub(super) id: Option<String>,
    pub(super) instance_type: String,
    pub(super) generation: u32,
    pub(super) cpu_manufacturer: String,
    pub(super) zone: String,
    pub(super) arch: String,
    pub(super) capacity_type: CapacityType,
    pub(super) price: f64,
    pub(super) on_demand_price: Option<f64>,
    pub(super) cpu_milli: u32,
    pub(super) memory_mib: u32,
    pub(super) gpus: u32,
    pub(super) max_pods: u32,
    pub(super) reservation_slots: u32,
    pub(super) ice_count: u32,
    pub(super) ice_age: u32,
    pub(super) interruption_rate: f64,
    pub(super) prior: Option<f64>,
    pub(super) extra: BTreeMap<String, ExtraValue>,
}

impl Default for OfferingRow {
    fn default() -> Self {
        Self {
            id: None,
            instance_type: "m7i.large".to_owned(),
            generation: 7,
            cpu_manufacturer: "intel".to_owned(),
            zone: "us-east-1a".to_owned(),
            arch: "amd64".to_owned(),
            capacity_type: CapacityType::OnDemand,
            price: 0.1,
            on_demand_price: None,
            cpu_milli: 2000,
            memory_mib: 8192,
            gpus: 0,
            max_pods: 29,
            reservation_slots: 0,
            ice_count: 0,
            ice_age: NEVER,
            interruption_rate: -1.0,
            prior: None,
            extra: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum ExtraValue {
    Number(f64),
    Word(String),
}

/// Nodes of one NodePool, type, zone and capacity type.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct UsageRow {
    pub(super) nodepool: String,
    pub(super) instance_type: String,
    pub(super) zone: String,
    pub(super) capacity_type: CapacityType,
    pub(super) nodes: u32,
    pub(super) launching: u32,
    pub(super) price: f64,
}

impl Default for UsageRow {
    fn default() -> Self {
        Self {
            nodepool: "default".to_owned(),
            instance_type: "m7i.large".to_owned(),
            zone: "us-east-1a".to_owned(),
            capacity_type: CapacityType::OnDemand,
            nodes: 1,
            launching: 0,
            price: 0.1,
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ClaimRow {
    pub(super) nodepool: Option<String>,
    pub(super) weight: u32,
    pub(super) stage: RankStage,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) nodepool_labels: BTreeMap<String, String>,
    /// Free addresses by zone.
    pub(super) free_addresses: BTreeMap<String, u32>,
    pub(super) requirements: Vec<RequirementRow>,
    pub(super) pods: PodsRow,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RequirementRow {
    pub(super) key: String,
    pub(super) operator: ClaimOperator,
    #[serde(default)]
    pub(super) values: Vec<String>,
    #[serde(default)]
    pub(super) min_values: u32,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PodsRow {
    pub(super) count: u32,
    pub(super) cpu_milli: u32,
    pub(super) memory_mib: u32,
    pub(super) gpus: u32,
    pub(super) max_priority: i32,
    pub(super) do_not_disrupt: u32,
    pub(super) replicated: u32,
    pub(super) oldest_wait: u32,
}

impl OfferingRow {
    pub(super) fn id(&self) -> String {
        self.id
            .clone()
            .unwrap_or_else(|| self.instance_type.clone())
    }

    pub(super) fn on_demand_price(&self) -> f64 {
        let known = self.capacity_type == CapacityType::OnDemand;
        self.on_demand_price
            .unwrap_or(if known { self.price } else { 0.0 })
    }
}
