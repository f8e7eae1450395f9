//! The end state: every node there will be, what it may look like, and who is on it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use apis::{CapacityType, labels};
use k8s_openapi::api::core::v1::Taint;
use scheduling::instance_type::{InstanceType, Offering};
use scheduling::pod::{Pod, PodKey, Toleration};
use scheduling::problem::{ExistingNode, Pool};
use scheduling::requirements::{Operator, Requirement, Requirements};
use scheduling::solution::{NewClaim, PodsOnNode};
use scheduling::{Problem, Solution};

use crate::amounts::{Amounts, allocatable};
use crate::claims::template;
use crate::places::{DaemonUse, daemons_of_type};
use crate::sets::{Label, Set, conjunction, do_not_clash, sets_of};
use crate::{Faults, Rule};

/// Values of a label.
type Domains = Rc<BTreeSet<String>>;

/// Everything at the end state.
pub(crate) struct Layout<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) places: Vec<Place<'a>>,
    /// By position of the pool and label.
    domains: RefCell<BTreeMap<(usize, String), Domains>>,
}

/// A node at the end state.
pub(crate) struct Place<'a> {
    pub(crate) name: String,
    pub(crate) kind: Kind<'a>,
    pub(crate) guests: Vec<Guest<'a>>,
    seen: RefCell<BTreeMap<String, Rc<BTreeSet<Label>>>>,
}

/// Where a place comes from.
pub(crate) enum Kind<'a> {
    Node(&'a ExistingNode),
    Claim(ClaimPlace<'a>),
}

/// A claim with all it may become.
pub(crate) struct ClaimPlace<'a> {
    pub(crate) claim: &'a NewClaim,
    pub(crate) pool: &'a Pool,
    pub(crate) facts: Rc<PoolFacts<'a>>,
    pub(crate) types: Vec<&'a InstanceType>,
    /// The ways to buy it under its requirements, those of a type side by side and types in the claim's order.
    pub(crate) sales: Vec<(&'a InstanceType, &'a Offering)>,
    pub(crate) required: BTreeMap<String, Set>,
}

/// A pod on a place.
#[derive(Clone, Copy)]
pub(crate) struct Guest<'a> {
    pub(crate) pod: &'a Pod,
    /// Placed by the answer, not before.
    pub(crate) is_new: bool,
}

/// What a place is in terms of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Domain {
    None,
    One(String),
    Several(BTreeSet<String>),
    Open,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(problem: &'a Problem, solution: &'a Solution, faults: &mut Faults) -> Self {
        let pods: BTreeMap<&PodKey, &Pod> = problem.pods.iter().map(|p| (&p.key, &**p)).collect();
        let new_guests = |keys: &[PodKey]| -> Vec<Guest<'a>> {
            let known = keys.iter().filter_map(|key| pods.get(key).copied());
            known.map(|pod| Guest { pod, is_new: true }).collect()
        };
        let mut places = Vec::new();
        let mut facts: BTreeMap<&str, Rc<PoolFacts<'a>>> = BTreeMap::new();
        for node in &problem.nodes {
            let stays = |pod: &&'a Pod| !pod.is_terminal() && !pods.contains_key(&pod.key);
            let bound = node.pods.iter().map(|pod| &**pod).filter(stays);
            let mut guests: Vec<Guest<'a>> =
                bound.map(|pod| Guest { pod, is_new: false }).collect();
            let here = solution.existing.iter();
            for new in here.filter(|it| it.node == node.node_ref) {
                guests.extend(new_guests(&new.pods));
            }
            let name = node.node_ref.to_string();
            places.push(Place::new(name, Kind::Node(node), guests));
        }
        for PodsOnNode { node, .. } in &solution.existing {
            if !problem.nodes.iter().any(|it| it.node_ref == *node) {
                faults.add(Rule::OnePlace, format!("there is no node {node}"));
            }
        }
        for (index, claim) in solution.claims.iter().enumerate() {
            let name = format!("claim {index} of {}", claim.pool);
            match ClaimPlace::new(problem, claim, &mut facts) {
                Ok(found) => {
                    let guests = new_guests(&claim.pods);
                    places.push(Place::new(name, Kind::Claim(found), guests));
                }
                Err(what) => faults.add(Rule::InstanceTypes, format!("{name}: {what}")),
            }
        }
        Self {
            problem,
            places,
            domains: RefCell::default(),
        }
    }

    /// Every value of a label that nodes of a pool could have, available now or not.
    pub(crate) fn domains_of_pool(&self, pool: usize, key: &str) -> Domains {
        let asked = (pool, key.to_owned());
        if let Some(known) = self.domains.borrow().get(&asked) {
            return Rc::clone(known);
        }
        let found = Rc::new(domains_of_pool(&self.problem.pools[pool], key));
        self.domains.borrow_mut().insert(asked, Rc::clone(&found));
        found
    }
}

fn domains_of_pool(pool: &Pool, key: &str) -> BTreeSet<String> {
    let template = template(pool);
    let mut values: BTreeSet<String> = BTreeSet::new();
    for of_type in pool.instance_types.iter() {
        let offered = of_type.offerings.iter().map(|o| &o.requirements);
        let own = std::iter::once(&of_type.requirements);
        for requirement in own.chain(offered).filter_map(|r| r.find(key)) {
            values.extend(Set::of(requirement).members().unwrap_or_default());
        }
    }
    if let Some(of_template) = template.get(key) {
        values.retain(|value| of_template.has(value));
        if values.is_empty() {
            values = of_template.members().unwrap_or_default();
        }
    }
    values
}

/// What is the same for all claims of a pool.
pub(crate) struct PoolFacts<'a> {
    pub(crate) template: BTreeMap<String, Set>,
    pub(crate) types: BTreeMap<&'a str, TypeFacts<'a>>,
    /// The different requirements of its offerings.
    markets: Vec<BTreeMap<String, Set>>,
}

/// What is the same for all claims of a pool that may become a type.
pub(crate) struct TypeFacts<'a> {
    of_type: &'a InstanceType,
    own: BTreeMap<String, Set>,
    /// With the position of their market.
    offerings: Vec<(usize, &'a Offering)>,
    /// Whether the pool allows the type.
    pub(crate) is_allowed: bool,
    pub(crate) daemons: DaemonUse,
    /// What pods may have of it.
    pub(crate) left: Amounts,
}

impl<'a> PoolFacts<'a> {
    fn new(problem: &'a Problem, pool: &'a Pool) -> Self {
        let template = template(pool);
        let taints = &pool.node_pool.spec.template.spec.taints;
        let mut markets = Vec::new();
        let mut numbers: BTreeMap<&Requirements, usize> = BTreeMap::new();
        let mut facts = |of_type: &'a InstanceType| {
            let own = sets_of(&of_type.requirements);
            let daemons = daemons_of_type(problem, &template, taints, &own);
            let launchable = of_type.offerings.iter().filter(|o| is_launchable(o));
            TypeFacts {
                of_type,
                offerings: launchable
                    .map(|offering| {
                        let number = numbers.entry(&offering.requirements).or_insert_with(|| {
                            markets.push(sets_of(&offering.requirements));
                            markets.len() - 1
                        });
                        (*number, offering)
                    })
                    .collect(),
                is_allowed: do_not_clash(&template, &own),
                left: allocatable(of_type).minus(&daemons.requests),
                daemons,
                own,
            }
        };
        let types = pool.instance_types.iter().map(|t| (&*t.name, facts(t)));
        Self {
            types: types.collect(),
            markets,
            template,
        }
    }
}

impl<'a> ClaimPlace<'a> {
    fn new(
        problem: &'a Problem,
        claim: &'a NewClaim,
        facts: &mut BTreeMap<&'a str, Rc<PoolFacts<'a>>>,
    ) -> Result<Self, String> {
        let pool = problem
            .pools
            .iter()
            .find(|p| p.node_pool.metadata.name.as_deref().unwrap_or("") == claim.pool)
            .ok_or("there is no such pool")?;
        let facts = facts.entry(&claim.pool);
        let facts = facts.or_insert_with(|| Rc::new(PoolFacts::new(problem, pool)));
        let facts = Rc::clone(facts);
        let mut types = Vec::new();
        for name in claim.instance_types.iter() {
            let found = facts.types.get(name);
            types.push(found.ok_or_else(|| format!("the pool has no type {name}"))?);
        }
        let capacity_types = claim.capacity_types.iter().map(|it| it.as_str());
        let sold = Requirement::new(labels::CAPACITY_TYPE, Operator::In, capacity_types);
        let mut required = sets_of(&claim.requirements);
        let asked = required.remove(labels::CAPACITY_TYPE);
        // The object names the capacity types that are left, as it names the types.
        let sold = asked.map_or_else(|| Set::of(&sold), |asked| asked.and(&Set::of(&sold)));
        required.insert(labels::CAPACITY_TYPE.to_owned(), sold);
        let markets = facts.markets.iter();
        let is_open: Vec<bool> = markets.map(|m| do_not_clash(&required, m)).collect();
        let sales = types
            .iter()
            .filter(|t| do_not_clash(&required, &t.own))
            .flat_map(|t| {
                t.offerings
                    .iter()
                    .map(|(market, o)| (*market, t.of_type, *o))
            })
            .filter(|(market, ..)| is_open[*market])
            .map(|(_, of_type, offering)| (of_type, offering))
            .collect();
        Ok(Self {
            claim,
            pool,
            types: types.iter().map(|t| t.of_type).collect(),
            facts: Rc::clone(&facts),
            sales,
            required,
        })
    }

    fn label(&self, key: &str, of_type: &InstanceType, offering: &Offering) -> Label {
        let sold = [&of_type.requirements, &offering.requirements];
        let sold = sold.into_iter().filter_map(|r| r.find(key)).map(Set::of);
        let all = self.required.get(key).cloned().into_iter().chain(sold);
        match conjunction(all.map(|set| (key, set))).remove(key) {
            None => Label::Absent,
            Some(set) if set.members().is_some_and(|m| m.is_empty()) => Label::Absent,
            Some(set) => Label::Within(set),
        }
    }
}

impl<'a> Place<'a> {
    fn new(name: String, kind: Kind<'a>, guests: Vec<Guest<'a>>) -> Self {
        let seen = RefCell::default();
        Self {
            name,
            kind,
            guests,
            seen,
        }
    }

    pub(crate) fn claim(&self) -> Option<&ClaimPlace<'a>> {
        match &self.kind {
            Kind::Claim(claim) => Some(claim),
            Kind::Node(_) => None,
        }
    }

    pub(crate) fn new_guests(&self) -> impl Iterator<Item = &'a Pod> {
        self.guests.iter().filter(|g| g.is_new).map(|g| g.pod)
    }

    pub(crate) fn taints(&self) -> &[Taint] {
        match &self.kind {
            Kind::Node(node) => &node.taints,
            Kind::Claim(claim) => &claim.pool.node_pool.spec.template.spec.taints,
        }
    }

    /// All that the label may turn out to be.
    pub(crate) fn labels(&self, key: &str) -> Rc<BTreeSet<Label>> {
        if let Some(known) = self.seen.borrow().get(key) {
            return Rc::clone(known);
        }
        let found: BTreeSet<Label> = match &self.kind {
            Kind::Node(node) => {
                let of_host = (key == labels::HOSTNAME).then_some(&node.hostname);
                let value = node.labels.get(key).or(of_host);
                BTreeSet::from([value.map_or(Label::Absent, |v| Label::Within(Set::one(v)))])
            }
            // Nobody knows a new node's name, so a pod that asks for one is not served by it.
            Kind::Claim(_) if key == labels::HOSTNAME => {
                BTreeSet::from([Label::Within(Set::one(&self.name))])
            }
            Kind::Claim(claim) => {
                let sales = claim.sales.iter();
                sales.map(|(t, o)| claim.label(key, t, o)).collect()
            }
        };
        let found = Rc::new(found);
        self.seen
            .borrow_mut()
            .insert(key.to_owned(), Rc::clone(&found));
        found
    }

    /// Whether the requirements hold whatever the node turns out to be.
    pub(crate) fn satisfies(&self, requirements: &BTreeMap<String, Set>) -> bool {
        requirements
            .iter()
            .all(|(key, set)| self.labels(key).iter().all(|label| label.satisfies(set)))
    }

    pub(crate) fn domain(&self, key: &str) -> Domain {
        let mut values = BTreeSet::new();
        for label in self.labels(key).iter() {
            match label {
                Label::Absent => {}
                Label::Within(set) => match set.members() {
                    Some(members) => values.extend(members),
                    None => return Domain::Open,
                },
            }
        }
        match values.len() {
            0 => Domain::None,
            1 => values.pop_first().map_or(Domain::None, Domain::One),
            _ => Domain::Several(values),
        }
    }
}

/// What a launch would get.
pub(crate) fn is_launchable(offering: &Offering) -> bool {
    let is_reserved = offering.capacity_type() == Some(CapacityType::Reserved);
    offering.is_available() && (!is_reserved || offering.reservation_capacity > 0)
}

/// The pod's selector with each of its required terms: one of these must hold.
pub(crate) fn alternatives(pod: &Pod) -> Vec<BTreeMap<String, Set>> {
    let shape = &pod.shape;
    let selector = || {
        let pairs = shape.node_selector.iter();
        pairs.map(|(key, value)| (labels::normalize(key), Set::one(value)))
    };
    if shape.required_node_affinity.is_empty() {
        return vec![conjunction(selector())];
    }
    let terms = shape.required_node_affinity.iter();
    terms
        .map(|term| conjunction(selector().chain(term.iter().map(|r| (r.key(), Set::of(r))))))
        .collect()
}

/// Whether the toleration covers the taint, Kubernetes' rules.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let value = taint.value.as_deref().unwrap_or("");
    let is_effect = toleration.effect.is_empty() || toleration.effect == taint.effect;
    let is_any_key = toleration.key.is_empty() && toleration.operator == "Exists";
    let numbers = || {
        Some((
            value.parse::<i64>().ok()?,
            toleration.value.parse::<i64>().ok()?,
        ))
    };
    let is_value = match toleration.operator.as_str() {
        "Exists" => true,
        "" | "Equal" => toleration.value == value,
        "Lt" => numbers().is_some_and(|(taint, bound)| taint < bound),
        "Gt" => numbers().is_some_and(|(taint, bound)| taint > bound),
        _ => false,
    };
    is_effect && (is_any_key || (toleration.key == taint.key && is_value))
}

/// The first taint that keeps the pod out; a mere preference does not.
pub(crate) fn repelling<'t>(taints: &'t [Taint], tolerations: &[Toleration]) -> Option<&'t Taint> {
    taints
        .iter()
        .filter(|taint| taint.effect != labels::PREFER_NO_SCHEDULE)
        .find(|taint| !tolerations.iter().any(|t| tolerates(t, taint)))
}
