//! The algebra, as a table of requirements written the way they print.

use super::{AllowUndefined, Operator, Requirement, Requirements};

const KEY: &str = "example.com/n";

fn parse(text: &str) -> Requirement {
    let mut words = text.split_whitespace();
    let operator = Operator::parse(words.next().unwrap()).unwrap();
    Requirement::new(KEY, operator, words)
}

/// What several requirements allow together, as `Gte 1 & NotIn 2`.
fn all_of(text: &str) -> Requirement {
    let each = text.split(" & ").map(parse);
    each.reduce(|a, b| a.intersection(&b)).unwrap()
}

#[test]
fn intersections() {
    let cases = [
        ("In a b", "In b c", "In [b]"),
        ("In a", "In b", "DoesNotExist"),
        ("In a b", "NotIn a", "In [b]"),
        ("NotIn a", "NotIn b", "NotIn [a b]"),
        ("Exists", "In a", "In [a]"),
        ("DoesNotExist", "Exists", "DoesNotExist"),
        ("Gt 4", "Lt 10", "Exists >=5 <=9"),
        ("Gt 4", "Lt 5", "DoesNotExist"),
        ("Gte 4", "In 3 4 x 5", "In [4 5]"),
        ("Gt 9223372036854775807", "Exists", "DoesNotExist"),
        ("Lte 3", "Gte 1", "Exists >=1 <=3"),
        ("NotIn 2 9", "Lte 3", "NotIn [2] <=3"),
        ("Gt 1", "NotIn 1 2 x", "NotIn [2] >=2"),
        ("Lt 3", "NotIn 3 5", "Exists <=2"),
        ("NotIn", "NotIn b a b", "NotIn [a b]"),
        ("NotIn 1 3", "In 1 2 3", "In [2]"),
        ("NotIn a", "DoesNotExist", "DoesNotExist"),
        ("Gte 5", "Lte 5", "Exists >=5 <=5"),
        ("Gt 9", "Lt 4", "DoesNotExist"),
        ("Gte 1", "In 0 x", "DoesNotExist"),
        ("Gte 1", "Gte 3", "Exists >=3"),
        ("Lte 1", "Lte 3", "Exists <=1"),
        ("In", "Exists", "DoesNotExist"),
        ("Gt x", "Exists", "DoesNotExist"),
        ("Lt -9223372036854775808", "Exists", "DoesNotExist"),
    ];
    for (a, b, expected) in cases {
        let expected = format!("{KEY} {expected}");
        assert_eq!(
            parse(a).intersection(&parse(b)).to_string(),
            expected,
            "{a} and {b}"
        );
        assert_eq!(
            parse(b).intersection(&parse(a)).to_string(),
            expected,
            "{b} and {a}"
        );
        let is_empty = expected.ends_with("DoesNotExist");
        assert_eq!(
            parse(a).has_intersection(&parse(b)),
            !is_empty,
            "{a} meets {b}"
        );
    }
}

#[test]
fn an_intersection_has_what_both_have() {
    for a in SOME.map(all_of) {
        for b in SOME.map(all_of) {
            for value in ["0", "1", "2", "3", "8", "x", ""] {
                let both = a.has(value) && b.has(value);
                assert_eq!(
                    a.intersection(&b).has(value),
                    both,
                    "{a} and {b} on {value:?}"
                );
            }
        }
    }
}

const SOME: [&str; 13] = [
    "In 1 2 x",
    "NotIn 2",
    "Exists",
    "DoesNotExist",
    "Gt 1",
    "Lt 2",
    "Gte 2",
    "Lte 7",
    "NotIn 1 x",
    "In 3",
    "Gt 7",
    "Gte 1 & NotIn 1 3",
    "Gte 2 & Lte 2 & NotIn 2",
];

#[test]
fn it_does_not_matter_in_which_order_requirements_are_met() {
    for a in SOME.map(all_of) {
        assert_eq!(a.intersection(&a), a);
        for b in SOME.map(all_of) {
            assert_eq!(a.intersection(&b), b.intersection(&a), "{a} and {b}");
            assert_eq!(a.has_intersection(&b), b.has_intersection(&a), "{a}, {b}");
            for c in SOME.map(all_of) {
                let (first, last) = (a.intersection(&b), b.intersection(&c));
                let left = first.intersection(&c);
                assert_eq!(left, a.intersection(&last), "{a} and {b} and {c}");
            }
        }
    }
}

#[test]
fn requirements_are_sorted_by_sense_then_values_then_bounds() {
    let ascending = [
        "DoesNotExist",
        "In a",
        "In a b",
        "In b",
        "Exists",
        "Lte 3",
        "Lte 4",
        "Gte 1",
        "Gte 1 & Lte 3",
        "Gte 2",
        "NotIn a",
        "NotIn a b",
    ];
    for pair in ascending.windows(2) {
        assert!(all_of(pair[0]) < all_of(pair[1]), "{pair:?}");
    }
    for (one, same) in [
        ("In b a b", "In a b"),
        ("In a a", "In a"),
        ("NotIn", "Exists"),
    ] {
        assert_eq!(all_of(one), all_of(same));
    }
}

#[test]
fn requirements_in_words() {
    for (text, expected) in [
        ("In b a", "In [a b]"),
        ("In 5 4 3 2 1", "In [1 2 3 4 5]"),
        ("In 7 6 5 4 3 2 1", "In [1 2 3 4 5 and 2 others]"),
        ("DoesNotExist", "DoesNotExist"),
        ("Lt 3", "Exists <=2"),
        ("Gt 4 & Lte 9 & NotIn 7 9 10", "NotIn [7 9] >=5 <=9"),
    ] {
        let mut requirement = all_of(text);
        assert_eq!(requirement.to_string(), format!("{KEY} {expected}"));
        requirement.min_values = Some(2);
        let expected = format!("{KEY} {expected} minValues 2");
        assert_eq!(requirement.to_string(), expected);
    }
}

#[test]
fn the_wire_has_bounds_for_themselves() {
    for (text, expected) in [
        ("In b a", "In [a b]"),
        ("Exists", "Exists []"),
        ("DoesNotExist", "DoesNotExist []"),
        ("NotIn a", "NotIn [a]"),
        ("Gt 4", "Gte [5]"),
        ("Gt 4 & Lt 9", "Gte [5], Lte [8]"),
        ("Lt 9 & NotIn 7", "Lte [8]"),
        ("Gt 9 & Lt 4", "DoesNotExist []"),
    ] {
        let mut requirement = all_of(text);
        requirement.min_values = Some(3);
        let entries = requirement.to_node_selector_requirements();
        let told = entries.iter().map(|it| {
            assert_eq!((it.key.as_str(), it.min_values), (KEY, Some(3)), "{text}");
            format!("{} [{}]", it.operator.as_str(), it.values.join(" "))
        });
        assert_eq!(told.collect::<Vec<_>>().join(", "), expected, "{text}");
    }
}

#[test]
fn compatibility_of_undefined_labels() {
    let pool: Requirements =
        std::iter::once(Requirement::new("team", Operator::In, ["a"])).collect();
    let cases = [
        ("team", "In a", true),
        ("team", "In b", false),
        ("team", "NotIn a", false),
        ("other", "In a", false),
        ("other", "NotIn a", true),
        ("other", "DoesNotExist", true),
        ("kubernetes.io/arch", "In arm64", true),
    ];
    for (key, text, expected) in cases {
        let mut words = text.split_whitespace();
        let operator = Operator::parse(words.next().unwrap()).unwrap();
        let asked = std::iter::once(Requirement::new(key, operator, words)).collect();
        assert_eq!(
            pool.compatible(&asked, AllowUndefined::WellKnown).is_ok(),
            expected,
            "{key} {text}"
        );
    }
    let arch = std::iter::once(Requirement::new(
        "kubernetes.io/arch",
        Operator::In,
        ["arm64"],
    ))
    .collect();
    assert!(
        pool.compatible(&arch, AllowUndefined::None).is_err(),
        "nodes have the labels they have"
    );
}

#[test]
fn typos_get_a_hint() {
    let asked = std::iter::once(Requirement::new("topology/zone", Operator::In, ["a"])).collect();
    let error = Requirements::new()
        .compatible(&asked, AllowUndefined::WellKnown)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("typo of \"topology.kubernetes.io/zone\""),
        "{error}"
    );
}

#[test]
fn old_keys_are_normalised() {
    let old = Requirement::new(
        "failure-domain.beta.kubernetes.io/zone",
        Operator::Exists,
        [],
    );
    assert_eq!(old.key(), "topology.kubernetes.io/zone");
}

#[test]
fn open_requirements_get_a_value_that_meets_them() {
    for text in ["Exists", "Gt 5", "Lt 3", "NotIn 0 1 2", "Gte 7"] {
        let requirement = parse(text);
        for seed in [0, 1, u64::MAX] {
            let value = requirement.any(seed).unwrap();
            assert!(
                requirement.has(&value),
                "{text} with seed {seed} gave {value}"
            );
        }
    }
}

#[test]
fn the_only_value_that_is_left_is_found_whatever_the_seed() {
    let one_of_three = all_of("Gte 1 & Lte 3 & NotIn 1 2");
    let none = all_of("Gte 4 & Lte 4 & NotIn 4");
    for seed in [0, 1, 2, 3, u64::MAX - 1, u64::MAX] {
        assert_eq!(one_of_three.any(seed).as_deref(), Some("3"), "{seed}");
        assert_eq!(none.any(seed), None, "{seed}");
    }
}

#[test]
fn a_clone_keeps_what_it_had() {
    let values = |requirements: &Requirements| requirements.to_string();
    let requirement = |key: &str, text: &str| {
        let mut words = text.split_whitespace();
        let operator = Operator::parse(words.next().unwrap()).unwrap();
        Requirement::new(key, operator, words)
    };
    let mut original: Requirements = [
        requirement("b", "In 2 1 2"),
        requirement("a", "NotIn x"),
        requirement("b", "In 3 2"),
    ]
    .into_iter()
    .collect();
    assert_eq!(values(&original), "a NotIn [x], b In [2]");
    let clone = original.clone();
    original.add(requirement("a", "In x y"));
    original.replace(requirement("b", "Exists"));
    original.add(requirement("aa", "Gt 4"));
    assert_eq!(values(&original), "a In [y], aa Exists >=5, b Exists");
    assert_eq!(values(&clone), "a NotIn [x], b In [2]");
    for key in ["aa", "a", "b"] {
        assert_eq!(original.remove(key).unwrap().key(), key);
        assert_eq!(original.remove(key), None);
    }
    // Nothing left is the same as nothing ever said.
    assert_eq!(original, Requirements::new());
    assert!(original.is_empty() && original < clone);
}
