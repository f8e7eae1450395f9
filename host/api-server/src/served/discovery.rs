//! Discovery: which groups, versions and resources are served, in the plain and in the aggregated form.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::request::answer::{ApiResponse, answer_bytes, answer_json, answer_status};
use crate::resource::Resource;
use crate::served::kinds::{Kinds, ServedKind};
use crate::served::review;
use crate::status::StatusError;

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The version the server claims to be.
pub(crate) fn version(server: &ApiServer) -> Value {
    let minor = server.with(|store| store.kubernetes_minor);
    json!({
        "major": "1", "minor": minor.to_string(), "gitVersion": format!("v1.{minor}.0+mortise"),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc", "platform": "simulated/any",
    })
}

/// Answers a discovery path, if it is one.
pub(crate) fn answer(server: &ApiServer, path: &str, accept: &str) -> Option<ApiResponse> {
    let wants_all = accept.contains("as=APIGroupDiscoveryList") && accept.contains("v=v2");
    let steps: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    if !matches!(
        steps.as_slice(),
        ["api" | "apis"] | ["api" | "apis", _] | ["apis", _, _]
    ) {
        return None;
    }
    let kinds = server.with(|store| store.kinds.clone());
    Some(match steps.as_slice() {
        ["api"] if wants_all => aggregated(&kinds, true),
        ["apis"] if wants_all => aggregated(&kinds, false),
        ["api"] => answer_json(
            200,
            &json!({
                "kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [],
            }),
        ),
        ["apis"] => {
            let groups: Vec<Value> = groups(&kinds)
                .iter()
                .filter(|(group, _)| !group.is_empty())
                .map(|(group, versions)| group_json(group, versions))
                .collect();
            answer_json(
                200,
                &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}),
            )
        }
        ["apis", group] => match groups(&kinds).get(*group) {
            Some(versions) => {
                let mut found = group_json(group, versions);
                found["kind"] = "APIGroup".into();
                found["apiVersion"] = "v1".into();
                answer_json(200, &found)
            }
            None => answer_status(&StatusError::no_such_resource()),
        },
        ["api", version] => resources(&kinds, "", version),
        ["apis", group, version] => resources(&kinds, group, version),
        _ => return None,
    })
}

/// Served versions by group, preferred first.
pub(crate) fn groups(kinds: &Kinds) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for kind in kinds.iter() {
        let versions = groups.entry(kind.group.clone()).or_default();
        for version in &kind.versions {
            if !versions.contains(version) {
                versions.push(version.clone());
            }
        }
    }
    for (group, ..) in review::KINDS {
        groups
            .entry(group.to_owned())
            .or_insert_with(|| vec!["v1".to_owned()]);
    }
    groups
}

fn group_json(group: &str, versions: &[String]) -> Value {
    let entry = |version: &String| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    json!({
        "name": group,
        "versions": versions.iter().map(entry).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(entry),
    })
}

/// A subresource: its name, its kind with group and version, and its verbs.
struct Sub {
    name: &'static str,
    group: String,
    version: String,
    kind: String,
    verbs: &'static [&'static str],
}

fn subresources(kind: &ServedKind, version: &str) -> Vec<Sub> {
    let mut subs = Vec::new();
    let mut add = |name, group: &str, version: &str, kind: &str, verbs| {
        subs.push(Sub {
            name,
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            verbs,
        });
    };
    if kind.resource == Resource::PODS && kind.group.is_empty() {
        add("binding", "", "v1", "Binding", &["create"]);
        add("eviction", "policy", "v1", "Eviction", &["create"]);
        add("log", "", "v1", "Pod", &["get"]);
    }
    if kind.scale.is_some() {
        add(
            "scale",
            "autoscaling",
            "v1",
            "Scale",
            &["get", "patch", "update"],
        );
    }
    if kind.has_status {
        add(
            "status",
            kind.group.as_str(),
            version,
            kind.kind.as_str(),
            &["get", "patch", "update"],
        );
    }
    subs
}

fn resources(kinds: &Kinds, group: &str, version: &str) -> ApiResponse {
    let mut list = Vec::new();
    for kind in served(kinds, group, version) {
        let plural = kind.resource.plural.as_ref();
        let mut entry = json!({
            "name": plural, "singularName": kind.singular, "namespaced": kind.is_namespaced,
            "kind": kind.kind, "verbs": VERBS,
        });
        if !kind.short_names.is_empty() {
            entry["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            entry["categories"] = json!(kind.categories);
        }
        list.push(entry);
        for sub in subresources(kind, version) {
            list.push(json!({
                "name": format!("{plural}/{}", sub.name), "singularName": "",
                "namespaced": kind.is_namespaced, "kind": sub.kind, "verbs": sub.verbs,
                "group": sub.group, "version": sub.version,
            }));
        }
    }
    for (review_group, plural, kind, is_namespaced) in review::KINDS {
        if review_group == group && version == "v1" {
            list.push(json!({
                "name": plural, "singularName": kind.to_ascii_lowercase(),
                "namespaced": is_namespaced, "kind": kind, "verbs": ["create"],
            }));
        }
    }
    if list.is_empty() {
        return answer_status(&StatusError::no_such_resource());
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    answer_json(
        200,
        &json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
            "resources": list,
        }),
    )
}

fn served<'a>(
    kinds: &'a Kinds,
    group: &str,
    version: &str,
) -> impl Iterator<Item = &'a std::sync::Arc<ServedKind>> {
    kinds
        .iter()
        .filter(move |k| k.group == group && k.versions.iter().any(|v| v == version))
}

fn aggregated(kinds: &Kinds, is_core: bool) -> ApiResponse {
    let mut items = Vec::new();
    for (group, versions) in groups(kinds) {
        if group.is_empty() != is_core {
            continue;
        }
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| {
                let mut list: Vec<Value> = served(kinds, &group, version)
                    .map(|k| aggregated_kind(k, version))
                    .collect();
                for (review_group, plural, kind, is_namespaced) in review::KINDS {
                    if review_group == group {
                        list.push(json!({
                            "resource": plural, "scope": scope(is_namespaced),
                            "responseKind": {"group": group, "version": "v1", "kind": kind},
                            "singularResource": kind.to_ascii_lowercase(), "verbs": ["create"],
                        }));
                    }
                }
                json!({"version": version, "resources": list, "freshness": "Current"})
            })
            .collect();
        items.push(json!({"metadata": {"name": group}, "versions": versions}));
    }
    let body = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items,
    });
    answer_bytes(200, AGGREGATED, body.to_string().into_bytes())
}

fn scope(is_namespaced: bool) -> &'static str {
    if is_namespaced {
        "Namespaced"
    } else {
        "Cluster"
    }
}

fn aggregated_kind(kind: &ServedKind, version: &str) -> Value {
    let mut entry = json!({
        "resource": kind.resource.plural, "singularResource": kind.singular,
        "responseKind": {"group": kind.group, "version": version, "kind": kind.kind},
        "scope": scope(kind.is_namespaced), "verbs": VERBS,
    });
    if !kind.short_names.is_empty() {
        entry["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        entry["categories"] = json!(kind.categories);
    }
    let subs: Vec<Value> = subresources(kind, version)
        .into_iter()
        .map(|sub| {
            json!({
                "subresource": sub.name, "verbs": sub.verbs,
                "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind},
            })
        })
        .collect();
    if !subs.is_empty() {
        entry["subresources"] = json!(subs);
    }
    entry
}
