//! Outcome ids: one stable number and name for everything that can come of a decision.
//!
//! Numbers and names are never reused and never change their meaning; new ones are appended to their
//! block. 1xxx pods, 2xxx pools, 3xxx claims, 4xxx nodes of a disruption scan, 5xxx commands,
//! 6xxx terminations.

macro_rules! outcomes {
    ($($variant:ident = $code:literal, $name:literal, $meaning:literal;)*) => {
        /// What came of one decision about one object.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum OutcomeId {
            $(#[doc = $meaning] $variant = $code,)*
        }

        impl OutcomeId {
            /// Every id, in order of its number.
            pub const TABLE: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable number.
            pub fn code(self) -> u16 {
                match self { $(Self::$variant => $code,)* }
            }

            /// The stable name, in kebab case.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One sentence for people.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// The id of a name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

outcomes! {
    PodOnExistingNode = 1001, "pod-on-existing-node", "The pod fits a node that exists or is on its way.";
    PodOnNewClaim = 1002, "pod-on-new-claim", "The pod is placed on a NodeClaim opened in this round.";
    PodUnschedulable = 1003, "pod-unschedulable", "No existing node and no NodePool can take the pod.";
    PodIgnored = 1004, "pod-ignored", "The pod fails validation and is left alone.";
    PodDeferred = 1005, "pod-deferred", "The pod waits for reserved capacity.";
    PodNoNodePools = 1006, "pod-no-node-pools", "There is no NodePool that is ready.";
    PodNotReached = 1007, "pod-not-reached", "The round was cut off before the pod was tried.";
    PodOffPlan = 1008, "pod-off-plan", "The scheduler bound the pod to another node than the one planned for it.";
    PoolUsed = 2001, "pool-used", "The NodePool took part in the round.";
    PoolNotReady = 2002, "pool-not-ready", "The NodePool is not ready.";
    PoolNoInstanceTypes = 2003, "pool-no-instance-types", "No instance type is known for the NodePool or allowed by it.";
    PoolLimitReached = 2004, "pool-limit-reached", "The NodePool's limits leave no room.";
    PoolStatic = 2005, "pool-static", "The NodePool keeps a fixed number of nodes.";
    PoolPremiumExceeded = 2006, "pool-premium-exceeded", "The ranking policy's plan cost more than the bound on its premium, so list prices decided.";
    ClaimCreated = 3001, "claim-created", "The NodeClaim was created.";
    ClaimCreateFailed = 3002, "claim-create-failed", "The NodeClaim could not be created.";
    ClaimLimitExceeded = 3003, "claim-limit-exceeded", "The NodePool's usage exceeds its limits, so no claim was created.";
    ClaimLaunched = 3010, "claim-launched", "An instance was launched.";
    ClaimInsufficientCapacity = 3011, "claim-insufficient-capacity", "No offering of the claim has capacity; the claim was deleted.";
    ClaimNodeClassNotReady = 3012, "claim-node-class-not-ready", "The NodeClass is not ready; the claim was deleted.";
    ClaimLaunchFailed = 3013, "claim-launch-failed", "The launch failed and is retried.";
    ClaimRegistered = 3020, "claim-registered", "The node registered.";
    ClaimInitialized = 3021, "claim-initialized", "The node is initialized.";
    ClaimLaunchTimeout = 3030, "claim-launch-timeout", "The claim did not launch in time and was deleted.";
    ClaimRegistrationTimeout = 3031, "claim-registration-timeout", "The node did not register in time; the claim was deleted.";
    ClaimGarbageCollected = 3032, "claim-garbage-collected", "The instance of the claim is gone; the claim was deleted.";
    ClaimExpired = 3033, "claim-expired", "The claim reached its expiry and was deleted.";
    InstanceGarbageCollected = 3034, "instance-garbage-collected", "The instance belongs to no claim and was terminated.";
    ClaimSurplus = 3035, "claim-surplus", "The NodePool has more nodes than replicas; the claim was deleted.";
    ClaimInterrupted = 3036, "claim-interrupted", "The cloud is about to take the instance away, or has; the claim was deleted.";
    ClaimRepaired = 3037, "claim-repaired", "The node was sick for too long; the claim was deleted at once.";
    ClaimRebooted = 3038, "claim-rebooted", "The node was sick, rebooted, and is back.";
    ClaimRebootFailed = 3039, "claim-reboot-failed", "The node was to reboot and did not come back.";
    NodeNotManaged = 4001, "node-not-managed", "The node has no NodeClaim.";
    NodeMissing = 4002, "node-missing", "The NodeClaim has no Node yet.";
    NodeNotInitialized = 4003, "node-not-initialized", "The node is not initialized.";
    NodeMarkedForDeletion = 4004, "node-marked-for-deletion", "The node is already going.";
    NodeNominated = 4005, "node-nominated", "The node is nominated for a pending pod.";
    NodeDoNotDisrupt = 4006, "node-do-not-disrupt", "The node carries do-not-disrupt.";
    NodeWithoutNodePool = 4007, "node-without-node-pool", "The node has no NodePool label.";
    NodePoolNotFound = 4008, "node-pool-not-found", "The node's NodePool does not exist or is being deleted.";
    NodePoolWithoutTypes = 4009, "node-pool-without-types", "The instance types of the node's NodePool are unknown.";
    NodePodDoNotDisrupt = 4010, "node-pod-do-not-disrupt", "A pod on the node carries do-not-disrupt.";
    NodePodManyPdbs = 4011, "node-pod-many-pdbs", "A pod on the node is matched by several PodDisruptionBudgets.";
    NodePodPdbBlocked = 4012, "node-pod-pdb-blocked", "A PodDisruptionBudget allows no eviction of a pod on the node.";
    NodeInQueue = 4013, "node-in-queue", "A command about the node is already under way.";
    NodeRebooting = 4014, "node-rebooting", "The node reboots in place.";
    NodeDoNotRepair = 4015, "node-do-not-repair", "The node is sick and carries do-not-repair.";
    NodeRepairUnbounded = 4016, "node-repair-unbounded", "The node is sick, a pod blocks its drain, and nothing bounds the drain.";
    NodeStaticPool = 4020, "node-static-pool", "The node's NodePool keeps a fixed number of nodes.";
    NodeConsolidationNever = 4021, "node-consolidation-never", "consolidateAfter is Never.";
    NodeNotConsolidatable = 4022, "node-not-consolidatable", "consolidateAfter has not passed since the last pod event.";
    NodePolicyWhenEmpty = 4023, "node-policy-when-empty", "The NodePool consolidates only empty nodes.";
    NodeTypeUnknown = 4024, "node-type-unknown", "The node's instance type is not among those of its NodePool.";
    NodeWithoutCapacityType = 4025, "node-without-capacity-type", "The node has no capacity type label.";
    NodeWithoutZone = 4026, "node-without-zone", "The node has no zone label.";
    NodeHoldsBuffer = 4027, "node-holds-buffer", "The node keeps room for a capacity buffer.";
    NodeGainTooSmall = 4028, "node-gain-too-small", "The move saves little of the bill, and not for long enough to pay for it.";
    NodeBudgetExhausted = 4030, "node-budget-exhausted", "The disruption budgets of the NodePool leave no room.";
    NodePolicySkipped = 4031, "node-policy-skipped", "The consolidation policy told to skip the node.";
    NodePolicyRejected = 4032, "node-policy-rejected", "The consolidation policy rejected the move.";
    NodePolicyHeld = 4033, "node-policy-held", "The consolidation policy put the move off.";
    NodeRepairBreaker = 4034, "node-repair-breaker", "Too many nodes of the NodePool are sick at once, so none is repaired.";
    NodeStaticAtLimit = 4035, "node-static-at-limit", "The NodePool keeps replicas and is at its limit of nodes, so no replacement can come first.";
    NodeReservationsFull = 4036, "node-reservations-full", "The capacity reservations the node could move to are full.";
    NodeStaticSurplus = 4037, "node-static-surplus", "The NodePool has more nodes than replicas, which is settled first.";
    NodePreferenceTooYoung = 4038, "node-preference-too-young", "Only the ranking policy wants the move, and not for long enough to pay for it.";
    NodePremiumExceeded = 4039, "node-premium-exceeded", "What the ranking policy prefers would cost more than the bound on its premium.";
    NodePodsDoNotFit = 4040, "node-pods-do-not-fit", "Not every pod of the node would find a place.";
    NodeNeedsManyNodes = 4041, "node-needs-many-nodes", "The pods would need several new nodes, and those would not cost less.";
    NodeNoCheaperReplacement = 4042, "node-no-cheaper-replacement", "No replacement is cheaper.";
    NodeSpotToSpotDisabled = 4043, "node-spot-to-spot-disabled", "Replacing spot by spot is switched off.";
    NodeSpotToSpotFewTypes = 4044, "node-spot-to-spot-few-types", "Replacing spot by spot needs more cheaper instance types.";
    NodeMinValues = 4045, "node-min-values", "The cheaper instance types do not satisfy minValues.";
    NodeUninitializedDestination = 4046, "node-uninitialized-destination", "The pods would go to a node that is not initialized.";
    NodeLoopGuard = 4047, "node-loop-guard", "The replacement would bring back what an earlier move took away.";
    NodeNotReached = 4048, "node-not-reached", "The scan was cut off before the node was tried.";
    NodeReplacementFailed = 4049, "node-replacement-failed", "The last replacement did not come, so the node rests.";
    NodeChosenEmpty = 4050, "node-chosen-empty", "The node is empty and goes.";
    NodeChosenDrifted = 4051, "node-chosen-drifted", "The node is drifted and is replaced.";
    NodeChosenMulti = 4052, "node-chosen-multi", "The node goes together with others.";
    NodeChosenSingle = 4053, "node-chosen-single", "The node goes.";
    NodeOutranked = 4054, "node-outranked", "The node could go, but another command goes first.";
    NodeInvalidatedChurn = 4055, "node-invalidated-churn", "The node stopped being a candidate during validation.";
    NodeInvalidatedBudget = 4056, "node-invalidated-budget", "The budget closed during validation.";
    NodeInvalidatedScheduling = 4057, "node-invalidated-scheduling", "The pods no longer fit when the move was validated.";
    NodeWithoutReason = 4058, "node-without-reason", "The node is neither empty, nor drifted, nor worth consolidating.";
    NodeChosenUnhealthy = 4059, "node-chosen-unhealthy", "The node is sick and is replaced.";
    NodeChosenReboot = 4060, "node-chosen-reboot", "The node is sick and reboots.";
    NodeChosenExpiring = 4061, "node-chosen-expiring", "The node is replaced some time before it expires.";
    CommandStarted = 5001, "command-started", "Candidates are tainted and replacements created.";
    CommandWaiting = 5002, "command-waiting", "Replacements are not initialized yet.";
    CommandSucceeded = 5003, "command-succeeded", "Replacements are ready and the candidates were deleted.";
    CommandFailed = 5004, "command-failed", "The command was given up and rolled back.";
    CommandRejected = 5005, "command-rejected", "The command did not survive validation.";
    TerminationStarted = 6001, "termination-started", "The node is tainted and drains.";
    TerminationDrained = 6002, "termination-drained", "No pod is left to wait for.";
    TerminationVolumesDetached = 6003, "termination-volumes-detached", "No volume is attached any more.";
    TerminationGracePeriodElapsed = 6004, "termination-grace-period-elapsed", "The deadline passed with work left.";
    TerminationFinished = 6005, "termination-finished", "The instance is gone.";
    PodEvicted = 6010, "pod-evicted", "The pod was evicted.";
    PodEvictionBlocked = 6011, "pod-eviction-blocked", "A PodDisruptionBudget refused the eviction.";
    PodForceDeleted = 6012, "pod-force-deleted", "The pod was deleted to meet the deadline.";
}

impl OutcomeId {
    /// Whether a scan decided that the node goes.
    pub fn is_chosen(self) -> bool {
        matches!(
            self,
            Self::NodeChosenEmpty
                | Self::NodeChosenDrifted
                | Self::NodeChosenMulti
                | Self::NodeChosenSingle
                | Self::NodeChosenUnhealthy
                | Self::NodeChosenReboot
                | Self::NodeChosenExpiring
        )
    }

    /// The table for people: `OUTCOMES.md` of this crate, which a test compares.
    pub fn document() -> String {
        use std::fmt::Write;
        let mut text = String::from(HEAD);
        let mut block = 0;
        for id in Self::TABLE {
            if id.code() / 1000 != block {
                block = id.code() / 1000;
                let title = match block {
                    1 => "Pods in a provisioning round",
                    2 => "NodePools in a provisioning round",
                    3 => "NodeClaims",
                    4 => "Nodes in a disruption scan: exactly one of these for every node",
                    5 => "Disruption commands",
                    _ => "Terminations",
                };
                writeln!(
                    text,
                    "\n## {title}\n\n| id | name | meaning |\n|---|---|---|"
                )
                .ok();
            }
            writeln!(
                text,
                "| {} | `{}` | {} |",
                id.code(),
                id.name(),
                id.meaning()
            )
            .ok();
        }
        text
    }
}

const HEAD: &str = "# Outcome ids

What can come of a decision. `mortise why` and the ledger speak in these. Numbers and names are never reused and never
change their meaning. The file is written by `cargo run -p state --example outcomes > host/state/OUTCOMES.md`.
";

impl std::fmt::Display for OutcomeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.code(), self.name())
    }
}

impl serde::Serialize for OutcomeId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> serde::Deserialize<'de> for OutcomeId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name)
            .ok_or_else(|| serde::de::Error::custom(format!("unknown outcome id `{name}`")))
    }
}
