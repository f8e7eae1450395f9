//! Karpenter's API types: NodePool, NodeClaim, EC2NodeClass, NodeOverlay, CapacityBuffer; labels, validation, hashes, quantities.
