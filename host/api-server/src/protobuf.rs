//! The protobuf that kubectl's typed commands send (`create deployment`, `drain`, `auth can-i`), read into JSON.
//!
//! Only what those commands send is known: a table of field numbers by message. Fields outside it are dropped,
//! as a server drops fields it does not know. Numbers are those of Kubernetes' `generated.proto` files.

use serde_json::{Map, Value, json};

use super::status::StatusError;

/// How a field is read.
#[derive(Debug, Clone, Copy)]
enum ProtobufType {
    Text,
    Number,
    Flag,
    /// Base64 in JSON.
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
    Bytes, BytesMap, Flag, IntOrString, Message, Number, Quantity, QuantityMap, Text, TextMap, Time,
};

/// Number, name, kind, and whether the field repeats.
type WireField = (u64, &'static str, ProtobufType, bool);

const META: WireField = (1, "metadata", Message("ObjectMeta"), false);

/// The fields of a message.
#[expect(clippy::too_many_lines, reason = "a flat table")]
fn message(name: &str) -> &'static [WireField] {
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

/// Numbers that Go writes as zero when they are not set.
const ZERO_IS_ABSENT: [&str; 3] = ["hostPort", "nodePort", "minReadySeconds"];

/// Reads a body in Kubernetes' protobuf envelope.
pub(super) fn decode(body: &[u8]) -> Result<Value, StatusError> {
    let bad = || StatusError::bad_request("the protobuf in the body of the request cannot be read");
    let envelope = body.strip_prefix(b"k8s\0").ok_or_else(bad)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, part) in parts(envelope).ok_or_else(bad)? {
        match (number, part) {
            (1, WireValue::Bytes(meta)) => {
                for (number, part) in parts(meta).ok_or_else(bad)? {
                    if let WireValue::Bytes(text) = part {
                        let text = String::from_utf8_lossy(text).into_owned();
                        if number == 1 {
                            api_version = text;
                        } else {
                            kind = text;
                        }
                    }
                }
            }
            (2, WireValue::Bytes(object)) => raw = object,
            _ => {}
        }
    }
    let is_review = kind.ends_with("Review") || kind == "TokenRequest";
    if message(&kind).is_empty() && !is_review {
        return Err(StatusError::unsupported_media_type(&format!(
            "application/vnd.kubernetes.protobuf of a {kind}"
        )));
    }
    let mut object = read(&kind, raw).ok_or_else(bad)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// A field's content on the wire.
enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        shift += 7;
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn parts(mut bytes: &[u8]) -> Option<Vec<(u64, WireValue<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let part = match tag & 7 {
            0 => WireValue::Number(varint(&mut bytes)?),
            1 => WireValue::Bytes(take(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                WireValue::Bytes(take(&mut bytes, length)?)
            }
            5 => WireValue::Bytes(take(&mut bytes, 4)?),
            _ => return None,
        };
        found.push((tag >> 3, part));
    }
    Some(found)
}

fn read(name: &str, bytes: &[u8]) -> Option<Value> {
    let mut object = Map::new();
    let fields = message(name);
    for (number, part) in parts(bytes)? {
        let Some((_, field, kind, repeats)) = fields.iter().find(|f| f.0 == number) else {
            continue;
        };
        match kind {
            TextMap | BytesMap | QuantityMap => {
                let WireValue::Bytes(entry) = part else {
                    continue;
                };
                let (key, value) = map_entry(*kind, entry)?;
                let map = object.entry(*field).or_insert_with(|| json!({}));
                map[key] = value;
            }
            _ => {
                let Some(value) = scalar(*kind, &part)? else {
                    continue;
                };
                if value == json!(0) && ZERO_IS_ABSENT.contains(field) {
                    continue;
                }
                if *repeats {
                    let list = object.entry(*field).or_insert_with(|| json!([]));
                    list.as_array_mut()?.push(value);
                } else {
                    object.insert((*field).to_owned(), value);
                }
            }
        }
    }
    Some(Value::Object(object))
}

/// The value of a field; the inner `None` means that it says nothing.
#[expect(
    clippy::option_option,
    reason = "unreadable and absent are different answers"
)]
fn scalar(kind: ProtobufType, part: &WireValue<'_>) -> Option<Option<Value>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(match (kind, part) {
        (Number, WireValue::Number(n)) => Some(json!(n.cast_signed())),
        (Flag, WireValue::Number(n)) => Some(json!(*n != 0)),
        // Go writes empty texts that JSON leaves out.
        (Text, WireValue::Bytes(bytes)) => (!bytes.is_empty()).then(|| text(bytes).into()),
        (Bytes, WireValue::Bytes(bytes)) => {
            use base64::Engine as _;
            Some(
                base64::engine::general_purpose::STANDARD
                    .encode(bytes)
                    .into(),
            )
        }
        (Message(name), WireValue::Bytes(bytes)) => Some(read(name, bytes)?),
        (Quantity, WireValue::Bytes(bytes)) => parts(bytes)?.into_iter().find_map(|p| match p {
            (1, WireValue::Bytes(bytes)) => Some(text(bytes).into()),
            _ => None,
        }),
        (IntOrString, WireValue::Bytes(bytes)) => Some(int_or_string(bytes)?),
        // Times are the server's to set.
        _ => None,
    })
}

fn int_or_string(bytes: &[u8]) -> Option<Value> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for (field, part) in parts(bytes)? {
        match (field, part) {
            (1, WireValue::Number(kind)) => is_text = kind == 1,
            (2, WireValue::Number(n)) => number = n.cast_signed(),
            (3, WireValue::Bytes(bytes)) => text = String::from_utf8_lossy(bytes).into_owned(),
            _ => {}
        }
    }
    Some(if is_text { text.into() } else { number.into() })
}

fn map_entry(kind: ProtobufType, bytes: &[u8]) -> Option<(String, Value)> {
    let value_kind = match kind {
        BytesMap => Bytes,
        QuantityMap => Quantity,
        _ => Text,
    };
    let (mut key, mut value) = (String::new(), Value::String(String::new()));
    for (number, part) in parts(bytes)? {
        match (number, &part) {
            (1, WireValue::Bytes(bytes)) => key = String::from_utf8_lossy(bytes).into_owned(),
            (2, _) => {
                if let Some(read) = scalar(value_kind, &part)? {
                    value = read;
                }
            }
            _ => {}
        }
    }
    Some((key, value))
}
