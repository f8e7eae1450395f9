//! Volumes: which zones a pod's claims allow, how many volumes a node takes, and why a claim cannot be used.
//!
//! Answers to Karpenter's `pkg/controllers/provisioning/scheduling/volumetopology.go` and
//! `pkg/scheduling/volumeusage.go`. The alternatives tighten the node, never the pod's own affinity.

mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scheduling::pod::Pod;
use scheduling::problem::PodVolumes;
use scheduling::requirements::Requirements;

use crate::node_terms::cross;

/// Why a pod's volume cannot be used, as a sentence: nobody makes more of one reason than of another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct VolumeError(String);

/// Facts of a PersistentVolumeClaim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimedVolume {
    storage_class: String,
    volume_name: String,
    is_bind_completed: bool,
    is_lost: bool,
    is_deleting: bool,
}

/// Facts of a PersistentVolume: where it can be used, and by which driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Volume {
    alternatives: Vec<Requirements>,
    driver: String,
    is_deleting: bool,
}

/// Facts of a StorageClass: where its volumes can be, and when they are bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StorageClass {
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
    pub(crate) attachments: BTreeMap<String, Attachment>,
}

/// A volume that is attached to a node, or is about to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) node: String,
    /// Name of the PersistentVolume; empty for one that is written into the pod.
    pub(crate) volume: String,
}

/// Where a pod's volume can be used or made, and by which driver.
struct UsableVolume<'a> {
    alternatives: &'a [Requirements],
    driver: &'a str,
}

impl Volumes {
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
                Ok(UsableVolume {
                    alternatives,
                    driver,
                }) => {
                    if !driver.is_empty() {
                        resolved
                            .attachments
                            .entry(driver.to_owned())
                            .or_default()
                            .insert(volume_id(&pod.key.namespace, name));
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

    /// How many volumes of each driver a node publishes that it takes; `None` for a driver that states no number.
    pub fn published_limits(&self, node: &str) -> Option<&BTreeMap<String, Option<u32>>> {
        self.limits.get(node)
    }

    /// Volumes attached to a node, by driver. They take room for as long as their pods run, whatever became of claim
    /// and volume since.
    pub fn attached<'a>(
        &self,
        pods: impl Iterator<Item = &'a Arc<Pod>>,
    ) -> BTreeMap<String, BTreeSet<String>> {
        let mut attached: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for pod in pods {
            let namespace = &pod.key.namespace;
            for name in &pod.volume_claims {
                let driver = self.driver_in_use(namespace, name);
                if let Some(driver) = driver.filter(|it| !it.is_empty()) {
                    let ids = attached.entry(driver.to_owned()).or_default();
                    ids.insert(volume_id(namespace, name));
                }
            }
        }
        attached
    }

    fn driver_in_use(&self, namespace: &str, name: &str) -> Option<&str> {
        let claim = self.claim(namespace, name)?;
        if claim.volume_name.is_empty() {
            let class = self.classes.get(&claim.storage_class);
            return class.map(|it| it.driver.as_str());
        }
        let volume = self.volumes.get(&claim.volume_name);
        volume.map(|it| it.driver.as_str())
    }

    fn one(&self, namespace: &str, name: &str) -> Result<UsableVolume<'_>, VolumeError> {
        let claim = self
            .claim(namespace, name)
            .ok_or_else(|| of_claim(name, "not found"))?;
        if claim.is_deleting {
            return Err(of_claim(name, "is being deleted"));
        }
        if claim.is_lost {
            return Err(of_claim(name, "is lost"));
        }
        if claim.volume_name.is_empty() {
            return self.unbound(claim, name);
        }
        let of_volume = |what: &str| {
            let volume = &claim.volume_name;
            VolumeError(format!(
                "persistentvolume \"{volume}\" of persistentvolumeclaim \"{name}\" {what}"
            ))
        };
        let volume = self.volumes.get(&claim.volume_name);
        let volume = volume.ok_or_else(|| of_volume("not found"))?;
        if volume.is_deleting {
            return Err(of_volume("is being deleted"));
        }
        if !claim.is_bind_completed {
            return Err(of_claim(name, "is not fully bound yet"));
        }
        Ok(UsableVolume {
            alternatives: &volume.alternatives,
            driver: &volume.driver,
        })
    }

    fn unbound(&self, claim: &ClaimedVolume, name: &str) -> Result<UsableVolume<'_>, VolumeError> {
        if claim.storage_class.is_empty() {
            return Err(VolumeError(format!(
                "unbound persistentvolumeclaim \"{name}\" must define a storage class"
            )));
        }
        let class = self.classes.get(&claim.storage_class).ok_or_else(|| {
            let class = &claim.storage_class;
            VolumeError(format!(
                "storageclass \"{class}\" of persistentvolumeclaim \"{name}\" not found"
            ))
        })?;
        if class.is_immediate {
            // The volume should exist already, as nothing waits for the pod.
            let what = "is unbound and its storage class binds immediately";
            return Err(of_claim(name, what));
        }
        Ok(UsableVolume {
            alternatives: &class.alternatives,
            driver: &class.driver,
        })
    }
}

/// A volume as counted: pods that share a claim share it.
fn volume_id(namespace: &str, claim: &str) -> String {
    format!("{namespace}/{claim}")
}

fn of_claim(claim: &str, what: &str) -> VolumeError {
    VolumeError(format!("persistentvolumeclaim \"{claim}\" {what}"))
}
