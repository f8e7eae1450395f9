//! Schedules of budgets as Karpenter's cron library reads them: what it refuses is refused, what it reads means the
//! same here. Knows no moment.
//!
//! Answers to `ParseStandard` of `robfig/cron` v3, by which Karpenter reads a budget's schedule. croner accepts more
//! (`L`, `W`, `#`, 7 for Sunday, ranges over the end of the week) and reads less (`0/30`), so it is given lists alone.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

/// What one field of a schedule may hold.
struct FieldBounds {
    min: u32,
    max: u32,
    /// Names of the numbers from `min` on.
    names: &'static [&'static str],
}

/// The fields in their order.
const FIELDS: [FieldBounds; 5] = [
    numbers(0, 59),
    numbers(0, 23),
    numbers(1, 31),
    FieldBounds {
        names: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
        ..numbers(1, 12)
    },
    FieldBounds {
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
        ..numbers(0, 6)
    },
];

const fn numbers(min: u32, max: u32) -> FieldBounds {
    FieldBounds {
        min,
        max,
        names: &[],
    }
}

/// A schedule, or what is wrong with it.
pub(super) fn parse(schedule: &str) -> Result<Cron, String> {
    let text = match schedule.trim() {
        "@annually" | "@yearly" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        text if text.starts_with('@') => return Err("unknown macro".to_owned()),
        text => text,
    };
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("{} fields instead of five", fields.len()));
    }
    let fields: Vec<String> = fields
        .into_iter()
        .zip(&FIELDS)
        .map(|(field, bounds)| bounds.listed(field))
        .collect::<Result<_, _>>()?;
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    parser
        .parse(&fields.join(" "))
        .map_err(|error| error.to_string())
}

impl FieldBounds {
    /// A field as a list of its numbers; a star stays one, as days of the month and of the week then limit each other.
    fn listed(&self, field: &str) -> Result<String, String> {
        let mut numbers = Vec::new();
        for part in field.split(',').filter(|it| !it.is_empty()) {
            match self.numbers(part)? {
                Some(more) => numbers.extend(more.map(|it| it.to_string())),
                None => numbers.push("*".to_owned()),
            }
        }
        if numbers.is_empty() {
            return Err(format!("nothing in {field:?}"));
        }
        Ok(if numbers.iter().any(|it| it == "*") {
            "*".to_owned()
        } else {
            numbers.join(",")
        })
    }

    /// The numbers of one part of a field; `None`: a star, that is any.
    fn numbers(&self, part: &str) -> Result<Option<impl Iterator<Item = u32>>, String> {
        let invalid = || format!("{part:?} names no numbers of {} to {}", self.min, self.max);
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse().map_err(|_| invalid())?)),
            None => (part, None),
        };
        let step: Option<usize> = step;
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (first, Some(last)),
            None => (range, None),
        };
        let is_star = ["*", "?"].contains(&first);
        let (first, last) = match last {
            Some(_) | None if is_star => (Some(self.min), Some(self.max)),
            Some(last) => (self.number(first), self.number(last)),
            // A single number with a step begins there and goes on to the end.
            None if step.is_some() => (self.number(first), Some(self.max)),
            None => (self.number(first), self.number(first)),
        };
        let step = step.unwrap_or(1);
        match (first, last) {
            (Some(first), Some(last)) if first <= last && step > 0 => {
                Ok((!is_star || step > 1).then(|| (first..=last).step_by(step)))
            }
            (Some(_) | None, Some(_) | None) => Err(invalid()),
        }
    }

    fn number(&self, text: &str) -> Option<u32> {
        let is_named = |name: &&str| name.eq_ignore_ascii_case(text);
        let named = (self.min..).zip(self.names).find(|it| is_named(it.1));
        named
            .map(|it| it.0)
            .or_else(|| text.parse().ok())
            .filter(|it| (self.min..=self.max).contains(it))
    }
}
