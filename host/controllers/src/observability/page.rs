//! The tables of docs/metrics.md, as far as these controllers feed them.
//!
//! Pure: a page becomes a page. Rows of metrics that are registered elsewhere stay as they are.

use prometheus_client::metrics::MetricType;

use super::{OF_THE_CLUSTER, OF_THE_PROCESS};
use crate::shell::metrics::Metrics;

/// The page with a row for each metric of the controllers. A new one comes behind that which it follows in the code.
pub fn metrics_page(page: &str) -> String {
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    for rows in [counted(), observed()] {
        let mut before = None;
        for row in rows {
            let known = lines.iter().position(|line| name_of(line) == name_of(&row));
            let at = known.unwrap_or_else(|| before.map_or(lines.len(), |it| it + 1));
            match known {
                Some(at) => lines[at] = row,
                None => lines.insert(at, row),
            }
            before = Some(at);
        }
    }
    lines.join("\n") + "\n"
}

/// What happens is counted.
fn counted() -> Vec<String> {
    let rows = Metrics::rows().into_iter();
    rows.map(|row| {
        let (kind, ending) = kind_of(row.kind);
        let labels: Vec<String> = row.labels.iter().map(|it| format!("`{it}`")).collect();
        let name = format!("{}{ending}", row.name);
        told(&name, kind, &labels.join(", "), row.help)
    })
    .collect()
}

/// What there is, is a gauge.
fn observed() -> Vec<String> {
    let gauges = OF_THE_PROCESS.iter().chain(OF_THE_CLUSTER);
    gauges
        .map(|it| {
            let [name, labels, help] = it.in_words();
            told(&name, "gauge", &labels, &help)
        })
        .collect()
}

/// The kind as it is scraped, and what the text encoder adds to the name.
fn kind_of(kind: MetricType) -> (&'static str, &'static str) {
    match kind {
        MetricType::Counter => ("counter", "_total"),
        MetricType::Gauge => ("gauge", ""),
        MetricType::Histogram => ("histogram", ""),
        MetricType::Info => ("info", "_info"),
        // The library knows no summaries, and nothing else is unknown to it.
        MetricType::Unknown => ("summary", ""),
    }
}

fn told(name: &str, kind: &str, labels: &str, help: &str) -> String {
    let gap = if labels.is_empty() { "" } else { " " };
    format!("| `{name}` | {kind} |{gap}{labels} | {help} |")
}

/// What a row is about.
fn name_of(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split('`').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "../../docs/metrics.md";

    #[test]
    fn the_page_has_the_metrics_of_the_code() {
        let page = std::fs::read_to_string(PAGE).unwrap();
        assert!(
            page == metrics_page(&page),
            "{PAGE} is stale: run `just tables`"
        );
    }

    #[test]
    fn a_row_that_is_missing_comes_behind_its_neighbour_and_one_that_differs_is_mended() {
        let page = std::fs::read_to_string(PAGE).unwrap();
        let all = [counted(), observed()].concat();
        for row in &all[1..] {
            let name = name_of(row).unwrap();
            let without: Vec<&str> = page
                .lines()
                .filter(|it| name_of(it) != Some(name))
                .collect();
            assert!(without.len() < page.lines().count(), "{name}");
            let mended = metrics_page(&without.join("\n"));
            assert!(mended.lines().any(|it| it == row), "{name}");
            let stale = page.replace(row, &format!("| `{name}` | gauge | | Old words |"));
            assert_eq!(metrics_page(&stale), page, "{name}");
        }
    }
}
