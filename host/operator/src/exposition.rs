//! `/metrics` as text, in OpenMetrics or in Prometheus' own format, whichever the asker likes better.
//!
//! The library writes OpenMetrics and knows no summaries, so that a family of unknown type is one. Prometheus' format
//! is made of it line by line: counters bear their ending in the name of the family, and whole bounds have no fraction,
//! as Go writes them. Answers to `expfmt.Negotiate` and `MetricFamilyToText` of prometheus/common.

use prometheus_client::registry::Registry;

/// How metrics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpositionFormat {
    /// What Karpenter serves, and whoever asks for nothing else gets.
    Prometheus,
    /// What the library writes.
    OpenMetrics,
}

impl ExpositionFormat {
    /// What the header `Accept` likes best; of equals, Prometheus' own.
    pub(crate) fn accepted(header: &str) -> Self {
        let best = |media_type: &str| {
            let ranges = header.split(',').map(str::trim);
            let shares = ranges.filter_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                let named = parts.next()?;
                (named == media_type).then(|| {
                    let share = parts.find_map(|it| it.strip_prefix("q="));
                    share.map_or(1.0, |it| it.parse::<f64>().unwrap_or(0.0))
                })
            });
            shares.fold(0.0, f64::max)
        };
        let (plain, open) = (best("text/plain"), best("application/openmetrics-text"));
        if open > plain {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// The header `Content-Type`.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Whether the header `Accept-Encoding` lets an answer be gzipped.
pub(crate) fn accepts_gzip(header: &str) -> bool {
    let codings = header.split(',').map(str::trim);
    let mut shares = codings.filter_map(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next()?.eq_ignore_ascii_case("gzip");
        let share = parts.find_map(|it| it.strip_prefix("q="));
        is_gzip.then(|| share.is_none_or(|it| it.parse::<f64>().is_ok_and(|it| it > 0.0)))
    });
    shares.next().unwrap_or(false)
}

/// Everything that is registered.
pub(crate) fn expose(registry: &Registry, format: ExpositionFormat) -> String {
    let mut text = String::new();
    if let Err(error) = prometheus_client::encoding::text::encode(&mut text, registry) {
        return format!("# the metrics could not be written: {error}\n# EOF\n");
    }
    translate(&text, format)
}

fn translate(text: &str, format: ExpositionFormat) -> String {
    let mut exposed = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(told) = line.strip_prefix("# HELP ") {
            help = Some(told);
        } else if let Some(told) = line.strip_prefix("# TYPE ") {
            let (name, kind) = told.split_once(' ').unwrap_or((told, "untyped"));
            let kind = if kind == "unknown" { "summary" } else { kind };
            let is_short = format == ExpositionFormat::Prometheus && kind == "counter";
            let ending = if is_short { "_total" } else { "" };
            let told = help.take().and_then(|it| it.split_once(' '));
            if let Some((_, help)) = told {
                push(&mut exposed, &["# HELP ", name, ending, " ", help]);
            }
            push(&mut exposed, &["# TYPE ", name, ending, " ", kind]);
        } else if line == "# EOF" {
            if format == ExpositionFormat::OpenMetrics {
                push(&mut exposed, &[line]);
            }
        } else {
            push_series(&mut exposed, line, format);
        }
    }
    exposed
}

/// A series without the braces of no labels, and with whole bounds as Go writes them.
///
/// A search for a text of several letters takes longer than all else on a line, and a scrape has tens of thousands of
/// them: what is looked for is one letter, from the end that it is at.
fn push_series(exposed: &mut String, line: &str, format: ExpositionFormat) {
    let Some((name, rest)) = line.split_once('{') else {
        return push(exposed, &[line]);
    };
    if let Some(value) = rest.strip_prefix("} ") {
        return push(exposed, &[name, " ", value]);
    }
    let has_bound = format == ExpositionFormat::Prometheus && name.ends_with("_bucket");
    match has_bound.then(|| whole_bound(line)).flatten() {
        Some((bound, after)) => push(exposed, &[bound, "\"}", after]),
        None => push(exposed, &[line]),
    }
}

/// A line up to the whole bound of its bucket, which is its last label, and what follows its labels.
fn whole_bound(line: &str) -> Option<(&str, &str)> {
    let (labels, after) = line.rsplit_once('}')?;
    let labels = labels.strip_suffix(".0\"")?;
    let (before, whole) = labels.rsplit_once('"')?;
    let is_whole = before.ends_with("le=") && whole.bytes().all(|it| it.is_ascii_digit());
    is_whole.then_some((labels, after))
}

fn push(exposed: &mut String, parts: &[&str]) {
    for part in parts {
        exposed.push_str(part);
    }
    exposed.push('\n');
}

#[cfg(test)]
mod tests;
