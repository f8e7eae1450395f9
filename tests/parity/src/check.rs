//! Compares an answer with what a case expects, and tells everything that differs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use apis::{CapacityType, labels};
use planning::capacity_buffer;
use scheduling::Solution;
use scheduling::pod::PodKey;
use scheduling::solution::{NewClaim, PodsOnNode};
use serde_json::Value;

use crate::case::{ClaimExpect, Expect, Tally, Text, Who};
use crate::types;
use crate::words;
use crate::world::World;

/// Prices that differ by less are equal.
const PRICE_TOLERANCE: f64 = 1e-6;

/// Everything that is not as expected.
pub fn faults(expect: &Expect, world: &World, solution: &Solution) -> Result<Vec<String>> {
    let view = View::new(world, solution);
    let mut faults = Vec::new();
    view.unplaced(expect, &mut faults)?;
    let conflicts: Vec<&String> = world.conflicts.iter().collect();
    if conflicts != expect.conflicts.iter().collect::<Vec<_>>() {
        faults.push(format!("conflicts {conflicts:?}"));
    }
    let invalid: Vec<&String> = world.invalid.iter().collect();
    if invalid != expect.invalid.iter().collect::<Vec<_>>() {
        faults.push(format!("invalid {invalid:?}"));
    }
    buffers(expect, world, solution, &mut faults)?;
    if let Some(wanted) = &expect.nodes {
        let count = solution.claims.len();
        if !meets_count(&wanted.0, count)? {
            faults.push(format!("nodes: {count}, expected {wanted}"));
        }
    }
    if let Some(wanted) = &expect.claims {
        view.claims(wanted, expect.nodes.is_none(), &mut faults)?;
    }
    if let Some(wanted) = &expect.each {
        for (index, claim) in solution.claims.iter().enumerate() {
            for fault in view.claim(wanted, claim)? {
                faults.push(format!("claim {index}: {fault}"));
            }
        }
    }
    if let Some(wanted) = &expect.existing {
        view.existing(wanted, &mut faults);
    }
    for (who, wanted) in &expect.r#where {
        view.landed(who, wanted, &mut faults)?;
    }
    for (group, wanted) in &expect.tally {
        for (short, wanted) in wanted {
            view.tally(group, short, wanted, &mut faults)?;
        }
    }
    for list in &expect.together {
        let places: BTreeSet<Option<Place<'_>>> =
            view.all(list)?.iter().map(|it| view.place(it)).collect();
        if places.len() > 1 {
            faults.push(format!("{list:?} are on {} nodes", places.len()));
        }
    }
    for list in &expect.apart {
        let pods = view.all(list)?;
        let places: Vec<Place<'_>> = pods.iter().filter_map(|it| view.place(it)).collect();
        let distinct: BTreeSet<Place<'_>> = places.iter().copied().collect();
        if distinct.len() < places.len() {
            faults.push(format!("some of {list:?} share a node"));
        }
    }
    Ok(faults)
}

/// What became of buffers, in the words of their conditions.
fn buffers(
    expect: &Expect,
    world: &World,
    solution: &Solution,
    faults: &mut Vec<String>,
) -> Result<()> {
    let headrooms = capacity_buffer::headrooms(&world.snapshot, solution);
    for (name, wanted) in &expect.buffers {
        let mut all = world.snapshot.capacity_buffers();
        let buffer = all.find(|it| it.metadata.name.as_ref() == Some(name));
        let buffer = buffer.with_context(|| format!("no buffer {name:?}"))?;
        let headroom = headrooms.get(&PodKey::new("default", name));
        let told = match (capacity_buffer::resolve(&world.snapshot, buffer), headroom) {
            (_, None) => "not ours".to_owned(),
            (Err(error), Some(_)) => error.reason().to_owned(),
            (Ok(resolved), Some(headroom)) => {
                format!("{} x {}", resolved.replicas, headroom.status_and_reason().1)
            }
        };
        if told != *wanted {
            faults.push(format!("buffer {name}: {told:?}, expected {wanted:?}"));
        }
    }
    Ok(())
}

/// What came out, for a failure's report.
pub fn tell(world: &World, solution: &Solution) -> String {
    let mut text = String::new();
    for (index, claim) in solution.claims.iter().enumerate() {
        let best = &claim.best;
        let _ = writeln!(
            text,
            "    claim {index}: pool {} best {} {} {} {:.4} types {} pods {} [{}]",
            claim.pool,
            best.instance_type,
            best.zone.as_deref().unwrap_or_default(),
            CapacityType::word(best.capacity_type),
            best.price_per_hour,
            claim.instance_types.len(),
            keys(&claim.pods),
            claim.requirements
        );
    }
    for PodsOnNode { node, pods } in &solution.existing {
        let _ = writeln!(text, "    node {node}: {}", keys(pods));
    }
    for (pod, error) in &solution.pod_errors {
        let _ = writeln!(text, "    {pod}: {}: {error}", error.reason());
    }
    for (pod, reason) in &world.ignored {
        let _ = writeln!(text, "    {pod} ignored: {reason}");
    }
    text
}

fn keys(pods: &[PodKey]) -> String {
    let names: Vec<&str> = pods.iter().map(|it| it.name.as_str()).collect();
    names.join(" ")
}

fn meets_count(wanted: &str, count: usize) -> Result<bool> {
    let number = |text: &str| {
        text.trim()
            .parse::<usize>()
            .with_context(|| wanted.to_owned())
    };
    Ok(if let Some(most) = wanted.strip_prefix("at most ") {
        count <= number(most)?
    } else if let Some(least) = wanted.strip_prefix("at least ") {
        count >= number(least)?
    } else {
        count == number(wanted)?
    })
}

/// Where a pod went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place<'a> {
    Node(&'a str),
    Claim(usize),
}

struct View<'a> {
    world: &'a World,
    solution: &'a Solution,
    places: BTreeMap<&'a PodKey, Place<'a>>,
}

impl<'a> View<'a> {
    fn new(world: &'a World, solution: &'a Solution) -> Self {
        let mut places = BTreeMap::new();
        for group in world.groups.values() {
            for (pod, node) in &group.bound {
                places.insert(pod, Place::Node(node));
            }
        }
        for (index, claim) in solution.claims.iter().enumerate() {
            places.extend(claim.pods.iter().map(|pod| (pod, Place::Claim(index))));
        }
        for PodsOnNode { node, pods } in &solution.existing {
            places.extend(pods.iter().map(|pod| (pod, Place::Node(node.name()))));
        }
        Self {
            world,
            solution,
            places,
        }
    }

    fn place(&self, pod: &PodKey) -> Option<Place<'a>> {
        self.places.get(pod).copied()
    }

    /// Pods of a group's name, or the one pod of that name.
    fn who(&self, name: &str) -> Result<Vec<PodKey>> {
        if let Some(group) = self.world.groups.get(name) {
            let bound = group.bound.iter().map(|(pod, _)| pod.clone());
            return Ok(group.pending.iter().cloned().chain(bound).collect());
        }
        let all = self.world.groups.values();
        let found = all
            .flat_map(|it| it.pending.iter().chain(it.bound.iter().map(|(pod, _)| pod)))
            .find(|pod| pod.name == name)
            .with_context(|| format!("no pod or group {name:?}"))?;
        Ok(vec![found.clone()])
    }

    fn all(&self, names: &[String]) -> Result<Vec<PodKey>> {
        let mut pods = Vec::new();
        for name in names {
            pods.extend(self.who(name)?);
        }
        Ok(pods)
    }

    fn group_of(&self, pod: &PodKey) -> &str {
        let mut all = self.world.groups.iter();
        all.find(|(_, group)| group.pending.contains(pod))
            .map_or("", |(name, _)| name)
    }

    fn unplaced(&self, expect: &Expect, faults: &mut Vec<String>) -> Result<()> {
        let mut reasons: BTreeMap<PodKey, String> = self
            .solution
            .pod_errors
            .iter()
            .map(|(pod, error)| (pod.clone(), format!("{}: {error}", error.reason())))
            .collect();
        let ignored = self.world.ignored.iter();
        reasons.extend(ignored.map(|(pod, reason)| (pod.clone(), format!("Ignored: {reason}"))));
        for (name, words) in &expect.unplaced {
            let pods = self.who(name)?;
            let (count, reason) = match words.split_once(" x ") {
                Some((count, reason)) => (count.parse().context(words.clone())?, reason),
                None => (pods.len(), words.as_str()),
            };
            let found: Vec<(PodKey, String)> = pods
                .iter()
                .filter_map(|pod| reasons.remove_entry(pod))
                .collect();
            if found.len() != count {
                faults.push(format!(
                    "{name}: {} without a place, expected {count}",
                    found.len()
                ));
            }
            for (pod, told) in found {
                if !told.contains(reason) {
                    faults.push(format!("{pod}: expected {reason:?} in {told:?}"));
                }
            }
        }
        for (pod, told) in reasons {
            faults.push(format!("{pod} has no place: {told}"));
        }
        let overlooked: BTreeSet<PodKey> = self.all(&expect.overlooked)?.into_iter().collect();
        for group in self.world.groups.values() {
            for pod in &group.pending {
                let has_reason = self.solution.pod_errors.contains_key(pod)
                    || self.world.ignored.contains_key(pod);
                let is_overlooked = self.place(pod).is_none() && !has_reason;
                if is_overlooked != overlooked.contains(pod) {
                    faults.push(format!("{pod}: overlooked: {is_overlooked}"));
                }
            }
        }
        Ok(())
    }

    /// Each entry takes one claim that meets it; entries that leave a claim to others should come last.
    fn claims(
        &self,
        wanted: &[ClaimExpect],
        is_whole: bool,
        faults: &mut Vec<String>,
    ) -> Result<()> {
        let mut left: Vec<&NewClaim> = self.solution.claims.iter().collect();
        if is_whole && left.len() != wanted.len() {
            faults.push(format!("claims: {}, expected {}", left.len(), wanted.len()));
        }
        for (index, wanted) in wanted.iter().enumerate() {
            let mut nearest: Option<Vec<String>> = None;
            let mut met = None;
            for (at, claim) in left.iter().enumerate() {
                let found = self.claim(wanted, claim)?;
                if found.is_empty() {
                    met = Some(at);
                    break;
                }
                if nearest.as_ref().is_none_or(|it| found.len() < it.len()) {
                    nearest = Some(found);
                }
            }
            match (met, nearest) {
                (Some(at), _) => {
                    left.remove(at);
                }
                (None, Some(nearest)) => {
                    faults.push(format!("expected claim {index}: {}", nearest.join(", ")));
                }
                (None, None) => faults.push(format!("expected claim {index}: none left")),
            }
        }
        Ok(())
    }

    fn claim(&self, wanted: &ClaimExpect, claim: &NewClaim) -> Result<Vec<String>> {
        let mut faults = Vec::new();
        let best = &claim.best;
        let zone = best.zone.as_deref().unwrap_or_default();
        let capacity_type = CapacityType::word(best.capacity_type);
        let words = [
            ("pool", &wanted.pool, claim.pool.as_str()),
            ("cheapest", &wanted.cheapest, &best.instance_type),
            ("zone", &wanted.zone, zone),
            ("capacity", &wanted.capacity, capacity_type),
        ];
        for (what, wanted, got) in words {
            if wanted.as_ref().is_some_and(|it| it != got) {
                faults.push(format!("{what} {got:?}"));
            }
        }
        if let Some(who) = &wanted.pods
            && !self.are(who, &claim.pods)
        {
            faults.push(format!("pods {}", keys(&claim.pods)));
        }
        let price = best.price_per_hour;
        if wanted
            .price
            .is_some_and(|it| (it - price).abs() > PRICE_TOLERANCE)
        {
            faults.push(format!("price {price}"));
        }
        let relaxed = claim.are_min_values_relaxed;
        if wanted.min_values_relaxed.is_some_and(|it| it != relaxed) {
            faults.push(format!("minValues relaxed: {relaxed}"));
        }
        types_of(wanted, claim, &mut faults);
        for (name, amount) in types::amounts(&wanted.requests)?.iter() {
            if claim.requests.get(name) != amount {
                let got = claim.requests.get(name);
                faults.push(format!("requests {name}: {got}m, expected {amount}m"));
            }
        }
        self.object(wanted, claim, &mut faults)?;
        Ok(faults)
    }

    /// The NodeClaim that would be made.
    fn object(
        &self,
        wanted: &ClaimExpect,
        claim: &NewClaim,
        faults: &mut Vec<String>,
    ) -> Result<()> {
        let mut pools = self.world.problem.pools.iter();
        let pool = pools
            .find(|it| it.node_pool.metadata.name.as_deref() == Some(claim.pool.as_str()))
            .context("the claim's pool")?;
        let mut object = claim.to_node_claim(&pool.node_pool, 0);
        self.world.overlaid.mark(&mut object, &claim.pool);
        let object = serde_json::to_value(object)?;
        let requirements = object["spec"]["requirements"].as_array();
        let requirements = requirements.map(Vec::as_slice).unwrap_or_default();
        for words in &wanted.requires {
            let requirement = words::requirement(words)?;
            if !requirements.contains(&requirement) {
                let same: Vec<&Value> = requirements
                    .iter()
                    .filter(|it| it["key"] == requirement["key"])
                    .collect();
                faults.push(format!("no requirement {words:?}, only {same:?}"));
            }
        }
        for short in &wanted.requires_not {
            if requirements.iter().any(|it| it["key"] == words::key(short)) {
                faults.push(format!("a requirement on {short:?}"));
            }
        }
        if !covers(&object, &wanted.object) {
            faults.push(format!("object {object}"));
        }
        for pointer in &wanted.object_without {
            let there = object.pointer(pointer);
            if there.is_some_and(|it| it.as_array().is_none_or(|it| !it.is_empty())) {
                faults.push(format!("object has {pointer}: {there:?}"));
            }
        }
        Ok(())
    }

    fn are(&self, who: &Who, pods: &[PodKey]) -> bool {
        match who {
            Who::Count(count) => pods.len() == *count,
            Who::Names(names) => self.all(names).is_ok_and(|wanted| {
                let wanted: BTreeSet<PodKey> = wanted.into_iter().collect();
                wanted == pods.iter().cloned().collect()
            }),
            Who::Groups(groups) => {
                let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
                for pod in pods {
                    *counts.entry(self.group_of(pod)).or_default() += 1;
                }
                let wanted: BTreeMap<&str, usize> = groups
                    .iter()
                    .map(|(name, count)| (name.as_str(), *count))
                    .collect();
                counts == wanted
            }
        }
    }

    fn existing(&self, wanted: &BTreeMap<String, Who>, faults: &mut Vec<String>) {
        let got: BTreeMap<&str, &[PodKey]> = self
            .solution
            .existing
            .iter()
            .map(|it| (it.node.name(), it.pods.as_slice()))
            .collect();
        for (node, who) in wanted {
            let pods = got.get(node.as_str()).copied().unwrap_or_default();
            if !self.are(who, pods) {
                faults.push(format!("node {node} gets [{}]", keys(pods)));
            }
        }
        for (node, pods) in got {
            if !wanted.contains_key(node) {
                faults.push(format!("node {node} gets [{}], expected none", keys(pods)));
            }
        }
    }

    /// A label of the place, in short; `node` is its name.
    fn label(&self, place: Place<'a>, short: &str) -> Option<String> {
        match place {
            Place::Node(name) if short == "node" => Some(name.to_owned()),
            Place::Node(name) => {
                let mut nodes = self.world.problem.nodes.iter();
                let node = nodes.find(|it| it.node_ref.name() == name || it.hostname == name)?;
                node.labels.get(words::key(short)).cloned()
            }
            Place::Claim(index) => {
                let claim = &self.solution.claims[index];
                let key = words::key(short);
                let settled = claim
                    .requirements
                    .find(key)
                    .filter(|it| !it.is_complement() && it.values().len() == 1)
                    .and_then(|it| it.values().next().map(str::to_owned));
                match key {
                    "node" => Some("new".to_owned()),
                    labels::HOSTNAME => Some(format!("new-{index}")),
                    labels::NODEPOOL => Some(claim.pool.clone()),
                    labels::INSTANCE_TYPE => Some(claim.best.instance_type.clone()),
                    labels::TOPOLOGY_ZONE => settled.or_else(|| claim.best.zone.clone()),
                    labels::CAPACITY_TYPE => {
                        settled.or_else(|| Some(claim.best.capacity_type?.to_string()))
                    }
                    _ => settled.or_else(|| self.label_of_best(claim, key)),
                }
            }
        }
    }

    fn label_of_best(&self, claim: &NewClaim, key: &str) -> Option<String> {
        let mut pools = self.world.problem.pools.iter();
        let pool = pools.find(|it| it.node_pool.metadata.name.as_deref() == Some(&claim.pool))?;
        let mut all = pool.instance_types.iter();
        let best = all.find(|it| it.name == claim.best.instance_type)?;
        let of_type = best.requirements.find(key)?;
        of_type.values().next().map(str::to_owned)
    }

    fn landed(
        &self,
        who: &str,
        wanted: &BTreeMap<String, Text>,
        faults: &mut Vec<String>,
    ) -> Result<()> {
        for pod in self.who(who)? {
            let Some(place) = self.place(&pod) else {
                faults.push(format!("{pod} has no place"));
                continue;
            };
            for (short, value) in wanted {
                let got = self.label(place, short);
                let is_met = value.0.split('|').any(|it| got.as_deref() == Some(it));
                if !is_met {
                    faults.push(format!("{pod}: {short} {got:?}, expected {value}"));
                }
            }
        }
        Ok(())
    }

    fn tally(
        &self,
        group: &str,
        short: &str,
        wanted: &Tally,
        faults: &mut Vec<String>,
    ) -> Result<()> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for pod in self.who(group)? {
            if let Some(place) = self.place(&pod) {
                let domain = self.label(place, short).unwrap_or_default();
                *counts.entry(domain).or_default() += 1;
            }
        }
        let is_met = match wanted {
            Tally::Sorted(wanted) => {
                let mut sorted: Vec<usize> = counts.values().copied().collect();
                sorted.sort_unstable_by(|a, b| b.cmp(a));
                sorted == *wanted
            }
            Tally::Domains(wanted) => counts == *wanted,
        };
        if !is_met {
            faults.push(format!(
                "{group} by {short}: {counts:?}, expected {wanted:?}"
            ));
        }
        Ok(())
    }
}

fn types_of(wanted: &ClaimExpect, claim: &NewClaim, faults: &mut Vec<String>) {
    let got: BTreeSet<&str> = claim.instance_types.iter().collect();
    if let Some(wanted) = &wanted.types {
        let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
        if wanted != got {
            faults.push(format!("types {got:?}"));
        }
    }
    if wanted.types_count.is_some_and(|it| it != got.len()) {
        faults.push(format!("{} types", got.len()));
    }
    for name in &wanted.types_with {
        if !got.contains(name.as_str()) {
            faults.push(format!("type {name} is missing"));
        }
    }
    for name in &wanted.types_without {
        if got.contains(name.as_str()) {
            faults.push(format!("type {name} is there"));
        }
    }
}

/// Whether everything of `part` is in `whole`; lists in any order, each item covered by one of the whole's.
fn covers(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (_, Value::Null) => true,
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|it| covers(it, value))),
        (Value::Array(whole), Value::Array(part)) => part
            .iter()
            .all(|value| whole.iter().any(|it| covers(it, value))),
        (whole, part) => whole == part,
    }
}
