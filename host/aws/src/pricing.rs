//! Prices of instance types: on-demand from the price list, spot from the price history.

/// Region whose Pricing endpoint answers for `region`; the service runs in few of them.
pub fn pricing_endpoint_region(region: &str) -> &'static str {
    match region.split('-').next().unwrap_or_default() {
        "ap" => "ap-south-1",
        "cn" => "cn-northwest-1",
        "eu" => "eu-central-1",
        _ => "us-east-1",
    }
}
