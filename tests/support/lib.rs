//! What the tests share: where the project lies, how its binary is run, how its answers are read.

pub mod kubernetes;
pub mod moto;
pub mod served;
pub mod sources;
pub mod wire;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The root of the workspace. Cargo runs a test in its package's folder; the path known when it was compiled may be
/// that of another clone with the same target folder.
pub fn workspace_root() -> PathBuf {
    Path::new("../..").canonicalize().unwrap_or_default()
}

/// The `mortise` binary that cargo built for these tests, or the one that `MORTISE_BINARY` names.
pub fn mortise() -> PathBuf {
    let mut names = ["MORTISE_BINARY", "CARGO_BIN_EXE_mortise"].into_iter();
    names.find_map(std::env::var_os).map_or_else(
        || panic!("no binary: run these tests by `cargo test`, or set MORTISE_BINARY"),
        PathBuf::from,
    )
}

/// Runs the binary to its end.
pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Finished {
    let output = Command::new(mortise()).args(arguments).output();
    Finished {
        output: output.unwrap_or_else(|error| panic!("the binary does not run: {error}")),
    }
}

/// A run that ended.
pub struct Finished {
    output: Output,
}

impl Finished {
    /// Whether it ended well.
    pub fn is_success(&self) -> bool {
        self.output.status.success()
    }

    /// The exit code; none after a signal.
    pub fn exit_code(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// Standard output.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Standard error.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The summary that `-o json` prints.
    pub fn summary(&self) -> Value {
        serde_json::from_str(&self.stdout()).unwrap_or_else(|error| {
            panic!(
                "no JSON summary ({error}): {}{}",
                self.stdout(),
                self.stderr()
            )
        })
    }
}

/// Manifests of others, which are not part of the project: `None`, with a line that says so, where they are absent.
pub fn foreign_manifests(name: &str) -> Option<PathBuf> {
    let path = workspace_root().join("../shared/data/manifests").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {name} is not part of the project and is not beside it");
    None
}

/// Names the programs that must be there, with blanks between them. `.ci/run` sets it to what it has seen, so that a
/// program which is installed and does not run fails a test instead of having it passed over.
const REQUIRED: &str = "MORTISE_TEST_REQUIRES";

/// Whether a program can be run; says so where it cannot, and fails where it must be there.
pub fn has_program(name: &str, argument: &str) -> bool {
    let found = Command::new(name)
        .arg(argument)
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        let required = std::env::var(REQUIRED).unwrap_or_default();
        let is_required = required.split_whitespace().any(|it| it == name);
        assert!(
            !is_required,
            "{REQUIRED} names `{name}`, and `{name} {argument}` does not run"
        );
        eprintln!("skipped: `{name}` is not installed");
    }
    found
}

/// Whether a policy in JavaScript can be built here: with Node.js, and with the npm registry for the one thing that is
/// fetched. Says what is missing.
pub fn can_build_javascript() -> bool {
    if !["node", "npm"]
        .iter()
        .all(|it| has_program(it, "--version"))
    {
        return false;
    }
    let reachable = Command::new("npm")
        .args(["view", "componentize-qjs@0.4.5", "version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !reachable {
        eprintln!("skipped: the npm registry does not answer");
    }
    reachable
}

/// The value of a series in the text of `/metrics`: its name, and labels it must have.
pub fn metric(text: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let mut lines = text.lines().filter(|line| {
        let rest = line.strip_prefix(name).unwrap_or_default();
        let wanted = |(key, value): &(&str, &str)| rest.contains(&format!("{key}=\"{value}\""));
        rest.starts_with(['{', ' ']) && labels.iter().all(wanted)
    });
    lines.next()?.rsplit(' ').next()?.parse().ok()
}
