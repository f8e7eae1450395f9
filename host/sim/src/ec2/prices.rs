//! Prices: the history of spot prices, and the price list as the Pricing API serves it.
//!
//! What is not sold, or has no published price on demand, is not listed.

use aws::seam::ApiResult;
use aws_sdk_ec2::operation::describe_spot_price_history::{
    DescribeSpotPriceHistoryInput, DescribeSpotPriceHistoryOutput,
};
use aws_sdk_ec2::types::{InstanceType as Ec2InstanceType, RiProductDescription, SpotPrice};
use aws_sdk_pricing::operation::get_products::{GetProductsInput, GetProductsOutput};
use serde_json::json;

use super::filters::{matches, page};
use super::{AccountState, date_time};
use crate::catalogue::CatalogueEntry;

const SPOT_PAGE_MAX: i32 = 1_000;
const PRODUCTS_PAGE_MAX: i32 = 100;

impl AccountState {
    pub(super) fn describe_spot_price_history(
        &self,
        input: &DescribeSpotPriceHistoryInput,
    ) -> ApiResult<DescribeSpotPriceHistoryOutput> {
        let products = input.product_descriptions.as_deref().unwrap_or_default();
        let vpc = "Linux/UNIX (Amazon VPC)";
        let linux = products.is_empty() || products.iter().any(|p| p == "Linux/UNIX" || p == vpc);
        let types = input.instance_types.as_deref().unwrap_or_default();
        let filters = input.filters.as_deref().unwrap_or_default();
        let at = date_time(self.now());
        let mut prices = Vec::new();
        let chosen = self.types().filter(|t| {
            linux && (types.is_empty() || types.iter().any(|name| name.as_str() == t.name))
        });
        for instance_type in chosen {
            for zone in instance_type.zones(&self.config.region) {
                let Some(price) = self.spot_price(instance_type.name, &zone) else {
                    continue;
                };
                let asked = input
                    .availability_zone
                    .as_deref()
                    .is_none_or(|asked| asked == zone);
                let passes = matches(
                    filters,
                    &std::collections::BTreeMap::new(),
                    |name| match name {
                        "availability-zone" => vec![zone.clone()],
                        "instance-type" => vec![instance_type.name.to_owned()],
                        "product-description" => vec!["Linux/UNIX".to_owned()],
                        _ => Vec::new(),
                    },
                );
                if asked && passes {
                    prices.push(
                        SpotPrice::builder()
                            .instance_type(Ec2InstanceType::from(instance_type.name))
                            .availability_zone(&zone)
                            .product_description(RiProductDescription::LinuxUnix)
                            .spot_price(price.to_string())
                            .timestamp(at)
                            .build(),
                    );
                }
            }
        }
        let size = Some(
            input
                .max_results
                .unwrap_or(SPOT_PAGE_MAX)
                .clamp(1, SPOT_PAGE_MAX),
        );
        let (prices, next) = page(prices, size, input.next_token.as_deref())?;
        Ok(DescribeSpotPriceHistoryOutput::builder()
            .set_spot_price_history(Some(prices))
            // EC2 ends with an empty token, not with none.
            .next_token(next.unwrap_or_default())
            .build())
    }

    pub(super) fn get_products(&self, input: &GetProductsInput) -> ApiResult<GetProductsOutput> {
        let filters = input.filters.as_deref().unwrap_or_default();
        let region = filters
            .iter()
            .find(|filter| filter.field() == "regionCode")
            .map_or(self.config.region.as_str(), |filter| filter.value());
        let passes = |t: &&CatalogueEntry| {
            filters.iter().all(|filter| {
                attribute(t, filter.field(), region).is_none_or(|value| value == filter.value())
            })
        };
        let offered = self.types().filter(|t| t.zones(region).next().is_some());
        let documents = offered
            .filter(passes)
            .filter_map(|t| document(t, region))
            .collect();
        let size = Some(
            input
                .max_results
                .unwrap_or(PRODUCTS_PAGE_MAX)
                .clamp(1, PRODUCTS_PAGE_MAX),
        );
        let (documents, next) = page(documents, size, input.next_token.as_deref())?;
        Ok(GetProductsOutput::builder()
            .format_version("aws_v1")
            .set_price_list(Some(documents))
            .set_next_token(next)
            .build())
    }
}

/// A product's attribute; none for those that all products here share in the asked form.
fn attribute<'t>(t: &'t CatalogueEntry, field: &str, region: &'t str) -> Option<&'t str> {
    match field {
        "instanceType" => Some(t.name),
        "regionCode" => Some(region),
        "serviceCode" => Some("AmazonEC2"),
        "preInstalledSw" => Some("NA"),
        "operatingSystem" => Some("Linux"),
        "capacitystatus" => Some("Used"),
        "marketoption" => Some("OnDemand"),
        "tenancy" => Some(if t.bare_metal { "Dedicated" } else { "Shared" }),
        "productFamily" if t.bare_metal => Some("Compute Instance (bare metal)"),
        "productFamily" => Some("Compute Instance"),
        _ => None,
    }
}

fn document(t: &CatalogueEntry, region: &str) -> Option<String> {
    let price = t.on_demand_price_per_hour(region)?;
    let attributes: serde_json::Map<String, serde_json::Value> = [
        "instanceType",
        "regionCode",
        "operatingSystem",
        "tenancy",
        "capacitystatus",
    ]
    .into_iter()
    .filter_map(|field| Some((field.to_owned(), attribute(t, field, region)?.into())))
    .collect();
    let sku = t.name.to_uppercase().replace(['.', '-'], "");
    let document = json!({
        "product": {
            "productFamily": attribute(t, "productFamily", region),
            "attributes": attributes,
            "sku": sku,
        },
        "serviceCode": "AmazonEC2",
        "terms": { "OnDemand": { format!("{sku}.JRTCKXETXF"): {
            "priceDimensions": { format!("{sku}.JRTCKXETXF.6YS6EN2CT7"): {
                "unit": "Hrs",
                "pricePerUnit": { "USD": format!("{price:.10}") },
            }},
            "sku": sku,
        }}},
    });
    Some(document.to_string())
}
