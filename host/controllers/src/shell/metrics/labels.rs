//! Labels of series, and how words of the API are written in them.

/// Label names and values of one series.
pub type Labels = Vec<(&'static str, String)>;

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
