//! The Wasm policy host: loads components, runs them within limits, answers the hooks of scheduling and
//! disruption.
//!
//! Synchronous and without a Kubernetes client: bindings come in as plain maps, states go out as values.
//! WIT types must not leave `interface/`, save for the log and what a guest imports, which `guest_state.rs` and
//! `called.rs` name. Time is read only to measure calls; whatever reaches a decision or a record comes with the round.

mod active_policy;
mod after_failure;
mod answer;
mod ask;
mod binding;
mod builtin;
mod call_context;
mod digest;
mod guest;
mod hooks;
mod host;
mod inspect;
mod interface;
mod load;
mod load_error;
mod needs;
mod random;
mod recording;
mod records;
mod registry;
mod remembered;
mod rule;
mod schema;
mod trying;
mod typo;

pub use ::hooks::binding::keys as binding_keys;
pub use ::hooks::binding::{
    AppliesTo, Authority, BindingSource, BindingState, BindingStatus, InCharge, Mode,
    NodePoolLabels, OnFailure, OtherConfigMap, PolicyRegistry,
};
pub use ::hooks::policy_use::PolicyKind;
pub use apis::ObjectKey;
pub use binding::{
    BINDING_ANNOTATIONS, BINDING_BINARY_DATA, BINDING_DATA, BINDING_LABELS, Binding, BindingError,
    BindingFacts, NodePools, PolicySource, references,
};
pub use builtin::{BUILTINS, Builtin};
pub use guest::call_failure::CallFailure;
pub use guest::limits::{CallLimits, Limits};
pub use host::{PolicyHost, StartError};
pub use inspect::{Inspection, Measured};
pub use interface::exchange::Descriptor;
pub use load_error::LoadError;
pub use needs::{NeedError, ProviderFacts};
pub use recording::{
    CallRecorder, PolicyIdentity, RecordedAnswer, RecordedCall, RecordedLine, RecordedLines,
    RecordedPolicy, RecordedQuestion, recording_files,
};
pub use records::{CallRecord, PolicyEvent, PolicyStatistics, ShadowDifference};
pub use registry::Swaps;
pub use rule::place::RuleError;
pub use rule::source::RuleSource;
pub use rule::{RuleVariable, rule_variables};
pub use schema::{ConfigSchema, SchemaError, Setting};
pub use trying::cases::{CaseError, CaseOutcome, Cases, NoCases, RecordedCases};
pub use trying::compare::{CannotCompare, Difference};
pub use trying::conformance::Conformance;
pub use trying::conformance::fault::{ConformanceFault, NotConformant};
pub use trying::laid_out::{
    AllowedNodes, JudgedMove, LaidOut, LaidOutResult, OrderedNode, RankedClaim, RankedRow,
};
pub use trying::replay::Replayed;
