//! A binding, by which somebody puts a policy in charge: what its ConfigMap says, how it is in charge, where it
//! stands, and the port between those who watch ConfigMaps and the host of policies.
//!
//! Plain values; reading them is the host's. What a binding may say is in `policies/README.md`; Karpenter has no such
//! thing.

pub mod keys;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use apis::ObjectKey;
use serde::{Deserialize, Serialize};

/// The port to the policies. Applying is idempotent.
pub trait PolicyRegistry: Send + Sync {
    /// Loads what the binding names and swaps it in between two rounds, or refuses it and keeps the old one. May take
    /// some hundred milliseconds: for a thread that may block.
    fn apply(&self, source: &BindingSource) -> BindingStatus;

    /// Takes the binding away: what it replaced decides from the next round.
    fn remove(&self, key: &ObjectKey);

    /// Names of the ConfigMaps beside a binding without which it cannot be read.
    fn references(&self, source: &BindingSource) -> Vec<String>;

    /// Takes in what NodePools there are, before the first binding and whenever that changes.
    fn set_node_pools(&self, pools: NodePoolLabels);

    /// Where a binding stands now.
    fn status(&self, key: &ObjectKey) -> Option<BindingStatus>;

    /// Failures of the binding at work since the last call, a sentence each.
    fn take_failures(&self, key: &ObjectKey) -> Vec<String>;

    /// From now on `listener`, and no other, is called when a binding failed at work, or another status came of that.
    fn listen(&self, listener: BindingListener);
}

/// Hears which binding has another status or a failure to be read. Called while a round is decided, so it must be
/// quick.
pub type BindingListener = Arc<dyn Fn(&ObjectKey) + Send + Sync>;

/// A ConfigMap as plain maps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct BindingSource {
    /// Namespace of the ConfigMap.
    pub namespace: String,
    /// Name of the ConfigMap.
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// Text values of the ConfigMap, by key.
    pub data: BTreeMap<String, String>,
    /// Its binary values, decoded.
    pub binary_data: BTreeMap<String, Vec<u8>>,
    /// Of the ConfigMaps beside it that it names, those that there are.
    pub others: BTreeMap<String, OtherConfigMap>,
}

impl BindingSource {
    /// Who the binding is.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}

/// A ConfigMap that a binding names, as plain maps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct OtherConfigMap {
    /// Text values of the ConfigMap, by key.
    pub data: BTreeMap<String, String>,
    /// Its binary values, decoded.
    pub binary_data: BTreeMap<String, Vec<u8>>,
}

/// Every NodePool of a cluster, with its labels.
pub type NodePoolLabels = BTreeMap<String, BTreeMap<String, String>>;

/// Where a binding stands, and what is in charge under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingStatus {
    /// Namespace and name of the binding's ConfigMap.
    pub key: ObjectKey,
    /// Whether the binding decides, was refused, or is asked no more.
    pub state: BindingState,
    /// Digest of the component in charge under this binding, if any.
    pub digest: Option<String>,
    /// CamelCase word for the state.
    pub reason: String,
    /// One sentence for a person.
    pub message: String,
    /// How a policy is in charge under this binding, if one is.
    pub in_charge: Option<InCharge>,
    /// Calls since the process started, whatever bytes were in charge.
    pub calls: u64,
    /// Calls that failed since the process started.
    pub failures: u64,
}

impl BindingStatus {
    /// Of a binding that was refused, and of which nothing is in charge.
    pub fn refused(key: ObjectKey, reason: &str, message: String) -> Self {
        Self {
            key,
            state: BindingState::Degraded,
            digest: None,
            reason: reason.to_owned(),
            message,
            in_charge: None,
            calls: 0,
            failures: 0,
        }
    }
}

/// Where a binding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindingState {
    /// This very binding decides, or would if its mode let it.
    Ready,
    /// It was refused; what decided before goes on.
    Degraded,
    /// It failed too often at work and is not asked until it changes.
    Quarantined,
}

/// How a policy is in charge; as JSON in the words of its binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InCharge {
    /// Use that is made of the policy's answer.
    pub mode: Mode,
    /// Place in the chain.
    pub order: i32,
    /// Who decides when it fails.
    pub on_failure: OnFailure,
    /// How far a budgets policy reaches.
    pub authority: Authority,
    /// The NodePools it is for.
    #[serde(flatten)]
    pub applies_to: AppliesTo,
}

/// The NodePools of a cluster that a binding is for; none of none where nobody told what NodePools there are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AppliesTo {
    /// The NodePools that the binding decides for, or watches.
    #[serde(rename = "nodePools")]
    pub names: Vec<String>,
    /// How many NodePools there are.
    #[serde(rename = "nodePoolsTotal")]
    pub total: usize,
    /// Names and patterns in the binding's annotations that match no NodePool, each with a guess what was meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
}

/// Use that is made of a policy's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Mode {
    /// The policy decides.
    Enforce,
    /// It is asked after the decision, and the difference is reported.
    Shadow,
    /// It decides for so many of a hundred NodePools, picked by their names.
    Canary {
        /// Share of the NodePools, 0 to 100.
        percent: u8,
    },
    /// It is checked and not asked.
    Off,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enforce => f.write_str("enforce"),
            Self::Shadow => f.write_str("shadow"),
            Self::Canary { percent } => write!(f, "canary:{percent}%"),
            Self::Off => f.write_str("off"),
        }
    }
}

/// No mode is called so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a mode is enforce, shadow, canary:10% or off")]
pub struct UnknownMode;

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        match text {
            "enforce" => Ok(Self::Enforce),
            "shadow" => Ok(Self::Shadow),
            "off" => Ok(Self::Off),
            other => other
                .strip_prefix("canary:")
                .and_then(|rest| rest.strip_suffix('%'))
                .and_then(|percent| percent.parse().ok())
                .filter(|percent| *percent <= 100)
                .map(|percent| Self::Canary { percent })
                .ok_or(UnknownMode),
        }
    }
}

impl TryFrom<String> for Mode {
    type Error = UnknownMode;

    fn try_from(text: String) -> Result<Self, UnknownMode> {
        text.parse()
    }
}

impl From<Mode> for String {
    fn from(mode: Mode) -> Self {
        mode.to_string()
    }
}

/// Who decides when the policy fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The built-in default decides.
    Default,
    /// Nobody decides: nothing is disrupted this round.
    Hold,
}

/// How far a budgets policy reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Authority {
    /// The declared budgets hold in any case.
    Lower,
    /// Its answer stands in for the declared budgets.
    Replace,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for text in ["enforce", "shadow", "canary:0%", "canary:100%", "off"] {
            assert_eq!(text.parse::<Mode>().map(String::from), Ok(text.to_owned()));
        }
        for text in [
            "",
            "Enforce",
            "canary",
            "canary:10",
            "canary:101%",
            "canary:-1%",
        ] {
            assert_eq!(text.parse::<Mode>(), Err(UnknownMode), "{text}");
        }
    }
}
