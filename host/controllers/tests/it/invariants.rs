//! What must hold at every moment of every test here, judged on the objects of the API server and the instances of
//! the cloud; of the controllers' own record only which claim came in place of which node is believed.
//! `tests/invariants.md` lists them all.
//!
//! Not judged here: fencing (one process runs), the containment of policies and the politeness towards a cloud's own
//! API, which have tests where they live, and how long pods wait, which each test says itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use api_server::{ApiServer, Resource, Selection};
use apis::ProviderId;
use apis::nodepool::Budget;
use cloudprovider::InstanceLife;
use controllers::SharedLedger;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sim::checkers::{END_GRACE, LEAK_GRACE};
use state::ledger::{CommandStep, Record};

use crate::cloud::Cloud;

pub(crate) const BUFFERS: Resource = Resource::fixed("autoscaling.x-k8s.io", "capacitybuffers");

/// So many writes of one object within a minute are a quarrel.
const WRITES_PER_MINUTE: usize = 60;

/// What earlier looks saw.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    claims: BTreeSet<String>,
    /// Claims under a voluntary command.
    voluntary: BTreeSet<String>,
    /// Of each pool and reason: how many nodes might be in disruption.
    allowed: BTreeMap<(String, String), u32>,
    orphans: BTreeMap<ProviderId, Timestamp>,
    pods: BTreeSet<String>,
    ended: usize,
    /// Claims that somebody made by hand, by uid.
    by_hand: BTreeSet<String>,
    /// Most replicas that each CapacityBuffer ever wanted, by uid.
    buffered: BTreeMap<String, u64>,
    writes: BTreeMap<String, VecDeque<Timestamp>>,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JudgedWrite<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
}

/// The world as it is.
struct Truth<'a> {
    api: &'a ApiServer,
    now: Timestamp,
    claims: Vec<Arc<Value>>,
    nodes: Vec<Arc<Value>>,
    pods: Vec<Arc<Value>>,
}

impl<'a> Truth<'a> {
    fn of(api: &'a ApiServer, now: Timestamp) -> Self {
        let list = |resource: &Resource| api.list(resource, &Selection::everything());
        // What becomes of another provider's claims is its own business.
        let is_ours =
            |it: &Arc<Value>| it["spec"]["nodeClassRef"]["group"] == apis::labels::AWS_GROUP;
        let claims = list(&Resource::NODE_CLAIMS);
        Self {
            api,
            now,
            claims: claims.into_iter().filter(is_ours).collect(),
            nodes: list(&Resource::NODES),
            pods: list(&Resource::PODS),
        }
    }

    fn claim(&self, name: &str) -> Option<&Value> {
        self.claims
            .iter()
            .find(|it| self::name(it) == name)
            .map(|it| &**it)
    }

    fn node_of(&self, claim: &Value) -> Option<&Value> {
        let id = &claim["status"]["providerID"];
        let node = self
            .nodes
            .iter()
            .find(|it| it["spec"]["providerID"] == *id && id.is_string());
        node.map(|it| &**it)
    }

    fn pods_on<'b>(&'b self, node: &'b str) -> impl Iterator<Item = &'b Value> {
        let pods = self.pods.iter().map(|it| &**it);
        pods.filter(move |it| it["spec"]["nodeName"] == node)
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

fn has(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|it| it["type"] == kind && it["status"] == "True")
    })
}

fn reason_of<'a>(object: &'a Value, kind: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|it| it["type"] == kind));
    found
        .and_then(|it| it["reason"].as_str())
        .unwrap_or_default()
}

fn pool_of(object: &Value) -> &str {
    let label = &object["metadata"]["labels"]["karpenter.sh/nodepool"];
    label.as_str().unwrap_or_default()
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][format!("karpenter.sh/{key}")].as_str()
}

impl Judge {
    /// What is wrong now; each begins with the number of the invariant.
    pub(crate) fn look(
        &mut self,
        api: &ApiServer,
        cloud: &Cloud,
        ledger: &SharedLedger,
    ) -> Vec<String> {
        let truth = Truth::of(api, cloud.clock.now());
        let mut found = self.instances(&truth, cloud);
        found.extend(self.limits(&truth));
        found.extend(self.budgets(&truth));
        found.extend(self.launches(&truth, cloud, ledger));
        found.extend(stuck(&truth));
        self.claims = truth.claims.iter().map(|it| name(it).to_owned()).collect();
        found
    }

    /// I01, I02, I15: each instance has one claim, no claim two, and a claim stays while its instance runs.
    fn instances(&mut self, truth: &Truth<'_>, cloud: &Cloud) -> Vec<String> {
        let (living, strangers) = cloud.with(|state| {
            let living = state
                .instances
                .values()
                .filter(|it| it.life != InstanceLife::Ends);
            let owners = living.map(|it| (it.provider_id.clone(), it.node_claim_name.clone()));
            (owners.collect::<Vec<_>>(), state.orphans_are_expected)
        });
        let mut found = Vec::new();
        let mut owners = BTreeMap::<String, usize>::new();
        let mut orphans = BTreeMap::new();
        for (id, owner) in living {
            let Some(owner) = owner else { continue };
            *owners.entry(owner.clone()).or_default() += 1;
            if truth.claim(&owner).is_some() || strangers {
                continue;
            }
            if self.claims.contains(&owner) {
                found.push(format!("I15: {owner} went while {id} ran"));
            }
            let since = self.orphans.get(&id).copied().unwrap_or(truth.now);
            if truth.now.duration_since(since) > LEAK_GRACE {
                found.push(format!("I01: {id} belongs to nobody since {since}"));
            }
            orphans.insert(id, since);
        }
        self.orphans = orphans;
        let double = owners.into_iter().filter(|(_, count)| *count > 1);
        found.extend(double.map(|(owner, count)| format!("I02: {owner} has {count} instances")));
        found
    }

    /// I03: when a claim comes, its pool stays within its limits.
    fn limits(&self, truth: &Truth<'_>) -> Vec<String> {
        let is_new = |it: &&Arc<Value>| !self.claims.contains(name(it));
        let grown: BTreeSet<&str> = truth
            .claims
            .iter()
            .filter(is_new)
            .map(|it| pool_of(it))
            .collect();
        let mut found = Vec::new();
        for pool in truth
            .api
            .list(&Resource::NODE_POOLS, &Selection::everything())
        {
            let limits = pool["spec"]["limits"].as_object();
            if !grown.contains(name(&pool)) {
                continue;
            }
            for (resource, limit) in limits.into_iter().flatten() {
                let millis = |it: &Value| {
                    it.as_str()
                        .map_or(0, |it| apis::quantity::parse_millis(it).unwrap())
                };
                let claims = truth.claims.iter();
                let claims = claims.filter(|it| pool_of(it) == name(&pool) && !is_going(it));
                let used: i64 = claims
                    .map(|claim| match resource.as_str() {
                        "nodes" => 1000,
                        other if claim["status"]["capacity"][other].is_string() => {
                            millis(&claim["status"]["capacity"][other])
                        }
                        other => millis(&claim["spec"]["resources"]["requests"][other]),
                    })
                    .sum();
                if used > millis(limit) {
                    found.push(format!(
                        "I03: {} uses {used}m {resource} of {limit}",
                        name(&pool)
                    ));
                }
            }
        }
        found
    }

    /// I04: no more voluntary disruptions begin than the budgets allowed a moment ago or allow now.
    fn budgets(&mut self, truth: &Truth<'_>) -> Vec<String> {
        let is_voluntary = |it: &&Arc<Value>| has(it, "DisruptionReason");
        let voluntary: BTreeSet<String> = truth
            .claims
            .iter()
            .filter(is_voluntary)
            .map(|it| name(it).to_owned())
            .collect();
        let mut found = Vec::new();
        let mut allowed_now = BTreeMap::new();
        for pool in truth
            .api
            .list(&Resource::NODE_POOLS, &Selection::everything())
        {
            let members = || truth.claims.iter().filter(|it| pool_of(it) == name(&pool));
            let counts = |it: &&Arc<Value>| has(it, "Initialized") || has(it, "Rebooting");
            let total = u32::try_from(members().filter(counts).count()).unwrap();
            for reason in ["Empty", "Drifted", "Underutilized", "Unhealthy"] {
                let key = (name(&pool).to_owned(), reason.to_owned());
                let allowed = allowed(&pool, reason, total);
                let before = self.allowed.get(&key).copied().unwrap_or(allowed);
                allowed_now.insert(key, allowed);
                let begins = members().filter(|it| {
                    voluntary.contains(name(it))
                        && !self.voluntary.contains(name(it))
                        && reason_of(it, "DisruptionReason") == reason
                        && counts(it)
                });
                let is_sick = |it: &Value| {
                    let node = truth.node_of(it);
                    reason != "Unhealthy" && node.is_some_and(|it| !has(it, "Ready"))
                };
                let goes = members().filter(|it| {
                    let is_old = is_going(it) || self.voluntary.contains(name(it));
                    counts(it) && (is_old || has(it, "Rebooting") || is_sick(it))
                });
                let begins: BTreeSet<&str> = begins.map(|it| name(it)).collect();
                let mut all: BTreeSet<&str> = goes.map(|it| name(it)).collect();
                all.extend(&begins);
                let most = allowed.max(before) as usize;
                if !begins.is_empty() && all.len() > most {
                    found.push(format!(
                        "I04: {begins:?} begin, {all:?} go, {most} may, {reason}"
                    ));
                }
            }
        }
        (self.voluntary, self.allowed) = (voluntary, allowed_now);
        found
    }

    /// I11: every launch has its pod, real or of a buffer, its replacement, its replica, a hand that asked, or an
    /// earlier claim that ended.
    fn launches(&mut self, truth: &Truth<'_>, cloud: &Cloud, ledger: &SharedLedger) -> Vec<String> {
        let uid = |it: &Arc<Value>| it["metadata"]["uid"].as_str().unwrap().to_owned();
        self.pods.extend(truth.pods.iter().map(uid));
        self.ended += self
            .claims
            .iter()
            .filter(|it| truth.claim(it).is_none())
            .count();
        let pools = truth
            .api
            .list(&Resource::NODE_POOLS, &Selection::everything());
        let replicas: u64 = pools
            .iter()
            .filter_map(|it| it["spec"]["replicas"].as_u64())
            .sum();
        let replacements: usize = started(ledger).map(|it| it.1.len()).sum();
        let going = truth.claims.iter().filter(|it| is_going(it)).count();
        let by_hand = truth.claims.iter().filter(|it| pool_of(it).is_empty());
        self.by_hand.extend(by_hand.map(uid));
        let asked = self.pods.len() + self.by_hand.len();
        let reasons = asked + self.ended + going + replacements;
        let everything = Selection::everything();
        for buffer in truth.api.list(&BUFFERS, &everything) {
            let wanted = buffer["spec"]["replicas"].as_u64().unwrap_or_default();
            let most = self.buffered.entry(uid(&buffer)).or_default();
            *most = wanted.max(*most);
        }
        let wanted = replicas + self.buffered.values().sum::<u64>();
        let reasons = reasons + usize::try_from(wanted).unwrap();
        let launches = cloud.with(|it| it.launches);
        let is_over = launches > reasons;
        let told = format!("I11: {launches} launches for {reasons} reasons");
        is_over.then_some(told).into_iter().collect()
    }

    /// A write of the controllers is about to happen.
    pub(crate) fn write(
        &mut self,
        api: &ApiServer,
        now: Timestamp,
        ledger: &SharedLedger,
        asked: JudgedWrite<'_>,
    ) -> Vec<String> {
        let JudgedWrite { method, path } = asked;
        let mut found = Vec::new();
        let times = self.writes.entry(format!("{method} {path}")).or_default();
        times.push_back(now);
        while times
            .front()
            .is_some_and(|it| now.duration_since(*it).as_secs() >= 60)
        {
            times.pop_front();
        }
        // Many claims may be needed at once: a collection is no object.
        let is_object = (method, path.ends_with("/nodeclaims")) != ("POST", true);
        if is_object && times.len() > WRITES_PER_MINUTE {
            found.push(format!(
                "I22: {} times {method} {path} in a minute",
                times.len()
            ));
        }
        if method == "DELETE" {
            let truth = Truth::of(api, now);
            match path.split('/').collect::<Vec<_>>().as_slice() {
                [.., "pods", pod] => found.extend(by_force(&truth, pod)),
                [.., "nodeclaims", claim] => found.extend(goes(&truth, ledger, claim)),
                _ => {}
            }
        }
        found
    }
}

/// I05: a pod is deleted past the Eviction API only in time for the deadline of its node.
fn by_force(truth: &Truth<'_>, pod: &str) -> Option<String> {
    let pod = truth.pods.iter().find(|it| name(it) == pod)?;
    let node = &pod["spec"]["nodeName"];
    let claim = truth
        .claims
        .iter()
        .find(|it| it["status"]["nodeName"] == *node);
    let deadline = claim.and_then(|it| annotation(it, "nodeclaim-termination-timestamp"));
    let deadline: Option<Timestamp> = deadline.and_then(|it| it.parse().ok());
    let grace = pod["spec"]["terminationGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(30);
    let is_due = |at: Timestamp| truth.now >= at - SignedDuration::from_secs(grace);
    let told = format!("I05: pod {} was deleted, deadline {deadline:?}", name(pod));
    (!deadline.is_some_and(is_due)).then_some(told)
}

/// I06, I07: what a command takes away is not protected, and what comes in its place is there.
fn goes(truth: &Truth<'_>, ledger: &SharedLedger, claim: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Some(claim) = truth.claim(claim).filter(|it| has(it, "DisruptionReason")) else {
        return found;
    };
    let reason = reason_of(claim, "DisruptionReason");
    let node = truth.node_of(claim).map(name).unwrap_or_default();
    if reason != "Unhealthy" {
        let is_protected = |it: &Value| annotation(it, "do-not-disrupt") == Some("true");
        if truth.node_of(claim).is_some_and(is_protected) {
            found.push(format!("I06: {node} is protected and goes"));
        }
        let is_bounded = claim["spec"]["terminationGracePeriod"].is_string() && reason == "Drifted";
        let mut pods = truth
            .pods_on(node)
            .filter(|it| is_protected(it) && !is_going(it));
        if !is_bounded && let Some(pod) = pods.next() {
            found.push(format!(
                "I06: {node} goes under protected pod {}",
                name(pod)
            ));
        }
    }
    let command = started(ledger)
        .filter(|it| it.0.iter().any(|it| it == node))
        .last();
    for replacement in command.into_iter().flat_map(|it| it.1) {
        // A node that failed to reboot goes without one.
        let claim = truth.claim(&replacement);
        let is_there = claim.is_some_and(|it| {
            let node = truth.node_of(it);
            has(it, "Initialized") && !is_going(it) && node.is_some_and(|it| has(it, "Ready"))
        });
        if !is_there {
            found.push(format!("I07: {node} goes before {replacement} is there"));
        }
    }
    found
}

/// I14: what is to go and holds nothing any more is gone after a while.
fn stuck(truth: &Truth<'_>) -> Vec<String> {
    let volumes = truth
        .api
        .list(&Resource::VOLUME_ATTACHMENTS, &Selection::everything());
    let stuck = truth.claims.iter().filter(|claim| {
        let since = claim["metadata"]["deletionTimestamp"].as_str();
        let since: Option<Timestamp> = since.and_then(|it| it.parse().ok());
        let node = truth.node_of(claim).map(name).unwrap_or_default();
        since.is_some_and(|it| truth.now.duration_since(it) > END_GRACE)
            && truth.pods_on(node).next().is_none()
            && !volumes.iter().any(|it| it["spec"]["nodeName"] == node)
    });
    stuck
        .map(|it| format!("I14: {} does not end", name(it)))
        .collect()
}

/// Nodes that go and claims that come, of each command that started.
fn started(ledger: &SharedLedger) -> impl Iterator<Item = (Vec<String>, Vec<String>)> {
    let ledger = ledger.lock().unwrap();
    let commands = ledger.entries().filter_map(|it| match &it.record {
        Record::Command(it) if it.step == CommandStep::Started => {
            Some((it.candidates.clone(), it.replacements.clone()))
        }
        _ => None,
    });
    commands.collect::<Vec<_>>().into_iter()
}

/// Nodes of a pool that may be in disruption for a reason. What is bound to hours is left to the tests of budgets.
fn allowed(pool: &Value, reason: &str, total: u32) -> u32 {
    let budgets = &pool["spec"]["disruption"]["budgets"];
    let budgets: Vec<Budget> = serde_json::from_value(budgets.clone()).unwrap_or_default();
    let default = vec![Budget::default()];
    let budgets = if budgets.is_empty() { default } else { budgets };
    let is_meant = |it: &&Budget| {
        let reasons = it.reasons.as_ref();
        it.schedule.is_none()
            && reasons.is_none_or(|all| all.iter().any(|it| it.to_string() == reason))
    };
    let nodes = |it: &Budget| match it.nodes.strip_suffix('%') {
        Some(share) => (total * share.parse::<u32>().unwrap()).div_ceil(100),
        None => it.nodes.parse().unwrap(),
    };
    budgets
        .iter()
        .filter(is_meant)
        .map(nodes)
        .min()
        .unwrap_or(u32::MAX)
}
