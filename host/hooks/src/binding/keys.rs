//! The keys by which a ConfigMap is a binding, each once for those who watch, read, write and show it.
//!
//! What they may hold is in `policies/README.md`.

/// Label of a binding; its value is the kind of policy.
pub const POLICY_LABEL: &str = "mortise.dev/policy";

/// Annotation: mode of the policy, `enforce`, `shadow`, `canary:N%` or `off`.
pub const MODE_ANNOTATION: &str = "mortise.dev/mode";
/// Annotation: names and globs of the NodePools that it is for.
pub const NODE_POOLS_ANNOTATION: &str = "mortise.dev/nodepools";
/// Annotation: a selector on the labels of those NodePools.
pub const NODE_POOL_SELECTOR_ANNOTATION: &str = "mortise.dev/nodepool-selector";
/// Annotation: its place in the chain.
pub const ORDER_ANNOTATION: &str = "mortise.dev/order";
/// Annotation: who decides when it fails.
pub const ON_FAILURE_ANNOTATION: &str = "mortise.dev/on-failure";
/// Annotation: whether it may allow more than was declared.
pub const AUTHORITY_ANNOTATION: &str = "mortise.dev/authority";
/// Annotation: names of the ConfigMaps with the chunks of its component.
pub const PARTS_ANNOTATION: &str = "mortise.dev/parts";
/// Annotation: keys of pod labels that it is told.
pub const WORKLOAD_LABELS_ANNOTATION: &str = "mortise.dev/workload-labels";
/// Annotation: where the binding stands, as JSON. The controller's own.
pub const STATUS_ANNOTATION: &str = "mortise.dev/status";

/// Key of `data`: the expression that ranks, approves or allows.
pub const RULE_KEY: &str = "rule";
/// Key of `data`: conditions that exclude offerings, one a line.
pub const EXCLUDE_KEY: &str = "exclude";
/// Key of `data`: names for expressions, one a line.
pub const VARIABLES_KEY: &str = "variables";
/// Key of `data`: an expression that gives the reason.
pub const MESSAGE_KEY: &str = "message";
/// Key of `data`: kinds of moves that a consolidation rule judges.
pub const APPLIES_TO_KEY: &str = "applies-to";
/// Key of `data`: name of a policy that is part of the program.
pub const BUILTIN_KEY: &str = "builtin";
/// Key of `data`: a component in a registry, which nobody fetches.
pub const MODULE_KEY: &str = "module";
/// Key of `data`: settings in YAML or JSON.
pub const CONFIG_KEY: &str = "config";
/// Key of `data`: name of a ConfigMap with the settings, or name and key.
pub const CONFIG_FROM_KEY: &str = "config-from";
/// Key of `data`: zones whose civil time it is told.
pub const TIME_ZONES_KEY: &str = "time-zones";
/// Key of `data`: days by the name of their calendar.
pub const CALENDARS_KEY: &str = "calendars";
/// Key of `data`: interruptions by instance type or family.
pub const INTERRUPTION_RATES_KEY: &str = "interruption-rates";
/// Key of `data`: digest of the component, in hex.
pub const SHA256_KEY: &str = "sha256";
