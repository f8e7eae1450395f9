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
    /// Of an offering, and of the claim it would be launched for.
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
    }
    /// Of the claim that an offering would be launched for, and its pods.
    Claim ClaimVariable {
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
        matches!(self, Self::Claim(_))
    }

    fn need(self) -> Option<Need> {
        match self {
            Self::InterruptionRate => Some(Need::InterruptionRate),
            Self::Claim(variable) => variable.need(),
            Self::Price
            | Self::ListPrice
            | Self::Prior
            | Self::OnDemandPrice
            | Self::InstanceType
            | Self::Family
            | Self::Generation
            | Self::CpuManufacturer
            | Self::Zone
            | Self::Arch
            | Self::CapacityType
            | Self::CpuMilli
            | Self::MemoryMib
            | Self::Gpus
            | Self::MaxPods
            | Self::ReservationSlots
            | Self::IceCount
            | Self::IceAge
            | Self::InUse
            | Self::Launching
            | Self::Moment(_) => None,
        }
    }
}

impl ClaimVariable {
    fn need(self) -> Option<Need> {
        match self {
            Self::FreeAddresses => Some(Need::FreeAddresses),
            Self::Namespaces | Self::OwnerKinds | Self::PriorityClasses => Some(Need::Workloads),
            Self::Stage
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
            | Self::PodsOldestWait => None,
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
    fn of_claim(&self, variable: ClaimVariable) -> Value<'_> {
        let claim = self.claim;
        let pods = &claim.pods;
        match variable {
            ClaimVariable::Stage => Value::text(match claim.stage {
                RankStage::Packing => "packing",
                RankStage::Launch => "launch",
                RankStage::Appraisal => "appraisal",
            }),
            ClaimVariable::NodePool => Value::text(symbol(&self.table.symbols, claim.nodepool)),
            ClaimVariable::Weight => Value::count(claim.weight),
            ClaimVariable::NodePoolNodes => Value::count(self.usage.of_pool(claim.nodepool)),
            ClaimVariable::NodePoolZoneNodes => {
                Value::count(self.usage.in_zone(claim.nodepool, self.zone()))
            }
            ClaimVariable::NodePoolCapacityTypeNodes => {
                let code = self.capacity_type();
                Value::count(self.usage.of_capacity_type(claim.nodepool, code))
            }
            ClaimVariable::Requirements => self.requirements(),
            ClaimVariable::FreeAddresses => self.free_addresses(),
            ClaimVariable::Pods => Value::count(pods.count),
            ClaimVariable::PodsCpuMilli => Value::count(pods.cpu_milli),
            ClaimVariable::PodsMemoryMib => Value::count(pods.memory_mib),
            ClaimVariable::PodsGpus => Value::count(pods.gpus),
            ClaimVariable::PodsReplicated => Value::count(pods.replicated),
            ClaimVariable::PodsDoNotDisrupt => Value::count(pods.do_not_disrupt),
            ClaimVariable::PodsMaxPriority => Value::Int(i64::from(pods.max_priority)),
            ClaimVariable::PodsOldestWait => Value::count(pods.oldest_wait_seconds),
            ClaimVariable::Namespaces => self.owners.namespaces.clone(),
            ClaimVariable::OwnerKinds => self.owners.kinds.clone(),
            ClaimVariable::PriorityClasses => self.owners.priority_classes.clone(),
        }
    }

    fn steps_of_claim(&self, variable: ClaimVariable) -> usize {
        match variable {
            ClaimVariable::FreeAddresses => self.claim.free_addresses.len(),
            ClaimVariable::Requirements => 4 * self.claim.requirements.len(),
            ClaimVariable::Stage
            | ClaimVariable::NodePool
            | ClaimVariable::Weight
            | ClaimVariable::NodePoolNodes
            | ClaimVariable::NodePoolZoneNodes
            | ClaimVariable::NodePoolCapacityTypeNodes
            | ClaimVariable::Pods
            | ClaimVariable::PodsCpuMilli
            | ClaimVariable::PodsMemoryMib
            | ClaimVariable::PodsGpus
            | ClaimVariable::PodsReplicated
            | ClaimVariable::PodsDoNotDisrupt
            | ClaimVariable::PodsMaxPriority
            | ClaimVariable::PodsOldestWait
            | ClaimVariable::Namespaces
            | ClaimVariable::OwnerKinds
            | ClaimVariable::PriorityClasses => 0,
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
            RankVariable::Claim(variable) => self.of_claim(variable),
            RankVariable::Moment(variable) => variable.value(self.context),
        }
    }

    fn label(&self, set: LabelSet, key: &str) -> Option<&str> {
        label(&self.table.symbols, self.labels_of(set), key)
    }

    fn steps(&self, variable: RankVariable) -> u64 {
        let steps = match variable {
            RankVariable::Claim(variable) => self.steps_of_claim(variable),
            RankVariable::Moment(variable) => variable.steps(self.context),
            RankVariable::Price
            | RankVariable::ListPrice
            | RankVariable::Prior
            | RankVariable::OnDemandPrice
            | RankVariable::InstanceType
            | RankVariable::Family
            | RankVariable::Generation
            | RankVariable::CpuManufacturer
            | RankVariable::Zone
            | RankVariable::Arch
            | RankVariable::CapacityType
            | RankVariable::CpuMilli
            | RankVariable::MemoryMib
            | RankVariable::Gpus
            | RankVariable::MaxPods
            | RankVariable::ReservationSlots
            | RankVariable::IceCount
            | RankVariable::IceAge
            | RankVariable::InterruptionRate
            | RankVariable::InUse
            | RankVariable::Launching => 0,
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
