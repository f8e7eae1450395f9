//! Quantities such as `100m` or `2Gi`, as far as the server reads them: whether they parse, and how they compare.

use serde_json::Value;

const SUFFIXES: [(&str, i32, bool); 15] = [
    ("Ki", 10, true),
    ("Mi", 20, true),
    ("Gi", 30, true),
    ("Ti", 40, true),
    ("Pi", 50, true),
    ("Ei", 60, true),
    ("n", -9, false),
    ("u", -6, false),
    ("m", -3, false),
    ("k", 3, false),
    ("M", 6, false),
    ("G", 9, false),
    ("T", 12, false),
    ("P", 15, false),
    ("E", 18, false),
];

/// The value of a quantity given as text or number, if it is one.
pub(super) fn parse(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => parse_text(text),
        _ => None,
    }
}

fn parse_text(text: &str) -> Option<f64> {
    let is_number = |digits: &str| {
        let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
        !unsigned.is_empty()
            && unsigned.bytes().any(|b| b.is_ascii_digit())
            && unsigned.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            && unsigned.bytes().filter(|&b| b == b'.').count() <= 1
    };
    if is_number(text) {
        return text.parse().ok();
    }
    for (suffix, power, is_binary) in SUFFIXES {
        if let Some(digits) = text.strip_suffix(suffix)
            && is_number(digits)
        {
            let base: f64 = if is_binary { 2.0 } else { 10.0 };
            return digits.parse::<f64>().ok().map(|n| n * base.powi(power));
        }
    }
    let (digits, exponent) = text.split_once(['e', 'E'])?;
    let exponent: i32 = exponent.parse().ok()?;
    is_number(digits).then(|| {
        digits
            .parse::<f64>()
            .ok()
            .map(|n| n * 10_f64.powi(exponent))
    })?
}

/// Kubernetes' sentence on a text that is no quantity.
pub(super) const PROBLEM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
