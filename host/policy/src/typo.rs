//! When a word is taken for another that was mistyped.
//!
//! For advice alone: nothing is ever read as what may have been meant.

/// Most letters in which a mistyped word may differ from the one that was meant.
pub(crate) const NEAR: usize = 2;

/// In how many letters this word may differ from the one that was meant: one of so many that it has.
pub(crate) fn near(word: &str, letters_each: usize) -> usize {
    (word.chars().count() / letters_each).clamp(1, NEAR)
}

/// Edits between two words.
pub(crate) fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, ours) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, theirs) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(ours != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}
