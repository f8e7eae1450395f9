//! The ClusterRole that reading a cluster takes, from the table of kinds.
//!
//! Must allow nothing but to read.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kinds::TABLE;

/// Name of the role and of its binding.
const NAME: &str = "mortise-shadow";

/// The role, and the binding of a group of that name, as YAML for `kubectl apply -f -`.
pub fn cluster_role() -> String {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in &TABLE {
        groups.entry(row.group).or_default().push(row.plural);
    }
    let rule = |(group, resources): (&str, Vec<&str>)| json!({"apiGroups": [group], "resources": resources, "verbs": ["get", "list", "watch"]});
    let rules: Vec<Value> = groups.into_iter().map(rule).collect();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": NAME},
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": NAME}],
    });
    // JSON values always can be written.
    let text = |object: &Value| serde_saphyr::to_string(object).unwrap_or_default();
    format!("{}---\n{}", text(&role), text(&binding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_reads_every_kind_of_the_table_and_writes_none() {
        let text = cluster_role();
        let documents: Vec<Value> = text
            .split("---\n")
            .map(|text| serde_saphyr::from_str(text).unwrap())
            .collect();
        let rules = documents[0]["rules"].as_array().unwrap();
        for row in &TABLE {
            let found = rules.iter().any(|rule| {
                rule["apiGroups"] == json!([row.group])
                    && rule["resources"]
                        .as_array()
                        .unwrap()
                        .contains(&json!(row.plural))
            });
            assert!(found, "{}", row.resource());
        }
        assert!(
            rules
                .iter()
                .all(|rule| rule["verbs"] == json!(["get", "list", "watch"]))
        );
        assert_eq!(documents[1]["roleRef"]["name"], NAME);
    }
}
