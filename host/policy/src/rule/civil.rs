//! The calendar and the clock of a zone, as CEL's functions give them.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

/// A number of a date or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Year,
    /// 0 is January.
    Month,
    /// From 1.
    Date,
    /// From 0.
    DayOfMonth,
    /// 0 is Sunday.
    DayOfWeek,
    /// From 0.
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
}

/// The fields by the names of CEL's functions.
pub(super) const FIELDS: [(&str, Field); 9] = [
    ("getFullYear", Field::Year),
    ("getMonth", Field::Month),
    ("getDate", Field::Date),
    ("getDayOfMonth", Field::DayOfMonth),
    ("getDayOfWeek", Field::DayOfWeek),
    ("getDayOfYear", Field::DayOfYear),
    ("getHours", Field::Hours),
    ("getMinutes", Field::Minutes),
    ("getSeconds", Field::Seconds),
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
pub(super) fn field(field: Field, seconds: i64, zone: &TimeZone) -> Option<i64> {
    let zoned = Timestamp::from_second(seconds).ok()?.to_zoned(zone.clone());
    Some(match field {
        Field::Year => i64::from(zoned.year()),
        Field::Month => i64::from(zoned.month()) - 1,
        Field::Date => i64::from(zoned.day()),
        Field::DayOfMonth => i64::from(zoned.day()) - 1,
        Field::DayOfWeek => i64::from(zoned.weekday().to_sunday_zero_offset()),
        Field::DayOfYear => i64::from(zoned.day_of_year()) - 1,
        Field::Hours => i64::from(zoned.hour()),
        Field::Minutes => i64::from(zoned.minute()),
        Field::Seconds => i64::from(zoned.second()),
    })
}
