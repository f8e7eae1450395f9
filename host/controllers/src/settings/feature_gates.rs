//! Features that can be switched, with Karpenter's names and defaults. They are one setting with a text of its own,
//! hence the file below the settings. Answers to the `FeatureGates` of `pkg/operator/options/options.go`.

use std::collections::BTreeMap;
use std::str::FromStr;

use apis::flag_text::parse_gates;

/// The help of the flag, of the names of all gates.
macro_rules! help {
    ($first:literal $(, $name:literal)*) => {
        concat!("Comma list of Name=bool: ", $first, $(", ", $name),*)
    };
}

/// A row for each gate: its field, its name, and whether it is open where nobody says anything.
macro_rules! gates {
    ($($(#[$doc:meta])* $field:ident: $name:literal = $default:literal),* $(,)?) => {
        /// Features that can be switched.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct FeatureGates {
            $($(#[$doc])* pub $field: bool,)*
        }

        impl Default for FeatureGates {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl FeatureGates {
            /// What the flag says of itself.
            pub const HELP: &'static str = help!($($name),*);

            /// Those that are named; names that nobody knows are ignored, as Karpenter does.
            fn of(given: &BTreeMap<&str, bool>) -> Self {
                Self { $($field: given.get($name).copied().unwrap_or($default),)* }
            }
        }
    };
}

gates! {
    /// Replace unhealthy nodes.
    node_repair: "NodeRepair" = false,
    /// Use capacity reservations.
    reserved_capacity: "ReservedCapacity" = true,
    /// Replace spot nodes by cheaper spot nodes.
    spot_to_spot_consolidation: "SpotToSpotConsolidation" = false,
    /// Apply NodeOverlays.
    node_overlay: "NodeOverlay" = false,
    /// Keep NodePools with replicas at their count.
    static_capacity: "StaticCapacity" = false,
    /// Keep room for CapacityBuffers.
    capacity_buffer: "CapacityBuffer" = false,
    /// Drifted nodes may go before their replacement comes where it could not come before.
    terminate_first_drift: "TerminateFirstDrift" = false,
    /// Sick nodes may.
    terminate_first_repair: "TerminateFirstRepair" = false,
    /// Write which pods are to go first onto the pods.
    pod_deletion_cost_management: "PodDeletionCostManagement" = false,
}

impl FromStr for FeatureGates {
    type Err = String;

    /// A comma list of `Name=bool`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_gates(text).map(|given| Self::of(&given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_gates_are_ignored_and_unset_gates_keep_their_default() {
        let gates: FeatureGates = "NodeRepair=true, Whatever=false".parse().unwrap();
        assert!(gates.node_repair && gates.reserved_capacity && !gates.node_overlay);
    }

    #[test]
    fn gates_are_opened_as_go_reads_switches() {
        for text in ["NodeRepair=True", "NodeRepair=1", "NodeRepair = t"] {
            let gates = text.parse::<FeatureGates>();
            assert_eq!(gates.map(|it| it.node_repair), Ok(true), "{text}");
        }
        for text in ["ReservedCapacity=False", "ReservedCapacity=0"] {
            let gates = text.parse::<FeatureGates>();
            assert_eq!(gates.map(|it| it.reserved_capacity), Ok(false), "{text}");
        }
        assert!("NodeRepair=yes".parse::<FeatureGates>().is_err());
    }

    #[test]
    fn a_gate_without_a_value_is_an_error_that_names_it() {
        let error = "NodeRepair".parse::<FeatureGates>().unwrap_err();
        assert!(error.contains("`NodeRepair`"), "{error}");
    }
}
