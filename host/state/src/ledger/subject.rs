//! Subjects of questions to the ledger.

/// Object that a question to the ledger is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A pod, by `namespace/name`.
    Pod(String),
    Node(String),
    /// A NodeClaim, by name.
    Claim(String),
    /// A NodePool, by name.
    Pool(String),
}

impl Subject {
    /// The subject of `why KIND NAME`; a pod without namespace is in `default`.
    pub fn parse(kind: &str, name: &str) -> Option<Self> {
        let name = name.to_owned();
        match kind {
            "node" | "nodes" | "no" => Some(Self::Node(name)),
            "pod" | "pods" | "po" if name.contains('/') => Some(Self::Pod(name)),
            "pod" | "pods" | "po" => Some(Self::Pod(format!("default/{name}"))),
            "claim" | "nodeclaim" | "nodeclaims" => Some(Self::Claim(name)),
            "nodepool" | "nodepools" | "pool" => Some(Self::Pool(name)),
            _ => None,
        }
    }

    pub(super) fn words(&self) -> (&'static str, &str) {
        match self {
            Self::Pod(name) => ("pod", name),
            Self::Node(name) => ("node", name),
            Self::Claim(name) => ("claim", name),
            Self::Pool(name) => ("nodepool", name),
        }
    }
}
