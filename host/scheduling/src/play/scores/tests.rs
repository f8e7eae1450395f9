//! Against the tables of Kubernetes' own tests (`least_allocated_test.go`, `balanced_allocation_test.go` and others),
//! and against results worked out by hand.

use super::*;

/// (Asked, allocatable, weight) of each resource.
type Row = (i64, i64, i64);

fn fit(strategy: &FitStrategy, rows: &[Row]) -> i64 {
    let uses = rows.iter().map(|(asked, allocatable, weight)| ResourceUse {
        asked: *asked,
        allocatable: *allocatable,
        weight: *weight,
    });
    strategy.score(uses)
}

#[test]
fn emptier_nodes_are_better_by_least_allocated() {
    let cases: [(&[Row], i64); 8] = [
        (&[(0, 4000, 1), (0, 10_000, 1)], 100),
        (&[(3000, 4000, 1), (5000, 10_000, 1)], 37),
        (&[(3000, 6000, 1), (5000, 10_000, 1)], 50),
        (&[(6000, 10_000, 1), (5000, 20_000, 1)], 57),
        (&[(6000, 10_000, 1), (10_000, 50_000, 1)], 60),
        (&[(6000, 4000, 1), (5000, 10_000, 1)], 25),
        (&[(3000, 4000, 1), (5000, 10_000, 2)], 41),
        (&[(3000, 0, 1), (5000, 0, 1)], 0),
    ];
    for (rows, expected) in cases {
        assert_eq!(
            fit(&FitStrategy::LeastAllocated, rows),
            expected,
            "{rows:?}"
        );
    }
}

#[test]
fn fuller_nodes_are_better_by_most_allocated() {
    let cases: [(&[Row], i64); 4] = [
        (&[(3000, 4000, 1), (5000, 10_000, 1)], 62),
        (&[(3000, 6000, 1), (5000, 10_000, 1)], 50),
        (&[(6000, 4000, 1), (0, 10_000, 1)], 50),
        (&[(3000, 4000, 1), (5000, 10_000, 2)], 58),
    ];
    for (rows, expected) in cases {
        assert_eq!(fit(&FitStrategy::MostAllocated, rows), expected, "{rows:?}");
    }
}

#[test]
fn a_ratio_follows_its_points() {
    let shape = FitStrategy::RequestedToCapacityRatio(vec![(0, 10), (100, 0)]);
    let cases: [(&[Row], i64); 4] = [
        (&[(0, 4000, 1), (0, 10_000, 1)], 100),
        (&[(3000, 4000, 1), (5000, 10_000, 1)], 38),
        (&[(3000, 6000, 1), (5000, 10_000, 1)], 50),
        // What is full has no say.
        (&[(4000, 4000, 1), (5000, 10_000, 1)], 50),
    ];
    for (rows, expected) in cases {
        assert_eq!(fit(&shape, rows), expected, "{rows:?}");
    }
    let steep = FitStrategy::RequestedToCapacityRatio(vec![(20, 0), (40, 10)]);
    let score = |asked| fit(&steep, &[(asked, 100, 1)]);
    assert_eq!(
        [score(10), score(25), score(40), score(90)],
        [0, 25, 100, 100]
    );
}

#[test]
fn evenness_is_one_less_the_deviation() {
    let cases: [(&[(i64, i64)], i64); 5] = [
        (&[(3000, 4000), (5000, 10_000)], 87),
        (&[(3000, 6000), (5000, 10_000)], 100),
        (&[(6000, 10_000), (5000, 20_000)], 82),
        (&[(6000, 6000), (0, 10_000)], 50),
        (&[(3000, 3500), (5000, 40_000), (4, 8)], 70),
    ];
    for (uses, expected) in cases {
        assert_eq!(evenness(uses.iter().copied()), expected, "{uses:?}");
    }
}

#[test]
fn balance_is_what_the_pod_changes() {
    // Worked out: 50 + (50 + with - without) / 2.
    let cases = [
        ((100, 100), 75),
        ((87, 100), 68),
        ((100, 50), 100),
        ((50, 100), 50),
    ];
    for ((with, without), expected) in cases {
        assert_eq!(balanced_allocation(with, without), expected);
    }
}

#[test]
fn spread_prefers_where_fewer_are() {
    // Three zones with 3, 1 and 2 pods: weight ln 5, so 4.83, 1.61 and 3.22.
    let weight = spread_weight(3);
    let costs = [3, 1, 2].map(|pods| spread_cost(pods, 1, weight).round().to_string());
    assert_eq!(costs, ["5", "2", "3"]);
    let scores = [5, 2, 3].map(|cost| spread_score(cost, 2, 5));
    assert_eq!(scores, [40, 100, 80]);
    assert_eq!(spread_score(0, 0, 0), 100);
}

#[test]
fn others_are_held_against_the_best_and_the_worst() {
    assert_eq!([0, 30, 60].map(|it| normalized(it, 60)), [0, 50, 100]);
    assert_eq!([0, 1, 2].map(|it| normalized_reverse(it, 2)), [100, 50, 0]);
    assert_eq!([normalized(0, 0), normalized_reverse(0, 0)], [0, 100]);
    assert_eq!(
        [-10, 0, 20].map(|it| affinity_score(it, -10, 20)),
        [0, 33, 100]
    );
    assert_eq!(affinity_score(7, 7, 7), 0);
}
