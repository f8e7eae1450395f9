//! What every policy has, whatever it judges: a name, a configuration, the context of a call.

pub use crate::bindings::exports::mortise::policy::lifecycle::ConfigIssue;
pub use crate::bindings::mortise::policy::types::{
    Civil, Column, Context, ExtraColumn, PolicyError,
};
use crate::config::Settings;

/// Value of a `sym` that means "none".
pub const NO_SYM: u32 = u32::MAX;
/// Value of a seconds column that means "never" or "none".
pub const NEVER: u32 = u32::MAX;

/// Common to all policies. A value of the type is one configured policy.
pub trait Policy: Sized + 'static {
    /// Kebab-case name, shown by `mortise policy status`.
    const NAME: &'static str;
    /// One line on what it does.
    const SUMMARY: &'static str;
    /// Version of the policy.
    const VERSION: &'static str = "0.1.0";
    /// JSON Schema of the configuration; empty when there is none.
    const CONFIG_SCHEMA: &'static str = "";

    /// Reads the configuration. Whatever is wrong is noted in `settings`, and the host then refuses the
    /// binding; the returned value is used only when nothing is.
    fn configure(settings: &mut Settings) -> Self;
}

impl PolicyError {
    /// A refusal that the same input would meet again.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            transient: false,
        }
    }

    /// A refusal that may pass, such as missing data.
    pub fn transient(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            transient: true,
        }
    }
}

impl Context {
    /// Civil time in a zone that the binding names; `None` when it names another.
    pub fn civil_in(&self, zone: &str) -> Option<&Civil> {
        self.civil.iter().find(|civil| civil.zone == zone)
    }
}
