//! Texts of flags and their variables, as Go reads them: switches, gates and durations.
//!
//! Says what is wrong with a text in one sentence, and never what a flag is for. Answers to `strconv.ParseBool`, to
//! `MapStringBool` of `k8s.io/component-base/cli/flag`, by which Karpenter reads its gates, and to
//! `time.ParseDuration`.

use std::collections::BTreeMap;

use crate::duration::GoDuration;

/// A switch; `None` for what Go takes for none.
pub fn parse_switch(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// The gates that a comma list of `Name=bool` names, and whether they are open; of two that are named alike the last.
pub fn parse_gates(text: &str) -> Result<BTreeMap<&str, bool>, String> {
    let entries = text.split(',').map(str::trim);
    let named = entries.filter(|entry| !entry.is_empty()).map(|entry| {
        let gate = entry.split_once('=').and_then(|(name, value)| {
            let is_open = parse_switch(value.trim())?;
            Some((name.trim(), is_open))
        });
        gate.ok_or_else(|| format!("`{entry}` is not of the form Name=true or Name=false"))
    });
    named.collect()
}

/// A duration.
pub fn parse_duration(text: &str) -> Result<GoDuration, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a duration such as `500ms`, `10s` or `1m30s`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_the_twelve_words_of_go() {
        for word in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(parse_switch(word), Some(true), "{word}");
        }
        for word in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(parse_switch(word), Some(false), "{word}");
        }
        for word in ["", "yes", "on", "tRUE", " true", "2"] {
            assert_eq!(parse_switch(word), None, "{word}");
        }
    }

    #[test]
    fn gates_may_be_spaced_and_the_last_of_a_name_counts() {
        let gates = parse_gates("A=True, B = 0,, A=f,").unwrap();
        assert_eq!(gates, BTreeMap::from([("A", false), ("B", false)]));
        assert_eq!(parse_gates(" "), Ok(BTreeMap::new()));
        for (text, entry) in [("A", "A"), ("B=1, A=yes", "A=yes"), ("A=", "A=")] {
            let fault = format!("`{entry}` is not of the form Name=true or Name=false");
            assert_eq!(parse_gates(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn a_duration_that_is_none_is_told_with_examples() {
        assert_eq!(parse_duration("1m30s"), Ok(GoDuration::from_seconds(90)));
        let fault = "`soon` is not a duration such as `500ms`, `10s` or `1m30s`";
        assert_eq!(parse_duration("soon"), Err(fault.to_owned()));
    }
}
