//! Security groups that a class selects; every network interface gets all of them.
//!
//! Picks none by itself where a class selects none. Answers to Karpenter's
//! `pkg/providers/securitygroup/securitygroup.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::Ec2NodeClass;
use apis::ec2nodeclass::{SecurityGroup, SecurityGroupSelectorTerm};
use aws_sdk_ec2::operation::describe_security_groups::DescribeSecurityGroupsInput;
use aws_sdk_ec2::types::Filter;
use cloudprovider::CloudProviderError;
use jiff::Timestamp;

use crate::cache::{DEFAULT_TTL, TtlCache};
use crate::node_class::revision::revision_key;
use crate::pages::all_pages;
use crate::seam::Ec2Api;
use crate::tags::{filter, tag_filters};

const PAGE: i32 = 500;

/// Finds security groups.
pub(crate) struct SecurityGroupProvider {
    ec2: Arc<dyn Ec2Api>,
    cache: TtlCache<String, Vec<SecurityGroup>>,
}

impl SecurityGroupProvider {
    /// With an empty cache.
    pub(crate) fn new(ec2: Arc<dyn Ec2Api>) -> Self {
        Self {
            ec2,
            cache: TtlCache::new(DEFAULT_TTL),
        }
    }

    /// The groups a class selects, by id.
    pub(crate) async fn list(
        &self,
        node_class: &Ec2NodeClass,
        now: Timestamp,
    ) -> Result<Vec<SecurityGroup>, CloudProviderError> {
        let key = revision_key(node_class);
        if let Some(groups) = self.cache.get(&key, now) {
            return Ok(groups);
        }
        let mut found = BTreeMap::new();
        for filters in selector_filters(&node_class.spec.security_group_selector_terms) {
            let input = || {
                DescribeSecurityGroupsInput::builder()
                    .set_filters(Some(filters.clone()))
                    .max_results(PAGE)
            };
            let groups = all_pages!(
                self.ec2,
                describe_security_groups,
                "describing security groups",
                security_groups,
                input()
            )?;
            for group in groups {
                if let Some(id) = group.group_id {
                    found.insert(
                        id.clone(),
                        SecurityGroup {
                            id,
                            name: group.group_name,
                        },
                    );
                }
            }
        }
        let groups: Vec<_> = found.into_values().collect();
        if !groups.is_empty() {
            self.cache.insert(key, groups.clone(), now);
        }
        Ok(groups)
    }
}

/// One query for all ids, one for all names, one for each term of tags.
fn selector_filters(terms: &[SecurityGroupSelectorTerm]) -> Vec<Vec<Filter>> {
    let ids: Vec<&str> = terms.iter().filter_map(|term| term.id.as_deref()).collect();
    let names: Vec<&str> = terms
        .iter()
        .filter(|term| term.id.is_none())
        .filter_map(|term| term.name.as_deref())
        .collect();
    let mut queries = Vec::new();
    if !ids.is_empty() {
        queries.push(vec![filter("group-id", ids)]);
    }
    if !names.is_empty() {
        queries.push(vec![filter("group-name", names)]);
    }
    let tagged = terms
        .iter()
        .filter(|term| term.id.is_none() && term.name.is_none());
    queries.extend(tagged.map(|term| tag_filters(&term.tags)));
    queries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeAws;

    fn term(
        id: Option<&str>,
        name: Option<&str>,
        tags: &[(&str, &str)],
    ) -> SecurityGroupSelectorTerm {
        let tags = tags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        SecurityGroupSelectorTerm {
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            tags: tags.collect(),
        }
    }

    #[test]
    fn ids_are_one_query_names_another_and_each_term_of_tags_a_third() {
        let terms = [
            term(None, None, &[("team", "a"), ("zone", "*")]),
            term(Some("sg-2"), None, &[]),
            term(None, Some("nodes"), &[]),
            term(Some("sg-1"), None, &[]),
            term(None, Some("pods"), &[]),
            term(None, None, &[("team", "b")]),
        ];
        let said = |filter: &Filter| {
            let values = filter.values().join(",");
            format!("{}={values}", filter.name().unwrap_or_default())
        };
        let queries: Vec<Vec<String>> = selector_filters(&terms)
            .iter()
            .map(|filters| filters.iter().map(said).collect())
            .collect();
        let want = [
            vec!["group-id=sg-2,sg-1"],
            vec!["group-name=nodes,pods"],
            vec!["tag:team=a", "tag-key=zone"],
            vec!["tag:team=b"],
        ];
        assert_eq!(queries, want);
        assert!(
            selector_filters(&[]).is_empty(),
            "none is selected by itself"
        );
    }

    #[tokio::test]
    async fn groups_are_believed_for_a_minute_and_that_there_are_none_is_not() {
        // The term, and how often EC2 is asked until the end of each of the looks below.
        let cases = [
            (term(Some("sg-1"), None, &[]), 1, [1, 1, 2]),
            (term(Some("sg-9"), None, &[]), 0, [1, 2, 3]),
        ];
        for (term, count, asked) in cases {
            let aws = FakeAws::new(Vec::new());
            let provider = SecurityGroupProvider::new(Arc::clone(&aws) as _);
            let mut class = Ec2NodeClass::default();
            class.spec.security_group_selector_terms = vec![term];
            for (seconds, asked) in [0, 59, 60].into_iter().zip(asked) {
                let now = Timestamp::from_second(seconds).unwrap();
                let groups = provider.list(&class, now).await.unwrap();
                assert_eq!(groups.len(), count);
                assert_eq!(aws.calls("DescribeSecurityGroups"), asked, "{seconds}");
            }
        }
    }
}
