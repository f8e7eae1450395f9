//! What a binding and the host tell one policy and not another: time zones, calendars, interruption rates, memory, and
//! the tables that it asked for.

use std::sync::Arc;

use hooks::disruption::{
    Civil, ConsolidationHook, ConsolidationRound, Context, Move, MoveKind, NO_CAPACITY_TYPE,
    NO_SYMBOL, NodeTable, VerdictDecision,
};
use policy::{BindingState, CallRecorder, PolicyHost, ProviderFacts, RecordedLine};
use scheduling::ranking::{RankHook, RankRound, RankStage, WorkloadTable};

use crate::arrival::{context, repeating, telling};
use crate::guests::{AT_WORK, TRANSIENT_REFUSAL, component};
use crate::support::{Lines, annotated, builtin, config_map, host, key, module, round};

/// A round that the repeating guest repeats.
fn repeated_round() -> RankRound {
    RankRound {
        cluster: "repeat".to_owned(),
        ..round()
    }
}

/// What a policy logged of the calls since the last time.
fn log_of(host: &PolicyHost, name: &str) -> String {
    let records = host.drain_records();
    let own = records.into_iter().filter(|it| it.name == name);
    let lines: Vec<String> = own.flat_map(|it| it.log).collect();
    lines.join("\n")
}

#[test]
fn a_policy_that_needs_what_the_cloud_does_not_tell_is_refused() {
    let silent = ProviderFacts {
        free_addresses: true,
        interruption_rate: false,
    };
    let host = host().provided_by(silent);
    let mut source = module("asks", "full", repeating());
    let status = host.apply(&source);
    assert_eq!(
        (status.state, status.reason.as_str()),
        (BindingState::Degraded, "NotTold"),
        "{status:?}"
    );
    for words in ["needs \"interruption-rate\"", "data.interruption-rates"] {
        assert!(status.message.contains(words), "{}", status.message);
    }
    // The binding may tell it itself.
    let rates = ("interruption-rates".to_owned(), "m7i: 0.1".to_owned());
    source.data.extend([rates]);
    assert_eq!(host.apply(&source).state, BindingState::Ready);
}

#[test]
fn tables_are_filled_for_whoever_asks_and_given_to_nobody_else() {
    let host = host();
    assert_eq!(
        RankHook::needs(&host),
        scheduling::ranking::Needs::default()
    );
    // One that only watches must see what it would decide by.
    let status = host.apply(&annotated(telling("full"), "mode", "shadow"));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    for needs in [RankHook::needs(&host), ConsolidationHook::needs(&host)] {
        assert!(needs.workloads && needs.node_labels && needs.free_addresses && needs.expire);
    }
    host.apply(&annotated(telling("full"), "mode", "off"));
    assert!(!RankHook::needs(&host).workloads);
}

#[test]
fn pod_labels_arrive_as_far_as_the_binding_asks_for_them() {
    let mut at = repeated_round();
    at.table
        .symbols
        .extend(["team", "secret"].map(str::to_owned));
    let (team, secret) = (9, 10);
    at.workloads = WorkloadTable {
        of: vec![NO_SYMBOL],
        namespace: vec![0],
        owner_kind: vec![NO_SYMBOL],
        owner_name: vec![NO_SYMBOL],
        priority_class: vec![NO_SYMBOL],
        priority: vec![0],
        labels: vec![vec![(team, 0), (secret, 1)]],
        pods: vec![1],
        do_not_disrupt: vec![0],
        cpu_milli: vec![1],
        memory_mib: vec![1],
        gpus: vec![0],
        replicas: vec![1],
        disruptions_allowed: vec![0],
        oldest_wait: vec![0],
    };
    for (labels, expected) in [("team", "labels: [[(9, 0)]]"), ("", "labels: [[]]")] {
        let host = host();
        let source = module("everything", "rank", repeating());
        host.apply(&annotated(source, "workload-labels", labels));
        host.rank(&at);
        let log = log_of(&host, "everything");
        assert!(log.contains(expected), "{labels}: {log}");
    }
}

#[test]
fn time_is_told_in_the_zones_and_with_the_calendars_of_the_binding() {
    let host = host();
    // Noon UTC of a Monday, which is half past five in the afternoon in Kolkata.
    assert_eq!(host.apply(&telling("rank")).state, BindingState::Ready);
    host.rank(&repeated_round());
    let log = log_of(&host, "everything");
    for words in [
        "zone: \"UTC\", year: 2026, month: 1, day: 5, weekday: 0, hour: 12, minute: 0",
        "zone: \"Asia/Kolkata\", year: 2026, month: 1, day: 5, weekday: 0, hour: 17, minute: 30, \
         utc-offset-minutes: 330, calendars: [\"freeze\"]",
    ] {
        assert!(log.contains(words), "{log}");
    }
    let mut wrong = telling("rank");
    wrong
        .data
        .insert("time-zones".to_owned(), "Asia/Calcuta".to_owned());
    let status = host.apply(&wrong);
    assert_eq!(status.reason, "InvalidBinding", "{status:?}");
    assert!(
        status.message.contains("Asia/Calcuta"),
        "{}",
        status.message
    );
}

#[test]
fn interruption_rates_of_the_binding_count_for_its_policy() {
    let mut at = round();
    // Both spot, the second a little dearer.
    at.table.capacity_type = vec![1, 1];
    let first = |rates: &str, policy: &str| {
        let host = host();
        let mut source = builtin("risk", "rank", policy);
        if policy.is_empty() {
            source = config_map("risk", "rank");
            let rule = "price + max(interruption_rate, 0.0) / 10.0".to_owned();
            source.data.insert("rule".to_owned(), rule);
        }
        source
            .data
            .insert("interruption-rates".to_owned(), rates.to_owned());
        let status = host.apply(&source);
        assert_eq!(status.state, BindingState::Ready, "{status:?}");
        let scores = host.rank(&at).rankings.swap_remove(0).scores;
        usize::from(scores[1] < scores[0])
    };
    for policy in ["spot-risk", ""] {
        for (rates, expected) in [
            ("m7g: 0.1\nm7i: 0.1", 0),
            ("m7i: 40\nm7g: {class: 0}", 1),
            ("m7i.large: 0.1\nm7i: 40\nm7g: 0.1", 0),
        ] {
            assert_eq!(first(rates, policy), expected, "{policy} {rates}");
        }
    }
}

#[test]
fn memory_lasts_from_round_to_round_until_the_policy_changes() {
    let host = host();
    let lines = Arc::new(Lines::default());
    host.record_to(Arc::clone(&lines) as Arc<dyn CallRecorder>);
    let source = telling("rank");
    host.apply(&source);
    let asked = |at: &RankRound| {
        host.drain_records();
        host.rank(at);
        let log = log_of(&host, "everything");
        let (_, after) = log.split_once("memory: [").unwrap();
        after.split_once(']').unwrap().0.to_owned()
    };
    let packing = repeated_round();
    let mut launch = packing.clone();
    for claim in &mut launch.claims {
        claim.stage = RankStage::Launch;
    }
    assert_eq!(asked(&packing), "");
    assert_eq!(asked(&packing), "1");
    // A launch is told what packing left, and leaves nothing itself.
    assert_eq!(asked(&launch), "2");
    assert_eq!(asked(&packing), "2");
    // Another place in the chain is the same policy; another configuration is not.
    host.apply(&annotated(source.clone(), "order", "3"));
    assert_eq!(asked(&packing), "3");
    let mut changed = source;
    changed.data.insert("config".to_owned(), "{}".to_owned());
    host.apply(&changed);
    assert_eq!(asked(&packing), "");
    host.remove_binding(&key("everything"));
    host.apply(&changed);
    assert_eq!(asked(&packing), "");
    let lines = lines.0.lock().unwrap().clone();
    // As a file holds them.
    let written = lines.iter().map(|it| serde_json::to_string(it).unwrap());
    let read: Vec<RecordedLine> = written
        .map(|it| serde_json::from_str(&it).unwrap())
        .collect();
    let replayed = crate::support::host()
        .replay(read.clone(), &[repeating()])
        .unwrap();
    assert_eq!(
        (replayed.equal, replayed.different.len()),
        (7, 0),
        "{replayed:?}"
    );
    // Without its memory the policy would answer otherwise.
    let forgetful = read.into_iter().map(|line| match line {
        RecordedLine::Call(mut call) => {
            call.memory.clear();
            RecordedLine::Call(call)
        }
        other @ RecordedLine::Policy(_) => other,
    });
    let replayed = crate::support::host()
        .replay(forgetful, &[repeating()])
        .unwrap();
    assert_eq!(replayed.different.len(), 4, "{replayed:?}");
}

#[test]
fn a_refusal_that_may_pass_does_not_count_towards_quarantine() {
    let host = host();
    let guest = component(TRANSIENT_REFUSAL, AT_WORK, "");
    host.apply(&module("mine", "rank", guest));
    for _ in 0..5 {
        assert_eq!(host.rank(&round()).rankings[0].scores, [0.10, 0.11]);
    }
    let status = host.status(&key("mine")).unwrap();
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    assert_eq!(host.drain_events_of(&key("mine")).len(), 5);
}

/// Two nodes, of `web` and of `batch`, which both expire soon.
fn expiring() -> (ConsolidationRound, Vec<Move>) {
    let words = ["web", "batch", "a", "b", "WhenEmptyOrUnderutilized"];
    let two = |value: u32| vec![value; 2];
    let nodes = NodeTable {
        symbols: words.map(str::to_owned).to_vec(),
        name: vec![2, 3],
        nodepool: vec![0, 1],
        instance_type: two(NO_SYMBOL),
        zone: two(NO_SYMBOL),
        capacity_type: vec![0; 2],
        price: vec![1.0; 2],
        effective_price: vec![1.0; 2],
        consolidation_policy: two(4),
        age: two(600),
        time_to_expiry: two(7200),
        last_pod_event: two(60),
        drift_reason: two(NO_SYMBOL),
        pods: two(4),
        blocked_pods: two(0),
        disruption_cost: vec![5.0; 2],
        cpu_milli: two(4000),
        cpu_requested_milli: two(1000),
        memory_mib: two(16_384),
        memory_requested_mib: two(4096),
        gpus: two(0),
        gpus_requested: two(0),
        ..NodeTable::default()
    };
    let renewal = |row| Move {
        kind: MoveKind::Expire,
        remove: vec![row],
        cost_before: 1.0,
        cost_after: 1.0,
        effective_before: 1.0,
        effective_after: 1.0,
        pods_moved: 4,
        singletons_moved: 0,
        max_priority: 0,
        new_nodes: 1,
        replacement_type: NO_SYMBOL,
        replacement_zone: NO_SYMBOL,
        replacement_capacity_type: NO_CAPACITY_TYPE,
        labels: Vec::new(),
    };
    let noon = Civil {
        zone: "UTC".to_owned(),
        hour: 12,
        ..Civil::default()
    };
    let round = ConsolidationRound {
        context: Context {
            civil: vec![noon],
            ..context()
        },
        nodes,
        ..ConsolidationRound::default()
    };
    (round, vec![renewal(0), renewal(1)])
}

#[test]
fn renewals_are_judged_by_those_who_asked_for_them() {
    let (round, moves) = expiring();
    let host = host();
    // For all pools, and approves whatever is no matter of savings: of renewals it is not asked.
    host.apply(&builtin("pays", "consolidation", "payback"));
    assert!(!ConsolidationHook::needs(&host).expire);
    let soft = builtin("soft", "consolidation", "soft-expiry");
    let status = host.apply(&annotated(soft, "nodepools", "web"));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    assert!(ConsolidationHook::needs(&host).expire);
    let verdicts = host.judge(&round, &moves).verdicts;
    let decisions: Vec<_> = verdicts.iter().map(|it| it.decision).collect();
    assert_eq!(
        decisions,
        [VerdictDecision::Approve, VerdictDecision::Reject],
        "{verdicts:?}"
    );
    assert_eq!(verdicts[1].reason, "it has not expired");
}

#[test]
fn who_judges_is_another_identity_once_anything_of_it_changes() {
    let host = host();
    let mut seen = vec![ConsolidationHook::identity(&host)];
    let mut source = builtin("mine", "consolidation", "payback");
    let mut steps = vec![source.clone()];
    source
        .data
        .insert("config".to_owned(), "minutes: 30".to_owned());
    steps.push(source.clone());
    source
        .data
        .insert("time-zones".to_owned(), "UTC".to_owned());
    steps.push(source.clone());
    steps.push(annotated(source.clone(), "nodepools", "web"));
    steps.push(builtin("mine", "consolidation", "balanced-k"));
    for step in steps {
        assert_eq!(host.apply(&step).state, BindingState::Ready);
        let identity = ConsolidationHook::identity(&host);
        assert!(!seen.contains(&identity), "{identity}");
        assert_eq!(identity, ConsolidationHook::identity(&host));
        seen.push(identity);
    }
    host.remove_binding(&key("mine"));
    assert_eq!(ConsolidationHook::identity(&host), seen[0]);
}
