//! Dynamic resource allocation: which devices drivers offer, what pods claim, and which device suits which request.
//!
//! Reads the API group `resource.k8s.io` in any of its versions since v1beta1, of which the cluster serves some. The
//! search for a combination belongs to `scheduling::device`. Answers to Karpenter's `pkg/scheduling/dynamicresources`.

mod selector;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::ObjectKey;
use jiff::Timestamp;
use scheduling::device::{
    Access, Alternative, Attribute, Candidate, Count, Device, DeviceClaim, DeviceRequest, Devices,
    MatchAttribute, PodDevices,
};
use scheduling::pod::{ClaimRef, Pod, PodKey};
use scheduling::requirements::Requirements;
use serde_json::Value;

use crate::cluster::{Changes, Cluster, Refused, Watched};
use crate::snapshot::Snapshot;
use crate::volumes::node_term;
use selector::Selectors;

/// Kinds of the group that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    /// ResourceSlice.
    Slice,
    /// DeviceClass.
    Class,
    /// ResourceClaim.
    Claim,
    /// ResourceClaimTemplate.
    Template,
}

/// An object of the group.
#[derive(Debug, Clone)]
pub struct DeviceObject {
    /// Kind.
    pub kind: DeviceKind,
    /// Namespace and name.
    pub key: PodKey,
    parsed: Parsed,
}

#[derive(Debug, Clone)]
enum Parsed {
    Slice(Arc<wire::SliceSpec>),
    Class(Arc<wire::ClassSpec>),
    Claim(Arc<wire::Claim>),
    Template(Arc<wire::ClaimSpec>),
}

/// Everything known of devices.
#[derive(Debug, Clone, Default)]
pub struct DeviceWorld {
    slices: BTreeMap<String, Arc<wire::SliceSpec>>,
    classes: BTreeMap<String, Arc<wire::ClassSpec>>,
    claims: BTreeMap<PodKey, Arc<wire::Claim>>,
    templates: BTreeMap<PodKey, Arc<wire::ClaimSpec>>,
}

/// What a pod's claims come to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resolved {
    pub(crate) devices: Devices,
    /// Where pods may go because of devices that they have already.
    pub(crate) alternatives: BTreeMap<PodKey, Vec<Vec<Requirements>>>,
}

impl DeviceKind {
    /// The kind of an object of the group `resource.k8s.io`.
    pub fn of(kind: &str) -> Option<Self> {
        match kind {
            "ResourceSlice" => Some(Self::Slice),
            "DeviceClass" => Some(Self::Class),
            "ResourceClaim" => Some(Self::Claim),
            "ResourceClaimTemplate" => Some(Self::Template),
            _ => None,
        }
    }
}

impl DeviceObject {
    /// Reads an object.
    pub fn read(kind: DeviceKind, object: &Value) -> Result<Self, serde_json::Error> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let spec = || object["spec"].clone();
        let parsed = match kind {
            DeviceKind::Slice => {
                let mut slice: wire::SliceSpec = serde_json::from_value(spec())?;
                slice.owner_node = owner_node(object);
                Parsed::Slice(Arc::new(slice))
            }
            DeviceKind::Class => Parsed::Class(Arc::new(serde_json::from_value(spec())?)),
            DeviceKind::Claim => Parsed::Claim(Arc::new(serde_json::from_value(object.clone())?)),
            DeviceKind::Template => {
                Parsed::Template(Arc::new(serde_json::from_value(spec()["spec"].take())?))
            }
        };
        Ok(Self {
            kind,
            key: PodKey::new(text("namespace"), text("name")),
            parsed,
        })
    }

    /// The claim that a template makes.
    pub fn claim_of(template: &PodKey, world: &DeviceWorld, name: &str) -> Option<Self> {
        let spec = world.templates.get(template)?;
        let claim = wire::Claim {
            spec: (**spec).clone(),
            status: wire::ClaimStatus::default(),
        };
        Some(Self {
            kind: DeviceKind::Claim,
            key: PodKey::new(&template.namespace, name),
            parsed: Parsed::Claim(Arc::new(claim)),
        })
    }
}

impl Watched for DeviceObject {
    type Kind = DeviceKind;

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.devices).apply(&object);
        Ok(Changes::new())
    }

    fn deleted(
        cluster: &mut Cluster,
        _now: Timestamp,
        kind: DeviceKind,
        key: &ObjectKey,
    ) -> Changes {
        Arc::make_mut(&mut cluster.data.devices).remove(kind, key);
        Changes::new()
    }

    fn known(cluster: &Cluster, kind: DeviceKind) -> Vec<ObjectKey> {
        cluster.data.devices.keys(kind)
    }
}

impl DeviceWorld {
    fn apply(&mut self, object: &DeviceObject) {
        let DeviceObject {
            kind: _,
            key,
            parsed,
        } = object;
        match parsed {
            Parsed::Slice(it) => drop(self.slices.insert(key.name.clone(), Arc::clone(it))),
            Parsed::Class(it) => drop(self.classes.insert(key.name.clone(), Arc::clone(it))),
            Parsed::Claim(it) => drop(self.claims.insert(key.clone(), Arc::clone(it))),
            Parsed::Template(it) => drop(self.templates.insert(key.clone(), Arc::clone(it))),
        }
    }

    fn keys(&self, kind: DeviceKind) -> Vec<ObjectKey> {
        match kind {
            DeviceKind::Slice => self.slices.keys().map(ObjectKey::cluster).collect(),
            DeviceKind::Class => self.classes.keys().map(ObjectKey::cluster).collect(),
            DeviceKind::Claim => self.claims.keys().cloned().collect(),
            DeviceKind::Template => self.templates.keys().cloned().collect(),
        }
    }

    fn remove(&mut self, kind: DeviceKind, key: &ObjectKey) {
        match kind {
            DeviceKind::Slice => drop(self.slices.remove(&key.name)),
            DeviceKind::Class => drop(self.classes.remove(&key.name)),
            DeviceKind::Claim => drop(self.claims.remove(key)),
            DeviceKind::Template => drop(self.templates.remove(key)),
        }
    }

    /// What the pods' claims come to. Devices of claims whose pods all move are free for them again.
    pub(crate) fn resolve(&self, snapshot: &Snapshot, pods: &[Arc<Pod>]) -> Resolved {
        let moving: BTreeSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
        let is_released = |claim: &wire::Claim| claim.is_reserved_only_for(&moving);
        let mut resolver = Resolver {
            world: self,
            stock: self.stock(snapshot, &is_released),
            selectors: Selectors::default(),
            claims: BTreeMap::new(),
        };
        let mut resolved = Resolved::default();
        for pod in pods.iter().filter(|pod| pod.shape.uses_resource_claims) {
            let mut of_pod = PodDevices::default();
            let mut alternatives = Vec::new();
            for claim in &pod.resource_claims {
                match resolver.claim(&pod.key.namespace, claim, &is_released) {
                    Ok(Claimed::Open(claim)) => of_pod.claims.push(claim),
                    Ok(Claimed::Allocated(terms)) if terms.is_empty() => {}
                    Ok(Claimed::Allocated(terms)) => alternatives.push(terms),
                    Err(error) => {
                        of_pod.error.get_or_insert(error);
                    }
                }
            }
            resolved.devices.pods.insert(pod.key.clone(), of_pod);
            if !alternatives.is_empty() {
                resolved.alternatives.insert(pod.key.clone(), alternatives);
            }
        }
        resolved.devices.devices = resolver.stock.devices;
        resolved.devices.counters = resolver.stock.counters;
        resolved
    }

    /// The devices of the newest generation of every pool, those of nodes that are not ready for any left out.
    fn stock(&self, snapshot: &Snapshot, is_released: &dyn Fn(&wire::Claim) -> bool) -> Stock {
        let mut newest: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for slice in self.slices.values() {
            let known = newest.entry(slice.pool_key()).or_insert(i64::MIN);
            *known = (*known).max(slice.pool.generation);
        }
        let mut pools: BTreeMap<(&str, &str), Vec<&wire::SliceSpec>> = BTreeMap::new();
        for slice in self.slices.values() {
            if newest.get(&slice.pool_key()) == Some(&slice.pool.generation) {
                pools.entry(slice.pool_key()).or_default().push(slice);
            }
        }
        let claims = self.claims.values().filter(|claim| !is_released(claim));
        let mut taken: BTreeMap<(&str, &str, &str), Vec<&wire::AllocatedDevice>> = BTreeMap::new();
        for device in claims.flat_map(|claim| claim.devices()) {
            taken.entry(device.key()).or_default().push(device);
        }
        let mut stock = Stock::default();
        for ((driver, pool), slices) in pools {
            let wanted = slices.iter().map(|it| it.pool.resource_slice_count).max();
            let is_complete = wanted == i64::try_from(slices.len()).ok();
            let is_sound = is_complete && wire::is_consistent(&slices);
            let first = stock.counters.len();
            let counters = stock.counters_of(&slices);
            for slice in &slices {
                for device in &slice.devices {
                    let Some(access) = access_of(snapshot, slice, device) else {
                        continue;
                    };
                    let by = taken.get(&(driver, pool, device.name.as_str()));
                    let body = device.body();
                    let parts = stock.parts_of(body, by.map_or(&[], Vec::as_slice));
                    stock.devices.push(Device {
                        driver: driver.to_owned(),
                        pool: pool.to_owned(),
                        name: device.name.clone(),
                        access,
                        attributes: attributes_of(driver, device),
                        takes: body.takes(&counters),
                        is_of_sound_pool: is_sound,
                        is_shared: body.is_shared(),
                        is_taken: by.is_some(),
                    });
                    stock.parts.push(parts);
                    stock.facts.push(selector::Facts::of(driver, body));
                }
            }
            stock.spend(first);
        }
        stock
    }
}

/// Devices, what selectors see of them, and counters.
#[derive(Debug, Default)]
struct Stock {
    devices: Vec<Device>,
    facts: Vec<selector::Facts>,
    /// What claims may have a part of, by device; nothing of devices that are not shared.
    parts: Vec<Vec<Part>>,
    counters: Vec<i64>,
    spent: usize,
}

/// A capacity of a shared device.
#[derive(Debug)]
struct Part {
    name: String,
    capacity: wire::Capacity,
    /// Counts what is left of it.
    counter: usize,
}

impl Stock {
    /// Numbers the counters of a pool, by set and name.
    fn counters_of(&mut self, slices: &[&wire::SliceSpec]) -> BTreeMap<(String, String), usize> {
        let mut numbers = BTreeMap::new();
        let sets = slices.iter().flat_map(|it| &it.shared_counters);
        for set in sets {
            for (name, counter) in &set.counters {
                numbers.insert((set.name.clone(), name.clone()), self.counters.len());
                self.counters.push(counter.millis());
            }
        }
        numbers
    }

    /// Numbers the capacities of a shared device, less what the claims that use it have.
    fn parts_of(&mut self, body: &wire::DeviceBody, by: &[&wire::AllocatedDevice]) -> Vec<Part> {
        if !body.is_shared() {
            return Vec::new();
        }
        let mut parts = Vec::new();
        for (name, capacity) in &body.capacity {
            let used = by.iter().map(|it| it.consumed(name));
            let used = used.fold(0_i64, i64::saturating_add);
            self.counters.push(capacity.millis().saturating_sub(used));
            parts.push(Part {
                name: name.clone(),
                capacity: capacity.clone(),
                counter: self.counters.len() - 1,
            });
        }
        parts
    }

    /// What a request takes of a device when it is given that; `None` when it may not be.
    fn takes(&self, device: usize, request: &wire::ExactRequest) -> Option<Vec<(usize, i64)>> {
        // Who watches over devices neither waits for them nor takes them from others.
        if request.admin_access == Some(true) {
            return Some(Vec::new());
        }
        let mut takes = self.devices[device].takes.clone();
        if !self.devices[device].is_shared {
            return Some(takes);
        }
        let parts = &self.parts[device];
        let mut asked = request.capacities();
        if !asked.all(|(name, _)| parts.iter().any(|part| part.name == *name)) {
            return None;
        }
        for part in parts {
            let asked = request.capacities().find(|(name, _)| **name == part.name);
            let amount = part.capacity.part_of(asked.map(|(_, amount)| amount))?;
            takes.push((part.counter, amount));
        }
        Some(takes)
    }

    /// Takes what devices in use have of the counters numbered last.
    fn spend(&mut self, first: usize) {
        for device in self
            .devices
            .iter()
            .skip(self.spent)
            .filter(|it| it.is_taken)
        {
            for (counter, amount) in &device.takes {
                if *counter >= first {
                    self.counters[*counter] -= amount;
                }
            }
        }
        self.spent = self.devices.len();
    }
}

/// Where a device can be used; `None` while its node is not ready for any, or going.
fn access_of(
    snapshot: &Snapshot,
    slice: &wire::SliceSpec,
    device: &wire::SliceDevice,
) -> Option<Access> {
    let is_ready = |name: &String| {
        let node = snapshot.node(name);
        node.is_some_and(|it| it.is_initialized() && !it.is_marked_for_deletion())
    };
    if !slice.owner_node.iter().all(is_ready) {
        return None;
    }
    let body = device.body();
    let node = slice.node_name.as_ref().or(body.node_name.as_ref());
    if let Some(name) = node {
        return is_ready(name).then(|| Access::Node(name.clone()));
    }
    if slice.all_nodes == Some(true) || body.all_nodes == Some(true) {
        return Some(Access::Everywhere);
    }
    let selector = slice
        .node_selector
        .as_ref()
        .or(body.node_selector.as_ref())?;
    let terms = selector.node_selector_terms.iter().map(node_term);
    Some(Access::Selected(terms.collect()))
}

/// The node that an object goes with.
fn owner_node(object: &Value) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let node = owners.iter().find(|it| it["kind"] == "Node")?;
    node["name"].as_str().map(str::to_owned)
}

fn attributes_of(driver: &str, device: &wire::SliceDevice) -> BTreeMap<String, Attribute> {
    let attributes = device.body().attributes.iter();
    let attributes = attributes.filter_map(|(name, value)| {
        let name = if name.contains('/') {
            name.clone()
        } else {
            format!("{driver}/{name}")
        };
        Some((name, value.value()?))
    });
    attributes.collect()
}

/// What a claim comes to.
enum Claimed {
    /// Nothing is allocated to it.
    Open(Arc<DeviceClaim>),
    /// Its devices can be used from nodes that satisfy one of these; from any when there is none.
    Allocated(Vec<Requirements>),
}

struct Resolver<'a> {
    world: &'a DeviceWorld,
    stock: Stock,
    selectors: Selectors,
    claims: BTreeMap<PodKey, Result<Arc<DeviceClaim>, String>>,
}

impl Resolver<'_> {
    fn claim(
        &mut self,
        namespace: &str,
        claim: &ClaimRef,
        is_released: &dyn Fn(&wire::Claim) -> bool,
    ) -> Result<Claimed, String> {
        let name = match claim {
            ClaimRef::Named(name) => name,
            ClaimRef::Awaited(entry) => {
                return Err(format!("the resourceclaim for {entry:?} is not made yet"));
            }
        };
        let key = PodKey::new(namespace, name);
        let world = self.world;
        let object = world.claims.get(&key);
        let object = object.ok_or_else(|| format!("resourceclaim {name:?} not found"))?;
        if let Some(allocation) = &object.status.allocation
            && !is_released(object)
        {
            let terms = allocation.node_selector.iter();
            let terms = terms.flat_map(|it| &it.node_selector_terms);
            return Ok(Claimed::Allocated(terms.map(node_term).collect()));
        }
        if let Some(known) = self.claims.get(&key) {
            return known.clone().map(Claimed::Open);
        }
        let requests = object.spec.devices.requests.iter();
        let requests: Result<Vec<_>, _> = requests.map(|it| self.request(it)).collect();
        let constraints = object.spec.devices.constraints.iter();
        let constraints: Result<Vec<_>, _> = constraints.map(constraint).collect();
        let open = requests.and_then(|requests| {
            Ok(Arc::new(DeviceClaim {
                key: key.clone(),
                requests,
                constraints: constraints?,
            }))
        });
        let open = open.map_err(|error| format!("resourceclaim {name:?}, {error}"));
        self.claims.insert(key, open.clone());
        open.map(Claimed::Open)
    }

    fn request(&mut self, request: &wire::Request) -> Result<DeviceRequest, String> {
        let name = &request.name;
        let alternatives: Result<Vec<_>, String> = if request.first_available.is_empty() {
            let one = request.exactly.as_ref().unwrap_or(&request.inline);
            self.alternative(name.clone(), one).map(|it| vec![it])
        } else {
            let subs = request.first_available.iter();
            let subs = subs.map(|it| {
                let sub = it.name.as_deref().unwrap_or_default();
                self.alternative(format!("{name}/{sub}"), it)
            });
            subs.collect()
        };
        Ok(DeviceRequest {
            name: name.clone(),
            alternatives: alternatives.map_err(|error| format!("request {name:?}, {error}"))?,
        })
    }

    fn alternative(
        &mut self,
        name: String,
        wanted: &wire::ExactRequest,
    ) -> Result<Alternative, String> {
        let class = wanted.device_class_name.as_deref().unwrap_or_default();
        let Some(of_class) = self.world.classes.get(class) else {
            return Err(format!("deviceclass {class:?} not found"));
        };
        let count = match wanted.allocation_mode.as_deref().unwrap_or("ExactCount") {
            "All" => Count::All,
            "ExactCount" => Count::Exactly(usize::try_from(wanted.count.unwrap_or(1)).unwrap_or(0)),
            other => return Err(format!("allocation mode {other:?} is unknown")),
        };
        let selectors = of_class.selectors.iter().chain(&wanted.selectors);
        let expressions = selectors.filter_map(|it| it.cel.as_ref());
        let expressions: Vec<&str> = expressions.map(|it| it.expression.as_str()).collect();
        let mut candidates = Vec::new();
        for (at, facts) in self.stock.facts.iter().enumerate() {
            if self.selectors.admit(&expressions, facts)?
                && self.stock.devices[at].is_of_sound_pool
                && let Some(takes) = self.stock.takes(at, wanted)
            {
                let is_watched = wanted.admin_access == Some(true);
                candidates.push(Candidate {
                    device: at,
                    takes,
                    is_shared: is_watched || self.stock.devices[at].is_shared,
                });
            }
        }
        Ok(Alternative {
            name,
            count,
            candidates,
        })
    }
}

fn constraint(constraint: &wire::Constraint) -> Result<MatchAttribute, String> {
    let wire::Constraint {
        requests,
        match_attribute,
        distinct_attribute,
    } = constraint;
    match (match_attribute, distinct_attribute) {
        (Some(attribute), None) => Ok(MatchAttribute {
            requests: requests.clone(),
            attribute: attribute.clone(),
        }),
        (_, Some(_)) => Err("constraint distinctAttribute is not supported".to_owned()),
        (None, None) => Err("a constraint is of a kind that is not supported".to_owned()),
    }
}
