//! A budget policy: nothing is disrupted in business hours, nor on days of a freeze.
//!
//! `{"zone": "Europe/Berlin", "from": 8, "to": 18, "holidays": ["berlin"], "freezes": ["black-friday"]}`: on working days
//! from 8:00 to 18:00 in Berlin the reasons of `reasons` disrupt nothing, unless the day is in the calendar `berlin`; on
//! days in the calendar `black-friday` they never do. Zone and calendars are those of the binding (`time-zones`,
//! `calendars`). Where the binding does not name the zone there is no telling, and nothing is disrupted.

use guest_sdk::{Allowed, BudgetPolicy, Civil, Context, Policy, Pool, Reason, Settings};

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
const REASONS: [(&str, Reason); 3] = [
    ("Underutilized", Reason::Underutilized),
    ("Empty", Reason::Empty),
    ("Drifted", Reason::Drifted),
];

/// Closes NodePools while people work, and on days when nothing may change.
#[derive(Debug)]
pub struct BusinessCalendar {
    zone: String,
    from: u32,
    to: u32,
    workdays: Vec<usize>,
    holidays: Vec<String>,
    freezes: Vec<String>,
    reasons: Vec<Reason>,
}

impl Policy for BusinessCalendar {
    const NAME: &'static str = "business-calendar";
    const SUMMARY: &'static str = "disrupts nothing in business hours, nor on days of a freeze";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"zone":{"type":"string","default":"UTC","description":"whose hours and days; one of the binding's time-zones"},"from":{"type":"integer","minimum":0,"maximum":24,"default":8,"description":"the hour in which business begins"},"to":{"type":"integer","minimum":0,"maximum":24,"default":18,"description":"the hour in which it ends"},"workdays":{"type":"array","items":{"enum":["monday","tuesday","wednesday","thursday","friday","saturday","sunday"]},"description":"days with business hours, Monday to Friday when left out"},"holidays":{"type":"array","items":{"type":"string"},"description":"calendars whose days have no business hours"},"freezes":{"type":"array","items":{"type":"string"},"description":"calendars on whose days nothing is disrupted at all"},"reasons":{"type":"array","items":{"enum":["Underutilized","Empty","Drifted"]},"description":"what rests, all when left out"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        let (from, to) = (settings.integer("from", 8), settings.integer("to", 18));
        if from > to || to > 24 {
            settings.error("to", "must be an hour between `from` and 24");
        }
        let days = words(settings, "workdays", |word| {
            WEEKDAYS.iter().position(|day| *day == word)
        });
        let reasons = words(settings, "reasons", |word| {
            let known = REASONS.iter().find(|(name, _)| *name == word);
            known.map(|(_, reason)| *reason)
        });
        Self {
            zone: settings.text("zone", "UTC"),
            from,
            to,
            workdays: days.unwrap_or_else(|| (0..5).collect()),
            holidays: settings.texts("holidays"),
            freezes: settings.texts("freezes"),
            reasons: reasons.unwrap_or_else(|| Reason::JUDGED.to_vec()),
        }
    }
}

/// A list of words out of a few; none when it is left out.
fn words<T>(
    settings: &mut Settings,
    key: &'static str,
    known: impl Fn(&str) -> Option<T>,
) -> Option<Vec<T>> {
    settings.get(key)?;
    let texts = settings.texts(key);
    let found: Option<Vec<T>> = texts.iter().map(|text| known(text)).collect();
    if found.is_none() {
        settings.error(key, "holds a word that means nothing here");
    }
    found
}

impl BusinessCalendar {
    /// Why nothing is disrupted now.
    fn closed(&self, context: &Context) -> Option<&'static str> {
        let Some(civil) = context.civil_in(&self.zone) else {
            return Some("its zone is not among the time-zones of the binding");
        };
        let is_in = |calendars: &[String]| calendars.iter().any(|it| civil.is_in_calendar(it));
        if is_in(&self.freezes) {
            Some("a freeze")
        } else if !is_in(&self.holidays) && self.is_business(civil) {
            Some("business hours")
        } else {
            None
        }
    }

    fn is_business(&self, civil: &Civil) -> bool {
        let hours = self.from..self.to;
        self.workdays.contains(&usize::from(civil.weekday))
            && hours.contains(&u32::from(civil.hour))
    }
}

impl BudgetPolicy for BusinessCalendar {
    fn allowed(&self, pool: &Pool, reason: Reason, context: &Context) -> Allowed {
        let closed = self.closed(context);
        let (nodes, why) = match closed.filter(|_| self.reasons.contains(&reason)) {
            Some(why) => (0, why),
            None => (pool.declared_allowed(reason), "declared budgets"),
        };
        Allowed {
            nodes,
            why: why.to_owned(),
        }
    }
}

guest_sdk::export_policy!(budgets: BusinessCalendar);

#[cfg(test)]
mod tests;
