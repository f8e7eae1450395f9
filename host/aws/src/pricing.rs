//! Prices of instance types: on demand from the price list, spot from the price history.
//!
//! Old prices outlive a failed refresh, and what cannot be a price is none. Windows and licence prices are not
//! modelled. Answers to Karpenter's `pkg/providers/pricing/pricing.go`.

mod guard;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use aws_sdk_ec2::operation::describe_spot_price_history::DescribeSpotPriceHistoryInput;
use aws_sdk_ec2::types::InstanceType as Ec2InstanceType;
use aws_sdk_pricing::operation::get_products::GetProductsInput;
use aws_sdk_pricing::types::{Filter, FilterType};
use aws_smithy_types::DateTime;
use cloudprovider::CloudProviderError;
use jiff::Timestamp;
use locks::lock;

use crate::error::invalid;
use crate::pages::each_item;
use crate::seam::{Ec2Api, PricingApi};
use crate::seed;

use guard::Doubts;

const SPOT_PRODUCTS: [&str; 2] = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"];
const SPOT_PAGE: i32 = 2000;
const ON_DEMAND_PAGE: i32 = 100;

#[derive(Debug, Default)]
struct PriceTables {
    on_demand: BTreeMap<String, f64>,
    /// `None` before the first success.
    spot: Option<SpotPrices>,
    revision: u64,
    /// Types that the price list told last.
    listed: usize,
    doubts: Doubts,
}

/// By type.
type SpotPrices = BTreeMap<String, ZonePrices>;

/// By zone: there are few, and all types share their names.
type ZonePrices = Vec<(Arc<str>, f64)>;

/// The prices of one region.
pub(crate) struct PricingProvider {
    ec2: Arc<dyn Ec2Api>,
    pricing: Arc<dyn PricingApi>,
    region: String,
    is_isolated: bool,
    prices: Mutex<PriceTables>,
}

impl PricingProvider {
    /// Starts with the prices built in.
    pub(crate) fn new(
        ec2: Arc<dyn Ec2Api>,
        pricing: Arc<dyn PricingApi>,
        region: &str,
        is_isolated: bool,
    ) -> Self {
        let prices = Mutex::new(PriceTables {
            on_demand: seed::prices(region),
            ..PriceTables::default()
        });
        Self {
            ec2,
            pricing,
            region: region.to_owned(),
            is_isolated,
            prices,
        }
    }

    /// USD an hour on demand, if known.
    pub(crate) fn on_demand_price_per_hour(&self, instance_type: &str) -> Option<f64> {
        lock(&self.prices).on_demand.get(instance_type).copied()
    }

    /// USD an hour on spot, if known; until spot prices have been read, the on-demand price.
    pub(crate) fn spot_price_per_hour(&self, instance_type: &str, zone: &str) -> Option<f64> {
        let prices = lock(&self.prices);
        match &prices.spot {
            Some(spot) => price_in(spot.get(instance_type)?, zone),
            None => prices.on_demand.get(instance_type).copied(),
        }
    }

    /// Changes whenever a price has changed.
    pub(crate) fn revision(&self) -> u64 {
        lock(&self.prices).revision
    }

    /// Reads both kinds of prices; what could be read is kept even if the other failed.
    pub(crate) async fn refresh(&self, now: Timestamp) -> Result<(), CloudProviderError> {
        let (on_demand, spot) = futures::join!(self.refresh_on_demand(), self.refresh_spot(now));
        match (on_demand, spot) {
            (Err(on_demand), Err(spot)) => Err(CloudProviderError::Other(format!(
                "neither kind of prices could be read: {on_demand}; {spot}"
            ))),
            (on_demand, spot) => on_demand.and(spot),
        }
    }

    async fn refresh_on_demand(&self) -> Result<(), CloudProviderError> {
        // Neither has a Pricing endpoint to ask.
        if self.is_isolated || self.region.starts_with("us-gov") {
            return Ok(());
        }
        let (shared, metal) = futures::join!(
            self.products("Shared", "Compute Instance"),
            self.products("Dedicated", "Compute Instance (bare metal)"),
        );
        let (shared, metal) = (shared?, metal?);
        if shared.is_empty() || metal.is_empty() {
            return Err(CloudProviderError::Other(
                "the price list is empty".to_owned(),
            ));
        }
        lock(&self.prices).accept_on_demand(shared.into_iter().chain(metal).collect())
    }

    async fn products(
        &self,
        tenancy: &str,
        family: &str,
    ) -> Result<BTreeMap<String, f64>, CloudProviderError> {
        let filters = product_filters(&self.region, tenancy, family)?;
        let input = || {
            GetProductsInput::builder()
                .service_code("AmazonEC2")
                .set_filters(Some(filters.clone()))
                .max_results(ON_DEMAND_PAGE)
        };
        let mut prices = BTreeMap::new();
        each_item!(
            self.pricing,
            get_products,
            "getting products",
            price_list,
            input(),
            |document| {
                prices.extend(product_price(&document, currency(&self.region)));
            }
        )?;
        Ok(prices)
    }

    async fn refresh_spot(&self, now: Timestamp) -> Result<(), CloudProviderError> {
        let mut spot = SpotPrices::new();
        let mut zones = BTreeSet::<Arc<str>>::new();
        let input = || {
            DescribeSpotPriceHistoryInput::builder()
                .set_product_descriptions(Some(SPOT_PRODUCTS.map(str::to_owned).to_vec()))
                .start_time(DateTime::from_secs(now.as_second()))
                .max_results(SPOT_PAGE)
        };
        each_item!(
            self.ec2,
            describe_spot_price_history,
            "describing spot prices",
            spot_price_history,
            input(),
            |entry| {
                let name = entry.instance_type().map(Ec2InstanceType::as_str);
                let price = entry.spot_price().and_then(guard::parse);
                let (Some(name), Some(zone), Some(price)) =
                    (name, entry.availability_zone(), price)
                else {
                    continue;
                };
                let zone = zones.get(zone).cloned().unwrap_or_else(|| {
                    let new: Arc<str> = zone.into();
                    zones.insert(Arc::clone(&new));
                    new
                });
                set_price(spot.entry(name.to_owned()).or_default(), zone, price);
            }
        )?;
        lock(&self.prices).accept_spot(spot)
    }
}

impl PriceTables {
    fn accept_on_demand(
        &mut self,
        quoted: BTreeMap<String, f64>,
    ) -> Result<(), CloudProviderError> {
        let count = quoted.len();
        for (name, price) in quoted {
            let before = self.on_demand.get(&name).copied();
            let is_same = before.is_some_and(|before| before.to_bits() == price.to_bits());
            // A price as it was clears a doubt, too.
            if self.doubts.believes(&name, price, before) && !is_same {
                self.on_demand.insert(name, price);
                self.revision += 1;
            }
        }
        if guard::is_cut_short(count, self.listed) {
            return Err(cut_short("the price list", count, self.listed));
        }
        self.listed = count;
        Ok(())
    }

    fn accept_spot(&mut self, quoted: SpotPrices) -> Result<(), CloudProviderError> {
        if quoted.is_empty() {
            return Err(CloudProviderError::Other(
                "the spot price history is empty".to_owned(),
            ));
        }
        let (count, before) = (quoted.len(), self.spot.as_ref().map_or(0, BTreeMap::len));
        let mut has_changed = self.spot.is_none();
        let known = self.spot.get_or_insert_default();
        for (name, zones) in quoted {
            let known = known.entry(name.clone()).or_default();
            for (zone, price) in zones {
                let before = price_in(known, &zone);
                let is_same = before.is_some_and(|before| before.to_bits() == price.to_bits());
                let what = format!("{name} in {zone}");
                if self.doubts.believes(&what, price, before) && !is_same {
                    set_price(known, zone, price);
                    has_changed = true;
                }
            }
        }
        self.revision += u64::from(has_changed);
        if guard::is_cut_short(count, before) {
            return Err(cut_short("the spot price history", count, before));
        }
        Ok(())
    }
}

fn price_in(prices: &[(Arc<str>, f64)], zone: &str) -> Option<f64> {
    let own = prices.iter().find(|(known, _)| **known == *zone);
    own.map(|(_, price)| *price)
}

fn set_price(prices: &mut ZonePrices, zone: Arc<str>, price: f64) {
    match prices.iter_mut().find(|(known, _)| *known == zone) {
        Some((_, known)) => *known = price,
        None => prices.push((zone, price)),
    }
}

/// What was told is taken over all the same; it is to be asked for again soon.
fn cut_short(what: &str, now: usize, before: usize) -> CloudProviderError {
    CloudProviderError::Other(format!(
        "{what} told {now} types, {before} the last time: part of it is missing"
    ))
}

fn product_filters(
    region: &str,
    tenancy: &str,
    family: &str,
) -> Result<Vec<Filter>, CloudProviderError> {
    let terms = [
        ("regionCode", region),
        ("serviceCode", "AmazonEC2"),
        ("preInstalledSw", "NA"),
        ("operatingSystem", "Linux"),
        ("capacitystatus", "Used"),
        ("marketoption", "OnDemand"),
        ("tenancy", tenancy),
        ("productFamily", family),
    ];
    let filter = |(field, value): (&str, &str)| {
        Filter::builder()
            .r#type(FilterType::TermMatch)
            .field(field)
            .value(value)
            .build()
    };
    let filters: Result<Vec<_>, _> = terms.into_iter().map(filter).collect();
    filters.map_err(invalid)
}

/// Type and hourly price of one document of the price list.
fn product_price(document: &str, currency: &str) -> Option<(String, f64)> {
    let document: serde_json::Value = serde_json::from_str(document).ok()?;
    let name = document
        .pointer("/product/attributes/instanceType")?
        .as_str()?;
    let terms = document.pointer("/terms/OnDemand")?.as_object()?;
    let dimensions = terms
        .values()
        .filter_map(|term| term.get("priceDimensions")?.as_object());
    let mut amounts = dimensions
        .flat_map(|dimensions| dimensions.values())
        .filter_map(|dimension| {
            guard::parse(dimension.get("pricePerUnit")?.get(currency)?.as_str()?)
        });
    amounts.next().map(|price| (name.to_owned(), price))
}

/// What a region is paid in.
fn currency(region: &str) -> &'static str {
    if region.starts_with("cn-") {
        "CNY"
    } else {
        "USD"
    }
}

/// Region whose Pricing endpoint answers for `region`; the service runs in few of them.
pub(crate) fn pricing_endpoint_region(region: &str) -> &'static str {
    match region.split('-').next().unwrap_or_default() {
        "ap" => "ap-south-1",
        "cn" => "cn-northwest-1",
        "eu" => "eu-central-1",
        _ => "us-east-1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_price_that_is_not_zero_counts() {
        let document = r#"{"product": {"attributes": {"instanceType": "m5.large"}},
            "terms": {"OnDemand": {"T": {"priceDimensions": {
                "A": {"pricePerUnit": {"USD": "0.0000000000"}},
                "B": {"pricePerUnit": {"USD": "0.0960000000"}}}}}}}"#;
        assert_eq!(
            product_price(document, "USD"),
            Some(("m5.large".to_owned(), 0.096))
        );
        assert_eq!(product_price(document, currency("cn-north-1")), None);
        assert_eq!(product_price("{}", "USD"), None);
    }

    #[test]
    fn what_is_told_in_part_is_taken_over_and_asked_for_again() {
        let mut prices = PriceTables::default();
        let zones = |price: f64| vec![("a".into(), price), ("b".into(), price)];
        let types = ["m5.large", "c5.large", "r5.large"];
        let all = types.map(|name| (name.to_owned(), zones(0.1)));
        prices.accept_spot(SpotPrices::from(all)).unwrap();
        let part = [("m5.large".to_owned(), vec![("b".into(), 0.2)])];
        assert!(prices.accept_spot(SpotPrices::from(part)).is_err());
        let spot = prices.spot.as_ref().unwrap();
        let told = spot["m5.large"]
            .iter()
            .map(|(zone, price)| (&**zone, *price));
        assert_eq!(told.collect::<Vec<_>>(), [("a", 0.1), ("b", 0.2)]);
        assert_eq!((spot.len(), prices.revision), (3, 2));
        let listed = types.map(|name| (name.to_owned(), 0.3));
        prices.accept_on_demand(listed.into()).unwrap();
        let one = || BTreeMap::from([("m5.large".to_owned(), 0.4)]);
        assert!(prices.accept_on_demand(one()).is_err());
        assert_eq!(prices.on_demand["m5.large"].to_bits(), 0.4_f64.to_bits());
        assert_eq!(prices.on_demand.len(), 3);
    }

    #[test]
    fn a_jump_between_two_prices_as_they_were_is_not_believed() {
        let mut prices = PriceTables::default();
        for (told, want) in [(0.1, 0.1), (9.0, 0.1), (0.1, 0.1), (9.0, 0.1), (9.0, 9.0)] {
            let name = || "m5.large".to_owned();
            prices.accept_on_demand([(name(), told)].into()).unwrap();
            let zones = vec![("a".into(), told)];
            prices.accept_spot([(name(), zones)].into()).unwrap();
            let spot = price_in(&prices.spot.as_ref().unwrap()["m5.large"], "a");
            assert_eq!(spot, Some(want), "{told} on spot");
            let on_demand = prices.on_demand.get("m5.large").copied();
            assert_eq!(on_demand, Some(want), "{told} on demand");
        }
        assert_eq!(prices.revision, 4);
    }

    #[test]
    fn pricing_is_asked_of_a_region_that_has_it() {
        let cases = [
            ("eu-west-1", "eu-central-1"),
            ("ap-east-1", "ap-south-1"),
            ("us-west-2", "us-east-1"),
        ];
        for (region, want) in cases {
            assert_eq!(pricing_endpoint_region(region), want);
        }
    }
}
