//! Rewrites an instance-type catalogue from JSON into the compact table that the simulator embeds.
//!
//! `cargo run -p sim --example compact_catalogue -- catalogue.json host/sim/data/ec2-catalogue.tsv.gz`
//!
//! One line a type, fields parted by tabs in the order of `catalogue::parse`. Run it when the published
//! data change; nothing at build time or run time depends on it.

use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::Value;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(from), Some(to)) = (args.next(), args.next()) else {
        return Err("usage: compact_catalogue <catalogue.json> <out.tsv.gz>".into());
    };
    let document: Value = serde_json::from_slice(&std::fs::read(from)?)?;
    let mut table = String::new();
    for instance_type in document["instanceTypes"].as_array().into_iter().flatten() {
        writeln!(table, "{}", line(instance_type))?;
    }
    let mut encoder =
        flate2::write::GzEncoder::new(std::fs::File::create(to)?, flate2::Compression::best());
    encoder.write_all(table.as_bytes())?;
    encoder.finish()?;
    Ok(())
}

fn line(t: &Value) -> String {
    let network = &t["network"];
    [
        text(&t["name"]),
        joined(&t["arch"]),
        text(&t["vcpu"]),
        text(&t["memoryMiB"]),
        flags(t),
        text(&t["hypervisor"]),
        text(&t["cpuManufacturer"]),
        text(&t["clockGhz"]),
        format!(
            "{}/{}",
            text(&t["ebs"]["baselineMbps"]),
            text(&t["ebs"]["maxMbps"])
        ),
        format!(
            "{}/{}",
            text(&t["instanceStore"]["nvme"]),
            text(&t["instanceStore"]["totalGB"])
        ),
        text(&network["maxInterfaces"]),
        text(&network["ipv4PerInterface"]),
        text(&network["efaMax"]),
        text(&network["defaultCard"]),
        cards(&network["cards"]),
        devices(&t["gpus"], &["name", "manufacturer", "count", "memoryMiB"]),
        devices(
            &t["inferenceAccelerators"],
            &["name", "manufacturer", "count"],
        ),
        devices(&t["neuron"], &["name", "count", "cores"]),
        joined(&t["usageClasses"]),
        joined(&t["virtualization"]),
        text(&t["vpc"]["branch"]),
        t["zones"].as_object().map_or_else(String::new, |zones| {
            let rows = zones
                .iter()
                .map(|(region, letters)| format!("{region}={}", joined(letters).replace(',', "")));
            rows.collect::<Vec<_>>().join(";")
        }),
        t["onDemandUSD"]
            .as_object()
            .map_or_else(String::new, |prices| {
                let rows = prices
                    .iter()
                    .map(|(region, price)| format!("{region}={}", text(price)));
                rows.collect::<Vec<_>>().join(";")
            }),
    ]
    .join("\t")
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => {
            let number = number.to_string();
            number
                .strip_suffix(".0")
                .map_or_else(|| number.clone(), ToOwned::to_owned)
        }
        other => other.to_string(),
    }
}

fn joined(value: &Value) -> String {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(text)
        .collect::<Vec<_>>()
        .join(",")
}

fn flags(t: &Value) -> String {
    let set = [
        ('b', &t["bareMetal"]),
        ('u', &t["burstable"]),
        ('g', &t["currentGeneration"]),
        ('e', &t["network"]["encryptionInTransit"]),
        ('6', &t["network"]["ipv6"]),
        ('n', &t["nitroEnclaves"]),
        ('t', &t["vpc"]["trunk"]),
    ];
    set.iter()
        .filter(|(_, value)| value.as_bool() == Some(true))
        .map(|(letter, _)| letter)
        .collect()
}

/// Network cards, equal neighbours counted: `32*100/100/2`.
fn cards(value: &Value) -> String {
    let mut runs: Vec<(usize, String)> = Vec::new();
    for card in value.as_array().into_iter().flatten() {
        let card = format!(
            "{}/{}/{}",
            text(&card["baselineGbps"]),
            text(&card["peakGbps"]),
            text(&card["maxInterfaces"])
        );
        match runs.last_mut() {
            Some((count, last)) if *last == card => *count += 1,
            _ => runs.push((1, card)),
        }
    }
    runs.iter()
        .map(|(count, card)| format!("{count}*{card}"))
        .collect::<Vec<_>>()
        .join(";")
}

fn devices(value: &Value, fields: &[&str]) -> String {
    let device = |device: &Value| {
        fields
            .iter()
            .map(|f| text(&device[*f]))
            .collect::<Vec<_>>()
            .join("|")
    };
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(device)
        .collect::<Vec<_>>()
        .join(";")
}
