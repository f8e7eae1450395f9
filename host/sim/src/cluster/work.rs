//! Work that is to be done for objects, and whether the scheduler is about to look at pods that wait.

use api_server::Resource;

/// Work that is to be done for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    CronJob,
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    Volume,
    Budget,
    /// Pods of a node that a NoExecute taint may drive away.
    Taints,
    /// Pods whose node is gone.
    Orphans,
}

/// Whether the scheduler is about to look at pods that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchedulerWake {
    Unset,
    Set,
    Due,
}

pub(super) fn work_of(resource: &Resource) -> Option<Work> {
    let works = [
        (Resource::CRON_JOBS, Work::CronJob),
        (Resource::DEPLOYMENTS, Work::Deployment),
        (Resource::REPLICA_SETS, Work::ReplicaSet),
        (Resource::STATEFUL_SETS, Work::StatefulSet),
        (Resource::DAEMON_SETS, Work::DaemonSet),
        (Resource::JOBS, Work::Job),
        (Resource::PERSISTENT_VOLUME_CLAIMS, Work::Volume),
        (Resource::POD_DISRUPTION_BUDGETS, Work::Budget),
    ];
    works
        .into_iter()
        .find(|(known, _)| known == resource)
        .map(|(_, work)| work)
}
