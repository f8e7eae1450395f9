//! Facts that a binding gives its policy: time zones, calendars, interruption rates, and which pod labels it is told.
//!
//! Kept as the texts that they were read from, so that a recording holds them and a replay reads them again.

use std::collections::{BTreeMap, BTreeSet};

use apis::CapacityType;
use apis::labels::MAX_PREMIUM_ANNOTATION;
use hooks::binding::BindingSource;
use hooks::binding::keys::{
    CALENDARS_KEY, INTERRUPTION_RATES_KEY, TIME_ZONES_KEY, WORKLOAD_LABELS_ANNOTATION,
};
use hooks::disruption::Civil;
use hooks::ranking::{OfferingTable, PremiumMax};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::error::{BindingError, value};
use crate::call_context::moment;

/// A class of the Spot advisor is a share of instances interrupted in a month: below 5 %, 5 to 10, 10 to 15, 15 to 20,
/// and above. Each counts by its middle; the last has none, and counts as if it were as wide as the others.
const ADVISOR_CLASSES: [f64; 5] = [0.025, 0.075, 0.125, 0.175, 0.225];
const ZONES_EXPECTED: &str =
    "names of time zones such as Europe/Berlin, one a line or with commas between them";
const DAYS_EXPECTED: &str = "a name with a list of days for each calendar, a day being \
    \"2026-12-24\", \"2026-12-20/2027-01-05\" or every year \"--12-25\"";
const RATES_EXPECTED: &str = "for each instance type or family the interruptions per node and 30 \
    days, such as \"m7i.large: 0.08\", or a class of the Spot advisor, \"m7i: {class: 0}\" to 4";
const LABELS_EXPECTED: &str = "keys of pod labels with commas between them";

/// Facts that a binding tells its policy.
#[derive(Debug, Clone, Default)]
pub struct BindingFacts {
    /// As they were written, by key; what is not there was not written.
    texts: BTreeMap<String, String>,
    zones: Vec<String>,
    calendars: BTreeMap<String, Vec<Days>>,
    rates: BTreeMap<String, f64>,
    workload_labels: BTreeSet<String>,
    premium_max: Option<PremiumMax>,
}

/// Texts that are equal have equal meanings, so they alone are compared.
impl PartialEq for BindingFacts {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for BindingFacts {}

/// Days of a calendar, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Days {
    Once(Date, Date),
    /// An end before the start is one of the next year.
    Yearly(MonthAndDay, MonthAndDay),
}

/// A day of any year; the order of the fields is that of the days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MonthAndDay {
    month: i8,
    day: i8,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenRate {
    Known(f64),
    Advisor { class: usize },
}

impl BindingFacts {
    /// Reads the facts of a ConfigMap.
    pub(super) fn read(source: &BindingSource) -> Result<Self, BindingError> {
        let data = [TIME_ZONES_KEY, CALENDARS_KEY, INTERRUPTION_RATES_KEY];
        let data = data.map(|key| (key, source.data.get(key)));
        let annotations = [WORKLOAD_LABELS_ANNOTATION, MAX_PREMIUM_ANNOTATION];
        let annotations = annotations.map(|key| (key, source.annotations.get(key)));
        let written = data.into_iter().chain(annotations);
        let texts = written.filter_map(|(key, text)| Some((key.to_owned(), text?.clone())));
        Self::parse(texts.collect())
    }

    /// Reads the facts as they were written.
    pub(crate) fn parse(texts: BTreeMap<String, String>) -> Result<Self, BindingError> {
        let text = |key: &str| texts.get(key).map_or("", |it| it.trim());
        Ok(Self {
            zones: zones(text(TIME_ZONES_KEY))?,
            calendars: calendars(text(CALENDARS_KEY))?,
            rates: rates(text(INTERRUPTION_RATES_KEY))?,
            workload_labels: labels(text(WORKLOAD_LABELS_ANNOTATION))?,
            premium_max: premium(text(MAX_PREMIUM_ANNOTATION))?,
            texts,
        })
    }

    /// As they were written, by key.
    pub(crate) fn texts(&self) -> &BTreeMap<String, String> {
        &self.texts
    }

    /// Bound on how much dearer its policy may make nodes, where the binding has one.
    pub(crate) fn premium_max(&self) -> Option<PremiumMax> {
        self.premium_max
    }

    /// Whether it tells of interruptions.
    pub(crate) fn has_rates(&self) -> bool {
        !self.rates.is_empty()
    }

    /// Pod labels that the policy is told of.
    pub(crate) fn workload_labels(&self) -> &BTreeSet<String> {
        &self.workload_labels
    }

    /// Civil time in UTC and in the zones, with the calendars that contain the day; `None` where the binding names
    /// neither.
    pub(crate) fn civil(&self, now_seconds: u64) -> Option<Vec<Civil>> {
        if self.zones.is_empty() && self.calendars.is_empty() {
            return None;
        }
        let now = moment(now_seconds)?;
        let zones = self.zones.iter().filter_map(|it| Civil::in_zone(now, it));
        let civil = std::iter::once(Civil::utc(now)).chain(zones);
        let civil = civil.map(|civil| {
            let contains = |days: &Vec<Days>| {
                let day = date(&civil);
                day.is_some_and(|day| days.iter().any(|it| it.contains(day)))
            };
            let calendars = self.calendars.iter().filter(|(_, days)| contains(days));
            Civil {
                calendars: calendars.map(|(name, _)| name.clone()).collect(),
                ..civil.clone()
            }
        });
        Some(civil.collect())
    }

    /// The column `interruption-rate` with the binding's own table over it; `None` where it has none.
    pub(crate) fn rates(&self, table: &OfferingTable) -> Option<Vec<f64>> {
        if self.rates.is_empty() {
            return None;
        }
        let by_symbol: Vec<Option<f64>> = table
            .symbols
            .iter()
            .map(|word| self.rates.get(word).copied())
            .collect();
        let of = |column: &[u32], row: usize| {
            let sym = column.get(row).and_then(|it| usize::try_from(*it).ok());
            sym.and_then(|it| by_symbol.get(it).copied().flatten())
        };
        let rows = table.interruption_rate.iter().zip(&table.capacity_type);
        let own = rows.enumerate().map(|(row, (known, capacity_type))| {
            let own = of(&table.instance_type, row).or_else(|| of(&table.family, row));
            match own {
                Some(own) if *capacity_type == CapacityType::Spot.code() => own,
                Some(_) | None => *known,
            }
        });
        Some(own.collect())
    }
}

fn date(civil: &Civil) -> Option<Date> {
    let year = i16::try_from(civil.year).ok()?;
    let month = i8::try_from(civil.month).ok()?;
    Date::new(year, month, i8::try_from(civil.day).ok()?).ok()
}

impl Days {
    fn contains(self, day: Date) -> bool {
        match self {
            Self::Once(from, to) => (from..=to).contains(&day),
            Self::Yearly(from, to) => {
                let day = MonthAndDay {
                    month: day.month(),
                    day: day.day(),
                };
                if from <= to {
                    (from..=to).contains(&day)
                } else {
                    day >= from || day <= to
                }
            }
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('/').unwrap_or((text, text));
        let (from, to) = (from.trim(), to.trim());
        if let (Some(from), Some(to)) = (from.strip_prefix("--"), to.strip_prefix("--")) {
            return Some(Self::Yearly(month_and_day(from)?, month_and_day(to)?));
        }
        let (from, to): (Date, Date) = (from.parse().ok()?, to.parse().ok()?);
        (from <= to).then_some(Self::Once(from, to))
    }
}

fn month_and_day(text: &str) -> Option<MonthAndDay> {
    let (month, day) = text.split_once('-')?;
    let (month, day) = (month.parse().ok()?, day.parse().ok()?);
    // A leap year, so that the 29th of February is a day.
    let is_day = Date::new(2028, month, day).is_ok();
    is_day.then_some(MonthAndDay { month, day })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split([',', '\n', ' ', '\t']).map(str::trim);
    words.filter(|word| !word.is_empty())
}

fn zones(text: &str) -> Result<Vec<String>, BindingError> {
    let mut zones: Vec<String> = Vec::new();
    for name in words(text) {
        TimeZone::get(name).map_err(|_| value("data.time-zones", name, ZONES_EXPECTED))?;
        // UTC is told in any case.
        if name != "UTC" && zones.iter().all(|known| known != name) {
            zones.push(name.to_owned());
        }
    }
    Ok(zones)
}

fn calendars(text: &str) -> Result<BTreeMap<String, Vec<Days>>, BindingError> {
    let wrong = |found: &str| value("data.calendars", found, DAYS_EXPECTED);
    if text.is_empty() {
        return Ok(BTreeMap::new());
    }
    let written: BTreeMap<String, Vec<String>> =
        serde_saphyr::from_str(text).map_err(|error| wrong(&one_line(&error.to_string())))?;
    let mut calendars = BTreeMap::new();
    for (name, days) in written {
        let read = days
            .iter()
            .map(|day| Days::parse(day.trim()).ok_or_else(|| wrong(day)));
        calendars.insert(name, read.collect::<Result<_, _>>()?);
    }
    Ok(calendars)
}

fn rates(text: &str) -> Result<BTreeMap<String, f64>, BindingError> {
    let wrong = |found: &str| value("data.interruption-rates", found, RATES_EXPECTED);
    if text.is_empty() {
        return Ok(BTreeMap::new());
    }
    let written: BTreeMap<String, WrittenRate> =
        serde_saphyr::from_str(text).map_err(|error| wrong(&one_line(&error.to_string())))?;
    let rate = |(name, rate): (String, WrittenRate)| {
        let known = match rate {
            WrittenRate::Known(rate) => Some(rate).filter(|it| it.is_finite() && *it >= 0.0),
            WrittenRate::Advisor { class } => ADVISOR_CLASSES.get(class).copied(),
        };
        match known {
            Some(known) => Ok((name, known)),
            None => Err(wrong(&name)),
        }
    };
    written.into_iter().map(rate).collect()
}

fn premium(text: &str) -> Result<Option<PremiumMax>, BindingError> {
    if text.is_empty() {
        return Ok(None);
    }
    let invalid = |_| {
        value(
            MAX_PREMIUM_ANNOTATION,
            text,
            "a share such as 50% or 100%, or off",
        )
    };
    text.parse().map(Some).map_err(invalid)
}

fn labels(text: &str) -> Result<BTreeSet<String>, BindingError> {
    let is_key = |word: &str| {
        let mut bytes = word.bytes();
        bytes.all(|it| it.is_ascii_alphanumeric() || b"-_./".contains(&it))
    };
    let key = |word: &str| {
        if is_key(word) {
            Ok(word.to_owned())
        } else {
            Err(value(WORKLOAD_LABELS_ANNOTATION, word, LABELS_EXPECTED))
        }
    };
    words(text).map(key).collect()
}

fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.trim().to_owned()
}

#[cfg(test)]
mod tests;
