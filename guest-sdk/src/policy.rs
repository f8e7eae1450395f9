//! What every policy has, whatever it judges: a name, what it needs, a configuration, the context of a call.

pub use crate::bindings::exports::mortise::policy::lifecycle::ConfigIssue;
pub use crate::bindings::mortise::policy::types::{
    Civil, Column, Context, ExtraColumn, Field, PolicyError, Scalar,
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
    /// What it must be told beside the plain tables. What is not named is not filled, and a policy that needs what
    /// a cluster cannot tell is refused when it loads.
    const NEEDS: &'static [Need] = &[];

    /// Reads the configuration. Whatever is wrong is noted in `settings`, and the host then refuses the
    /// binding; the returned value is used only when nothing is.
    fn configure(settings: &mut Settings) -> Self;
}

/// What a policy may ask to be told beside the plain tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Pods by owner.
    Workloads,
    /// Labels of Nodes.
    NodeLabels,
    /// Free addresses of subnets.
    FreeAddresses,
    /// Interruptions of spot nodes: without them the column holds "unknown" alone. A policy that gets along with
    /// that need not name it.
    InterruptionRate,
    /// What it answered when it was last asked.
    Memory,
    /// Moves that renew nodes some time before they expire.
    Expire,
}

impl Need {
    /// The word of the interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Workloads => "workloads",
            Self::NodeLabels => "node-labels",
            Self::FreeAddresses => "free-addresses",
            Self::InterruptionRate => "interruption-rate",
            Self::Memory => "memory",
            Self::Expire => "expire",
        }
    }
}

impl PolicyError {
    /// A refusal that the same input would meet again; several of them put a policy into quarantine.
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
    /// Civil time in a zone that the binding names under `time-zones`, or in `UTC`; `None` when it names another.
    pub fn civil_in(&self, zone: &str) -> Option<&Civil> {
        self.civil.iter().find(|civil| civil.zone == zone)
    }

    /// Whether a calendar of the binding contains this day in any of its zones.
    pub fn is_in_calendar(&self, name: &str) -> bool {
        self.civil.iter().any(|civil| civil.is_in_calendar(name))
    }
}

impl Civil {
    /// Whether a calendar of the binding contains this day in this zone.
    pub fn is_in_calendar(&self, name: &str) -> bool {
        self.calendars.iter().any(|known| known == name)
    }

    /// Minutes since midnight.
    pub fn minute_of_day(&self) -> u32 {
        u32::from(self.hour) * 60 + u32::from(self.minute)
    }
}
