//! Two counts and a price list, and what is said of them.

use serde_json::{Value, json};

use super::*;
use crate::gathered::ToldObject;
use crate::kinds::ReadKind;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn claim(name: &str, node_pool: &str, instance_type: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {
            "karpenter.sh/nodepool": node_pool, "node.kubernetes.io/instance-type": instance_type,
            "topology.kubernetes.io/zone": "z", "karpenter.sh/capacity-type": "on-demand",
        }},
        "status": {"providerID": "aws:///z/i", "capacity": {"cpu": "4"}},
    })
}

/// A count that begins with these nodes at 0 and ends an hour later; half an hour in, the last of them is gone.
fn tally(claims: &[Value], last_goes: bool) -> FleetTally {
    let mut tally = FleetTally::new(at(0));
    let told = |object| ToldObject {
        kind: ReadKind::NodeClaims,
        object,
        is_gone: false,
    };
    for object in claims {
        tally.apply(told(object), at(0));
    }
    tally.begin(at(0));
    if last_goes {
        let gone = ToldObject {
            is_gone: true,
            ..told(claims.last().unwrap())
        };
        tally.apply(gone, at(1_800));
    }
    tally.advance(at(3_600));
    tally
}

fn price(bought: &BoughtOffering) -> Option<f64> {
    match bought.instance_type.as_str() {
        "big" => Some(1.0),
        "small" => Some(0.25),
        _ => None,
    }
}

fn report(karpenter: &FleetTally, mortise: &FleetTally) -> Report {
    Report::of(BothSides {
        karpenter,
        mortise,
        price: &price,
        requests: Requests {
            reads: 42,
            refused: 0,
        },
        notes: vec!["a note".to_owned()],
        unread: Vec::new(),
    })
}

#[test]
fn what_is_saved_is_by_the_end_and_by_the_average() {
    let start = [claim("a", "web", "small"), claim("b", "web", "big")];
    let report = report(&tally(&start, false), &tally(&start, true));
    let [pool] = &report.node_pools[..] else {
        panic!("{report:?}")
    };
    assert_eq!(
        (
            pool.karpenter.nodes,
            pool.karpenter.usd_per_hour,
            pool.karpenter.vcpus
        ),
        (2, 1.25, 8.0)
    );
    assert_eq!((pool.mortise.nodes, pool.mortise.terminations), (1, 1));
    assert_eq!(
        (
            pool.mortise.average_nodes,
            pool.mortise.average_usd_per_hour
        ),
        (1.5, 0.75)
    );
    let saved = report.saved.as_ref().unwrap();
    assert_eq!(
        (
            saved.usd_per_month,
            saved.average_usd_per_month,
            saved.average_percent
        ),
        (730.0, 365.0, 40.0)
    );
    let verdict = "Mortise would save 730.00 USD a month by what runs now, and save 365.00 USD a month (40.0 %) by the average of the watch";
    assert_eq!(report.verdict(), verdict);
}

#[test]
fn pools_of_one_side_alone_have_their_row_and_the_sum_is_over_all() {
    let report = report(
        &tally(&[claim("a", "web", "small")], false),
        &tally(&[claim("b", "batch", "big")], false),
    );
    let rows: Vec<_> = report
        .node_pools
        .iter()
        .map(|it| (it.node_pool.as_str(), it.karpenter.nodes, it.mortise.nodes))
        .collect();
    assert_eq!(rows, [("batch", 0, 1), ("web", 1, 0)]);
    assert_eq!(
        (
            report.karpenter.figures.usd_per_hour,
            report.mortise.figures.usd_per_hour
        ),
        (0.25, 1.0)
    );
    assert!(
        report
            .verdict()
            .starts_with("Mortise would cost 547.50 USD"),
        "{}",
        report.verdict()
    );
}

#[test]
fn nodes_without_a_price_count_and_nothing_is_promised() {
    let report = report(
        &tally(&[claim("a", "web", "c-4x-amd64-linux")], false),
        &tally(&[claim("a", "web", "small")], false),
    );
    assert_eq!(report.karpenter.figures.nodes, 1);
    assert_eq!(report.saved, None);
    assert_eq!(report.types_without_price, ["c-4x-amd64-linux"]);
    let text = report.to_string();
    assert!(
        text.contains("the catalogue has no price of c-4x-amd64-linux"),
        "{text}"
    );
}

#[test]
fn the_text_is_a_table_of_both() {
    let start = [claim("a", "web", "small"), claim("b", "web", "big")];
    let text = report(&tally(&start, false), &tally(&start, true)).to_string();
    let expected = "\
watched for 1h0m0s from 1970-01-01T00:00:00Z

NodePool                nodes       avg      vCPU     USD/h       avg  launched     ended   evicted
web       Karpenter         2       2.0         8      1.25      1.25         0         0         0
          Mortise           1       1.5         4      0.25      0.75         0         1         0
all       Karpenter         2       2.0         8      1.25      1.25         0         0         0
          Mortise           1       1.5         4      0.25      0.75         0         1         0

pods that waited for a node, Karpenter: 0 pod seconds, 0 wait now
pods that waited for a node, Mortise: 0 pod seconds, 0 wait now
Mortise would save 730.00 USD a month by what runs now, and save 365.00 USD a month (40.0 %) by the average of the watch
note: a note
asked of the cluster: 42 GET, nothing else (0 refused before they were sent)
";
    assert_eq!(text, expected);
}

#[test]
fn json_has_the_figures_of_both_side_by_side() {
    let start = [claim("a", "web", "small")];
    let json = serde_json::to_value(report(&tally(&start, false), &tally(&start, false))).unwrap();
    assert_eq!(json["nodePools"][0]["mortise"]["averageUsdPerHour"], 0.25);
    assert_eq!(json["karpenter"]["nodes"], 1);
    assert_eq!(json["mortise"]["pendingPods"], 0);
    assert_eq!(json["saved"]["usdPerMonth"], 0.0);
}
