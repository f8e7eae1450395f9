//! References to a node of the cluster, before and after its Node is there.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A node by one of the two objects that stand for it. Ordered by name, as reports are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NodeRef {
    /// By the name of its Node.
    Node(Arc<str>),
    /// By the name of its NodeClaim; all that there is of a node until it registers.
    Claim(Arc<str>),
}

impl NodeRef {
    /// The node of this Node.
    pub fn node(name: impl Into<Arc<str>>) -> Self {
        Self::Node(name.into())
    }

    /// The node of this NodeClaim.
    pub fn claim(name: impl Into<Arc<str>>) -> Self {
        Self::Claim(name.into())
    }

    /// The name, of whichever object it is.
    pub fn name(&self) -> &str {
        match self {
            Self::Node(name) | Self::Claim(name) => name,
        }
    }

    /// The name of the Node, where that is what it goes by.
    pub fn node_name(&self) -> Option<&str> {
        match self {
            Self::Node(name) => Some(name),
            Self::Claim(_) => None,
        }
    }
}

impl Ord for NodeRef {
    fn cmp(&self, other: &Self) -> Ordering {
        let is_claim = |it: &Self| matches!(it, Self::Claim(_));
        (self.name(), is_claim(self)).cmp(&(other.name(), is_claim(other)))
    }
}

impl PartialOrd for NodeRef {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Writes the name of the Node or the claim.
impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_in_order_of_their_names_and_a_claim_is_no_node_of_the_same_name() {
        let mut all = [
            NodeRef::claim("b"),
            NodeRef::node("c"),
            NodeRef::node("b"),
            NodeRef::claim("a"),
        ];
        all.sort();
        let all: Vec<String> = all.iter().map(|it| format!("{it:?}")).collect();
        let expected = [
            r#"Claim("a")"#,
            r#"Node("b")"#,
            r#"Claim("b")"#,
            r#"Node("c")"#,
        ];
        assert_eq!(all, expected);
        assert_eq!(NodeRef::node("b").node_name(), Some("b"));
        assert_eq!(NodeRef::claim("b").node_name(), None);
    }
}
