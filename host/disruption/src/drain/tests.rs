//! Which pods a drain evicts, and in which order.

use apis::resources::Resources;
use scheduling::pod::{DoNotDisrupt, Owner, PodPhase, PodShape, Toleration};

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

/// A pod told in words: `critical`, `daemon`, `mirror`, `tolerates`, `protected`, `done`, `grace=N`,
/// `going=N` (deletion timestamp), `cpu=N` (thousandths).
fn pod(name: &str, words: &str) -> Arc<Pod> {
    let has = |word: &str| words.split_whitespace().any(|it| it == word);
    let number = |key: &str| {
        words
            .split_whitespace()
            .find_map(|it| it.strip_prefix(key)?.strip_prefix('=')?.parse::<i64>().ok())
    };
    let (api_version, kind) = match (has("daemon"), has("mirror")) {
        (true, _) => ("apps/v1", "DaemonSet"),
        (_, true) => ("v1", "Node"),
        (false, false) => ("apps/v1", "ReplicaSet"),
    };
    let mut shape = PodShape {
        requests: Resources::new().with("cpu", number("cpu").unwrap_or(0)),
        owner: Some(Owner {
            api_version: api_version.into(),
            kind: kind.into(),
            name: "o".into(),
            uid: "o".into(),
        }),
        termination_grace_period_seconds: number("grace"),
        ..PodShape::default()
    };
    if has("critical") {
        shape.priority_class_name = Some("system-node-critical".into());
    }
    if has("tolerates") {
        shape.tolerations.push(Toleration {
            operator: "Exists".into(),
            ..Toleration::default()
        });
    }
    if has("protected") {
        shape.do_not_disrupt = DoNotDisrupt::Always;
    }
    Arc::new(Pod {
        key: PodKey::new("default", name),
        uid: name.to_owned(),
        created_at: None,
        first_version: 0,
        shape: Arc::new(shape),
        limits: Arc::default(),
        volume_claims: Vec::new(),
        resource_claims: Vec::new(),
        node_name: Some("n1".into()),
        nomination: None,
        phase: if has("done") {
            PodPhase::Succeeded
        } else {
            PodPhase::Running
        },
        deletion_timestamp: number("going").map(at),
        started_at: Some(at(-1000)),
        is_ready: true,
        awaits_node: false,
        is_untried: false,
        has_own_scheduler: false,
    })
}

/// The step, or none once the drain is done.
fn step(pods: &[(&str, &str)], deadline: Option<i64>, now: i64) -> Option<DrainStep> {
    let pods: Vec<_> = pods.iter().map(|(name, words)| pod(name, words)).collect();
    let drain = drain_step(&DrainInput {
        pods: &pods,
        deadline: deadline.map(at),
        draining_since: at(0),
        now: at(now),
    });
    match drain {
        Drain::Done => None,
        Drain::Draining(step) => Some(step),
    }
}

fn names(pods: &[PodRef]) -> String {
    pods.iter()
        .map(|it| it.key.name.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn groups_leave_one_after_the_other() {
    let all = [
        ("plain", ""),
        ("agent", "daemon"),
        ("dns", "critical"),
        ("proxy", "critical daemon"),
    ];
    for (gone, expected) in [(0, "plain"), (1, "agent"), (2, "dns"), (3, "proxy")] {
        let step = step(&all[gone..], None, 10).unwrap();
        assert_eq!(names(&step.evict), expected);
    }
    assert_eq!(step(&all[4..], None, 10), None);
}

#[test]
fn of_a_group_the_largest_leave_first() {
    let pods = [
        ("a", "cpu=100"),
        ("b", "cpu=900"),
        ("c", "cpu=100"),
        ("d", "daemon cpu=2000"),
    ];
    assert_eq!(names(&step(&pods, None, 10).unwrap().evict), "b a c");
}

#[test]
fn some_pods_are_waited_for_and_some_are_not() {
    for (words, evicted, waited) in [
        ("", true, true),
        ("protected", false, true),
        ("tolerates", false, false),
        ("mirror", false, false),
        ("done", false, false),
        ("going=5", false, true),
        ("going=-60", false, false),
    ] {
        let step = step(&[("p", words)], None, 10).unwrap_or_default();
        assert_eq!(
            (step.evict.len() == 1, step.waiting.len() == 1),
            (evicted, waited),
            "{words}"
        );
    }
}

#[test]
fn a_pod_that_is_protected_holds_back_the_next_group() {
    let step = step(&[("p", "protected"), ("agent", "daemon")], None, 10).unwrap();
    assert!(step.evict.is_empty());
    assert_eq!(step.waiting.len(), 2);
}

#[test]
fn a_drain_takes_five_seconds_at_least() {
    assert_eq!(step(&[], None, 4), Some(DrainStep::default()));
    assert_eq!(step(&[], None, 5), None);
}

#[test]
fn pods_are_deleted_in_time_for_the_deadline() {
    const HOUR: i64 = 3_600;
    for (words, now, grace) in [
        ("protected grace=300", 54 * 60, None),
        ("protected grace=300", 55 * 60 + 1, Some(299)),
        ("grace=7200", 1, Some(3_599)),
        ("", 2 * HOUR, None),
        ("grace=30 going=3590", HOUR - 20, None),
        ("grace=30 going=3700", HOUR - 20, Some(20)),
        ("grace=30", HOUR + 100, Some(1)),
        ("critical daemon grace=30", HOUR, Some(1)),
    ] {
        let step = step(&[("p", words)], Some(HOUR), now).unwrap_or_default();
        let got = step.delete.first().map(|it| it.grace_period_seconds);
        assert_eq!(got, grace, "{words} at {now}");
        assert!(
            grace.is_none() || step.evict.is_empty(),
            "not evicted and deleted at once"
        );
    }
}
