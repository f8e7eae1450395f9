//! The components that are part of the binary, built from `policies/` by the example `build-policies`.
//!
//! A test fails when a source changed and its component was not built again.

use hooks::policy_use::PolicyKind;

/// A component of the binary.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// As `data.builtin` names it.
    pub name: &'static str,
    /// Kind of decisions that it judges.
    pub kind: PolicyKind,
    component: &'static [u8],
    precompiled: &'static [u8],
}

impl Builtin {
    /// WebAssembly of the component.
    pub fn component(&self) -> &'static [u8] {
        self.component
    }

    /// The component as the build script compiled it; empty where it could not.
    pub(crate) fn precompiled(&self) -> &'static [u8] {
        self.precompiled
    }
}

macro_rules! builtin {
    ($name:literal, $kind:ident) => {
        Builtin {
            name: $name,
            kind: PolicyKind::$kind,
            component: include_bytes!(concat!("../builtin/", $name, ".wasm")),
            precompiled: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".cwasm")),
        }
    };
}

/// All of them, the defaults first. A static, so that the binary holds their bytes once.
pub static BUILTINS: &[Builtin] = &[
    builtin!("default-rank", Rank),
    builtin!("default-consolidation", Consolidation),
    builtin!("default-budgets", Budgets),
    builtin!("prefer-arm64", Rank),
    builtin!("perf-price", Rank),
    builtin!("ordered", Rank),
    builtin!("node-overhead", Rank),
    builtin!("zone-balance", Rank),
    builtin!("spot-risk", Rank),
    builtin!("commit-ledger", Rank),
    builtin!("prefer-return", Rank),
    builtin!("spot-share", Rank),
    builtin!("price-limit", Rank),
    builtin!("carbon", Rank),
    builtin!("balanced-k", Consolidation),
    builtin!("payback", Consolidation),
    builtin!("utilization-threshold", Consolidation),
    builtin!("soft-expiry", Consolidation),
    builtin!("workload-class", Consolidation),
    builtin!("canary-rollout", Budgets),
    builtin!("rate-budget", Budgets),
    builtin!("business-calendar", Budgets),
];

pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}

/// The built-in that a component is.
pub(crate) fn of_component(component: &[u8]) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|it| it.component == component)
}

/// Name of the default of a kind.
pub(crate) fn default_of(kind: PolicyKind) -> &'static str {
    match kind {
        PolicyKind::Rank => "default-rank",
        PolicyKind::Consolidation => "default-consolidation",
        PolicyKind::Budgets => "default-budgets",
    }
}
