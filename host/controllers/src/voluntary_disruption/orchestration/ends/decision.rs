//! Who of a command's nodes stays at its end: whom somebody protected since it was decided.
//!
//! Pure; `ends.rs` carries it out. Karpenter's `pkg/controllers/disruption/queue.go` does not look again.

use std::sync::Arc;

use apis::{NodeClaim, labels};
use disruption::CommandCandidate;
use disruption::method::DisruptionClass;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{self, Node};
use kube::ResourceExt;
use scheduling::pod::{Pod, ShapeTable};

/// Candidates as they are now; none, where it does not matter.
pub(super) struct Observed {
    pub(super) candidates: Vec<(CommandCandidate, SeenCandidate)>,
    pub(super) now: Timestamp,
}

/// A candidate as it is now.
pub(super) enum SeenCandidate {
    /// Its claim is going, or gone.
    Going,
    /// Its claim is there and its node is not.
    WithoutNode,
    There {
        node: Arc<Node>,
        /// None, where they do not matter.
        pods: Vec<Pod>,
    },
    /// One of its pods cannot be read, so that nobody can tell whether it may go.
    Unreadable { why: String },
}

impl SeenCandidate {
    /// A node with these pods on it.
    pub(super) fn with_pods(node: Arc<Node>, pods: &[v1::Pod]) -> Self {
        let mut shapes = ShapeTable::default();
        let pods = pods.iter().filter(|pod| !is_over(pod));
        let pods: Result<Vec<Pod>, _> = pods.map(|pod| Pod::parse(pod, &mut shapes)).collect();
        match pods {
            Ok(pods) => Self::There { node, pods },
            Err(error) => Self::Unreadable {
                why: error.to_string(),
            },
        }
    }
}

/// Whether the pod has finished, or goes.
fn is_over(pod: &v1::Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    let is_finished = matches!(phase, Some("Succeeded" | "Failed"));
    is_finished || pod.metadata.deletion_timestamp.is_some()
}

/// How the command ends.
#[derive(Debug, PartialEq)]
pub(super) enum Decided {
    /// All stay: none has gone yet, and one must not.
    GiveUp { why: String },
    /// All go but these: the pods of others are on their way to the replacements already.
    Go { staying: Vec<StayingCandidate> },
}

/// A candidate that stays.
#[derive(Debug, PartialEq)]
pub(super) struct StayingCandidate {
    pub(super) candidate: CommandCandidate,
    pub(super) why: String,
}

/// Whether pods may protect the node: it is not protected itself, and nothing bounds how long they hold it up.
pub(super) fn pods_matter(class: DisruptionClass, claim: &NodeClaim, node: &Node) -> bool {
    let is_bounded =
        class == DisruptionClass::Eventual && claim.spec.termination_grace_period.is_some();
    !is_protected(node) && !is_bounded
}

pub(super) fn decide(observed: Observed) -> Decided {
    let Observed { candidates, now } = observed;
    let mut staying = Vec::new();
    let mut is_begun = false;
    for (candidate, seen) in candidates {
        let why = match seen {
            SeenCandidate::Going => {
                is_begun = true;
                None
            }
            SeenCandidate::WithoutNode => None,
            SeenCandidate::There { node, pods } => protection(&candidate, &node, &pods, now),
            SeenCandidate::Unreadable { why } => Some(why),
        };
        staying.extend(why.map(|why| StayingCandidate { candidate, why }));
    }
    match staying.first() {
        Some(first) if !is_begun => Decided::GiveUp {
            why: first.why.clone(),
        },
        Some(_) | None => Decided::Go { staying },
    }
}

/// Cause that protects the node, if there is one.
fn protection(
    candidate: &CommandCandidate,
    node: &Node,
    pods: &[Pod],
    now: Timestamp,
) -> Option<String> {
    if is_protected(node) {
        let name = &candidate.node;
        return Some(format!("{name} is protected by do-not-disrupt now"));
    }
    let mut pods = pods.iter();
    let pod = pods.find(|pod| pod.is_active() && pod.is_protected(now))?;
    Some(format!(
        "pod {} is protected by do-not-disrupt now",
        pod.key
    ))
}

fn is_protected(node: &Node) -> bool {
    labels::has_do_not_disrupt(node.annotations())
}

#[cfg(test)]
mod tests {
    use apis::CapacityType;
    use disruption::command::Cost;
    use serde_json::json;

    use super::*;

    fn candidate(node: &str) -> CommandCandidate {
        CommandCandidate {
            node: node.to_owned(),
            claim: format!("claim-{node}"),
            pool: "web".to_owned(),
            instance_type: "m7i.large".to_owned(),
            zone: Some("a".to_owned()),
            capacity_type: Some(CapacityType::Spot),
            cost: Cost::at_list_price(1.0),
            pods: 1,
        }
    }

    /// `going`, `bare` (without a node), `plain`, `held` (the node is protected), `pod` (one of its pods is), `odd`
    /// (one of its pods cannot be read) or `over` (the same of one that has finished).
    fn seen(word: &str) -> SeenCandidate {
        let protected = json!({"karpenter.sh/do-not-disrupt": "true"});
        let annotations = |is: bool| if is { protected.clone() } else { json!({}) };
        let node = json!({"metadata": {"annotations": annotations(word == "held")}});
        let pod = json!({
            "metadata": {"name": "p", "uid": "p", "annotations": annotations(word == "pod")},
            "spec": {"nodeName": "n", "containers": []}, "status": {"phase": "Running"},
        });
        let pod = |is_odd: bool, phase: &str| {
            let mut pod = pod.clone();
            pod["status"]["phase"] = phase.into();
            let requests = json!({"requests": {"cpu": if is_odd { "lots" } else { "1" }}});
            pod["spec"]["containers"] = json!([{"name": "m", "resources": requests}]);
            serde_json::from_value::<v1::Pod>(pod).unwrap()
        };
        match word {
            "going" => SeenCandidate::Going,
            "bare" => SeenCandidate::WithoutNode,
            _ => {
                let node = Arc::new(serde_json::from_value(node).unwrap());
                let phase = if word == "over" { "Failed" } else { "Running" };
                let is_odd = ["odd", "over"].contains(&word);
                SeenCandidate::with_pods(node, &[pod(is_odd, phase), pod(false, "Running")])
            }
        }
    }

    #[test]
    fn whom_somebody_protected_stays_and_all_do_where_none_has_gone() {
        for (words, expected) in [
            ("", "go"),
            ("plain bare going", "go"),
            (
                "plain held",
                "give up: 1 is protected by do-not-disrupt now",
            ),
            (
                "pod held",
                "give up: pod default/p is protected by do-not-disrupt now",
            ),
            ("going held plain pod", "go without 1, 3"),
            ("going odd plain over", "go without 1"),
        ] {
            let words = words.split_whitespace().enumerate();
            let candidates = words.map(|(at, word)| (candidate(&at.to_string()), seen(word)));
            let observed = Observed {
                candidates: candidates.collect(),
                now: Timestamp::UNIX_EPOCH,
            };
            let found = match decide(observed) {
                Decided::GiveUp { why } => format!("give up: {why}"),
                Decided::Go { staying } if staying.is_empty() => "go".to_owned(),
                Decided::Go { staying } => {
                    let names: Vec<String> =
                        staying.into_iter().map(|it| it.candidate.node).collect();
                    format!("go without {}", names.join(", "))
                }
            };
            assert_eq!(found, expected);
        }
    }
}
