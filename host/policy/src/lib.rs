//! The Wasm policy host: loads components, runs them within limits, answers the hooks of scheduling and
//! disruption.
//!
//! Synchronous and without a Kubernetes client: bindings come in as plain maps, states go out as values.
//! WIT types must not leave `interface/`, save for the log and what a guest imports, which `guest_state.rs` and
//! `called.rs` name. Time is read only to measure calls; whatever reaches a decision or a record comes with the round.

mod active_policy;
mod answer;
mod ask;
mod binding;
mod builtin;
mod call;
mod call_context;
mod call_failure;
mod called;
mod cases;
mod columns;
mod compare;
mod compiler;
mod conformance;
mod digest;
mod engine;
mod golden;
mod guest_config;
mod guest_state;
mod hooks;
mod host;
mod inspect;
mod interface;
mod laid_out;
mod limits;
mod linker;
mod load;
mod load_error;
mod memories;
mod module;
mod module_cache;
mod needs;
mod precompiled;
mod random;
mod recording;
mod records;
mod registry;
mod remembered;
mod replay;
mod rule;
mod schema;

pub use ::hooks::binding::{
    AppliesTo, Authority, BindingSource, BindingState, BindingStatus, InCharge, Mode,
    NodePoolLabels, OnFailure, OtherConfigMap, PolicyRegistry,
};
pub use apis::ObjectKey;
pub use binding::{
    BINDING_ANNOTATIONS, BINDING_BINARY_DATA, BINDING_DATA, BINDING_LABELS, Binding, BindingError,
    BindingFacts, NodePools, PolicySource, references,
};
pub use builtin::{BUILTINS, Builtin};
pub use call_failure::CallFailure;
pub use cases::{CaseError, CaseOutcome, Cases, NoCases, RecordedCases};
pub use compare::{CannotCompare, Difference};
pub use conformance::Conformance;
pub use conformance::fault::{ConformanceFault, NotConformant};
pub use host::{PolicyHost, StartError};
pub use inspect::{Inspection, Measured};
pub use interface::exchange::Descriptor;
pub use laid_out::{
    AllowedNodes, JudgedMove, LaidOut, LaidOutResult, OrderedNode, RankedClaim, RankedRow,
};
pub use limits::{CallLimits, Limits, PolicyKind};
pub use load_error::LoadError;
pub use needs::{NeedError, ProviderFacts};
pub use recording::{
    CallRecorder, RecordedAnswer, RecordedCall, RecordedLine, RecordedLines, RecordedPolicy,
    RecordedQuestion, recording_files,
};
pub use records::{CallRecord, PolicyEvent, PolicyStatistics, ShadowDifference};
pub use registry::Swaps;
pub use replay::Replayed;
pub use rule::place::RuleError;
pub use rule::source::RuleSource;
pub use rule::{RuleVariable, rule_variables};
pub use schema::{ConfigSchema, SchemaError, Setting};
