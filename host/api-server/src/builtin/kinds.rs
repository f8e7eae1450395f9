//! The list of built-in kinds, and their schemas from the typed API.

use std::collections::BTreeMap;

use k8s_openapi::Resource as Typed;
use k8s_openapi::api::{
    admissionregistration::v1 as admissionregistration, apps::v1 as apps,
    autoscaling::v2 as autoscaling, batch::v1 as batch, certificates::v1 as certificates,
    coordination::v1 as coordination, core::v1 as core, discovery::v1 as discovery,
    events::v1 as events, flowcontrol::v1 as flowcontrol, networking::v1 as networking,
    node::v1 as node, policy::v1 as policy, rbac::v1 as rbac, resource::v1beta2 as resource,
    scheduling::v1 as scheduling, storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;

use crate::resource::Resource;
use crate::served::kinds::{Kinds, ScalePaths, ServedKind};

/// Facts of a kind that its type does not tell.
#[derive(Clone, Copy, Default)]
struct Traits {
    is_cluster_wide: bool,
    has_status: bool,
    has_generation: bool,
    has_scale: bool,
}

/// Neither status nor generation, in namespaces.
const PLAIN: Traits = Traits {
    is_cluster_wide: false,
    has_status: false,
    has_generation: false,
    has_scale: false,
};
const PLAIN_GENERATION: Traits = Traits {
    has_generation: true,
    ..PLAIN
};
const STATUS: Traits = Traits {
    has_status: true,
    ..PLAIN
};
const SPEC_STATUS: Traits = Traits {
    has_status: true,
    has_generation: true,
    ..PLAIN
};
const SCALED: Traits = Traits {
    has_scale: true,
    ..SPEC_STATUS
};
const CLUSTER: Traits = Traits {
    is_cluster_wide: true,
    ..PLAIN
};
const CLUSTER_GENERATION: Traits = Traits {
    has_generation: true,
    ..CLUSTER
};
const CLUSTER_STATUS: Traits = Traits {
    has_status: true,
    ..CLUSTER
};
const CLUSTER_SPEC_STATUS: Traits = Traits {
    has_generation: true,
    ..CLUSTER_STATUS
};

fn kind<T: Typed>(traits: Traits, short_names: &[&str], categories: &[&str]) -> ServedKind {
    let (group, plural) = (T::GROUP, T::URL_PATH_SEGMENT);
    let resource = if plural == "events" {
        Resource::EVENTS
    } else {
        Resource::fixed(group, plural)
    };
    let scale = traits.has_scale.then(|| ScalePaths {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        selector: Some(".spec.selector".to_owned()),
    });
    ServedKind {
        resource,
        group: group.to_owned(),
        versions: vec![T::VERSION.to_owned()],
        storage_version: T::VERSION.to_owned(),
        kind: T::KIND.to_owned(),
        list_kind: format!("{}List", T::KIND),
        singular: T::KIND.to_ascii_lowercase(),
        short_names: short_names.iter().map(|&s| s.to_owned()).collect(),
        categories: categories.iter().map(|&s| s.to_owned()).collect(),
        is_namespaced: !traits.is_cluster_wide,
        selectable_fields: selectable_fields(group, plural)
            .iter()
            .map(|&field| field.to_owned())
            .collect(),
        has_status: traits.has_status,
        has_generation: traits.has_generation,
        scale,
        custom: BTreeMap::new(),
    }
}

/// Fields by which lists and watches of a kind may select, as each of Kubernetes' `conversion.go` has them.
fn selectable_fields(group: &str, plural: &str) -> &'static [&'static str] {
    match (group, plural) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("", "replicationcontrollers") | ("apps", "replicasets") => &["status.replicas"],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("events.k8s.io", "events") => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        ("batch", "jobs") => &["status.successful"],
        ("certificates.k8s.io", "certificatesigningrequests") => &["spec.signerName"],
        ("resource.k8s.io", "resourceslices") => &["spec.nodeName", "spec.driver"],
        _ => &[],
    }
}

/// Calls `$call!` once with every built-in kind: type, traits, short names, categories.
macro_rules! each_builtin {
    ($call:ident) => {
        $call! {
            core::Pod, STATUS, ["po"], ["all"];
            core::Node, CLUSTER_STATUS, ["no"], [];
            core::Namespace, CLUSTER_STATUS, ["ns"], [];
            core::ConfigMap, PLAIN, ["cm"], [];
            core::Secret, PLAIN, [], [];
            core::Service, STATUS, ["svc"], ["all"];
            core::ServiceAccount, PLAIN, ["sa"], [];
            core::Event, PLAIN, ["ev"], [];
            core::Endpoints, PLAIN, ["ep"], [];
            core::PersistentVolume, CLUSTER_STATUS, ["pv"], [];
            core::PersistentVolumeClaim, STATUS, ["pvc"], [];
            core::PodTemplate, PLAIN, [], [];
            core::ReplicationController, SCALED, ["rc"], ["all"];
            core::LimitRange, PLAIN, ["limits"], [];
            core::ResourceQuota, STATUS, ["quota"], [];
            apps::Deployment, SCALED, ["deploy"], ["all"];
            apps::ReplicaSet, SCALED, ["rs"], ["all"];
            apps::StatefulSet, SCALED, ["sts"], ["all"];
            apps::DaemonSet, SPEC_STATUS, ["ds"], ["all"];
            apps::ControllerRevision, PLAIN, [], [];
            batch::Job, SPEC_STATUS, [], ["all"];
            batch::CronJob, SPEC_STATUS, ["cj"], ["all"];
            policy::PodDisruptionBudget, SPEC_STATUS, ["pdb"], [];
            autoscaling::HorizontalPodAutoscaler, STATUS, ["hpa"], ["all"];
            coordination::Lease, PLAIN, [], [];
            scheduling::PriorityClass, CLUSTER_GENERATION, ["pc"], [];
            storage::StorageClass, CLUSTER, ["sc"], [];
            storage::CSINode, CLUSTER, [], [];
            storage::CSIDriver, CLUSTER, [], [];
            storage::VolumeAttachment, CLUSTER_STATUS, [], [];
            storage::CSIStorageCapacity, PLAIN, [], [];
            networking::NetworkPolicy, PLAIN_GENERATION, ["netpol"], [];
            networking::Ingress, SPEC_STATUS, ["ing"], [];
            networking::IngressClass, CLUSTER_GENERATION, [], [];
            discovery::EndpointSlice, PLAIN_GENERATION, [], [];
            events::Event, PLAIN, ["ev"], [];
            rbac::Role, PLAIN, [], [];
            rbac::RoleBinding, PLAIN, [], [];
            rbac::ClusterRole, CLUSTER, [], [];
            rbac::ClusterRoleBinding, CLUSTER, [], [];
            node::RuntimeClass, CLUSTER, [], [];
            certificates::CertificateSigningRequest, CLUSTER_STATUS, ["csr"], [];
            admissionregistration::MutatingWebhookConfiguration, CLUSTER_GENERATION, [], ["api-extensions"];
            admissionregistration::ValidatingWebhookConfiguration, CLUSTER_GENERATION, [], ["api-extensions"];
            admissionregistration::ValidatingAdmissionPolicy, CLUSTER_SPEC_STATUS, [], ["api-extensions"];
            admissionregistration::ValidatingAdmissionPolicyBinding, CLUSTER_GENERATION, [], ["api-extensions"];
            apiextensions::CustomResourceDefinition, CLUSTER_SPEC_STATUS, ["crd", "crds"], ["api-extensions"];
            apiregistration::APIService, CLUSTER_STATUS, [], ["api-extensions"];
            flowcontrol::FlowSchema, CLUSTER_SPEC_STATUS, [], [];
            flowcontrol::PriorityLevelConfiguration, CLUSTER_SPEC_STATUS, [], [];
            resource::ResourceClaim, STATUS, [], [];
            resource::ResourceClaimTemplate, PLAIN, [], [];
            resource::ResourceSlice, CLUSTER_GENERATION, [], [];
            resource::DeviceClass, CLUSTER_GENERATION, [], [];
        }
    };
}

macro_rules! register {
    ($($type:ty, $traits:expr, [$($short:expr),*], [$($category:expr),*];)*) => {
        /// Every built-in kind.
        pub(crate) fn all() -> Kinds {
            let mut kinds = Kinds::default();
            $(kinds.register(kind::<$type>($traits, &[$($short),*], &[$($category),*]));)*
            kinds
        }
    };
}
each_builtin!(register);

/// Makes schemas as the documents of version 3 have them.
pub(crate) fn schema_generator() -> schemars::SchemaGenerator {
    schemars::generate::SchemaSettings::openapi3().into_generator()
}

macro_rules! schemas {
    ($($type:ty, $traits:expr, [$($short:expr),*], [$($category:expr),*];)*) => {
        /// Adds the schema of a built-in kind, and of all it refers to, to the generator. Answers whether it is one.
        pub(crate) fn add_schema(
            group: &str,
            kind: &str,
            generator: &mut schemars::SchemaGenerator,
        ) -> Option<schemars::Schema> {
            $(if <$type as Typed>::GROUP == group && <$type as Typed>::KIND == kind {
                return Some(generator.subschema_for::<$type>());
            })*
            None
        }
    };
}
each_builtin!(schemas);

#[cfg(test)]
mod tests;
