//! What is to be reached, and whether it is.

use serde::Serialize;

use crate::asked::Way;
use crate::mortise::Plan;
use crate::row::Lived;

/// Launches beside the nodes of the plan.
const LAUNCHES_MAX: f64 = 1.02;
/// From the creation of any pod until it runs, less the time of the slowest boot.
const LATE_SECONDS_MAX: f64 = 15.0;
/// Evictions that gain less of the bill should not be.
const GAIN_MIN: f64 = 0.03;
/// Of the controller alone, all the while.
const CPU_SECONDS_MAX: f64 = 15.0;

/// A goal beside what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Goal {
    pub(crate) name: &'static str,
    pub(crate) measured: f64,
    /// At most, but for what evictions gain: that at least.
    pub(crate) goal: f64,
    pub(crate) is_reached: bool,
}

impl Goal {
    fn at_most(name: &'static str, measured: f64, goal: f64) -> Self {
        Self {
            name,
            measured,
            goal,
            is_reached: measured <= goal,
        }
    }
}

/// The bill when the last pod runs, beside that of one solve.
fn bill_max(way: Way, is_on_cluster: bool) -> f64 {
    match (way, is_on_cluster) {
        (Way::AtOnce, false) => 1.03,
        (Way::Stream, false) => 1.08,
        (Way::AtOnce, true) => 1.05,
        (Way::Stream, true) => 1.10,
    }
}

pub(crate) fn goals(way: Way, is_on_cluster: bool, plan: &Plan, lived: &Lived) -> Vec<Goal> {
    let launches = lived.launches as f64 / plan.nodes as f64;
    let full = lived.all_running.as_ref();
    let of_full = |of: fn(&crate::row::Full) -> f64| full.map_or(f64::INFINITY, of);
    let bill = of_full(|it| it.nodes.price_per_hour) / plan.price_per_hour;
    let late = of_full(|it| it.slowest_pod_seconds - it.slowest_boot_seconds);
    let mut goals = vec![
        Goal::at_most("bill", bill, bill_max(way, is_on_cluster)),
        Goal::at_most("lateSeconds", late, LATE_SECONDS_MAX),
    ];
    if is_on_cluster {
        goals.push(Goal::at_most(
            "cpuSeconds",
            lived.cpu_seconds,
            CPU_SECONDS_MAX,
        ));
    }
    goals.extend([
        Goal::at_most("launches", launches, LAUNCHES_MAX),
        evictions(lived),
    ]);
    goals
}

/// Evictions once all pods run have to pay.
fn evictions(lived: &Lived) -> Goal {
    let full = lived.all_running.as_ref();
    let (bill, before) = full.map_or((lived.end.price_per_hour, 0), |it| {
        (it.nodes.price_per_hour, it.evictions)
    });
    let gain = 1.0 - lived.end.price_per_hour / bill;
    Goal {
        name: "gainByEviction",
        measured: gain,
        goal: GAIN_MIN,
        is_reached: lived.evictions == before || gain >= GAIN_MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Full, Nodes};

    fn nodes(price_per_hour: f64) -> Nodes {
        Nodes {
            nodes: 100,
            price_per_hour,
        }
    }

    fn lived() -> Lived {
        let full = Full {
            seconds: 60.0,
            nodes: nodes(10.2),
            launches: 101,
            evictions: 0,
            slowest_pod: None,
            slowest_pod_seconds: 60.0,
            slowest_boot_seconds: 50.0,
        };
        Lived {
            all_running: Some(full),
            end: nodes(10.2),
            launches: 101,
            terminations: 0,
            evictions: 0,
            pods_off_plan: 3,
            claims_off_plan: 1,
            cpu_seconds: 9.0,
        }
    }

    fn missed(way: Way, lived: &Lived) -> Vec<&'static str> {
        let plan = Plan {
            nodes: 100,
            price_per_hour: 10.0,
            lower_bound_per_hour: 9.0,
        };
        let goals = goals(way, false, &plan, lived).into_iter();
        goals
            .filter(|it| !it.is_reached)
            .map(|it| it.name)
            .collect()
    }

    #[test]
    fn goals_are_those_of_the_way() {
        assert_eq!(missed(Way::AtOnce, &lived()), [""; 0]);
        let mut dear = lived();
        dear.all_running.as_mut().unwrap().nodes = nodes(10.6);
        assert_eq!(missed(Way::AtOnce, &dear), ["bill"]);
        assert_eq!(missed(Way::Stream, &dear), [""; 0]);
        dear.launches = 103;
        assert_eq!(missed(Way::Stream, &dear), ["launches"]);
    }

    #[test]
    fn who_never_ran_is_late_and_dear() {
        let stuck = Lived {
            all_running: None,
            ..lived()
        };
        assert_eq!(missed(Way::Stream, &stuck), ["bill", "lateSeconds"]);
    }

    #[test]
    fn evictions_have_to_pay() {
        let mut moved = lived();
        moved.evictions = 5;
        assert_eq!(missed(Way::AtOnce, &moved), ["gainByEviction"]);
        moved.end = nodes(9.8);
        assert_eq!(missed(Way::AtOnce, &moved), [""; 0]);
    }
}
