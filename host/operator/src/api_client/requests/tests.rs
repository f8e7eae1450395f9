//! What a request asks for is read from its path.

use super::*;

#[test]
fn what_is_asked_for_is_read_from_the_path() {
    for (path, wanted) in [
        ("/api/v1/pods", ["", "v1", "pods", ""]),
        ("/api/v1/namespaces/a", ["", "v1", "namespaces", ""]),
        (
            "/api/v1/namespaces/a/pods/b/eviction",
            ["", "v1", "pods", "eviction"],
        ),
        (
            "/apis/karpenter.sh/v1/nodeclaims/a/status?x=y",
            ["karpenter.sh", "v1", "nodeclaims", "status"],
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
            ["coordination.k8s.io", "v1", "leases", ""],
        ),
        ("/version", ["", "version", "", ""]),
    ] {
        let asked = AskedFor::of(&Method::GET, &path.parse().unwrap());
        let told = [
            &asked.group,
            &asked.version,
            &asked.resource,
            &asked.subresource,
        ];
        assert_eq!(told, wanted, "{path}");
    }
}
