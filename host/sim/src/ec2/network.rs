//! Subnets, whose addresses run out, and security groups: those that eksctl would have made.
//!
//! Never hands out an address twice in a run, for nodes are named after theirs.

use std::collections::BTreeMap;

use aws::seam::{ApiError, ApiResult, ZonalShift};
use aws_sdk_ec2::operation::describe_security_groups::{
    DescribeSecurityGroupsInput, DescribeSecurityGroupsOutput,
};
use aws_sdk_ec2::operation::describe_subnets::{DescribeSubnetsInput, DescribeSubnetsOutput};
use aws_sdk_ec2::types::{SecurityGroup, Subnet, SubnetState};

use super::filters::{matches, page, tag_list};
use super::{AccountState, Ec2Config, stable_id};

/// The account that owns everything.
pub(super) const ACCOUNT: &str = "111122223333";

#[derive(Debug)]
pub(super) struct SubnetRecord {
    pub(super) id: String,
    pub(super) vpc_id: String,
    pub(super) zone: String,
    pub(super) zone_id: String,
    /// Second octet's neighbour: `10.0.<base>.0/18`.
    pub(super) base: u32,
    pub(super) free: i32,
    /// Addresses ever given, so that none is given twice in a run.
    pub(super) given: u32,
    pub(super) tags: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(super) struct SecurityGroupRecord {
    pub(super) id: String,
    pub(super) name: String,
    vpc_id: String,
    tags: BTreeMap<String, String>,
}

impl SubnetRecord {
    /// The next private address. A subnet counts through its own /14 so that names stay unique.
    pub(super) fn next_address(&mut self) -> String {
        self.given += 1;
        // The first four addresses of a subnet belong to AWS.
        let host = self.given + 3;
        format!(
            "10.{}.{}.{}",
            self.base * 4 + host / 65_536,
            host / 256 % 256,
            host % 256
        )
    }

    /// Gives no address again up to one that is taken. One of another subnet changes nothing.
    pub(super) fn skip_to(&mut self, address: &str) {
        let octets: Vec<u32> = address
            .split('.')
            .filter_map(|it| it.parse().ok())
            .collect();
        let [10, second, third, fourth] = octets[..] else {
            return;
        };
        if let Some(high) = second.checked_sub(self.base * 4).filter(|high| *high < 4) {
            let host = high * 65_536 + third * 256 + fourth;
            self.given = self.given.max(host.saturating_sub(3));
        }
    }
}

pub(super) fn subnets(config: &Ec2Config) -> Vec<SubnetRecord> {
    let vpc_id = stable_id(config.seed, "vpc", &[&config.cluster_name]);
    let record = |(index, zone): (usize, &String)| SubnetRecord {
        id: stable_id(config.seed, "subnet", &[&config.cluster_name, zone]),
        vpc_id: vpc_id.clone(),
        zone: zone.clone(),
        zone_id: zone_id(&config.region, zone),
        base: u32::try_from(index).unwrap_or_default(),
        free: config.addresses_per_subnet,
        given: 0,
        tags: tags(config, &format!("{}-private-{zone}", config.cluster_name)),
    };
    config.zones.iter().enumerate().map(record).collect()
}

pub(super) fn security_groups(config: &Ec2Config) -> Vec<SecurityGroupRecord> {
    let vpc_id = stable_id(config.seed, "vpc", &[&config.cluster_name]);
    let record = |name: &str| {
        let name = format!("{}-{name}", config.cluster_name);
        SecurityGroupRecord {
            id: stable_id(config.seed, "sg", &[&name]),
            tags: tags(config, &name),
            vpc_id: vpc_id.clone(),
            name,
        }
    };
    ["cluster", "node"].map(record).into()
}

fn tags(config: &Ec2Config, name: &str) -> BTreeMap<String, String> {
    let cluster = &config.cluster_name;
    [
        ("Name".to_owned(), name.to_owned()),
        ("karpenter.sh/discovery".to_owned(), cluster.clone()),
        (
            format!("kubernetes.io/cluster/{cluster}"),
            "owned".to_owned(),
        ),
    ]
    .into()
}

/// The id of a zone. Accounts differ in the mapping from names; this one's is fixed.
pub fn zone_id(region: &str, zone: &str) -> String {
    let mut words = region.split('-');
    let area = words.next().unwrap_or_default();
    let short: String = words
        .map(|word| match word {
            // `southeast` and its kin shorten to two letters.
            "northeast" => "ne",
            "southeast" => "se",
            "northwest" => "nw",
            "southwest" => "sw",
            word => word.get(..1).unwrap_or_default(),
        })
        .collect();
    let number = match zone.strip_prefix(region) {
        Some("a") => 4,
        Some("b") => 6,
        Some("c") => 1,
        Some("d") => 2,
        Some("e") => 3,
        _ => 5,
    };
    format!("{area}{short}-az{number}")
}

impl AccountState {
    /// The shifts that are in force.
    pub(super) fn zonal_shifts(&self) -> Vec<ZonalShift> {
        let now = self.clock.now();
        let shifts = self.shifts.iter().filter(|(_, until)| **until > now);
        let shifts = shifts.map(|(zone_id, until)| ZonalShift {
            away_from: zone_id.clone(),
            expires_at: Some(*until),
        });
        shifts.collect()
    }

    pub(super) fn describe_subnets(
        &self,
        input: &DescribeSubnetsInput,
    ) -> ApiResult<DescribeSubnetsOutput> {
        let ids = input.subnet_ids.as_deref().unwrap_or_default();
        if let Some(id) = ids
            .iter()
            .find(|id| self.subnets.iter().all(|s| s.id != **id))
        {
            let message = format!("The subnet ID '{id}' does not exist");
            return Err(ApiError::client("InvalidSubnetID.NotFound", message));
        }
        let filters = input.filters.as_deref().unwrap_or_default();
        let found = self
            .subnets
            .iter()
            .filter(|s| ids.is_empty() || ids.contains(&s.id));
        let found = found.filter(|s| {
            matches(filters, &s.tags, |name| match name {
                "subnet-id" => vec![s.id.clone()],
                "vpc-id" => vec![s.vpc_id.clone()],
                "availability-zone" | "availabilityZone" => vec![s.zone.clone()],
                "availability-zone-id" | "availabilityZoneId" => vec![s.zone_id.clone()],
                "state" => vec!["available".to_owned()],
                _ => Vec::new(),
            })
        });
        let subnets = found.map(|s| subnet(s, &self.config.region)).collect();
        let (subnets, next) = page(subnets, input.max_results, input.next_token.as_deref())?;
        Ok(DescribeSubnetsOutput::builder()
            .set_subnets(Some(subnets))
            .set_next_token(next)
            .build())
    }

    pub(super) fn describe_security_groups(
        &self,
        input: &DescribeSecurityGroupsInput,
    ) -> ApiResult<DescribeSecurityGroupsOutput> {
        let ids = input.group_ids.as_deref().unwrap_or_default();
        if let Some(id) = ids
            .iter()
            .find(|id| self.security_groups.iter().all(|g| g.id != **id))
        {
            let message = format!("The security group '{id}' does not exist");
            return Err(ApiError::client("InvalidGroup.NotFound", message));
        }
        let filters = input.filters.as_deref().unwrap_or_default();
        let found = self
            .security_groups
            .iter()
            .filter(|g| ids.is_empty() || ids.contains(&g.id));
        let found = found.filter(|g| {
            matches(filters, &g.tags, |name| match name {
                "group-id" => vec![g.id.clone()],
                "group-name" => vec![g.name.clone()],
                "vpc-id" => vec![g.vpc_id.clone()],
                _ => Vec::new(),
            })
        });
        let groups = found
            .map(|g| {
                SecurityGroup::builder()
                    .group_id(&g.id)
                    .group_name(&g.name)
                    .description("nodes of the simulated cluster")
                    .owner_id(ACCOUNT)
                    .vpc_id(&g.vpc_id)
                    .set_tags(Some(tag_list(&g.tags)))
                    .build()
            })
            .collect();
        let (groups, next) = page(groups, input.max_results, input.next_token.as_deref())?;
        Ok(DescribeSecurityGroupsOutput::builder()
            .set_security_groups(Some(groups))
            .set_next_token(next)
            .build())
    }
}

fn subnet(record: &SubnetRecord, region: &str) -> Subnet {
    Subnet::builder()
        .subnet_id(&record.id)
        .subnet_arn(format!(
            "arn:aws:ec2:{region}:{ACCOUNT}:subnet/{}",
            record.id
        ))
        .vpc_id(&record.vpc_id)
        .owner_id(ACCOUNT)
        .availability_zone(&record.zone)
        .availability_zone_id(&record.zone_id)
        .available_ip_address_count(record.free)
        .cidr_block(format!("10.{}.0.0/14", record.base * 4))
        .map_public_ip_on_launch(false)
        .state(SubnetState::Available)
        .set_tags(Some(tag_list(&record.tags)))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_ids_look_like_those_of_aws() {
        assert_eq!(zone_id("us-east-1", "us-east-1a"), "use1-az4");
        assert_eq!(zone_id("eu-west-1", "eu-west-1c"), "euw1-az1");
        assert_eq!(zone_id("ap-southeast-2", "ap-southeast-2b"), "apse2-az6");
    }
}
