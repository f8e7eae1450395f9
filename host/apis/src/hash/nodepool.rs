//! Which parts of a NodePool's template are hashed, under which names.
//!
//! A part that is hashed otherwise drifts every node there is. Answers to the field order of Karpenter's
//! `pkg/apis/v1/nodepool.go` and to Kubernetes' Taint.

use k8s_openapi::api::core::v1::Taint;

use super::structure::{Struct, int64, list_if_any, map_if_any, text, text_if_any, time};
use crate::{
    NodeClaimTemplate, NodeClaimTemplateMetadata, NodeClaimTemplateSpec, NodeClassReference,
};

pub(super) fn template(template: &NodeClaimTemplate) -> u64 {
    let NodeClaimTemplate { metadata, spec } = template;
    Struct::named("NodeClaimTemplate")
        .field("ObjectMeta", self::metadata(metadata).value_if_any())
        .field("Spec", self::spec(spec).value_if_any())
        .value()
}

fn metadata(metadata: &NodeClaimTemplateMetadata) -> Struct {
    let NodeClaimTemplateMetadata {
        labels,
        annotations,
    } = metadata;
    Struct::named("ObjectMeta")
        .field("Labels", map_if_any(labels))
        .field("Annotations", map_if_any(annotations))
}

fn spec(spec: &NodeClaimTemplateSpec) -> Struct {
    let NodeClaimTemplateSpec {
        taints,
        startup_taints,
        // Compared with the claim's labels instead, so that a wider requirement drifts nothing.
        requirements: _,
        node_class_ref,
        termination_grace_period,
        expire_after,
    } = spec;
    let duration = |name: &str, nanos: i64| {
        Struct::named(name)
            .field("Duration", Some(int64(nanos)))
            .value()
    };
    Struct::named("NodeClaimTemplateSpec")
        .field("Taints", list_if_any(taints, taint))
        .field("StartupTaints", list_if_any(startup_taints, taint))
        .field("NodeClassRef", Some(node_class_reference(node_class_ref)))
        // metav1.Duration holds its duration by value: a zero one adds no field but is there.
        .field(
            "TerminationGracePeriod",
            termination_grace_period.map(|period| match period.as_nanos() {
                0 => Struct::named("Duration").value(),
                nanos => duration("Duration", nanos),
            }),
        )
        .field(
            "ExpireAfter",
            expire_after
                .duration()
                .map(|after| duration("NillableDuration", after.as_nanos())),
        )
}

fn taint(taint: &Taint) -> u64 {
    let Taint {
        key,
        value,
        effect,
        time_added,
    } = taint;
    let added = |time_added: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| {
        Struct::named("Time")
            .field("Time", Some(time(time_added.0)))
            .value()
    };
    Struct::named("Taint")
        .field("Key", text_if_any(key))
        .field("Value", text_if_any(value.as_deref().unwrap_or("")))
        .field("Effect", text_if_any(effect))
        .field("TimeAdded", time_added.as_ref().map(added))
        .value()
}

fn node_class_reference(reference: &NodeClassReference) -> u64 {
    let NodeClassReference { kind, name, group } = reference;
    let field = |value: &String| (!value.is_empty()).then(|| text(value));
    Struct::named("NodeClassReference")
        .field("Kind", field(kind))
        .field("Name", field(name))
        .field("Group", field(group))
        .value()
}
