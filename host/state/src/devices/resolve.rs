//! Claims of pods resolved: which devices suit each request, and where those can be used that are allocated already.
//!
//! Finds all that suit; the combination is for `scheduling::device` to choose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::ObjectKey;
use scheduling::device::{
    Alternative, DeviceCandidate, DeviceClaim, DeviceCount, DeviceRequest, Devices, MatchAttribute,
    PodDevices,
};
use scheduling::pod::{ClaimRef, Pod, PodKey};
use scheduling::problem::PodVolumes;
use scheduling::requirements::Requirements;

use super::selector::Selectors;
use super::stock::Stock;
use super::{DeviceWorld, wire};
use crate::node_terms::{cross, node_term};
use crate::snapshot::Snapshot;

impl DeviceWorld {
    /// Devices that the claims of the pods may get; where pods may go because of devices that they have already is
    /// added to what their volumes say. Devices of claims whose pods all move are free for them again. Those that keep
    /// their places need none but what their open claims ask for there.
    pub fn resolve(
        &self,
        snapshot: &Snapshot,
        pods: &[Arc<Pod>],
        keeping: &[Arc<Pod>],
        volumes: &mut BTreeMap<PodKey, PodVolumes>,
    ) -> Devices {
        let moving: BTreeSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
        let is_released = |claim: &wire::Claim| claim.is_reserved_only_for(&moving);
        let mut resolver = Resolver {
            world: self,
            stock: self.stock(snapshot, &is_released),
            selectors: Selectors::new(),
            claims: BTreeMap::new(),
        };
        let mut devices = Devices::default();
        for pod in pods.iter().filter(|pod| pod.shape.uses_resource_claims) {
            let mut of_pod = PodDevices::default();
            for claim in &pod.resource_claims {
                match resolver.claim(&pod.key.namespace, claim, &is_released) {
                    Ok(Claimed::Open(claim)) => of_pod.claims.push(claim),
                    Ok(Claimed::Allocated(terms)) if terms.is_empty() => {}
                    Ok(Claimed::Allocated(terms)) => {
                        let known = &mut volumes.entry(pod.key.clone()).or_default().alternatives;
                        *known = cross(std::mem::take(known), &terms);
                    }
                    Err(error) => {
                        of_pod.error.get_or_insert(error);
                    }
                }
            }
            devices.pods.insert(pod.key.clone(), of_pod);
        }
        for pod in keeping {
            let mut of_pod = PodDevices::default();
            for claim in &pod.resource_claims {
                match resolver.claim(&pod.key.namespace, claim, &is_released) {
                    Ok(Claimed::Open(claim)) => of_pod.claims.push(claim),
                    Ok(Claimed::Allocated(_)) | Err(_) => {}
                }
            }
            devices.pods.insert(pod.key.clone(), of_pod);
        }
        devices.devices = resolver.stock.devices;
        devices.counters = resolver.stock.counters;
        devices
    }
}

/// State of a claim: open, or with devices.
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
    claims: BTreeMap<ObjectKey, Result<Arc<DeviceClaim>, String>>,
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
        let key = ObjectKey::new(namespace, name);
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

    fn request(&mut self, request: &wire::WireRequest) -> Result<DeviceRequest, String> {
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
            "All" => DeviceCount::All,
            "ExactCount" => {
                DeviceCount::Exactly(usize::try_from(wanted.count.unwrap_or(1)).unwrap_or(0))
            }
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
                candidates.push(DeviceCandidate {
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

fn constraint(constraint: &wire::WireConstraint) -> Result<MatchAttribute, String> {
    let wire::WireConstraint {
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
