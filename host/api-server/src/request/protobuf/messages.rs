//! The messages that kubectl's typed commands send: the numbers, names and types of their fields.
//!
//! A table. Numbers are those of Kubernetes' `generated.proto` files.

/// How a field is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProtobufType {
    Text,
    Number,
    Flag,
    /// Bytes, which are base64 in JSON.
    Bytes,
    Message(&'static str),
    TextMap,
    BytesMap,
    QuantityMap,
    Quantity,
    IntOrString,
    Time,
}

use ProtobufType::{
    BytesMap, Flag, IntOrString, Message, Number, QuantityMap, Text, TextMap, Time,
};

/// Number, name, kind, and whether the field repeats.
pub(super) type WireField = (u64, &'static str, ProtobufType, bool);

const META: WireField = (1, "metadata", Message("ObjectMeta"), false);

/// The fields of a message.
#[expect(clippy::too_many_lines, reason = "a flat table")]
pub(super) fn message(name: &str) -> &'static [WireField] {
    match name {
        "ObjectMeta" => &[
            (1, "name", Text, false),
            (2, "generateName", Text, false),
            (3, "namespace", Text, false),
            (5, "uid", Text, false),
            (6, "resourceVersion", Text, false),
            (8, "creationTimestamp", Time, false),
            (11, "labels", TextMap, false),
            (12, "annotations", TextMap, false),
            (13, "ownerReferences", Message("OwnerReference"), true),
            (14, "finalizers", Text, true),
        ],
        "OwnerReference" => &[
            (1, "kind", Text, false),
            (3, "name", Text, false),
            (4, "uid", Text, false),
            (5, "apiVersion", Text, false),
            (6, "controller", Flag, false),
            (7, "blockOwnerDeletion", Flag, false),
        ],
        "ConfigMap" => &[
            META,
            (2, "data", TextMap, false),
            (3, "binaryData", BytesMap, false),
            (4, "immutable", Flag, false),
        ],
        "Secret" => &[
            META,
            (2, "data", BytesMap, false),
            (3, "type", Text, false),
            (4, "stringData", TextMap, false),
            (5, "immutable", Flag, false),
        ],
        "Namespace" | "ServiceAccount" => &[META],
        "Deployment" => &[META, (2, "spec", Message("DeploymentSpec"), false)],
        "DeploymentSpec" => &[
            (1, "replicas", Number, false),
            (2, "selector", Message("LabelSelector"), false),
            (3, "template", Message("PodTemplateSpec"), false),
            (4, "strategy", Message("DeploymentStrategy"), false),
            (5, "minReadySeconds", Number, false),
            (6, "revisionHistoryLimit", Number, false),
            (7, "paused", Flag, false),
            (9, "progressDeadlineSeconds", Number, false),
        ],
        "DeploymentStrategy" => &[(1, "type", Text, false)],
        "LabelSelector" => &[
            (1, "matchLabels", TextMap, false),
            (2, "matchExpressions", Message("Expression"), true),
        ],
        "Expression" => &[
            (1, "key", Text, false),
            (2, "operator", Text, false),
            (3, "values", Text, true),
        ],
        "PodTemplateSpec" | "Pod" => &[META, (2, "spec", Message("PodSpec"), false)],
        "PodSpec" => &[
            (2, "containers", Message("Container"), true),
            (3, "restartPolicy", Text, false),
            (4, "terminationGracePeriodSeconds", Number, false),
            (5, "activeDeadlineSeconds", Number, false),
            (6, "dnsPolicy", Text, false),
            (7, "nodeSelector", TextMap, false),
            (8, "serviceAccountName", Text, false),
            (10, "nodeName", Text, false),
            (19, "schedulerName", Text, false),
            (20, "initContainers", Message("Container"), true),
            (22, "tolerations", Message("Toleration"), true),
            (24, "priorityClassName", Text, false),
        ],
        "Toleration" => &[
            (1, "key", Text, false),
            (2, "operator", Text, false),
            (3, "value", Text, false),
            (4, "effect", Text, false),
            (5, "tolerationSeconds", Number, false),
        ],
        "Container" => &[
            (1, "name", Text, false),
            (2, "image", Text, false),
            (3, "command", Text, true),
            (4, "args", Text, true),
            (5, "workingDir", Text, false),
            (6, "ports", Message("ContainerPort"), true),
            (7, "env", Message("EnvVar"), true),
            (8, "resources", Message("Resources"), false),
            (14, "imagePullPolicy", Text, false),
        ],
        "ContainerPort" => &[
            (1, "name", Text, false),
            (2, "hostPort", Number, false),
            (3, "containerPort", Number, false),
            (4, "protocol", Text, false),
        ],
        "EnvVar" => &[(1, "name", Text, false), (2, "value", Text, false)],
        "Resources" => &[
            (1, "limits", QuantityMap, false),
            (2, "requests", QuantityMap, false),
        ],
        "Job" | "JobTemplate" => &[META, (2, "spec", Message("JobSpec"), false)],
        "JobSpec" => &[
            (1, "parallelism", Number, false),
            (2, "completions", Number, false),
            (3, "activeDeadlineSeconds", Number, false),
            (4, "selector", Message("LabelSelector"), false),
            (5, "manualSelector", Flag, false),
            (6, "template", Message("PodTemplateSpec"), false),
            (7, "backoffLimit", Number, false),
            (8, "ttlSecondsAfterFinished", Number, false),
        ],
        "CronJob" => &[META, (2, "spec", Message("CronJobSpec"), false)],
        "CronJobSpec" => &[
            (1, "schedule", Text, false),
            (3, "concurrencyPolicy", Text, false),
            (4, "suspend", Flag, false),
            (5, "jobTemplate", Message("JobTemplate"), false),
        ],
        "Service" => &[META, (2, "spec", Message("ServiceSpec"), false)],
        "ServiceSpec" => &[
            (1, "ports", Message("ServicePort"), true),
            (2, "selector", TextMap, false),
            (3, "clusterIP", Text, false),
            (4, "type", Text, false),
            (10, "externalName", Text, false),
        ],
        "ServicePort" => &[
            (1, "name", Text, false),
            (2, "protocol", Text, false),
            (3, "port", Number, false),
            (4, "targetPort", IntOrString, false),
            (5, "nodePort", Number, false),
        ],
        "PodDisruptionBudget" => &[META, (2, "spec", Message("BudgetSpec"), false)],
        "BudgetSpec" => &[
            (1, "minAvailable", IntOrString, false),
            (2, "selector", Message("LabelSelector"), false),
            (3, "maxUnavailable", IntOrString, false),
            (4, "unhealthyPodEvictionPolicy", Text, false),
        ],
        "PriorityClass" => &[
            META,
            (2, "value", Number, false),
            (3, "globalDefault", Flag, false),
            (4, "description", Text, false),
            (5, "preemptionPolicy", Text, false),
        ],
        "ResourceQuota" => &[META, (2, "spec", Message("QuotaSpec"), false)],
        "QuotaSpec" => &[(1, "hard", QuantityMap, false)],
        "Eviction" => &[META, (2, "deleteOptions", Message("DeleteOptions"), false)],
        "DeleteOptions" => &[
            (1, "gracePeriodSeconds", Number, false),
            (2, "preconditions", Message("Preconditions"), false),
            (3, "orphanDependents", Flag, false),
            (4, "propagationPolicy", Text, false),
            (5, "dryRun", Text, true),
        ],
        "Preconditions" => &[(1, "uid", Text, false), (2, "resourceVersion", Text, false)],
        "Binding" => &[META, (2, "target", Message("ObjectReference"), false)],
        "ObjectReference" => &[(1, "kind", Text, false), (3, "name", Text, false)],
        _ => &[],
    }
}
