//! Templates of `mortise policy new`, kept in `guest-sdk/templates` and beside it.

use policy::PolicyKind;

use crate::language::Language;

/// One template for each kind, at the given places.
macro_rules! of_kinds {
    ($kind:expr, $rank:literal, $consolidation:literal, $budgets:literal) => {
        match $kind {
            PolicyKind::Rank => include_str!(concat!("../../../guest-sdk/templates/", $rank)),
            PolicyKind::Consolidation => {
                include_str!(concat!("../../../guest-sdk/templates/", $consolidation))
            }
            PolicyKind::Budgets => include_str!(concat!("../../../guest-sdk/templates/", $budgets)),
        }
    };
}

macro_rules! files {
    ($folder:literal: $($file:literal),* $(,)?) => {
        [$(($file, include_str!(concat!("../../../", $folder, "/", $file)))),*]
    };
}

/// Files of the policy interface, by name.
pub(super) const WIT: [(&str, &str); 7] = files!("wit":
    "budgets.wit",
    "consolidation.wit",
    "host.wit",
    "lifecycle.wit",
    "policy.wit",
    "rank.wit",
    "types.wit",
);

/// What released versions of the SDK vendored, as stamps.
pub(super) const RELEASED: [(Language, &str); 3] = [
    (
        Language::Rust,
        include_str!("../../../guest-sdk/templates/released/rust-0.1.0.lock"),
    ),
    (
        Language::Js,
        include_str!("../../../guest-sdk/templates/released/js-0.1.0.lock"),
    ),
    (
        Language::C,
        include_str!("../../../guest-sdk/templates/released/c-0.1.0.lock"),
    ),
];

/// What sources written for interface 0.1 must say otherwise.
pub(super) fn since_0_1(lang: Language) -> &'static str {
    match lang {
        Language::Rust => {
            include_str!("../../../guest-sdk/templates/released/rust-since-0.1.txt")
        }
        Language::Js => include_str!("../../../guest-sdk/templates/released/js-since-0.1.txt"),
        Language::C => include_str!("../../../guest-sdk/templates/released/c-since-0.1.txt"),
        // A rule has no names of its own, and Go came later.
        Language::Expr | Language::Go => "",
    }
}

pub(super) fn cases(kind: PolicyKind) -> &'static str {
    of_kinds!(
        kind,
        "cases/rank.yaml",
        "cases/consolidation.yaml",
        "cases/budgets.yaml"
    )
}

pub(super) fn rule(kind: PolicyKind) -> &'static str {
    of_kinds!(
        kind,
        "expr/rank.txt",
        "expr/consolidation.txt",
        "expr/budgets.txt"
    )
}

pub(super) mod rust {
    //! A crate, and the SDK beside it with its bindings as plain code.

    use policy::PolicyKind;

    pub(crate) const CARGO: &str = include_str!("../../../guest-sdk/templates/rust/Cargo.toml.in");
    const SDK: [(&str, &str); 16] = files!("guest-sdk/src":
        "allocator.rs",
        "budgets.rs",
        "config.rs",
        "config/json.rs",
        "consolidation.rs",
        "export.rs",
        "lib.rs",
        "log.rs",
        "policy.rs",
        "rank.rs",
        "symbols.rs",
        "testing.rs",
        "testing/consolidation.rs",
        "testing/rank.rs",
        "usage.rs",
        "workloads.rs",
    );
    const WORLDS: [(&str, &[u8]); 4] = [
        (
            "src/worlds/rank-policy",
            include_bytes!("../../../guest-sdk/templates/rust/worlds/rank-policy"),
        ),
        (
            "src/worlds/consolidation-policy",
            include_bytes!("../../../guest-sdk/templates/rust/worlds/consolidation-policy"),
        ),
        (
            "src/worlds/budget-policy",
            include_bytes!("../../../guest-sdk/templates/rust/worlds/budget-policy"),
        ),
        (
            "src/worlds/full-policy",
            include_bytes!("../../../guest-sdk/templates/rust/worlds/full-policy"),
        ),
    ];

    pub(crate) fn source(kind: PolicyKind) -> &'static str {
        of_kinds!(
            kind,
            "rust/rank.rs.in",
            "rust/consolidation.rs.in",
            "rust/budgets.rs.in"
        )
    }

    /// The files of the SDK's crate.
    pub(crate) fn sdk() -> Vec<(String, Vec<u8>)> {
        let text = |file: &str, content: &str| (file.to_owned(), content.as_bytes().to_vec());
        let mut files = vec![
            text(
                "Cargo.toml",
                include_str!("../../../guest-sdk/templates/rust/sdk.toml.in"),
            ),
            text(
                "src/bindings.rs",
                include_str!("../../../guest-sdk/templates/rust/bindings.rs.in"),
            ),
        ];
        files.extend(SDK.map(|(file, content)| text(&format!("src/{file}"), content)));
        files.extend(WORLDS.map(|(file, content)| (file.to_owned(), content.to_vec())));
        files
    }
}

pub(super) mod js {
    //! An ES module for componentize-qjs.

    use policy::PolicyKind;

    pub(crate) const PACKAGE: &str =
        include_str!("../../../guest-sdk/templates/js/package.json.in");
    pub(crate) const LIFECYCLE: &str = include_str!("../../../guest-sdk/templates/js/lifecycle.js");

    pub(crate) fn source(kind: PolicyKind) -> &'static str {
        of_kinds!(kind, "js/rank.js", "js/consolidation.js", "js/budgets.js")
    }
}

pub(super) mod go {
    //! A Go module, and the interface as another beside it.

    use policy::PolicyKind;

    pub(crate) const MODULE: &str = include_str!("../../../guest-sdk/templates/go/go.mod.in");
    pub(crate) const SDK: [(&str, &str); 6] = files!("guest-sdk/templates/go/sdk":
        "budgets/budgets.go",
        "consolidation/consolidation.go",
        "go.mod",
        "lifecycle.go",
        "policy.go",
        "rank/rank.go",
    );
    /// What Go's runtime asks of WASI, answered inside the component; made of `wasi.wat` beside it.
    pub(crate) const WASI: &[u8] = include_bytes!("../../../guest-sdk/templates/go/wasi.wasm");

    pub(crate) fn source(kind: PolicyKind) -> &'static str {
        of_kinds!(
            kind,
            "go/rank.go.in",
            "go/consolidation.go.in",
            "go/budgets.go.in"
        )
    }
}

pub(super) mod c {
    //! One file of C and the interface as a header; no C library.

    use policy::PolicyKind;

    pub(crate) const HEADER: &str = include_str!("../../../guest-sdk/templates/c/mortise_policy.h");

    pub(crate) fn source(kind: PolicyKind) -> &'static str {
        of_kinds!(kind, "c/rank.c", "c/consolidation.c", "c/budgets.c")
    }
}
