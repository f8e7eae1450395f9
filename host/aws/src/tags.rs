//! Tags that the provider writes, and filters that find tagged things.
//!
//! Pure. The provider's own tags win over a user's. Answers to Karpenter's `pkg/utils/utils.go` and
//! `pkg/apis/v1/ec2nodeclass.go` (Tags).

use std::collections::BTreeMap;

use apis::{Ec2NodeClass, labels};
use aws_sdk_ec2::types::{Filter, ResourceType, Tag, TagSpecification};

/// Tags by key.
pub(crate) type Tags = BTreeMap<String, String>;

/// Key of the tag that makes a cluster the owner.
pub(crate) fn cluster_tag(cluster_name: &str) -> String {
    format!("kubernetes.io/cluster/{cluster_name}")
}

/// Tags of everything made to launch an instance.
pub fn launch_tags(
    node_class: &Ec2NodeClass,
    cluster_name: &str,
    node_pool: &str,
) -> BTreeMap<String, String> {
    let mut tags = base_tags(node_class, cluster_name);
    tags.insert(labels::NODEPOOL.to_owned(), node_pool.to_owned());
    tags
}

/// Tags of an instance profile.
pub(crate) fn profile_tags(node_class: &Ec2NodeClass, cluster_name: &str, region: &str) -> Tags {
    let mut tags = base_tags(node_class, cluster_name);
    tags.insert(labels::TOPOLOGY_REGION.to_owned(), region.to_owned());
    tags
}

fn base_tags(node_class: &Ec2NodeClass, cluster_name: &str) -> Tags {
    let mut tags = node_class.spec.tags.clone();
    tags.insert(cluster_tag(cluster_name), "owned".to_owned());
    tags.insert(
        labels::EKS_CLUSTER_NAME_TAG.to_owned(),
        cluster_name.to_owned(),
    );
    let name = node_class.metadata.name.clone().unwrap_or_default();
    tags.insert(labels::EC2_NODE_CLASS.to_owned(), name);
    tags
}

/// The user's tag key that the provider keeps for itself, if there is one.
pub(crate) fn restricted_tag(tags: &Tags) -> Option<&str> {
    let is_cluster_tag = |key: &str| {
        let rest = key
            .strip_prefix("kubernetes.io/cluster/")
            .unwrap_or_default();
        rest.starts_with(|c: char| c.is_ascii_alphanumeric())
            && rest
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    let own = [
        labels::NODEPOOL,
        labels::EKS_CLUSTER_NAME_TAG,
        labels::NODECLAIM_TAG,
        labels::EC2_NODE_CLASS,
        labels::LAUNCH_TAG,
    ];
    tags.keys()
        .map(String::as_str)
        .find(|key| own.contains(key) || is_cluster_tag(key))
}

/// The SDK's form.
pub(crate) fn to_ec2(tags: &Tags) -> Vec<Tag> {
    tags.iter()
        .map(|(key, value)| Tag::builder().key(key).value(value).build())
        .collect()
}

/// The SDK's form, for resources of one kind.
pub(crate) fn specification(kind: ResourceType, tags: &Tags) -> TagSpecification {
    TagSpecification::builder()
        .resource_type(kind)
        .set_tags(Some(to_ec2(tags)))
        .build()
}

/// A filter of one name.
pub(crate) fn filter<V: Into<String>>(name: &str, values: impl IntoIterator<Item = V>) -> Filter {
    let values = values.into_iter().map(Into::into).collect();
    Filter::builder()
        .name(name)
        .set_values(Some(values))
        .build()
}

/// Filters for a selector's tags; the value `*` asks only for the key.
pub(crate) fn tag_filters(tags: &Tags) -> Vec<Filter> {
    tags.iter()
        .map(|(key, value)| match value.as_str() {
            "*" => filter("tag-key", [key.as_str()]),
            value => filter(&format!("tag:{key}"), [value]),
        })
        .collect()
}

/// The value of a tag among an object's tags.
pub(crate) fn tag_value<'a>(tags: &'a [Tag], key: &str) -> Option<&'a str> {
    tags.iter()
        .find(|tag| tag.key() == Some(key))
        .and_then(Tag::value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_tags_may_not_be_set_by_users() {
        let cases = [
            ("team", None),
            (
                "kubernetes.io/cluster/demo",
                Some("kubernetes.io/cluster/demo"),
            ),
            ("kubernetes.io/cluster/", None),
            ("karpenter.sh/nodepool", Some("karpenter.sh/nodepool")),
            ("eks:eks-cluster-name", Some("eks:eks-cluster-name")),
            ("mortise.dev/launch", Some("mortise.dev/launch")),
        ];
        for (key, want) in cases {
            let tags = Tags::from([(key.to_owned(), "x".to_owned())]);
            assert_eq!(restricted_tag(&tags), want, "{key}");
        }
    }

    #[test]
    fn own_tags_win_over_a_users() {
        let mut class = Ec2NodeClass::default();
        class.spec.tags = Tags::from([
            ("eks:eks-cluster-name".to_owned(), "other".to_owned()),
            ("team".to_owned(), "a".to_owned()),
        ]);
        let tags = launch_tags(&class, "demo", "default");
        assert_eq!(tags["eks:eks-cluster-name"], "demo");
        assert_eq!(
            (
                tags["team"].as_str(),
                tags["karpenter.sh/nodepool"].as_str()
            ),
            ("a", "default")
        );
    }
}
