//! Needs of a policy: facts that it asks to be told beside the plain tables, and those that this host has to tell.
//!
//! A policy that needs what nobody tells would load, pass its tests and decide nothing: it is refused instead.

use std::collections::BTreeSet;

use hooks::ranking::Needs as Tables;

/// A word of the descriptor's `needs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// The table of pods by owner.
    Workloads,
    /// The labels of Nodes.
    NodeLabels,
    /// Free addresses of subnets.
    FreeAddresses,
    /// Interruptions of spot nodes.
    InterruptionRate,
    /// The memory that it answered last.
    Memory,
    /// Moves that renew nodes before they expire.
    Expire,
}

/// Facts that the cloud tells beyond offerings and prices. A host of tools supposes that it tells everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderFacts {
    /// Free addresses of subnets.
    pub free_addresses: bool,
    /// Interruptions of spot nodes.
    pub interruption_rate: bool,
}

impl Default for ProviderFacts {
    fn default() -> Self {
        Self {
            free_addresses: true,
            interruption_rate: true,
        }
    }
}

/// Why a policy cannot be told what it needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NeedError {
    /// A word that means nothing.
    #[error("needs {word:?}, which means nothing here; a policy may need {known}")]
    Unknown {
        word: String,
        /// Words that a policy may use, in one text.
        known: String,
    },
    /// What this cloud does not tell.
    #[error(
        "needs {word:?}, which this cloud does not tell; {way_out} (a policy may need {known})"
    )]
    NotProvided {
        word: &'static str,
        /// Advice for whoever binds the policy.
        way_out: &'static str,
        /// Words that a policy may use, in one text.
        known: String,
    },
}

impl Need {
    const ALL: [Self; 6] = [
        Self::Workloads,
        Self::NodeLabels,
        Self::FreeAddresses,
        Self::InterruptionRate,
        Self::Memory,
        Self::Expire,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Workloads => "workloads",
            Self::NodeLabels => "node-labels",
            Self::FreeAddresses => "free-addresses",
            Self::InterruptionRate => "interruption-rate",
            Self::Memory => "memory",
            Self::Expire => "expire",
        }
    }

    fn is_provided(self, by: ProviderFacts) -> bool {
        match self {
            Self::Workloads | Self::NodeLabels | Self::Memory | Self::Expire => true,
            Self::FreeAddresses => by.free_addresses,
            Self::InterruptionRate => by.interruption_rate,
        }
    }

    fn way_out(self) -> &'static str {
        match self {
            Self::InterruptionRate => {
                "give the binding a table of them under data.interruption-rates"
            }
            Self::Workloads
            | Self::NodeLabels
            | Self::FreeAddresses
            | Self::Memory
            | Self::Expire => "bind a policy that does without",
        }
    }
}

/// Needs of one policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PolicyNeeds(BTreeSet<Need>);

impl PolicyNeeds {
    /// Reads the words of a descriptor; unknown ones are refused.
    pub(crate) fn parse(words: &[String]) -> Result<Self, NeedError> {
        let need = |word: &String| {
            let mut all = Need::ALL.into_iter();
            all.find(|it| it.as_str() == word)
                .ok_or_else(|| NeedError::Unknown {
                    word: word.clone(),
                    known: listed(&Need::ALL),
                })
        };
        words.iter().map(need).collect::<Result<_, _>>().map(Self)
    }

    /// Those that a rule names.
    pub(crate) fn of(needs: impl Iterator<Item = Need>) -> Self {
        Self(needs.collect())
    }

    /// Refuses what the cloud does not tell; `has_rates` when the binding tells interruptions itself.
    pub(crate) fn check(&self, provided: ProviderFacts, has_rates: bool) -> Result<(), NeedError> {
        let known = ProviderFacts {
            interruption_rate: provided.interruption_rate || has_rates,
            ..provided
        };
        match self.0.iter().find(|it| !it.is_provided(known)) {
            None => Ok(()),
            Some(need) => {
                let known: Vec<Need> = Need::ALL
                    .into_iter()
                    .filter(|it| it.is_provided(known))
                    .collect();
                Err(NeedError::NotProvided {
                    word: need.as_str(),
                    way_out: need.way_out(),
                    known: listed(&known),
                })
            }
        }
    }

    pub(crate) fn has(&self, need: Need) -> bool {
        self.0.contains(&need)
    }

    /// The words, as a descriptor has them.
    pub(crate) fn words(&self) -> Vec<String> {
        self.0.iter().map(|it| it.as_str().to_owned()).collect()
    }

    /// The tables that must be filled for it.
    pub(crate) fn tables(&self) -> Tables {
        Tables {
            workloads: self.has(Need::Workloads),
            node_labels: self.has(Need::NodeLabels),
            free_addresses: self.has(Need::FreeAddresses),
            expire: self.has(Need::Expire),
        }
    }
}

/// The tables that must be filled for either.
pub(crate) fn united(a: Tables, b: Tables) -> Tables {
    Tables {
        workloads: a.workloads || b.workloads,
        node_labels: a.node_labels || b.node_labels,
        free_addresses: a.free_addresses || b.free_addresses,
        expire: a.expire || b.expire,
    }
}

fn listed(needs: &[Need]) -> String {
    let words: Vec<&str> = needs.iter().map(|it| it.as_str()).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<PolicyNeeds, NeedError> {
        let words: Vec<String> = words.iter().map(|&it| it.to_owned()).collect();
        PolicyNeeds::parse(&words)
    }

    #[test]
    fn words_are_read_back_as_they_were_written() {
        for need in Need::ALL {
            let needs = parsed(&[need.as_str()]).unwrap();
            assert!(needs.has(need), "{need:?}");
            assert_eq!(needs.words(), [need.as_str()]);
        }
    }

    #[test]
    fn an_unknown_word_is_refused_with_those_that_there_are() {
        let error = parsed(&["workloads", "carbon"]).unwrap_err().to_string();
        assert!(error.contains("needs \"carbon\""), "{error}");
        assert!(
            error.contains("interruption-rate, memory, expire"),
            "{error}"
        );
    }

    #[test]
    fn what_the_cloud_does_not_tell_is_refused_unless_the_binding_tells_it() {
        let silent = ProviderFacts {
            free_addresses: false,
            interruption_rate: false,
        };
        for (word, has_rates, is_provided) in [
            ("workloads", false, true),
            ("memory", false, true),
            ("free-addresses", true, false),
            ("interruption-rate", false, false),
            ("interruption-rate", true, true),
        ] {
            let checked = parsed(&[word]).unwrap().check(silent, has_rates);
            assert_eq!(checked.is_ok(), is_provided, "{word}: {checked:?}");
        }
        let error = parsed(&["interruption-rate"])
            .unwrap()
            .check(silent, false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("data.interruption-rates"), "{error}");
        assert!(!error.contains("free-addresses"), "{error}");
    }
}
