//! Volumes: which zones a pod's claims allow, how many volumes a node takes, and why a claim cannot be used.
//!
//! Answers to Karpenter's `pkg/controllers/provisioning/scheduling/volumetopology.go` and
//! `pkg/scheduling/volumeusage.go`. The alternatives tighten the node, never the pod's own affinity.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::{ObjectKey, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::storage::v1 as storage;
use scheduling::pod::Pod;
use scheduling::problem::PodVolumes;
use scheduling::requirements::{Operator, Requirement, Requirements};

use crate::cluster::{Changes, Cluster, Refused, Watched};

const BIND_COMPLETED_ANNOTATION: &str = "pv.kubernetes.io/bind-completed";
const EBS_DRIVER: &str = "ebs.csi.aws.com";
const EBS_IN_TREE: &str = "kubernetes.io/aws-ebs";

/// A PersistentVolumeClaim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedVolume {
    storage_class: String,
    volume_name: String,
    is_bind_completed: bool,
    is_lost: bool,
    is_deleting: bool,
}

/// A PersistentVolume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    alternatives: Vec<Requirements>,
    driver: String,
    is_deleting: bool,
}

/// A StorageClass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageClass {
    alternatives: Vec<Requirements>,
    driver: String,
    is_immediate: bool,
}

/// Everything that tells where volumes can be.
#[derive(Debug, Clone, Default)]
pub struct Volumes {
    pub(crate) claims: BTreeMap<String, BTreeMap<String, Arc<ClaimedVolume>>>,
    pub(crate) volumes: BTreeMap<String, Arc<Volume>>,
    pub(crate) classes: BTreeMap<String, Arc<StorageClass>>,
    /// Limits by node and published driver; a driver without a count is unbounded.
    pub(crate) limits: BTreeMap<String, BTreeMap<String, Option<u32>>>,
    /// By name of the VolumeAttachment.
    attachments: BTreeMap<String, Attachment>,
}

/// A volume that is attached to a node, or is about to be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Attachment {
    node: String,
    /// Name of the PersistentVolume; empty for one that is written into the pod.
    volume: String,
}

impl Watched for v1::PersistentVolumeClaim {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.volumes).apply_claim(&object);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        let claims = &mut Arc::make_mut(&mut cluster.data.volumes).claims;
        if let Some(named) = claims.get_mut(&key.namespace) {
            named.remove(&key.name);
        }
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let claims = cluster.data.volumes.claims.iter();
        let keys = claims.flat_map(|(namespace, named)| {
            named
                .keys()
                .map(move |name| ObjectKey::namespaced(namespace, name))
        });
        keys.collect()
    }
}

impl Watched for v1::PersistentVolume {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.volumes).apply_volume(&object);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.volumes)
            .volumes
            .remove(&key.name);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.volumes.volumes.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Watched for storage::StorageClass {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.volumes).apply_class(&object);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.volumes)
            .classes
            .remove(&key.name);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.volumes.classes.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Watched for storage::CSINode {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.volumes).apply_csi_node(&object);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.volumes)
            .limits
            .remove(&key.name);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.volumes.limits.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Watched for storage::VolumeAttachment {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let attachment = Attachment {
            node: object.spec.node_name.clone(),
            volume: object
                .spec
                .source
                .persistent_volume_name
                .clone()
                .unwrap_or_default(),
        };
        Arc::make_mut(&mut cluster.data.volumes)
            .attachments
            .insert(name, attachment);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.volumes)
            .attachments
            .remove(&key.name);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.volumes.attachments.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

/// Why a pod's volume cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// The claim does not exist.
    #[error("persistentvolumeclaim \"{0}\" not found")]
    ClaimNotFound(String),
    /// The claim is going.
    #[error("persistentvolumeclaim \"{0}\" is being deleted")]
    ClaimDeleting(String),
    /// The claim lost its volume.
    #[error("persistentvolumeclaim \"{0}\" is lost")]
    ClaimLost(String),
    /// The claim names a volume but the binding is not done.
    #[error("persistentvolumeclaim \"{0}\" is not fully bound yet")]
    NotBound(String),
    /// The volume of the claim does not exist.
    #[error("persistentvolume \"{volume}\" of persistentvolumeclaim \"{claim}\" not found")]
    VolumeNotFound {
        /// The claim.
        claim: String,
        /// The volume.
        volume: String,
    },
    /// The volume is going.
    #[error("persistentvolume \"{volume}\" of persistentvolumeclaim \"{claim}\" is being deleted")]
    VolumeDeleting {
        /// The claim.
        claim: String,
        /// The volume.
        volume: String,
    },
    /// The unbound claim names no class.
    #[error("unbound persistentvolumeclaim \"{0}\" must define a storage class")]
    NoStorageClass(String),
    /// The class of the claim does not exist.
    #[error("storageclass \"{class}\" of persistentvolumeclaim \"{claim}\" not found")]
    StorageClassNotFound {
        /// The claim.
        claim: String,
        /// The class.
        class: String,
    },
    /// The volume should exist already, as nothing waits for the pod.
    #[error("persistentvolumeclaim \"{0}\" is unbound and its storage class binds immediately")]
    UnboundImmediate(String),
}

impl Volumes {
    pub(crate) fn apply_claim(&mut self, object: &v1::PersistentVolumeClaim) {
        let meta = &object.metadata;
        let spec = object.spec.as_ref();
        let claim = ClaimedVolume {
            storage_class: spec
                .and_then(|it| it.storage_class_name.clone())
                .unwrap_or_default(),
            volume_name: spec
                .and_then(|it| it.volume_name.clone())
                .unwrap_or_default(),
            is_bind_completed: meta
                .annotations
                .as_ref()
                .is_some_and(|it| it.contains_key(BIND_COMPLETED_ANNOTATION)),
            is_lost: object.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Lost"),
            is_deleting: meta.deletion_timestamp.is_some(),
        };
        self.claims
            .entry(meta.namespace.clone().unwrap_or_default())
            .or_default()
            .insert(meta.name.clone().unwrap_or_default(), Arc::new(claim));
    }

    pub(crate) fn apply_volume(&mut self, object: &v1::PersistentVolume) {
        let spec = object.spec.as_ref();
        // The node of a local volume is going or gone, so its name says nothing about the next one.
        let is_local = spec.is_some_and(|it| it.local.is_some() || it.host_path.is_some());
        let terms = spec
            .and_then(|it| it.node_affinity.as_ref())
            .and_then(|it| it.required.as_ref())
            .map(|it| it.node_selector_terms.as_slice())
            .unwrap_or_default();
        let driver = spec.map_or("", |it| match (&it.csi, &it.aws_elastic_block_store) {
            (Some(csi), _) => csi.driver.as_str(),
            (None, Some(_)) => EBS_DRIVER,
            (None, None) => "",
        });
        let volume = Volume {
            alternatives: terms
                .iter()
                .map(|term| term_requirements(term, is_local))
                .collect(),
            driver: driver.to_owned(),
            is_deleting: object.metadata.deletion_timestamp.is_some(),
        };
        self.volumes.insert(
            object.metadata.name.clone().unwrap_or_default(),
            Arc::new(volume),
        );
    }

    pub(crate) fn apply_class(&mut self, object: &storage::StorageClass) {
        let alternatives = object
            .allowed_topologies
            .iter()
            .flatten()
            .map(|term| {
                let mut requirements = Requirements::new();
                for it in term.match_label_expressions.iter().flatten() {
                    let values = it.values.iter().map(String::as_str);
                    requirements.add(Requirement::new(&it.key, Operator::In, values));
                }
                requirements
            })
            .collect();
        let driver = match object.provisioner.as_str() {
            EBS_IN_TREE => EBS_DRIVER,
            other => other,
        };
        let class = StorageClass {
            alternatives,
            driver: driver.to_owned(),
            is_immediate: object.volume_binding_mode.as_deref().unwrap_or("Immediate")
                == "Immediate",
        };
        self.classes.insert(
            object.metadata.name.clone().unwrap_or_default(),
            Arc::new(class),
        );
    }

    pub(crate) fn apply_csi_node(&mut self, object: &storage::CSINode) {
        // A driver without a count is unbounded, not full.
        let limits = object
            .spec
            .drivers
            .iter()
            .map(|driver| {
                let count = driver.allocatable.as_ref().and_then(|it| it.count);
                let count = count.and_then(|it| u32::try_from(it).ok());
                (driver.name.clone(), count)
            })
            .collect();
        self.limits
            .insert(object.metadata.name.clone().unwrap_or_default(), limits);
    }

    /// VolumeAttachments of a node with their volumes.
    pub fn attached_to<'a>(&'a self, node: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let here = self
            .attachments
            .iter()
            .filter(move |(_, it)| it.node == node);
        here.map(|(name, it)| (name.as_str(), it.volume.as_str()))
    }

    fn claim(&self, namespace: &str, name: &str) -> Option<&Arc<ClaimedVolume>> {
        self.claims.get(namespace).and_then(|it| it.get(name))
    }

    /// The volumes of a pod, ready for the solver; the error is inside when they cannot be used.
    pub fn resolve(&self, pod: &Pod) -> PodVolumes {
        let mut resolved = PodVolumes::default();
        for name in &pod.volume_claims {
            match self.one(&pod.key.namespace, name) {
                Ok((alternatives, driver)) => {
                    if !driver.is_empty() {
                        let id = format!("{}/{name}", pod.key.namespace);
                        resolved
                            .attachments
                            .entry(driver.to_owned())
                            .or_default()
                            .insert(id);
                    }
                    resolved.alternatives = cross(resolved.alternatives, alternatives);
                }
                Err(error) => {
                    resolved.error.get_or_insert_with(|| error.to_string());
                }
            }
        }
        resolved
    }

    /// Names of the PersistentVolumes that the pod's claims are bound to.
    pub fn names_of<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = &'a str> {
        pod.volume_claims
            .iter()
            .filter_map(|name| self.claim(&pod.key.namespace, name))
            .map(|claim| claim.volume_name.as_str())
            .filter(|name| !name.is_empty())
    }

    /// Whether the volumes of a pod let it be scheduled at all.
    pub fn validate(&self, pod: &Pod) -> Result<(), VolumeError> {
        pod.volume_claims
            .iter()
            .try_for_each(|name| self.one(&pod.key.namespace, name).map(|_| ()))
    }

    /// Volumes attached to a node, by driver.
    pub fn attached<'a>(
        &self,
        pods: impl Iterator<Item = &'a Arc<Pod>>,
    ) -> BTreeMap<String, BTreeSet<String>> {
        let mut attached: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for pod in pods {
            for (driver, names) in self.resolve_if_any(pod) {
                attached.entry(driver).or_default().extend(names);
            }
        }
        attached
    }

    fn resolve_if_any(&self, pod: &Pod) -> BTreeMap<String, BTreeSet<String>> {
        if pod.volume_claims.is_empty() {
            return BTreeMap::new();
        }
        self.resolve(pod).attachments
    }

    fn one(&self, namespace: &str, name: &str) -> Result<(&[Requirements], &str), VolumeError> {
        let claim = self
            .claim(namespace, name)
            .ok_or_else(|| VolumeError::ClaimNotFound(name.to_owned()))?;
        if claim.is_deleting {
            return Err(VolumeError::ClaimDeleting(name.to_owned()));
        }
        if claim.is_lost {
            return Err(VolumeError::ClaimLost(name.to_owned()));
        }
        if claim.volume_name.is_empty() {
            return self.unbound(claim, name);
        }
        let named = |volume: &str| (name.to_owned(), volume.to_owned());
        let Some(volume) = self.volumes.get(&claim.volume_name) else {
            let (claim, volume) = named(&claim.volume_name);
            return Err(VolumeError::VolumeNotFound { claim, volume });
        };
        if volume.is_deleting {
            let (claim, volume) = named(&claim.volume_name);
            return Err(VolumeError::VolumeDeleting { claim, volume });
        }
        if !claim.is_bind_completed {
            return Err(VolumeError::NotBound(name.to_owned()));
        }
        Ok((&volume.alternatives, &volume.driver))
    }

    fn unbound(
        &self,
        claim: &ClaimedVolume,
        name: &str,
    ) -> Result<(&[Requirements], &str), VolumeError> {
        if claim.storage_class.is_empty() {
            return Err(VolumeError::NoStorageClass(name.to_owned()));
        }
        let class = self.classes.get(&claim.storage_class).ok_or_else(|| {
            VolumeError::StorageClassNotFound {
                claim: name.to_owned(),
                class: claim.storage_class.clone(),
            }
        })?;
        if class.is_immediate {
            return Err(VolumeError::UnboundImmediate(name.to_owned()));
        }
        Ok((&class.alternatives, &class.driver))
    }
}

/// The requirements of a term of a node selector.
pub(crate) fn node_term(term: &v1::NodeSelectorTerm) -> Requirements {
    term_requirements(term, false)
}

fn term_requirements(term: &v1::NodeSelectorTerm, is_local: bool) -> Requirements {
    let mut requirements = Requirements::new();
    for it in term.match_expressions.iter().flatten() {
        if is_local && it.key == labels::HOSTNAME {
            continue;
        }
        if let Some(operator) = Operator::parse(&it.operator) {
            let values = it.values.iter().flatten().map(String::as_str);
            requirements.add(Requirement::new(&it.key, operator, values));
        }
    }
    requirements
}

/// Every combination of an alternative so far with one of the next volume; those that contradict
/// themselves are dropped, unless all do.
pub(crate) fn cross(so_far: Vec<Requirements>, next: &[Requirements]) -> Vec<Requirements> {
    if next.is_empty() {
        return so_far;
    }
    if so_far.is_empty() {
        return next.to_vec();
    }
    let mut compatible = Vec::new();
    let mut raw = Vec::new();
    for left in &so_far {
        for right in next {
            let mut both = left.clone();
            both.extend_with(right);
            if left.intersects(right).is_ok() {
                compatible.push(both);
            } else {
                raw.push(both);
            }
        }
    }
    if compatible.is_empty() {
        raw
    } else {
        compatible
    }
}
