//! Dynamic resource allocation: which devices drivers offer, what pods claim, and which device suits which request.
//!
//! Reads the API group `resource.k8s.io` in any of its versions since v1beta1, of which the cluster serves some. The
//! search for a combination belongs to `scheduling::device`. Answers to Karpenter's `pkg/scheduling/dynamicresources`.

mod resolve;
mod selector;
mod stock;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ObjectKey;
use serde_json::Value;

/// Kinds of the group that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    /// A ResourceSlice: devices that a driver offers.
    Slice,
    /// A DeviceClass: devices that a request may name together.
    Class,
    /// A ResourceClaim: devices that pods ask for, and those allocated.
    Claim,
    /// A ResourceClaimTemplate: the claim that each pod gets of its own.
    Template,
}

/// An object of the group.
#[derive(Debug, Clone)]
pub struct DeviceObject {
    pub kind: DeviceKind,
    /// Namespace and name; without namespace where the kind has none.
    pub key: ObjectKey,
    parsed: ParsedObject,
}

#[derive(Debug, Clone)]
enum ParsedObject {
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
    claims: BTreeMap<ObjectKey, Arc<wire::Claim>>,
    templates: BTreeMap<ObjectKey, Arc<wire::ClaimSpec>>,
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
    /// Reads an object of the group `resource.k8s.io`.
    pub fn read(kind: DeviceKind, object: &Value) -> Result<Self, serde_json::Error> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let spec = || object["spec"].clone();
        let parsed = match kind {
            DeviceKind::Slice => {
                let mut slice: wire::SliceSpec = serde_json::from_value(spec())?;
                slice.owner_node = owner_node(object);
                ParsedObject::Slice(Arc::new(slice))
            }
            DeviceKind::Class => ParsedObject::Class(Arc::new(serde_json::from_value(spec())?)),
            DeviceKind::Claim => {
                ParsedObject::Claim(Arc::new(serde_json::from_value(object.clone())?))
            }
            DeviceKind::Template => {
                ParsedObject::Template(Arc::new(serde_json::from_value(spec()["spec"].take())?))
            }
        };
        Ok(Self {
            kind,
            key: ObjectKey::new(text("namespace"), text("name")),
            parsed,
        })
    }

    /// The claim that a template makes.
    pub fn claim_of(template: &ObjectKey, world: &DeviceWorld, name: &str) -> Option<Self> {
        let spec = world.templates.get(template)?;
        let claim = wire::Claim {
            spec: (**spec).clone(),
            status: wire::ClaimStatus::default(),
        };
        Some(Self {
            kind: DeviceKind::Claim,
            key: ObjectKey::new(&template.namespace, name),
            parsed: ParsedObject::Claim(Arc::new(claim)),
        })
    }
}

impl DeviceWorld {
    pub(crate) fn apply(&mut self, object: &DeviceObject) {
        let DeviceObject {
            kind: _,
            key,
            parsed,
        } = object;
        match parsed {
            ParsedObject::Slice(it) => drop(self.slices.insert(key.name.clone(), Arc::clone(it))),
            ParsedObject::Class(it) => drop(self.classes.insert(key.name.clone(), Arc::clone(it))),
            ParsedObject::Claim(it) => drop(self.claims.insert(key.clone(), Arc::clone(it))),
            ParsedObject::Template(it) => drop(self.templates.insert(key.clone(), Arc::clone(it))),
        }
    }

    pub(crate) fn keys(&self, kind: DeviceKind) -> Vec<ObjectKey> {
        match kind {
            DeviceKind::Slice => self.slices.keys().map(ObjectKey::cluster).collect(),
            DeviceKind::Class => self.classes.keys().map(ObjectKey::cluster).collect(),
            DeviceKind::Claim => self.claims.keys().cloned().collect(),
            DeviceKind::Template => self.templates.keys().cloned().collect(),
        }
    }

    pub(crate) fn remove(&mut self, kind: DeviceKind, key: &ObjectKey) {
        match kind {
            DeviceKind::Slice => drop(self.slices.remove(&key.name)),
            DeviceKind::Class => drop(self.classes.remove(&key.name)),
            DeviceKind::Claim => drop(self.claims.remove(key)),
            DeviceKind::Template => drop(self.templates.remove(key)),
        }
    }
}

/// The node that an object goes with.
fn owner_node(object: &Value) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let node = owners.iter().find(|it| it["kind"] == "Node")?;
    node["name"].as_str().map(str::to_owned)
}
