//! What a request is about, in the words of authorization: verb, group, resource, namespace and name.
//!
//! Read from method and address alone, as API servers do it before they look anything up. Answers to
//! `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`.

use http::{Method, Uri};

use crate::request::{QueryParameters, decode};

/// Request in terms of authorization: verb, resource and object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestInfo {
    /// As roles write it: get, list, watch, create, update, patch, delete or deletecollection.
    pub verb: &'static str,
    /// Empty for the core group.
    pub group: String,
    /// The plural, with the subresource after a slash.
    pub resource: String,
    /// Empty for all namespaces and for kinds of the whole cluster.
    pub namespace: String,
    /// Empty for the collection.
    pub name: String,
}

impl RequestInfo {
    /// `None` where the request is about no resource, such as the version or the list of groups.
    pub fn of(method: &Method, uri: &Uri) -> Option<Self> {
        let steps: Vec<String> = uri.path().split('/').map(decode).collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        let (group, rest) = match steps.as_slice() {
            ["", "api", _, rest @ ..] => ("", rest),
            ["", "apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let (namespace, tail) = match rest {
            // `namespaces/x/status` and `namespaces/x/finalize` are about the namespace itself.
            ["namespaces", namespace, plural, tail @ ..]
                if !matches!(*plural, "status" | "finalize") =>
            {
                (*namespace, (*plural, tail))
            }
            [plural, tail @ ..] => ("", (*plural, tail)),
            [] => return None,
        };
        let (plural, tail) = tail;
        let name = tail.first().copied().unwrap_or_default();
        let resource = match tail.get(1) {
            Some(subresource) => format!("{plural}/{subresource}"),
            None => plural.to_owned(),
        };
        let query = QueryParameters::parse(uri.query().unwrap_or_default());
        Some(Self {
            verb: verb(method, name.is_empty(), query.is_true("watch"))?,
            group: group.to_owned(),
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

fn verb(method: &Method, is_collection: bool, watches: bool) -> Option<&'static str> {
    let verb = match (method.as_str(), is_collection) {
        ("GET" | "HEAD", true) if watches => "watch",
        ("GET" | "HEAD", true) => "list",
        ("GET" | "HEAD", false) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "deletecollection",
        ("DELETE", false) => "delete",
        _ => return None,
    };
    Some(verb)
}

#[cfg(test)]
mod tests;
