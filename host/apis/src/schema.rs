//! Pieces of OpenAPI schema that several kinds share, and the macro for closed sets of words.
//!
//! Answers to the kubebuilder markers of Karpenter's types. Only what cannot be told by the Rust type stands here.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Qualified name: optional DNS prefix, slash, name.
pub(crate) const QUALIFIED_NAME_PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
/// Label value.
pub(crate) const LABEL_VALUE_PATTERN: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// Any text that Kubernetes' quantity parser takes.
pub(crate) const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
/// Plain durations of the API: whole hours, minutes and seconds.
pub(crate) const DURATION_PATTERN: &str = "^([0-9]+(s|m|h))+$";

/// One taint, stricter than the core type.
pub(crate) fn taints(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "description": "A node with a taint takes only pods that tolerate the taint.",
            "required": ["effect", "key"],
            "properties": {
                "key": {
                    "type": "string",
                    "description": "Key of the taint.",
                    "minLength": 1,
                    "pattern": QUALIFIED_NAME_PATTERN,
                },
                "value": {
                    "type": "string",
                    "description": "Value of the taint.",
                    "pattern": QUALIFIED_NAME_PATTERN,
                },
                "effect": {
                    "type": "string",
                    "description": "What happens to pods that do not tolerate the taint.",
                    "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"],
                },
                "timeAdded": {
                    "type": "string",
                    "description": "When the taint was added; written for NoExecute only.",
                    "format": "date-time",
                },
            },
        },
    })
}

/// Name to quantity. The quantity itself gets its schema from [`crate::crd`].
pub(crate) fn resource_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}})
}

/// Label values.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 100,
        "x-kubernetes-map-type": "atomic",
        "additionalProperties": {"type": "string", "maxLength": 63, "pattern": LABEL_VALUE_PATTERN},
    })
}

/// Tags of a selector term.
pub(crate) fn selector_tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 20,
        "additionalProperties": {"type": "string"},
        "x-kubernetes-validations": [{
            "message": "tags: keys and values may not be empty",
            "rule": "self.all(k, k != '' && self[k] != '')",
        }],
    })
}

/// Conditions of all kinds but NodeClaim.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    conditions_with(
        &json_schema!({
            "type": "string",
            "description": "Why the condition has its status, in CamelCase.",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        }),
        &["lastTransitionTime", "message", "reason", "status", "type"],
    )
}

/// NodeClaim's conditions, which came from clients that gave no reason.
pub(crate) fn node_claim_conditions(_: &mut SchemaGenerator) -> Schema {
    conditions_with(
        &json_schema!({
            "type": "string",
            "description": "Why the condition has its status, in CamelCase; may be empty.",
            "maxLength": 1024,
            "pattern": "^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$",
        }),
        &["lastTransitionTime", "status", "type"],
    )
}

fn conditions_with(reason: &Schema, required: &[&str]) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One aspect of the object's present state.",
            "required": required,
            "properties": {
                "type": {
                    "type": "string",
                    "description": "Type of the condition, in CamelCase.",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
                "status": {
                    "type": "string",
                    "description": "True, False or Unknown.",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": reason,
                "message": {
                    "type": "string",
                    "description": "Details for people.",
                    "maxLength": 32768,
                },
                "lastTransitionTime": {
                    "type": "string",
                    "description": "When the status last changed.",
                    "format": "date-time",
                },
                "observedGeneration": {
                    "type": "integer",
                    "description": "Generation of the object that the condition speaks of.",
                    "format": "int64",
                    "minimum": 0,
                },
            },
        },
    })
}

/// A closed set of words: the enum, its text, serde and schema from one list.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every word, in declaration order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The value behind a word.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "enum": [$($text,)+]})
            }
        }
    };
}
pub(crate) use words;
