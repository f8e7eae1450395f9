//! Labels of series, and how words of the API are written in them.
//!
//! Names and words are byte for byte Karpenter's, as dashboards select by them.

use apis::DisruptionReason;
use disruption::Method;

/// A label's name and value.
pub(crate) type Label = (&'static str, String);

/// Label names and values of one series.
pub type Labels = Vec<Label>;

/// Label of a controller's series, by Karpenter's name of it.
pub(crate) fn controller_label(name: &str) -> Label {
    ("controller", name.to_owned())
}

/// Label of what happens to nodes for a reason of disruption.
pub(crate) fn reason_label(reason: DisruptionReason) -> Label {
    ("reason", reason_word(reason))
}

/// Label of the kind of consolidation that a method is; empty of one that is none.
pub(crate) fn consolidation_type_label(method: Method) -> Label {
    ("consolidation_type", method.consolidation_type().to_owned())
}

/// A reason of disruption as metrics and logs of claims call it.
pub(crate) fn reason_word(reason: DisruptionReason) -> String {
    snake_case(reason.as_str())
}

/// Words of the API as label values are written.
pub(crate) fn snake_case(words: &str) -> String {
    let mut snake = String::new();
    for (position, letter) in words.char_indices() {
        if letter.is_uppercase() && position > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// The lower-cased name with underscores.
pub(crate) fn resource_type(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_snake_case() {
        let cases = [
            ("WhenEmptyOrUnderutilized", "when_empty_or_underutilized"),
            ("Drifted", "drifted"),
        ];
        for (words, snake) in cases {
            assert_eq!(snake_case(words), snake);
        }
    }
}
