//! Pods in a few numbers, and pods by their owner.
//!
//! What the cluster knows of an owner is handed in; nothing is looked up here.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::resources::Resources;
use hooks::columns::saturated;
use hooks::ranking::{PodsSummary, Symbols, WorkloadTable};
use jiff::Timestamp;

use super::table::{accelerators, memory_mib};
use crate::pod::{Pod, PodShape};

/// Facts of the cluster about the owner of some pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadFacts {
    /// Its pods in the whole cluster; of a ReplicaSet those of its Deployment.
    pub replicas: u32,
    /// How many of them PodDisruptionBudgets let go now; `u32::MAX` where none selects them.
    pub disruptions_allowed: u32,
}

/// Facts and moment by which pods are summed up.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadContext<'a> {
    /// Facts about the pods' owners.
    pub owners: &'a FactsByOwner,
    /// Moment from which waiting times are reckoned.
    pub now: Timestamp,
}

/// Facts by UID of the owner.
pub type FactsByOwner = BTreeMap<String, WorkloadFacts>;

/// Sums and counts of some pods.
pub fn pods_summary(pods: &[Arc<Pod>], facts: &FactsByOwner, now: Timestamp) -> PodsSummary {
    let mut total = Resources::new();
    let priorities = pods.iter().map(|it| it.shape.priority);
    let mut summary = PodsSummary {
        count: saturated(pods.len()),
        max_priority: priorities.max().unwrap_or_default(),
        ..PodsSummary::default()
    };
    // Pods that share a shape are summed up at once; addresses only save work.
    let mut counts: BTreeMap<*const PodShape, (&PodShape, u32)> = BTreeMap::new();
    for pod in pods {
        counts
            .entry(Arc::as_ptr(&pod.shape))
            .or_insert((&pod.shape, 0))
            .1 += 1;
        summary.oldest_wait_seconds = summary.oldest_wait_seconds.max(wait(pod, now));
        summary.do_not_disrupt += u32::from(pod.is_protected(now));
    }
    for (shape, count) in counts.into_values() {
        for (name, amount) in shape.requests.iter() {
            let amount = amount.saturating_mul(i64::from(count));
            total.set(name, total.get(name).saturating_add(amount));
        }
        let is_replicated = fact(shape, facts).is_some_and(|it| it.replicas >= 2);
        summary.replicated += if is_replicated { count } else { 0 };
    }
    summary.cpu_milli = saturated(total.cpu_millis());
    summary.memory_mib = memory_mib(&total);
    summary.gpus = accelerators(&total);
    summary
}

/// Adds the pods of one claim or node.
pub fn push_workloads(
    table: &mut WorkloadTable,
    of: u32,
    pods: &[Arc<Pod>],
    context: WorkloadContext<'_>,
    symbols: &mut Symbols,
) {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<&Arc<Pod>>> = BTreeMap::new();
    for pod in pods {
        let (kind, name) = pod.shape.workload();
        let key = (pod.shape.namespace.as_str(), kind, name);
        groups.entry(key).or_default().push(pod);
    }
    for ((namespace, kind, name), pods) in groups {
        let Some(first) = pods.first() else { continue };
        let mut total = Resources::new();
        for pod in &pods {
            total.add_assign(&pod.shape.requests);
        }
        let class = first.shape.priority_class_name.as_deref().unwrap_or("");
        let priorities = pods.iter().map(|it| it.shape.priority);
        let waits = pods.iter().map(|it| wait(it, context.now));
        table.of.push(of);
        table.namespace.push(symbols.intern(namespace));
        table.owner_kind.push(symbols.intern(kind));
        table.owner_name.push(symbols.intern(name));
        table.priority_class.push(symbols.intern(class));
        table.priority.push(priorities.max().unwrap_or_default());
        let own = first.shape.labels.iter();
        let own = own.map(|(key, value)| (symbols.intern(key), symbols.intern(value)));
        table.labels.push(own.collect());
        table.pods.push(saturated(pods.len()));
        let protected = pods.iter().filter(|it| it.is_protected(context.now));
        table.do_not_disrupt.push(saturated(protected.count()));
        table.cpu_milli.push(saturated(total.cpu_millis()));
        table.memory_mib.push(memory_mib(&total));
        table.gpus.push(accelerators(&total));
        // Of a Deployment in the midst of a roll-out, pods of several ReplicaSets.
        let facts = || pods.iter().filter_map(|it| fact(&it.shape, context.owners));
        let replicas = facts().map(|it| it.replicas).max();
        table.replicas.push(replicas.unwrap_or(1));
        let allowed = facts().map(|it| it.disruptions_allowed).min();
        table.disruptions_allowed.push(allowed.unwrap_or(u32::MAX));
        table.oldest_wait.push(waits.max().unwrap_or_default());
    }
}

fn fact(shape: &PodShape, facts: &FactsByOwner) -> Option<WorkloadFacts> {
    facts.get(&shape.owner.as_ref()?.uid).copied()
}

/// Seconds that a pod has been without a node.
fn wait(pod: &Pod, now: Timestamp) -> u32 {
    let since = pod.created_at.filter(|_| pod.node_name.is_none());
    since.map_or(0, |at| saturated(now.duration_since(at).as_secs()))
}

#[cfg(test)]
mod tests {
    use apis::duration::GoDuration;

    use super::*;
    use crate::pod::{DoNotDisrupt, Owner, PodKey};

    #[test]
    fn the_highest_priority_may_be_below_zero() {
        for (priorities, want) in [
            (&[][..], 0),
            (&[-10], -10),
            (&[-10, -20], -10),
            (&[-10, 0, 5], 5),
        ] {
            let pods = priorities.iter().map(|priority| {
                let shape = PodShape {
                    priority: *priority,
                    ..PodShape::default()
                };
                let key = PodKey::new("default", "web");
                Arc::new(Pod::unknown(key, "uid".to_owned(), Arc::new(shape)))
            });
            let pods: Vec<Arc<Pod>> = pods.collect();
            let summary = pods_summary(&pods, &FactsByOwner::new(), Timestamp::UNIX_EPOCH);
            assert_eq!(summary.max_priority, want, "{priorities:?}");
        }
    }

    /// A pod that has run for an hour.
    fn pod(do_not_disrupt: DoNotDisrupt, now: Timestamp) -> Pod {
        let shape = PodShape {
            do_not_disrupt,
            ..PodShape::default()
        };
        let key = PodKey {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
        };
        let started_at = now.checked_sub(jiff::SignedDuration::from_hours(1)).ok();
        Pod {
            started_at,
            ..Pod::unknown(key, "uid".to_owned(), Arc::new(shape))
        }
    }

    #[test]
    fn policies_are_told_of_the_pods_that_disruption_leaves_alone() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let minutes = |minutes: i64| DoNotDisrupt::For(GoDuration::from_seconds(minutes * 60));
        for (value, want) in [
            (DoNotDisrupt::Unset, 0),
            (DoNotDisrupt::Always, 1),
            (minutes(120), 1),
            (minutes(30), 0),
            (DoNotDisrupt::Invalid, 0),
        ] {
            let pods = [Arc::new(pod(value, now))];
            let owners = FactsByOwner::new();
            let summary = pods_summary(&pods, &owners, now);
            assert_eq!(summary.do_not_disrupt, want, "{value:?}");
            let mut table = WorkloadTable::default();
            let context = WorkloadContext {
                owners: &owners,
                now,
            };
            push_workloads(&mut table, 0, &pods, context, &mut Symbols::default());
            assert_eq!(table.do_not_disrupt, [want], "{value:?}");
        }
    }

    #[test]
    fn a_row_of_several_replica_sets_has_the_facts_of_all() {
        let of = |revision: &str| {
            let shape = PodShape {
                owner: Some(Owner {
                    api_version: "apps/v1".to_owned(),
                    kind: "ReplicaSet".to_owned(),
                    name: format!("web-{revision}"),
                    uid: revision.to_owned(),
                }),
                labels: [("pod-template-hash".to_owned(), revision.to_owned())].into(),
                ..PodShape::default()
            };
            let key = PodKey::new("default", revision);
            Arc::new(Pod::unknown(key, revision.to_owned(), Arc::new(shape)))
        };
        let facts = |replicas, disruptions_allowed| WorkloadFacts {
            replicas,
            disruptions_allowed,
        };
        let owners = [
            ("new".to_owned(), facts(10, u32::MAX)),
            ("old".to_owned(), facts(10, 1)),
        ];
        let owners = FactsByOwner::from(owners);
        let context = WorkloadContext {
            owners: &owners,
            now: Timestamp::UNIX_EPOCH,
        };
        let mut table = WorkloadTable::default();
        let pods = [of("new"), of("old")];
        push_workloads(&mut table, 0, &pods, context, &mut Symbols::default());
        assert_eq!(
            (&table.pods[..], &table.replicas[..]),
            (&[2][..], &[10][..])
        );
        assert_eq!(table.disruptions_allowed, [1]);
    }
}
