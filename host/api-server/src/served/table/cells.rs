//! What cells of many kinds say alike: names, ages, counts, labels.

use jiff::Timestamp;
use serde_json::Value;

/// The object's name as a cell.
pub(in crate::served::table) fn name(object: &Value) -> Value {
    object["metadata"]["name"].clone()
}

/// The object's age as a cell.
pub(in crate::served::table) fn age(object: &Value, now: Timestamp) -> Value {
    since(&object["metadata"]["creationTimestamp"], now)
}

/// Time since a timestamp as a cell.
pub(in crate::served::table) fn since(time: &Value, now: Timestamp) -> Value {
    match time
        .as_str()
        .and_then(|text| text.parse::<Timestamp>().ok())
    {
        Some(then) => human_duration(now.duration_since(then).as_secs()).into(),
        None => "<unknown>".into(),
    }
}

/// A text, or `<none>`.
pub(in crate::served::table) fn or_none(value: &Value) -> Value {
    match value.as_str() {
        Some(text) if !text.is_empty() => text.into(),
        _ => "<none>".into(),
    }
}

/// An integer, zero when absent.
pub(in crate::served::table) fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// `a=1,b=2`, or `<none>`.
pub(in crate::served::table) fn labels_text(labels: &Value) -> Value {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() {
        "<none>".into()
    } else {
        pairs.join(",").into()
    }
}

/// A duration as kubectl words it: two units at most, the second only where it tells something.
pub(in crate::served::table) fn human_duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let pair = |whole: i64, unit: &str, part: i64, part_unit: &str| {
        if part == 0 {
            format!("{whole}{unit}")
        } else {
            format!("{whole}{unit}{part}{part_unit}")
        }
    };
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}
