//! What kube-scheduler's plugins say of one node, as numbers: the formulas, and nothing of pods or nodes.
//!
//! The simulated scheduler reckons with the same functions. Answers to `pkg/scheduler/framework/plugins` of Kubernetes
//! (`noderesources`, `podtopologyspread`, `helper`), whose integers are divided in this order, too.

/// The best that a plugin says of a node (`MaxNodeScore`).
pub(crate) const SCORE_MAX: i64 = 100;
/// CPU that a pod without a request counts for where nodes are scored, in millicores.
pub(crate) const CPU_UNASKED_MILLIS: i64 = 100;
/// Memory that a pod without a request counts for where nodes are scored, in bytes.
pub(crate) const MEMORY_UNASKED_BYTES: i64 = 200 * 1024 * 1024;
/// Worth of a point of a RequestedToCapacityRatio, whose scores go from 0 to 10.
const POINT: i64 = 10;

/// One resource of a node once the pod is there, and how much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceUse {
    pub asked: i64,
    pub allocatable: i64,
    pub weight: i64,
}

/// Which nodes `NodeResourcesFit` likes best.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FitStrategy {
    /// Emptier nodes are better.
    #[default]
    LeastAllocated,
    /// Fuller nodes are better.
    MostAllocated,
    /// As a line through points (utilization in percent, score from 0 to 10), by utilization.
    RequestedToCapacityRatio(Vec<(i64, i64)>),
}

impl FitStrategy {
    /// The score of a node with these resources.
    pub fn score(&self, uses: impl Iterator<Item = ResourceUse>) -> i64 {
        let (mut sum, mut weights) = (0_i64, 0_i64);
        for it in uses.filter(|it| it.allocatable > 0) {
            let score = self.of_resource(it.asked, it.allocatable);
            // A ratio of nothing has no say.
            if score > 0 || !matches!(self, Self::RequestedToCapacityRatio(_)) {
                sum += score * it.weight;
                weights += it.weight;
            }
        }
        if weights == 0 {
            return 0;
        }
        match self {
            Self::LeastAllocated | Self::MostAllocated => sum / weights,
            Self::RequestedToCapacityRatio(_) => (2 * sum + weights) / (2 * weights),
        }
    }

    fn of_resource(&self, asked: i64, allocatable: i64) -> i64 {
        match self {
            Self::LeastAllocated if asked > allocatable => 0,
            Self::LeastAllocated => (allocatable - asked).saturating_mul(SCORE_MAX) / allocatable,
            Self::MostAllocated => asked.min(allocatable).saturating_mul(SCORE_MAX) / allocatable,
            Self::RequestedToCapacityRatio(points) => {
                let part = asked.clamp(0, allocatable).saturating_mul(100) / allocatable;
                on_line(points, part)
            }
        }
    }
}

/// The value of a broken line, constant before its first and behind its last point.
fn on_line(points: &[(i64, i64)], at: i64) -> i64 {
    let Some(next) = points.iter().position(|(x, _)| at <= *x) else {
        return points.last().map_or(0, |(_, y)| y * POINT);
    };
    let (x1, y1) = points[next];
    let Some((x0, y0)) = next.checked_sub(1).map(|last| points[last]) else {
        return y1 * POINT;
    };
    y0 * POINT + (y1 - y0) * POINT * (at - x0) / (x1 - x0)
}

/// How evenly resources are used: 100 where all are used to the same share, less the standard deviation of the shares.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a share of a hundred, cut as kube-scheduler cuts it"
)]
pub(crate) fn evenness(uses: impl Iterator<Item = (i64, i64)>) -> i64 {
    let (mut count, mut sum, mut squares, mut two) = (0_u32, 0.0, 0.0, [0.0; 2]);
    for (asked, allocatable) in uses.filter(|(_, allocatable)| *allocatable > 0) {
        let share = (asked as f64 / allocatable as f64).min(1.0);
        if let Some(slot) = two.get_mut(count as usize) {
            *slot = share;
        }
        (count, sum, squares) = (count + 1, sum + share, squares + share * share);
    }
    let deviation = match count {
        0 | 1 => 0.0,
        2 => f64::abs((two[0] - two[1]) / 2.0),
        _ => {
            let mean = sum / f64::from(count);
            (squares / f64::from(count) - mean * mean).max(0.0).sqrt()
        }
    };
    ((1.0 - deviation) * SCORE_MAX as f64) as i64
}

/// `NodeResourcesBalancedAllocation`: how much the pod does for the evenness of the node, around three quarters of the
/// most.
pub(crate) fn balanced_allocation(evenness_with: i64, evenness_without: i64) -> i64 {
    SCORE_MAX / 2 + (SCORE_MAX / 2 + evenness_with - evenness_without) / 2
}

/// A score as a part of the highest one (`DefaultNormalizeScore`).
pub(crate) fn normalized(score: i64, most: i64) -> i64 {
    if most == 0 {
        0
    } else {
        SCORE_MAX * score / most
    }
}

/// The same where less is better.
pub(crate) fn normalized_reverse(score: i64, most: i64) -> i64 {
    SCORE_MAX - normalized(score, most)
}

/// What each pod of a domain counts for in `PodTopologySpread`, where nodes are in so many domains.
pub(crate) fn spread_weight(domains: usize) -> f64 {
    ((domains + 2) as f64).ln()
}

/// What `PodTopologySpread` counts for a domain of a constraint that only scores.
pub(crate) fn spread_cost(pods: i64, max_skew: i32, weight: f64) -> f64 {
    pods as f64 * weight + f64::from(max_skew - 1)
}

/// `PodTopologySpread` of a node by what was counted there, the least and the most of all nodes.
pub(crate) fn spread_score(cost: i64, least: i64, most: i64) -> i64 {
    if most == 0 {
        SCORE_MAX
    } else {
        SCORE_MAX * (most + least - cost) / most
    }
}

/// `InterPodAffinity` of a node by the sum of weights there, the least and the most of all nodes.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a share of a hundred, cut as kube-scheduler cuts it"
)]
pub(crate) fn affinity_score(sum: i64, least: i64, most: i64) -> i64 {
    if most == least {
        0
    } else {
        (SCORE_MAX as f64 * ((sum - least) as f64 / (most - least) as f64)) as i64
    }
}

#[cfg(test)]
mod tests;
