//! Requests are told as roles write them.

use super::*;

#[test]
fn requests_are_told_as_roles_write_them() {
    let cases = [
        ("GET", "/api/v1/pods?limit=500", "list  pods  "),
        ("GET", "/api/v1/pods?watch=true", "watch  pods  "),
        ("GET", "/api/v1/nodes/a", "get  nodes  a"),
        ("GET", "/api/v1/namespaces/a", "get  namespaces  a"),
        (
            "PUT",
            "/api/v1/namespaces/a/finalize",
            "update  namespaces/finalize  a",
        ),
        (
            "POST",
            "/api/v1/namespaces/a/pods/b/eviction",
            "create  pods/eviction a b",
        ),
        (
            "PATCH",
            "/apis/karpenter.sh/v1/nodeclaims/b/status",
            "patch karpenter.sh nodeclaims/status  b",
        ),
        (
            "DELETE",
            "/apis/karpenter.sh/v1/nodeclaims/b",
            "delete karpenter.sh nodeclaims  b",
        ),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/a/deployments",
            "deletecollection apps deployments a ",
        ),
    ];
    for (method, uri, expected) in cases {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let info = RequestInfo::of(&method, &uri.parse().unwrap()).unwrap();
        let found = format!(
            "{} {} {} {} {}",
            info.verb, info.group, info.resource, info.namespace, info.name
        );
        assert_eq!(found, expected, "{method} {uri}");
    }
    for uri in [
        "/version",
        "/apis",
        "/apis/apps/v1",
        "/api/v1",
        "/openapi/v3",
    ] {
        assert_eq!(
            RequestInfo::of(&Method::GET, &uri.parse().unwrap()),
            None,
            "{uri}"
        );
    }
}
