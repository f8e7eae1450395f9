//! Amounts of what devices have, and the parts of a shared capacity that may be had.

use serde::Deserialize;

/// A quantity, alone or as the value of an object.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(in crate::devices) enum Amount {
    Wrapped { value: String },
    Text(String),
    Number(i64),
}

/// A capacity of a device, alone or with the rules for parts of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(in crate::devices) enum Capacity {
    #[serde(rename_all = "camelCase")]
    Ruled {
        value: Amount,
        #[serde(default)]
        request_policy: Option<RequestPolicy>,
    },
    Plain(Amount),
}

/// Which parts of a capacity a claim may have.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::devices) struct RequestPolicy {
    #[serde(default)]
    default: Option<Amount>,
    #[serde(default)]
    valid_values: Vec<Amount>,
    #[serde(default)]
    valid_range: Option<ValidRange>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct ValidRange {
    #[serde(default)]
    min: Option<Amount>,
    #[serde(default)]
    max: Option<Amount>,
    #[serde(default)]
    step: Option<Amount>,
}

impl Capacity {
    /// All of it, in thousandths.
    pub(in crate::devices) fn millis(&self) -> i64 {
        match self {
            Self::Ruled { value, .. } | Self::Plain(value) => value.millis(),
        }
    }

    /// How much a claim gets that asks for so much, or for nothing in particular; `None` when the rules forbid it.
    pub(in crate::devices) fn part_of(&self, asked: Option<&Amount>) -> Option<i64> {
        let policy = match self {
            Self::Ruled { request_policy, .. } => request_policy.as_ref(),
            Self::Plain(_) => None,
        };
        let default = policy
            .and_then(|it| it.default.as_ref())
            .map(Amount::millis);
        let Some(policy) = policy else {
            return Some(asked.map_or_else(|| self.millis(), Amount::millis));
        };
        let part = match asked {
            Some(asked) => policy.rounded(asked.millis()),
            None => default.unwrap_or_else(|| self.millis()),
        };
        (Some(part) == default || policy.allows(part)).then_some(part)
    }
}

impl RequestPolicy {
    /// The next part that there is.
    fn rounded(&self, asked: i64) -> i64 {
        if let Some(range) = &self.valid_range
            && let Some(min) = range.min.as_ref().map(Amount::millis)
        {
            let step = range.step.as_ref().map_or(0, Amount::millis);
            let above = asked.saturating_sub(min);
            return match (above <= 0, step <= 0) {
                (true, _) => min,
                (false, true) => asked,
                (false, false) => {
                    let rest = above % step;
                    asked.saturating_add(if rest == 0 { 0 } else { step - rest })
                }
            };
        }
        let mut values = self.valid_values.iter().map(Amount::millis);
        values.find(|it| asked <= *it).unwrap_or(asked)
    }

    fn allows(&self, part: i64) -> bool {
        if let Some(ValidRange { min, max, step }) = &self.valid_range {
            let of = |amount: &Option<Amount>| amount.as_ref().map(Amount::millis);
            let from_min = part.saturating_sub(of(min).unwrap_or(0));
            let is_on_step = of(step).is_none_or(|step| step <= 0 || from_min % step == 0);
            return is_on_step && of(max).is_none_or(|max| part <= max);
        }
        self.valid_values.is_empty() || self.valid_values.iter().any(|it| it.millis() == part)
    }
}

impl Amount {
    /// Thousandths; what does not parse is nothing.
    pub(in crate::devices) fn millis(&self) -> i64 {
        match self {
            Self::Wrapped { value } | Self::Text(value) => {
                apis::quantity::parse_millis(value).unwrap_or(0)
            }
            Self::Number(number) => number.saturating_mul(1000),
        }
    }
}
