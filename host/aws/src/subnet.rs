//! Subnets: which ones a class selects, and which one a launch uses in each zone.
//!
//! Only EC2 knows how many addresses are free; between its answers this module counts what its own launches
//! may take. Answers to Karpenter's `pkg/providers/subnet/subnet.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use apis::Ec2NodeClass;
use apis::ec2nodeclass::{Subnet, SubnetSelectorTerm};
use aws_sdk_ec2::operation::describe_subnets::DescribeSubnetsInput;
use aws_sdk_ec2::types::Filter;
use cloudprovider::CloudProviderError;
use jiff::{SignedDuration, Timestamp};
use locks::lock;

use crate::cache::{TtlCache, after, make_room};
use crate::node_class::revision::revision_key;
use crate::pages::all_pages;
use crate::seam::Ec2Api;
use crate::tags::{filter, tag_filters};

const PAGE: i32 = 500;
/// How long a count is believed that no listing renews, at least, and beyond the time between two of them.
const COUNT_TTL: SignedDuration = SignedDuration::from_mins(5);
const COUNT_GRACE: SignedDuration = SignedDuration::from_mins(4);
/// Subnets of which addresses are counted. What expires soonest makes room: it counts as unknown.
const COUNTS_MAX: usize = 10_000;

/// A subnet as EC2 describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubnetInfo {
    /// Such as `subnet-0a1b`.
    pub(crate) id: String,
    /// Name of the zone.
    pub(crate) zone: String,
    /// Id of the zone, the same in every account.
    pub(crate) zone_id: Option<String>,
    /// Free addresses when asked.
    pub(crate) free_addresses: i64,
}

/// Addresses of one subnet.
#[derive(Debug, Clone, Copy)]
struct AddressCount {
    /// Free ones as EC2 last told, if it has told of them.
    free: Option<i64>,
    /// What launches since then may have taken.
    in_flight: i64,
    /// When nothing of it is believed any more.
    expires: Timestamp,
    /// Which of all counts it is: what launches were debited before is no part of a newer one.
    number: u64,
}

/// Addresses by subnet. Whatever no listing has renewed for a while is forgotten, and with it what was in flight.
#[derive(Debug)]
struct Addresses {
    ttl: SignedDuration,
    counts: BTreeMap<String, AddressCount>,
    /// Counts that were begun so far.
    begun: u64,
}

/// The subnets a launch was given, with what it owes back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ZonalSubnets {
    by_zone: BTreeMap<String, Debit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Debit {
    subnet: Subnet,
    pods: i64,
    /// The count that was debited.
    count: u64,
}

impl ZonalSubnets {
    /// The subnet of a zone.
    pub(crate) fn get(&self, zone: &str) -> Option<&Subnet> {
        self.by_zone.get(zone).map(|debit| &debit.subnet)
    }

    /// The zone of a chosen subnet.
    pub(crate) fn zone_of(&self, subnet_id: &str) -> Option<&Subnet> {
        self.by_zone
            .values()
            .map(|debit| &debit.subnet)
            .find(|subnet| subnet.id == subnet_id)
    }
}

/// Finds subnets and keeps count of their addresses.
pub(crate) struct SubnetProvider {
    ec2: Arc<dyn Ec2Api>,
    cache: TtlCache<String, Arc<[SubnetInfo]>>,
    addresses: Mutex<Addresses>,
}

impl SubnetProvider {
    /// Believes a listing for `refresh_interval`.
    pub(crate) fn new(ec2: Arc<dyn Ec2Api>, refresh_interval: SignedDuration) -> Self {
        Self {
            ec2,
            cache: TtlCache::new(refresh_interval),
            addresses: Mutex::new(Addresses {
                ttl: COUNT_TTL.max(refresh_interval.saturating_add(COUNT_GRACE)),
                counts: BTreeMap::new(),
                begun: 0,
            }),
        }
    }

    /// The subnets a class selects, the emptiest first.
    pub(crate) async fn list(
        &self,
        node_class: &Ec2NodeClass,
        now: Timestamp,
    ) -> Result<Arc<[SubnetInfo]>, CloudProviderError> {
        let key = revision_key(node_class);
        if let Some(subnets) = self.cache.get(&key, now) {
            return Ok(subnets);
        }
        let mut found = BTreeMap::new();
        for filters in selector_filters(&node_class.spec.subnet_selector_terms) {
            for subnet in self.describe(filters).await? {
                found.insert(subnet.id.clone(), subnet);
            }
        }
        let mut subnets: Vec<_> = found.into_values().collect();
        subnets.sort_by(|a, b| {
            b.free_addresses
                .cmp(&a.free_addresses)
                .then_with(|| a.id.cmp(&b.id))
        });
        self.note_free(&subnets, now);
        let subnets: Arc<[SubnetInfo]> = subnets.into();
        if !subnets.is_empty() {
            self.cache.insert(key, Arc::clone(&subnets), now);
        }
        Ok(subnets)
    }

    async fn describe(&self, filters: Vec<Filter>) -> Result<Vec<SubnetInfo>, CloudProviderError> {
        let input = || {
            DescribeSubnetsInput::builder()
                .set_filters(Some(filters.clone()))
                .max_results(PAGE)
        };
        let subnets = all_pages!(
            self.ec2,
            describe_subnets,
            "describing subnets",
            subnets,
            input()
        )?;
        Ok(subnets
            .into_iter()
            .filter_map(|subnet| {
                Some(SubnetInfo {
                    id: subnet.subnet_id?,
                    zone: subnet.availability_zone?,
                    zone_id: subnet.availability_zone_id,
                    free_addresses: i64::from(subnet.available_ip_address_count.unwrap_or(0)),
                })
            })
            .collect())
    }

    fn note_free(&self, subnets: &[SubnetInfo], now: Timestamp) {
        let mut addresses = lock(&self.addresses);
        addresses.forget_expired(now);
        for subnet in subnets {
            addresses.tell(&subnet.id, subnet.free_addresses, now);
        }
    }

    /// Free addresses by zone, less what launches in flight may have taken. Zones of which nothing is known are absent.
    pub(crate) fn free_by_zone(&self, subnets: &[Subnet], now: Timestamp) -> BTreeMap<String, u32> {
        let addresses = lock(&self.addresses);
        let mut by_zone: BTreeMap<String, u32> = BTreeMap::new();
        for subnet in subnets {
            if let Some(known) = addresses.known(&subnet.id, now) {
                let free = u32::try_from(known.max(0)).unwrap_or(u32::MAX);
                let sum = by_zone.entry(subnet.zone.clone()).or_default();
                *sum = sum.saturating_add(free);
            }
        }
        by_zone
    }

    /// Picks the emptiest subnet of each zone and debits it by the fewest pods that may land there.
    pub(crate) fn zonal_for_launch(
        &self,
        subnets: &[Subnet],
        pods_by_zone: &BTreeMap<String, i64>,
        now: Timestamp,
    ) -> ZonalSubnets {
        let mut addresses = lock(&self.addresses);
        addresses.forget_expired(now);
        let mut chosen: BTreeMap<String, (i64, &Subnet)> = BTreeMap::new();
        for subnet in subnets {
            let free = addresses.left_for_launch(&subnet.id);
            let is_better = chosen
                .get(&subnet.zone)
                .is_none_or(|(best, _)| free > *best);
            if is_better {
                chosen.insert(subnet.zone.clone(), (free, subnet));
            }
        }
        let mut by_zone = BTreeMap::new();
        for (zone, (_, subnet)) in chosen {
            let pods = pods_by_zone.get(&zone).copied().unwrap_or(0);
            let count = addresses.count(&subnet.id, now);
            count.in_flight += pods;
            let debit = Debit {
                subnet: subnet.clone(),
                pods,
                count: count.number,
            };
            by_zone.insert(zone, debit);
        }
        ZonalSubnets { by_zone }
    }

    /// Gives back what a launch did not take: every zone but those of the instances.
    pub(crate) fn settle(&self, debits: &ZonalSubnets, used_zones: &[&str]) {
        let mut addresses = lock(&self.addresses);
        for (zone, debit) in &debits.by_zone {
            let Debit {
                subnet,
                pods,
                count: debited,
            } = debit;
            let is_unused = !used_zones.contains(&zone.as_str());
            // A newer listing has replaced the count that was debited, and what is in flight there is of others.
            if let Some(count) = addresses.counts.get_mut(&subnet.id)
                && count.number == *debited
                && is_unused
            {
                count.in_flight -= pods;
            }
        }
    }

    /// Notes that EC2 found a subnet full.
    pub(crate) fn mark_full(&self, subnet_id: &str, now: Timestamp) {
        lock(&self.addresses).tell(subnet_id, 0, now);
    }
}

impl Addresses {
    /// Free addresses of a subnet less those in flight; of what EC2 told nothing of, nothing is known.
    fn known(&self, subnet_id: &str, now: Timestamp) -> Option<i64> {
        let count = self.counts.get(subnet_id)?;
        let free = count.free.filter(|_| count.expires > now)?;
        Some(free - count.in_flight)
    }

    /// What counts when a launch chooses, once what has expired is forgotten: what nobody knows of is taken for empty.
    fn left_for_launch(&self, subnet_id: &str) -> i64 {
        let count = self.counts.get(subnet_id);
        count.map_or(0, |it| it.free.unwrap_or(0) - it.in_flight)
    }

    /// Takes over what EC2 tells; what was in flight is part of that.
    fn tell(&mut self, subnet_id: &str, free: i64, now: Timestamp) {
        make_room(&mut self.counts, subnet_id, COUNTS_MAX, |it| it.expires);
        let count = self.begin(Some(free), now);
        self.counts.insert(subnet_id.to_owned(), count);
    }

    /// The count of a subnet, a new one if there is none.
    fn count(&mut self, subnet_id: &str, now: Timestamp) -> &mut AddressCount {
        make_room(&mut self.counts, subnet_id, COUNTS_MAX, |it| it.expires);
        let unknown = self.begin(None, now);
        self.counts.entry(subnet_id.to_owned()).or_insert(unknown)
    }

    fn begin(&mut self, free: Option<i64>, now: Timestamp) -> AddressCount {
        self.begun += 1;
        AddressCount {
            free,
            in_flight: 0,
            expires: after(now, self.ttl),
            number: self.begun,
        }
    }

    fn forget_expired(&mut self, now: Timestamp) {
        self.counts.retain(|_, count| count.expires > now);
    }
}

/// One query for all ids, one for each term of tags.
fn selector_filters(terms: &[SubnetSelectorTerm]) -> Vec<Vec<Filter>> {
    let ids: Vec<&str> = terms.iter().filter_map(|term| term.id.as_deref()).collect();
    let mut queries: Vec<Vec<Filter>> = terms
        .iter()
        .filter(|term| term.id.is_none())
        .map(|term| tag_filters(&term.tags))
        .collect();
    if !ids.is_empty() {
        queries.insert(0, vec![filter("subnet-id", ids)]);
    }
    queries
}

/// The form of a class' status.
pub(crate) fn to_status(subnets: &[SubnetInfo]) -> Vec<Subnet> {
    subnets
        .iter()
        .map(|subnet| Subnet {
            id: subnet.id.clone(),
            zone: subnet.zone.clone(),
            zone_id: subnet.zone_id.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
