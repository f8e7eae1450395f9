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
