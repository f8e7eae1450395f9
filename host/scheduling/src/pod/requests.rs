//! The effective requests of a pod: what the scheduler and the kubelet count.
//!
//! Answers to Kubernetes' `component-helpers/resource` and Karpenter's `pkg/utils/resources`.

use std::collections::BTreeMap;

use apis::labels;
use apis::resources::Resources;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::invalid::InvalidPod;
use super::key::PodKey;

/// One slot of the resource `pods`, in thousandths.
const ONE_POD_MILLIS: i64 = 1000;

/// What names of huge pages begin with; of these nothing is lent out twice.
const HUGE_PAGES_PREFIX: &str = "hugepages-";

type QuantityList = BTreeMap<String, Quantity>;

/// The larger of what init containers need at their worst moment and what runs side by side later, plus overhead and
/// one pod slot. Pod-level requests win over the sum of the containers. During an in-place resize the largest of what
/// is asked for, allocated and granted counts.
pub fn effective_requests(
    pod: &core::Pod,
    spec: &core::PodSpec,
    key: &PodKey,
) -> Result<Resources, InvalidPod> {
    let status = pod.status.as_ref();
    let is_stuck = is_resize_infeasible(pod);
    let mut peak = ContainerPeak::default();
    for container in &spec.containers {
        let statuses = status.and_then(|s| s.container_statuses.as_ref());
        peak.add(&container_requests(container, statuses, is_stuck, key)?);
    }
    for container in spec.init_containers.iter().flatten() {
        let statuses = status.and_then(|s| s.init_container_statuses.as_ref());
        let requests = container_requests(container, statuses, is_stuck, key)?;
        peak.add_init(container, &requests);
    }
    let mut total = peak.total();
    if let Some(pod_level) = &spec.resources {
        set_pod_level(&mut total, pod_level, key)?;
    }
    if let Some(overhead) = &spec.overhead {
        total = total.add(&parse(overhead, key, "spec.overhead")?);
    }
    total.set(labels::RESOURCE_PODS, ONE_POD_MILLIS);
    Ok(total)
}

/// Sets what is asked for the whole pod. A limit without a request is the request where no container asks for the
/// resource, or where it cannot be overcommitted, as the API server defaults it; manifests read from files lack that.
fn set_pod_level(
    total: &mut Resources,
    pod_level: &core::ResourceRequirements,
    key: &PodKey,
) -> Result<(), InvalidPod> {
    let list = |list: Option<&QuantityList>, field| {
        list.map_or_else(|| Ok(Resources::new()), |list| parse(list, key, field))
    };
    let requests = list(pod_level.requests.as_ref(), "spec.resources.requests")?;
    let limits = list(pod_level.limits.as_ref(), "spec.resources.limits")?;
    for (name, amount) in limits.iter() {
        if !total.has(name) || name.starts_with(HUGE_PAGES_PREFIX) {
            total.set(name, amount);
        }
    }
    for (name, amount) in requests.iter() {
        total.set(name, amount);
    }
    Ok(())
}

/// Whether an init container runs on beside the containers.
pub(super) fn is_sidecar(container: &core::Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// The larger of what init containers may use at their worst moment and what runs side by side later, and one pod slot.
/// What cannot be read counts as no limit: it is told of and decides nothing.
pub(super) fn limits(spec: &core::PodSpec) -> Resources {
    let of = |container: &core::Container| {
        let list = container.resources.as_ref()?.limits.as_ref()?;
        Some(Resources::from_list(list))
    };
    let mut peak = ContainerPeak::default();
    for container in &spec.containers {
        peak.add(&of(container).unwrap_or_default());
    }
    for container in spec.init_containers.iter().flatten() {
        peak.add_init(container, &of(container).unwrap_or_default());
    }
    peak.total().with(labels::RESOURCE_PODS, ONE_POD_MILLIS)
}

/// What the containers of a pod come to: init containers run one after the other, sidecars run on, and the containers
/// follow.
#[derive(Default)]
struct ContainerPeak {
    running: Resources,
    sidecars: Resources,
    /// The worst moment so far before the containers run.
    of_init: Resources,
}

impl ContainerPeak {
    fn add(&mut self, amounts: &Resources) {
        self.running.add_assign(amounts);
    }

    /// Init containers come in the order in which they run.
    fn add_init(&mut self, container: &core::Container, amounts: &Resources) {
        let at_once = self.sidecars.clone().add(amounts);
        if is_sidecar(container) {
            self.sidecars.clone_from(&at_once);
        }
        self.of_init = std::mem::take(&mut self.of_init).max(&at_once);
    }

    /// The larger of the worst moment of init containers and of what runs side by side later.
    fn total(self) -> Resources {
        self.running.add(&self.sidecars).max(&self.of_init)
    }
}

fn container_requests(
    container: &core::Container,
    statuses: Option<&Vec<core::ContainerStatus>>,
    is_resize_infeasible: bool,
    pod: &PodKey,
) -> Result<Resources, InvalidPod> {
    let field = format!("container {}: resources.requests", container.name);
    let Some(resources) = &container.resources else {
        return Ok(Resources::default());
    };
    let mut requests = match &resources.requests {
        Some(list) => parse(list, pod, &field)?,
        None => Resources::default(),
    };
    // A limit without a request is the request, as the API server defaults it; manifests read from files lack that.
    if let Some(limits) = &resources.limits {
        for (name, amount) in parse(limits, pod, &field)?.iter() {
            if !resources
                .requests
                .as_ref()
                .is_some_and(|list| list.contains_key(name))
            {
                requests.set(name, amount);
            }
        }
    }
    let status = statuses.and_then(|all| all.iter().find(|s| s.name == container.name));
    Ok(match granted_requests(status, pod, &field)? {
        Some(granted) if is_resize_infeasible => granted,
        Some(granted) => requests.max(&granted),
        None => requests,
    })
}

/// Resources that the kubelet has allocated, or those that the runtime still grants, whichever is more; none before the
/// pod runs.
fn granted_requests(
    status: Option<&core::ContainerStatus>,
    pod: &PodKey,
    field: &str,
) -> Result<Option<Resources>, InvalidPod> {
    let allocated = status.and_then(|s| s.allocated_resources.as_ref());
    let actual = status
        .and_then(|s| s.resources.as_ref())
        .and_then(|r| r.requests.as_ref());
    let mut granted: Option<Resources> = None;
    for list in allocated.into_iter().chain(actual) {
        let amounts = parse(list, pod, field)?;
        granted = Some(granted.unwrap_or_default().max(&amounts));
    }
    Ok(granted)
}

/// A resize that the node can never carry out: what was asked for does not count.
fn is_resize_infeasible(pod: &core::Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| {
        condition.type_ == "PodResizePending"
            && condition.status == "True"
            && condition.reason.as_deref() == Some("Infeasible")
    })
}

fn parse(list: &QuantityList, pod: &PodKey, field: &str) -> Result<Resources, InvalidPod> {
    Resources::parse(list).map_err(|reason| InvalidPod::Quantity {
        pod: pod.clone(),
        field: field.to_owned(),
        reason: reason.to_string(),
    })
}
