//! Which labels a type gets.

use super::naming_scheme;

#[test]
fn families_are_read_by_their_naming_scheme() {
    let cases = [
        ("m7i-flex", Some(("m", "7"))),
        ("c5", Some(("c", "5"))),
        ("u-6tb1", Some(("u", "1"))),
        ("u7i-12tb", Some(("u", "7"))),
        ("p6-b200", Some(("p", "6"))),
        ("trn1n", Some(("trn", "1"))),
        ("mac", None),
    ];
    for (family, want) in cases {
        assert_eq!(naming_scheme(family), want, "{family}");
    }
}
