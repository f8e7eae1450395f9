//! What a ranking policy is told before packing and before a launch, and what is told of what it ruled out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use api_server::Resource;
use scheduling::ranking::{
    ClaimView, Needs, PodsSummary, PriceRank, RankAnswer, RankHook, RankRound, RankStage,
};
use serde_json::json;

use crate::world::World;

/// Offerings that are ruled out, and why.
struct Rule {
    stage: RankStage,
    /// In which zone; empty for all.
    zone: &'static str,
    reason: &'static str,
}

/// Ranks by price, by one rule more, and writes down what it is told.
#[derive(Default)]
struct Recorder {
    rounds: Mutex<Vec<RankRound>>,
    rule: Option<Rule>,
}

impl Recorder {
    fn with(stage: RankStage, zone: &'static str, reason: &'static str) -> Arc<Self> {
        let rule = Some(Rule {
            stage,
            zone,
            reason,
        });
        Arc::new(Self {
            rule,
            ..Self::default()
        })
    }

    /// Rounds of a stage whose first claim is for so many pods.
    fn told(&self, stage: RankStage, pods: u32) -> Vec<RankRound> {
        let is_wanted = |it: &&RankRound| {
            let first = it.claims.first();
            first.is_some_and(|claim| claim.stage == stage && claim.pods.count == pods)
        };
        let rounds = self.rounds.lock().unwrap();
        rounds.iter().filter(is_wanted).cloned().collect()
    }
}

impl RankHook for Recorder {
    fn rank(&self, round: &RankRound) -> RankAnswer {
        self.rounds.lock().unwrap().push(round.clone());
        let mut answer = PriceRank.rank(round);
        let Some(rule) = &self.rule else {
            return answer;
        };
        for (claim, ranking) in round.claims.iter().zip(&mut answer.rankings) {
            if claim.stage != rule.stage {
                continue;
            }
            ranking.note = Some("as the rule has it".to_owned());
            for (position, row) in (0..).zip(&claim.candidates) {
                let zone = word(round, round.table.zone[*row as usize]);
                if rule.zone.is_empty() || zone == rule.zone {
                    ranking.excluded.push((position, rule.reason.to_owned()));
                }
            }
        }
        answer
    }

    fn needs(&self) -> Needs {
        Needs {
            free_addresses: true,
            ..Needs::default()
        }
    }
}

fn word(round: &RankRound, symbol: u32) -> &str {
    round
        .table
        .symbols
        .get(symbol as usize)
        .map_or("", String::as_str)
}

/// Nodes by pool, type and zone, as a line of what is known of them.
fn usage(round: &RankRound) -> BTreeMap<String, [f64; 3]> {
    let it = &round.usage;
    let row = |row: usize| {
        let place = [it.nodepool[row], it.instance_type[row], it.zone[row]];
        let place = place.map(|symbol| word(round, symbol)).join(" ");
        let counts = [it.nodes[row], it.launching[row]].map(f64::from);
        (place, [counts[0], counts[1], it.price[row]])
    };
    (0..it.len()).map(row).collect()
}

fn addresses(round: &RankRound) -> BTreeMap<&str, u32> {
    let free = round.claims[0].free_addresses.iter();
    free.map(|(zone, free)| (word(round, *zone), *free))
        .collect()
}

fn has_label(round: &RankRound, claim: &ClaimView, key: &str, value: &str) -> bool {
    let mut labels = claim.nodepool_labels.iter();
    labels.any(|(k, v)| word(round, *k) == key && word(round, *v) == value)
}

/// The value of the class `system-cluster-critical`.
const CRITICAL: i32 = 2_000_000_000;

#[tokio::test(start_paused = true)]
async fn a_launch_sees_what_packing_saw_and_the_launches_beside_it() {
    let recorder = Arc::new(Recorder::default());
    let world = World::with_rank(Arc::clone(&recorder) as _);
    world.change_pool(json!({"metadata": {"labels": {"team": "a"}}}));
    world.pass(5).await;
    world.create_pod("first", "900m", &json!({}));
    let is_ready = |world: &World| {
        let claims = world.names(&Resource::NODE_CLAIMS);
        let ready = |name: &String| world.condition(&Resource::NODE_CLAIMS, name, "Ready");
        claims
            .iter()
            .any(|name| ready(name).as_deref() == Some("True"))
    };
    world.until("the first node stands", 120, is_ready).await;
    recorder.rounds.lock().unwrap().clear();

    // Neither fits beside the other.
    let urgent = json!({"spec": {"priorityClassName": "system-cluster-critical"}});
    world.create_pod("urgent", "6", &urgent);
    let protected = json!({"karpenter.sh/do-not-disrupt": "true"});
    let protected = json!({"metadata": {"annotations": protected}});
    world.create_pod("protected", "6", &protected);
    let all_bound = |world: &World| world.bound_pods() == 3;
    world.until("all pods are bound", 120, all_bound).await;

    let packing = recorder.told(RankStage::Packing, 2);
    let packing = packing.first().unwrap();
    let launches = recorder.told(RankStage::Launch, 1);
    let [one, other] = launches.as_slice() else {
        panic!("{} launches", launches.len());
    };
    for round in [packing, one, other] {
        assert_eq!(addresses(round), [("a", 500), ("b", 200)].into());
        assert!(has_label(round, &round.claims[0], "team", "a"));
    }
    let before = usage(packing);
    let first = [1.0, 0.0, 0.096];
    assert_eq!(before, [("default t.small a".to_owned(), first)].into());
    assert_eq!(usage(one), before, "nothing else is launched yet");
    let mut beside = before.clone();
    beside.insert("default t.large a".to_owned(), [1.0, 1.0, 0.336]);
    assert_eq!(usage(other), beside, "the launch before this one counts");

    let mut pods: Vec<PodsSummary> = launches.iter().map(|it| it.claims[0].pods).collect();
    pods.sort_by_key(|it| it.max_priority);
    let facts = pods.iter().map(|it| {
        let PodsSummary {
            count,
            cpu_milli,
            max_priority,
            do_not_disrupt,
            replicated,
            ..
        } = *it;
        (count, cpu_milli, max_priority, do_not_disrupt, replicated)
    });
    let facts: Vec<_> = facts.collect();
    assert_eq!(facts, [(1, 6000, 0, 1, 1), (1, 6000, CRITICAL, 0, 1)]);
    let summary = packing.claims[0].pods;
    assert_eq!(
        (summary.max_priority, summary.do_not_disrupt),
        (CRITICAL, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_policy_rules_out_of_a_launch_is_told_with_its_reasons() {
    let recorder = Recorder::with(RankStage::Launch, "a", "zone a is closed");
    let world = World::with_rank(recorder);
    world.pass(5).await;
    world.create_pod("web", "6", &json!({}));
    world
        .until("bound", 120, |world| world.bound_pods() == 1)
        .await;
    let claims = world.names(&Resource::NODE_CLAIMS);
    let words = [
        "t.large on-demand b",
        "as the rule has it",
        "1 offering excluded: zone a is closed (1)",
    ];
    world.tells("claim", &claims[0], &words);
}

#[tokio::test(start_paused = true)]
async fn a_launch_of_which_nothing_is_left_says_that_the_policy_ruled_it_out() {
    let recorder = Recorder::with(RankStage::Launch, "", "closed today");
    let world = World::with_rank(recorder);
    world.pass(5).await;
    world.create_pod("web", "6", &json!({}));
    let expected = "the ranking policy excluded every offering left: closed today (2)";
    let is_told = |world: &World, kind: &str| {
        let told = world.event_messages(kind, "InsufficientCapacityError");
        told.iter().any(|it| it.contains(expected))
    };
    let told = |world: &World| is_told(world, "NodeClaim") && is_told(world, "Pod");
    world.until("claim and pod are told", 30, told).await;
    assert!(world.ledger_json().contains(expected));
    assert_eq!(world.cloud.with(|state| state.asked.len()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_the_policy_leaves_without_offerings_is_told_why() {
    let recorder = Recorder::with(RankStage::Packing, "", "closed today");
    let world = World::with_rank(recorder);
    world.pass(5).await;
    world.create_pod("web", "6", &json!({}));
    let expected = "ranking policy excluded every offering left (6): closed today (6)";
    let is_told = |world: &World| {
        let told = world.event_messages("Pod", "FailedScheduling");
        told.iter().any(|it| it.contains(expected))
    };
    world.until("the pod is told", 30, is_told).await;
    world.tells("pod", "default/web", &[expected]);
    assert!(world.names(&Resource::NODE_CLAIMS).is_empty());
}
