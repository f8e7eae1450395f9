//! What a rank rule may name: an offering, and the claim it would be launched for.

use hooks::disruption::Context;
use hooks::ranking::{ClaimOperator, ClaimView, OfferingTable, RankStage};

use super::super::evaluate::{RowFacts, Variable};
use super::super::value::Value;
use super::usage::NodesInUse;
use super::{
    LabelSet, OwnersView, UsageIndex, at, capacity_type, distinct, label, symbol, vocabulary,
};
use crate::needs::Need;

/// Words that are looked up by a key.
pub(crate) static RANK_LABELS: &[(&str, LabelSet)] = &[
    ("labels", LabelSet::Own),
    ("nodepool_labels", LabelSet::NodePool),
];

vocabulary! {
    /// Of an offering and the claim it would be launched for.
    RankVariable RANK_VARIABLES {
        Price "price" Double "USD an hour, as the policies before this one in the chain have it",
        ListPrice "list_price" Double "USD an hour as AWS lists it, after NodeOverlays",
        Prior "prior" Double "another word for price",
        OnDemandPrice "on_demand_price" Double "USD an hour on demand; 0 when unknown",
        InstanceType "instance_type" Text "m7g.large",
        Family "family" Text "m7g",
        Generation "generation" Int "7; 0 when unknown",
        CpuManufacturer "cpu_manufacturer" Text "aws, amd or intel; empty when unknown",
        Zone "zone" Text "us-east-1a",
        Arch "arch" Text "amd64 or arm64",
        CapacityType "capacity_type" Text "on-demand, spot or reserved",
        CpuMilli "cpu_milli" Int "CPU of the type, thousandths",
        MemoryMib "memory_mib" Int "memory of the type",
        Gpus "gpus" Int "accelerators of the type",
        MaxPods "max_pods" Int "pods that its kubelet takes",
        ReservationSlots "reservation_slots" Int "free slots of a capacity reservation",
        IceCount "ice_count" Int "recent insufficient-capacity answers",
        IceAge "ice_age" Int "seconds since the latest one; 4294967295 when there was none",
        InterruptionRate "interruption_rate" Double "expected interruptions in 30 days; negative when unknown",
        InUse "in_use" Int "nodes of the cluster on this offering, those on their way included",
        Launching "launching" Int "those of them that are on their way",
        FreeAddresses "free_addresses" Int "free addresses of the class's subnets in the zone; absent when unknown",
        Stage "stage" Text "packing, launch or appraisal: what it is asked for",
        NodePool "nodepool" Text "name of the claim's NodePool",
        Weight "weight" Int "weight of the NodePool",
        NodePoolNodes "nodepool_nodes" Int "nodes of the NodePool",
        NodePoolZoneNodes "nodepool_zone_nodes" Int "those of them in this zone",
        NodePoolCapacityTypeNodes "nodepool_capacity_type_nodes" Int "those of them of this capacity type",
        Requirements "requirements" Texts "keys of the claim's requirements",
        Pods "pods" Int "pods of the claim; before packing, all that wait",
        PodsCpuMilli "pods_cpu_milli" Int "their CPU requests",
        PodsMemoryMib "pods_memory_mib" Int "their memory requests",
        PodsGpus "pods_gpus" Int "their accelerators",
        PodsReplicated "pods_replicated" Int "those whose controller keeps two replicas or more",
        PodsDoNotDisrupt "pods_do_not_disrupt" Int "those that may not be disrupted",
        PodsMaxPriority "pods_max_priority" Int "highest priority among them",
        PodsOldestWait "pods_oldest_wait" Int "seconds that the longest waiting of them has been without a node",
        Namespaces "namespaces" Texts "their namespaces",
        OwnerKinds "owner_kinds" Texts "kinds of their owners, such as Deployment, StatefulSet and Job",
        PriorityClasses "priority_classes" Texts "their priority classes",
    }
}

impl Variable for RankVariable {
    fn is_of_claim(self) -> bool {
        matches!(
            self,
            Self::FreeAddresses
                | Self::Stage
                | Self::NodePool
                | Self::Weight
                | Self::NodePoolNodes
                | Self::NodePoolZoneNodes
                | Self::NodePoolCapacityTypeNodes
                | Self::Requirements
                | Self::Pods
                | Self::PodsCpuMilli
                | Self::PodsMemoryMib
                | Self::PodsGpus
                | Self::PodsReplicated
                | Self::PodsDoNotDisrupt
                | Self::PodsMaxPriority
                | Self::PodsOldestWait
                | Self::Namespaces
                | Self::OwnerKinds
                | Self::PriorityClasses
        )
    }

    fn need(self) -> Option<Need> {
        match self {
            Self::InterruptionRate => Some(Need::InterruptionRate),
            Self::FreeAddresses => Some(Need::FreeAddresses),
            Self::Namespaces | Self::OwnerKinds | Self::PriorityClasses => Some(Need::Workloads),
            _ => None,
        }
    }
}

/// One offering for one claim.
pub(crate) struct OfferingFacts<'a> {
    pub(crate) table: &'a OfferingTable,
    pub(crate) usage: &'a UsageIndex,
    pub(crate) owners: &'a OwnersView<'a>,
    pub(crate) prior: &'a [f64],
    pub(crate) claim: &'a ClaimView,
    pub(crate) context: &'a Context,
    pub(crate) row: usize,
}

impl OfferingFacts<'_> {
    fn zone(&self) -> u32 {
        at(&self.table.zone, self.row)
    }

    fn capacity_type(&self) -> u8 {
        at(&self.table.capacity_type, self.row)
    }

    /// Nodes on the offering.
    fn in_use(&self) -> NodesInUse {
        let instance_type = at(&self.table.instance_type, self.row);
        self.usage
            .on(instance_type, self.zone(), self.capacity_type())
    }

    fn free_addresses(&self) -> Value<'_> {
        let mut zones = self.claim.free_addresses.iter();
        let free = zones.find(|(zone, _)| *zone == self.zone());
        free.map_or(Value::Absent, |(_, free)| Value::count(*free))
    }

    fn requirements(&self) -> Value<'_> {
        let needed = self.claim.requirements.iter();
        let needed = needed.filter(|it| it.operator != ClaimOperator::DoesNotExist);
        distinct(needed.map(|it| symbol(&self.table.symbols, it.key)))
    }

    /// Of the claim and its pods.
    fn of_claim(&self, variable: RankVariable) -> Value<'_> {
        let claim = self.claim;
        let pods = &claim.pods;
        match variable {
            RankVariable::Stage => Value::text(match claim.stage {
                RankStage::Packing => "packing",
                RankStage::Launch => "launch",
                RankStage::Appraisal => "appraisal",
            }),
            RankVariable::NodePool => Value::text(symbol(&self.table.symbols, claim.nodepool)),
            RankVariable::Weight => Value::count(claim.weight),
            RankVariable::NodePoolNodes => Value::count(self.usage.of_pool(claim.nodepool)),
            RankVariable::NodePoolZoneNodes => {
                Value::count(self.usage.in_zone(claim.nodepool, self.zone()))
            }
            RankVariable::NodePoolCapacityTypeNodes => {
                let code = self.capacity_type();
                Value::count(self.usage.of_capacity_type(claim.nodepool, code))
            }
            RankVariable::Requirements => self.requirements(),
            RankVariable::FreeAddresses => self.free_addresses(),
            RankVariable::Pods => Value::count(pods.count),
            RankVariable::PodsCpuMilli => Value::count(pods.cpu_milli),
            RankVariable::PodsMemoryMib => Value::count(pods.memory_mib),
            RankVariable::PodsGpus => Value::count(pods.gpus),
            RankVariable::PodsReplicated => Value::count(pods.replicated),
            RankVariable::PodsDoNotDisrupt => Value::count(pods.do_not_disrupt),
            RankVariable::PodsMaxPriority => Value::Int(i64::from(pods.max_priority)),
            RankVariable::PodsOldestWait => Value::count(pods.oldest_wait_seconds),
            RankVariable::Namespaces => self.owners.namespaces.clone(),
            RankVariable::OwnerKinds => self.owners.kinds.clone(),
            RankVariable::PriorityClasses => self.owners.priority_classes.clone(),
            _ => Value::Absent,
        }
    }
}

impl RowFacts for OfferingFacts<'_> {
    type Variable = RankVariable;

    fn value(&self, variable: RankVariable) -> Value<'_> {
        let Self { table, row, .. } = self;
        let text = |column: &[u32]| Value::text(symbol(&table.symbols, at(column, *row)));
        let count = |column: &[u32]| Value::count(at(column, *row));
        let float = |column: &[f64]| Value::Double(at(column, *row));
        match variable {
            RankVariable::Price | RankVariable::Prior => float(self.prior),
            RankVariable::ListPrice => float(&table.price),
            RankVariable::OnDemandPrice => float(&table.on_demand_price),
            RankVariable::InstanceType => text(&table.instance_type),
            RankVariable::Family => text(&table.family),
            RankVariable::Generation => count(&table.generation),
            RankVariable::CpuManufacturer => text(&table.cpu_manufacturer),
            RankVariable::Zone => text(&table.zone),
            RankVariable::Arch => text(&table.arch),
            RankVariable::CapacityType => capacity_type(self.capacity_type()),
            RankVariable::CpuMilli => count(&table.cpu_milli),
            RankVariable::MemoryMib => count(&table.memory_mib),
            RankVariable::Gpus => count(&table.gpus),
            RankVariable::MaxPods => count(&table.max_pods),
            RankVariable::ReservationSlots => count(&table.reservation_slots),
            RankVariable::IceCount => count(&table.ice_count),
            RankVariable::IceAge => count(&table.ice_age),
            RankVariable::InterruptionRate => float(&table.interruption_rate),
            RankVariable::InUse => Value::count(self.in_use().all),
            RankVariable::Launching => Value::count(self.in_use().launching),
            RankVariable::Moment(variable) => variable.value(self.context),
            of_claim => self.of_claim(of_claim),
        }
    }

    fn label(&self, set: LabelSet, key: &str) -> Option<&str> {
        label(&self.table.symbols, self.labels_of(set), key)
    }

    fn steps(&self, variable: RankVariable) -> u64 {
        let steps = match variable {
            RankVariable::FreeAddresses => self.claim.free_addresses.len(),
            RankVariable::Requirements => 4 * self.claim.requirements.len(),
            RankVariable::Moment(variable) => variable.steps(self.context),
            _ => 0,
        };
        u64::try_from(steps).unwrap_or(u64::MAX)
    }

    fn labels(&self, set: LabelSet) -> usize {
        self.labels_of(set).len()
    }
}

impl OfferingFacts<'_> {
    fn labels_of(&self, set: LabelSet) -> &[(u32, u32)] {
        match set {
            LabelSet::Own => &self.claim.labels,
            LabelSet::NodePool => &self.claim.nodepool_labels,
            LabelSet::Node => &[],
        }
    }
}
