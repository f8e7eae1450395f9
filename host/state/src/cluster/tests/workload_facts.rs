//! What policies are told of the owners of pods.

use super::*;

/// A pod of a ReplicaSet of the Deployment `web`.
fn of_revision(revision: &str, number: usize, namespace: &str) -> Event {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
        "name": format!("web-{revision}"), "uid": format!("{namespace}-{revision}")}]);
    pod(
        &format!("web-{revision}-{number}"),
        json!({"metadata": {"namespace": namespace, "uid": format!("{namespace}-{revision}-{number}"),
            "ownerReferences": owner, "labels": {"pod-template-hash": revision}}}),
    )
}

#[test]
fn a_deployment_in_the_midst_of_a_roll_out_has_the_pods_of_all_its_replica_sets() {
    let old = (0..9).map(|it| of_revision("old", it, "default"));
    let new = [
        of_revision("new", 0, "default"),
        of_revision("new", 0, "other"),
        pod("alone", json!({})),
    ];
    let snapshot = cluster(old.chain(new)).snapshot();
    let facts = snapshot.owners(snapshot.pods());
    let replicas: Vec<(&str, u32)> = facts
        .iter()
        .map(|(uid, it)| (uid.as_str(), it.replicas))
        .collect();
    assert_eq!(
        replicas,
        [
            ("default-new", 10),
            ("default-old", 10),
            ("other-new", 1),
            ("rs", 1)
        ]
    );
}
