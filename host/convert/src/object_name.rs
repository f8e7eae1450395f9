//! Names of objects that are made here.
//!
//! Never longer than a label's value, since nodes bear the names of their pool and class; whether another object has
//! the name already is not known here.

/// As many letters as a label's value may have.
const NAME_MAX: usize = 63;

/// A name that objects may have, from one that other things may have, too.
pub(crate) fn object_name(name: &str) -> String {
    let mut made = String::new();
    for letter in name.to_lowercase().chars() {
        let is_fine = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        match (is_fine, made.ends_with('-')) {
            (true, _) => made.push(letter),
            (false, false) => made.push('-'),
            (false, true) => {}
        }
    }
    with_suffix(made.trim_matches('-'), "")
}

/// The name with the suffix; of a long name as much as there is room for. No name may end in what parts its words.
pub(crate) fn with_suffix(name: &str, suffix: &str) -> String {
    let room = NAME_MAX.saturating_sub(suffix.len());
    let cut: String = name.chars().take(room).collect();
    format!("{}{suffix}", cut.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_cut_ends_in_a_letter_or_a_digit() {
        let long = |length: usize| "a".repeat(length);
        let cases = [
            ("eks-Shop_Workers".to_owned(), "eks-shop-workers".to_owned()),
            ("__a..b__".to_owned(), "a-b".to_owned()),
            (long(70), long(63)),
            (format!("{}-b", long(62)), long(62)),
            (format!("{}-b", long(61)), format!("{}-b", long(61))),
        ];
        for (name, want) in cases {
            assert_eq!(object_name(&name), want, "{name}");
        }
    }

    #[test]
    fn a_suffix_stays_whole_whatever_is_cut() {
        let long = |length: usize| "a".repeat(length);
        let cases = [
            ("default".to_owned(), "-a", "default-a".to_owned()),
            (long(63), "-2", format!("{}-2", long(61))),
            (format!("{}.b", long(60)), "-2", format!("{}-2", long(60))),
            (long(70), "", long(63)),
        ];
        for (name, suffix, want) in cases {
            assert_eq!(with_suffix(&name, suffix), want, "{name} {suffix}");
        }
    }
}
