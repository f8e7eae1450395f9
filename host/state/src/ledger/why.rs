//! What the ledger knows about one object, told in order: how far it came, why no further, and what was done about it.
//!
//! Only selects and words what was recorded; never judges anew.

use std::fmt::{Display, Formatter};

use jiff::Timestamp;
use scheduling::ranking::PolicyUse;
use serde::{Deserialize, Serialize};

use super::record::Subject;
use super::{DisruptionRound, Entry, Ledger, NodeOutcome, OutcomeId, ProvisioningRound, Record};

/// Most steps told.
const STEPS_MAX: usize = 20;

/// The answer to `mortise why`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// `node`, `pod`, `claim` or `nodepool`.
    pub kind: String,
    /// Its name; a pod's is `namespace/name`.
    pub name: String,
    /// What was decided about it, newest first.
    pub steps: Vec<Step>,
    /// The gates that a node passes in a scan, and how far this one came in the last.
    pub funnel: Vec<Gate>,
}

/// One decision about the object, or one step of carrying one out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// When it was first decided so.
    pub at: Timestamp,
    /// When it was last decided so.
    pub last_at: Timestamp,
    /// How often in a row.
    pub times: u32,
    /// Place in the ledger.
    pub sequence: u64,
    /// Which object, where the question was about several.
    pub about: String,
    /// Number of the outcome.
    pub code: u16,
    /// What came of it.
    pub outcome: OutcomeId,
    /// The outcome in words.
    pub meaning: String,
    /// Why exactly: the pod, the budget, the prices compared, the nearest miss.
    pub reason: String,
    /// Policies that took part, with the digest of their code.
    pub policies: Vec<PolicyUse>,
    /// Under which its policies know the decision; empty where none is asked.
    #[serde(default)]
    pub decision_id: String,
    /// What policies did in the decision, as far as whoever runs them remembers; not part of the ledger.
    #[serde(default)]
    pub parts: Vec<PolicyPart>,
}

/// What one policy did in a decision.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyPart {
    /// rank, consolidation or budgets.
    pub kind: String,
    /// Name of the binding.
    pub name: String,
    /// Digest of the component.
    pub digest: String,
    /// Digest of its settings.
    pub config_digest: String,
    /// enforce, shadow or canary.
    pub mode: String,
    /// Place in the chain.
    pub order: i32,
    /// What came of the call.
    pub outcome: String,
    /// What its answer changed beside those before it; empty for nothing.
    pub changed: String,
    /// The last lines it logged.
    pub log: Vec<String>,
}

/// A stage of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// What it asks.
    pub gate: String,
    /// `passed`, `stopped` or `not reached`.
    pub result: String,
}

/// Codes of the outcomes that stop a node at each stage, first and last.
const GATES: [(&str, u16, u16); 10] = [
    ("is a ready node of ours", 4001, 4003),
    ("is not going or expected to take pods already", 4004, 4006),
    ("belongs to a NodePool with known types", 4007, 4009),
    (
        "has no pod that must stay, and no command is about it",
        4010,
        4016,
    ),
    ("is eligible: empty, drifted, or consolidatable", 4020, 4029),
    ("is within the budgets", 4030, 4030),
    ("is wanted by the policy", 4031, 4033),
    (
        "is within the bounds of repair, of static pools and of a policy's premium",
        4034,
        4039,
    ),
    ("its pods find a better place", 4040, 4049),
    ("was still so when it was looked at again", 4055, 4057),
];

impl Why {
    /// Looks an object up.
    pub fn of(ledger: &Ledger, subject: &Subject) -> Self {
        let (kind, name) = subject.words();
        let mut steps: Vec<Step> = Vec::new();
        let mut funnel = Vec::new();
        for entry in ledger.about(subject).rev() {
            if steps.len() >= STEPS_MAX {
                break;
            }
            if let (Record::DisruptionRound(round), Subject::Node(_) | Subject::Claim(_)) =
                (&entry.record, subject)
                && funnel.is_empty()
            {
                let found = round.nodes.iter().find(|it| it.is_about(subject));
                funnel = found.map(funnel_of).unwrap_or_default();
            }
            steps.extend(steps_of(entry, subject));
        }
        steps.truncate(STEPS_MAX);
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            steps,
            funnel,
        }
    }
}

impl Subject {
    /// The subject of `why KIND NAME`; a pod without namespace is in `default`.
    pub fn parse(kind: &str, name: &str) -> Option<Self> {
        let name = name.to_owned();
        match kind {
            "node" | "nodes" | "no" => Some(Self::Node(name)),
            "pod" | "pods" | "po" if name.contains('/') => Some(Self::Pod(name)),
            "pod" | "pods" | "po" => Some(Self::Pod(format!("default/{name}"))),
            "claim" | "nodeclaim" | "nodeclaims" => Some(Self::Claim(name)),
            "nodepool" | "nodepools" | "pool" => Some(Self::Pool(name)),
            _ => None,
        }
    }

    fn words(&self) -> (&'static str, &str) {
        match self {
            Self::Pod(name) => ("pod", name),
            Self::Node(name) => ("node", name),
            Self::Claim(name) => ("claim", name),
            Self::Pool(name) => ("nodepool", name),
        }
    }
}

fn funnel_of(node: &NodeOutcome) -> Vec<Gate> {
    let code = node.outcome.code();
    let mut is_stopped = false;
    let gates = GATES.iter().map(|&(gate, first, last)| {
        let stops = (first..=last).contains(&code);
        let result = match (is_stopped, stops) {
            (true, _) => "not reached",
            (false, true) => "stopped",
            (false, false) => "passed",
        };
        is_stopped |= stops;
        Gate {
            gate: gate.to_owned(),
            result: result.to_owned(),
        }
    });
    gates.collect()
}

/// What is told of one entry before it is known which entry.
type Told<'a> = (String, OutcomeId, String, &'a [PolicyUse]);

fn steps_of(entry: &Entry, subject: &Subject) -> Vec<Step> {
    let told = match &entry.record {
        Record::ProvisioningRound(it) => of_provisioning(it, subject),
        Record::DisruptionRound(it) => of_disruption(it, subject),
        Record::Launch(it) => {
            let offering = format!("{} {} {}", it.instance_type, it.capacity_type, it.zone);
            let reason = join(offering.trim(), &it.reason);
            vec![(it.claim.clone(), it.outcome, reason, it.policies.as_slice())]
        }
        Record::Command(it) => {
            let (before, after) = (it.effective_before_per_hour, it.effective_after_per_hour);
            let is_list = (before - it.cost_before_per_hour).abs() < 1e-9
                && (after - it.cost_after_per_hour).abs() < 1e-9;
            let reckoned = if is_list {
                String::new()
            } else {
                format!(", {before:.4} to {after:.4} as the ranking policy reckons")
            };
            let told = format!(
                "{} {}: {} go, {} come; {:.4} to {:.4} USD an hour{reckoned}",
                it.decision,
                it.reason,
                it.candidates.join(" "),
                it.replacements.len(),
                it.cost_before_per_hour,
                it.cost_after_per_hour
            );
            let reason = join(&told, &it.detail);
            vec![(it.command_id.clone(), it.outcome, reason, [].as_slice())]
        }
        Record::Termination(it) => {
            let reason = join(&it.pods.join(" "), &it.reason);
            vec![(it.node.clone(), it.outcome, reason, [].as_slice())]
        }
        Record::Placement(it) => {
            let reason = format!("planned for {}, bound to {}", it.planned, it.node);
            vec![(it.pod.clone(), it.outcome, reason, [].as_slice())]
        }
    };
    let decision_id = match &entry.record {
        Record::ProvisioningRound(it) => it.decision_id.as_str(),
        Record::DisruptionRound(it) => it.decision_id.as_str(),
        // The ranking before a launch is asked under the name of the claim.
        Record::Launch(it) => it.claim.as_str(),
        Record::Command(_) | Record::Termination(_) | Record::Placement(_) => "",
    };
    let step = |(about, outcome, reason, policies): Told<'_>| Step {
        at: entry.record.at(),
        last_at: entry.last_at,
        times: entry.times,
        sequence: entry.sequence,
        about,
        code: outcome.code(),
        outcome,
        meaning: outcome.meaning().to_owned(),
        reason,
        policies: policies.to_vec(),
        decision_id: decision_id.to_owned(),
        parts: Vec::new(),
    };
    told.into_iter().map(step).collect()
}

fn of_provisioning<'a>(it: &'a ProvisioningRound, subject: &Subject) -> Vec<Told<'a>> {
    let (_, name) = subject.words();
    let policies = it.policies.as_slice();
    let concerned = it.pods.iter().filter(|group| match subject {
        Subject::Pod(key) => group.pods.contains(key),
        Subject::Node(name) | Subject::Claim(name) => group.target == *name,
        Subject::Pool(_) => false,
    });
    let groups = concerned.map(|group| {
        let about = match subject {
            Subject::Pod(_) => name.to_owned(),
            Subject::Node(_) | Subject::Claim(_) | Subject::Pool(_) => group.pods.join(" "),
        };
        let reason = join(&group.target, &group.reason);
        (about, group.outcome, reason, policies)
    });
    let pools = it.pools.iter().filter(|pool| match subject {
        Subject::Pool(name) => pool.pool == *name,
        Subject::Pod(_) | Subject::Node(_) | Subject::Claim(_) => false,
    });
    let pools = pools.map(|it| (it.pool.clone(), it.outcome, it.reason.clone(), policies));
    let claims = it.claims.iter().filter(|claim| claim.claim == name);
    let claims = claims.map(|claim| {
        let reason = format!(
            "best of {} types is {}, {:.4} USD an hour, for {} pods {}",
            claim.instance_types_total,
            claim.instance_types.first().map_or("", String::as_str),
            claim.price_per_hour,
            claim.pods,
            claim.note
        );
        let reason = reason.trim_end().to_owned();
        (claim.claim.clone(), claim.outcome, reason, policies)
    });
    groups.chain(pools).chain(claims).collect()
}

fn of_disruption<'a>(it: &'a DisruptionRound, subject: &Subject) -> Vec<Told<'a>> {
    let policies = it.policies.as_slice();
    match subject {
        Subject::Pool(pool) => summary(&it.nodes, pool)
            .into_iter()
            .map(|(outcome, told)| (pool.clone(), outcome, told, policies))
            .collect(),
        Subject::Node(_) | Subject::Claim(_) | Subject::Pod(_) => it
            .nodes
            .iter()
            .filter(|node| node.is_about(subject))
            .map(|node| {
                (
                    node.node.clone(),
                    node.outcome,
                    node.reason.clone(),
                    policies,
                )
            })
            .collect(),
    }
}

/// The nodes of a pool by what came of them.
fn summary(nodes: &[NodeOutcome], pool: &str) -> Vec<(OutcomeId, String)> {
    let mut by_outcome = std::collections::BTreeMap::<OutcomeId, Vec<&NodeOutcome>>::new();
    for node in nodes.iter().filter(|it| it.pool == pool) {
        by_outcome.entry(node.outcome).or_default().push(node);
    }
    let tell = |(outcome, nodes): (OutcomeId, Vec<&NodeOutcome>)| {
        let example = nodes.first().map(|it| join(&it.node, &it.reason));
        let told = format!(
            "{} nodes, such as {}",
            nodes.len(),
            example.unwrap_or_default()
        );
        (outcome, told)
    };
    by_outcome.into_iter().map(tell).collect()
}

fn join(first: &str, second: &str) -> String {
    match (first, second) {
        ("", it) | (it, "") => it.to_owned(),
        (first, second) => format!("{first}: {second}"),
    }
}

impl Display for PolicyPart {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind,
            name,
            digest,
            config_digest,
            mode,
            order,
            outcome,
            changed,
            log,
        } = self;
        writeln!(f, "  policy {kind} {name} {digest}: {outcome}")?;
        let changed = match changed.as_str() {
            "" => "changed nothing",
            changed => changed,
        };
        writeln!(
            f,
            "    {mode}, order {order}, settings {config_digest}; {changed}"
        )?;
        for line in log {
            writeln!(f, "    log {line}")?;
        }
        Ok(())
    }
}

impl Display for Why {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind,
            name,
            steps,
            funnel,
        } = self;
        let Some(last) = steps.first() else {
            return writeln!(f, "{kind} {name}: the ledger holds nothing about it");
        };
        writeln!(f, "{kind} {name}: {} {}", last.code, last.meaning)?;
        if !last.reason.is_empty() {
            writeln!(f, "  {}", last.reason)?;
        }
        for gate in funnel {
            writeln!(f, "  {:<12} {}", gate.result, gate.gate)?;
        }
        let told = |it: &&PolicyUse| {
            let mut parts = last.parts.iter();
            !parts.any(|part| (&part.kind, &part.name) == (&it.kind, &it.name))
        };
        for policy in last.policies.iter().filter(told) {
            let PolicyUse {
                kind,
                name,
                digest,
                outcome,
            } = policy;
            writeln!(f, "  policy {kind} {name} {digest}: {outcome}")?;
        }
        for part in &last.parts {
            write!(f, "{part}")?;
        }
        for step in steps {
            let times = if step.times > 1 {
                format!(" ({} times, last {})", step.times, step.last_at)
            } else {
                String::new()
            };
            let told = join(step.outcome.name(), &step.reason);
            writeln!(f, "  {} {} {}{times}", step.at, step.code, told)?;
        }
        Ok(())
    }
}
