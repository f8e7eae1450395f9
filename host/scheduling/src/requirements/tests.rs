//! The algebra, as a table of requirements written the way they print.

use super::{AllowUndefined, Operator, Requirement, Requirements};

const KEY: &str = "example.com/n";

fn parse(text: &str) -> Requirement {
    let mut words = text.split_whitespace();
    let operator = Operator::parse(words.next().unwrap()).unwrap();
    Requirement::new(KEY, operator, words)
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
    let all = [
        "In 1 2 x",
        "NotIn 2",
        "Exists",
        "DoesNotExist",
        "Gt 1",
        "Lt 2",
        "Gte 2",
        "Lte 7",
        "NotIn 1 x",
    ];
    for a in all.map(parse) {
        for b in all.map(parse) {
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
