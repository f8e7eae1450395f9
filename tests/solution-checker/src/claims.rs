//! What every new claim must keep: each type it lists can be bought under its requirements and holds all its pods.

use std::collections::{BTreeMap, BTreeSet};

use apis::{CapacityType, labels};
use scheduling::Problem;
use scheduling::instance_type::InstanceType;
use scheduling::problem::{MinValuesPolicy, Pool};
use scheduling::requirements::Requirement;

use crate::amounts::Amounts;
use crate::layout::{ClaimPlace, Place};
use crate::places::share_a_port;
use crate::sets::{Set, conjunction, do_not_clash};
use crate::{Faults, Rule};

pub(crate) fn check(problem: &Problem, place: &Place<'_>, faults: &mut Faults) {
    let Some(claim) = place.claim() else { return };
    let name = &place.name;
    if claim.claim.pods.is_empty() {
        faults.add(Rule::InstanceTypes, format!("{name} has no pods"));
    }
    types(problem, place, claim, faults);
    summary(name, claim, faults);
    min_values(problem, name, claim, faults);
    if !do_not_clash(&claim.facts.template, &claim.required) {
        let what = format!("{name} leaves what its pool allows");
        faults.add(Rule::InstanceTypes, what);
    }
}

/// What nodes of a pool are by its own word.
pub(crate) fn template(pool: &Pool) -> BTreeMap<String, Set> {
    let template = &pool.node_pool.spec.template;
    let class = &template.spec.node_class_ref;
    let wire = template
        .spec
        .requirements
        .iter()
        .map(|r| Requirement::new(&r.key, r.operator, r.values.iter().map(String::as_str)));
    let wire: Vec<Requirement> = wire.collect();
    let name = pool.node_pool.metadata.name.as_deref().unwrap_or("");
    let class_key = labels::node_class_label(&class.group, &class.kind);
    let fixed = [
        (labels::NODEPOOL, name),
        (class_key.as_str(), class.name.as_str()),
        (labels::REGISTERED, "true"),
        (labels::INITIALIZED, "true"),
    ];
    let own = template.metadata.labels.iter();
    conjunction(
        wire.iter()
            .map(|r| (r.key(), Set::of(r)))
            .chain(own.map(|(key, value)| (key.as_str(), Set::one(value))))
            .chain(fixed.into_iter().map(|(key, value)| (key, Set::one(value)))),
    )
}

fn types(problem: &Problem, place: &Place<'_>, claim: &ClaimPlace<'_>, faults: &mut Faults) {
    let name = &place.name;
    let listed: BTreeSet<&str> = claim.claim.instance_types.iter().collect();
    let count = claim.claim.instance_types.len();
    if listed.len() != count || count == 0 || count > problem.options.tuning.instance_types_max {
        let what = format!(
            "{name} lists {count} types, {} of them distinct",
            listed.len()
        );
        faults.add(Rule::InstanceTypes, what);
    }
    let sold: BTreeSet<&str> = claim.sales.iter().map(|(t, _)| &*t.name).collect();
    let mut wanted = Amounts::default();
    for pod in place.new_guests() {
        wanted = wanted.plus(&pod.shape.requests);
    }
    let mut least: Option<Amounts> = None;
    for of_type in &claim.types {
        let Some(facts) = claim.facts.types.get(&*of_type.name) else {
            continue;
        };
        if !sold.contains(&*of_type.name) || !facts.is_allowed {
            let what = format!(
                "{name} lists {}, which cannot be bought for it",
                of_type.name
            );
            faults.add(Rule::InstanceTypes, what);
        }
        if let Some(shortage) = wanted.shortage(&facts.left) {
            let what = format!("{name} as {} is short of {shortage}", of_type.name);
            faults.add(Rule::Resources, what);
        }
        if let Some(pod) = place
            .new_guests()
            .find(|p| share_a_port(&p.shape.host_ports, &facts.daemons.ports))
        {
            let what = format!("{} wants a port of {name} that a daemon holds", pod.key);
            faults.add(Rule::HostPorts, what);
        }
        attachments(problem, place, of_type, faults);
        least = Some(match least {
            None => facts.daemons.requests.clone(),
            Some(known) => smaller(&known, &facts.daemons.requests),
        });
    }
    requests(name, claim, &wanted, &least.unwrap_or_default(), faults);
}

fn smaller(a: &Amounts, b: &Amounts) -> Amounts {
    let names = a.0.keys().filter(|name| b.0.contains_key(*name));
    Amounts(names.map(|n| (n.clone(), a.get(n).min(b.get(n)))).collect())
}

/// A claim asks for its pods and for the daemons that every type left has in common.
fn requests(
    name: &str,
    claim: &ClaimPlace<'_>,
    pods: &Amounts,
    daemons: &Amounts,
    faults: &mut Faults,
) {
    let said = Amounts::of(&claim.claim.requests);
    let keys: BTreeSet<&String> = said
        .0
        .keys()
        .chain(pods.0.keys())
        .chain(daemons.0.keys())
        .collect();
    for key in keys {
        let wanted = pods.get(key) + daemons.get(key);
        if said.get(key) != wanted {
            let what = format!("{name} asks for {} of {key}, not {wanted}", said.get(key));
            faults.add(Rule::Resources, what);
        }
    }
}

fn attachments(problem: &Problem, place: &Place<'_>, of_type: &InstanceType, faults: &mut Faults) {
    for (driver, limit) in &of_type.volume_attachment_limits {
        let wanted: BTreeSet<&String> = place
            .new_guests()
            .filter_map(|pod| problem.volumes.get(&pod.key)?.attachments.get(driver))
            .flatten()
            .collect();
        if wanted.len() > *limit as usize {
            let count = wanted.len();
            let what = format!(
                "{} attaches {count} volumes as {}",
                place.name, of_type.name
            );
            faults.add(Rule::Volumes, what);
        }
    }
}

/// The best offering is the cheapest there is, types come in order of their cheapest, and the capacity types are those
/// that can be bought.
fn summary(name: &str, claim: &ClaimPlace<'_>, faults: &mut Faults) {
    let best = &claim.claim.best;
    let prices = claim.sales.iter().map(|(_, o)| o.price_per_hour);
    let cheapest = prices.fold(f64::INFINITY, f64::min);
    let is_sold = claim.sales.iter().any(|(t, o)| {
        t.name == best.instance_type
            && o.zone() == best.zone.as_deref()
            && o.capacity_type() == best.capacity_type
            && o.price_per_hour.total_cmp(&best.price_per_hour).is_eq()
    });
    if !is_sold {
        faults.add(
            Rule::Summary,
            format!("{name}: its best offering is none of its own"),
        );
    }
    let is_cheapest = best.price_per_hour <= cheapest;
    if !is_cheapest {
        let said = best.price_per_hour;
        let what = format!("{name} is said to cost {said}, it costs {cheapest}");
        faults.add(Rule::Summary, what);
    }
    let mut cheapest_of: BTreeMap<&str, f64> = BTreeMap::new();
    for (of_type, offering) in &claim.sales {
        let known = cheapest_of.entry(&of_type.name).or_insert(f64::INFINITY);
        *known = known.min(offering.price_per_hour);
    }
    let order = claim.types.iter().map(|t| cheapest_of.get(&*t.name));
    let order: Vec<f64> = order
        .map(|price| price.copied().unwrap_or(f64::INFINITY))
        .collect();
    if !order.is_sorted() {
        faults.add(
            Rule::Summary,
            format!("{name}: types are not in order of price"),
        );
    }
    let sold: BTreeSet<CapacityType> = claim
        .sales
        .iter()
        .filter_map(|(_, o)| o.capacity_type())
        .collect();
    if sold != claim.claim.capacity_types {
        let said = &claim.claim.capacity_types;
        let what = format!("{name} says {said:?}, what is sold is {sold:?}");
        faults.add(Rule::Summary, what);
    }
}

fn min_values(problem: &Problem, name: &str, claim: &ClaimPlace<'_>, faults: &mut Faults) {
    for wanted in &claim.pool.node_pool.spec.template.spec.requirements {
        let Some(needed) = wanted.min_values.and_then(|n| usize::try_from(n).ok()) else {
            continue;
        };
        let key = labels::normalize(&wanted.key);
        let mut values: BTreeSet<String> = BTreeSet::new();
        for (of_type, offering) in &claim.sales {
            let sold = [&of_type.requirements, &offering.requirements];
            for requirement in sold.into_iter().filter_map(|r| r.find(key)) {
                values.extend(Set::of(requirement).members().unwrap_or_default());
            }
        }
        if let Some(narrowed) = claim.required.get(key) {
            values.retain(|value| narrowed.has(value));
        }
        let have = values.len();
        let may_relax = problem.options.min_values_policy == MinValuesPolicy::BestEffort;
        let is_told = may_relax && claim.claim.are_min_values_relaxed;
        if have < needed && !is_told {
            let what = format!("{name} keeps {have} values of {key}, {needed} are asked for");
            faults.add(Rule::MinValues, what);
        }
    }
}
