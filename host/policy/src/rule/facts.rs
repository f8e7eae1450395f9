//! What rules may name: one table of variables for each kind, and where their values come from.
//!
//! Names follow the columns of the interface; whoever knows one knows the other.

mod moves;
mod offering;
mod owners;
mod pool;
mod usage;

use std::collections::BTreeSet;
use std::rc::Rc;

use apis::CapacityType;
use hooks::columns::{index, word as symbol};
use hooks::disruption::{Civil, Context};

use super::value::Value;

pub(crate) use moves::{MOVE_LABELS, MOVE_VARIABLES, MoveFacts, MoveVariable, kind_word};
pub(crate) use offering::{OfferingFacts, RANK_LABELS, RANK_VARIABLES, RankVariable};
pub(crate) use owners::{Owners, OwnersView};
pub(crate) use pool::{POOL_LABELS, POOL_VARIABLES, PoolFacts, PoolVariable};
pub(crate) use usage::UsageIndex;

/// Labels of the claim or move itself, and of what it is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelSet {
    Own,
    NodePool,
    Node,
}

/// A vocabulary: its variables as an enum, and the table of their names, types and meanings. Those of a part are an
/// enum of their own, so that whoever answers for the part answers for all of it.
macro_rules! vocabulary {
    (
        $(#[$doc:meta])* $enum:ident $table:ident { $($variant:ident $name:literal $of:ident $about:literal,)* }
        $($(#[$part_doc:meta])* $part:ident $part_enum:ident {
            $($part_variant:ident $part_name:literal $part_of:ident $part_about:literal,)*
        })?
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $enum {
            $($variant,)*
            $($(#[$part_doc])* $part($part_enum),)?
            /// Of every round.
            Moment($crate::rule::facts::MomentVariable),
        }

        $(
            $(#[$part_doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub(crate) enum $part_enum {
                $($part_variant,)*
            }
        )?

        pub(crate) static $table: &[$crate::rule::compile::KnownVariable<$enum>] = &[
            $($crate::rule::compile::KnownVariable {
                name: $name,
                of: $crate::rule::compile::VariableType::$of,
                variable: $enum::$variant,
                about: $about,
            },)*
            $($($crate::rule::compile::KnownVariable {
                name: $part_name,
                of: $crate::rule::compile::VariableType::$part_of,
                variable: $enum::$part($part_enum::$part_variant),
                about: $part_about,
            },)*)?
            $crate::rule::facts::moment!($enum Now "now" Moment "when it is decided, such as now.getHours(\"Europe/Berlin\")"),
            $crate::rule::facts::moment!($enum Year "year" Int "in UTC, as all of these"),
            $crate::rule::facts::moment!($enum Month "month" Int "1 to 12"),
            $crate::rule::facts::moment!($enum Day "day" Int "1 to 31"),
            $crate::rule::facts::moment!($enum Weekday "weekday" Int "0 = Monday to 6 = Sunday"),
            $crate::rule::facts::moment!($enum Hour "hour" Int "0 to 23"),
            $crate::rule::facts::moment!($enum Minute "minute" Int "0 to 59"),
            $crate::rule::facts::moment!($enum Calendars "calendars" Texts "calendars of the binding that contain this day"),
            $crate::rule::facts::moment!($enum Cluster "cluster" Text "name of the cluster"),
            $crate::rule::facts::moment!($enum Seed "seed" Int "the same for the same inputs of a decision"),
        ];
    };
}

/// A variable that every vocabulary has.
macro_rules! moment {
    ($enum:ident $variant:ident $name:literal $of:ident $about:literal) => {
        $crate::rule::compile::KnownVariable {
            name: $name,
            of: $crate::rule::compile::VariableType::$of,
            variable: $enum::Moment($crate::rule::facts::MomentVariable::$variant),
            about: $about,
        }
    };
}

use {moment, vocabulary};

/// Of every round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MomentVariable {
    Now,
    Year,
    Month,
    Day,
    Weekday,
    Hour,
    Minute,
    Calendars,
    Cluster,
    Seed,
}

impl MomentVariable {
    fn steps(self, context: &Context) -> usize {
        match self {
            Self::Calendars => context.civil.iter().map(|it| 4 * it.calendars.len()).sum(),
            Self::Now
            | Self::Year
            | Self::Month
            | Self::Day
            | Self::Weekday
            | Self::Hour
            | Self::Minute
            | Self::Cluster
            | Self::Seed => 0,
        }
    }

    fn value(self, context: &Context) -> Value<'_> {
        let civil = |of: fn(&Civil) -> i64| Value::Int(context.civil.first().map_or(0, of));
        match self {
            Self::Now => Value::Moment(i64::try_from(context.now_seconds).unwrap_or(i64::MAX)),
            Self::Year => civil(|it| i64::from(it.year)),
            Self::Month => civil(|it| i64::from(it.month)),
            Self::Day => civil(|it| i64::from(it.day)),
            Self::Weekday => civil(|it| i64::from(it.weekday)),
            Self::Hour => civil(|it| i64::from(it.hour)),
            Self::Minute => civil(|it| i64::from(it.minute)),
            Self::Calendars => {
                let names = context.civil.iter().flat_map(|it| &it.calendars);
                distinct(names.map(String::as_str))
            }
            Self::Cluster => Value::text(&context.cluster),
            // Half of it, which has no sign.
            Self::Seed => Value::Int(i64::try_from(context.seed >> 1).unwrap_or(i64::MAX)),
        }
    }
}

/// Each text once, in order; without the empty one.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Value<'a> {
    let texts: BTreeSet<&str> = texts.filter(|it| !it.is_empty()).collect();
    Value::List(Rc::new(texts.into_iter().map(Value::text).collect()))
}

/// The word of a column of capacity types.
fn capacity_type(code: u8) -> Value<'static> {
    Value::text(CapacityType::word_of(code))
}

fn at<T: Copy + Default>(column: &[T], row: usize) -> T {
    column.get(row).copied().unwrap_or_default()
}

fn label<'a>(symbols: &'a [String], labels: &[(u32, u32)], key: &str) -> Option<&'a str> {
    let mut labels = labels.iter();
    labels
        .find(|&&(name, _)| symbol(symbols, name) == key)
        .map(|&(_, value)| symbol(symbols, value))
}
