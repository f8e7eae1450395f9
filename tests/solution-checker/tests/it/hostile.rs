//! Absurd input that still parses: the solver answers, for every pod, and never panics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::resources::Resources;
use apis::{NodeRef, labels};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use proptest::collection::vec;
use proptest::prelude::*;
use scheduling::instance_type::InstanceType;
use scheduling::pod::{
    AffinityTerm, LabelSelector, Pod, PodKey, PodShape, ShapeTable, TopologySpread, Weighted,
};
use scheduling::problem::{ExistingNode, Packing, PodVolumes, Pool};
use scheduling::ranking::{PriceRank, RankAnswer, RankHook, RankRound, Ranking};
use scheduling::requirements::{Operator, Requirement, Requirements};
use scheduling::{Interrupt, Problem, Solution, solve};
use serde_json::{Value, json};

use crate::properties::config;
use crate::world::worlds;

/// Amounts that nobody should ask for.
const ABSURD: [i64; 8] = [
    0,
    1,
    -1,
    999,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MAX / 1000,
];
const PRICES: [f64; 7] = [
    f64::NAN,
    -1.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    f64::MAX,
    f64::MIN_POSITIVE,
];
const COUNTS: [i32; 5] = [0, -1, i32::MAX, i32::MIN, 1];

/// What to spoil, whose (by position), and how.
type Spoiling = (u8, usize, usize);

fn spoil(problem: &mut Problem, (what, whose, how): Spoiling) {
    match what {
        0..=8 => spoil_pod(problem, what, whose, how),
        9..=16 => spoil_type(problem, what, whose, how),
        17..=21 => spoil_pool(problem, what, whose, how),
        22..=26 => spoil_node(problem, what, whose, how),
        _ => spoil_rest(problem, what, whose, how),
    }
}

fn pick<T: Copy>(from: &[T], how: usize) -> T {
    from[how % from.len()]
}

fn resource(how: usize) -> &'static str {
    pick(
        &[
            "cpu",
            "memory",
            "pods",
            "nvidia.com/gpu",
            "no.such/thing",
            "hugepages-2Mi",
        ],
        how / 8,
    )
}

fn with_pod(problem: &mut Problem, whose: usize, change: impl FnOnce(&mut PodShape)) {
    let count = problem.pods.len();
    if let Some(pod) = problem.pods.get_mut(whose % count.max(1)) {
        let pod = Arc::make_mut(pod);
        change(Arc::make_mut(&mut pod.shape));
    }
}

fn spoil_pod(problem: &mut Problem, what: u8, whose: usize, how: usize) {
    let number = pick(&COUNTS, how);
    let selector = pick(&[0, 1], how);
    let selector = (selector == 1).then(LabelSelector::default);
    let key = pick(
        &["", labels::HOSTNAME, labels::TOPOLOGY_ZONE, "no such key"],
        how / 4,
    );
    let term = AffinityTerm {
        topology_key: key.to_owned(),
        selector: selector.clone(),
        namespaces: vec![String::new()],
        namespace_selector: (how.is_multiple_of(3)).then(LabelSelector::default),
    };
    with_pod(problem, whose, |shape| match what {
        0 => shape.requests.set(resource(how), pick(&ABSURD, how)),
        1 => shape.requests = Resources::new(),
        2 => shape.topology_spread.push(TopologySpread {
            max_skew: number,
            topology_key: key.to_owned(),
            is_required: how.is_multiple_of(2),
            selector,
            min_domains: Some(pick(&COUNTS, how / 5)),
            honors_node_affinity: how.is_multiple_of(3),
            honors_node_taints: how.is_multiple_of(5),
        }),
        3 => shape.pod_affinity.push(term),
        4 => shape.pod_anti_affinity.push(term),
        5 => {
            let weighted = Weighted {
                weight: number,
                value: term,
            };
            shape.preferred_pod_affinity.push(weighted.clone());
            shape.preferred_pod_anti_affinity.push(weighted);
        }
        6 => shape.required_node_affinity.push(contradiction(how)),
        7 => {
            let value = contradiction(how);
            shape.preferred_node_affinity.push(Weighted {
                weight: number,
                value,
            });
        }
        _ => shape.host_ports.extend(shape.host_ports.clone()),
    });
}

fn contradiction(how: usize) -> Vec<Requirement> {
    let key = pick(
        &[labels::TOPOLOGY_ZONE, labels::INSTANCE_CPU, "team", ""],
        how,
    );
    let (most, least) = (i64::MAX.to_string(), i64::MIN.to_string());
    match how % 6 {
        0 => vec![],
        1 => vec![Requirement::new(key, Operator::Gt, [most.as_str()])],
        2 => vec![Requirement::new(key, Operator::Lt, [least.as_str()])],
        3 => vec![
            Requirement::new(key, Operator::In, ["a"]),
            Requirement::new(key, Operator::DoesNotExist, []),
        ],
        4 => vec![Requirement::new(key, Operator::In, [])],
        _ => vec![Requirement::new(key, Operator::Gte, [least.as_str()])],
    }
}

fn spoil_type(problem: &mut Problem, what: u8, whose: usize, how: usize) {
    let amount = pick(&ABSURD, how);
    let change = |of_type: &mut InstanceType| match what {
        9 => of_type.capacity.set(resource(how), amount),
        10 => of_type.capacity = Resources::new(),
        11 => of_type.overhead.kube_reserved.set(resource(how), amount),
        12 => of_type
            .offerings
            .iter_mut()
            .for_each(|o| o.price_per_hour = pick(&PRICES, how)),
        13 => of_type.offerings.clear(),
        14 => pick(&["", "same", "same"], how).clone_into(&mut of_type.name),
        15 => contradiction(how)
            .into_iter()
            .for_each(|r| of_type.requirements.add(r)),
        _ => of_type.offerings.iter_mut().for_each(|o| {
            o.reservation_capacity = u32::MAX;
            o.requirements = Requirements::new();
        }),
    };
    for pool in &mut problem.pools {
        let mut types: Vec<_> = pool.instance_types.to_vec();
        let count = types.len();
        if let Some(of_type) = types.get_mut(whose % count.max(1)) {
            change(Arc::make_mut(of_type));
        }
        pool.instance_types = types.into();
    }
}

fn spoil_pool(problem: &mut Problem, what: u8, whose: usize, how: usize) {
    let count = problem.pools.len();
    let pool: &mut Pool = &mut problem.pools[whose % count];
    let amount = pick(&ABSURD, how);
    if what == 17 {
        pool.in_use
            .set(pick(&["cpu", "nodes", "memory"], how / 8), amount);
        return;
    }
    if what == 18 {
        pool.instance_types = Arc::from([]);
        return;
    }
    let node_pool = Arc::make_mut(&mut pool.node_pool);
    match what {
        19 => {
            let limit = BTreeMap::from([(resource(how).to_owned(), Quantity(amount.to_string()))]);
            node_pool.spec.limits = Some(limit);
        }
        20 => node_pool.metadata.name = pick(&[None, Some("pool-0")], how).map(str::to_owned),
        _ => {
            node_pool.spec.weight = Some(pick(&COUNTS, how));
            let least = pick(&[0, -1, i64::MAX, 1_000_000], how);
            let key = pick(&[labels::INSTANCE_TYPE, "team", labels::TOPOLOGY_ZONE], how);
            let asked = json!({"key": key, "operator": "Exists", "minValues": least});
            let asked = serde_json::from_value(asked).unwrap();
            node_pool.spec.template.spec.requirements.push(asked);
        }
    }
}

fn spoil_node(problem: &mut Problem, what: u8, whose: usize, how: usize) {
    let count = problem.nodes.len();
    let Some(node) = problem.nodes.get_mut(whose % count.max(1)) else {
        return;
    };
    let node: &mut ExistingNode = Arc::make_mut(node);
    let amount = pick(&ABSURD, how);
    match what {
        22 => node.allocatable.set(resource(how), amount),
        23 => node.requests.set(resource(how), amount),
        24 => node.labels.clear(),
        25 => node.node_ref = NodeRef::node("same"),
        _ => node.daemon_requests.set(resource(how), amount),
    }
}

fn spoil_rest(problem: &mut Problem, what: u8, whose: usize, how: usize) {
    let count = problem.pods.len().max(1);
    let Some(pod) = problem.pods.get(whose % count).cloned() else {
        return;
    };
    match what {
        27 => problem.pods.push(pod),
        28 => problem.options.tuning.instance_types_max = pick(&[0, 1, usize::MAX], how),
        29 => problem.options.threads = pick(&[0, 3], how),
        30 => {
            let alternatives = (0..how % 3).map(|at| contradiction(how + at).into_iter().collect());
            let volumes = PodVolumes {
                alternatives: alternatives.collect(),
                attachments: BTreeMap::from([(String::new(), BTreeSet::new())]),
                error: None,
            };
            problem.volumes.insert(pod.key.clone(), volumes);
        }
        31 => {
            for daemon in &mut problem.daemons {
                let shape = Arc::make_mut(&mut daemon.shape);
                shape.requests.set(resource(how), pick(&ABSURD, how));
            }
        }
        _ => problem.namespaces.clear(),
    }
}

/// A policy gone wrong.
struct WildRank(usize);

impl RankHook for WildRank {
    fn rank(&self, round: &RankRound) -> RankAnswer {
        let mut answer = PriceRank.rank(round);
        match self.0 % 4 {
            0 => answer.rankings.clear(),
            1 => answer.rankings.iter_mut().for_each(|r| r.scores.clear()),
            2 => answer.rankings.iter_mut().for_each(|r| {
                r.scores.iter_mut().for_each(|s| *s = pick(&PRICES, self.0));
            }),
            _ => answer.rankings.iter_mut().for_each(|r: &mut Ranking| {
                let all = (0..=u32::MAX).step_by(7).take(40);
                r.excluded.extend(all.map(|at| (at, String::new())));
                r.excluded.push((u32::MAX, "no such row".to_owned()));
            }),
        }
        answer
    }
}

/// Every pod has a place or a reason, nobody else has.
fn is_accounted_for(problem: &Problem, solution: &Solution) -> bool {
    let asked: BTreeSet<&PodKey> = problem.pods.iter().map(|pod| &pod.key).collect();
    let in_claims = solution.claims.iter().flat_map(|claim| &claim.pods);
    let on_nodes = solution.existing.iter().flat_map(|it| &it.pods);
    let found: BTreeSet<&PodKey> = in_claims
        .chain(on_nodes)
        .chain(solution.pod_errors.keys())
        .collect();
    asked == found
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn no_value_is_too_absurd(
        world in worlds(),
        spoilings in vec((0_u8..33, 0_usize..64, 0_usize..240), 1..8),
        hook in 0_usize..200,
    ) {
        let mut problem = world.build().problem;
        for spoiling in spoilings {
            spoil(&mut problem, spoiling);
        }
        for packing in [Packing::Cost, Packing::Karpenter] {
            problem.options.packing = packing;
            let wild = WildRank(hook);
            let hook: &dyn RankHook = if hook < 40 { &wild } else { &PriceRank };
            let solution = solve(&problem, hook, &Interrupt::never());
            prop_assert!(is_accounted_for(&problem, &solution));
            for claim in &solution.claims {
                // Whoever writes the claim must be able to, and words must be found for every reason.
                let pool = problem.pools.iter().map(|p| &p.node_pool);
                let pool = pool.into_iter().find(|p| p.metadata.name.as_deref().unwrap_or("") == claim.pool);
                let object = claim.to_node_claim(pool.unwrap(), u64::MAX);
                prop_assert!(serde_json::to_value(&object).is_ok());
            }
            for error in solution.pod_errors.values() {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn a_pod_object_parses_or_says_where_it_is_wrong(
        quantity in "[-+]?[0-9.]{0,22}([eE][-+]?[0-9]{1,4}|m|k|Ki|Mi|Gi|Ei|E|n|u)?",
        operator in "In|NotIn|Exists|Gt|Lt|Gte|Near|",
        value in "[-0-9a-z]{0,24}",
    ) {
        let expression = json!({"key": value, "operator": operator, "values": [value]});
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}, {}]});
        let object: Value = json!({"metadata": {"name": "p"}, "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": quantity}, "limits": {"memory": quantity}}}],
            "overhead": {"cpu": quantity},
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        }});
        let object = serde_json::from_value(object).unwrap();
        if let Err(error) = Pod::parse(&object, &mut ShapeTable::new()) {
            prop_assert!(error.to_string().contains("default/p"), "{}", error);
        }
    }
}
