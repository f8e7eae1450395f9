//! Requirements on node labels, and the reference to a NodeClass: parts that NodePool and NodeClaim share.
//!
//! Wire types only; their algebra lives in the scheduling crate. Answers to Karpenter's `pkg/apis/v1/nodeclaim.go`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

schema::words! {
    /// How a requirement relates a label to its values.
    Operator {
        /// One of the values.
        In = "In",
        /// None of the values; an absent label fits.
        NotIn = "NotIn",
        /// Any value.
        Exists = "Exists",
        /// The label is absent.
        DoesNotExist = "DoesNotExist",
        /// An integer greater than the value.
        Gt = "Gt",
        /// An integer less than the value.
        Lt = "Lt",
        /// An integer greater than or equal to the value. Karpenter's addition to Kubernetes' operators.
        Gte = "Gte",
        /// An integer less than or equal to the value. Karpenter's addition to Kubernetes' operators.
        Lte = "Lte",
    }
}

/// A requirement on a node label, and how many of its values must stay open until launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelectorRequirementWithMinValues {
    /// Key of the label.
    #[schemars(length(max = 316), regex(pattern = schema::QUALIFIED_NAME_PATTERN))]
    pub key: String,
    /// How the label relates to the values.
    pub operator: Operator,
    /// Values of the label: some for In and NotIn, none for Exists and DoesNotExist, one integer for Gt, Lt, Gte
    /// and Lte.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "maxLength" = 63,
        "pattern" = schema::LABEL_VALUE_PATTERN,
        "x-kubernetes-list-type" = "atomic"
    ))]
    pub values: Vec<String>,
    /// Alpha: the least number of different values that instance types must offer for the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50), extend("format" = ""))]
    pub min_values: Option<i64>,
}

impl NodeSelectorRequirementWithMinValues {
    /// A requirement without minValues.
    pub fn new<V: Into<String>>(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        Self {
            key: key.to_owned(),
            operator,
            values: values.into_iter().map(Into::into).collect(),
            min_values: None,
        }
    }
}

/// A requirement on a node label, as NodeOverlay has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelectorRequirement {
    /// Key of the label.
    #[schemars(length(max = 316), regex(pattern = schema::QUALIFIED_NAME_PATTERN))]
    pub key: String,
    /// How the label relates to the values.
    pub operator: Operator,
    /// Values of the label: some for In and NotIn, none for Exists and DoesNotExist, one integer for Gt, Lt, Gte
    /// and Lte.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "maxLength" = 63,
        "pattern" = schema::LABEL_VALUE_PATTERN,
        "x-kubernetes-list-type" = "atomic"
    ))]
    pub values: Vec<String>,
}

impl From<NodeSelectorRequirement> for NodeSelectorRequirementWithMinValues {
    fn from(requirement: NodeSelectorRequirement) -> Self {
        let NodeSelectorRequirement {
            key,
            operator,
            values,
        } = requirement;
        Self {
            key,
            operator,
            values,
            min_values: None,
        }
    }
}

/// Names the object that tells how the cloud is to make nodes.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct NodeClassReference {
    /// Kind of the referent.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self != ''", "message": "kind may not be empty"}]))]
    pub kind: String,
    /// Name of the referent.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self != ''", "message": "name may not be empty"}]))]
    pub name: String,
    /// API group of the referent.
    #[schemars(
        regex(pattern = "^[^/]*$"),
        extend("x-kubernetes-validations" = [{"rule": "self != ''", "message": "group may not be empty"}])
    )]
    pub group: String,
}
