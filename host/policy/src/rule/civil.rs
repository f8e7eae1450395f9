//! The calendar and the clock of a zone, as CEL's functions give them.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

/// A number of a date or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CivilField {
    Year,
    /// Month of the year, from 0 for January.
    Month,
    /// Day of the month, from 1.
    Date,
    /// Day of the month, from 0.
    DayOfMonth,
    /// Day of the week, from 0 for Sunday.
    DayOfWeek,
    /// Day of the year, from 0.
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
}

/// The fields by the names of CEL's functions.
pub(super) const FIELDS: [(&str, CivilField); 9] = [
    ("getFullYear", CivilField::Year),
    ("getMonth", CivilField::Month),
    ("getDate", CivilField::Date),
    ("getDayOfMonth", CivilField::DayOfMonth),
    ("getDayOfWeek", CivilField::DayOfWeek),
    ("getDayOfYear", CivilField::DayOfYear),
    ("getHours", CivilField::Hours),
    ("getMinutes", CivilField::Minutes),
    ("getSeconds", CivilField::Seconds),
];

/// A zone of the tz database, or an offset such as `+02:00`.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    if name == "UTC" || name == "Z" {
        return Some(TimeZone::UTC);
    }
    let signed = name
        .strip_prefix('+')
        .map(|it| (1, it))
        .or_else(|| name.strip_prefix('-').map(|it| (-1, it)));
    let Some((sign, clock)) = signed else {
        return TimeZone::get(name).ok();
    };
    let (hours, minutes) = clock.split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let is_clock = (0..=14).contains(&hours) && (0..60).contains(&minutes);
    let offset = Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()?;
    is_clock.then(|| offset.to_time_zone())
}

/// A field of a moment; `None` for moments that no calendar has.
pub(super) fn field(field: CivilField, seconds: i64, zone: &TimeZone) -> Option<i64> {
    let zoned = Timestamp::from_second(seconds).ok()?.to_zoned(zone.clone());
    Some(match field {
        CivilField::Year => i64::from(zoned.year()),
        CivilField::Month => i64::from(zoned.month()) - 1,
        CivilField::Date => i64::from(zoned.day()),
        CivilField::DayOfMonth => i64::from(zoned.day()) - 1,
        CivilField::DayOfWeek => i64::from(zoned.weekday().to_sunday_zero_offset()),
        CivilField::DayOfYear => i64::from(zoned.day_of_year()) - 1,
        CivilField::Hours => i64::from(zoned.hour()),
        CivilField::Minutes => i64::from(zoned.minute()),
        CivilField::Seconds => i64::from(zoned.second()),
    })
}
