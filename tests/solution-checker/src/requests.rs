//! The effective requests of a pod by Kubernetes' rules, from the object as users write it.

use std::collections::BTreeMap;

use apis::quantity;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Thousandths by resource. Init containers run one after the other beside the sidecars started before them; then
/// containers and sidecars run side by side. Statuses (a resize under way) are not looked at.
pub fn effective_requests(pod: &Pod) -> BTreeMap<String, i64> {
    let default = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&default);
    let mut names: Vec<String> = vec!["pods".to_owned()];
    let init = spec.init_containers.iter().flatten();
    for container in spec.containers.iter().chain(init) {
        let resources = container.resources.iter();
        let lists = resources.flat_map(|r| [&r.requests, &r.limits]);
        names.extend(lists.flatten().flat_map(|l| l.keys().cloned()));
    }
    let pod_level = spec.resources.as_ref().and_then(|r| r.requests.as_ref());
    names.extend(pod_level.iter().flat_map(|l| l.keys().cloned()));
    names.extend(spec.overhead.iter().flat_map(|l| l.keys().cloned()));
    let one = |name: String| {
        let amount = if name == "pods" {
            1000
        } else {
            one_resource(spec, &name)
        };
        (name, amount)
    };
    names.into_iter().map(one).collect()
}

fn one_resource(spec: &PodSpec, name: &str) -> i64 {
    let in_list = |list: Option<&BTreeMap<String, Quantity>>| {
        list?.get(name).map(|q| quantity::millis(q).unwrap_or(0))
    };
    let ask = |container: &Container| {
        let resources = container.resources.as_ref();
        in_list(resources.and_then(|r| r.requests.as_ref()))
            .or_else(|| in_list(resources.and_then(|r| r.limits.as_ref())))
            .unwrap_or(0)
    };
    let mut sidecars = 0;
    let mut worst = 0;
    for container in spec.init_containers.iter().flatten() {
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars += ask(container);
            worst = worst.max(sidecars);
        } else {
            worst = worst.max(sidecars + ask(container));
        }
    }
    let running = spec.containers.iter().map(ask).sum::<i64>() + sidecars;
    let pod_level = in_list(spec.resources.as_ref().and_then(|r| r.requests.as_ref()));
    let overhead = in_list(spec.overhead.as_ref()).unwrap_or(0);
    pod_level.unwrap_or_else(|| worst.max(running)) + overhead
}
