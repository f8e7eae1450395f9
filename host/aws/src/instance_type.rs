//! Instance types as a class sees them: what EC2 tells, shaped by kubelet, volumes, zones and reservations.
//!
//! Built once per shape of class and shared; when only availability has changed, only the types concerned are
//! built again. Answers to Karpenter's `pkg/providers/instancetype/instancetype.go`.

pub(crate) mod base;
mod cached;
mod capacity;
mod compatibility;
mod facts;
mod reported;
mod requirements;
pub(crate) mod shape;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use apis::Ec2NodeClass;
use aws_sdk_ec2::operation::describe_instance_type_offerings::DescribeInstanceTypeOfferingsInput;
use aws_sdk_ec2::operation::describe_instance_types::DescribeInstanceTypesInput;
use aws_sdk_ec2::types::LocationType;
use cloudprovider::{CloudProviderError, RegisteredNode};
use jiff::{SignedDuration, Timestamp};
use locks::lock;
use scheduling::instance_type::InstanceType;

use crate::kubelet::expressions::{KubeletExpressions, SettledKubelet};
use crate::offering::OfferingSources;
use crate::options::AwsOptions;
use crate::pages::each_item;
use crate::placement_group::PlacementGroup;
use crate::seam::Ec2Api;
use crate::tags::filter;

use cached::{CachedTypes, Revision, build};
pub(crate) use compatibility::incompatibility;
use facts::{InstanceTypeFacts, SharedLists};
use reported::MemoryReports;
use shape::ClassShape;

const TYPES_PAGE: i32 = 100;
const OFFERINGS_PAGE: i32 = 1000;
/// How long the types of a shape that nobody asks for are kept.
const SHAPE_TTL: SignedDuration = SignedDuration::from_mins(5);
/// Versions of classes whose shape is remembered; more are worked out anew.
const SEEN_MAX: usize = 256;

/// Instance types of a region, as EC2 describes them.
#[derive(Debug, Default)]
pub(crate) struct RegionTypes {
    /// Instance types by name.
    pub(crate) types: BTreeMap<String, InstanceTypeFacts>,
    /// Zones that offer a type, by its name. Most are offered in the same ones, and share the list.
    pub(crate) zones: BTreeMap<String, Arc<[String]>>,
    /// Changes whenever the content has changed.
    revision: u64,
}

/// How much EC2 tells of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CatalogueSize {
    types: usize,
    /// Of which EC2 tells that some zone offers them.
    offered_types: usize,
}

impl CatalogueSize {
    /// Whether a tenth of either is missing.
    fn is_less_than(self, before: Self) -> bool {
        let is_less = |now: usize, before: usize| now * 10 < before * 9;
        is_less(self.types, before.types) || is_less(self.offered_types, before.offered_types)
    }
}

/// A version of a class, and the key of its shape: most questions are about a class that has not changed.
#[derive(Debug, PartialEq)]
struct SeenClass {
    uid: String,
    resource_version: String,
    placement_group: Option<PlacementGroup>,
    key: u64,
}

/// Discovers instance types and keeps them built.
pub(crate) struct InstanceTypeProvider {
    ec2: Arc<dyn Ec2Api>,
    catalogue: Mutex<Option<Arc<RegionTypes>>>,
    /// What was too little to be believed at once.
    doubted: Mutex<Option<CatalogueSize>>,
    loading: tokio::sync::Mutex<()>,
    entries: Mutex<BTreeMap<u64, CachedTypes>>,
    reports: MemoryReports,
    /// By the class's name.
    seen: Mutex<BTreeMap<String, SeenClass>>,
}

impl InstanceTypeProvider {
    /// Knows nothing until first asked.
    pub(crate) fn new(ec2: Arc<dyn Ec2Api>) -> Self {
        Self {
            ec2,
            catalogue: Mutex::default(),
            doubted: Mutex::default(),
            loading: tokio::sync::Mutex::default(),
            entries: Mutex::default(),
            reports: MemoryReports::default(),
            seen: Mutex::default(),
        }
    }

    /// Asks EC2 for types and zones; lists are built again only if something has changed.
    pub(crate) async fn refresh(&self) -> Result<(), CloudProviderError> {
        let (types, zones) = futures::join!(self.describe_types(), self.describe_zones());
        let (types, zones) = (types?, zones?);
        if types.is_empty() || zones.is_empty() {
            return Err(CloudProviderError::Other(
                "EC2 offers no instance types here".to_owned(),
            ));
        }
        let mut current = lock(&self.catalogue);
        if let Some(old) = current.as_ref() {
            let size = CatalogueSize {
                types: types.len(),
                offered_types: zones.len(),
            };
            self.check_whole(old, size)?;
        }
        let revision = match current.as_ref() {
            Some(old) if old.types == types && old.zones == zones => return Ok(()),
            Some(old) => old.revision + 1,
            None => 1,
        };
        *current = Some(Arc::new(RegionTypes {
            types,
            zones,
            revision,
        }));
        Ok(())
    }

    /// A catalogue that shrinks by a tenth is believed when it is told so twice in a row.
    fn check_whole(
        &self,
        old: &RegionTypes,
        size: CatalogueSize,
    ) -> Result<(), CloudProviderError> {
        let before = CatalogueSize {
            types: old.types.len(),
            offered_types: old.zones.len(),
        };
        let has_shrunk = size.is_less_than(before);
        let last = std::mem::replace(&mut *lock(&self.doubted), has_shrunk.then_some(size));
        if !has_shrunk || last == Some(size) {
            return Ok(());
        }
        Err(CloudProviderError::Other(format!(
            "EC2 told {} of {} instance types and zones of {} of {}: part of it is missing",
            size.types, before.types, size.offered_types, before.offered_types
        )))
    }

    /// Catalogue of all types, asked for when first needed.
    pub(crate) async fn catalogue(&self) -> Result<Arc<RegionTypes>, CloudProviderError> {
        let known = || lock(&self.catalogue).clone();
        if let Some(catalogue) = known() {
            return Ok(catalogue);
        }
        let _one_at_a_time = self.loading.lock().await;
        if known().is_none() {
            self.refresh().await?;
        }
        known().ok_or_else(|| CloudProviderError::Other("no instance types are known".to_owned()))
    }

    /// What the expressions in the kubelet's settings of a class come to, by type; nothing where it has none.
    pub(crate) async fn settled_kubelets(
        &self,
        node_class: &Ec2NodeClass,
        options: &AwsOptions,
        is_asked_for: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, Result<SettledKubelet, String>>, CloudProviderError> {
        let shape = ClassShape::of(node_class, None, options);
        if shape.kubelet.expressions.is_empty() {
            return Ok(BTreeMap::new());
        }
        let expressions = KubeletExpressions::read(&shape.kubelet.expressions);
        let expressions = expressions.map_err(CloudProviderError::NodeClassNotReady)?;
        let catalogue = self.catalogue().await?;
        let types = catalogue
            .types
            .iter()
            .filter(|(name, _)| is_asked_for(name));
        let settled = types.map(|(name, info)| {
            let settled = capacity::settle(name, info, &shape, &expressions);
            (name.clone(), settled)
        });
        Ok(settled.collect())
    }

    /// Takes down the memory that a node of a type reported, unless no node of that type can have it.
    pub(crate) async fn note_memory(
        &self,
        node: &RegisteredNode<'_>,
        node_class: &Ec2NodeClass,
        now: Timestamp,
    ) -> Result<(), CloudProviderError> {
        let catalogue = self.catalogue().await?;
        let (name, bytes) = (node.instance_type, node.memory_bytes);
        let info = catalogue.types.get(name);
        let advertised = info.and_then(|info| info.memory_mib);
        let advertised = advertised.unwrap_or(0).saturating_mul(1 << 20);
        // A report is believed for weeks, so one that cannot be true must not get in.
        if bytes > advertised || bytes <= advertised / 2 {
            tracing::debug!(
                instance_type = name,
                bytes,
                advertised,
                "a node reports memory that its type has not"
            );
            return Ok(());
        }
        if self.reports.note(node_class, name, bytes, now) {
            tracing::debug!(
                instance_type = name,
                bytes,
                "nodes have told how much memory the type has"
            );
        }
        Ok(())
    }

    async fn describe_types(
        &self,
    ) -> Result<BTreeMap<String, InstanceTypeFacts>, CloudProviderError> {
        let input = || {
            DescribeInstanceTypesInput::builder()
                .filters(filter("supported-virtualization-type", ["hvm"]))
                .filters(filter(
                    "processor-info.supported-architecture",
                    ["x86_64", "arm64"],
                ))
                .max_results(TYPES_PAGE)
        };
        let mut types = BTreeMap::new();
        let mut strategies = SharedLists::new();
        each_item!(
            self.ec2,
            describe_instance_types,
            "describing instance types",
            instance_types,
            input(),
            |info| {
                if let Some(name) = &info.instance_type {
                    let facts = InstanceTypeFacts::of(&info, &mut strategies);
                    types.insert(name.as_str().to_owned(), facts);
                }
            }
        )?;
        Ok(types)
    }

    async fn describe_zones(&self) -> Result<BTreeMap<String, Arc<[String]>>, CloudProviderError> {
        let input = || {
            DescribeInstanceTypeOfferingsInput::builder()
                .location_type(LocationType::AvailabilityZone)
                .max_results(OFFERINGS_PAGE)
        };
        let mut zones: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        each_item!(
            self.ec2,
            describe_instance_type_offerings,
            "describing instance type offerings",
            instance_type_offerings,
            input(),
            |offering| {
                if let (Some(name), Some(zone)) = (offering.instance_type, offering.location) {
                    let sold_in = zones.entry(name.as_str().to_owned()).or_default();
                    sold_in.insert(zone);
                }
            }
        )?;
        let mut lists = SharedLists::new();
        let shared = zones
            .into_iter()
            .map(|(name, zones)| (name, lists.of(zones.into_iter().collect())));
        Ok(shared.collect())
    }

    /// The types of a class with their offerings. The same list as before if nothing has changed.
    pub(crate) async fn list(
        &self,
        node_class: &Ec2NodeClass,
        placement_group: Option<&PlacementGroup>,
        options: &AwsOptions,
        sources: &OfferingSources<'_>,
    ) -> Result<Arc<[Arc<InstanceType>]>, CloudProviderError> {
        let catalogue = self.catalogue().await?;
        let reported = self.reports.of(node_class);
        let revision = Revision {
            catalogue: catalogue.revision,
            memory: reported.revision,
            prices: sources.pricing.revision(),
            reservations: sources.reservations.revision(),
            unavailable: sources.unavailable.revision(sources.now),
            interruptions: sources.interruptions.revision(),
        };
        let known = self.seen_key(node_class, placement_group);
        if let Some(built) = known.and_then(|key| self.built(key, revision, sources.now)) {
            return Ok(built);
        }
        let mut shape = ClassShape::of(node_class, placement_group, options);
        shape.reported_memory = reported;
        if shape.zones.is_empty() {
            return Err(CloudProviderError::Other(
                "the class has no subnets yet".to_owned(),
            ));
        }
        let key = shape.key();
        self.remember(node_class, placement_group, key);
        if let Some(built) = self.built(key, revision, sources.now) {
            return Ok(built);
        }
        let mut entries = lock(&self.entries);
        entries.retain(|_, entry| sources.now.duration_since(entry.used_at) < SHAPE_TTL);
        let previous = entries.remove(&key);
        let entry = build(&catalogue, &shape, sources, revision, previous);
        let built = Arc::clone(&entry.built);
        entries.insert(key, entry);
        Ok(built)
    }

    fn built(
        &self,
        key: u64,
        revision: Revision,
        now: Timestamp,
    ) -> Option<Arc<[Arc<InstanceType>]>> {
        let mut entries = lock(&self.entries);
        let entry = entries.get_mut(&key)?;
        if entry.revision != revision {
            return None;
        }
        entry.used_at = now;
        Some(Arc::clone(&entry.built))
    }

    /// The key of the class's shape, where this very version of it was asked for before.
    fn seen_key(
        &self,
        node_class: &Ec2NodeClass,
        placement_group: Option<&PlacementGroup>,
    ) -> Option<u64> {
        let meta = &node_class.metadata;
        let seen = lock(&self.seen);
        let known = seen.get(meta.name.as_deref()?)?;
        let is_same = Some(known.resource_version.as_str()) == meta.resource_version.as_deref()
            && Some(known.uid.as_str()) == meta.uid.as_deref()
            && known.placement_group.as_ref() == placement_group;
        is_same.then_some(known.key)
    }

    fn remember(
        &self,
        node_class: &Ec2NodeClass,
        placement_group: Option<&PlacementGroup>,
        key: u64,
    ) {
        let meta = node_class.metadata.clone();
        let (Some(name), Some(uid), Some(resource_version)) =
            (meta.name, meta.uid, meta.resource_version)
        else {
            return;
        };
        let placement_group = placement_group.cloned();
        let mut seen = lock(&self.seen);
        if seen.len() >= SEEN_MAX {
            seen.clear();
        }
        seen.insert(
            name,
            SeenClass {
                uid,
                resource_version,
                placement_group,
                key,
            },
        );
    }
}
