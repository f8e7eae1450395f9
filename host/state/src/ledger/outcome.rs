//! Outcome ids: one stable number and name for everything that can come of a decision.
//!
//! Numbers and names are never reused and never change their meaning; new ones are appended to their
//! block. 1xxx pods, 2xxx pools, 3xxx claims, 4xxx nodes of a disruption scan, 5xxx commands,
//! 6xxx terminations. A row is the number, the gate of a scan at which it leaves a node, the name, what it means, and
//! what people can do about it. An outcome by which the node goes, or of no scan, is at no gate.

use super::gate::NodeGate;

macro_rules! gate {
    () => {
        None
    };
    ($gate:ident) => {
        Some(NodeGate::$gate)
    };
}

macro_rules! outcomes {
    ($($variant:ident = $code:literal $(at $gate:ident)?, $name:literal, $meaning:literal, $advice:literal;)*) => {
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

            /// Where it leaves a node in a scan.
            pub(super) fn gate(self) -> Option<NodeGate> {
                match self { $(Self::$variant => gate!($($gate)?),)* }
            }

            /// The stable name, in kebab case.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One sentence for people.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// What people can do about it, as docs/troubleshooting.md has it.
            pub fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice,)* }
            }

            /// The id of a name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

outcomes! {
    PodOnExistingNode = 1001, "pod-on-existing-node", "The pod fits a node that exists or is on its way.",
        "Nothing: its node is there or on its way. Where it waits long, ask `why claim` of the NodeClaim.";
    PodOnNewClaim = 1002, "pod-on-new-claim", "The pod is placed on a NodeClaim opened in this round.",
        "Nothing: a NodeClaim was opened for it.";
    PodUnschedulable = 1003, "pod-unschedulable", "No existing node and no NodePool can take the pod.",
        "Read what each NodePool says, and the nearest miss: often a label that no pool allows, a taint that the pod does not tolerate, a zone that its volume is bound to, or a request that exceeds every type. `mortise simulate --explain` with the pod and your pools tries a mend.";
    PodIgnored = 1004, "pod-ignored", "The pod fails validation and is left alone.",
        "The pod asks for what cannot be: an unknown operator, a claim of a volume that does not exist, a class of storage without a provisioner. The text names it.";
    PodDeferred = 1005, "pod-deferred", "The pod waits for reserved capacity.",
        "It waits for a capacity reservation that is about to have room. Where that takes too long, allow `on-demand` in the pool.";
    PodNoNodePools = 1006, "pod-no-node-pools", "There is no NodePool that is ready.",
        "`kubectl get nodepools`: none is `Ready`. See 2002.";
    PodNotReached = 1007, "pod-not-reached", "The round was cut off before the pod was tried.",
        "The next round takes it up. Where that is seldom so, look at how long rounds take: `karpenter_scheduler_scheduling_duration_seconds`.";
    PodOffPlan = 1008, "pod-off-plan", "The scheduler bound the pod to another node than the one planned for it.",
        "The scheduler put it elsewhere. Harmless alone; where it happens often, see that the API server lets the controller patch `pods/status`, and that pods have the default scheduler.";
    PoolUsed = 2001, "pool-used", "The NodePool took part in the round.",
        "Nothing.";
    PoolNotReady = 2002, "pool-not-ready", "The NodePool is not ready.",
        "`kubectl describe nodepool`: the condition that is not `True` has the reason; most often its EC2NodeClass is not ready, or there is none of that name.";
    PoolNoInstanceTypes = 2003, "pool-no-instance-types", "No instance type is known for the NodePool or allowed by it.",
        "The requirements exclude each other or all that the region sells. Take them away one by one with `mortise simulate --explain`.";
    PoolLimitReached = 2004, "pool-limit-reached", "The NodePool's limits leave no room.",
        "Raise `spec.limits`, or free something: `karpenter_nodepools_usage` beside `karpenter_nodepools_limit`.";
    PoolStatic = 2005, "pool-static", "The NodePool keeps a fixed number of nodes.",
        "Pods bring no nodes to a pool with `replicas`; `kubectl scale nodepool` does.";
    PoolPremiumExceeded = 2006, "pool-premium-exceeded", "The ranking policy's plan cost more than the bound on its premium, so list prices decided.",
        "Your ranking policy would have cost more than its bound. Raise `mortise.dev/max-premium` of the pool where that is meant, or mend the policy: `mortise policy run` shows its scores beside list prices.";
    ClaimCreated = 3001, "claim-created", "The NodeClaim was created.",
        "Nothing.";
    ClaimCreateFailed = 3002, "claim-create-failed", "The NodeClaim could not be created.",
        "The API server refused it: quota of objects, an admission webhook, missing rights. The text has its answer.";
    ClaimLimitExceeded = 3003, "claim-limit-exceeded", "The NodePool's usage exceeds its limits, so no claim was created.",
        "As 2004: the pool grew past its limits between plan and launch.";
    ClaimLaunched = 3010, "claim-launched", "An instance was launched.",
        "Nothing: an instance is starting.";
    ClaimInsufficientCapacity = 3011, "claim-insufficient-capacity", "No offering of the claim has capacity; the claim was deleted.",
        "EC2 has none of the offerings. Allow more types, families and zones; for spot at least 15 types. What failed is not asked again for three minutes.";
    ClaimNodeClassNotReady = 3012, "claim-node-class-not-ready", "The NodeClass is not ready; the claim was deleted.",
        "`kubectl describe ec2nodeclass`: subnets, security groups, images or the role were not found.";
    ClaimLaunchFailed = 3013, "claim-launch-failed", "The launch failed and is retried.",
        "The text has EC2's error: rights that are missing, a quota of vCPUs, a user data that is too large. It is tried again.";
    ClaimRegistered = 3020, "claim-registered", "The node registered.",
        "Nothing.";
    ClaimInitialized = 3021, "claim-initialized", "The node is initialized.",
        "Nothing: the node is open.";
    ClaimLaunchTimeout = 3030, "claim-launch-timeout", "The claim did not launch in time and was deleted.",
        "Five minutes without an instance: as 3011 and 3013.";
    ClaimRegistrationTimeout = 3031, "claim-registration-timeout", "The node did not register in time; the claim was deleted.",
        "The instance ran for fifteen minutes and no node came: see [a node that does not join](#a-node-that-does-not-join).";
    ClaimGarbageCollected = 3032, "claim-garbage-collected", "The instance of the claim is gone; the claim was deleted.",
        "Somebody or something ended the instance behind the back of the cluster: CloudTrail knows who.";
    ClaimExpired = 3033, "claim-expired", "The claim reached its expiry and was deleted.",
        "`expireAfter` of the pool. To renew nodes at hours of your choice, see the policy `soft-expiry`.";
    InstanceGarbageCollected = 3034, "instance-garbage-collected", "The instance belongs to no claim and was terminated.",
        "An instance with our tags and without a NodeClaim was ended: a NodeClaim whose finalizer was taken off by hand leaves such.";
    ClaimSurplus = 3035, "claim-surplus", "The NodePool has more nodes than replicas; the claim was deleted.",
        "Nothing: `replicas` was lowered.";
    ClaimInterrupted = 3036, "claim-interrupted", "The cloud is about to take the instance away, or has; the claim was deleted.",
        "Spot was taken back, or the instance was stopped or ended. Where it is always the same type, see the policy `spot-risk`.";
    ClaimRepaired = 3037, "claim-repaired", "The node was sick for too long; the claim was deleted at once.",
        "The node was sick for too long and went at once.";
    ClaimRebooted = 3038, "claim-rebooted", "The node was sick, rebooted, and is back.",
        "Nothing: it is back.";
    ClaimRebootFailed = 3039, "claim-reboot-failed", "The node was to reboot and did not come back.",
        "It is replaced.";
    NodeNotManaged = 4001 at Managed, "node-not-managed", "The node has no NodeClaim.",
        "Nothing: it is another's node.";
    NodeMissing = 4002 at Ready, "node-missing", "The NodeClaim has no Node yet.",
        "The NodeClaim has no node yet; ask `why claim`.";
    NodeNotInitialized = 4003 at Ready, "node-not-initialized", "The node is not initialized.",
        "Wait; where it lasts, a startup taint stays or an extended resource does not appear: `kubectl describe nodeclaim`.";
    NodeMarkedForDeletion = 4004 at Ready, "node-marked-for-deletion", "The node is already going.",
        "Nothing: it is going; see [nodes that go](#nodes-that-go).";
    NodeNominated = 4005 at Undisturbed, "node-nominated", "The node is nominated for a pending pod.",
        "A pod is on its way to it.";
    NodeDoNotDisrupt = 4006 at Undisturbed, "node-do-not-disrupt", "The node carries do-not-disrupt.",
        "Take `karpenter.sh/do-not-disrupt` off the node, if it is not meant.";
    NodeWithoutNodePool = 4007 at Pool, "node-without-node-pool", "The node has no NodePool label.",
        "Somebody took the label `karpenter.sh/nodepool` off the node.";
    NodePoolNotFound = 4008 at Pool, "node-pool-not-found", "The node's NodePool does not exist or is being deleted.",
        "Its NodePool was deleted; its nodes go with it.";
    NodePoolWithoutTypes = 4009 at Pool, "node-pool-without-types", "The instance types of the node's NodePool are unknown.",
        "As 2003, for the pool of the node.";
    NodePodDoNotDisrupt = 4010 at Pods, "node-pod-do-not-disrupt", "A pod on the node carries do-not-disrupt.",
        "The pod is named. Where it is a job, let it end; give the annotation a duration (`\"4h\"`) instead of `\"true\"`.";
    NodePodManyPdbs = 4011 at Pods, "node-pod-many-pdbs", "A pod on the node is matched by several PodDisruptionBudgets.",
        "Two budgets match one pod, and the Eviction API refuses such. Make their selectors disjoint.";
    NodePodPdbBlocked = 4012 at Pods, "node-pod-pdb-blocked", "A PodDisruptionBudget allows no eviction of a pod on the node.",
        "The budget allows none at present: too few replicas are ready, or `maxUnavailable: 0`.";
    NodeInQueue = 4013 at NoCommand, "node-in-queue", "A command about the node is already under way.",
        "A command is under way; ask again.";
    NodeRebooting = 4014 at Ready, "node-rebooting", "The node reboots in place.",
        "Wait.";
    NodeDoNotRepair = 4015 at Eligible, "node-do-not-repair", "The node is sick and carries do-not-repair.",
        "Take `karpenter.sh/do-not-repair` off the node, or mend the node yourself.";
    NodeRepairUnbounded = 4016 at Pods, "node-repair-unbounded", "The node is sick, a pod blocks its drain, and nothing bounds the drain.",
        "Set `terminationGracePeriod` on the pool, so that the drain has an end.";
    NodeStaticPool = 4020 at Eligible, "node-static-pool", "The node's NodePool keeps a fixed number of nodes.",
        "Pools with `replicas` are not consolidated.";
    NodeConsolidationNever = 4021 at Eligible, "node-consolidation-never", "consolidateAfter is Never.",
        "`consolidateAfter: Never` of the pool.";
    NodeNotConsolidatable = 4022 at Eligible, "node-not-consolidatable", "consolidateAfter has not passed since the last pod event.",
        "Pods came or went lately; shorten `consolidateAfter`, or wait.";
    NodePolicyWhenEmpty = 4023 at Eligible, "node-policy-when-empty", "The NodePool consolidates only empty nodes.",
        "`consolidationPolicy: WhenEmpty` of the pool.";
    NodeTypeUnknown = 4024 at Eligible, "node-type-unknown", "The node's instance type is not among those of its NodePool.",
        "The pool does not allow the node's type any more; drift takes care of it.";
    NodeWithoutCapacityType = 4025 at Eligible, "node-without-capacity-type", "The node has no capacity type label.",
        "The label was taken off the node.";
    NodeWithoutZone = 4026 at Eligible, "node-without-zone", "The node has no zone label.",
        "The label was taken off the node.";
    NodeHoldsBuffer = 4027 at Eligible, "node-holds-buffer", "The node keeps room for a capacity buffer.",
        "It keeps room for a CapacityBuffer.";
    NodeGainTooSmall = 4028 at Gain, "node-gain-too-small", "The move saves little of the bill, and not for long enough to pay for it.",
        "It saves less than 3 % of the bill, and waits until that has paid for the move.";
    NodeAwaitsOthers = 4029 at Eligible, "node-awaits-others", "Pods of many other nodes came or left just now; one plan is made for all.",
        "Nothing: it is over once they are at rest, or after a minute.";
    NodeBudgetExhausted = 4030 at Budgets, "node-budget-exhausted", "The disruption budgets of the NodePool leave no room.",
        "`spec.disruption.budgets` of the pool: how many, when, and for which reason.";
    NodePolicySkipped = 4031 at Order, "node-policy-skipped", "The consolidation policy told to skip the node.",
        "Your consolidation policy gave the node a negative place in the order, which means to skip it; an order has no reasons.";
    NodePolicyRejected = 4032 at Verdict, "node-policy-rejected", "The consolidation policy rejected the move.",
        "Your consolidation policy refused the move; its reason is in the text.";
    NodePolicyHeld = 4033 at Verdict, "node-policy-held", "The consolidation policy put the move off.",
        "Your consolidation policy put the move off; its reason is in the text. A hold ends after an hour at most.";
    NodeRepairBreaker = 4034 at PoolAsAWhole, "node-repair-breaker", "Too many nodes of the NodePool are sick at once, so none is repaired.",
        "More than a fifth of the pool is sick: that is seldom the nodes. Look for what they share: an image, a DaemonSet, a zone.";
    NodeStaticAtLimit = 4035 at Place, "node-static-at-limit", "The NodePool keeps replicas and is at its limit of nodes, so no replacement can come first.",
        "Raise `limits.nodes` above `replicas`, so that a replacement can come first.";
    NodeReservationsFull = 4036 at Place, "node-reservations-full", "The capacity reservations the node could move to are full.",
        "Another instance of the reservation must go first.";
    NodeStaticSurplus = 4037 at PoolAsAWhole, "node-static-surplus", "The NodePool has more nodes than replicas, which is settled first.",
        "Wait: there are more nodes than `replicas`.";
    NodePreferenceTooYoung = 4038 at Guards, "node-preference-too-young", "Only the ranking policy wants the move, and not for long enough to pay for it.",
        "Only your ranking policy wants it; it waits until that has paid for the pods it disturbs.";
    NodePremiumExceeded = 4039 at Guards, "node-premium-exceeded", "What the ranking policy prefers would cost more than the bound on its premium.",
        "As 2006.";
    NodePodsDoNotFit = 4040 at Place, "node-pods-do-not-fit", "Not every pod of the node would find a place.",
        "Not even with a new node: a pod has no place that the pools allow. Ask `why pod` of the one that is named.";
    NodeNeedsManyNodes = 4041 at Place, "node-needs-many-nodes", "The pods would need several new nodes, and those would not cost less.",
        "Its pods would need several nodes that cost no less.";
    NodeNoCheaperReplacement = 4042 at Place, "node-no-cheaper-replacement", "No replacement is cheaper.",
        "Nothing: it is the cheapest that does.";
    NodeSpotToSpotDisabled = 4043 at Place, "node-spot-to-spot-disabled", "Replacing spot by spot is switched off.",
        "Open the gate `SpotToSpotConsolidation`.";
    NodeSpotToSpotFewTypes = 4044 at Place, "node-spot-to-spot-few-types", "Replacing spot by spot needs more cheaper instance types.",
        "Allow more types: 15 cheaper ones are wanted, so that spot is not traded for the next interruption.";
    NodeMinValues = 4045 at Place, "node-min-values", "The cheaper instance types do not satisfy minValues.",
        "`minValues` of the pool leaves no cheaper set of types.";
    NodeUninitializedDestination = 4046 at Place, "node-uninitialized-destination", "The pods would go to a node that is not initialized.",
        "Wait until the other node is open.";
    NodeLoopGuard = 4047 at Guards, "node-loop-guard", "The replacement would bring back what an earlier move took away, or the node came by a move itself and this one saves too little.",
        "It would bring back what was taken away within the hour, or the node came by a move itself and moves on only for a larger share of its cost.";
    NodeNotReached = 4048 at Place, "node-not-reached", "The scan ended before the node was tried: it was cut off, or had found enough moves.",
        "A later scan comes to it: the next begins with those that this one did not reach.";
    NodeReplacementFailed = 4049 at Place, "node-replacement-failed", "The last replacement did not come, so the node rests.",
        "The last replacement did not come; see why in its NodeClaim. The node rests for a while.";
    NodeChosenEmpty = 4050, "node-chosen-empty", "The node is empty and goes.",
        "Nothing.";
    NodeChosenDrifted = 4051, "node-chosen-drifted", "The node is drifted and is replaced.",
        "Nothing; where it is always so, see [rotation](handbook.md#rotation).";
    NodeChosenMulti = 4052, "node-chosen-multi", "The node goes together with others.",
        "Nothing.";
    NodeChosenSingle = 4053, "node-chosen-single", "The node goes.",
        "Nothing.";
    NodeOutranked = 4054 at Turn, "node-outranked", "The node could go, but another command goes first.",
        "Another command goes first.";
    NodeInvalidatedChurn = 4055 at Gain, "node-invalidated-churn", "The node stopped being a candidate during validation.",
        "Something changed while it was looked at a second time.";
    NodeInvalidatedBudget = 4056 at Gain, "node-invalidated-budget", "The budget closed during validation.",
        "Nothing: the budget closed while the move was looked at a second time. See 4030.";
    NodeInvalidatedScheduling = 4057 at Gain, "node-invalidated-scheduling", "The pods no longer fit when the move was validated.",
        "Nothing: pods came or went meanwhile, and its own do not fit elsewhere any more. The next scan looks anew.";
    NodeWithoutReason = 4058 at Eligible, "node-without-reason", "The node is neither empty, nor drifted, nor worth consolidating.",
        "Nothing: there is nothing to be had.";
    NodeChosenUnhealthy = 4059, "node-chosen-unhealthy", "The node is sick and is replaced.",
        "Nothing; the condition is in the text.";
    NodeChosenReboot = 4060, "node-chosen-reboot", "The node is sick and reboots.",
        "Nothing.";
    NodeChosenExpiring = 4061, "node-chosen-expiring", "The node is replaced some time before it expires.",
        "Nothing: the policy that asks for it renews it in good time.";
    CommandStarted = 5001, "command-started", "Candidates are tainted and replacements created.",
        "Nothing.";
    CommandWaiting = 5002, "command-waiting", "Replacements are not initialized yet.",
        "Its replacements are on their way; where they do not come, ask `why claim` of them.";
    CommandSucceeded = 5003, "command-succeeded", "Replacements are ready and the candidates were deleted.",
        "Nothing.";
    CommandFailed = 5004, "command-failed", "The command was given up and rolled back.",
        "A replacement did not come in time, or was not to be had. The nodes are open again.";
    CommandRejected = 5005, "command-rejected", "The command did not survive validation.",
        "As 4055 to 4057.";
    TerminationStarted = 6001, "termination-started", "The node is tainted and drains.",
        "Nothing: it drains.";
    TerminationDrained = 6002, "termination-drained", "No pod is left to wait for.",
        "Nothing.";
    TerminationVolumesDetached = 6003, "termination-volumes-detached", "No volume is attached any more.",
        "Nothing.";
    TerminationGracePeriodElapsed = 6004, "termination-grace-period-elapsed", "The deadline passed with work left.",
        "Pods were still there when `terminationGracePeriod` ended: give it more time, or them less to do.";
    TerminationFinished = 6005, "termination-finished", "The instance is gone.",
        "Nothing.";
    PodEvicted = 6010, "pod-evicted", "The pod was evicted.",
        "Nothing.";
    PodEvictionBlocked = 6011, "pod-eviction-blocked", "A PodDisruptionBudget refused the eviction.",
        "Its budget refuses: add a replica, or loosen `minAvailable`. Without `terminationGracePeriod` the node waits for ever.";
    PodForceDeleted = 6012, "pod-force-deleted", "The pod was deleted to meet the deadline.",
        "Its node had to go; as 6004.";
}

impl OutcomeId {
    /// Whether a scan got so far with the node that it might have gone but for what the outcome names.
    pub fn is_near_miss(self) -> bool {
        self.gate().is_some_and(|it| it >= NodeGate::Eligible)
    }

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

    /// A page with its rows of what to do made anew. A row that is missing goes behind that of the number before it.
    pub fn advise(page: &str) -> String {
        let lines = page.lines().filter_map(|line| match row_code(line) {
            None => Some(line.to_owned()),
            Some(code) => {
                let known = Self::TABLE.iter().find(|it| it.code() == code);
                known.map(|it| it.advice_row())
            }
        });
        let mut lines: Vec<String> = lines.collect();
        for (before, id) in Self::TABLE.iter().zip(&Self::TABLE[1..]) {
            let row = id.advice_row();
            if !lines.contains(&row) {
                let before = before.advice_row();
                let at = lines.iter().position(|line| *line == before);
                lines.insert(at.map_or(lines.len(), |at| at + 1), row);
            }
        }
        lines.join("\n") + "\n"
    }

    fn advice_row(self) -> String {
        format!(
            "| {} | `{}` | {} |",
            self.code(),
            self.name(),
            self.advice()
        )
    }
}

/// The number that a row of a table is about.
fn row_code(line: &str) -> Option<u16> {
    let first = line.strip_prefix("| ")?.split(' ').next()?;
    (first.len() == 4).then(|| first.parse().ok())?
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
