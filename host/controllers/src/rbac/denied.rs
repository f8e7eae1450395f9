//! A right that is missing: what it is called, of the API server's own words, and how it is granted, of the table.
//!
//! Texts, no requests.

use std::fmt;

use super::rule::{RbacRule, Role};

/// A request that nobody may make without a right.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeniedRequest {
    verb: String,
    /// Empty for the core group.
    group: String,
    /// The plural, with the subresource after a slash.
    resource: String,
}

impl fmt::Display for DeniedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb,
            group,
            resource,
        } = self;
        let dot = if group.is_empty() { "" } else { "." };
        write!(f, "{verb} {resource}{dot}{group}")
    }
}

impl DeniedRequest {
    /// Of the message of a refusal. None where something else than a right is missing: quotas and webhooks refuse by
    /// the same code.
    pub fn parse(message: &str) -> Option<Self> {
        let (_, told) = message.split_once(" cannot ")?;
        let (verb, told) = told.split_once(" resource \"")?;
        let (resource, told) = told.split_once("\" in API group \"")?;
        let (group, _) = told.split_once('"')?;
        Some(Self {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
        })
    }

    /// How it can be granted where these are the rules, as a sentence for people.
    pub fn grant(&self, rules: &[RbacRule]) -> String {
        let by_hand = format!(
            "additionalClusterRoleRules: [{{apiGroups: [\"{}\"], resources: [\"{}\"], verbs: [\"{}\"]}}]",
            self.group, self.resource, self.verb
        );
        let Some(rule) = rules.iter().find(|it| self.is_granted_by(it)) else {
            return format!("no rule of the chart grants it; the value {by_hand} does");
        };
        let role = granted_in(rule.role);
        let value = rule.when.value().map_or_else(String::new, |value| {
            format!(", where {value}: switch it on by the value, not by a variable alone")
        });
        let instead = match rule.role {
            Role::Core | Role::Aws | Role::Practice | Role::Metrics => {
                format!("; without it, the value {by_hand}")
            }
            Role::LeaderElection | Role::Policies => String::new(),
        };
        format!(
            "the chart grants it in {role}{value}; `helm upgrade` with the chart of this version brings it{instead}"
        )
    }

    fn is_granted_by(&self, rule: &RbacRule) -> bool {
        self.group == rule.group
            && rule.resources.contains(&self.resource.as_str())
            && rule.verbs.contains(&self.verb.as_str())
    }
}

/// Where the chart has the rules of a role.
fn granted_in(role: Role) -> &'static str {
    match role {
        Role::Core => "the ClusterRole that ends in -core",
        Role::Aws => "the ClusterRole of the release",
        Role::Practice => "the ClusterRole of the release, where practice.enabled is true",
        Role::Metrics => "the ClusterRole of the release, where controller.metrics.secure is true",
        Role::LeaderElection => "the Role of the release in its namespace",
        Role::Policies => {
            "the Role that ends in -policies, in the namespace of settings.policyNamespace"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_read_of_the_words_of_the_api_server() {
        const WHO: &str = "User \"system:serviceaccount:mortise:mortise\"";
        let cases = [
            (
                format!(
                    "nodes is forbidden: {WHO} cannot list resource \"nodes\" in API group \"\" at the cluster scope"
                ),
                Some("list nodes"),
            ),
            (
                format!(
                    "nodepools.karpenter.sh \"a\" is forbidden: {WHO} cannot patch resource \"nodepools/status\" in API \
                     group \"karpenter.sh\" at the cluster scope"
                ),
                Some("patch nodepools/status.karpenter.sh"),
            ),
            (
                format!(
                    "pods \"web\" is forbidden: {WHO} cannot create resource \"pods/eviction\" in API group \"\" in the \
                     namespace \"shop\": RBAC: clusterrole.rbac.authorization.k8s.io \"x\" not found"
                ),
                Some("create pods/eviction"),
            ),
            (
                "pods \"a\" is forbidden: exceeded quota: few, requested: pods=1".to_owned(),
                None,
            ),
            (
                "admission webhook \"w\" denied the request: you cannot".to_owned(),
                None,
            ),
        ];
        for (message, expected) in cases {
            let denied = DeniedRequest::parse(&message).map(|it| it.to_string());
            assert_eq!(denied.as_deref(), expected, "{message}");
        }
    }

    #[test]
    fn it_is_said_what_grants_a_right() {
        // Verb, group and resource, and what the sentence names.
        let cases: [([&str; 3], &[&str]); 9] = [
            (
                ["list", "", "nodes"],
                &[
                    "ends in -core",
                    "helm upgrade",
                    "{apiGroups: [\"\"], resources: [\"nodes\"], verbs: [\"list\"]}",
                ],
            ),
            (
                ["patch", "karpenter.sh", "nodeclaims/status"],
                &["ends in -core", "resources: [\"nodeclaims/status\"]"],
            ),
            (
                ["patch", "karpenter.k8s.aws", "ec2nodeclasses"],
                &["the ClusterRole of the release;"],
            ),
            (["create", "", "nodes"], &["practice.enabled"]),
            (
                ["create", "authentication.k8s.io", "tokenreviews"],
                &["controller.metrics.secure"],
            ),
            (
                ["patch", "", "pods"],
                &[
                    "settings.featureGates.podDeletionCostManagement",
                    "by the value",
                ],
            ),
            (
                ["update", "coordination.k8s.io", "leases"],
                &["the Role of the release in its namespace"],
            ),
            (
                ["patch", "", "configmaps"],
                &["-policies", "settings.policyNamespace"],
            ),
            (
                ["delete", "", "secrets"],
                &["no rule of the chart", "additionalClusterRoleRules"],
            ),
        ];
        for ([verb, group, resource], parts) in cases {
            let denied = DeniedRequest {
                verb: verb.to_owned(),
                group: group.to_owned(),
                resource: resource.to_owned(),
            };
            let grant = denied.grant(&super::super::RULES);
            for part in parts {
                assert!(grant.contains(part), "{denied}: {grant}");
            }
        }
    }
}
