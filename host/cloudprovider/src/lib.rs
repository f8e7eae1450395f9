//! The port to a cloud: what the controllers ask of a provider, and the errors it may answer.
//!
//! Adapters such as `aws` implement [`CloudProvider`], and the shells call it. No type of AWS may stand here beside the
//! EC2NodeClass of `apis`, no Kubernetes client and no source of time but the [`Clock`] that is handed in. Answers to
//! Karpenter's `pkg/cloudprovider/types.go`.

mod buckets;
mod clock;
mod error;
mod interruption;
mod launch;
mod provider;
mod readiness;

pub use buckets::DURATION_BUCKETS_SECONDS;
pub use clock::Clock;
pub use error::{AttemptError, CloudProviderError, RebootError};
pub use interruption::{
    Impairment, ImpairmentKind, Interruption, InterruptionKind, InterruptionQueue,
};
pub use launch::{AttemptRecord, FleetingRecord, LISTED_AFTER, LaunchAttempt};
pub use provider::{
    CloudProvider, InstanceLife, LaunchRequest, Launched, NodeClassStatus, RegisteredNode,
    Registrable,
};
pub use readiness::check_ready;
