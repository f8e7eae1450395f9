//! Reads the API's objects of storage, as far as volumes depend on them.
//!
//! Reads alone: whether a pod can use what is read is for the parent to say.

use std::sync::Arc;

use apis::names::EBS_DRIVER;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::storage::v1 as storage;
use scheduling::requirements::{Operator, Requirement, Requirements};

use super::{ClaimedVolume, StorageClass, Volume, Volumes};
use crate::node_terms::term_requirements;

const BIND_COMPLETED_ANNOTATION: &str = "pv.kubernetes.io/bind-completed";
const EBS_IN_TREE: &str = "kubernetes.io/aws-ebs";

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
}
